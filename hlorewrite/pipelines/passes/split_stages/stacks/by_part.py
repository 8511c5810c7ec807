"""Writes a step again with the stacks of several stages as parts: one value for the rows of each stage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hlorewrite.ir import Editor, Loop, defining_op, ir, terminator, with_dimension
from hlorewrite.ops.attributes import ints
from hlorewrite.ops.dims import attributes_for, repeats_whole
from hlorewrite.ops.reducers import OP_OF_KIND, reduction_kind
from hlorewrite.passes.common.device_masks import zeros_like
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.shard_index import splat_number
from hlorewrite.pipelines.passes.split_stages.graph import captured, ops_of
from hlorewrite.pipelines.passes.split_stages.stacks import derived_parts
from hlorewrite.pipelines.passes.split_stages.stacks.cut_loops import narrow
from hlorewrite.pipelines.passes.split_stages.stacks.derived_parts import Part
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import joined
from hlorewrite.pipelines.passes.split_stages.step import returned_places


@dataclass(frozen=True)
class StackCut:
    """How the rows of a stack are cut.

    Attributes:
      edges: the first row of each part, and the number of rows.
    """

    edges: tuple[int, ...]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The rows (first, end) of each part."""
        return list(zip(self.edges[:-1], self.edges[1:], strict=True))


@dataclass
class Stacks:
    """Values of the step's main block and of its micro-batch, joined where their rows belong together."""

    leader: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def find(self, value: ir.Value) -> ir.Value:
        """The representative of all values whose rows belong together with a value's."""
        # Ends: each round goes nearer to the leader, of which there is one.
        while self.leader.setdefault(value, value) != value:
            self.leader[value] = self.leader[self.leader[value]]
            value = self.leader[value]
        return value

    def join(self, values: list[ir.Value]) -> None:
        """Records that the rows of some values belong together."""
        for each in values[1:]:
            self.leader[self.find(each)] = self.find(values[0])


def stacks_of(main: ir.Operation, loop: ir.Operation) -> Stacks:
    """The stacks of a step.

    Args:
      main: its main function, without calls.
      loop: its loop over micro-batches.
    """
    stacks = Stacks()
    for block in (main.regions[0].blocks[0], Loop(loop).body):
        for op in ops_of(block):
            for group in derived_parts.corresponding(op):
                stacks.join(group)
    arguments, results = main.regions[0].blocks[0].arguments, terminator(main.regions[0].blocks[0]).operands
    for argument, result in returned_places(main).items():
        if derived_parts.rows_of(arguments[argument]):
            stacks.join([arguments[argument], results[result]])
    parts = Loop(loop)
    for position, argument in enumerate(parts.body.arguments):
        if derived_parts.rows_of(argument):
            stacks.join([argument, parts.condition.arguments[position], loop.operands[position],
                         parts.yields[position], loop.results[position]])
    return stacks


_BARRIER = "stablehlo.optimization_barrier"


class PartWriter:
    """Writes the ops of one step, with its stacks as parts.

    Args:
      editor: the editor of the module.
      loop: the step's loop over micro-batches.
      stacks: which values' rows belong together.
      cuts: how stacks are cut, by their representative.
    """

    def __init__(self, editor: Editor, loop: ir.Operation, stacks: Stacks, cuts: Mapping[ir.Value, StackCut]) -> None:
        self.editor, self.loop, self.stacks, self.cuts = editor, loop, stacks, cuts
        self.whole_of: dict[ir.Value, ir.Value] = {}
        self.parts_of: dict[ir.Value, list[Part]] = {}
        self.derived: dict[ir.Value, StackCut] = {}
        self.before: ir.Operation | None = None  # all ops are written before this one
        self.inside = False

    def cut(self, value: ir.Value) -> StackCut | None:
        """How a value is cut; None when it stays whole."""
        return self.cuts.get(self.stacks.find(value), self.derived.get(value)) if derived_parts.rows_of(value) else None

    def derive(self, value: ir.Value, parts: list[Part], edges: tuple[int, ...]) -> None:
        """Records that a value of the update exists as parts although it is not a stack."""
        self.parts_of[value], self.derived[value] = parts, StackCut(edges)

    # ---- values

    def whole(self, value: ir.Value) -> ir.Value:
        """A value as one."""
        if value not in self.whole_of:
            cut = self.cut(value)
            assert cut is not None
            parts = [self.there(part, value, rows) for part, rows in zip(self.parts_of[value], cut.parts, strict=True)]
            made = joined(self.editor, parts, value.type, self.end())
            if self.inside:  # values of the loop's body do not exist after it
                return made
            self.whole_of[value] = made
        return self.whole_of[value]

    def parts(self, value: ir.Value, cut: StackCut) -> list[Part]:
        """A value by part."""
        if value in self.parts_of:
            return self.parts_of[value]
        whole = self.whole(value)
        return [narrow(self.editor, whole, low, high, self.end()) for low, high in cut.parts]

    def repeated(self, value: ir.Value, rows: Sequence[tuple[int, int]]) -> list[Part]:
        """Parts of a value whose rows are all alike: a constant or a broadcast."""
        made = defining_op(value)
        assert made is not None
        return [self.copied(made, {}, each) for each in rows]

    def there(self, part: Part, like: ir.Value, rows: tuple[int, int]) -> ir.Value:
        """A part as a value: if it is None, zeros are made."""
        if part is not None:
            return part
        return zeros_like(self.editor, with_dimension(like.type, 0, rows[1] - rows[0]), self.end())

    def end(self) -> ir.Operation:
        """The op before which everything is written."""
        assert self.before is not None
        return self.before

    # ---- ops

    def block(self, ops: Sequence[ir.Operation]) -> None:
        """Writes ops one after the other."""
        for op in ops:
            if op == self.loop:
                self._loop(op)
                continue
            result = op.results[0] if len(op.results) else None
            cut = None if result is None or op.name == _BARRIER else self.cut(result)
            made = None if cut is None else self._parts(op, cut)
            if made is not None and result is not None:
                self.parts_of[result] = made
            elif not self._barrier(op) and not self._rows(op) and not self._reduced(op) and \
                    (self.inside or cut is not None or not derived_parts.write_derived(self, op)):
                self._copy(op)

    def _barrier(self, op: ir.Operation) -> bool:
        """Writes a barrier with one operand for each part. Returns whether the op is a barrier of a stack."""
        cuts = [self.cut(result) for result in op.results]
        if op.name != _BARRIER or not any(cuts):
            return False
        operands = self.spread(op.operands, cuts)
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = self.editor.create(op.name, operands, [each.type for each in operands], attributes=attributes,
                                 location=op.location, before=self.end())
        self.take(op.results, new.results, cuts)
        return True

    def _copy(self, op: ir.Operation) -> None:
        mapping = {value: self.whole(value) for value in (*op.operands, *captured(op))}
        copy = self.editor.clone_before(op, self.end(), mapping)
        self.whole_of.update(zip(op.results, copy.results, strict=True))

    def _parts(self, op: ir.Operation, cut: StackCut) -> list[Part] | None:
        """The result of an op by part; None for ops of which that is not known."""
        if op.name == "stablehlo.concatenate":
            return self._concatenated(op, cut)
        if (filled := derived_parts.padded_range(op)) is not None:
            return self._padded(op, cut, filled)
        if repeats_whole(op, 0):
            return [self.copied(op, {}, rows) for rows in cut.parts]
        groups = derived_parts.corresponding(op)
        if not groups:
            return None
        given = {value: self.parts(value, cut) for value in groups[0] if value != op.results[0]}
        return self._row_by_row(op, cut, given)

    def _row_by_row(self, op: ir.Operation, cut: StackCut, given: Mapping[ir.Value, list[Part]]) -> list[Part]:
        results: list[Part] = []
        for number, rows in enumerate(cut.parts):
            zeros = [value for value in given if given[value][number] is None]
            if op.name == "stablehlo.add" and zeros:
                other = next((value for value in op.operands if value not in zeros), None)
                results.append(None if other is None else given[other][number])
                continue
            mapping = {value: self.there(parts[number], value, rows) for value, parts in given.items()}
            results.append(self.copied(op, mapping, rows))
        return results

    def copied(self, op: ir.Operation, mapping: Mapping[ir.Value, ir.Value], rows: tuple[int, int],
               keeps_rows: bool = True) -> ir.Value:
        """A copy of an op for some rows; its result has these rows too, or sums over them."""
        others = {value: self.whole(value) for value in op.operands if value not in mapping}
        copy = self.editor.clone_before(op, self.end(), {**others, **mapping})
        if not keeps_rows:
            return copy.results[0]
        count = rows[1] - rows[0]
        copy.results[0].set_type(with_dimension(copy.results[0].type, 0, count))
        with self.editor.context, op.location:
            if op.name == "stablehlo.slice":
                self.editor.set_attribute(copy, "limit_indices", attributes_for(op, 0, count)["limit_indices"])
            if op.name == "stablehlo.constant":
                splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
                self.editor.set_attribute(copy, "value", ir.DenseElementsAttr.get_splat(copy.results[0].type, splat))
        return copy.results[0]

    def _concatenated(self, op: ir.Operation, cut: StackCut) -> list[Part] | None:
        """Operands that end where parts do are these parts, one or several together."""
        if ir.IntegerAttr(op.attributes["dimension"]).value != 0:
            return None
        ends, pieces, place = [], [], 0
        for operand in op.operands:
            pieces.append((place, place + derived_parts.rows_of(operand), operand))
            place += derived_parts.rows_of(operand)
            ends.append(place)
        if not set(cut.edges[1:]) <= set(ends):
            return None
        parts: list[Part] = []
        for low, high in cut.parts:
            mine = [self.whole(value) for first, last, value in pieces if low <= first and last <= high]
            type_ = with_dimension(op.results[0].type, 0, high - low)
            parts.append(mine[0] if len(mine) == 1 else joined(self.editor, mine, type_, self.end()))
        return parts

    def _padded(self, op: ir.Operation, cut: StackCut, filled: tuple[int, int]) -> list[Part]:
        """A pad's operand covers one or several parts; all other parts are zeros."""
        parts: list[Part] = []
        for low, high in cut.parts:
            first, last = max(low, filled[0]), min(high, filled[1])
            if first >= last:
                parts.append(None)
                continue
            own = narrow(self.editor, self.whole(op.operands[0]), first - filled[0], last - filled[0], self.end())
            parts.append(own if (first, last) == (low, high) else self._pad(op, own, first - low, high - last))
        return parts

    def _pad(self, op: ir.Operation, own: ir.Value, low: int, high: int) -> ir.Value:
        rank = ir.RankedTensorType(own.type).rank
        with self.editor.context:
            attributes = {name: ir.DenseI64ArrayAttr.get([size, *[0] * (rank - 1)]) for name, size in (
                ("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", 0))}
        type_ = with_dimension(own.type, 0, derived_parts.rows_of(own) + low + high)
        return self.editor.create("stablehlo.pad", [own, self.whole(op.operands[1])], [type_], attributes=attributes,
                                  location=op.location, before=self.end()).results[0]

    def _rows(self, op: ir.Operation) -> bool:
        """Takes a slice of a stack from its parts. Returns whether the op is one."""
        taken = derived_parts.row_range(op)
        source = op.operands[0] if taken is not None else None
        cut = None if source is None or source not in self.parts_of else self.cut(source)
        if taken is None or source is None or cut is None:
            return False
        made = []
        for part, (low, high) in zip(self.parts_of[source], cut.parts, strict=True):
            first, last = max(low, taken[0]), min(high, taken[1])
            if first < last:
                made.append(self._narrowed(op, self.there(part, source, (low, high)), first - low, last - low))
        self.whole_of[op.results[0]] = made[0] if len(made) == 1 else joined(self.editor, made, op.results[0].type,
                                                                             self.end())
        return True

    def _narrowed(self, op: ir.Operation, part: ir.Value, low: int, high: int) -> ir.Value:
        bounds = list(zip(*(ints(op, name) for name in (
            "start_indices", "limit_indices", "strides")), strict=True))
        return OpWriter.before(self.editor, self.end(), op.location).sliced(part, [(low, high, 1), *bounds[1:]])

    def _reduced(self, op: ir.Operation) -> bool:
        """A reduction over the rows: reduces each part, then combines the results. Returns whether the op is one."""
        if op.name != "stablehlo.reduce" or len(op.results) != 1 or op.operands[0] not in self.parts_of or \
                0 not in ints(op, "dimensions"):
            return False
        kind, source = reduction_kind(op), op.operands[0]
        cut = self.cut(source)
        if cut is None or kind not in ("sum", "max", "min", "and", "or") or \
                (kind == "sum" and splat_number(op.operands[1]) != 0):
            return False
        total: ir.Value | None = None
        for part, rows in zip(self.parts_of[source], cut.parts, strict=True):
            mapping = {source: self.there(part, source, rows), op.operands[1]: self.whole(op.operands[1])}
            own = self.editor.clone_before(op, self.end(), mapping).results[0]
            total = own if total is None else self.editor.create(
                OP_OF_KIND[kind], [total, own], [own.type], location=op.location, before=self.end()).results[0]
        assert total is not None
        self.whole_of[op.results[0]] = total
        return True

    # ---- the loop

    def _loop(self, op: ir.Operation) -> None:
        """The loop over micro-batches, with one carried value for each part."""
        old = Loop(op)
        cuts = [self.cut(result) for result in op.results]
        operands = self.spread(op.operands, cuts)
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = self.editor.create(op.name, operands, [each.type for each in operands], attributes=attributes, regions=2,
                                 location=op.location, before=self.end())
        self.take(op.results, new.results, cuts)
        for number, block in enumerate((old.condition, old.body)):
            with self.editor.context:
                made = new.regions[number].blocks.append(*(each.type for each in operands),
                                                         arg_locs=[each.location for each in operands])
            self._inner(block, made, cuts, spread=block == old.body)

    def _inner(self, old: ir.Block, new: ir.Block, cuts: Sequence[StackCut | None], spread: bool) -> None:
        outer, self.inside = self.before, True
        self.take(old.arguments, new.arguments, cuts)
        end = terminator(old)
        self.write(old, new, lambda: self.spread(end.operands, cuts) if spread else list(map(self.whole, end.operands)))
        self.before, self.inside = outer, False

    def write(self, old: ir.Block, new: ir.Block, results: Callable[[], list[ir.Value]]) -> None:
        """Writes a block and its terminator."""
        end = terminator(old)
        self.before = self.editor.create(end.name, [], [], location=end.location, at_end=new)
        self.block(ops_of(old))
        self.editor.create(end.name, results(), [], location=end.location, before=self.before)
        self.editor.erase(self.before)

    def spread(self, values: Sequence[ir.Value], cuts: Sequence[StackCut | None]) -> list[ir.Value]:
        """Values one after the other; those that are cut, part by part."""
        flat: list[ir.Value] = []
        for value, cut in zip(values, cuts, strict=True):
            flat += [self.whole(value)] if cut is None else [
                self.there(part, value, rows) for part, rows in zip(self.parts(value, cut), cut.parts, strict=True)]
        return flat

    def take(self, old: Sequence[ir.Value], new: Sequence[ir.Value], cuts: Sequence[StackCut | None]) -> None:
        """The reverse: the new values for old ones."""
        given = iter(new)
        for value, cut in zip(old, cuts, strict=True):
            if cut is None:
                self.whole_of[value] = next(given)
            else:
                self.parts_of[value] = [next(given) for _ in cut.parts]
