"""Expressions of two halves become expressions of whole tensors.

With ``[x0; x1]`` for a concatenation along a dimension that an op f keeps apart, and a sum over it,

    [f(x0); f(x1)] = f([x0; x1]),        sum(x0) + sum(x1) = sum([x0; x1]),

and ``[slice(x); slice(x)] = x`` of the two halves of x. The sharding rule of the op (``ops.dims``) says which dimension
of an operand is which of the result; operands that have none of them have to be the same in both halves. Of streams

    [(a, y), (b, z)] = ([a; b], [y; z])

by induction over the iterations, since both are those of one loop; and a loop leaves ``[exit(s); exit(t)] =
exit([s; t])``. So a program that ``interleave-halves`` made becomes its original again. Both programs are rewritten.

Halves may also be those of blocks, such as rows gathered from devices: ``[x0; x1]`` then takes rows of the one and of
the other in turn. In memory these are chunks of elements, so a reshape changes the dimension and the rows but not the
chunks; and a collective that exchanges whole blocks keeps them apart.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from hlorewrite.checks.translation_validation.program.likenesses import Likenesses
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import Graph, Label, own_part_of, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import array, op_label, op_of, slice_label
from hlorewrite.checks.value_graph.per_process_constants import numbers_in
from hlorewrite.ir import ir
from hlorewrite.ops.dims import DimFactor, attributes_for, dim_factor, repeats_whole
from hlorewrite.ops.table import COMMUTATIVE

Task = tuple[int, ...]
"""(node,): the node, rewritten; (first, second, dimension, rows): two joined, so many rows of each in turn."""
JOINS = ("stablehlo.concatenate", "stablehlo.slice")
"""Ops that cut and join tensors."""
_MOST_ATTEMPTS = 64
_ROUNDS = 3
"""Depth to which shapes of expressions are followed through yields of loops."""
_SLICE, _ADD, _CONCATENATE, _RESHAPE, _DYNAMIC_SLICE = (
    f"stablehlo.{name}" for name in ("slice", "add", "concatenate", "reshape", "dynamic_slice"))


Place = tuple[int, int]
"""A dimension, and the rows that are taken of each half in turn."""


@dataclass(frozen=True)
class _Way:
    """One way to do a task.

    Attributes:
      needs: the tasks whose nodes it takes.
      make: makes the node of them.
    """

    needs: tuple[Task, ...]
    make: Callable[[tuple[int, ...]], int]


def with_joined_halves(programs: Sequence[ProgramState], outputs: Sequence[Sequence[int]]) -> list[list[int]]:
    """The outputs of two programs over one graph, with expressions of halves as those of whole tensors.

    Args:
      programs: the original and the result.
      outputs: nodes of each; every stream in reach has its yield.
    """
    joiner = _Joiner(programs)
    for _ in range(_MOST_ATTEMPTS):
        made = joiner.attempt([node for each in outputs for node in each])
        if made is not None:
            rest = iter(made)
            return [[next(rest) for _ in each] for each in outputs]
    return [list(each) for each in outputs]


class _Joiner:
    """Rewrites the nodes that are asked for, with what they need.

    Args:
      programs: the original and the result.
    """

    def __init__(self, programs: Sequence[ProgramState]) -> None:
        self.state, self.graph = programs[0], programs[0].graph
        self._alike = _fingerprints(self.state)
        self._likeness = Likenesses(programs).of
        self._known: dict[Task, int | None] = {}
        self._following: dict[int, Task] = {}
        self._apart: set[Task] = set()
        self._blocks = _block_rows(self.graph)

    def attempt(self, roots: Sequence[int]) -> list[int] | None:
        """Rewrites some nodes; records it, and returns None, if joined streams turned out to continue differently."""
        self._known.clear()
        self._following.clear()
        made = [self._done(root) for root in roots]
        seen, pending = set(made), list(made)
        # Ends: each node is added once, and there are finitely many tasks.
        while pending:
            node = pending.pop()
            below = self.graph.args[node]
            if self.graph.labels[node][0] == "stream":
                if not self._goes_on(node):
                    return None
                below = (*below, self.graph.yields[node])
            pending += [each for each in below if each not in seen]
            seen.update(below)
        return made

    def _goes_on(self, stream: int) -> bool:
        """Finds the next element of a new stream; if there is none, records the pair and returns False."""
        task = self._following.get(stream)
        if task is None or stream in self.graph.yields:
            return True
        following = self._solve(task)
        if following is None:
            self._apart.add(next(pair for pair, node in self._known.items() if node == stream))
            return False
        self.graph.yields[stream] = following
        return True

    def _done(self, node: int) -> int:
        made = self._solve((node,))
        assert made is not None, "a node can always be rewritten"
        return made

    def _solve(self, task: Task) -> int | None:
        """Solves a task in the first way whose requirements can be met; None if there is no such way."""
        stack = [(task, self._ways(task))] if task not in self._known else []
        # Ends: a task is put on the stack while it is not known, once, since expressions hold no circles.
        while stack:
            last, ways = stack[-1]
            way = next((way for way in ways if all(self._known.get(need, 0) is not None for need in way.needs)), None)
            missing = [] if way is None else [need for need in way.needs if need not in self._known]
            if missing:
                stack.append((missing[0], self._ways(missing[0])))
                continue
            stack.pop()
            if way is None:
                self._known[last] = None
            elif last not in self._known:
                self._known[last] = way.make(tuple([self._known[need] for need in way.needs]))  # type: ignore[misc]
        return self._known[task]

    # ---- nodes, rewritten

    def _ways(self, task: Task) -> list[_Way]:
        if len(task) == 4:
            return [] if task in self._apart else self._join(*task)
        node, = task
        label, args = self.graph.labels[node], self.graph.args[node]
        ways = list[_Way]()
        if label[0] == _CONCATENATE and len(args) == 2 and self._same_form(*args):
            along, = numbers_in(dict(label[1])["dimension"])  # type: ignore[call-overload]
            ways.append(_Way(((*args, along, self._size(args[0], along)),), lambda made: made[0]))
        elif label[0] == _ADD:
            ways += [way for pair in (args, args[::-1]) for way in self._sums(*pair)]
        elif label[0] == "stream":
            ways.append(_Way(((args[0],),), lambda made: self._stream(node, made[0], (self.graph.yields[node],))))
            return ways
        ways.append(_Way(tuple([(arg,) for arg in args]),
                         lambda made: node if made == args else self._node(label, self.graph.types[node], made)))
        return ways

    def _node(self, label: Label, type_: str, args: tuple[int, ...]) -> int:
        is_op = len(label) == 4 and "." in str(label[0])
        return self.state.op_node(label, type_, args) if is_op else self.graph.node(label, type_, args)

    def _stream(self, like: int, start: int, following: Task) -> int:
        depth = int(str(self.graph.labels[like][1]))
        made = self.graph.stream(depth, self.graph.types[start], start)
        self._following[made] = following
        return made

    # ---- pairs

    def _same_form(self, first: int, second: int) -> bool:
        return self.graph.types[first] == self.graph.types[second] and self._alike[first] == self._alike[second]

    def _size(self, node: int, dim: int) -> int:
        known = shape_and_element(self.graph.types[node])
        return known[0][dim] if known is not None and dim < len(known[0]) else 0

    def _join(self, first: int, second: int, dim: int, rows: int) -> list[_Way]:
        """The ways to join two expressions of one form along a dimension."""
        graph = self.graph
        label, args = graph.labels[first], (graph.args[first], graph.args[second])
        type_ = self._twice(graph.types[first], dim)
        if type_ is None or not self._same_form(first, second):
            return []
        if label[0] == _SLICE and (way := self._of_one(first, second, (dim, rows), type_)) is not None:
            return [way]
        if label != graph.labels[second] or len(args[0]) != len(args[1]):
            return []
        if label[0] == "stream":
            yields = graph.yields[first], graph.yields[second]
            return [_Way(((*starts, dim, rows),), lambda made: self._stream(first, made[0], (*yields, dim, rows)))
                    for starts in [(args[0][0], args[1][0])]]
        if label[0] == "splat":
            return [_Way((), lambda _: graph.node(label, type_))]
        if label[0] == "exit":
            return self._of_operands(label, type_, args, ((dim, rows), None))
        if args[0] and _keeps_apart(label, dim, rows, self._size(args[0][0], dim)):
            return self._of_operands(label, type_, args, ((dim, rows),) * len(args[0]))
        if label[0] == _DYNAMIC_SLICE and (way := self._of_own_parts(args, (dim, rows), type_)) is not None:
            return [way]
        return self._of_op(first, type_, args, (dim, rows))

    def _twice(self, type_: str, dim: int) -> str | None:
        known = shape_and_element(type_)
        if known is None or dim >= len(known[0]):
            return None
        return tensor_type(tuple(2 * size if d == dim else size for d, size in enumerate(known[0])), known[1])

    def _of_one(self, first: int, second: int, place: Place, type_: str) -> _Way | None:
        """``[x[a:b]; x[b:c]] = x[a:c]``."""
        graph, (dim, rows) = self.graph, place
        shapes = [shape_and_element(each) for each in (graph.types[first], type_)]
        half, whole = (known[0] for known in shapes if known is not None)
        cuts = [(numbers_in(attributes["start_indices"]), numbers_in(attributes["strides"]))
                for node in (first, second) if (attributes := op_of(graph, node, _SLICE)) is not None]
        if len(cuts) != 2 or graph.args[first] != graph.args[second] or rows != half[dim]:
            return None
        (starts, strides), (others, also) = cuts
        following = [start + (half[d] if d == dim else 0) for d, start in enumerate(starts)]
        if {*strides, *also} != {1} or others != following:
            return None
        label = slice_label(starts, [start + size for start, size in zip(starts, whole, strict=True)], strides)
        return _Way(((graph.args[first][0],),), lambda made: self._node(label, type_, made))

    def _of_own_parts(self, args: tuple[Sequence[int], Sequence[int]], place: Place, type_: str) -> _Way | None:
        """A process's own part of two values is that of the joined value, if it begins where rows of the first do."""
        dim, rows = place
        starts = self.state.tables.numbers(args[0][1 + dim])
        if args[0][1:] != args[1][1:] or starts is None or (starts % rows).any():
            return None
        moved, known = list(args[0][1:]), shape_and_element(type_)
        assert known is not None
        moved[dim] = self.state.tables.place(starts * 2, self.graph.types[moved[dim]])
        label = op_label(_DYNAMIC_SLICE, (("slice_sizes", array(known[0])),))
        return _Way(((args[0][0], args[1][0], dim, rows),), lambda made: self._node(label, type_, (made[0], *moved)))

    def _of_op(self, node: int, type_: str, args: tuple[Sequence[int], Sequence[int]], place: Place) -> list[_Way]:
        """``[f(x0); f(x1)] = f([x0; x1])``, and f of nothing divided where it repeats what it reads."""
        label, op, ways = self.graph.labels[node], self._likeness(node), list[_Way]()
        dim, rows = place
        if op is None:
            return []
        if label[0] == _RESHAPE:
            return [way for before in self._unshaped(node, place)
                    for way in self._of_operands(label, type_, args, (before,))]
        # Whether it repeats is asked of the whole: a half of one place may repeat it or keep it.
        whole = self._likeness(node, type_)
        if whole is not None and repeats_whole(whole, dim):
            ways += self._of_operands(label, type_, args, (None,) * len(args[0]))
        factor = dim_factor(op, dim)
        if not isinstance(factor, str):
            ways += self._of_operands(self._widened(label, op, dim, type_), type_, args, _places(factor, rows))
        return ways

    def _of_operands(self, label: Label, type_: str, args: tuple[Sequence[int], Sequence[int]],
                     places: Sequence[Place | None]) -> list[_Way]:
        """The op of joined operands; what has no dimension to join has to be one value."""
        orders = [args[1], args[1][::-1]] if label[0] in COMMUTATIVE else [args[1]]
        ways = list[_Way]()
        for others in orders:
            needs = self._operands(args[0], others, places)
            if needs is not None:
                ways.append(_Way(needs, lambda made: self._node(label, type_, made)))
        return ways

    def _operands(self, first: Sequence[int], second: Sequence[int], places: Sequence[Place | None]
                  ) -> tuple[Task, ...] | None:
        needs = list[Task]()
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            place = places[number] if number < len(places) else None  # what regions capture comes after the operands
            if place is None and one != other:
                return None
            needs.append((one,) if place is None else (one, other, *place))
            if place is not None and not self._same_form(one, other):
                return None
        return tuple(needs)

    def _unshaped(self, node: int, place: Place) -> list[Place]:
        """The places at which a reshape's operand is joined in the same chunks of elements as its result."""
        before, after = (shape_and_element(self.graph.types[each]) for each in (self.graph.args[node][0], node))
        assert before is not None and after is not None
        dim, chunk = place[0], place[1] * prod(after[0][place[0] + 1:])
        inner = [prod(before[0][d + 1:]) for d in range(len(before[0]))]
        fitting = [(d, chunk // size) for d, size in enumerate(inner)
                   if size and chunk and chunk % size == 0 and before[0][d] % (chunk // size) == 0]
        return sorted(fitting, key=lambda each: (before[0][each[0]] != after[0][dim], -before[0][each[0]]))

    def _widened(self, label: Label, op: ir.Operation, dim: int, type_: str) -> Label:
        """The label of an op for operands twice as large."""
        known = shape_and_element(type_)
        assert known is not None
        widened = attributes_for(op, dim, known[0][dim])
        texts = {name: str(value) for name, value in widened.items() if value != op.attributes[name]}
        name, attributes, *rest = label
        return (name, tuple((each, texts.get(each, text)) for each, text in attributes), *rest)  # type: ignore[misc]

    def _sums(self, first: int, second: int) -> list[_Way]:
        """``f(x0) + f(x1) = f([x0; x1])`` where f sums over the dimension, as a product of matrices does."""
        graph = self.graph
        label, args = graph.labels[first], graph.args[first]
        if label != graph.labels[second] or not self._same_form(first, second) or not args:
            return []
        op = self._likeness(first)
        ways = list[_Way]()
        for factor in self._summed(op) if op is not None else ():
            # A start that is not zero would be added twice.
            whole = [arg for place, arg in enumerate(args) if factor.operands[place] is None]
            divided = next(self._size(args[place], d) for place, d in enumerate(factor.operands) if d is not None)
            for rows in (divided, *(each for each in self._blocks if each < divided and divided % each == 0)):
                needs = self._operands(args, graph.args[second], _places(factor, rows))
                if needs is not None and all(graph.is_identity(arg, "sum") for arg in whole):
                    ways.append(_Way(needs, lambda made: self._node(label, graph.types[first], made)))
        return ways

    def _summed(self, op: ir.Operation) -> Iterable[DimFactor]:
        """The factors over which an op sums."""
        factors = [dim_factor(op, dim, place) for place, operand in enumerate(op.operands)
                   for dim in range(ir.RankedTensorType(operand.type).rank)]
        return dict.fromkeys(each for each in factors if isinstance(each, DimFactor) and each.result is None)


def _places(factor: DimFactor, rows: int) -> list[Place | None]:
    """Where the operands of an op are joined; a factor keeps the size of a dimension."""
    return [None if dim is None else (dim, rows) for dim in factor.operands]


def _keeps_apart(label: Label, dim: int, rows: int, size: int) -> bool:
    """Whether an expression of communication of halves makes halves of its result.

    Args:
      label: that of the expression.
      dim: the dimension along which halves are joined.
      rows: so many of the one and of the other in turn.
      size: that of its operand along the dimension.
    """
    match label:
        case ("reduced", _, keys):
            return not any(map(own_part_of, keys))  # type: ignore[arg-type]
        case ("all_gather", _, along):
            return along != dim or size % rows == 0
        case ("opaque", "all_to_all", groups, split, concat):
            pieces = len(groups[0]) if split == dim else 1  # type: ignore[index]
            return dim not in (split, concat) or (size // pieces) % rows == 0
        case _:
            return label[0] == "fetch"


def _block_rows(graph: Graph) -> list[int]:
    """The rows that a slice of a reshape takes of each block, or that a concatenation takes of each reshape."""
    found = dict[int, None]()
    for node, label in enumerate(graph.labels):
        args = graph.args[node]
        if label[0] not in (_CONCATENATE, _SLICE) or any(graph.labels[arg][0] != _RESHAPE for arg in args):
            continue
        made, read = (shape_and_element(graph.types[each]) for each in (node, args[0]))
        if made is not None and read is not None:
            part, whole = (read[0], made[0]) if label[0] == _CONCATENATE else (made[0], read[0])
            found |= {rows: None for rows, size in zip(part, whole, strict=True) if 2 * rows == size}
    return list(found)


def _fingerprints(state: ProgramState) -> list[int]:
    """A number for each node: the same for expressions that differ only in which part of a value they read."""
    graph, numbers = state.graph, dict[object, int]()

    def number(key: object) -> int:
        return numbers.setdefault(key, len(numbers))

    sorts = [number((label[0] if label[0] in (_SLICE, "stream") else label, type_))
             for label, type_ in zip(graph.labels, graph.types, strict=True)]
    found = list(sorts)
    for _ in range(_ROUNDS):
        previous = found
        found = list[int]()
        for node, sort in enumerate(sorts):
            args = graph.args[node]
            # What is replaced may read what was made after it.
            below = [found[arg] if arg < node else previous[arg] for arg in args]
            if graph.labels[node][0] == "stream" and node in graph.yields:
                below.append(previous[graph.yields[node]])
            if graph.labels[node][0] in COMMUTATIVE:
                below.sort()
            found.append(number((sort, *below)))
    return found
