"""The only place that changes a module; every change is reported to the view and to listeners."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from hlorewrite.ir.binding import ir, stablehlo
from hlorewrite.ir.collectives import CHANNEL
from hlorewrite.ir.location import stamped
from hlorewrite.ir.view import View


def point_behind(value: ir.Value) -> ir.InsertionPoint:
    """The point right after the op that makes a value; of a block's argument, the begin of the block."""
    owner = value.owner
    return ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(
        owner.operation)


class EditListener(Protocol):
    """Called with each edit after (or, for ``erasing`` and ``replacing``, before) it happens."""

    def inserted(self, op: ir.Operation) -> None: ...
    def erasing(self, op: ir.Operation) -> None: ...
    def moved(self, op: ir.Operation) -> None: ...
    def replacing(self, old: ir.Value, new: ir.Value) -> None: ...


class Editor:
    """Creates, moves, replaces and erases ops, keeping a view up to date.

    Args:
      view: the view to keep up to date.
      rule: the rule or pass that makes the ops; it is part of their locations.
      listeners: further listeners for edits.
    """

    def __init__(self, view: View, rule: str = "", listeners: Sequence[EditListener] = ()) -> None:
        self.view = view
        self.rule = rule
        self.listeners = tuple(listeners)

    @property
    def context(self) -> ir.Context:
        """The MLIR context of the module."""
        return self.view.module.context

    def create(self, name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type], *,
               attributes: Mapping[str, ir.Attribute] | None = None, regions: int = 0,
               location: ir.Location, before: ir.Operation | None = None,
               at_end: ir.Block | None = None, at: ir.InsertionPoint | None = None) -> ir.Operation:
        """Makes an op before another op, at the end of a block or at an insertion point.

        Args:
          name: full op name.
          operands: operand values.
          results: result types.
          attributes: attributes by name.
          regions: how many empty regions it has.
          location: where it comes from; the rule's name is stamped around it.
          before: the op it is put before.
          at_end: or the block it is appended to.
          at: or the point it is put at; several ops made at one point are in the order they were made.

        Returns:
          The new op.
        """
        with self.context:
            where = stamped(location, self.rule) if self.rule else location
            point = at or (ir.InsertionPoint(before) if before is not None else ir.InsertionPoint(at_end))  # pyright: ignore
            op = ir.Operation.create(name, results=list(results), operands=list(operands),
                                     attributes=dict(attributes or {}), regions=regions, loc=where, ip=point)
        self._inserted(op.operation)
        return op.operation

    def clone_before(self, op: ir.Operation, anchor: ir.Operation,
                     mapping: Mapping[ir.Value, ir.Value] | None = None) -> ir.Operation:
        """Puts a copy of an op before another, its operands replaced by a mapping, also inside regions."""
        return self.clone_at(op, ir.InsertionPoint(anchor), mapping)

    def clone_at(self, op: ir.Operation, point: ir.InsertionPoint,
                 mapping: Mapping[ir.Value, ir.Value] | None = None) -> ir.Operation:
        """Puts a copy of an op at a point, its operands replaced by a mapping, also inside regions."""
        with self.context:
            copy = op.clone(point).operation
        if self.rule:
            copy.location = stamped(op.location, self.rule)
        if mapping:
            remap(copy, mapping)
        self._inserted(copy)
        return copy

    def clone_ops(self, ops: Iterable[ir.Operation], anchor: ir.Operation, mapping: dict[ir.Value, ir.Value], *,
                  after: bool = False) -> list[ir.Operation]:
        """Puts copies of some ops before or after another, in their order.

        Args:
          ops: each after those of them that it reads.
          anchor: the op next to which they are put.
          mapping: what the copies read instead of operands; the results of the copies are added to it.
          after: whether they follow the op.
        """
        point, copies = ir.InsertionPoint.after(anchor) if after else ir.InsertionPoint(anchor), []
        for op in ops:
            copies.append(self.clone_at(op, point, mapping))
            mapping.update(zip(op.results, copies[-1].results, strict=True))
        return copies

    def adopt(self, op: ir.Operation) -> None:
        """Reports an op that was put into the module by other means (a moved region, say)."""
        self._inserted(op)

    def set_operand(self, op: ir.Operation, position: int, value: ir.Value) -> None:
        """Makes an op read another value."""
        self.view.module.edits += 1
        op.operands[position] = value

    def set_attribute(self, op: ir.Operation, name: str, value: ir.Attribute | None) -> None:
        """Gives an op an attribute, or takes it away when the value is None."""
        self.view.module.edits += 1
        if value is not None:
            op.attributes[name] = value
        elif name in op.attributes:
            del op.attributes[name]

    def set_type(self, value: ir.Value, type_: ir.Type) -> None:
        """Gives a value another type; its maker and its readers must fit it when the pass ends."""
        self.view.module.edits += 1
        value.set_type(type_)

    def replace(self, old: ir.Value, new: ir.Value, keep: Sequence[ir.Operation] = ()) -> None:
        """Makes every reader of a value read another one, except some ops.

        Args:
          old: the value to replace.
          new: the value to read instead.
          keep: ops that go on reading the old value.
        """
        self.view.module.edits += 1
        for listener in self.listeners:
            listener.replacing(old, new)
        if keep:
            old.replace_all_uses_except(new, list(keep))
        else:
            old.replace_all_uses_with(new)

    def move_before(self, op: ir.Operation, anchor: ir.Operation) -> None:
        """Moves an op before another."""
        self.view.module.edits += 1
        op.move_before(anchor)
        self.view.moved(op)
        for listener in self.listeners:
            listener.moved(op)

    def move_after(self, op: ir.Operation, anchor: ir.Operation) -> None:
        """Moves an op after another."""
        self.view.module.edits += 1
        op.move_after(anchor)
        self.view.moved(op)
        for listener in self.listeners:
            listener.moved(op)

    def erase(self, op: ir.Operation) -> None:
        """Removes an op without readers."""
        self.view.module.edits += 1
        self.view.erasing(op)
        for listener in self.listeners:
            listener.erasing(op)
        op.erase()

    def erase_if_dead(self, op: ir.Operation) -> bool:
        """Removes an op when none of its results is read; returns whether it did."""
        if any(next(iter(result.uses), None) is not None for result in op.results):
            return False
        self.erase(op)
        return True

    def _inserted(self, op: ir.Operation) -> None:
        self.view.module.edits += 1
        self.view.inserted(op)
        for listener in self.listeners:
            listener.inserted(op)


def remap(op: ir.Operation, mapping: Mapping[ir.Value, ir.Value]) -> None:
    """Replaces operands of an op, and of the ops inside it, by a mapping of values."""
    def visit(inner: ir.Operation) -> ir.WalkResult:
        for position, operand in enumerate(inner.operands):
            new = mapping.get(operand)
            if new is not None:
                inner.operands[position] = new
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)


# ---- channel handles of collectives, sends and receives


def channel_number(op: ir.Operation) -> int:
    """The number of an op's channel; 0 when it has none.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse('func.func @f(%a: tensor<f32>) -> tensor<f32> { %b = "stablehlo.collective_permute"(%a) '
      ...                   '<{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, '
      ...                   'source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<f32>) -> tensor<f32> '
      ...                   'return %b : tensor<f32> }'))
      >>> channel_number(view.ops("stablehlo.collective_permute")[0])
      7
    """
    return stablehlo.ChannelHandle(op.attributes[CHANNEL]).handle if CHANNEL in op.attributes else 0


def renumbered(op: ir.Operation, number: int) -> ir.Attribute:
    """The channel handle of an op with another number.

    Args:
      op: an op with a channel.
      number: the number.
    """
    return stablehlo.ChannelHandle.get(number, stablehlo.ChannelHandle(op.attributes[CHANNEL]).channel_type, op.context)
