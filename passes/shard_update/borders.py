"""What callers see of a sharded step: shardings of arguments and results, and which buffers are donated to which."""

from __future__ import annotations

from collections.abc import Iterable

from hlorewrite.ir.binding import ir, sdy
from hlorewrite.ir.edit import Editor
from hlorewrite.passes.shard_update.manual_step import ManualStep
from hlorewrite.passes.shard_update.pairs import StatePair

SHARDING, ALIASING, DONOR = "sdy.sharding", "tf.aliasing_output", "jax.buffer_donor"
_ATTRIBUTES = {"in_shardings": "arg_attrs", "out_shardings": "res_attrs"}


def write_shardings(step: ManualStep, pairs: Iterable[StatePair], editor: Editor) -> None:
    """Shards arguments and results of the manual computation and of the function around it; global types stay.

    Args:
      step: the step, whose manual computation reads and returns the shards already.
      pairs: the optimizer state.
      editor: the editor of the module.
    """
    pairs = list(pairs)
    sharded_arguments = {step.argument_of_step(pair.argument): pair for pair in pairs}
    sharded_results = {step.result_of_step(pair.result): pair for pair in pairs}
    for side, places in (("in_shardings", {pair.argument: pair.dim for pair in pairs}),
                         ("out_shardings", {pair.result: pair.dim for pair in pairs})):
        count = len(step.op.operands) if side == "in_shardings" else len(step.op.results)
        rows = [_with_axis(step, step.sharding(side, place), places.get(place)) for place in range(count)]
        on_function = {step.argument_of_step(place) if side == "in_shardings" else step.result_of_step(place):
                       {SHARDING: rows[place]} for place in places}
        editor.set_attribute(step.op, side, sdy.TensorShardingPerValueAttr.get(rows, step.op.context))
        _set(step.function, _ATTRIBUTES[side], on_function, editor)
    _pair_buffers(step, {position: step.result_of_step(pair.result) for position, pair in sharded_arguments.items()},
                  set(sharded_results), editor)


def _with_axis(step: ManualStep, sharding: sdy.TensorShardingAttr, dim: int | None) -> ir.Attribute:
    """A sharding with the axis of the step as the innermost one of a dimension; the same without a dimension."""
    if dim is None:
        return sharding
    context = step.op.context
    axis = sdy.AxisRefAttr.get(step.axis, context=context)
    dimensions = [sdy.DimensionShardingAttr(each) for each in sharding.dimension_shardings]
    rows = [sdy.DimensionShardingAttr.get([*each.axes, *([axis] if place == dim else [])], True, context=context)
            for place, each in enumerate(dimensions)]
    replicated = [each for each in sharding.replicated_axes if sdy.AxisRefAttr(each).name != step.axis]
    return sdy.TensorShardingAttr.get(sharding.mesh_or_ref, rows, replicated, list(sharding.unreduced_axes),
                                      context=context)


def _pair_buffers(step: ManualStep, new_values: dict[int, int], sharded: set[int], editor: Editor) -> None:
    """Donated arguments go on giving their memory to a result of their own size on a device.

    JAX pairs donated arguments with results by type and order, so that a parameter may give its memory to what is now
    a shard of the momentum. Such an argument is paired with its own new value, or left for XLA to pair.
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
