"""The table of collectives: one row for each, and what follows from the rows.

Sources: the StableHLO specification and HLO's operation semantics (openxla/xla, ``docs/operation_semantics.md``). Each
HLO kind also occurs as a pair ``KIND-start`` and ``KIND-done``, whether or not HLO has opcodes of its own for the pair.
To add a collective, add a row to ``TABLE``; a test compares it with the ops of the installed jaxlib.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

REPLICA_GROUPS = "replica_groups"
SOURCE_TARGET_PAIRS = "source_target_pairs"
SPLIT_COUNT = "split_count"
CHANNEL = "channel_handle"
GLOBAL_IDS = "use_global_device_ids"
DYNAMIC_ROOT = "has_dynamic_root"
"""On an op of jaxlib 0.12: the last operand says which member sends, or receives. No pass rewrites such an op."""


@dataclass(frozen=True, slots=True)
class CollectiveOp:
    """One collective.

    Attributes:
      op: the StableHLO op; empty when StableHLO writes it as a custom call.
      kind: the HLO opcode, which is also its name in reports.
      groups: the attribute that says which devices exchange data: replica groups or (source, target) pairs.
      dimensions: attributes that say along which dimensions values are cut and joined.
      larger: the side that is larger by the size of a group; empty when operand and result are of one size.
      reduces: whether it combines the operands of a group.
      channel: whether it takes a channel, which decides what the ids in its groups mean.
      global_ids: whether it takes ``use_global_device_ids``.
      uniform: whether all devices of a group get the same result.
      copies: whether each device gets the operand of one device, unchanged.
      to_root: whether one member of a group gets the result, and the others nothing. No pass rewrites such an op, so of
        the tuples of ops below only ``COLLECTIVES`` holds it.
      pairwise: whether NCCL runs it as sends and receives between pairs of ranks.
      timed_as: the kind whose time model covers it; empty for its own kind.
      deprecated: whether StableHLO has replaced it. Of the tuples below, only ``COLLECTIVES`` holds it.
    """

    op: str
    kind: str
    groups: Literal["replica_groups", "source_target_pairs"] = REPLICA_GROUPS
    dimensions: tuple[str, ...] = ()
    larger: Literal["operand", "result", ""] = ""
    reduces: bool = False
    channel: bool = True
    global_ids: bool = False
    uniform: bool = False
    copies: bool = False
    to_root: bool = False
    pairwise: bool = False
    timed_as: str = ""
    deprecated: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes in the op's definition."""
        flags = ((CHANNEL, self.channel), (GLOBAL_IDS, self.global_ids))
        return (self.groups, *(name for name, taken in flags if taken), *self.dimensions)


ALL_REDUCE = CollectiveOp("stablehlo.all_reduce", "all-reduce", reduces=True, global_ids=True, uniform=True)
ALL_GATHER = CollectiveOp("stablehlo.all_gather", "all-gather", dimensions=("all_gather_dim",), larger="result",
                          global_ids=True, uniform=True)
REDUCE_SCATTER = CollectiveOp("stablehlo.reduce_scatter", "reduce-scatter", dimensions=("scatter_dimension",),
                              larger="operand", reduces=True, global_ids=True)
ALL_TO_ALL = CollectiveOp("stablehlo.all_to_all", "all-to-all",
                          dimensions=("split_dimension", "concat_dimension", SPLIT_COUNT), pairwise=True)
RAGGED_ALL_TO_ALL = CollectiveOp("", "ragged-all-to-all", pairwise=True, timed_as=ALL_TO_ALL.kind)
COLLECTIVE_PERMUTE = CollectiveOp("stablehlo.collective_permute", "collective-permute", groups=SOURCE_TARGET_PAIRS,
                                  copies=True, pairwise=True)
COLLECTIVE_BROADCAST = CollectiveOp("stablehlo.collective_broadcast", "collective-broadcast", uniform=True, copies=True)
COLLECTIVE_REDUCE = CollectiveOp("stablehlo.collective_reduce", "collective-reduce", reduces=True, global_ids=True,
                                 to_root=True, timed_as=COLLECTIVE_BROADCAST.kind)
CROSS_REPLICA_SUM = CollectiveOp("stablehlo.cross-replica-sum", ALL_REDUCE.kind, reduces=True, channel=False,
                                 uniform=True, deprecated=True)

TABLE = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, RAGGED_ALL_TO_ALL, COLLECTIVE_PERMUTE,
         COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE, CROSS_REPLICA_SUM)
_CURRENT = tuple(row for row in TABLE if not row.deprecated)
_OPS = tuple(row for row in _CURRENT if row.op and not row.to_root)

COLLECTIVES = tuple(row.op for row in TABLE if row.op)
"""Every StableHLO op that is a collective."""
REDUCING = tuple(row.op for row in _OPS if row.reduces)
WITH_REPLICA_GROUPS = tuple(row.op for row in _OPS if row.groups == REPLICA_GROUPS)
WITH_GLOBAL_IDS = tuple(row.op for row in _OPS if row.global_ids)
UNIFORM_AFTER = tuple(row.op for row in _OPS if row.uniform)
"""Ops after which all devices of a group hold the same value."""
HLO_KINDS = tuple(row.kind for row in _CURRENT)
TIMED_KINDS = tuple(row.kind for row in _CURRENT if not row.timed_as)
"""Kinds that have a time model."""
GROUP_ATTRIBUTES = tuple(dict.fromkeys(row.groups for row in TABLE))
BY_OP: Mapping[str, CollectiveOp] = MappingProxyType({row.op: row for row in TABLE if row.op})
BY_KIND: Mapping[str, CollectiveOp] = MappingProxyType({row.kind: row for row in _CURRENT})


def kind_of(op: str) -> str:
    """The HLO kind of a StableHLO op.

    Args:
      op: one of ``COLLECTIVES``.

    Returns:
      The kind, as HLO text and reports name it.

    Raises:
      KeyError: the op is not a collective.

    Example:
      >>> kind_of("stablehlo.all_gather"), kind_of("stablehlo.cross-replica-sum")
      ('all-gather', 'all-reduce')
    """
    return BY_OP[op].kind


def wire_share(kind: str, members: int) -> Fraction:
    """The share of a collective's payload that a device sends over its links.

    All-reduce, all-gather and reduce-scatter are rings. In an all-to-all each member keeps one part. Collectives that
    copy one device's operand, or reduce to one device, forward it whole. A reduce-scatter and an all-gather of a
    tensor send together what its all-reduce does. (Patarasuk, Yuan: "Bandwidth optimal all-reduce algorithms", 2009;
    "bus bandwidth" in NVIDIA/nccl-tests.)

    Args:
      kind: one of ``HLO_KINDS``.
      members: devices of a group; 0 if that is not known, for the limit of large groups.

    Returns:
      The share of the payload, which is the larger of operand and result.

    Raises:
      KeyError: there is no such kind.

    Example:
      >>> [str(wire_share(kind, 4)) for kind in ("all-reduce", "all-gather", "reduce-scatter", "collective-permute")]
      ['3/2', '3/4', '3/4', '1']
    """
    row = BY_KIND[kind]
    if (row.copies or row.to_root) and members != 1:
        return Fraction(1)
    share = 1 - Fraction(1, members) if members else Fraction(1)
    return share * 2 if row.reduces and not row.larger else share


def timed_kind(kind: str) -> str:
    """The kind whose time model covers a collective.

    Args:
      kind: one of ``HLO_KINDS``.

    Returns:
      One of ``TIMED_KINDS``.

    Raises:
      KeyError: there is no such kind.

    Example:
      >>> timed_kind("ragged-all-to-all"), timed_kind("all-gather")
      ('all-to-all', 'all-gather')
    """
    return BY_KIND[kind].timed_as or kind
