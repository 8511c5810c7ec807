"""Draws two simulated schedules of a step below each other, on one time axis, as SVG.

``python tools/docs/timeline_picture.py BEFORE.json AFTER.json -o FILE.svg`` reads two files that ``hlorewrite timeline
--perfetto`` wrote. Equal inputs give the same bytes. Exit code 2 when an input cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from hlorewrite.ir.collectives import HLO_KINDS

WIDTH, LEFT, RIGHT, ROW = 860, 20, 20, 26
_COLORS = {"compute": "#5b84b8", "communication": "#c8502f"}
_TEXT = "font-family='system-ui, sans-serif' fill='#223'"


@dataclass(frozen=True)
class Bar:
    """A stretch of one stream.

    Attributes:
      kind: ``compute`` or ``communication``.
      begin_us: start, in microseconds from the start of the step.
      end_us: end, in the same unit.
    """

    kind: str
    begin_us: float
    end_us: float


def bars_of(events: Iterable[dict[str, object]], joined_us: float) -> list[Bar]:
    """The bars of a trace; bars of one kind with a gap of at most ``joined_us`` between them are one. Waits have none.

    Args:
      events: events of the trace event format.
      joined_us: gap in microseconds below which bars are joined.

    Example:
      >>> kernel = {"ph": "X", "ts": 0, "dur": 2, "args": {"task": "kernel"}}
      >>> bars_of([kernel, kernel | {"ts": 2, "dur": 1}], 0.5)
      [Bar(kind='compute', begin_us=0.0, end_us=3.0)]
    """
    bars: list[Bar] = []
    for kind in _COLORS:
        of_kind = sorted((float(str(e["ts"])), float(str(e["dur"]))) for e in events
                         if e.get("ph") == "X" and _kind(e) == kind)
        for begin, length in of_kind:
            if bars and bars[-1].kind == kind and begin - bars[-1].end_us <= joined_us:
                bars[-1] = Bar(kind, bars[-1].begin_us, max(bars[-1].end_us, begin + length))
            else:
                bars.append(Bar(kind, begin, begin + length))
    return bars


def _kind(event: dict[str, object]) -> str:
    """``compute``, ``communication``, or the task of an event that is neither, such as a wait."""
    arguments = event.get("args")
    task = str(arguments.get("task", "")) if isinstance(arguments, dict) else ""
    if task in HLO_KINDS:
        return "communication"
    return "compute" if task == "kernel" else task


def picture(rows: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """The SVG text of some schedules.

    Args:
      rows: title and bars of each schedule, from top to bottom.
    """
    longest = max(bar.end_us for _, bars in rows for bar in bars)
    scale = (WIDTH - LEFT - RIGHT) / longest
    out = [f"<rect x='0.5' y='0.5' width='{WIDTH - 1}' height='{_height(rows) - 1}' rx='8' "
           "fill='#fcfcfa' stroke='#ccc'/>"]
    for number, (title, bars) in enumerate(rows):
        top = 34 + number * 70
        step, sent = max(bar.end_us for bar in bars), sum(b.end_us - b.begin_us for b in bars if b.kind != "compute")
        out.append(f"<text x='{LEFT}' y='{top - 10}' font-size='14' {_TEXT}>{escape(title)}: step {step / 1e3:.2f} ms, "
                   f"{sent / 1e3:.2f} ms of communication</text>")
        for bar in bars:
            below = 0 if bar.kind == "compute" else ROW / 2
            out.append(f"<rect x='{LEFT + bar.begin_us * scale:.2f}' y='{top + below:g}' height='{ROW / 2:g}' "
                       f"width='{max((bar.end_us - bar.begin_us) * scale, 0.5):.2f}' fill='{_COLORS[bar.kind]}'/>")
    base = _height(rows) - 14
    for number, (kind, color) in enumerate(_COLORS.items()):
        out.append(f"<rect x='{LEFT + number * 130}' y='{base - 10}' width='12' height='12' fill='{color}'/>"
                   f"<text x='{LEFT + 18 + number * 130}' y='{base}' font-size='12' {_TEXT}>{kind}</text>")
    title = "; ".join(escape(name) for name, _ in rows)
    head = (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {_height(rows)}' width='{WIDTH}' "
            f"height='{_height(rows)}' role='img'>")
    return "\n".join([head, f"<title>Schedules of a step: {title}</title>", *out, "</svg>", ""])


def _height(rows: Sequence[object]) -> int:
    return 34 + 70 * len(rows) + 10


def main(arguments: list[str] | None = None) -> int:
    """Draws the picture; 2 when an input cannot be read."""
    parser = argparse.ArgumentParser(description="draw two simulated schedules of a step as SVG")
    parser.add_argument("before", metavar="BEFORE", help="output of hlorewrite timeline --perfetto")
    parser.add_argument("after", metavar="AFTER", help="the same for the rewritten step")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the SVG file")
    args = parser.parse_args(arguments)
    try:
        traces = [json.loads(Path(name).read_text("utf-8"))["traceEvents"] for name in (args.before, args.after)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"timeline_picture: cannot read a trace: {error}", file=sys.stderr)
        return 2
    longest = max((float(str(e["ts"])) + float(str(e["dur"])) for trace in traces for e in trace if e.get("ph") == "X"),
                  default=1.0)
    bars = [bars_of(trace, longest / WIDTH) for trace in traces]
    Path(args.output).write_text(picture([("XLA alone", bars[0]), ("rewritten", bars[1])]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
