"""Loops that write each row of a tensor once: the result is the stack of the rows, whatever the tensor was before.

With rows x_i, each written in one iteration, and S the tensor before the loop, row i of the carried tensor is S[i]
until that iteration. So

    exit(s <- s with [i] = x_i)        = stack_i x_i,
    exit(s <- s with [i] = s[i] + x_i) = S + stack_i x_i,

where the stack is the result of the same loop started with zeros. If each iteration writes the same row of several
tensors, such as the parts of one tensor whose reduction is deferred, x_i may be computed from rows of all of them. To
show that each row is written once, the index is evaluated in every iteration; the counter and the predicate have to
allow that.
"""

from itertools import islice

from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import Graph, joined, shape_and_element
from hlorewrite.checks.value_graph.normalize import op_label, op_of
from hlorewrite.checks.value_graph.per_process_constants import KNOWN
from hlorewrite.util.reachability import reachable

_UPDATE, _SLICE, _ADD = "stablehlo.dynamic_update_slice", "stablehlo.dynamic_slice", "stablehlo.add"
_MOST_ROWS = 512
_MOST_NODES = 64


def left_by(state: ProgramState, stream: int, predicate: int) -> int:
    """The node of a stream's value after the loop.

    Args:
      state: the program; the loop has been read.
      stream: what the loop carries.
      predicate: whether another iteration follows.
    """
    graph, type_ = state.graph, state.graph.types[stream]
    plain = graph.node(("exit", state.depth), type_, (stream, predicate))
    zeros, update = graph.identity("sum", type_), graph.yields[stream]
    if zeros is None or not _writes_rows(state, stream, predicate):
        return plain
    written = graph.args[update][1]
    row = _with_first_rows(state, written, stream, {})
    if graph.is_identity(row, "sum"):
        return zeros
    held, rest = _added(state, row, stream)
    summed = state.strategy.pairs and len(state.terms_of(row)) > 1
    if held is None and row == written and graph.args[stream][0] == zeros and not summed:
        return plain
    left = _stacked(state, rest, update, predicate)
    return left if held is None else state.op_node(op_label(_ADD), type_, (graph.args[held][0], left))


def _stacked(state: ProgramState, row: int, update: int, predicate: int) -> int:
    """The stack of a row, where an update writes it; with pairs of iterations that of a sum is a sum of stacks."""
    graph, type_ = state.graph, state.graph.types[update]
    terms = state.terms_of(row) if state.strategy.pairs else (row,)
    if len(terms) > 1:
        first, *rest = (_stacked(state, term, update, predicate) for term in terms)
        for stack in rest:
            first = state.op_node(op_label(_ADD), type_, (first, stack))
        return first
    zeros = graph.identity("sum", type_)
    assert zeros is not None
    stack = graph.stream(state.depth + 1, type_, zeros)
    graph.yields[stack] = graph.node(graph.labels[update], type_, (stack, row, *graph.args[update][2:]))
    return graph.node(("exit", state.depth), type_, (stack, predicate))


def _added(state: ProgramState, row: int, stream: int) -> tuple[int | None, int]:
    """The tensor whose row the new row adds to, and the addend; no tensor if the new row is not such a sum."""
    graph = state.graph
    if op_of(graph, row, _ADD) is not None:
        for held, rest in (graph.args[row], graph.args[row][::-1]):
            if (tensor := _row_of(state, held, stream)) is not None:
                return tensor, rest
    return None, row


def _row_of(state: ProgramState, node: int, stream: int) -> int | None:
    """The stream whose next written row a node is; None for any other node.

    It may be another stream of the same loop than the given one, if each iteration writes the same row of both: until
    then, a row of either is what it was before the loop.
    """
    graph = state.graph
    _, row, *here = graph.args[graph.yields[stream]]
    if op_of(graph, node, _SLICE) is None or graph.types[node] != graph.types[row]:
        return None
    held, *index = graph.args[node]
    update = graph.yields.get(held)
    if index != here or update is None or op_of(graph, update, _UPDATE) is None:
        return None
    if graph.types[held] != graph.types[stream]:
        return None
    before, written, *there = graph.args[update]
    return held if before == held and there == here and graph.types[written] == graph.types[row] else None


def _with_first_rows(state: ProgramState, node: int, stream: int, known: dict[int, int]) -> int:
    """A new row with zeros for rows of tensors that start as zeros; sums and reductions of rows are followed."""
    graph, type_ = state.graph, state.graph.types[node]
    if node in known or len(known) > _MOST_NODES:
        return known.get(node, node)
    known[node] = node
    held, label = _row_of(state, node, stream), graph.labels[node]
    if held is not None and graph.is_identity(graph.args[held][0], "sum"):
        known[node] = graph.splat(0, type_)
    elif op_of(graph, node, _ADD) is not None:
        args = tuple(_with_first_rows(state, arg, stream, known) for arg in graph.args[node])
        known[node] = state.op_node(label, type_, args)
    elif label[:2] == ("reduced", "sum"):
        parts = [_with_first_rows(state, arg, stream, known) for arg in graph.args[node]]
        known[node] = state.carried_out(joined(graph, "sum", dict(zip(label[2], parts, strict=True))), type_)  # type: ignore[call-overload]
    return known[node]


def _writes_rows(state: ProgramState, stream: int, predicate: int) -> bool:
    """Whether each row of a stream, along one dimension, is written in one iteration."""
    graph, update = state.graph, state.graph.yields[stream]
    if op_of(graph, update, _UPDATE) is None or graph.args[update][0] != stream:
        return False
    whole, part = (shape_and_element(graph.types[node]) for node in graph.args[update][:2])
    if whole is None or part is None:
        return False
    differing = [d for d, (size, own) in enumerate(zip(whole[0], part[0], strict=True)) if size != own]
    if len(differing) != 1 or part[0][differing[0]] != 1:
        return False
    along = differing[0]
    return sorted(_numbers(state, graph.args[update][2 + along], predicate)) == [*range(whole[0][along])]


def _numbers(state: ProgramState, index: int, predicate: int) -> list[int]:
    """The index in each iteration; none if it is not computed from counters that start at constants."""
    graph, found = state.graph, list[int]()
    values = {stream: graph.args[stream][0] for stream in _counters(graph, (index, predicate), state.depth + 1)}
    for _ in range(_MOST_ROWS + 1):
        goes_on, number = (_constant(state, _at(state, node, values, {})) for node in (predicate, index))
        if goes_on == 0:
            return found
        if goes_on is None or number is None:
            return []
        found.append(number)
        values = {stream: _at(state, graph.yields[stream], values, {}) for stream in values}
    return []


def _counters(graph: Graph, nodes: tuple[int, ...], depth: int) -> list[int]:
    """The streams of this loop that some numbers are computed from; none if there are too many nodes to follow."""
    def sources(node: int) -> tuple[int, ...]:
        return (graph.yields[node],) if graph.labels[node] == ("stream", depth) else graph.args[node]

    found = list(islice(reachable(nodes, sources), _MOST_NODES + 1))
    return [node for node in found if graph.labels[node] == ("stream", depth)] if len(found) <= _MOST_NODES else []


def _at(state: ProgramState, node: int, values: dict[int, int], known: dict[int, int]) -> int:
    """A node in the iteration in which streams have some values."""
    graph, label = state.graph, state.graph.labels[node]
    if node in values:
        return values[node]
    if label[0] in KNOWN or not str(label[0]).startswith("stablehlo.") or len(label) != 4 or label[2]:
        return node
    if node not in known:
        args = tuple(_at(state, arg, values, known) for arg in graph.args[node])
        known[node] = state.op_node(label, graph.types[node], args)
    return known[node]


def _constant(state: ProgramState, node: int) -> int | None:
    """A number of every process; None for all else."""
    numbers = state.tables.numbers(node) if state.graph.labels[node][0] == "splat" else None
    return None if numbers is None or numbers.dtype.kind not in "iub" else int(numbers.flat[0])
