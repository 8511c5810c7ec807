"""Remarks that say what the communication of their line adds to a step under XLA alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hlorewrite.rules.events import Remark
from hlorewrite.util.sizes import format_seconds


def with_exposed(remarks: Iterable[Remark], exposed_at: Mapping[str, float]) -> tuple[Remark, ...]:
    """Adds exposed time to the remarks of lines that have some.

    Args:
      remarks: of passes.
      exposed_at: seconds by line, of XLA's schedule of the user's own module.

    Returns:
      All remarks, in their order.

    Example:
      >>> made = with_exposed([Remark("missed", "comm-shift", "it is needed", "train.py:7:3")], {"train.py:7:3": 5e-4})
      >>> made[0].sentence
      'it is needed; under XLA alone the collectives of this line expose 500 us a step'
    """
    return tuple(replace(remark, sentence=f"{remark.sentence}; under XLA alone the collectives of this line expose "
                                          f"{format_seconds(exposed_at[remark.location])} a step")
                 if remark.location in exposed_at else remark for remark in remarks)
