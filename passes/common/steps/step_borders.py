"""The interface of a step: shardings of arguments and results, and buffer donation."""

from collections.abc import Iterable
from dataclasses import dataclass

from hlorewrite.ir import Editor, ir, sdy
from hlorewrite.passes.common.steps.manual_step import ManualStep

SHARDING, ALIASING, DONOR = "sdy.sharding", "tf.aliasing_output", "jax.buffer_donor"
_ATTRIBUTES = {"in_shardings": "arg_attrs", "out_shardings": "res_attrs"}


@dataclass(frozen=True)
class NewBorder:
    """An argument that holds state, the result that is its new value, and their new sharding.

    Attributes:
      argument: position among the arguments of the manual computation.
      result: position among its results.
      shardings: the shardings of the argument and of the result.
    """

    argument: int
    result: int
    shardings: tuple[ir.Attribute, ir.Attribute]


def write_shardings(step: ManualStep, borders: Iterable[NewBorder], editor: Editor) -> None:
    """Gives arguments and results of the manual computation, and of the function around it, new shardings.

    Args:
      step: the step, whose manual computation reads and returns what the new shardings give a device.
      borders: the arguments and results that change.
      editor: the editor of the module.
    """
    borders = list(borders)
    for side, places in (("in_shardings", {each.argument: each.shardings[0] for each in borders}),
                         ("out_shardings", {each.result: each.shardings[1] for each in borders})):
        count = len(step.op.operands) if side == "in_shardings" else len(step.op.results)
        rows = [places.get(place, step.sharding(side, place)) for place in range(count)]
        on_function = {step.argument_of_step(place) if side == "in_shardings" else step.result_of_step(place):
                       {SHARDING: rows[place]} for place in places}
        editor.set_attribute(step.op, side, sdy.TensorShardingPerValueAttr.get(rows, step.op.context))
        _set(step.function, _ATTRIBUTES[side], on_function, editor)
    _pair_buffers(step, {step.argument_of_step(each.argument): step.result_of_step(each.result) for each in borders},
                  {step.result_of_step(each.result) for each in borders}, editor)


def with_axis(step: ManualStep, sharding: sdy.TensorShardingAttr, dim: int) -> ir.Attribute:
    """A sharding with the axis of the step as the innermost one of a dimension."""
    axis = sdy.AxisRefAttr.get(step.axis, None, step.op.context)
    rows = [[*axes, axis] if place == dim else axes for place, axes in enumerate(_axes_of(sharding))]
    return _sharding(step, sharding, rows)


def with_dimension_of_devices(step: ManualStep, sharding: sdy.TensorShardingAttr) -> ir.Attribute:
    """The sharding of an array with a new first dimension that has one element for each device of the axis."""
    axis = sdy.AxisRefAttr.get(step.axis, None, step.op.context)
    return _sharding(step, sharding, [[axis], *_axes_of(sharding)])


def _axes_of(sharding: sdy.TensorShardingAttr) -> list[list[ir.Attribute]]:
    """The axes of each dimension."""
    return [list(sdy.DimensionShardingAttr(each).axes) for each in sharding.dimension_shardings]


def _sharding(step: ManualStep, like: sdy.TensorShardingAttr, axes: list[list[ir.Attribute]]) -> ir.Attribute:
    context = step.op.context
    rows = [sdy.DimensionShardingAttr.get(each, True, None, context) for each in axes]
    replicated = [each for each in like.replicated_axes if sdy.AxisRefAttr(each).name != step.axis]
    return sdy.TensorShardingAttr.get(like.mesh_or_ref, rows, replicated, context=context)


def _pair_buffers(step: ManualStep, new_values: dict[int, int], sharded: set[int], editor: Editor) -> None:
    """Pairs donated arguments with results again after per-device sizes changed.

    JAX pairs donated arguments with results by type and order, so a parameter may donate its memory to what is now a
    shard of the momentum. Such an argument is paired with its own new value, or left for XLA to pair.
    """
    attributes = _dictionaries(step.function, "arg_attrs", len(step.function.regions[0].blocks[0].arguments))
    pairs = {position: ir.IntegerAttr(row[ALIASING]).value for position, row in enumerate(attributes)
             if ALIASING in row}
    broken = {position for position, result in pairs.items() if (position in new_values) != (result in sharded)}
    taken = {result for position, result in pairs.items() if position not in broken}
    changed: dict[int, dict[str, ir.Attribute | None]] = {}
    with editor.context:
        for position in sorted(broken):
            result = new_values.get(position)
            if result is not None and result not in taken:
                i32 = ir.IntegerType.get_signless(32)
                changed[position] = {ALIASING: ir.IntegerAttr.get(i32, result)}
            else:
                changed[position] = {ALIASING: None, DONOR: ir.BoolAttr.get(True)}
    if changed:
        _set(step.function, "arg_attrs", changed, editor)


def _dictionaries(function: ir.Operation, name: str, count: int) -> list[dict[str, ir.Attribute]]:
    if name not in function.attributes:
        return [{} for _ in range(count)]
    return [{each.name: each.attr for each in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[name])]


def _set(function: ir.Operation, name: str, changes: dict[int, dict[str, ir.Attribute]] |
         dict[int, dict[str, ir.Attribute | None]], editor: Editor) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    rows = _dictionaries(function, name, len(type_.inputs if name == "arg_attrs" else type_.results))
    for position, change in changes.items():
        rows[position] = {key: value for key, value in {**rows[position], **change}.items() if value is not None}
    with editor.context:
        editor.set_attribute(function, name, ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows]))
