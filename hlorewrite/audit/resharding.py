"""Exchanges that XLA's partitioner inserts because a value does not have the sharding that its reader needs."""

import re
from dataclasses import dataclass

from hlorewrite.hlo.collectives import HloCollective, collectives
from hlorewrite.hlo.parse import HloInstruction, parse_hlo
from hlorewrite.ir.collectives import ALL_TO_ALL, COLLECTIVE_PERMUTE

_EXCHANGES = (ALL_TO_ALL.kind, COLLECTIVE_PERMUTE.kind)
_WRITTEN = re.compile(r'op_name="[^"]*(?:psum|pmean|pmax|pmin|all_gather|all_to_all|ppermute|pshuffle|reduce_scatter|'
                      r'pbroadcast|collective|pgather|all_reduce)')
"""Primitives of jax.lax that a user writes; XLA keeps their names in ``op_name``."""


@dataclass(frozen=True)
class ReshardedLine:
    """A line of the program whose value the partitioner brings from one sharding to another.

    Attributes:
      source: the line.
      calls: executions of its exchanges in a step.
      bytes: executed bytes.
    """

    source: str
    calls: int
    bytes: int


def is_resharding(kind: str, instruction: HloInstruction) -> bool:
    """Whether a collective exchanges shards, and no line of the program writes it.

    Args:
      kind: the kind of the collective.
      instruction: the instruction of the optimised HLO.
    """
    return kind in _EXCHANGES and not _WRITTEN.search(instruction.attributes)


def resharded_lines(text: str) -> list[ReshardedLine]:
    """The lines where a sharding constraint would save exchanges, those that send most first.

    Args:
      text: optimised HLO.

    Raises:
      InputError: the text contains no entry computation.
    """
    module = parse_hlo(text)
    instructions = {name: each for computation in module.computations.values()
                    for name, each in computation.instructions.items()}
    by_line: dict[str, list[HloCollective]] = {}
    for one in collectives(module):
        if one.source != "?" and one.trips_known and is_resharding(one.kind, instructions[one.name]):
            by_line.setdefault(one.source, []).append(one)
    lines = [ReshardedLine(line, sum(one.trips for one in listed), sum(one.executed_bytes for one in listed))
             for line, listed in by_line.items()]
    return sorted(lines, key=lambda line: (-line.bytes, line.source))
