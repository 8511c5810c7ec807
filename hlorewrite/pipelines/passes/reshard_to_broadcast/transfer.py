"""Plans of transfers between the meshes of an ``mpmd`` program, and how they are stored in the program.

A transfer keeps its op, operand and type, so code that ignores plans computes the same. Next to them it gets the
attribute ``hlorewrite.reshard``, a dictionary:

* ``strategy``, ``order``: as ``plan_reshard`` chose them;
* ``tasks``: in the order of their start, ``{slice = [start, stop, ...], sender, receivers, chunks}`` by device number;
  receivers are in the order of the chain;
* ``digest``: SHA-256 of the plan, so that processes can make sure that they follow the same one.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.errors import HlorewriteError, InputError
from hlorewrite.ir import View, ancestors, element_bytes, ir
from hlorewrite.pipelines.mpmd.types import MeshTensor, mesh_tensor, meshes_in_topology
from hlorewrite.pipelines.reshard import Layout, ReshardPlan, SolverBudget, network_of, plan_reshard, sharded
from hlorewrite.pipelines.reshard.layout import ReshardMesh

PLAN = "hlorewrite.reshard"
MOST_TASKS = 4096


@dataclass(frozen=True)
class PlannedTransfer:
    """A transfer that is worth a plan.

    Attributes:
      plan: what is sent by whom, and when.
      element_type: the element type of the tensor, as MLIR writes it; what ``hlorewrite.pipelines.reshard.lower.lower``
        asks for.
      direct_s: seconds to send every device its own copies.
      cluster: the cluster of the times, as messages name it.
    """

    plan: ReshardPlan
    element_type: str
    direct_s: float
    cluster: str


def plan_transfer(op: ir.Operation, view: View, topology: str = "", strategy: str = "auto",
                  order: str = "optimal", budget: SolverBudget | None = None) -> PlannedTransfer | str | None:
    """Plans one transfer.

    Args:
      op: an ``mpmd.transfer``.
      view: its module.
      topology: the cluster; empty means servers of eight H100s. Device d is GPU d of it.
      strategy: as for ``plan_reshard``.
      order: as for ``plan_reshard``.
      budget: as for ``plan_reshard``.

    Returns:
      The plan; a sentence when there cannot be one; None when every device gets its tile from its counterpart.

    Raises:
      UsageError: the topology is unknown or too small.
      InputError: the program's topology cannot be read.
    """
    program = next((outer for outer in ancestors(op) if "topology" in outer.attributes), None)
    if program is None:
        return "the function around it has no topology"
    meshes = meshes_of_topology(program.attributes["topology"], view.source(op))
    try:
        source, target = (layout_of_type(value.type, meshes) for value in (op.operands[0], op.results[0]))
    except HlorewriteError as error:
        return error.what
    if isinstance(source, str) or isinstance(target, str):
        return source if isinstance(source, str) else str(target)
    if same_places(source[1], target[1], meshes[source[0]], meshes[target[0]]):
        return None
    itemsize = element_bytes(source[2])
    if itemsize != int(itemsize):
        return f"elements of type {source[2]} share bytes"
    if not all(source[1].shape):
        return "it moves nothing"
    return _planned(source[1], target[1], int(itemsize), str(source[2]), meshes=meshes, topology=topology,
                    strategy=strategy, order=order, budget=budget or SolverBudget())


def _planned(source: Layout, target: Layout, itemsize: int, element: str, *, meshes: dict[str, ReshardMesh],
             topology: str, strategy: str, order: str, budget: SolverBudget) -> PlannedTransfer | str:
    devices = max(int(mesh.devices.max()) for mesh in meshes.values()) + 1
    times = CollectiveTimes(topology, devices)
    cluster = times.topology
    involved = np.union1d(source.devices, target.devices).tolist()
    network = network_of(cluster, {int(device): cluster.host_of(int(device)) for device in involved})
    plan = plan_reshard(source, target, itemsize, network, strategy=strategy, order=order, budget=budget)
    if len(plan.rows) > MOST_TASKS:
        return f"its plan has {len(plan.rows)} tasks, more than the {MOST_TASKS} that a program should contain"
    direct = plan_reshard(source, target, itemsize, network, strategy="send-recv", order="naive")
    return PlannedTransfer(plan, element, direct.makespan_s, times.cluster)


def same_places(source: Layout, target: Layout, have: ReshardMesh, want: ReshardMesh) -> bool:
    """Whether both meshes hold the same tiles at the same places, so that there is nothing to multicast."""
    if have.devices.shape != want.devices.shape or source.grid != target.grid:
        return False
    if any(not np.array_equal(a, b) for a, b in zip(source.cuts, target.cuts, strict=True)):
        return False
    before, after = source.tile_of_device(), target.tile_of_device()
    return all(before[int(a)] == after[int(b)] for a, b in zip(have.devices, want.devices, strict=True))


def plan_attribute(plan: ReshardPlan, context: ir.Context) -> ir.Attribute:
    """A plan as the attribute a transfer carries.

    Args:
      plan: the plan.
      context: the MLIR context of the program.

    Returns:
      A dictionary attribute.
    """
    with context:
        tasks = []
        for task in plan.task_dicts():
            box = list(itertools.chain.from_iterable(task["slice"]))
            tasks.append(ir.DictAttr.get({
                "slice": ir.DenseI64ArrayAttr.get([int(bound) for bound in box]),
                "sender": _integer(task["sender"]), "chunks": _integer(task["chunks"]),
                "receivers": ir.DenseI64ArrayAttr.get([int(device) for device in task["receivers"]])}))
        return ir.DictAttr.get({"strategy": ir.StringAttr.get(plan.strategy), "order": ir.StringAttr.get(plan.order),
                                "digest": ir.StringAttr.get(plan.digest), "tasks": ir.ArrayAttr.get(tasks)})


def _integer(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(number))


# ---- layouts of mesh tensors of the ``mpmd`` dialect, as the planner of transfers asks for them


def meshes_of_topology(topology: ir.Attribute, where: str) -> dict[str, ReshardMesh]:
    """The meshes of a program by name, devices numbered mesh by mesh.

    Args:
      topology: the ``topology`` attribute of the program's function.
      where: what errors name.

    Returns:
      Meshes by name.

    Raises:
      InputError: the text contains no mesh.
    """
    return {name: ReshardMesh(mesh.axes, np.array(mesh.device_ids))
            for name, mesh in meshes_in_topology(topology, where).items()}


def layout_of_type(type_: ir.Type, meshes: dict[str, ReshardMesh]) -> tuple[str, Layout, ir.Type] | str:
    """Where the tiles of a mesh tensor are.

    Args:
      type_: an ``!mpmd.mesh_tensor`` type.
      meshes: the meshes of the program.

    Returns:
      (mesh name, layout, element type); or why it is not known.
    """
    try:
        tensor = mesh_tensor(type_)
    except InputError:
        return "its shape is not static"
    if tensor.mesh not in meshes:
        return "its type names no mesh of the program"
    if tensor.unreduced:
        return "it holds parts of an unreduced sum"
    return tensor.mesh, layout_of(tensor, meshes), ir.Type.parse(tensor.element, context=type_.context)


def layout_of(tensor: MeshTensor, meshes: dict[str, ReshardMesh]) -> Layout:
    """Where the tiles of a value are.

    Args:
      tensor: its type; it names a mesh and holds no parts of a sum.
      meshes: the meshes of the program.

    Returns:
      The layout.
    """
    return sharded(tensor.shape, meshes[tensor.mesh], tensor.spec)
