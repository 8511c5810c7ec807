"""Seconds of a program's fragments by the cost model: their computation and the collectives inside them."""

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.cost import CollectiveModel, Topology, collective_model
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.cost.report.stablehlo import executed_of
from hlorewrite.ir import COLLECTIVES, REDUCING, Editor, Module, inline_calls, ir, tensor_bytes
from hlorewrite.ir.view import View, nested_ops, terminator, users
from hlorewrite.ops.table import SLICES
from hlorewrite.pipelines.mpmd.mesh_view import body_of, local_mesh
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program
from hlorewrite.pipelines.simulate.program import FragmentTime

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
