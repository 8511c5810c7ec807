"""Published schedules: GPipe, 1F1B, eager-1F1B, zero-bubble, interleaved 1F1B and DualPipeV."""

from collections import deque
from collections.abc import Iterator

from hlorewrite.errors import PlanError, UsageError
from hlorewrite.pipelines.schedules.schedule import Schedule, Task, build, check_sizes, folded, looped

# ---- schedules with one stage per mesh: GPipe, 1F1B, eager-1F1B, and zero-bubble schedules

# Zero-bubble schedules split the backward pass: the weight gradients, which nothing waits for, fill the gaps (Qi et
# al., ICLR 2024).


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


# ---- interleaved 1F1B: v chunks of the model on each mesh divide the bubble by v


def interleaved_1f1b(meshes: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Interleaved 1F1B (Narayanan et al., SC 2021, section 2.2).

    Micro-batches go in groups of n through chunk 0, 1, ... of each mesh, and back in reverse. Mesh i runs
    2(n-i-1) + (v-1)n warm-up forwards, then one forward, one backward.

    Args:
      meshes: n, number of meshes; stage s runs on mesh s mod n.
      microbatches: m, a multiple of n.
      chunks: v, stages of each mesh.

    Returns:
      The schedule.

    Raises:
      UsageError: a number is below one.
      PlanError: n does not divide m.

    Example:
      >>> print(interleaved_1f1b(2, 2, 2).text())
      F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1
      F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1
    """
    if chunks < 1:
        raise UsageError(f"{chunks} chunks on each mesh", hint="use at least one chunk")
    check_sizes(meshes * chunks, microbatches)
    if microbatches % meshes:
        below = microbatches // meshes * meshes
        close = f"{below} or {below + meshes}" if below else f"{meshes}"
        raise PlanError(f"{microbatches} micro-batches do not fit interleaving over {meshes} stages: stage 0 would "
                        f"start micro-batch {below} without the others of its group of {meshes}",
                        hint=f"use {close} micro-batches")
    return build("interleaved-1f1b", microbatches, looped(meshes, chunks),
                 (_order(mesh, meshes, microbatches, chunks) for mesh in range(meshes)))


def _order(mesh: int, meshes: int, microbatches: int, chunks: int) -> list[Task]:
    total = microbatches * chunks

    def task(kind: str, k: int) -> Task:
        """The k-th forward or backward of this mesh."""
        group, rest = divmod(k, meshes * chunks)
        chunk = rest // meshes if kind == "F" else chunks - 1 - rest // meshes
        return Task(kind, chunk * meshes + mesh, group * meshes + rest % meshes)

    warm_up = min(total, 2 * (meshes - mesh - 1) + (chunks - 1) * meshes)
    tasks = [task("F", k) for k in range(warm_up)]
    for k in range(total - warm_up):
        tasks += [task("F", warm_up + k), task("B", k)]
    return tasks + [task("B", k) for k in range(total - warm_up, total)]


# ---- DualPipeV: the pipeline folded into a V, so that each mesh holds an early and a late stage (DeepSeek-AI, 2025)


def dualpipe_v(meshes: int, microbatches: int) -> Schedule:
    """DualPipeV: a forward of one half and a backward of the other in turn, weight gradients in the gaps.

    Mesh i holds stages i and 2n-1-i. The schedule pairs a forward with a backward, for kernels that overlap the one's
    communication with the other's compute; here the two follow each other.

    Args:
      meshes: n, number of meshes; the model has 2n stages.
      microbatches: m, at least 2n.

    Returns:
      The schedule.

    Raises:
      PlanError: there are fewer than 2n micro-batches.

    Example:
      >>> print(dualpipe_v(1, 2).text())
      F0 F0.1 F1 B0.1 F1.1 B0 B1.1 I1 W1
    """
    check_sizes(meshes, microbatches)
    if microbatches < 2 * meshes:
        raise PlanError(f"DualPipeV over {meshes} stages needs {2 * meshes} micro-batches, not {microbatches}: "
                        "stage 0 would run out of forwards before its first backward",
                        hint=f"use at least {2 * meshes}")
    return build("dualpipe-v", microbatches, folded(meshes),
                 (_Mesh(mesh, meshes, microbatches).order() for mesh in range(meshes)))


class _Mesh:
    """Writes the order of one mesh, counting the micro-batches of each half."""

    def __init__(self, mesh: int, meshes: int, microbatches: int) -> None:
        self.mesh, self.meshes, self.microbatches = mesh, meshes, microbatches
        self.stage = (mesh, 2 * meshes - 1 - mesh)
        self.forwards, self.backwards = [0, 0], [0, 0]
        self.late: deque[Task] = deque()
        self.tasks: list[Task] = []

    def forward(self, half: int) -> None:
        """The next forward pass of a half."""
        self.tasks.append(Task("F", self.stage[half], self.forwards[half]))
        self.forwards[half] += 1

    def backward(self, half: int, split: bool = False) -> None:
        """The next backward pass of a half; if it is split, its weight gradient waits."""
        task = Task("I" if split else "B", self.stage[half], self.backwards[half])
        self.tasks.append(task)
        self.backwards[half] += 1
        if split:
            self.late.append(task._replace(kind="W"))

    def weights(self) -> None:
        """The weight gradient that has waited longest."""
        self.tasks.append(self.late.popleft())

    def order(self) -> list[Task]:
        """Fill, steady state and drain: mesh i of n is n-i-1 meshes from the turn and i+1 from the ends."""
        turn, ends = self.meshes - self.mesh - 1, self.mesh + 1
        for _ in range(2 * turn):
            self.forward(0)
        for _ in range(ends):
            self.forward(0)
            self.forward(1)
        for _ in range(turn):
            self.backward(1, split=True)
            self.weights()
            self.forward(1)
        for _ in range(self.microbatches - 2 * self.meshes + ends):
            self.forward(0)
            self.backward(1)
            self.forward(1)
            self.backward(0)
        for _ in range(turn):
            self.backward(1)
            self.forward(1)
            self.backward(0)
        # The second half of the remaining pairs leaves its weight gradients for the drain.
        for k in range(ends):
            self.backward(1, split=2 * k >= ends)
            self.backward(0, split=2 * k + 1 >= ends)
        for _ in range(turn):
            self.weights()
            self.backward(0, split=True)
        # Ends: each round takes one of the late tasks.
        while self.late:
            self.weights()
        return self.tasks
