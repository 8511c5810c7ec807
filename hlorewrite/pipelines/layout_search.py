"""A search over pipelines of a step: meshes, schedules, micro-batches, each with the stages that suit it best."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hlorewrite.cost import topology as find_topology
from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.ir import Module, View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.pipelines.passes.split_stages import SplitStages
from hlorewrite.pipelines.passes.split_stages.meshes import mesh_axes, parse_shapes, stages_of
from hlorewrite.pipelines.simulate.program_times import simulate_module

SEARCHED = ("1f1b", "eager-1f1b", "zb-h1", "gpipe", "interleaved-1f1b")
"""Schedules that are tried if none is named."""
MOST_MESHES = 16
"""The most meshes that are tried if none are named."""

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PipelinePoint:
    """One pipeline that was tried.

    Attributes:
      step: name of the step.
      microbatches: m; 0 if the step could not be read.
      meshes: shapes of the meshes.
      schedule: name of the schedule.
      cuts: after how many ops of the forward each stage but the first begins.
      step_s: simulated seconds of a step; None if it failed.
      memory_bytes: the most that a device holds.
      failed: why there is no time, one line.
    """

    step: str
    microbatches: int
    meshes: Shapes
    schedule: str
    cuts: tuple[int, ...] = ()
    step_s: float | None = None
    memory_bytes: float = 0.0
    failed: str = ""

    @property
    def meshes_text(self) -> str:
        """The meshes as the pass ``split-stages`` takes them.

        Example:
          >>> PipelinePoint("step", 8, ((4, 1), (2, 1)), "1f1b").meshes_text
          '(4x1),(2x1)'
        """
        return ",".join(f"({'x'.join(map(str, shape))})" for shape in self.meshes)

    def python(self, target: str) -> str:
        """The line of Python that makes this pipeline.

        Example:
          >>> PipelinePoint("step", 8, ((4,), (4,)), "1f1b", (17,)).python("h200:1x8")[:40]
          'hlorewrite.pipeline(step, meshes=[(4,)] '
        """
        equal = len(set(self.meshes)) == 1
        meshes = f"[{self.meshes[0]}] * {len(self.meshes)}" if equal else repr(list(self.meshes))
        return (f'hlorewrite.pipeline(step, meshes={meshes}, schedule="{self.schedule}", '
                f'microbatches={self.microbatches}, stages={self.cuts}, topology="{target}")')


@dataclass(frozen=True)
class PipelineSearch:
    """What is searched over.

    Attributes:
      target: the cluster with its size, such as ``h200:4x8``.
      meshes: shapes of the meshes; empty: equal meshes of all its devices, in all numbers and shapes.
      schedules: names of schedules.
      prepare: rewrites a split program before it is simulated, as ``hlorewrite.pipeline`` does.
      over: whether to stop before the next pipeline.
      begin: called with the pipeline that is tried next.
    """

    target: str
    meshes: Shapes
    schedules: Sequence[str]
    prepare: Callable[[Module], None]
    over: Callable[[], bool]
    begin: Callable[[str], None]

    def run(self, steps: Sequence[Module]) -> list[PipelinePoint]:
        """Tries all pipelines.

        Args:
          steps: the step without marks, once for each number of micro-batches.

        Returns:
          The tried layouts, fastest first, then those that failed.

        Raises:
          UsageError: the target is not known, has no size, or the meshes do not fit it.
        """
        cluster = find_topology(self.target)
        needed = sum(map(math.prod, self.meshes))
        if needed > cluster.gpus:
            raise UsageError(f"the meshes need {needed} devices, but {self.target} has {cluster.gpus}",
                             hint="use smaller meshes, or a larger --target")
        points = []
        for step in steps:
            axes = max(1, len(mesh_axes(View(step))))
            for meshes in [self.meshes] if self.meshes else equal_meshes(cluster.gpus, axes):
                points += self.of_meshes(step, meshes, cluster.memory_bytes)
        return sorted(points, key=lambda point: (point.step_s is None, point.step_s or 0.0))

    def of_meshes(self, step: Module, meshes: Shapes, memory_bytes: float) -> Iterator[PipelinePoint]:
        """All schedules on some meshes; those with equally many stages share their cuts."""
        cuts: dict[int, tuple[int, ...]] = {}
        for schedule in self.schedules:
            if self.over():
                return
            point = PipelinePoint(step.name, 0, meshes, schedule)
            self.begin(f"{schedule} on {point.meshes_text}")
            try:
                stages = stages_of(schedule, len(meshes))
                split = SplitStages(meshes=point.meshes_text, schedule=schedule, topology=self.target)
                if stages not in cuts:
                    cuts[stages] = split.with_cuts(step, PassContext()).cuts
                yield self.measured(step, replace(split, cuts=cuts[stages]), point, memory_bytes)
            except HlorewriteError as error:
                yield replace(point, failed=str(error))

    def measured(self, step: Module, split: SplitStages, point: PipelinePoint, memory_bytes: float) -> PipelinePoint:
        """A pipeline with its simulated time and memory."""
        program = step.clone()
        split.run(program, PassContext())
        self.prepare(program)
        simulation = simulate_module(program, split.schedule, self.target)
        peak = max(simulation.peak_bytes)
        if peak > memory_bytes:
            raise PlanError(f"a device would hold {peak / 2**30:.1f} GiB of {memory_bytes / 2**30:.1f}",
                            location=step.name)
        return replace(point, microbatches=simulation.schedule.microbatches, cuts=split.cuts,
                       step_s=simulation.iteration_time_s, memory_bytes=peak)


def equal_meshes(devices: int, axes: int) -> list[Shapes]:
    """Equal meshes of all devices of a cluster.

    Args:
      devices: how many there are.
      axes: the axes of the step's mesh.

    Returns:
      Two meshes and more, of each number all shapes.

    Example:
      >>> equal_meshes(4, 1)
      [((2,), (2,)), ((1,), (1,), (1,), (1,))]
    """
    return [(shape,) * count for count in range(2, min(devices, MOST_MESHES) + 1) if devices % count == 0
            for shape in _shapes(devices // count, axes)]


def _shapes(size: int, axes: int) -> list[tuple[int, ...]]:
    if axes == 1:
        return [(size,)]
    return [(first, *rest) for first in range(size, 0, -1) if size % first == 0
            for rest in _shapes(size // first, axes - 1)]


def pipeline_frontier(points: Sequence[PipelinePoint]) -> list[PipelinePoint]:
    """The pipelines that no other one beats in time and memory, the fastest first."""
    best: list[PipelinePoint] = []
    for point in sorted((each for each in points if each.step_s is not None),
                        key=lambda each: (each.step_s or 0.0, each.memory_bytes)):
        if not best or point.memory_bytes < best[-1].memory_bytes:
            best.append(point)
    return best


def read_meshes(text: str | None) -> Shapes:
    """The shapes of ``--meshes``; none for no text."""
    return parse_shapes(text, "--meshes") if text else ()
