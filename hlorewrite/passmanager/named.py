"""Pipelines with a name, ``hlorewrite opt -O NAME``."""

from hlorewrite.errors import UsageError, did_you_mean

_COMM = ("collective-cse", "gather-once", "hoist-collectives",
         # What leaves a loop may be equal to what is around it.
         "collective-cse", "masked-sum-to-broadcast", "gather-to-broadcast", "permutes-to-broadcast",
         "rules{only=algebra}", "comm-shift", "rules{only=algebra}",
         # What comm-shift moves may be next to its like, or read what its loop does not change.
         "collective-cse", "hoist-collectives",
         # Sharded within hosts and replicated across them: what remains across hosts may leave the loop.
         "reduce-scatter-creation{only-split=true}", "comm-shift", "rules{only=algebra}", "reduce-scatter-creation")
_BESIDE_COMPUTE = ("peel-last-micro-batch{sunk=true}", "sink-reductions", "rotate-collectives",
                   # Weights of the layer that a rotated loop begins with are the same in each micro-batch.
                   "hoist-collectives{barriers=true}", "collective-cse",
                   # Collectives that the next op waits for run concurrently with the other half of the batch.
                   "interleave-halves",
                   # XLA:GPU merges small gathers and reduce-scatters without a copy; more only where each call counts.
                   "all-reduce-fusion{kinds=all-reduce crowded=true}")
_CALLS = ("hierarchical-all-reduce", "all-reduce-fusion")

_BEFORE_LAST = (_COMM[0], "merge-statistics", *_COMM[1:])
_TIME = (*_BEFORE_LAST, *_BESIDE_COMPUTE)
# What both micro-batches of a pair gather, or sum, they gather once, or sum together.
_IN_PAIRS = ("interleave-micro-batches", "rules{only=algebra}", "collective-cse")

PIPELINES = {"comm": ",".join((*_COMM, *_CALLS)), "time": ",".join(_TIME),
             "pairs": ",".join((*_BEFORE_LAST, *_IN_PAIRS, *_BESIDE_COMPUTE)),
             "streams": ",".join(("separate-streams{plan=true}", *_TIME, "separate-streams"))}
"""Name -> pipeline text. Stable: passes are only added to them."""
AUTO = "auto"
"""In place of a pipeline: all ways to compile a step are tried, and the best one is compiled."""
ABOUT = {
    "comm": "Every pass whose result is estimated to communicate no more than before.",
    "time": "The passes of comm, then those that move communication to where compute hides it. They choose by "
            "predicted time, so they need --topology or --target.",
    "pairs": "The passes of time, with micro-batches two at a time, layer by layer. The activations of both are in "
             "memory at once.",
    "streams": "The passes of time, with a separate stream for collectives over network ports. XLA needs options for "
               "it, and no GPU has run it yet.",
    AUTO: "Compiles the module in every way for --target, compares each with XLA alone, and keeps the best one, which "
          "may be the module as it is."}
"""Name -> what the pipeline does."""


def named_pipeline(name: str) -> str:
    """The text of a named pipeline.

    Args:
      name: its name.

    Returns:
      What ``--pass-pipeline`` takes.

    Raises:
      UsageError: there is no pipeline of this name.

    Example:
      >>> named_pipeline("comm").split(",")[-1]
      'all-reduce-fusion'
    """
    if name not in PIPELINES:
        raise UsageError(f'there is no pipeline "{name}"', hint=did_you_mean(name, (AUTO, *PIPELINES)))
    return PIPELINES[name]
