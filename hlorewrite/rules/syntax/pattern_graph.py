"""How the ops of a match block are connected: from the root along operands, then along uses, then into regions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hlorewrite.rules.syntax import ast

Relation = Literal["root", "operand", "yield", "result", "shared", "argument", "inside"]


@dataclass(frozen=True)
class OpPatternNode:
    """One op pattern.

    Attributes:
      number: its number in the block, nested ones included.
      pattern: the pattern.
      container: the number of the op pattern whose region contains it, and the region's name.
    """

    number: int
    pattern: ast.OpPattern
    container: tuple[int, str] | None


@dataclass(frozen=True)
class Visit:
    """A pattern, and how the matcher reaches it from one visited before.

    Attributes:
      node: the pattern.
      relation: ``operand`` (it defines an operand of ``via``), ``yield`` (it defines what a region of ``via`` yields);
        ``result`` (it reads a result of ``via``), ``shared`` (it reads an operand of ``via``); ``argument`` (it reads
        a block argument of ``via``), ``inside`` (it is in a region of ``via``), or ``root``.
      via: the number of the pattern visited before.
      name: the value that connects them.
    """

    node: OpPatternNode
    relation: Relation
    via: int
    name: str


def nodes_of(patterns: Sequence[ast.OpPattern]) -> list[OpPatternNode]:
    """Every op pattern of a block, nested ones after the one that contains them."""
    nodes: list[OpPatternNode] = []

    def add(pattern: ast.OpPattern, container: tuple[int, str] | None) -> None:
        number = len(nodes)
        nodes.append(OpPatternNode(number, pattern, container))
        for region in pattern.regions:
            for inner in region.body if isinstance(region, ast.BlockPattern) else ():
                add(inner, (number, region.region))

    for pattern in patterns:
        add(pattern, None)
    return nodes


def results_of(nodes: Sequence[OpPatternNode]) -> dict[str, tuple[int, int | None]]:
    """The pattern that a result name belongs to, and the index of the result; None for the op as a whole."""
    results: dict[str, tuple[int, int | None]] = {}
    for node in nodes:
        single = len(node.pattern.results) == 1
        for position, name in enumerate(node.pattern.results):
            results.setdefault(name, (node.number, None if single else position))
    return results


def values_in(operands: Sequence[ast.Operand] | None) -> Iterator[ast.ValueRef]:
    """The values an operand list names."""
    for operand in operands or ():
        if isinstance(operand, ast.Indexed):
            yield operand.value
        elif isinstance(operand, ast.ValueRef):
            yield operand


def visit_order(patterns: Sequence[ast.OpPattern]) -> list[Visit]:
    """The order in which patterns are matched, starting at the root; unconnected ones are left out."""
    nodes = nodes_of(patterns)
    results = results_of(nodes)
    visits: dict[int, Visit] = {}

    def visit(node: OpPatternNode, relation: Relation, via: int, name: str) -> None:
        visits[node.number] = Visit(node, relation, via, name)
        for reached, ref in _definitions(node.pattern):
            target = results.get(ref.name)
            if target is not None and target[0] not in visits:
                visit(nodes[target[0]], reached, node.number, ref.name)

    root = next(n for n in nodes if n.pattern.root)
    visit(root, "root", root.number, "")
    # Ends: each round visits a node, and a node is visited once.
    while True:
        step = _next_by_use(nodes, visits, results) or _next_inside(nodes, visits)
        if step is None:
            return list(visits.values())
        visit(*step)


def unreachable(patterns: Sequence[ast.OpPattern]) -> list[ast.OpPattern]:
    """The patterns that share no value with the root, directly or through others."""
    reached = {v.node.number for v in visit_order(patterns)}
    return [n.pattern for n in nodes_of(patterns) if n.number not in reached]


def _definitions(pattern: ast.OpPattern) -> Iterator[tuple[Relation, ast.ValueRef]]:
    for ref in values_in(pattern.operands):
        yield "operand", ref
    for region in pattern.regions:
        if isinstance(region, ast.BlockPattern):
            for ref in values_in(region.yields):
                yield "yield", ref


def _next_by_use(nodes: Sequence[OpPatternNode], visits: dict[int, Visit],
                 results: dict[str, tuple[int, int | None]]) -> tuple[OpPatternNode, Relation, int, str] | None:
    bound: dict[str, tuple[Relation, int]] = {}
    for visited in visits.values():
        pattern, number = visited.node.pattern, visited.node.number
        for ref in values_in(pattern.operands):
            bound.setdefault(ref.name, ("shared", number))
        for region in pattern.regions:
            for ref in values_in(region.arguments) if isinstance(region, ast.BlockPattern) else ():
                bound.setdefault(ref.name, ("argument", number))
    for node in nodes:
        if node.number in visits:
            continue
        for ref in values_in(node.pattern.operands):
            owner = results.get(ref.name)
            if owner is not None and owner[0] in visits:
                return node, "result", owner[0], ref.name
            if owner is None and ref.name in bound and ref.name != "_":
                relation, via = bound[ref.name]
                return node, relation, via, ref.name
    return None


def _next_inside(nodes: Sequence[OpPatternNode], visits: dict[int, Visit]
                 ) -> tuple[OpPatternNode, Relation, int, str] | None:
    for node in nodes:
        if node.number not in visits and node.container is not None and node.container[0] in visits:
            return node, "inside", node.container[0], ""
    return None
