"""Takes the body of a step out of the loop over its calls, with local sums as arguments and results."""

from collections.abc import Sequence

from hlorewrite.ir import Editor, ir, terminator
from hlorewrite.passes.common.steps.manual_step import ManualStep
from hlorewrite.passes.common.steps.step_borders import NewBorder, with_dimension_of_devices, write_shardings
from hlorewrite.passes.partial_state.calls_as_loop import CallsAsLoop, StatePlace


def as_step(step: ManualStep, loop: CallsAsLoop, kept: Sequence[StatePlace], editor: Editor) -> None:
    """Makes the body of a loop over calls the body of the step again.

    Args:
      step: the step, whose manual computation contains the loop; another one takes its place.
      loop: the loop, rewritten.
      kept: the state that is now a local sum between calls.
      editor: the editor of the module.
    """
    old, body = step.op, loop.body
    count = len(old.results)
    results = [old.results[place].type for place in range(count)]
    for each in kept:
        results[each.result] = _with_devices(results[each.result], step.shards)
    attributes = {name: old.attributes[name] for name in old.attributes}
    made = editor.create(old.name, list(old.operands), results, attributes=attributes, regions=1, location=old.location,
                         before=old)
    _end(loop, count, editor)
    body.append_to(made.regions[0])
    body.erase_argument(len(body.arguments) - 1)
    for place in range(count):
        editor.replace(old.results[place], made.results[place])
    editor.erase(old)
    again = ManualStep(step.view, made, step.mesh, step.axis, step.uniformity)
    for each in kept:
        _lengthen(again, each, editor)
    _write_types(again, kept, editor)
    write_shardings(again, [NewBorder(each.argument, each.result, (
        with_dimension_of_devices(again, again.sharding("in_shardings", each.argument)),
        with_dimension_of_devices(again, again.sharding("out_shardings", each.result)))) for each in kept], editor)


def _end(loop: CallsAsLoop, count: int, editor: Editor) -> None:
    """Returns state and other results in the order of the step."""
    end = terminator(loop.body)
    others = iter(list(loop.returned.operands))
    state = {each.result: end.operands[each.argument] for each in loop.carried}
    values = [state[place] if place in state else next(others) for place in range(count)]
    editor.create("sdy.return", values, [], location=end.location, before=end)
    editor.erase(end)
    editor.erase(loop.returned)


def _lengthen(step: ManualStep, each: StatePlace, editor: Editor) -> None:
    """Makes the body take and return a local sum as an array of one row, and compute on it without the row
    dimension."""
    argument, end = step.block.arguments[each.argument], terminator(step.block)
    inside = argument.type
    row = _with_devices(inside, 1)
    editor.set_type(argument, row)
    first = step.block.operations[0].operation
    plain = editor.create("stablehlo.reshape", [argument], [inside], location=first.location, before=first)
    editor.replace(argument, plain.results[0], keep=[plain])
    value = end.operands[each.result]
    rows = editor.create("stablehlo.reshape", [value], [row], location=end.location, before=end)
    editor.set_operand(end, each.result, rows.results[0])


def _write_types(step: ManualStep, kept: Sequence[StatePlace], editor: Editor) -> None:
    """Makes the function take and return arrays with a row for each device along the axis."""
    function = step.function
    for each in kept:
        value = step.op.operands[each.argument]
        editor.set_type(value, _with_devices(value.type, step.shards))
    block = function.regions[0].blocks[0]
    with editor.context:
        type_ = ir.FunctionType.get([argument.type for argument in block.arguments],
                                    [value.type for value in terminator(block).operands])
        editor.set_attribute(function, "function_type", ir.TypeAttr.get(type_))


def _with_devices(type_: ir.Type, devices: int) -> ir.Type:
    tensor = ir.RankedTensorType(type_)
    with type_.context, ir.Location.unknown():
        return ir.RankedTensorType.get([devices, *tensor.shape], tensor.element_type, tensor.encoding)
