"""Describes where two programs differ, and whether the result may hang although the original does not."""

import re
from collections.abc import Sequence

from hlorewrite.checks.translation_validation.program.state import CollectiveRun, ProgramState
from hlorewrite.checks.translation_validation.value_graph.graph import Graph
from hlorewrite.checks.translation_validation.value_graph.groups import Reduction
from hlorewrite.checks.translation_validation.verdict import Unknown
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ops.table import COMMUTATIVE

_MOST_STEPS = 10_000
_ARTICLE = re.compile("^(an?|the) ")


def first_difference(original: ProgramState, result: ProgramState, colors: Sequence[int], pair: tuple[int, int],
                     what: str) -> Unknown:
    """From a pair of nodes, follows the first operands that differ, as long as both nodes look alike."""
    graph = original.graph
    a, b = pair
    key = 0
    seen = set()
    # Ends: each round adds a pair, at most ``_MOST_STEPS``.
    while (a, b) not in seen and len(seen) < _MOST_STEPS:
        seen.add((a, b))
        key = graph.origins[b] or key
        below = _below(graph, a), _below(graph, b)
        if graph.labels[a] != graph.labels[b] or graph.types[a] != graph.types[b] or len(below[0]) != len(below[1]):
            break
        differing = [(x, y) for x, y in zip(*below, strict=True) if colors[x] != colors[y]]
        if not differing or (graph.labels[a][0] in COMMUTATIVE and len(differing) > 1):
            break
        a, b = next((each for each in differing if each not in seen), differing[0])
    key = graph.origins[b] or key
    name = _name(graph, b), _name(graph, a)
    said = f"{what} is {name[0]} where the original has {name[1]}" if name[0] != name[1] else (
        f"{what} is not the same {_ARTICLE.sub('', name[0])} as in the original")
    return Unknown(said, _source(original, result, key))


def _source(original: ProgramState, result: ProgramState, key: int) -> str:
    """The source line of the op of a key, in either program."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op_key(op) != key:
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.INTERRUPT

    for program in (result, original):
        if key and not found:
            program.view.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return result.view.source(found[0]) if found else ""


def _below(graph: Graph, node: int) -> tuple[int, ...]:
    return (*graph.args[node], graph.yields[node]) if node in graph.yields else graph.args[node]


def _name(graph: Graph, node: int) -> str:
    label = graph.labels[node]
    sort = str(label[0])
    if sort == "reduced":
        keys: tuple[tuple[Reduction, ...], ...] = label[2]  # type: ignore[assignment]
        groups = ("".join(str(each.members) for each in key) or "none" for key in keys)
        return f"a {label[1]} over {' and '.join(groups)}"
    if sort == "source":
        return f"argument {label[1][1]}" if label[1][0] == "argument" else "a part of a value"  # type: ignore[index]
    second = str(label[1]) if len(label) > 1 else ""
    return {"splat": f"the number {second}", "number": f"the number {second}", "table": "numbers by device",
            "stream": "a loop-carried value", "exit": "the result of a loop", "case": "a branch", "sum": "a sum",
            "product": "a product", "power": "a power", "view": "a rearranged value", "opaque": second,
            "pick": "a selection of elements", "effect": "an effect", "world": "an effect", "constant": "a constant",
            "fetch": "a value of another device"}.get(sort, sort)


def hanging(original: ProgramState, result: ProgramState, colors: Sequence[int]) -> Unknown | None:
    """A collective of the result that some members of its group may not reach, as far as can be seen.

    All members reach it when each predicate around it is the same on all of them. If one may differ, the original has
    to execute a collective over groups at least as wide each time all predicates up to that one hold: under these
    predicates, perhaps some further ones around the result's, and no others. A collective in a branch of a loop is not
    executed in each iteration, so it does not keep the members together in the other iterations.
    """
    reached = [(each, _path(each, colors)) for each in original.executions]
    for each in result.executions:
        doubtful = 0
        for number, (_, predicate) in enumerate(each.control, 1):
            if each.members is None or not result.same.same(predicate, each.members):
                doubtful = number
        if not doubtful:
            continue
        path = _path(each, colors)
        if not any(_as_wide(other, each) and len(held) >= doubtful and held == path[:len(held)]
                   for other, held in reached):
            return Unknown(f"some devices may reach a {each.op.name} that others skip", result.view.source(each.op))
    return None


def endless(original: ProgramState, result: ProgramState, colors: Sequence[int]) -> Unknown | None:
    """A loop of the result that the original does not have, so it is not known to end."""
    ending = {tuple((what, colors[node]) for what, node in path) for path in original.loops}
    for path in result.loops:
        if tuple((what, colors[node]) for what, node in path) not in ending:
            return Unknown("a loop of the result is not in the original, and might not end",
                           _source(original, result, original.graph.origins[path[-1][1]]))
    return None


def _as_wide(other: CollectiveRun, each: CollectiveRun) -> bool:
    if each.members is None or other.members is None:
        return other.members is each.members and other.text == each.text
    return each.members.within(other.members)


def _path(each: CollectiveRun, colors: Sequence[int]) -> Sequence[tuple[str, int]]:
    return [(what, colors[node]) for what, node in each.control]
