"""What a run decided: XLA alone next to the other ways to compile the step, as the command that ran printed it."""

from typing import Any

from hlorewrite.passmanager.trace import format as form
from hlorewrite.viewer.communication import rows_of
from hlorewrite.viewer.reading import Trace

_NUMBERS = ("step_s", "exposed_s", "calls", "executed_bytes", "wire_bytes", "temp_bytes", "memory_bytes", "room_bytes")
_MOST = 1e30
"""No number of a decision is larger than this; a damaged one may be infinite."""
_TEXTS = ("devices", "chosen", "reason", "saving")


def decision_of(trace: Trace) -> dict[str, Any] | None:
    """The decision of a trace; everything in it but texts and numbers is ignored.

    Args:
      trace: what could be read.

    Returns:
      ``devices``, ``chosen``, ``reason``, ``saving`` and ``rows``, XLA alone first; None if none was written.
    """
    content = trace.objects.get(form.DECISION)
    rows = rows_of(content or {}, "rows")
    if content is None or not rows:
        return None
    return {**{name: str(content.get(name) or "") for name in _TEXTS}, "rows": [_row(row) for row in rows]}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    known, fits = {name: _number(row.get(name)) for name in _NUMBERS}, row.get("fits")
    return {"name": str(row.get("name", "?")), **{name: str(row.get(name) or "") for name in ("verdict", "why")},
            "fits": fits if isinstance(fits, bool) else None, **known}


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    return None
