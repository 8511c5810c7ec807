"""Spans of a simulated step on streams, as a list or as trace events of Perfetto."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hlorewrite.timeline.engine import ProgramOutcome
from hlorewrite.timeline.lower import COMPUTE_STREAM
from hlorewrite.timeline.program import ScheduledProgram

MOST_SPANS = 100_000
WAIT, KERNEL, TURNS = "wait", "kernel", "turns"


@dataclass(frozen=True, slots=True)
class StreamSpan:
    """Something that occupies a stream for a while.

    Attributes:
      stream: which.
      name: the instruction.
      kind: ``kernel``, ``wait``, the kind of a transfer, or ``turns`` for iterations of a loop that are not shown one
        by one.
      begin: seconds since the start of the step.
      end: the same.
    """

    stream: str
    name: str
    kind: str
    begin: float
    end: float


def spans(done: ProgramOutcome, program: ScheduledProgram, most: int = MOST_SPANS) -> list[StreamSpan]:
    """The spans of a recorded step.

    Args:
      done: the recorded simulation.
      program: the module.
      most: about how many to return; when there are more, loops show only their first iterations.

    Returns:
      Spans, sorted by start.
    """
    shown = _Shown(program, all_turns=_count(done, {}) <= most)
    listed = list(shown.spans(done, 0.0))
    return sorted(listed, key=lambda span: (span.begin, span.stream, span.end))[:most]


def trace_events(listed: list[StreamSpan]) -> list[dict[str, Any]]:
    """Trace events as Perfetto and chrome://tracing read them; times in microseconds.

    Args:
      listed: the spans.

    Returns:
      Names of streams, then complete events, sorted by start.

    Example:
      >>> events = trace_events([StreamSpan("compute", "fusion.1", "kernel", 0.0, 2e-6)])
      >>> [(event["name"], event["dur"]) for event in events if event["ph"] == "X"]
      [('fusion.1', 2.0)]
    """
    streams = sorted({span.stream for span in listed}, key=lambda name: (name != COMPUTE_STREAM, name))
    names = [{"ph": "M", "name": what, "pid": number, "tid": 0, "args": {"name": shown}}
             for number, stream in enumerate(streams)
             for what, shown in (("process_name", stream), ("thread_name", "compute"))]
    events = [{"ph": "X", "name": span.name, "pid": streams.index(span.stream), "tid": 0,
               "ts": round(span.begin * 1e6, 3), "dur": round((span.end - span.begin) * 1e6, 3),
               "args": {"task": span.kind}} for span in listed]
    return names + events


class _Shown:
    """Walks recorded programs; ``all_turns`` says whether each iteration of a loop is shown."""

    def __init__(self, program: ScheduledProgram, *, all_turns: bool) -> None:
        self._program, self._all_turns = program, all_turns

    def spans(self, done: ProgramOutcome, start: float) -> Iterator[StreamSpan]:
        for item in done.items:
            what, begin = item[0], start + item[1]
            if what == "kernel":
                yield StreamSpan(COMPUTE_STREAM, item[3], KERNEL, begin, start + item[2])
            elif what == "wait":
                yield StreamSpan(COMPUTE_STREAM, f"waits for {self._program.streams[item[3]]}", WAIT, begin,
                                 start + item[2])
            elif what == "transfer":
                one = self._program.transfers[item[3]]
                yield StreamSpan(self._program.streams[item[4]], one.name, one.kind, begin, start + item[2])
            elif what == "inside":
                yield from self.spans(item[2], begin)
            else:
                yield from self._repeated(item[2], item[3], begin)

    def _repeated(self, period: tuple[ProgramOutcome, ...], times: int, begin: float) -> Iterator[StreamSpan]:
        for _ in range(times if self._all_turns else 1):
            for one in period:
                yield from self.spans(one, begin)
                begin += one.seconds
        if not self._all_turns and times > 1:
            seconds = sum(one.seconds for one in period) * (times - 1)
            name = f"{len(period) * (times - 1)} more iterations"
            yield StreamSpan(COMPUTE_STREAM, name, TURNS, begin, begin + seconds)


def _count(done: ProgramOutcome, known: dict[int, int]) -> int:
    """The number of spans of a program with all iterations."""
    if id(done) not in known:
        total = 0
        for item in done.items:
            if item[0] == "inside":
                total += _count(item[2], known)
            elif item[0] == "repeat":
                total += item[3] * sum(_count(one, known) for one in item[2])
            else:
                total += 1
        known[id(done)] = total
    return known[id(done)]
