"""A scheduled module as programs for the simulator: kernels, starts and ends of transfers, loops, branches and calls.

One program for each computation that runs: the entry, bodies and conditions of loops, branches, and what calls call.
Computations of fusions and reducers are parts of kernels. An op is a tuple, its code first:

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

TUPLE, ELEMENT and ALIAS carry transfers in flight from their start to their end, and are there only in a module in
which some end is not a direct reader of its start.
"""

from dataclasses import dataclass
from typing import Any

KERNEL, UNKNOWN, START, SYNC, DONE, TUPLE, ELEMENT, ALIAS, LOOP, CALL, BRANCH = range(11)

Op = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StreamProgram:
    """One computation.

    Attributes:
      name: the computation's name.
      ops: what it runs, in the order of the schedule.
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
      name: the instruction; of an asynchronous pair the start.
      kind: ``all-reduce`` and so on, or ``host-copy``.
      computation: the name of the computation it is in.
      stream: where it runs; ``compute`` when it is synchronous.
      payload_bytes: of one execution on one device.
      groups: device numbers of each group, or pairs.
      seconds: one execution.
      sends: the instruction that says what is sent, and the computation around it: the collective itself, or one in
        what the instruction calls.
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
    """A part without a known time: a custom call, a collective that cannot be read, or a loop whose trips are
    unknown.
    """

    what: str
    name: str
    computation: str
    detail: str


@dataclass(frozen=True, slots=True)
class ScheduledProgram:
    """A module as programs.

    Attributes:
      entry: what runs.
      transfers: by number.
      gaps: what has no known time, by number.
      streams: names of the streams next to the compute stream.
      notes: sentences on how it was read.
      untimed: collectives that are in ``gaps``, each as its computation and its name.
    """

    entry: StreamProgram
    transfers: tuple[StreamTransfer, ...]
    gaps: tuple[Gap, ...]
    streams: tuple[str, ...]
    notes: tuple[str, ...]
    untimed: frozenset[tuple[str, str]]
