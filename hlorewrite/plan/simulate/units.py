"""Times as people write them."""

from __future__ import annotations

import re

from hlorewrite.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def parse_seconds(text: str) -> float:
    """Reads a time: ``1.5ms``, ``20us``, ``0.1``.

    Args:
      text: a number with an optional unit; without one it is in seconds.

    Returns:
      Seconds.

    Raises:
      UsageError: not a time, or negative.

    Example:
      >>> parse_seconds("1.5ms")
      0.0015
    """
    found = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2] not in _UNITS:
        raise UsageError(f'"{text}" is not a time', hint='write it like "1.5ms", "20us" or "0.1s"')
    if found[1].startswith("-"):
        raise UsageError(f"a time of {text.strip()}", hint="times are not negative")
    return float(found[1]) * _UNITS[found[2]]
