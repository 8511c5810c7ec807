"""The shipped passes by name; ``import hlorewrite`` registers them with the pass manager.

``tools/import_layers.py`` reads this table as imports.
"""

PASSES = {
    "all-reduce-fusion": "hlorewrite.passes.all_reduce_fusion:AllReduceFusion",
    "collective-cse": "hlorewrite.passes.collective_cse:CollectiveCse",
    "comm-shift": "hlorewrite.passes.comm_shift:CommShift",
    "gather-once": "hlorewrite.passes.gather_once:GatherOnce",
    "gather-to-broadcast": "hlorewrite.passes.gather_to_broadcast:GatherToBroadcast",
    "hierarchical-all-reduce": "hlorewrite.passes.hierarchical_all_reduce:HierarchicalAllReduce",
    "hoist-collectives": "hlorewrite.passes.hoist_collectives:HoistCollectives",
    "inline": "hlorewrite.passes.inline:Inline",
    "interleave-halves": "hlorewrite.passes.interleave_halves.interleave_halves:InterleaveHalves",
    "interleave-micro-batches":
        "hlorewrite.passes.interleave_micro_batches.interleave_micro_batches:InterleaveMicroBatches",
    "legalize-for-cpu": "hlorewrite.passes.legalize_for_cpu:LegalizeForCpu",
    "masked-sum-to-broadcast": "hlorewrite.passes.masked_sum_to_broadcast:MaskedSumToBroadcast",
    "merge-statistics": "hlorewrite.passes.merge_statistics:MergeStatistics",
    "partial-state": "hlorewrite.passes.partial_state:PartialState",
    "peel-last-micro-batch": "hlorewrite.passes.peel_last_micro_batch.peel_last_micro_batch:PeelLastMicroBatch",
    "permutes-to-broadcast": "hlorewrite.passes.permutes_to_broadcast:PermutesToBroadcast",
    "reduce-scatter-creation": "hlorewrite.passes.reduce_scatter_creation:ReduceScatterCreation",
    "rotate-collectives": "hlorewrite.passes.rotate_collectives.rotate_collectives:RotateCollectives",
    "rules": "hlorewrite.passes.apply_rules:ApplyRules",
    "sink-waits": "hlorewrite.passes.sink_waits:SinkWaits",
    "separate-streams": "hlorewrite.passes.separate_streams:SeparateStreams",
    "sequence-parallel": "hlorewrite.passes.sequence_parallel.sequence_parallel:SequenceParallel",
    "shard-update": "hlorewrite.passes.shard_update:ShardUpdate",
    "sink-reductions": "hlorewrite.passes.sink_reductions.sink_reductions:SinkReductions",
    "tokens-to-experts": "hlorewrite.passes.tokens_to_experts:TokensToExperts",
}
"""Name to ``module:class``; nothing is imported before a pass is asked for."""
