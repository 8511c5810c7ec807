"""Rewrites a loop so that one iteration does the work of two, and inner loops of both run as one."""

from collections.abc import Mapping

from hlorewrite.ir import COLLECTIVES, Editor, Loop, defining_op, ir, op_key, terminator
from hlorewrite.ir.frontend import COMBINER_KEY, FRONTEND, with_frontend
from hlorewrite.ir.regions import BARRIER, WHILE
from hlorewrite.passes.common.emit import add_results, splat_constant, wrapped
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles
from hlorewrite.passes.interleave_micro_batches.plan import Iteration, PairPlan, reads

PAIRED = "hlorewrite.paired"
"""A unit attribute of loops of which an iteration does the work of two."""
_SECOND = "hlorewrite.second-micro-batch"


class PairEmitter:
    """Rewrites one loop.

    Args:
      loop: the loop; it runs an even number of times.
      plan: the order of its ops.
      editor: the editor of the module.
      channels: gives new handles to the collectives of the second iteration.
    """

    def __init__(self, loop: Loop, plan: PairPlan, editor: Editor, channels: ChannelHandles) -> None:
        self.loop, self.counter, self.plan = loop, plan.counter, plan
        self.editor, self.channels = editor, channels
        self._second: dict[ir.Value, ir.Value] = {}

    def run(self) -> None:
        """Rewrites the loop."""
        end = terminator(self.loop.body)
        for op, iteration in self.plan.steps:
            if iteration == Iteration.SECOND:
                self._copy(op, ir.InsertionPoint(end))
                continue
            self.editor.move_before(op, end)
            if iteration == Iteration.BOTH and op.name == WHILE:
                self._join(op)
            elif iteration == Iteration.BOTH:
                self._copy(op, ir.InsertionPoint(end))
        last = [self._of_second(value) for value in end.operands]
        unread, last[self.counter.position] = last[self.counter.position], self._two_steps(end)
        for position, value in enumerate(last):
            self.editor.set_operand(end, position, value)
        maker = defining_op(unread)
        if maker is not None:
            self.editor.erase_if_dead(maker)
        with self.editor.context:
            self.editor.set_attribute(self.loop.op, PAIRED, ir.UnitAttr.get())

    def _two_steps(self, end: ir.Operation) -> ir.Value:
        """The counter after two steps, as one sum of the counter and a constant: readers count trips by it."""
        argument = self.loop.body.arguments[self.counter.position]
        step = splat_constant(self.editor, wrapped(2 * self.counter.step, argument.type), argument.type, end)
        return self.editor.create("stablehlo.add", [argument, step], [argument.type], location=end.location,
                                  before=end).results[0]

    def _of_second(self, value: ir.Value) -> ir.Value:
        """A value in the second iteration: what the loop carries is what the first one yields."""
        if isinstance(value, ir.BlockArgument) and value.owner == self.loop.body:
            return self.loop.yields[value.arg_number]
        return self._second.get(value, value)

    def _copy(self, op: ir.Operation, point: ir.InsertionPoint) -> None:
        """Adds the second iteration of an op without those of its results that are the same."""
        mapping = {value: self._of_second(value) for value in reads(op)}
        if op.name == BARRIER:
            self._copy_barrier(op, mapping, point)
            return
        copy = self.editor.clone_at(op, point, mapping)
        self.channels.renew([copy])
        if op.name in COLLECTIVES:  # XLA's combiners leave collectives of different keys apart
            self.editor.set_attribute(copy, FRONTEND, with_frontend(copy, COMBINER_KEY, _SECOND))
        self._second.update(zip(op.results, copy.results, strict=True))

    def _copy_barrier(self, op: ir.Operation, mapping: Mapping[ir.Value, ir.Value], point: ir.InsertionPoint) -> None:
        """A barrier of what differs. The rest, such as weights, is behind that of the first iteration."""
        varying = [place for place, value in enumerate(op.results) if value in self.plan.varying]
        copy = self.editor.create(op.name, [mapping[op.operands[place]] for place in varying],
                                  [op.results[place].type for place in varying], location=op.location, at=point)
        self._second.update((op.results[place], made) for place, made in zip(varying, copy.results, strict=True))

    def _join(self, op: ir.Operation) -> None:
        """Makes an inner loop run for both iterations: it carries what differs twice."""
        positions = self.plan.positions[op_key(op)]
        starts = iter([self._of_second(op.operands[place]) for place in positions])
        types = [op.results[place].type for place in positions]
        count = len(op.results)
        loop = Loop(add_results(self.editor, op, types, lambda _type, _before: next(starts)))
        for values in (loop.body.arguments, loop.op.results):
            self._second.update((values[place], values[count + twin]) for twin, place in enumerate(positions))
        for each in list(loop.body.operations)[:-1]:
            inner = each.operation
            if op_key(inner) in self.plan.positions:
                self._join(inner)
            elif op_key(inner) in self.plan.sums:
                self._add_rows(inner)
            elif any(result in self.plan.varying for result in inner.results):
                self._copy(inner, ir.InsertionPoint.after(inner))
        end = terminator(loop.body)
        for twin, place in enumerate(positions, start=count):
            self.editor.set_operand(end, twin, self._of_second(end.operands[place]))

    def _add_rows(self, update: ir.Operation) -> None:
        """Makes a loop stack the sum of two rows."""
        row = update.operands[1]
        made = self.editor.create("stablehlo.add", [row, self._of_second(row)], [row.type], location=update.location,
                                  before=update)
        self.editor.set_operand(update, 1, made.results[0])
