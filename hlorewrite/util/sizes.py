"""Sizes, times and memory budgets as people write them."""

import re
from collections.abc import Callable
from typing import Literal

from hlorewrite.errors import UsageError

# ---- sizes and times

# Sizes and times as people write them.


_BYTES = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12,
          "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z]*)\s*", re.ASCII)
_LIMIT = 2**63
MOST_DEVICES = 1 << 20
"""The most devices of a module, mesh or cluster that is read: tables have one row per device."""
_MOST_DIGITS = 17
"""Digits of a number of 64 bits."""


def parse_bytes(text: str) -> int:
    """Reads a size: ``1GiB``, ``64 MB``, ``64M``, ``4096``.

    A unit is a letter k, M, G or T. Alone or with ``B`` it is a power of 1000, with ``iB`` a power of 1024: ``64M`` and
    ``64MB`` are 64 000 000 bytes, ``64MiB`` is 67 108 864. Upper and lower case mean the same. A number without a unit
    is in bytes.

    Args:
      text: a number with an optional unit.

    Returns:
      Bytes.

    Raises:
      UsageError: not a size, negative, not a whole number of bytes, or too large for 63 bits.

    Example:
      >>> parse_bytes("1.5KiB"), parse_bytes("64M") == parse_bytes("64MB") == 64 * 10**6
      (1536, True)
    """
    from fractions import Fraction
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if not match or match[2].lower() not in _BYTES:
        raise UsageError(f'"{text}" is not a size', hint='write it like "1GiB", "64MB" or "4096"')
    size = Fraction(match[1]) * _BYTES[match[2].lower()]
    if size < 0:
        raise UsageError(f"a size of {text.strip()}", hint="sizes are not negative")
    if size >= _LIMIT:
        raise UsageError(f"a size of {text.strip()}", hint="sizes are below 8388608 TiB")
    if size.denominator != 1:
        raise UsageError(f"{text.strip()} is not a whole number of bytes", hint="round it")
    return int(size)


def exact_bytes(size: int) -> str:
    """A size that ``parse_bytes`` reads back: in the largest binary unit that divides it.

    Args:
      size: bytes.

    Returns:
      The size without a space, as an option value.

    Example:
      >>> exact_bytes(8 << 30), exact_bytes(1025), exact_bytes(0)
      ('8GiB', '1025', '0')
    """
    unit = next((unit for unit in ("TiB", "GiB", "MiB", "KiB") if size and size % _BYTES[unit.lower()] == 0), "")
    return f"{size // _BYTES[unit.lower()]}{unit}"


def format_bytes(size: float, decimals: int = 2) -> str:
    """A size in a binary unit.

    Args:
      size: bytes.
      decimals: digits after the point; none are shown of a number of bytes below 1 KiB.

    Returns:
      The size with a space before the unit.

    Example:
      >>> format_bytes(3 << 20), format_bytes(1536, decimals=1), format_bytes(12), format_bytes((1 << 20) - 1)
      ('3.00 MiB', '1.5 KiB', '12 B', '1.00 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        number = f"{size:z.{0 if unit == 'B' else decimals}f}"
        if not abs(float(number)) >= 1024 or unit == "TiB":  # as printed: 1023.9999 KiB are 1.00 MiB
            return f"{number} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def told_apart(one: float, other: float, form: Callable[[float, int], str], digits: int) -> tuple[str, str]:
    """Two numbers with just enough digits to show that they differ.

    Args:
      one: a number.
      other: another one; where the two are equal, so are the texts.
      form: prints a number with so many digits.
      digits: the smallest number of digits.

    Example:
      >>> told_apart(19 << 30, (19 << 30) + (40 << 20), format_bytes, 1)
      ('19.00 GiB', '19.04 GiB')
    """
    for more in range(digits, digits + _MOST_DIGITS):
        texts = form(one, more), form(other, more)
        if one == other or texts[0] != texts[1]:
            return texts
    return repr(one), repr(other)


def part_of(size: float, whole: float) -> str:
    """A size out of another one, with the unit written once if both have the same.

    Example:
      >>> part_of(3 << 30, 4 << 30), part_of(3 << 20, 4 << 30)
      ('3.0 of 4.0 GiB', '3.0 MiB of 4.0 GiB')
    """
    of_size, of_whole = told_apart(size, whole, format_bytes, 1)
    amount, unit = of_size.rsplit(" ", 1)
    return f"{amount} of {of_whole}" if of_whole.endswith(f" {unit}") else f"{of_size} of {of_whole}"


def step_saving(after: float, before: float, whose: str) -> str:
    """How much shorter a step is than another one.

    Args:
      after: its seconds.
      before: those of the other one.
      whose: the name of the other one.

    Example:
      >>> step_saving(0.16, 0.2, "XLA alone")
      "0.80 of XLA alone's step: 160 ms, not 200 ms"
    """
    steps = told_apart(after, before, format_seconds, 3)
    return f"{after / before:.2f} of {whose}'s step: {steps[0]}, not {steps[1]}"


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
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if not match or match[2] not in _SECONDS:
        raise UsageError(f'"{text}" is not a time', hint='write it like "1.5ms", "20us" or "0.1s"')
    if match[1].startswith("-"):
        raise UsageError(f"a time of {text.strip()}", hint="times are not negative")
    return float(match[1]) * _SECONDS[match[2]]


def format_seconds(time: float, digits: int = 3) -> str:
    """A time in a unit that fits.

    Args:
      time: seconds.
      digits: significant digits; whole seconds are always shown in full.

    Returns:
      The time with a space before the unit.

    Example:
      >>> format_seconds(0.00123), format_seconds(0.99974)
      ('1.23 ms', '1 s')
    """
    if time == 0:
        return "0"
    if time != time:
        return "nan"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        number = f"{time * scale:.{digits}g}"
        if abs(float(number)) >= 1 or unit == "us":  # as printed: 0.99974 s are 1 s
            return f"{time * scale:.0f} {unit}" if abs(float(number)) >= 10**digits else f"{number} {unit}"
    raise AssertionError("unreachable")


# ---- memory budgets as people write them: one rule for the decorator, ``patch_jit`` and the command line


MemoryBudget = int | Literal["auto"] | None
"""Bytes; ``auto`` for what the original leaves free on the device; None for the limits of the passes."""


def checked_budget(budget: str | int | None) -> MemoryBudget:
    """A memory budget.

    Args:
      budget: text with a unit, ``auto``, bytes as a number, or None for the limits of the passes.

    Raises:
      UsageError: it is negative, has no unit, or is not a size.

    Example:
      >>> checked_budget("8GiB"), checked_budget("0"), checked_budget(0), checked_budget("auto"), checked_budget(None)
      (8589934592, 0, 0, 'auto', None)
      >>> checked_budget("8")
      Traceback (most recent call last):
      hlorewrite.errors.UsageError: a memory budget of "8" has no unit; write "8GiB", say
    """
    if isinstance(budget, str):
        if budget.strip() == "auto":
            return "auto"
        if budget.strip().isdigit() and int(budget) > 0:
            raise UsageError(f'a memory budget of "{budget}" has no unit', hint='write "8GiB", say')
        return parse_bytes(budget)
    if budget is not None and budget < 0:
        raise UsageError(f"a memory budget of {budget} is negative", hint='write "8GiB", say, or 0')
    return budget


def size_of_budget(text: str) -> int:
    """A memory budget on the command line, for commands that do not know ``auto``.

    Raises:
      UsageError: it is ``auto``, negative, has no unit, or is not a size.

    Example:
      >>> size_of_budget("8GiB")
      8589934592
    """
    budget = checked_budget(text)
    if not isinstance(budget, int):
        raise UsageError(f'a memory budget of "{text}" is not known here', hint='write "8GiB", say')
    return budget
