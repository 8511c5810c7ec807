"""Sizes and times as people write them."""

from __future__ import annotations

import re

from hlorewrite.errors import UsageError

UNITS = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12,
         "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def parse_bytes(text: str) -> int:
    """Reads a size: ``1GiB``, ``64 MB``, ``4096``.

    Args:
      text: a number with an optional unit.

    Returns:
      Bytes.

    Raises:
      UsageError: not a size, or negative.

    Example:
      >>> parse_bytes("1.5KiB")
      1536
    """
    found = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].lower() not in UNITS:
        raise UsageError(f'"{text}" is not a size', hint='write it like "1GiB", "64MB" or "4096"')
    size = float(found[1]) * UNITS[found[2].lower()]
    if size < 0:
        raise UsageError(f"a size of {text.strip()}", hint="sizes are not negative")
    if size != int(size):
        raise UsageError(f"{text.strip()} is not a whole number of bytes", hint="round it")
    return int(size)


def format_bytes(size: float) -> str:
    """A size in a binary unit.

    Example:
      >>> format_bytes(3 << 20)
      '3.00 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            return f"{size:.0f} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def format_seconds(time: float) -> str:
    """A time in a unit that fits.

    Example:
      >>> format_seconds(0.00123)
      '1.23 ms'
    """
    if time == 0:
        return "0"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if abs(time) * scale >= 1 or unit == "us":
            return f"{time * scale:.3g} {unit}" if abs(time) * scale < 1000 else f"{time * scale:.0f} {unit}"
    raise AssertionError("unreachable")
