"""Memory budgets as people write them: one rule for the decorator, ``patch_jit`` and the command line."""

from typing import Literal

from hlorewrite.errors import UsageError
from hlorewrite.util.sizes import parse_bytes

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
