"""Reduce-scatters leave loops: the local sums stay whole until after the loop, as far as memory allows.

``v = RS(w) + u``: the program's own values keep ``u`` (a deferred reduce-scatter gives zero there), and a twin of each
deferred value, as large as before the scatter, holds ``w``. So loops carry one more value of full size for each
accumulator. This memory is the price of the saved bytes, and a budget limits it.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.analysis.deferral_graph.placement import ReductionPlacement
from hlorewrite.ir import REDUCE_SCATTER, Editor, Loop, defining_op, ir, op_key, owner_op, terminator
from hlorewrite.ir.edit import point_behind
from hlorewrite.ir.types import element_type, tensor_bytes, tensor_type, with_dimension
from hlorewrite.ops.dims import attributes_for
from hlorewrite.passes.comm_shift.deferral_rewrite import identity_constant, with_identities
from hlorewrite.passes.comm_shift.scatter_facts import LIFTED, SCATTER, ScatterDimensions, is_scalar, splat_of
from hlorewrite.passes.common.emit import add_reducer, integer_attribute, repeated, splat_constant

LOOP = "stablehlo.while"


@dataclass(frozen=True)
class ScatterPlan:
    """One placement of deferred reduce-scatters.

    Attributes:
      flow: the flow of the class.
      placement: where it is scattered.
      dimensions: the scattered dimension of each deferred value.
      parts: the number of parts, the size of a group.
    """

    flow: DeferralGraph
    placement: ReductionPlacement
    dimensions: ScatterDimensions
    parts: int

    def loop_results(self) -> list[tuple[ir.Operation, int]]:
        """(loop, position) of each carried value that needs a twin."""
        touched = set(self.placement.touched)
        places = [p for p in self.flow.reachable([ProgramPoint(v) for v in self.flow.sources])
                  if p in touched and p.branch is None]
        results = []
        for place in places:
            op = defining_op(place.value)
            if op is not None and op.name == LOOP and place.value in self.dimensions.by_value:
                results.append((op, ir.OpResult(place.value).result_number))
        return results

    def extra_bytes(self, stacks_of: Callable[[ir.Operation], Container[int]]) -> int:
        """Memory of the twins of carried values on one device.

        Args:
          stacks_of: the positions of the stacks of a loop that start as their sums, and so replace the twins.
        """
        return sum(tensor_bytes(op.results[position].type) * self.parts for op, position in self.loop_results()
                   if position not in stacks_of(op))

    def whole_type(self, value: ir.Value) -> ir.RankedTensorType:
        """The type of a value's twin."""
        dimension = self.dimensions.by_value[value]
        return with_dimension(value.type, dimension, ir.RankedTensorType(value.type).shape[dimension] * self.parts)


def add_twins(editor: Editor, plans: Iterable[ScatterPlan]) -> dict[tuple[int, int], int]:
    """Gives loops a slot for each twin of some plans, filled with zeros; nothing else changes yet.

    Returns:
      (key of the rebuilt loop, position) -> position of the twin.
    """
    by_loop: dict[int, tuple[ir.Operation, dict[int, ir.Type]]] = {}
    for plan in plans:
        for op, position in plan.loop_results():
            by_loop.setdefault(op_key(op), (op, {}))[1][position] = plan.whole_type(op.results[position])
    twins: dict[tuple[int, int], int] = {}
    for op, types in by_loop.values():
        first = len(op.results)
        rebuilt = with_identities(editor, op, list(types.values()), "sum")
        twins.update({(op_key(rebuilt), position): first + index for index, position in enumerate(types)})
    return twins


class ScatterDeferral:
    """Carries out one plan.

    Args:
      editor: the editor of the module.
      plan: the plan.
      twins: where loops carry twins.
    """

    def __init__(self, editor: Editor, plan: ScatterPlan, twins: dict[tuple[int, int], int]) -> None:
        self.editor = editor
        self.plan = plan
        self.twins = twins
        self._made: dict[ir.Value, ir.Value] = {}

    def run(self) -> list[ir.Operation]:
        """Rewrites; returns the reduce-scatters it made."""
        flow, placement = self.plan.flow, self.plan.placement
        sources = [value for value in dict.fromkeys(flow.sources) if ProgramPoint(value) in placement.deferred]
        made = [place for place in flow.reachable([ProgramPoint(value) for value in flow.sources])
                if place in placement.reduced and place.value in self.plan.dimensions.by_value]
        for loop, position in self.plan.loop_results():
            self._connect(loop, position)
        like = owner_op(sources[0])
        scattered = [self._scatter(place.value, like) for place in made]
        for value in sources:
            op = owner_op(value)
            self.editor.replace(value, identity_constant(self.editor, "sum", value.type, before=op))
            self.editor.erase(op)
        return scattered

    def _deferred(self, value: ir.Value) -> bool:
        return ProgramPoint(value) in self.plan.placement.deferred

    def _connect(self, loop: ir.Operation, position: int) -> None:
        """Gives a loop's twin its first value and its next ones."""
        slot = self.twins[op_key(loop), position]
        end = terminator(Loop(loop).body)
        if self._deferred(loop.operands[position]):
            self.editor.set_operand(loop, slot, self._twin(loop.operands[position]))
        following = end.operands[position]
        self.editor.set_operand(end, slot, self._twin(following) if self._deferred(following) else identity_constant(
            self.editor, "sum", end.operands[slot].type, before=end))

    def _twin(self, value: ir.Value) -> ir.Value:
        """``w`` of a deferred value, before the scatter."""
        known = self._made.get(value)
        if known is None:
            known = self._made[value] = self._new_twin(value)
        return known

    def _new_twin(self, value: ir.Value) -> ir.Value:
        owner = value.owner
        if isinstance(owner, ir.Block):
            loop = owner.owner.operation
            return owner.arguments[self.twins[op_key(loop), ir.BlockArgument(value).arg_number]]
        op, position = owner.operation, ir.OpResult(value).result_number
        if value in self.plan.flow.sources:
            return op.operands[position]
        if op.name == LOOP:
            return op.results[self.twins[op_key(op), position]]
        if op_key(op) not in self.plan.flow.joint:  # an optimisation barrier
            return self._twin(op.operands[position])
        if op.name == SCATTER:  # it adds to u
            return self._twin(op.operands[0])
        return self._lifted(op, value)

    def _lifted(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        """An op applied to the unscattered sums."""
        joint = self.plan.flow.joint[op_key(op)].operands
        whole = self.plan.whole_type(value)
        deferred = {position: self._twin(op.operands[position]) for position in sorted(joint)
                    if self._deferred(op.operands[position])}
        operands = []
        for position, operand in enumerate(op.operands):
            if position in deferred:
                operands.append(deferred[position])
            elif position in joint:
                kind = self._whole_operand(op, position, whole)
                operands.append(identity_constant(self.editor, "sum", kind, before=op))
            elif is_scalar(operand) or op.name not in LIFTED:
                operands.append(operand)
            else:
                operands.append(self._spread(operand, whole, op))
        dimension = self.plan.dimensions.by_value[value]
        attributes = attributes_for(op, dimension, whole.shape[dimension])
        return self.editor.create(op.name, operands, [whole], attributes=attributes, location=op.location,
                                  before=op).results[0]

    def _whole_operand(self, op: ir.Operation, position: int, whole: ir.RankedTensorType) -> ir.Type:
        """The unscattered type of a joint operand that is not deferred; a scalar, such as a pad's fill, keeps its type.

        Of the ops that move elements, only those have such operands that leave the scattered dimension in its place.
        """
        if is_scalar(op.operands[position]):
            return op.operands[position].type
        dimension = self.plan.dimensions.by_value[op.results[0]]
        return with_dimension(op.operands[position].type, dimension, whole.shape[dimension])

    def _spread(self, operand: ir.Value, whole: ir.RankedTensorType, before: ir.Operation) -> ir.Value:
        """The same splat in the unscattered shape."""
        source = splat_of(operand)
        assert source is not None
        type_ = tensor_type(whole.shape, element_type(operand))
        if source.name == "stablehlo.constant":
            number = ir.DenseElementsAttr(source.attributes["value"]).get_splat_value()
            return splat_constant(self.editor, number, type_, before)
        return repeated(self.editor, source.operands[0], type_, before)

    def _scatter(self, value: ir.Value, like: ir.Operation) -> ir.Operation:
        """Makes ``RS(w) + u`` after a value, for all of its readers."""
        whole = self._twin(value)
        readers = [(use.owner.operation, use.operand_number) for use in value.uses]
        point = point_behind(value)
        attributes = {name: like.attributes[name] for name in like.attributes}
        attributes["scatter_dimension"] = integer_attribute(self.editor, self.plan.dimensions.by_value[value])
        where = like.location
        scatter = self.editor.create(REDUCE_SCATTER.op, [whole], [value.type], attributes=attributes,
                                     regions=1, location=where, at=point)
        add_reducer(self.editor, scatter, "sum")
        total = self.editor.create("stablehlo.add", [scatter.results[0], value], [value.type], location=where,
                                   at=point).results[0]
        for reader, position in readers:
            self.editor.set_operand(reader, position, total)
        return scatter
