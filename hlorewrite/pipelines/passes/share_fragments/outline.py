"""Divides a fragment around one that it contains: the part before, the contained fragment, and the part after."""

from collections.abc import Iterable
from dataclasses import dataclass

from hlorewrite.ir import CHANNEL, channel_number, ir, nested_ops, remap, renumbered
from hlorewrite.pipelines.mpmd.mesh_view import manual_body
from hlorewrite.pipelines.passes.share_fragments.fragment_graph import CrossingValue, FragmentGraph
from hlorewrite.pipelines.passes.share_fragments.subgraph_match import Occurrence
from hlorewrite.util.reachability import reachable


class CannotDivide(Exception):
    """Why a fragment stays whole.

    Args:
      what: the reason, a sentence without subject.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True)
class FragmentPiece:
    """What becomes a fragment.

    Attributes:
      ops: positions of its ops, in the order they are written; one that moves data may be in several pieces.
      reads: numbers of the values it takes.
      gives: numbers of the values it returns.
      shared: whether it is the fragment that was found inside.
    """

    ops: tuple[int, ...]
    reads: tuple[int, ...]
    gives: tuple[int, ...]
    shared: bool


def divide(host: FragmentGraph, part: FragmentGraph, found: Occurrence) -> tuple[FragmentPiece, ...]:
    """Divides a fragment around one that it contains.

    Args:
      host: the fragment.
      part: what it contains.
      found: where.

    Returns:
      Two or three pieces, in the order they run; every result is given by one of them, and a piece reads what the
      fragment reads or an earlier piece gives. One piece if the fragment is the part without some results.

    Raises:
      CannotDivide: the part around the contained fragment both feeds it and depends on it, or reads one of its inner
        values, or the fragment returns an argument, or one value twice.
    """
    return _FragmentDivision(host, part, found).pieces()


class _FragmentDivision:
    def __init__(self, host: FragmentGraph, part: FragmentGraph, found: Occurrence) -> None:
        self.host, self.part = host, part
        self.middle = set(found.ops)
        self.order = found.ops
        self.taken = tuple(found.values[value] for value in range(part.arguments))
        self.given = tuple(found.values[value] for value in part.returned)

    def pieces(self) -> tuple[FragmentPiece, ...]:
        """The pieces."""
        host = self.host
        arguments = range(host.arguments)
        if len(set(host.returned)) < len(host.returned) or any(value in arguments for value in host.returned):
            raise CannotDivide("it returns an argument, or a value twice")
        if len(self.middle) == len(host.ops):
            if not set(host.returned) < set(self.given) or any(value not in arguments for value in self.taken):
                raise CannotDivide("there is nothing around it")
            return (FragmentPiece(self.order, self.taken, self.given, True),)
        before = self._needed(value for value in self.taken if value not in arguments)
        if before & self.middle:
            raise CannotDivide("ops before it depend on the ops in it")
        rest = [position for position in range(len(host.ops)) if position not in self.middle]
        after = [position for position in rest if position not in before]
        if before and not self._reads_it(after):
            before, after = set(rest), []
        groups = [sorted(before), list(self.order), after]
        return self._written([each for each in groups if each])

    def _needed(self, values: Iterable[int]) -> set[int]:
        """Ops that some values depend on, without data of the contained fragment that is made again."""
        maker, ops = self.host.maker, self.host.ops
        found = {maker[value] for value in reachable(values, lambda value: ops[maker[value]].reads
                                                     if value in maker else ()) if value in maker}
        return {each for each in found if each not in self.middle or not ops[each].moves}

    def _reads_it(self, after: list[int]) -> bool:
        """Whether one of some ops reads what the contained fragment makes, apart from data that is made again."""
        made = set(self.given)
        for position in sorted(self.middle):
            op = self.host.ops[position]
            if not op.moves or any(value in made for value in op.reads):
                made.update(op.results)
        return any(value in made for position in after for value in self.host.ops[position].reads)

    def _written(self, groups: list[list[int]]) -> tuple[FragmentPiece, ...]:
        """Groups of ops with what they read and return; data that no piece returns is computed again."""
        host = self.host
        home = {value: number for number, group in enumerate(groups) for position in group
                for value in host.ops[position].results}
        shared = next(number for number, group in enumerate(groups) if group == list(self.order))
        gives: list[dict[int, None]] = [{} for _ in groups]
        for value in host.returned:
            gives[home[value]][value] = None
        plans = []
        for number, group in enumerate(groups):
            ops, reads = self._closed(number, group, groups, home, shared)
            for value in reads:
                if value in home:
                    gives[home[value]][value] = None
            plans.append((ops, reads))
        if not all(gives):
            raise CannotDivide("nothing around the part is read")
        if set(gives[shared]) - set(self.given):
            raise CannotDivide("a value is read or returned that the part does not return")
        if set(self.given) - set(gives[shared]):
            raise CannotDivide("nothing reads a result of the part")
        return tuple(FragmentPiece(self.order, self.taken, self.given, True) if number == shared else
                     FragmentPiece(ops, reads, tuple(sorted(gives[number])), False)
                     for number, (ops, reads) in enumerate(plans))

    def _closed(self, number: int, group: list[int], groups: list[list[int]], home: dict[int, int], shared: int
                ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ops of a group, with those that make data again, and the values it reads."""
        if number == shared:
            return self.order, self.taken
        host, own = self.host, set(group)
        reads: set[int] = set()
        todo = [value for position in group for value in host.ops[position].reads]
        # Ends: an op is added once, and a value looked at once for each reader.
        while todo:
            value = todo.pop()
            position = host.maker.get(value)
            if position is None:
                reads.add(value)
            elif position not in own:
                at = home[value]
                again = host.ops[position].moves and value not in host.returned and (
                    at > number or (at == shared and value not in self.given) or (
                        at != shared and not host.ops[position].reads))
                if again:
                    own.add(position)
                    todo += host.ops[position].reads
                elif at > number:
                    raise CannotDivide("ops before it read its results")
                else:
                    reads.add(value)
        return tuple(sorted(own)), tuple(sorted(reads))


__all__ = ["CannotDivide", "FragmentPiece", "divide"]


# ---- writes a piece of a fragment as a function


_IN, _OUT = "in_shardings", "out_shardings"


def piece_function(host: FragmentGraph, piece: FragmentPiece, values: dict[int, CrossingValue], target: ir.Block,
                   part: FragmentGraph) -> ir.Operation:
    """Writes a piece.

    Args:
      host: the fragment it is of.
      piece: what to write.
      values: how each value that it takes or gives is placed.
      target: the block that the function is put into.
      part: the contained fragment, whose channels a shared piece has.

    Returns:
      The function, with the fragment's name.
    """
    inputs, outputs = ([values[value] for value in side] for side in (piece.reads, piece.gives))
    kinds = [[ir.Type.parse(each.kind.tensor) for each in side] for side in (inputs, outputs)]
    attributes = {"sym_name": ir.StringAttr.get(host.call.callee), "sym_visibility": ir.StringAttr.get("private"),
                  "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds[0], kinds[1]))}
    if "mesh_shape" in host.function.attributes:
        attributes["mesh_shape"] = host.function.attributes["mesh_shape"]
    for key, side in (("arg_attrs", inputs), ("res_attrs", outputs)):
        if side:
            attributes[key] = ir.ArrayAttr.get([ir.Attribute.parse(each.row) for each in side])
    with host.function.location:
        function = ir.Operation.create("func.func", regions=1, attributes=attributes, ip=ir.InsertionPoint(target))
        block = function.regions[0].blocks.append(*kinds[0])
        if manual_body(host.function) is None:
            returned = _copied(host, piece, block)
        else:
            returned = _manual(host, piece, block, kinds[1], inputs, outputs)
        ir.Operation.create("func.return", operands=returned, ip=ir.InsertionPoint(block))
    _renumber_channels(function, part if piece.shared else None)
    return function


def _manual(host: FragmentGraph, piece: FragmentPiece, outer: ir.Block, results: list[ir.Type],
            inputs: list[CrossingValue], outputs: list[CrossingValue]) -> list[ir.Value]:
    old = host.function.regions[0].blocks[0].operations[0].operation
    attributes = {name: old.attributes[name] for name in old.attributes}
    for name, side in ((_IN, inputs), (_OUT, outputs)):
        attributes[name] = ir.Attribute.parse("#sdy.sharding_per_value<[" + ", ".join(
            each.manual for each in side) + "]>")
    manual = ir.Operation.create("sdy.manual_computation", results=results, operands=list(outer.arguments), regions=1,
                                 attributes=attributes, ip=ir.InsertionPoint(outer))
    block = manual.regions[0].blocks.append(*(host.values[value].type for value in piece.reads))
    returned = _copied(host, piece, block)
    ir.Operation.create("sdy.return", operands=returned, ip=ir.InsertionPoint(block))
    return list(manual.results)


def _copied(host: FragmentGraph, piece: FragmentPiece, block: ir.Block) -> list[ir.Value]:
    mapping: dict[ir.Value, ir.Value] = dict(zip((host.values[value] for value in piece.reads), block.arguments,
                                                 strict=True))
    for position in piece.ops:
        op = host.ops[position].op
        copy = op.clone(ir.InsertionPoint(block)).operation
        remap(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping[host.values[value]] for value in piece.gives]


def _renumber_channels(function: ir.Operation, like: FragmentGraph | None) -> None:
    """Gives collectives the channels that a fragment's have, or separate channels."""
    for place, op in enumerate(op for op in nested_ops(function) if channel_number(op)):
        op.attributes[CHANNEL] = renumbered(op, like.channels[place] if like is not None else place + 1)


__all__ = ["piece_function"]
