"""Schedules with one stage per mesh: GPipe, 1F1B, eager-1F1B, and zero-bubble schedules.

Zero-bubble schedules split the backward pass: the weight gradients, which nothing waits for, fill the gaps (Qi et al.,
ICLR 2024).
"""

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
                 (_in_turn(stage, microbatches, meshes - stage) for stage in range(meshes)))


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
                 (_in_turn(stage, microbatches, 2 * (meshes - stage) - 1) for stage in range(meshes)))


def zb_h1(meshes: int, microbatches: int) -> Schedule:
    """ZB-H1: the memory of 1F1B's first stage on every stage, bubble (n-1)(F + I - W).

    Stage i runs n-i forwards ahead and its weight gradients i micro-batches late: n are alive on each.

    Args:
      meshes: n, number of stages.
      microbatches: m.

    Returns:
      The schedule.

    Example:
      >>> print(zb_h1(2, 3).text())
      F0 F1 I0 W0 F2 I1 W1 I2 W2
      F0 I0 F1 I1 W0 F2 I2 W1 W2
    """
    check_sizes(meshes, microbatches)
    return build("zb-h1", microbatches, range(meshes),
                 (_in_turn(stage, microbatches, meshes - stage, stage) for stage in range(meshes)))


def zb_h2(meshes: int, microbatches: int) -> Schedule:
    """ZB-H2: nearly twice the memory, bubble (n-1)(F + I - 2W) in a mesh's own span: none for equal times.

    Stage i runs 2(n-i)-1 forwards ahead and its weight gradients 2i micro-batches late: 2n-1 are alive on each. The
    bubble vanishes where a mesh may start the next step while later ones still finish this one.

    Args:
      meshes: n, number of stages.
      microbatches: m, at least 2n-1 for an empty bubble.

    Returns:
      The schedule.

    Example:
      >>> print(zb_h2(2, 3).text())
      F0 F1 F2 I0 W0 I1 W1 I2 W2
      F0 I0 F1 I1 F2 I2 W0 W1 W2
    """
    check_sizes(meshes, microbatches)
    return build("zb-h2", microbatches, range(meshes),
                 (_in_turn(stage, microbatches, 2 * (meshes - stage) - 1, 2 * stage) for stage in range(meshes)))


def _in_turn(stage: int, microbatches: int, ahead: int, late: int | None = None) -> Iterator[Task]:
    """``ahead`` forwards, then backward and forward in turn.

    With ``late`` the backward is the input gradient, and the weight gradient of the micro-batch ``late`` before it.
    """
    forwards = min(ahead, microbatches)
    yield from (Task("F", stage, k) for k in range(forwards))
    for k in range(microbatches):
        yield Task("B" if late is None else "I", stage, k)
        if late is not None and k >= late:
            yield Task("W", stage, k - late)
        if forwards < microbatches:
            yield Task("F", stage, forwards)
            forwards += 1
    if late is not None:
        yield from (Task("W", stage, k) for k in range(max(microbatches - late, 0), microbatches))
