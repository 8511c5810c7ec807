"""The calls of a step as the iterations of a loop that carries its state."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.ir import Editor, ir, terminator
from hlorewrite.passes.comm_shift.deferral_rewrite import identity_constant
from hlorewrite.passes.common.steps.manual_step import ManualStep

RETURNED = "hlorewrite.returned"
"""The target of a call that takes the results of a step that are not state."""


@dataclass(frozen=True)
class StatePlace:
    """A piece of state that a step takes and returns.

    Attributes:
      argument: position among the arguments of the manual computation.
      result: position among its results.
    """

    argument: int
    result: int


@dataclass(frozen=True)
class CallsAsLoop:
    """A loop in place of the body of a step.

    Attributes:
      op: the ``while``; its body is the body of the step.
      carried: the state.
      end: the terminator of the body.
      returned: the call that takes the results that are not state.
    """

    op: ir.Operation
    carried: tuple[StatePlace, ...]
    end: ir.Operation
    returned: ir.Operation

    @property
    def body(self) -> ir.Block:
        """The effect of one call of the step."""
        return self.op.regions[1].blocks[0]

    @property
    def arguments(self) -> list[ir.Value]:
        """The state as arguments of the body."""
        return [self.argument(each) for each in self.carried]

    def argument(self, each: StatePlace) -> ir.Value:
        """One piece of state as an argument of the body."""
        return self.body.arguments[each.argument]


def calls_as_loop(step: ManualStep, carried: Sequence[StatePlace], editor: Editor) -> CallsAsLoop:
    """Puts the body of a step into a loop that runs an unknown number of times.

    The state starts at zero, so that a sum ``s = AR(w) + u`` that travels around the loop has ``u = 0`` in every
    iteration: the rewrite then holds for any ``w`` that a call receives. All other arguments are carried
    unchanged, the results that are not state go to an op that needs them reduced, and nothing reads the loop.
    The module does not verify until ``as_step`` takes the body out again.

    Args:
      step: the step.
      carried: its state.
      editor: the editor of the module.
    """
    region, body, end = step.op.regions[0], step.block, terminator(step.block)
    types, location = [argument.type for argument in body.arguments], step.op.location
    with editor.context, location:
        go_on = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
        outer = ir.Block.create_at_start(region, types, [location] * len(types))
        true = ir.DenseElementsAttr.get_splat(go_on, ir.BoolAttr.get(True))
    state = {each.argument for each in carried}
    first = editor.create("stablehlo.constant", [], [go_on], attributes={"value": true}, location=location,
                          at_end=outer)
    starts = [identity_constant(editor, "sum", argument.type, before=first) if place in state else argument
              for place, argument in enumerate(outer.arguments)]
    loop = editor.create("stablehlo.while", [*starts, first.results[0]], [*types, go_on], regions=2, location=location,
                         at_end=outer)
    with editor.context:
        condition = ir.Block.create_at_start(loop.regions[0], [*types, go_on], [location] * (len(types) + 1))
    editor.create("stablehlo.return", [condition.arguments[len(types)]], [], location=location, at_end=condition)
    body.append_to(loop.regions[1])
    again = body.add_argument(go_on, location)
    return CallsAsLoop(loop, tuple(carried), *_ends(body, end, carried, again, editor))


def _ends(body: ir.Block, end: ir.Operation, carried: Sequence[StatePlace], again: ir.Value,
          editor: Editor) -> tuple[ir.Operation, ir.Operation]:
    """The terminator of the body, and the call before it that takes the results that are not state."""
    new_values = {each.argument: end.operands[each.result] for each in carried}
    state = {each.result for each in carried}
    others = [value for place, value in enumerate(end.operands) if place not in state]
    with editor.context:
        attributes = {"call_target_name": ir.StringAttr.get(RETURNED), "has_side_effect": ir.BoolAttr.get(True)}
    returned = editor.create("stablehlo.custom_call", others, [], attributes=attributes, location=end.location,
                             before=end)
    values = [new_values.get(place, argument) for place, argument in enumerate(list(body.arguments)[:-1])]
    new_end = editor.create("stablehlo.return", [*values, again], [], location=end.location, before=end)
    editor.erase(end)
    return new_end, returned
