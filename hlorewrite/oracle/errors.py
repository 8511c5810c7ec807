"""The oracle's refusal."""

from __future__ import annotations

from hlorewrite.errors import HlorewriteError


class CannotExecute(HlorewriteError):
    """The reference interpreter, or running devices in lockstep, does not cover something in the module."""
