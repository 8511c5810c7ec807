"""Values while a program is evaluated: a node, or parts that wait for reductions.

``Pending(sum, {(G,): w, (): u})`` is ``AR_G(w) + u``. A key lists the reductions a part waits for, outermost first; the
key ``()`` is the part that waits for none. A part that is absent is the identity of the reduction.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.checks.translation_validation.value_graph.graph import Graph, shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.groups import Members, OwnPart, Reduction

Key = tuple[Reduction, ...]
LOCAL: Key = ()


@dataclass(frozen=True, eq=False)
class PendingReduction:
    """A value some of whose parts wait for a reduction.

    Attributes:
      kind: the kind of all its reductions.
      parts: what waits for what; when there is none, the value is the identity, known to be one where parts of this
        kind come and go.
    """

    kind: str
    parts: Mapping[Key, int]

    @property
    def members(self) -> list[Members]:
        """The groups it waits for."""
        return list(dict.fromkeys(reduction.members for key in self.parts for reduction in key))


SymbolicValue = int | PendingReduction


def own_part_of(key: Key) -> OwnPart | None:
    """What a part with this key is the own part of; None for one that is as large as its value."""
    return key[0].own if key else None


def part_type(key: Key, type_: str) -> str:
    """The type of a part of a value of a type: of the whole sum, when the value is a process's part of one."""
    own, known = own_part_of(key), shape_and_element(type_)
    return type_ if own is None or known is None else tensor_type(own.whole, known[1])


def parts_of(graph: Graph, value: SymbolicValue, kind: str) -> Mapping[Key, int]:
    """The parts of a value as one of a kind; identities are absent."""
    if isinstance(value, PendingReduction):
        return value.parts
    return {} if graph.is_identity(value, kind) else {LOCAL: value}


def joined(graph: Graph, kind: str, parts: Mapping[Key, int]) -> SymbolicValue:
    """A value of parts; a plain node when it has one part, which waits for nothing."""
    held = {key: node for key, node in parts.items() if not graph.is_identity(node, kind)}
    return held[LOCAL] if list(held) == [LOCAL] else PendingReduction(kind, held)


def reduced(graph: Graph, value: SymbolicValue, type_: str) -> int:
    """The node of a value with its reductions carried out."""
    if isinstance(value, int):
        return value
    if not value.parts:
        identity = graph.identity(value.kind, type_)
        assert identity is not None, "a part is absent only where there is an identity"
        return identity
    keys = tuple(sorted(value.parts, key=lambda key: tuple(reduction.number for reduction in key)))
    return graph.node(("reduced", value.kind, keys), type_, tuple(value.parts[key] for key in keys))
