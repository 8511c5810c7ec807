"""The step of a module: its manual computation, the mesh axis to shard over, and its arguments and results."""

from dataclasses import dataclass

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.mesh import Mesh, fully_manual, mesh_of, varying_axes
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.errors import InputError
from hlorewrite.ir import ALL_REDUCE, View, ir, is_private, is_static_tensor, sdy, terminator, users
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.common.shard_index import partition_groups

Rows = tuple[tuple[int, ...], ...]
_EXPOSE = "run expose-collectives first"


@dataclass(frozen=True)
class ManualStep:
    """A manual computation that is the body of a step, and one axis of its mesh.

    Attributes:
      view: the module.
      op: the manual computation.
      mesh: its mesh.
      axis: the name of the axis.
      uniformity: which values are equal on all devices along the axis.
    """

    view: View
    op: ir.Operation
    mesh: Mesh
    axis: str
    uniformity: Uniformity

    @property
    def shards(self) -> int:
        """The number of devices along the axis."""
        return dict(self.mesh.axes)[self.axis]

    @property
    def block(self) -> ir.Block:
        """The block that each device executes."""
        return self.op.regions[0].blocks[0]

    @property
    def function(self) -> ir.Operation:
        """The function of the step."""
        parent = self.op.parent
        assert parent is not None
        return parent.operation

    @property
    def scatter_rows(self) -> Rows:
        """The groups along the axis, their members in the order of the shards."""
        return along(self.mesh, (self.axis,))

    def sharding(self, side: str, position: int) -> sdy.TensorShardingAttr:
        """The sharding of an argument (``in_shardings``) or a result (``out_shardings``) of the manual computation."""
        rows = list(sdy.TensorShardingPerValueAttr(self.op.attributes[side]).shardings)
        return sdy.TensorShardingAttr(rows[position])

    def may_shard_argument(self, position: int) -> bool:
        """Whether an argument of the step enters the manual computation whole and has no other use."""
        value = self.op.operands[position]
        if not isinstance(value.owner, ir.Block) or value.owner.owner.operation != self.function:
            return False
        return len(users(value)) == 1 and self._replicated("in_shardings", position)

    def may_shard_result(self, position: int) -> bool:
        """Whether a result leaves the manual computation whole, and its only use is a result of the step."""
        readers = users(self.op.results[position])
        return len(readers) == 1 and readers[0][0].name == "func.return" and self._replicated("out_shardings", position)

    def result_of_step(self, position: int) -> int:
        """The result of the function that a result of the manual computation is."""
        return users(self.op.results[position])[0][1]

    def argument_of_step(self, position: int) -> int:
        """The argument of the function that an argument of the manual computation is."""
        return ir.BlockArgument(self.op.operands[position]).arg_number

    def reduced_axes(self, op: ir.Operation) -> tuple[str, ...] | str:
        """The mesh axes that an all-reduce adds over, including the step's axis; none if it adds over other axes.

        Args:
          op: an all-reduce in the manual computation.

        Returns:
          The axes, or why they cannot be named.
        """
        if len(op.operands) != 1 or not is_static_tensor(op.operands[0].type):
            return "it reduces several tensors at once"
        if reduction_kind(op) != "sum":
            return "it is not a sum"
        groups = partition_groups(op, self.view)
        if isinstance(groups, str):
            return groups
        wanted = frozenset(frozenset(row) for row in groups.rows)
        names = [name for name, size in self.mesh.axes if size > 1]
        spread = tuple(name for name in names if self._differ(name, groups))
        if self.mesh.groups_along(spread) != wanted:
            return f'its groups are not those along axis "{self.axis}", or along it and other axes'
        return spread if self.axis in spread else ()

    def may_scatter(self, op: ir.Operation) -> bool:
        """Whether an all-reduce adds over the axis, so that a reduce-scatter gives the shards of its result."""
        axes = self.reduced_axes(op)
        return not isinstance(axes, str) and bool(axes)

    def _differ(self, name: str, groups: Groups) -> bool:
        places = self.mesh.coordinates([name])
        return len({places[device] for device in groups.rows[0]}) > 1

    def _replicated(self, side: str, position: int) -> bool:
        sharding = self.sharding(side, position)
        parts = [axis for dimension in sharding.dimension_shardings for axis in
                 sdy.DimensionShardingAttr(dimension).axes]
        whole = all(sdy.AxisRefAttr(axis).sub_axis_info is None for axis in parts)
        return whole and not list(sharding.unreduced_axes) and self.axis not in varying_axes(sharding)


def step_of(view: View, axis: str, name_of_pass: str) -> ManualStep:
    """Finds the step of a module.

    Args:
      view: the module, whose calls are inlined.
      axis: the mesh axis to shard over.
      name_of_pass: the calling pass, for messages.

    Raises:
      InputError: the module has no manual computation that is its step, or no such axis.
    """
    regions = view.ops("sdy.manual_computation")
    name = view.module.name
    function = regions[0].parent.operation if len(regions) == 1 and regions[0].parent is not None else None
    if function is None or function.name != "func.func":
        count = "no manual computation" if not regions else f"{len(regions)} manual computations"
        raise InputError(f"the module contains {count}, and {name_of_pass} rewrites one that is the whole step",
                         location=name, hint=_EXPOSE)
    op = regions[0]
    shardings = [sdy.TensorShardingAttr(each) for side in ("in_shardings", "out_shardings")
                 for each in sdy.TensorShardingPerValueAttr(op.attributes[side]).shardings]
    mesh = mesh_of(view, shardings[0].mesh_or_ref) if shardings else None
    if mesh is None or axis not in dict(mesh.axes):
        known = ", ".join(axis for axis, _ in mesh.axes) if mesh else "none"
        raise InputError(f'the mesh of the step has no axis "{axis}"', location=name, hint=f"its axes are: {known}")
    if not fully_manual(op.regions[0].blocks[0].operations[0].operation, view) or is_private(function):
        raise InputError("the step's manual computation leaves mesh axes to the partitioner", location=name,
                         hint=_EXPOSE)
    groups = Groups(along(mesh, (axis,)), "flattened_ids")
    return ManualStep(view, op, mesh, axis, Uniformity(view, groups))


def all_reduces(step: ManualStep) -> list[ir.Operation]:
    """The all-reduces of the step outside of loops and branches, in order."""
    return [op.operation for op in step.block.operations if op.operation.name == ALL_REDUCE.op]


def returned(step: ManualStep) -> list[ir.Value]:
    """The results of the manual computation."""
    return list(terminator(step.block).operands)


def along(mesh: Mesh, axes: tuple[str, ...]) -> Rows:
    """The groups of devices that differ only along some axes, with members in mesh order.

    Example:
      >>> along(Mesh((("data", 2), ("model", 2)), (0, 2, 1, 3)), ("data",))
      ((0, 1), (2, 3))
    """
    places = mesh.coordinates(axes)
    rows = sorted(tuple(sorted(group, key=lambda device: places[device])) for group in mesh.groups_along(axes))
    return tuple(rows)
