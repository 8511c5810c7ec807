"""Zero-bubble schedules: the weight gradients, which nothing waits for, fill the gaps (Qi et al., ICLR 2024)."""

from collections.abc import Iterator

from hlorewrite.pipelines.schedules.schedule import Schedule, Task, build, check_sizes


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
                 (_split(stage, microbatches, meshes - stage, stage) for stage in range(meshes)))


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
                 (_split(stage, microbatches, 2 * (meshes - stage) - 1, 2 * stage) for stage in range(meshes)))


def _split(stage: int, microbatches: int, ahead: int, late: int) -> Iterator[Task]:
    """``ahead`` forwards; then input gradient k, weight gradient k - ``late`` and a forward in turn."""
    forwards = min(ahead, microbatches)
    yield from (Task("F", stage, k) for k in range(forwards))
    for k in range(microbatches):
        yield Task("I", stage, k)
        if k >= late:
            yield Task("W", stage, k - late)
        if forwards < microbatches:
            yield Task("F", stage, forwards)
            forwards += 1
    yield from (Task("W", stage, k) for k in range(max(microbatches - late, 0), microbatches))
