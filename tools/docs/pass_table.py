"""The table of ``docs/passes.md``: what each pass does, when it applies, why it is legal, what it gains, how to run it.

What a pass does, and which named pipelines contain it, is read from the passes. ``python tools/docs/pass_table.py``
prints the table; a test compares it with the page.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from markup import table

from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.registry import built_in_passes, find_pass, help_line


@dataclass(frozen=True)
class PassFacts:
    """What a pass cannot say about itself.

    Attributes:
      applies: when it applies.
      legality: why its result is right, in a few words.
      gain: what it gains, with a link to the page that shows the figure.
      flag: how to run it, where no named pipeline does.
    """

    applies: str
    legality: str
    gain: str
    flag: str = ""


GROUPS: dict[str, dict[str, PassFacts]] = {
    "Send less": {
        "comm-shift": PassFacts(
            "a reduction in a loop or branch whose result is only needed later (gradient accumulation)",
            "linear ops in between; uniform factors, predicates and trip counts",
            "one reduction instead of one per micro-batch; [8B and 70B](comm-shift.md#large-models)"),
        "gather-once": PassFacts(
            "FSDP with several micro-batches, and a memory budget",
            "the parameter does not change in the loop; equal index on all devices",
            "1.5 instead of 12 times the parameters sent, for [12 MiB](comm-shift.md#sharded-parameters-gather-once)"),
        "hoist-collectives": PassFacts(
            "a collective whose operands do not change in a loop", "it runs in every iteration",
            "one call instead of one per iteration; [measured](all-reduce-fusion.md#measured)"),
        "collective-cse": PassFacts(
            "equal collectives of equal operands", "one runs whenever the other does", "each duplicate"),
        "rules": PassFacts(
            "shapes that a rule matches", "conditions of each rule, [proved](proving.md)",
            "[rule by rule](comparison.md#xla)"),
        "reduce-scatter-creation": PassFacts(
            "an all-reduce from whose result each device uses one slice", "the slice is the device's own shard",
            "half of the bytes on the wire; [measured](all-reduce-fusion.md#measured)"),
        "tokens-to-experts": PassFacts(
            "experts and batch sharded over one axis, and XLA gathers the weights of all experts",
            "a sharding constraint changes no value", "0.09 of the bytes, step 25 % shorter for [mixtral](experts.md)",
            "`-O auto`, or `--pass=tokens-to-experts`"),
        "masked-sum-to-broadcast": PassFacts(
            "`psum(where(axis_index == k, x, 0))`", "one device contributes, the others exact zeros",
            "0.57 of the bytes on the wire on 8 GPUs; [measured](all-reduce-fusion.md#measured)"),
        "gather-to-broadcast": PassFacts(
            "an all-gather whose readers need one shard", "all devices read the same shard",
            "a quarter of the payload for one of four shards; [measured](all-reduce-fusion.md#measured)"),
        "permutes-to-broadcast": PassFacts(
            "the same value sent to several devices", "the operand is one value",
            "a third of the payload for three receivers; [measured](all-reduce-fusion.md#measured)"),
        "reshard-to-broadcast": PassFacts(
            "the three above, and transfers between meshes", "as above; the op and its type stay",
            "[resharding figures](resharding.md#figures)", "`--pass=reshard-to-broadcast`"),
    },
    "Send in fewer or cheaper calls": {
        "all-reduce-fusion": PassFacts(
            "independent collectives with equal groups", "every bit of every value survives",
            "0.30 to 1.03 of XLA's [exposed time](all-reduce-fusion.md#measured)"),
        "merge-statistics": PassFacts(
            "batch norms over sharded batches: variances that wait for means, and their gradients",
            "all devices have the same mean; factors are the same on all devices of a sum",
            "100 instead of 238 calls for [ResNet-50](all-reduce-fusion.md#batch-norms)"),
        "hierarchical-all-reduce": PassFacts(
            "all-reduces across hosts, if faster on the cluster", "sums are reassociated",
            "fewer bytes between hosts"),
    },
    "Overlap communication with compute": {
        "peel-last-micro-batch": PassFacts(
            "reductions after an accumulation loop", "the trip count is known; the last iteration runs after the loop",
            "[step times](overlap.md#measured)"),
        "sink-reductions": PassFacts(
            "a layer loop that stacks gradients", "each row is written once and only reduced",
            "[step times](overlap.md#measured)"),
        "rotate-collectives": PassFacts(
            "collectives in a loop that other iterations can hide", "the same halves run in the same order",
            "[step times](overlap.md#measured)"),
        "interleave-halves": PassFacts(
            "tensor parallelism: compute that waits for collectives", "no op in between mixes the two halves",
            "[two halves of the batch](overlap.md#two-halves-of-the-batch)"),
        "interleave-micro-batches": PassFacts(
            "gradient accumulation: compute waits for collectives of its micro-batches",
            "an even number of micro-batches, none of which needs another; stacked gradients are summed in another "
            "order", "[two micro-batches at a time](overlap.md#two-micro-batches-at-a-time)"),
        "sink-waits": PassFacts(
            "compute that needs no collective runs next to one that it waits for", "only the order of ops changes",
            "[step times](overlap.md#waits-behind-the-kernels-that-hide-a-collective)",
            "`-O auto`, or `--pass=sink-waits`"),
        "separate-streams": PassFacts(
            "several hosts: some collectives use only network ports, others links inside hosts",
            "no value changes; off by default, since no GPU has run it",
            "[separate streams](overlap.md#separate-streams)"),
    },
    "Save memory (opt-in, changes the step's state)": {
        "shard-update": PassFacts(
            "replicated optimizer state in data parallelism", "the update is elementwise; only it reads the state",
            "AdamW arguments 268.8 to [92.4 MB](shard-update.md#measured)",
            "`optimize(shard_update=\"data\")`"),
        "partial-state": PassFacts(
            "gradients accumulated across calls (`optax.MultiSteps`)",
            "calls only add to the sum, and it starts at zero",
            "accumulating calls send 4 bytes instead of [67 MB](partial-state.md#a-step)",
            "`optimize(partial_state=\"data\")`"),
        "sequence-parallel": PassFacts(
            "tensor-parallel transformers", "ops in between work on shards",
            "temporaries 0.75 at equal bytes, step 6 to 13 % [shorter](sequence-parallel.md#measured)",
            "`--pass=sequence-parallel`"),
    },
    "Prepare a module": {
        "expose-collectives": PassFacts(
            "auto-sharded modules", "XLA's own partitioner", "lets the other passes see the collectives",
            "the decorator; `-O` with `--target`"),
        "inline": PassFacts("functions that contain collectives", "calls become bodies", "", "`--pass=inline`"),
        "legalize-for-cpu": PassFacts(
            "broadcasts that run on CPU", "bits are added as integers to zeros", "XLA:CPU compiles it",
            "every compilation for CPU"),
    },
    "Pipelines": {
        "split-stages": PassFacts(
            "a train step with stage marks", "the unsplit step is the reference",
            "[a pipelined step](pipeline-programs.md)", "`hlorewrite.pipeline`"),
        "share-fragments": PassFacts(
            "a fragment that contains another one", "the same ops in another cut",
            "[compile time on CPU](pipeline-programs.md#compile-time)", "`hlorewrite.pipeline` on CPU"),
    },
}
"""Passes by purpose."""


def pass_table(group: str) -> str:
    """The table of one purpose."""
    rows = [(f"[{name}](reference/passes/{name}.md)", help_line(find_pass(name)), facts.applies, facts.legality,
             facts.gain, facts.flag or _pipelines(name)) for name, facts in GROUPS[group].items()]
    return table(("pass", "what it does", "when it applies", "legal because", "gain", "run by"), rows)


def _pipelines(name: str) -> str:
    held = [pipeline for pipeline, text in sorted(PIPELINES.items())
            if re.search(rf"(?:^|,){name}(?=,|{{|$)", text)]
    held = [each for each in held if each not in ("pairs", "streams") or "time" not in held]  # they run all of time
    return ", ".join(f"`{pipeline}`" for pipeline in held)


def page_tables() -> str:
    """All tables with their headings, as the page has them."""
    return "\n".join(f"## {group}\n\n{pass_table(group)}" for group in GROUPS)


def missing() -> set[str]:
    """Passes of which the table says nothing, and rows that are not passes."""
    return set(built_in_passes()) ^ {name for passes in GROUPS.values() for name in passes}


if __name__ == "__main__":
    print(page_tables())
