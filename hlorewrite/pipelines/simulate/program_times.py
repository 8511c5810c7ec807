"""Seconds of a program's fragments and transfers by the cost model, and its simulation with these alone."""

import math
from collections.abc import Mapping

import numpy as np

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.cost import CollectiveModel, Topology, collective_model
from hlorewrite.cost import topology as find_topology
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.cost.report.collectives import executed_of
from hlorewrite.errors import PlanError, UsageError, did_you_mean
from hlorewrite.ir import COLLECTIVES, REDUCING, Editor, Module, inline_calls, ir, tensor_bytes
from hlorewrite.ir.view import View, nested_ops, terminator, users
from hlorewrite.ops.table import SLICES
from hlorewrite.pipelines.actions.fit import schedule_for
from hlorewrite.pipelines.mpmd.mesh_view import body_of, local_mesh
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, Transfer, read_program
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.pipelines.reshard import Layout, Network, SolverBudget, network_of, plan_reshard, sharded
from hlorewrite.pipelines.reshard.layout import ReshardMesh
from hlorewrite.pipelines.schedules import Schedule
from hlorewrite.pipelines.simulate.describe import TRANSFERS
from hlorewrite.pipelines.simulate.program import FragmentTime, ProgramCost, simulate_program
from hlorewrite.pipelines.simulate.simulation import Simulation

# ---- fragments: their computation and the collectives inside them


_ENDS = ("func.return", "sdy.return")


def fragment_times(module: Module, program: Program, topology: Topology,
                   times: CollectiveModel | None = None) -> dict[str, FragmentTime]:
    """Seconds of each fragment of a program.

    Args:
      module: the program's module; it is not changed.
      program: the program; its device d is GPU d of the topology.
      topology: the cluster.
      times: a model of collective times, in place of the topology's.

    Returns:
      Times by the fragment's name: its kernels, but at least the time to move what it reads and writes through memory
      (an optimizer's step has no other kernel). One whose collectives XLA has yet to insert counts its
      computation as spread evenly over its mesh, and no collectives.
    """
    copy = module.clone()
    view = View(copy)
    inline_calls(Editor(view))
    clock = KernelClock(view, topology)
    model = times or collective_model(topology)
    meshes = {step.callee: step.mesh for step in program.steps if isinstance(step, FragmentCall)}
    by_callee = {}
    for callee, name in meshes.items():
        function, mesh = view.functions[callee], program.meshes[name]
        whole = body_of(function, local_mesh(view, name, mesh.axes)) is None
        body = body_of(function, local_mesh(view, name, mesh.axes)) or function.regions[0].blocks[0]
        seconds = max(clock.function_seconds(callee), _moved_bytes(body) / clock.memory_bytes_per_s) / (
            mesh.size if whole else 1)
        by_callee[callee] = FragmentTime(seconds, _collectives(function, view, mesh, model))
    return by_callee


def _moved_bytes(body: ir.Block) -> float:
    """Bytes a fragment reads and writes at least: arguments, of those that are only sliced the slices, and results."""
    total = 0.0
    for argument in body.arguments:
        readers = users(argument)
        if readers and all(op.name in SLICES and position == 0 for op, position in readers):
            total += sum(tensor_bytes(op.results[0].type) for op, _ in readers)
        elif any(op.name not in _ENDS for op, _ in readers):
            total += tensor_bytes(argument.type)
    made = [value for value in terminator(body).operands if not isinstance(value, ir.BlockArgument)]
    return total + sum(tensor_bytes(value.type) for value in dict.fromkeys(made))


def _collectives(function: ir.Operation, view: View, mesh: Mesh, model: CollectiveModel) -> float:
    seconds = 0.0
    for op in nested_ops(function):
        what = executed_of(op, view) if op.name in COLLECTIVES else ""
        if isinstance(what, str):
            continue
        groups = [[mesh.device_ids[device] for device in group] for group in what.groups]
        seconds += what.trips * model.collective_time(what.kind, what.payload_bytes, groups)
    return seconds


def reductions_in_loop(module: Module, program: Program) -> int:
    """How many all-reduces and reduce-scatters one micro-batch runs.

    Args:
      module: the program's module.
      program: the program.
    """
    view = View(module)
    count = 0
    for step in program.body:
        if isinstance(step, FragmentCall):
            count += sum(op.name in REDUCING
                         for op in nested_ops(view.functions[step.callee]))
    return count


# ---- transfers, by the plans that resharding makes for them


def sized_for(program: Program, topology: Topology, spec: str) -> Topology:
    """The topology with as many hosts as a program needs.

    Args:
      program: the program; its device d is GPU d.
      topology: the cluster.
      spec: the name of the topology; with a size after a colon, that size is kept.

    Returns:
      The topology.

    Raises:
      UsageError: it was named with a size, and is too small.
    """
    needed = 1 + max(device for mesh in program.meshes.values() for device in mesh.device_ids)
    if ":" in spec:
        if topology.gpus < needed:
            raise UsageError(f"the meshes need {needed} GPUs, but {topology.spec} has {topology.gpus}",
                             hint=f"pass {topology.name} alone for as many hosts as needed")
        return topology
    return topology.sized(-(-needed // topology.gpus_per_host), topology.gpus_per_host)


def cards_of(program: Program, topology: Topology) -> dict[str, frozenset[tuple[int, int]]]:
    """The network cards of each mesh's devices.

    Args:
      program: the program; its device d is GPU d.
      topology: the cluster.

    Returns:
      (host, card) of each mesh's devices, by the mesh's name.
    """
    return {name: frozenset((topology.host_of(device), topology.nic_of(device)) for device in mesh.device_ids)
            for name, mesh in program.meshes.items()}


def transfer_seconds(program: Program, topology: Topology, strategy: str = "auto",
                     known: dict[tuple[str, str], float] | None = None) -> dict[int, float]:
    """Seconds of each transfer.

    Args:
      program: the program.
      topology: the cluster; device d of the program is GPU d of it.
      strategy: one of ``describe.TRANSFERS``.
      known: seconds by the types of both sides, for several programs with the same meshes; what is missing is added.

    Returns:
      Seconds by position in ``Program.steps``.

    Raises:
      UsageError: no transfer has this name.
      PlanError: a value holds parts of a sum in a way that no plan can be made for.
    """
    if strategy not in TRANSFERS:
        raise UsageError(f'there is no transfer "{strategy}"', hint=did_you_mean(strategy, TRANSFERS))
    meshes = {name: ReshardMesh(mesh.axes, np.array(mesh.device_ids)) for name, mesh in program.meshes.items()}
    used = sorted({device for mesh in program.meshes.values() for device in mesh.device_ids})
    network = network_of(topology, {device: device // topology.gpus_per_host for device in used})
    known = {} if known is None else known
    seconds, budget = {}, SolverBudget()
    for position, step in enumerate(program.steps):
        if isinstance(step, Transfer):
            sides = (program.types[step.operand], program.types[step.result])
            key = (sides[0].text, sides[1].text)
            if key not in known:
                known[key] = _seconds(sides, meshes, network, strategy, program.name, budget)
            seconds[position] = known[key]
    return seconds


def _seconds(sides: tuple[MeshTensor, MeshTensor], meshes: Mapping[str, ReshardMesh], network: Network, strategy: str,
             where: str, budget: SolverBudget) -> float:
    source, target = sides
    if source.unreduced or target.unreduced:
        raise PlanError(f"a value of type {source.text} is sent as an unreduced sum", location=where,
                        hint="reduce it before it is sent")
    if (source.mesh == target.mesh and source.spec == target.spec) or not source.bytes:
        return 0.0
    count = math.prod(source.shape)
    itemsize = max(1, source.bytes // count)
    shape = source.shape
    if strategy == "signal":  # one byte for each tile
        tiles = [_tiles(kind, meshes) for kind in sides]
        shape, itemsize = tuple(math.lcm(a, b) for a, b in zip(*tiles, strict=True)), 1
    layouts: list[Layout] = [sharded(shape, meshes[kind.mesh], kind.spec) for kind in sides]
    return plan_reshard(layouts[0], layouts[1], itemsize, network,
                        strategy="auto" if strategy == "signal" else strategy, budget=budget).makespan_s


def _tiles(type_: MeshTensor, meshes: Mapping[str, ReshardMesh]) -> list[int]:
    return list(sharded(type_.shape, meshes[type_.mesh], type_.spec).grid)


# ---- a program of several meshes simulated with the cost model's times alone


def simulate_module(module: Module, wanted: Schedule | str, topology: str, *, overlap: bool = True,
                    strategy: str = "auto", known: dict[tuple[str, str], float] | None = None) -> Simulation:
    """One step of a program on a described cluster.

    Args:
      module: the program; a loop over micro-batches is in it.
      wanted: its schedule.
      topology: the cluster, such as ``h200`` (as many hosts as needed) or ``h200:4x8``.
      overlap: whether transfers run concurrently with the computation.
      strategy: the strategy of transfers.
      known: seconds of transfers, for several programs with the same meshes; what is missing is added.

    Returns:
      The simulation.

    Raises:
      UsageError: the cluster is not known, or too small.
      PlanError: the schedule does not fit the program.
    """
    program = read_program(module)
    schedule = schedule_for(program, wanted)
    assert schedule is not None
    cluster = sized_for(program, find_topology(topology), topology)
    cost = ProgramCost(fragment_times(module, program, cluster),
                       transfer_seconds(program, cluster, strategy, known),
                       cards_of(program, cluster))
    return simulate_program(program, schedule, cost, overlap=overlap,
                            comm_shift=not reductions_in_loop(module, program))
