"""Schedules of one stage a mesh with whole backward passes: GPipe, 1F1B and eager-1F1B."""

from collections.abc import Iterator

from hlorewrite.pipelines.schedules.schedule import Schedule, Task, build, check_sizes


def gpipe(meshes: int, microbatches: int) -> Schedule:
    """All forwards, then all backwards, the last micro-batch first (Huang et al., NeurIPS 2019).

    Every mesh holds the activations of all micro-batches.

    Args:
      meshes: n, number of stages.
      microbatches: m.

    Returns:
      The schedule.

    Example:
      >>> print(gpipe(2, 2).text())
      F0 F1 B1 B0
      F0 F1 B1 B0
    """
    check_sizes(meshes, microbatches)
    return build("gpipe", microbatches, range(meshes), (
        [*(Task("F", stage, k) for k in range(microbatches)),
         *(Task("B", stage, k) for k in reversed(range(microbatches)))] for stage in range(meshes)))


def one_f_one_b(meshes: int, microbatches: int) -> Schedule:
    """1F1B (PipeDream-Flush): min(m, n-i-1) warm-up forwards on stage i, then one forward, one backward.

    At most min(m, n-i) micro-batches are alive on stage i (Narayanan et al., SC 2021).

    Args:
      meshes: n, number of stages.
      microbatches: m.

    Returns:
      The schedule.

    Example:
      >>> print(one_f_one_b(2, 3).text())
      F0 F1 B0 F2 B1 B2
      F0 B0 F1 B1 F2 B2
    """
    check_sizes(meshes, microbatches)
    return build("1f1b", microbatches, range(meshes),
                 (_alternating(stage, microbatches, meshes - stage) for stage in range(meshes)))


def eager_1f1b(meshes: int, microbatches: int) -> Schedule:
    """1F1B with forwards run ahead, so that transfers have a task's time to overlap with others.

    Stage i of n runs min(m, 2(n-i)-1) forwards before its first backward, and as many micro-batches are alive: n-i-1
    more than with 1F1B, in as many ticks (Zhuang et al., "On Optimizing the Communication of Model Parallelism",
    MLSys 2023).

    Args:
      meshes: n, number of stages.
      microbatches: m.

    Returns:
      The schedule.

    Example:
      >>> print(eager_1f1b(2, 4).text())
      F0 F1 F2 B0 F3 B1 B2 B3
      F0 B0 F1 B1 F2 B2 F3 B3
    """
    check_sizes(meshes, microbatches)
    return build("eager-1f1b", microbatches, range(meshes),
                 (_alternating(stage, microbatches, 2 * (meshes - stage) - 1) for stage in range(meshes)))


def _alternating(stage: int, microbatches: int, ahead: int) -> Iterator[Task]:
    """``ahead`` forwards, then backward and forward in turn."""
    forwards = min(ahead, microbatches)
    yield from (Task("F", stage, k) for k in range(forwards))
    for k in range(microbatches):
        yield Task("B", stage, k)
        if forwards < microbatches:
            yield Task("F", stage, forwards)
            forwards += 1
