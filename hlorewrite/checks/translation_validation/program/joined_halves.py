"""Expressions of two halves become expressions of whole tensors.

With ``[x0; x1]`` for a concatenation along a dimension that an op f keeps apart, and a sum over it,

    [f(x0); f(x1)] = f([x0; x1]),        sum(x0) + sum(x1) = sum([x0; x1]),

and ``[slice(x); slice(x)] = x`` of the two halves of x. The sharding rule of the op (``ops.dims``) says which dimension
of an operand is which of the result; operands that have none of them have to be the same in both halves. Of streams

    [(a, y), (b, z)] = ([a; b], [y; z])

by induction over the iterations, since both are those of one loop; and a loop leaves ``[exit(s); exit(t)] =
exit([s; t])``. So a program that ``interleave-halves`` made becomes its original again. Both programs are rewritten.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from hlorewrite.checks.translation_validation.program.sorts import RegionEncoder
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import Label, own_part_of, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import op_of, slice_label
from hlorewrite.checks.value_graph.per_process_constants import numbers_in
from hlorewrite.ir import ir, nested_ops, op_key
from hlorewrite.ops.dims import DimFactor, attributes_for, dim_factor, repeats_whole
from hlorewrite.ops.table import COMMUTATIVE

Task = tuple[int, ...]
"""(node,): the node, rewritten; (first, second, dimension): the two joined along a dimension."""
JOINS = ("stablehlo.concatenate", "stablehlo.slice")
"""Ops that cut and join tensors."""
_MOST_ATTEMPTS = 64
_ROUNDS = 3
"""Depth to which shapes of expressions are followed through yields of loops."""
_SLICE, _ADD, _CONCATENATE, _RESHAPE = (f"stablehlo.{name}" for name in ("slice", "add", "concatenate", "reshape"))


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
        self._origins = {op_key(op): (program, op) for program in programs
                         for op in nested_ops(program.view.module.operation)}
        self._alike = _fingerprints(self.state)
        with programs[0].view.module.context, ir.Location.unknown():
            self._scratch = ir.Module.create()
        self._likenesses: dict[tuple[Label, str, tuple[str, ...]], ir.Operation | None] = {}
        self._known: dict[Task, int | None] = {}
        self._following: dict[int, Task] = {}
        self._apart: set[Task] = set()

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
        if len(task) == 3:
            return [] if task in self._apart else self._join(*task)
        node, = task
        label, args = self.graph.labels[node], self.graph.args[node]
        ways = list[_Way]()
        if label[0] == _CONCATENATE and len(args) == 2 and self._same_form(*args):
            along, = numbers_in(dict(label[1])["dimension"])  # type: ignore[call-overload]
            ways.append(_Way(((*args, along),), lambda made: made[0]))
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

    def _join(self, first: int, second: int, dim: int) -> list[_Way]:
        """The ways to join two expressions of one form along a dimension."""
        graph = self.graph
        label, args = graph.labels[first], (graph.args[first], graph.args[second])
        type_ = self._twice(graph.types[first], dim)
        if type_ is None or not self._same_form(first, second):
            return []
        if label[0] == _SLICE and (way := self._of_one(first, second, dim, type_)) is not None:
            return [way]
        if label != graph.labels[second] or len(args[0]) != len(args[1]):
            return []
        if label[0] == "stream":
            yields = graph.yields[first], graph.yields[second]
            return [_Way(((*starts, dim),), lambda made: self._stream(first, made[0], (*yields, dim)))
                    for starts in [(args[0][0], args[1][0])]]
        if label[0] == "splat":
            return [_Way((), lambda _: graph.node(label, type_))]
        if label[0] == "exit":
            return self._of_operands(label, type_, args, (dim, None))
        if _keeps_apart(label, dim):
            return self._of_operands(label, type_, args, (dim,) * len(args[0]))
        return self._of_op(first, type_, args, dim)

    def _twice(self, type_: str, dim: int) -> str | None:
        known = shape_and_element(type_)
        if known is None or dim >= len(known[0]):
            return None
        return tensor_type(tuple(2 * size if d == dim else size for d, size in enumerate(known[0])), known[1])

    def _of_one(self, first: int, second: int, dim: int, type_: str) -> _Way | None:
        """``[x[a:b]; x[b:c]] = x[a:c]``."""
        graph, shapes = self.graph, [shape_and_element(each) for each in (self.graph.types[first], type_)]
        half, whole = (known[0] for known in shapes if known is not None)
        cuts = [(numbers_in(attributes["start_indices"]), numbers_in(attributes["strides"]))
                for node in (first, second) if (attributes := op_of(graph, node, _SLICE)) is not None]
        if len(cuts) != 2 or graph.args[first] != graph.args[second]:
            return None
        (starts, strides), (others, also) = cuts
        following = [start + (half[d] if d == dim else 0) for d, start in enumerate(starts)]
        if {*strides, *also} != {1} or others != following:
            return None
        label = slice_label(starts, [start + size for start, size in zip(starts, whole, strict=True)], strides)
        return _Way(((graph.args[first][0],),), lambda made: self._node(label, type_, made))

    def _of_op(self, node: int, type_: str, args: tuple[Sequence[int], Sequence[int]], dim: int) -> list[_Way]:
        """``[f(x0); f(x1)] = f([x0; x1])``, and f of nothing divided where it repeats what it reads."""
        label, op, ways = self.graph.labels[node], self._likeness(node), list[_Way]()
        if op is None:
            return []
        if label[0] == _RESHAPE:
            return [way for place in self._unshaped(node, dim)
                    for way in self._of_operands(label, type_, args, (place,))]
        # Whether it repeats is asked of the whole: a half of one place may repeat it or keep it.
        whole = self._likeness(node, type_)
        if whole is not None and repeats_whole(whole, dim):
            ways += self._of_operands(label, type_, args, (None,) * len(args[0]))
        factor = dim_factor(op, dim)
        if not isinstance(factor, str):
            ways += self._of_operands(self._widened(label, op, dim, type_), type_, args, factor.operands)
        return ways

    def _of_operands(self, label: Label, type_: str, args: tuple[Sequence[int], Sequence[int]],
                     dims: Sequence[int | None]) -> list[_Way]:
        """The op of joined operands; what has no dimension to join has to be one value."""
        orders = [args[1], args[1][::-1]] if label[0] in COMMUTATIVE else [args[1]]
        ways = list[_Way]()
        for others in orders:
            needs = self._operands(args[0], others, dims)
            if needs is not None:
                ways.append(_Way(needs, lambda made: self._node(label, type_, made)))
        return ways

    def _operands(self, first: Sequence[int], second: Sequence[int], dims: Sequence[int | None]
                  ) -> tuple[Task, ...] | None:
        needs = list[Task]()
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            dim = dims[place] if place < len(dims) else None  # what regions capture comes after the operands
            if dim is None and one != other:
                return None
            needs.append((one,) if dim is None else (one, other, dim))
            if dim is not None and not self._same_form(one, other):
                return None
        return tuple(needs)

    def _unshaped(self, node: int, dim: int) -> list[int]:
        """The dimensions of a reshape's operand whose halves are the halves of the result: as many elements precede
        them.
        """
        before, after = (shape_and_element(self.graph.types[each]) for each in (self.graph.args[node][0], node))
        assert before is not None and after is not None
        fitting = [place for place in range(len(before[0])) if prod(before[0][:place]) == prod(after[0][:dim])]
        return sorted(fitting, key=lambda place: (before[0][place] != after[0][dim], -before[0][place]))

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
            needs = self._operands(args, graph.args[second], factor.operands)
            whole = [arg for place, arg in enumerate(args) if factor.operands[place] is None]
            if needs is not None and all(graph.is_identity(arg, "sum") for arg in whole):
                ways.append(_Way(needs, lambda made: self._node(label, graph.types[first], made)))
        return ways

    def _summed(self, op: ir.Operation) -> Iterable[DimFactor]:
        """The factors over which an op sums."""
        factors = [dim_factor(op, dim, place) for place, operand in enumerate(op.operands)
                   for dim in range(ir.RankedTensorType(operand.type).rank)]
        return dict.fromkeys(each for each in factors if isinstance(each, DimFactor) and each.result is None)

    # ---- what an expression is in MLIR, for the questions of ``ops``

    def _likeness(self, node: int, type_: str = "") -> ir.Operation | None:
        """An op that computes the value of a node, perhaps in another type; None if there is none."""
        label = self.graph.labels[node]
        key = label, type_ or self.graph.types[node], tuple([self.graph.types[arg] for arg in self.graph.args[node]])
        if key not in self._likenesses:
            is_op = len(label) == 4 and str(label[0]).startswith("stablehlo.")
            self._likenesses[key] = None if not is_op or (label[2] and type_) else (
                self._origin(node, key[2]) if label[2] else self._written(*key))
        return self._likenesses[key]

    def _origin(self, node: int, types: tuple[str, ...]) -> ir.Operation | None:
        """The op with regions that a node was made of."""
        label = self.graph.labels[node]
        program, op = self._origins.get(self.graph.origins[node], (None, None))
        if program is None or op is None or op.name != label[0] or program.attributes_of(op) != label[1]:
            return None
        if types[:len(op.operands)] != tuple([str(operand.type) for operand in op.operands]):
            return None
        try:
            return op if RegionEncoder(program).regions(op) == label[2] else None
        except KeyError:  # it reads values from outside, which are not kept
            return None

    def _written(self, label: Label, type_: str, types: tuple[str, ...]) -> ir.Operation | None:
        """An op without regions."""
        with self._scratch.context, ir.Location.unknown(), ir.InsertionPoint(self._scratch.body):
            try:
                operands = [ir.Operation.create("builtin.unrealized_conversion_cast", [ir.Type.parse(each)]).results[0]
                            for each in types]
                attributes = {name: ir.Attribute.parse(text) for name, text in label[1]}  # type: ignore[attr-defined]
                return ir.Operation.create(str(label[0]), [ir.Type.parse(type_)], operands, attributes)
            except (ValueError, ir.MLIRError):
                return None


def _keeps_apart(label: Label, dim: int) -> bool:
    """Whether an expression of communication leaves places along a dimension where they are."""
    match label:
        case ("reduced", _, keys):
            return not any(map(own_part_of, keys))  # type: ignore[arg-type]
        case ("all_gather", _, along):
            return along != dim
        case ("opaque", "all_to_all", _, split, concat):
            return dim not in (split, concat)
        case _:
            return label[0] == "fetch"


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
