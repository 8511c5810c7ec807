"""The readers of values, by block and by a key, each block's in the order of the program."""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from functools import cmp_to_key

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.view import nested_ops

Key = Callable[[ir.Operation], Hashable]
_Place = tuple[ir.Block, Hashable]
_Buckets = dict[_Place, list[ir.Operation]]


def _order(one: ir.Operation, other: ir.Operation) -> int:
    if one == other:
        return 0
    return -1 if one.is_before_in_block(other) else 1


_in_order = cmp_to_key(_order)


class UserIndex:
    """Finds the ops that read a value, have a given key, and have results that can be read where another op is.

    A value is indexed when it is first asked about. Each edit of the module has to be reported to it.

    Args:
      names: the names of the ops that count.
      key: what must be equal for an op to be found; None is equal to nothing.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {"
      ...                   "%0 = stablehlo.negate %a : tensor<f32>  %1 = stablehlo.negate %a : tensor<f32>"
      ...                   "return %0, %1 : tensor<f32>, tensor<f32> }"))
      >>> first, second = view.ops("stablehlo.negate")
      >>> index = UserIndex(frozenset({"stablehlo.negate"}), lambda op: "")
      >>> [op == first for op in index.before(second.operands[0], second)]
      [True]
      >>> list(index.before(first.operands[0], first))
      []
    """

    def __init__(self, names: frozenset[str], key: Key) -> None:
        self.names = names
        self.key = key
        self._buckets: dict[ir.Value, _Buckets] = {}
        self._places: dict[int, dict[ir.Value, _Place]] = {}

    def before(self, value: ir.Value, op: ir.Operation) -> Iterator[ir.Operation]:
        """The readers of a value with the key of an op, whose results can be read where it is; innermost first.

        Args:
          value: the value.
          op: an op; it is not among them.
        """
        buckets = self._of(value)
        place = self._places.get(op_key(op), {}).get(value)
        key, around = place[1] if place is not None else self.key(op), op
        # Ends: each step goes to the op around.
        while key is not None:
            for reader in buckets.get((around.block, key), ()):
                if reader == around or not reader.is_before_in_block(around):
                    break
                yield reader
            parent = around.parent
            if parent is None or parent.operation.name == "builtin.module":
                return
            around = parent.operation

    def other(self, value: ir.Value, op: ir.Operation) -> ir.Operation | None:
        """Some reader of a value next to an op; None when there is none."""
        return next((reader for bucket in self._of(value).values() for reader in bucket if reader != op), None)

    # ---- edits

    def inserted(self, op: ir.Operation) -> None:
        """An op, with all ops in it, is in the module from now on."""
        for inner in nested_ops(op) if self._buckets else ():
            if inner.name in self.names:
                for operand in set(inner.operands) & self._buckets.keys():
                    self._add(operand, inner)

    def erasing(self, op: ir.Operation) -> None:
        """An op, with all ops in it, is about to leave the module."""
        for inner in nested_ops(op) if self._buckets else ():
            for value, place in self._places.pop(op_key(inner), {}).items():
                bucket = self._buckets.get(value, {}).get(place, [])
                at = bisect_left(bucket, _in_order(inner), key=_in_order)
                if at < len(bucket) and bucket[at] == inner:
                    del bucket[at]
                if not bucket:
                    self._buckets.get(value, {}).pop(place, None)
            for result in inner.results:
                self._buckets.pop(result, None)

    def clear(self) -> None:
        """Ops have changed in other ways: values are indexed again."""
        self._buckets.clear()
        self._places.clear()

    def replacing(self, old: ir.Value, new: ir.Value) -> None:
        """The readers of one value are about to read another."""
        self._buckets.pop(old, None)
        self._buckets.pop(new, None)

    # ---- one value

    def _of(self, value: ir.Value) -> _Buckets:
        if value not in self._buckets:
            self._buckets[value] = {}
            readers = {op_key(op): op for op in (use.owner.operation for use in value.uses) if op.name in self.names}
            for op in reversed(readers.values()):  # MLIR lists the last use first
                self._add(value, op)
        return self._buckets[value]

    def _add(self, value: ir.Value, op: ir.Operation) -> None:
        place = op.block, self.key(op)
        insort(self._buckets[value].setdefault(place, []), op, key=_in_order)
        self._places.setdefault(op_key(op), {})[value] = place
