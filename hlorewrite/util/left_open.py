"""Options that a user left open."""

from __future__ import annotations


def left_open(**given: object) -> frozenset[str]:
    """Names of options that were not given.

    Args:
      **given: options; None or an empty text for one that was not given.

    Example:
      >>> sorted(left_open(passes=None, keep="always", topology=""))
      ['passes', 'topology']
    """
    return frozenset(name for name, value in given.items() if value is None or value == "")
