"""Walks over values, ops, functions or nodes in a graph that is known only from node to node."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

Node = TypeVar("Node")


def _itself(node: Any) -> Hashable:
    return node


def reachable(starts: Iterable[Node], following: Callable[[Node], Iterable[Node]],
              key: Callable[[Node], Hashable] = _itself) -> Iterator[Node]:
    """Some nodes and all they lead to, each once, nearest first.

    Nodes are found while they are read, so a reader may stop, and may look at each before what follows it is asked for.

    Args:
      starts: the nodes to start with.
      following: the nodes next to one.
      key: the key that distinguishes nodes; ``op_key`` for ops.

    Example:
      >>> list(reachable([1], {1: [2, 3], 2: [4], 3: [4], 4: [1]}.__getitem__))
      [1, 2, 3, 4]
    """
    pending = list({key(node): node for node in starts}.values())
    seen = set(map(key, pending))
    # Ends: a node is added once.
    for node in pending:
        yield node
        for other in following(node):
            if key(other) not in seen:
                seen.add(key(other))
                pending.append(other)


def postorder(roots: Iterable[Node], sources: Callable[[Node], Iterable[Node] | None],
              key: Callable[[Node], Hashable] = _itself, most: int | None = None) -> list[Node] | None:
    """Some nodes and all they are made of, each once, after those it is made of.

    Of nodes in a cycle some come before one they are made of.

    Args:
      roots: the nodes.
      sources: what a node is made of; None ends the walk.
      key: the key that distinguishes nodes; ``op_key`` for ops.
      most: the most nodes to look at.

    Returns:
      The nodes; None when ``sources`` gave None, or when there are more than ``most``.

    Example:
      >>> made_of = {"sum": ["a", "b"], "a": ["b"], "b": []}
      >>> postorder(["sum"], made_of.__getitem__), postorder(["sum"], made_of.__getitem__, most=2)
      (['b', 'a', 'sum'], None)
    """
    order: list[Node] = []
    seen: set[Hashable] = set()
    stack = [(root, False) for root in roots]
    # Ends: what a node is made of is added once.
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif key(node) not in seen:
            seen.add(key(node))
            inner = sources(node) if most is None or len(seen) <= most else None
            if inner is None:
                return None
            stack.append((node, True))
            stack += [(each, False) for each in inner]
    return order
