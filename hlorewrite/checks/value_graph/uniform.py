"""The nodes that are the same on all members of a group: no source that differs is reachable backwards from them.

Streams of loops that are still being read are assumed to be the same; the loop checks that when it has been read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from hlorewrite.checks.value_graph.graph import Graph, shape_and_element
from hlorewrite.checks.value_graph.groups import Members, Reduction
from hlorewrite.checks.value_graph.per_process_constants import ProcessConstants
from hlorewrite.util.reachability import reachable

_MAY_DIFFER = ("stablehlo.custom_call", "mhlo.", "sdy.all_", "sdy.collective", "sdy.reduce")
"""Ops that may compute something else on each device from equal operands."""


class SameOnMembers:
    """Answers which nodes are the same within groups.

    Args:
      graph: the graph.
      tables: what is known about each process.

    Attributes:
      assumed: open stream -> the groups it was assumed to be the same within.
      refuted: open stream -> the groups within which its loop has found it to differ.
      granted: node -> groups within which it is the same because all of them execute a collective together.
    """

    def __init__(self, graph: Graph, tables: ProcessConstants) -> None:
        self.graph = graph
        self.tables = tables
        self.assumed: dict[int, set[Members]] = {}
        self.refuted: dict[int, set[Members]] = {}
        self.granted: dict[int, list[Members]] = {}
        self._known: dict[Members, dict[int, bool]] = {}

    def same(self, node: int, members: Members) -> bool:
        """Whether a node is the same on all members of each group, at equal iterations of the loops around it.

        Results, assumptions and refutations are kept for the groups as an object: ``ProcessSpace.members`` has one for
        equal groups.
        """
        known = self._known.setdefault(members, {})
        if node not in known:
            self._search(node, members, known)
        return known[node]

    def known_to_differ(self, root: int, members: Members, following: Mapping[int, int]) -> bool:
        """Whether a node is computed from a value that by the program's text differs within groups.

        That is a number of the process, such as its id, or its own part of a constant.

        Args:
          root: the node.
          members: the groups.
          following: what open streams go on with.
        """
        def is_end(node: int) -> bool:
            sort = self.graph.labels[node][0]
            return sort == "source" or (sort in ("reduced", "all_gather") and self._sources(node, members) == ())

        for node in self._reached(root, following, is_end):
            sort, args = self.graph.labels[node][0], self.graph.args[node]
            if sort not in ("table", "source") or self._sources(node, members) is not None:
                continue
            if sort == "table" or (args and not self._reads_input(args[0])):
                return True
        return False

    def _reads_input(self, root: int) -> bool:
        """Whether a value is computed from an argument of the program, or is one number throughout."""
        return self.graph.labels[root][0] == "splat" or any(
            self.graph.labels[node][0] in ("source", "opaque", "effect", "world")
            for node in self._reached(root, {}, lambda node: False))

    def _reached(self, root: int, open_streams: Mapping[int, int], is_end: Callable[[int], bool]) -> Iterator[int]:
        """The nodes that a node is computed from, itself among them, as far as those where the walk ends."""
        def sources(node: int) -> Sequence[int]:
            following = open_streams.get(node, self.graph.yields.get(node))
            return () if is_end(node) else (*self.graph.args[node], *(() if following is None else (following,)))
        return reachable([root], sources)

    def forget(self) -> None:
        """An assumption was wrong: what followed from it has to be asked again."""
        self._known.clear()

    def _search(self, root: int, members: Members, known: dict[int, bool]) -> None:
        """Marks everything below a node: what reaches a varying source differs, all else is the same."""
        seen, stack = {root}, [root]
        readers: dict[int, list[int]] = {}
        differs: list[int] = []
        # Ends: a node is added once.
        while stack:
            node = stack.pop()
            sources = self._sources(node, members)
            if sources is None:
                differs.append(node)
                continue
            for source in sources:
                if known.get(source) is False:
                    differs.append(node)
                elif source not in known:
                    readers.setdefault(source, []).append(node)
                    if source not in seen:
                        seen.add(source)
                        stack.append(source)
        known.update(dict.fromkeys(seen, True))
        known.update(dict.fromkeys(reachable(differs, lambda node: readers.get(node, ())), False))

    def _sources(self, node: int, members: Members) -> Sequence[int] | None:
        """What a node is computed from; None when it may differ by itself."""
        label, args = self.graph.labels[node], self.graph.args[node]
        if any(members.within(wider) for wider in self.granted.get(node, ())):
            return ()
        sort = label[0]
        if sort == "stream":
            return self._stream(node, members)
        if sort == "source":  # an argument, or the part of one that a device holds
            places = label[2]
            if places is None or not members.alike(places):  # type: ignore[arg-type]
                return None
            return args if label[3] else ()
        if sort == "table":
            numbers = self.tables.of(node)
            return () if numbers is not None and members.alike([row.tobytes() for row in numbers]) else None
        if sort == "reduced":
            return self._reduced(label, args, members)
        if sort == "fetch":
            return self._fetched(label[1], args, members)  # type: ignore[arg-type]
        if sort == "pick":
            return self._picked(node, args, members)
        if sort == "chosen":
            holders = label[1]
            return args[:1] if members.within(Members(tuple(dict.fromkeys(holders)))) else None  # type: ignore[call-overload]
        if sort == "all_gather":
            rows = label[1]
            return () if members.within(Members(rows)) else None  # type: ignore[arg-type]
        if sort in ("opaque", "effect", "world") or str(sort).startswith(_MAY_DIFFER):
            return None
        return args

    def _stream(self, node: int, members: Members) -> Sequence[int] | None:
        if members in self.refuted.get(node, ()):
            return None
        if node in self.graph.yields:
            return (*self.graph.args[node], self.graph.yields[node])
        self.assumed.setdefault(node, set()).add(members)
        return self.graph.args[node]

    def _reduced(self, label: tuple[object, ...], args: tuple[int, ...], members: Members) -> Sequence[int] | None:
        sources = []
        keys: tuple[tuple[Reduction, ...], ...] = label[2]  # type: ignore[assignment]
        for key, arg in zip(keys, args, strict=True):
            for reduction in key:
                if members.within(reduction.members):
                    break  # all members get the same sum, whatever was added up
                if not members.aligned(reduction.members):
                    return None
            else:
                sources.append(arg)
        return sources

    def _picked(self, node: int, args: tuple[int, ...], members: Members) -> Sequence[int] | None:
        """Elements of the same process, or of the same place on processes of the same group."""
        codes, start = self.tables.picks[node], 0
        if members.alike([row.tobytes() for row in codes]):
            return ()
        groups = np.array([members.row_of[process] for process in range(len(codes))])
        places = np.zeros_like(codes)
        for number, arg in enumerate(args):
            known = shape_and_element(self.graph.types[arg])
            count = int(np.prod(known[0], initial=1)) if known else 0
            here = (codes >= start) & (codes < start + len(codes) * count)
            offset = np.where(here, codes - start, 0)
            if count:
                place = (number * len(codes) + groups[offset // count]) * (codes.max() + 1) + offset % count
                places = np.where(here, place, places)
            start += len(codes) * count
        return args if members.alike([row.tobytes() for row in places]) else None

    def _fetched(self, places: Sequence[int], args: tuple[int, ...], members: Members) -> Sequence[int] | None:
        if members.alike(places):
            return ()
        return args if members.alike([members.row_of.get(place, -1) for place in places]) else None
