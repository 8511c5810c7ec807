"""Minimum cuts by Dinic's algorithm.

The flows of reductions are shallow and sparse, so a few phases suffice; loading a solver would take longer than most
modules. (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.)
"""

from __future__ import annotations


class FlowNetwork:
    """A directed network with integer capacities.

    Example:
      >>> network = FlowNetwork(3)
      >>> network.add(0, 1, 5)
      >>> network.add(1, 2, 3)
      >>> sorted(network.source_side(0, 2))
      [0, 1]
    """

    def __init__(self, nodes: int) -> None:
        self._arcs: list[list[int]] = [[] for _ in range(nodes)]
        self._head: list[int] = []
        self._left: list[int] = []

    def add(self, tail: int, head: int, capacity: int) -> None:
        """Adds an arc; its reverse has the next number and no capacity of its own."""
        self._arcs[tail].append(len(self._head))
        self._head.append(head)
        self._left.append(capacity)
        self._arcs[head].append(len(self._head))
        self._head.append(tail)
        self._left.append(0)

    def source_side(self, source: int, sink: int) -> set[int]:
        """The nodes on the source's side of a minimum cut, the one nearest to the source.

        Args:
          source: where flow starts.
          sink: where it ends.

        Returns:
          What the source still reaches when the flow is at its maximum.
        """
        # Ends: after each phase the sink is further from the source, and it is at most as far as there are nodes.
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return {node for node, depth in enumerate(level) if depth >= 0}
            self._saturate(source, sink, level)

    def _levels(self, source: int) -> list[int]:
        level = [-1] * len(self._arcs)
        level[source] = 0
        pending = [source]
        # Ends: a node is added once.
        for node in pending:
            for arc in self._arcs[node]:
                head = self._head[arc]
                if self._left[arc] > 0 and level[head] < 0:
                    level[head] = level[node] + 1
                    pending.append(head)
        return level

    def _saturate(self, source: int, sink: int, level: list[int]) -> None:
        """Sends flow along shortest paths until none is left."""
        following = [0] * len(self._arcs)
        path: list[int] = []
        node = source
        # Ends: each round fills an arc, passes one by, or makes the path longer, which the levels bound.
        while True:
            if node == sink:
                node = self._send(path, source)
                continue
            arcs = self._arcs[node]
            # Ends: each round passes an arc by.
            while following[node] < len(arcs):
                arc = arcs[following[node]]
                if self._left[arc] > 0 and level[self._head[arc]] == level[node] + 1:
                    break
                following[node] += 1
            else:  # a dead end: step back
                if not path:
                    return
                node = self._head[path.pop() ^ 1]
                following[node] += 1
                continue
            path.append(arc)
            node = self._head[arc]

    def _send(self, path: list[int], source: int) -> int:
        """Sends what a path can take; returns the node before its first full arc."""
        amount = min(self._left[arc] for arc in path)
        full = len(path)
        for place in range(len(path) - 1, -1, -1):
            arc = path[place]
            self._left[arc] -= amount
            self._left[arc ^ 1] += amount
            if self._left[arc] == 0:
                full = place
        node = self._head[path[full] ^ 1] if full < len(path) else source
        del path[full:]
        return node
