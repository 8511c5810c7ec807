"""DualPipeV: the pipeline folded into a V, so that each mesh holds an early and a late stage (DeepSeek-AI, 2025)."""

from collections import deque

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules.schedule import Schedule, Task, build, check_sizes, folded


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
