"""A pipelined step on its way: lowered to a program, and compiled for its meshes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.errors import UsageError
from hlorewrite.ir import Module, parse
from hlorewrite.jaxbridge.frameworks.lost_updates import refuse_foreign_jit, refuse_lost_updates
from hlorewrite.jaxbridge.processes.agreement import Agreement
from hlorewrite.jaxbridge.step.report import RunRecorder
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.target import device_topology
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.adapter.collectives import collectives_of_program
from hlorewrite.pipelines.decorator import host_calls, specs
from hlorewrite.pipelines.decorator.row_arrays import RowArrays, stage_array_results
from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.decorator.state import MeshState, carried_places, note_carried, state_on_meshes, state_table
from hlorewrite.pipelines.mpmd.program import Program, read_program
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.schedules import Schedule
from hlorewrite.rules.listener import Remark
from hlorewrite.util.collector import collector_paused
from hlorewrite.util.sizes import format_bytes
from hlorewrite.util.tables import table

if TYPE_CHECKING:
    from hlorewrite.pipelines.schedules import Schedule
    from hlorewrite.pipelines.simulate import Simulation


@dataclass(frozen=True)
class LoweredStep:
    """An unsplit step, lowered over one mesh.

    Attributes:
      name: the name of the user's function.
      lowering: the lowering of the step; with ``calls``, of a function that returns (its results, what callbacks are
        given).
      dynamic: (positional, named) arguments without the static ones.
      calls: its callbacks; None if it has none.
    """

    name: str
    lowering: jax.stages.Lowered
    dynamic: Callable[[tuple, dict], Any]
    calls: Sequence[host_calls.Item] | None

    @property
    def results(self) -> Any:
        """Shapes of the user's results."""
        info = self.lowering.out_info
        return info if self.calls is None else info[0]

    def carried(self) -> dict[int, int]:
        """The number of the result that takes an argument's place, by the argument's number."""
        return carried_places(self.lowering.args_info, self.results)


class PipelineLowered:
    """A step split and rewritten, before it is compiled.

    Attributes:
      module: the program.
      original: the lowering of the unsplit step, over one mesh.
      settings: the requested settings.
      remarks: what the passes said.
    """

    def __init__(self, module: Module, split: Module, step: LoweredStep, settings: specs.PipelineSettings,
                 recorder: RunRecorder) -> None:
        self.module, self.original, self.settings = module, step.lowering, settings
        self.remarks = tuple(recorder.remarks)
        self._split, self._step = split, step

    def program(self) -> str:
        """The program that will run, as text; on CPU, parts of its fragments may run as separate fragments."""
        return self.module.text()

    as_text = program

    def split_text(self) -> str:
        """The program as ``split-stages`` made it, before the other passes."""
        return self._split.text()

    def original_text(self) -> str:
        """The unsplit step, as ``jax.stages.Lowered.as_text`` prints it."""
        return self.original.as_text()

    def data(self) -> Program:
        """The program as plain data."""
        return read_program(self.module)

    def report(self) -> str:
        """Collectives and transfers with executed bytes, after splitting and after the passes, and what passes said."""
        return report_text(self.module, self.settings.meshes.text, self.remarks, self.state())

    def state(self) -> tuple[MeshState, ...]:
        """Bytes of the step's state on each mesh, before and after a step: parameters and the optimizer's state."""
        return state_on_meshes(self.module, self.data(), self._step.carried())

    def simulate(self, topology: str = "", *, overlap: bool = True, strategy: str = "auto") -> Simulation:
        """The step on a described cluster.

        Args:
          topology: name or file of the cluster; the settings' own by default.
          overlap: whether transfers run concurrently with the computation.
          strategy: the strategy of transfers, as for ``hlorewrite pipeline simulate --transfer``.

        Returns:
          The simulation: ``iteration_time_s``, bubbles, memory, a chart.

        Raises:
          UsageError: no topology is named.
        """
        return simulated(self.module, self.settings.schedule, topology or self.settings.topology, overlap, strategy)

    def compile(self, agreement: Agreement | None = None) -> PipelineCompiled:
        """Compiles every fragment for its mesh.

        Args:
          agreement: the agreement with the other processes, if it was begun before the step was split.
        """
        with collector_paused():
            return PipelineCompiled(self, agreement)


class PipelineCompiled:
    """A compiled pipelined step: takes and returns the pytrees of the user's function.

    Args:
      lowered: the step.
      agreement: the agreement with the other processes; None if it was not begun.
    """

    def __init__(self, lowered: PipelineLowered, agreement: Agreement | None = None) -> None:
        settings = lowered.settings
        self.driver = PipelineDriver(_with_shared_fragments(lowered.module, settings), settings.meshes.by_name(),
                                     settings.schedule, topology=settings.topology, timeout_s=settings.timeout_s,
                                     agreement=agreement)
        self._dynamic = lowered._step.dynamic
        infos = jax.tree.leaves(lowered.original.args_info)
        self._in_kinds = [leaf.dtype for leaf in infos]
        self._donated = [position for position, leaf in enumerate(infos) if leaf.donated]
        self._out_tree = lowered.original.out_tree
        self._out_kinds = [leaf.dtype for leaf in jax.tree.leaves(lowered.original.out_info)]
        self._rows = RowArrays(lowered.module, self.driver)
        self._several = self.driver.watch is not None
        self._calls = None if lowered._step.calls is None else host_calls.calls_here(
            lowered._step.calls, self._rows.owners()[len(jax.tree.leaves(lowered._step.results)):],
            jax.process_index(), min(settings.meshes.processes()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the step."""
        leaves = jax.tree.leaves(self._dynamic(args, kwargs))
        values = [_as_array(leaf, kind) for leaf, kind in zip(leaves, self._in_kinds, strict=True)]
        if self._several:
            values = self._rows.brought(values, self.driver.timeout_s)
        placed = self.driver.place(self._rows.split(values))
        made = self.driver(*placed)
        self._delete_donated(values, placed, made)
        results = jax.tree.unflatten(self._out_tree, [
            _as_key(value, kind) for value, kind in zip(self._rows.join(made), self._out_kinds, strict=True)])
        if self._calls is None:
            return results
        host_calls.run_host_calls(self._calls, results[1])
        return results[0]

    def _delete_donated(self, values: Sequence[Any], placed: Sequence[Any], made: Sequence[Any]) -> None:
        """Deletes the donated arrays, except for those that are returned unchanged."""
        kept = {id(each) for each in made if each is not None}
        for position in self._donated:
            value, own = values[position], [placed[place] for place in self._rows.positions(position)]
            if isinstance(value, jax.Array | StageArray) and not value.is_deleted() and kept.isdisjoint(map(id, own)):
                value.delete()


def _with_shared_fragments(module: Module, settings: specs.PipelineSettings) -> Module:
    """The program that is compiled. If requested, parts that several fragments contain are separate fragments."""
    wanted = settings.meshes.platform == "cpu" if settings.share_fragments is None else settings.share_fragments
    if not wanted:
        return module
    from hlorewrite.pipelines.passes.share_fragments import ShareFragments

    shared = module.clone()
    run_passes(shared, [ShareFragments()], PassContext())
    return shared


def _as_array(leaf: Any, kind: Any) -> Any:
    """What the program takes: keys as their data, Python numbers as arrays."""
    if isinstance(leaf, StageArray):
        return StageArray([_as_array(part, kind) for part in leaf.parts])
    if jnp.issubdtype(kind, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    return leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, kind)


def _as_key(value: Any, kind: Any) -> Any:
    if not jnp.issubdtype(kind, jax.dtypes.prng_key):
        return value
    if isinstance(value, StageArray):
        return StageArray([_as_key(part, kind) for part in value.parts])
    return jax.random.wrap_key_data(value, impl=kind._impl.name)


def lower_step(function: Callable[..., Any], settings: specs.PipelineSettings, options: dict[str, Any], args: tuple,
               kwargs: dict[str, Any], solver_effort: float | None = None) -> PipelineLowered:
    """Traces a step over one mesh, splits it, and runs the passes.

    Args:
      function: the step.
      settings: meshes, schedule, passes.
      options: options of ``jax.jit``.
      args: positional arguments, arrays or shapes.
      kwargs: named ones.
      solver_effort: deterministic seconds that the solver may take for the plans of a pass; None for its own limit.

    Returns:
      The lowered step.

    Raises:
      HlorewriteError: the step cannot be split as asked for, or a pass refuses the program.
    """
    refuse_foreign_jit(function)
    mesh = settings.meshes.traced()
    plain = jax.jit(function, keep_unused=True, **options)
    static = _static(plain)

    def dynamic(given: tuple, named: dict[str, Any]) -> Any:
        return (tuple(arg for position, arg in enumerate(given) if position not in static(len(given))[0]),
                {name: value for name, value in named.items() if name not in static(len(given))[1]})

    positions, names = static(len(args))
    moving, moving_named = dynamic(args, kwargs)
    shaped, shaped_named = specs.argument_shardings(mesh, settings.in_specs, moving, moving_named,
                                                       settings.microbatches)
    rest = iter(shaped)
    full = tuple(arg if position in positions else next(rest) for position, arg in enumerate(args))
    full_named = {name: kwargs[name] if name in names else shaped_named[name] for name in kwargs}
    with jax.sharding.use_abstract_mesh(mesh):
        refuse_lost_updates(plain, full, full_named)
        outputs = plain.eval_shape(*full, **full_named)
        first = plain.trace(*full, **full_named)
        donated = [leaf for leaf, info in zip(jax.tree.leaves((shaped, shaped_named)),
                                              jax.tree.leaves(first.args_info), strict=True) if info.donated]
        chosen = specs.result_shardings(mesh, settings.out_specs, outputs, donated)
        calls: list[host_calls.Item] | None = None
        if host_calls.calls_host(first.jaxpr.jaxpr):
            function, calls = host_calls.without_host_calls(function, first, dynamic)
            chosen = chosen, NamedSharding(mesh, PartitionSpec())
        jitted = jax.jit(function, keep_unused=True, out_shardings=chosen, **options)
        lowered = jitted.trace(*full, **full_named).lower(lowering_platforms=(settings.meshes.platform,))
    with collector_paused():
        step = LoweredStep(getattr(function, "__name__", "step"), lowered, dynamic, calls)
        return _split_and_rewritten(step, settings, (shaped, shaped_named), solver_effort)


def _split_and_rewritten(step: LoweredStep, settings: specs.PipelineSettings, shaped: Any, solver_effort: float | None
                         ) -> PipelineLowered:
    """Runs the passes on a step that was lowered."""
    module = clone_of(private.module_of(step.lowering), step.name)
    note_carried(module, step.carried())
    recorder = RunRecorder()
    cluster = settings.topology or _cluster_of(settings.meshes.all_devices())
    run_passes(module, [_split(settings)], PassContext(listeners=(recorder,), topology=cluster))
    program = read_program(module)
    for said in specs.uncut_microbatches(settings.meshes, shaped, program.iterations):
        recorder.remark(Remark("unprofitable", "pipeline", said, module.name))
    if in_parts := stage_array_results(module, program):
        recorder.remark(Remark("applied", "pipeline", f"{len(in_parts)} results are a hlorewrite.StageArray each: the "
                               "rows of their stages are not the shards of one jax.Array", module.name))
    split = module.clone()
    run_passes(module, settings.passes,
               PassContext(listeners=(recorder,), topology=cluster, solver_effort=solver_effort))
    return PipelineLowered(module, split, step, settings, recorder)


def _cluster_of(devices: Sequence[Any]) -> str:
    """The cluster that devices are; empty if it is not known."""
    found = device_topology(devices)
    return found.spec if found is not None else ""


def _static(jitted: Any) -> Callable[[int], tuple[frozenset[int], tuple[str, ...]]]:
    options: Any = private.jit_options(jitted)

    @functools.cache
    def of(count: int) -> tuple[frozenset[int], tuple[str, ...]]:
        return (frozenset(number % count for number in options.static_argnums if -count <= number < count),
                tuple(options.static_argnames))

    return of


def _split(settings: specs.PipelineSettings) -> Any:
    from hlorewrite.pipelines.passes.split_stages import SplitStages

    schedule, named = settings.schedule, isinstance(settings.schedule, str)
    return SplitStages.from_options({
        "meshes": settings.meshes.text, "schedule": schedule if isinstance(schedule, str) else "custom",
        "microbatches": str(settings.microbatches or 0), "shared": settings.shared, "topology": settings.topology,
        **({"stages": settings.stages} if isinstance(settings.stages, str) else {
            "cuts": ",".join(map(str, settings.stages))}),
        **({} if named or not isinstance(schedule, Schedule) else {
            "mesh-of": ",".join(map(str, schedule.mesh_of)),
            "split-backward": str(any(task.kind in "IW" for order in schedule.orders for task in order)).lower()})})


# ---- what splitting and passes did to a pipelined step, and what it would take on a cluster


def report_text(module: Module, meshes: str, remarks: Sequence[Remark], state: Sequence[MeshState] = ()) -> str:
    """Tables of collectives and transfers in one step, and of its state, and what the passes said.

    Args:
      module: the program, after the passes.
      meshes: the shapes of its meshes.
      remarks: what the passes said.
      state: bytes of the state on each mesh.

    Returns:
      Lines of text.
    """
    program = read_program(module)
    head = (f"{program.stages} stages on {len(program.meshes)} meshes ({meshes}), "
            f"{program.iterations} micro-batches, schedule {program.schedule or 'custom'}")
    collectives = collectives_of_program(parse(module.text(), name=program.name))[1]
    rows = [("in one step", "executed", "bytes")]
    for kind in sorted({each.kind for each in collectives}):
        own = [each for each in collectives if each.kind == kind]
        size = sum(each.executed_bytes for each in own)
        rows.append((kind, str(sum(each.trips for each in own)), format_bytes(size, 1)))
    lines = [head, *(table(rows, "<>>") if len(rows) > 1 else ["no collective and no transfer"])]
    return "\n".join([*lines, *state_table(state), *map(str, remarks)])


def simulated(module: Module, wanted: str | Schedule, topology: str, overlap: bool, strategy: str) -> Simulation:
    """The step simulated on a cluster.

    Raises:
      UsageError: no cluster is named.
    """
    if not topology:
        raise UsageError("without a topology, the time of the step is unknown",
                         hint='name a cluster: simulate("h200")')
    from hlorewrite.pipelines.simulate.program_times import simulate_module
    return simulate_module(module, wanted, topology, overlap=overlap, strategy=strategy)
