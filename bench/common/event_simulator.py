"""A second simulator of scheduled HLO, to check ``hlorewrite timeline`` against.

It shares constants and collective times with the timeline and no code: it reads the text by itself, unrolls every loop
into one flat list, and advances two streams from event to event. Kernels take their bytes (operands and results, of a
slice only the slice) or FLOP; ``kernel_seconds`` puts other times in their place.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id", "replica-id", "after-all"}
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
_SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}


@dataclass(frozen=True)
class EventConstants:
    """Rates of one GPU: bytes/s, FLOP/s by type, seconds of a launch, share by which compute during a collective slows
    down; and seconds of (kind, bytes, groups)."""

    memory: float
    flops: dict[str, float]
    launch: float
    slowdown: float
    collective: Callable[[str, int, tuple], float]


@dataclass
class EventLine:
    """An instruction."""

    name: str
    shape: str
    op: str
    inside: str
    operands: list[str]
    rest: str


@dataclass
class UnrolledBody:
    """A computation."""

    lines: list[EventLine] = field(default_factory=list)
    by_name: dict[str, EventLine] = field(default_factory=dict)
    root: str = ""


class EventSimulator:
    """Simulates one step.

    Args:
      text: scheduled HLO, its loops with known trip counts.
      constants: rates.
      kernel_seconds: times of kernels by name; those of this simulator's own model when absent.
      collective_seconds: times of collectives by name; those of the constants when absent.
    """

    def __init__(self, text: str, constants: EventConstants, kernel_seconds: dict[str, float] | None = None,
                 collective_seconds: dict[str, float] | None = None) -> None:
        self.constants, self.given, self.given_collectives = constants, kernel_seconds, collective_seconds
        self.bodies: dict[str, UnrolledBody] = {}
        self.entry, self.started = "", 0
        self._read(text)

    def exposed(self) -> tuple[float, float]:
        """(seconds of the step, exposed)."""
        tasks: deque[tuple[str, int, float]] = deque()
        self._unroll(self.entry, [None], tasks)
        computing = sum(seconds for what, _, seconds in tasks if what == "kernel")
        total = self._advance(tasks)
        return total, total - computing

    # ---- events

    def _advance(self, tasks: deque[tuple[str, int, float]]) -> float:
        """Both streams from event to event; a kernel's rate changes when the other stream becomes busy or idle."""
        now, kernel_left, waiting = 0.0, 0.0, -1
        queue: deque[list] = deque()
        while tasks or kernel_left or waiting >= 0:  # Ends: each round ends a kernel or collective, or takes a task.
            if not kernel_left and waiting < 0:
                what, number, seconds = tasks.popleft()
                if what == "kernel":
                    kernel_left = seconds
                elif what == "start":
                    queue.append([number, seconds])
                elif any(each[0] == number for each in queue):
                    waiting = number
                continue
            rate = 1 / (1 + self.constants.slowdown) if queue else 1.0
            until = min(kernel_left / rate if kernel_left else math.inf, queue[0][1] if queue else math.inf)
            now += until
            if kernel_left:
                kernel_left = 0.0 if until >= kernel_left / rate else kernel_left - until * rate
            if queue:
                queue[0][1] -= until
                if queue[0][1] <= 1e-15:
                    waiting = -1 if queue.popleft()[0] == waiting else waiting
        return now

    def _unroll(self, name: str, arguments: list, tasks: deque[tuple[str, int, float]]) -> Any:
        """Appends everything a computation runs, loops turn by turn; returns its result.

        Values are numbers of collectives in flight, lists for tuples, None for anything else.
        """
        body, values = self.bodies[name], dict[str, Any]()
        for line in body.lines:
            plain, operands = line.op.removesuffix("-start"), [values.get(each) for each in line.operands]
            if line.op == "parameter":
                values[line.name] = arguments[int(line.inside)] if int(line.inside) < len(arguments) else None
            elif line.op == "tuple":
                values[line.name] = operands
            elif line.op == "get-tuple-element" and isinstance(operands[0], list):
                values[line.name] = operands[0][int(re.search(r"index=(\d+)", line.rest)[1])]
            elif line.op == "while":
                value = operands[0]
                for _ in range(int(re.search(r'"known_trip_count":\{"n":"(\d+)"', line.rest)[1])):
                    value = self._unroll(re.search(r"body=%([\w.\-]+)", line.rest)[1], [value], tasks)
                values[line.name] = value
            elif plain in _KINDS:
                values[line.name] = self.started = self.started + 1
                tasks.append(("start", self.started, self._collective(body, line, plain)))
                if plain == line.op or '"is_sync":true' in line.rest:
                    tasks.append(("done", self.started, 0.0))
            elif line.op.endswith("-done"):
                tasks.append(("done", -1 if operands[0] is None else operands[0], 0.0))
            elif line.op not in _FREE:
                tasks.append(("kernel", 0, self._kernel(body, line)))
        return values.get(body.root)

    # ---- times

    def _collective(self, body: UnrolledBody, line: EventLine, kind: str) -> float:
        if self.given_collectives is not None:
            return self.given_collectives[line.name]
        sent = sum(_bytes(body.by_name[name].shape) for name in line.operands)
        rows = re.search(r"replica_groups=\{((?:\{[\d,]+\},?)+)\}", line.rest)
        iota = re.search(r"replica_groups=(?:\[1,(\d+)\]<=\[\d+\]|mesh\['\w+'=(\d+)\])", line.rest)
        groups = tuple(tuple(map(int, row.split(","))) for row in re.findall(r"\{([\d,]+)\}", rows[1])) if rows \
            else (tuple(range(int(iota[1] or iota[2]))),)
        return self.constants.collective(kind, sent * len(groups[0]) if kind == "all-gather" else sent, groups)

    def _kernel(self, body: UnrolledBody, line: EventLine) -> float:
        if self.given is not None:
            return self.given[line.name]
        inner = self._inside(line)
        ops = {each.op for each in inner}
        reads = [_bytes(body.by_name[name].shape) for name in line.operands if name in body.by_name]
        made = _bytes(_made(line))
        updates = [each for each in inner if each.op == "dynamic-update-slice"]
        if updates:
            part = sum(_bytes(self.shapes[line.name][each.operands[1]]) for each in updates)
            reads, made = [min(size, part) for size in reads], min(made, part)
        elif ops & {"dynamic-slice", "slice", "gather"} and not ops & {"dot", "reduce"}:
            reads = [min(size, made) for size in reads]
        flops = sum(self._product(each, line.name) for each in inner if each.op == "dot")
        return self.constants.launch + max((sum(reads) + made) / self.constants.memory, flops)

    def _inside(self, line: EventLine) -> list[EventLine]:
        """What a kernel consists of, nested fusions included."""
        called = re.search(r"calls=%([\w.\-]+)", line.rest)
        if line.op not in ("fusion", "fusion-start") or not called:
            return [line]
        found: list[EventLine] = []
        shapes = self.shapes.setdefault(line.name, {})
        for each in self.bodies[called[1]].lines:
            shapes[each.name] = each.shape
            found += self._inside(each) if each.op == "fusion" else [each]
            if each.op == "fusion":
                shapes |= self.shapes.get(each.name, {})
        return found

    def _product(self, dot: EventLine, kernel: str) -> float:
        """Seconds of a matrix product: 2 m n k for each of its batch, k from the sizes of all three."""
        shapes = self.shapes[kernel]
        left, right, made = (_elements(text) for text in (*(shapes[name] for name in dot.operands[:2]), dot.shape))
        dims = re.search(r"lhs_batch_dims=\{([\d,]*)\}", dot.rest)
        sizes = [int(d) for d in re.search(r"\[([\d,]*)\]", shapes[dot.operands[0]])[1].split(",")]
        batch = math.prod(sizes[int(d)] for d in dims[1].split(",")) if dims else 1
        dtype = shapes[dot.operands[0]].split("[")[0]
        return 2 * made * math.sqrt(left * right / (made * batch)) / self.constants.flops[dtype]

    # ---- reading

    def _read(self, text: str) -> None:
        self.shapes: dict[str, dict[str, str]] = {}
        body: UnrolledBody | None = None
        for raw in text.split("\n"):
            if raw.endswith("{") and raw.startswith(("%", "ENTRY")):
                name = re.search(r"%([\w.\-]+)", raw)[1]
                body = self.bodies[name] = UnrolledBody()
                self.entry = name if raw.startswith("ENTRY") else self.entry
            elif raw.startswith("}"):
                body = None
            elif body is not None and (found := re.match(r"  (ROOT )?%([\w.\-]+) = (.*)", raw)):
                line = _line(found[2], found[3])
                body.lines.append(line)
                body.by_name[line.name] = line
                body.root = line.name if found[1] else body.root


def _made(line: EventLine) -> str:
    """The result of a kernel; of a start, ``((operands), result, context)``."""
    if not line.op.endswith("-start"):
        return line.shape
    parts = line.shape.removeprefix("(")
    return parts[_outside(parts, ",", 0) + 1:]


def _line(name: str, text: str) -> EventLine:
    """Shape, op, operands and the rest: brackets are counted, no pattern."""
    end = _outside(text, " ", 0)
    shape, rest = text[:end], text[end + 1:]
    op, _, inside = rest.partition("(")
    close = _outside(inside, ")", 1)
    return EventLine(name, shape, op, inside[:close], re.findall(r"%([\w.\-]+)", inside[:close]), inside[close + 1:])


def _outside(text: str, wanted: str, depth: int) -> int:
    """Where a character stands outside of brackets; ``depth`` brackets are open before the text."""
    for place, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark == wanted and depth == 0:
            return place
    return len(text)


def _arrays(shape: str) -> list[tuple[str, int]]:
    return [(dtype, math.prod(int(d) for d in dims.split(",") if d))
            for dtype, dims in re.findall(r"([a-z]+\d*)\[([\d,]*)\]", shape)]


def _bytes(shape: str) -> int:
    return sum(_SIZES[dtype] * count for dtype, count in _arrays(shape))


def _elements(shape: str) -> int:
    return _arrays(shape)[0][1]
