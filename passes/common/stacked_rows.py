"""Loops that fill a tensor slice by slice, one in each iteration, as ``jax.lax.scan`` stacks what its body returns."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.analysis.loops import IterationNumbers, constant_integer
from hlorewrite.ir import Editor, Loop, defining_op, element_type, ir, tensor_type, users


@dataclass(frozen=True)
class RowStack:
    """A carried tensor of which each iteration writes another slice of size one, until all are written.

    Attributes:
      position: the tensor's index among the loop's carried values.
      update: the ``dynamic_update_slice`` that writes; it alone reads the tensor in the loop.
      dimension: the dimension along which the slices lie.
    """

    position: int
    update: ir.Operation
    dimension: int

    @property
    def row(self) -> ir.Value:
        """The slice that is written; it keeps the dimension, with size one."""
        return self.update.operands[1]

    @property
    def indices(self) -> Sequence[ir.Value]:
        """The indices at which it is written."""
        return list(self.update.operands)[2:]


def row_stacks(loop: Loop, numbers: IterationNumbers | None = None) -> dict[int, RowStack]:
    """The tensors that a loop stacks, by position.

    Each slice is written exactly once: the index, evaluated for all iterations, is a permutation of the slices. So the
    initial contents of the tensor do not matter after the loop, and each slice keeps its own until its iteration.

    Args:
      loop: a loop; its trip count and its indices must be computed from constants.
      numbers: the numbers of its iterations, if they are read already.
    """
    numbers = numbers or IterationNumbers(loop)
    found = (_row_stack(loop, argument, numbers) for argument in loop.body.arguments)
    return {stack.position: stack for stack in found if stack is not None}


def row_of(whole: ir.Value, stack: RowStack, editor: Editor) -> ir.Value:
    """The slice of a tensor at the place of an iteration's row, emitted before the row is written.

    Args:
      whole: a tensor of the shape of the stack.
      stack: the stack.
      editor: the editor of the module.
    """
    update = stack.update
    shape = list(ir.RankedTensorType(stack.row.type).shape)
    with editor.context:
        sizes: ir.Attribute = ir.DenseI64ArrayAttr.get(shape)
    return editor.create("stablehlo.dynamic_slice", [whole, *stack.indices], [tensor_type(shape, element_type(whole))],
                         attributes={"slice_sizes": sizes}, location=update.location, before=update).results[0]


def _row_stack(loop: Loop, argument: ir.BlockArgument, numbers: IterationNumbers) -> RowStack | None:
    position = argument.arg_number
    uses = users(argument)
    update = defining_op(loop.yields[position])
    if (update is None or update.name != "stablehlo.dynamic_update_slice" or update.block != loop.body
            or uses != [(update, 0)] or len(users(update.results[0])) != 1
            or users(loop.condition.arguments[position])):
        return None
    dimension = _sliced(update)
    if dimension is None:
        return None
    rows = numbers.of(update.operands[2 + dimension])
    size = ir.RankedTensorType(argument.type).shape[dimension]
    return RowStack(position, update, dimension) if rows is not None and sorted(rows) == [*range(size)] else None


def _sliced(update: ir.Operation) -> int | None:
    """The only dimension along which an update of size one is written; None if others are sliced too."""
    whole, part = (list(ir.RankedTensorType(update.operands[side].type).shape) for side in (0, 1))
    sliced = [dim for dim, (full, size) in enumerate(zip(whole, part, strict=True)) if full != size]
    if len(sliced) > 1 or (sliced and part[sliced[0]] != 1):
        return None
    dimension = sliced[0] if sliced else next((dim for dim, size in enumerate(whole) if size == 1), None)
    if dimension is None:
        return None
    others = [constant_integer(update.operands[2 + dim]) == 0 for dim in range(len(whole)) if dim != dimension]
    return dimension if all(others) else None
