"""The passes that packages above the pass manager register: name to ``module:class``.

Nothing is imported before a pass is asked for, so this file costs ``import hlorewrite`` nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

REGISTERED: dict[str, str] = {}


def register_passes(passes: Mapping[str, str]) -> None:
    """Makes passes known by name.

    Args:
      passes: name to ``module:class``.
    """
    REGISTERED.update(passes)
