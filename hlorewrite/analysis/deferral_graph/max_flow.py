"""Minimum cuts by Dinic's algorithm.

The flows of reductions are shallow and sparse, so a few phases suffice; loading a solver would take longer than most
modules. (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.)
"""

from __future__ import annotations

from array import array


class FlowNetwork:
    """A directed network with integer capacities.

    The arcs of a node are a linked list in arrays of machine integers: a large program has millions.

    Example:
      >>> network = FlowNetwork(3)
      >>> network.add(0, 1, 5)
      >>> network.add(1, 2, 3)
      >>> list(network.source_side(0, 2))
      [1, 1, 0]
    """

    def __init__(self, nodes: int) -> None:
        self._first = array("i", [-1]) * nodes
        self._next = array("i")
        self._head = array("i")
        self._left: list[int] = []

    def add(self, tail: int, head: int, capacity: int) -> None:
        """Adds an arc; its reverse has the next number and no capacity of its own."""
        number = len(self._head)
        self._head.append(head)
        self._head.append(tail)
        self._left += (capacity, 0)
        self._next.append(self._first[tail])
        self._first[tail] = number
        self._next.append(self._first[head])
        self._first[head] = number + 1

    def source_side(self, source: int, sink: int) -> bytearray:
        """The nodes on the source's side of the minimum cut that is nearest to the source.

        Args:
          source: where flow starts.
          sink: where it ends.

        Returns:
          For each node, 1 if the source still reaches it when the flow is at its maximum, else 0.
        """
        # Ends: after each phase the sink is further from the source, and it is at most as far as there are nodes.
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return bytearray(depth >= 0 for depth in level)
            self._saturate(source, sink, level)

    def _levels(self, source: int) -> array[int]:
        first, following, heads, left = self._first, self._next, self._head, self._left
        level = array("i", [-1]) * len(first)
        level[source] = 0
        pending = array("i", [source])
        # Ends: a node is added once.
        for node in pending:
            below, arc = level[node] + 1, first[node]
            while arc >= 0:  # ends: each round goes to the next arc of the node
                if left[arc] > 0 and level[heads[arc]] < 0:
                    level[heads[arc]] = below
                    pending.append(heads[arc])
                arc = following[arc]
        return level

    def _saturate(self, source: int, sink: int, level: array[int]) -> None:
        """Sends flow along shortest paths until none is left."""
        current = self._first[:]
        following, heads, left = self._next, self._head, self._left
        path: list[int] = []
        node = source
        # Ends: each round fills an arc, passes one by, or makes the path longer, which the levels bound.
        while True:
            if node == sink:
                node = self._send(path, source)
                continue
            below, arc = level[node] + 1, current[node]
            while arc >= 0 and (left[arc] == 0 or level[heads[arc]] != below):  # ends: the arcs of a node are finite
                arc = following[arc]
            current[node] = arc
            if arc >= 0:
                path.append(arc)
                node = heads[arc]
                continue
            if not path:
                return
            node = heads[path.pop() ^ 1]  # a dead end: step back
            current[node] = following[current[node]]

    def _send(self, path: list[int], source: int) -> int:
        """Sends as much as a path can take; returns the node before its first full arc."""
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
