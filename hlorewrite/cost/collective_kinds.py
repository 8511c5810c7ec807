"""Kinds of collectives, and the calibrated constants of their model."""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.ir.collectives import TIMED_KINDS

KINDS = TIMED_KINDS


@functools.cache
def default_constants() -> Mapping[str, float]:
    """The calibrated constants, by name, as in ``data/collectives.toml``."""
    text = (Path(__file__).parent / "data" / "collectives.toml").read_text(encoding="utf-8")
    return MappingProxyType({name: float(value) for name, value in tomllib.loads(text).items()})


def check_kind(kind: str) -> None:
    """Refuses an unknown kind of collective.

    Raises:
      UsageError: the kind is not one of ``KINDS``.
    """
    if kind not in KINDS:
        raise UsageError(f'there is no collective "{kind}"', hint=did_you_mean(kind, KINDS))
