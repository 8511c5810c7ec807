"""A scheduled module as programs for the simulator: kernels, starts and ends of transfers, loops, branches and calls.

Each computation that runs has one program: the entry, bodies and conditions of loops, branches, and called
computations. Computations of fusions and reducers are parts of kernels. An op is a tuple, its code first:

=========  ==================================================================================
KERNEL     seconds, name
UNKNOWN    number of the entry in ``unknown``
START      name, stream, seconds, number of the transfer
SYNC       stream, seconds, number of the transfer
DONE       operand
TUPLE      name, operands
ELEMENT    name, operand, index
ALIAS      name, operand
LOOP       name, operand, body, condition or None, trips or None, number of the entry in ``unknown``
CALL       name, operands, program
BRANCH     name, operands, programs
=========  ==================================================================================

TUPLE, ELEMENT and ALIAS carry transfers in flight from start to done. They appear only if some done op does not read
its start directly.
"""

from dataclasses import dataclass
from typing import Any


class OpCode:
    """The code of an op: what the first element of its tuple says."""

    KERNEL, UNKNOWN, START, SYNC, DONE, TUPLE, ELEMENT, ALIAS, LOOP, CALL, BRANCH = range(11)


Op = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StreamProgram:
    """One computation.

    Attributes:
      name: the computation's name.
      ops: its ops, in the order of the schedule.
      parameters: names of its parameters, by number.
      root: the name of its result.
    """

    name: str
    ops: tuple[Op, ...]
    parameters: tuple[str, ...]
    root: str


@dataclass(frozen=True, slots=True)
class StreamTransfer:
    """A collective, or a copy between host and device.

    Attributes:
      name: the instruction; for an asynchronous pair, the start.
      kind: ``all-reduce`` and so on, or ``host-copy``.
      computation: the name of the computation it is in.
      stream: where it runs; ``compute`` when it is synchronous.
      payload_bytes: bytes of one execution on one device.
      groups: device numbers of each group, or pairs.
      seconds: one execution.
      sends: the instruction that defines what is sent, and its computation: the collective itself, or one in a called
        computation.
    """

    name: str
    kind: str
    computation: str
    stream: str
    payload_bytes: int
    groups: tuple[tuple[int, ...], ...]
    seconds: float
    sends: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Gap:
    """A part without a known time: a custom call, a collective that cannot be read, or a loop with an unknown trip
    count.
    """

    what: str
    name: str
    computation: str
    detail: str


@dataclass(frozen=True, slots=True)
class ScheduledProgram:
    """A module as programs.

    Attributes:
      entry: the program of the entry computation.
      transfers: the transfers, by number.
      gaps: parts without a known time, by number.
      streams: names of the streams next to the compute stream.
      notes: messages about how it was read.
      untimed: the collectives among ``gaps``, each as (computation, name).
    """

    entry: StreamProgram
    transfers: tuple[StreamTransfer, ...]
    gaps: tuple[Gap, ...]
    streams: tuple[str, ...]
    notes: tuple[str, ...]
    untimed: frozenset[tuple[str, str]]


def called_programs(op: Op) -> tuple[StreamProgram, ...]:
    """The programs that an op runs: the body of a loop, a called computation, the branches of a conditional."""
    if op[0] in (OpCode.LOOP, OpCode.CALL):
        return (op[3],)
    return op[3] if op[0] == OpCode.BRANCH else ()
