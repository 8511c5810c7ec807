"""XLA flags that a user sets for all compilations of a process, in the environment variable ``XLA_FLAGS``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "XLA_FLAGS"


def users_flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The flags in ``XLA_FLAGS``, without dashes. An option of one compilation would take their place.

    Args:
      environment: that of this process by default.

    Returns:
      Values by name; ``true`` for a flag without a value. XLA takes a text that does not begin with a dash for the name
      of a file; what of it cannot be read has no flags, as XLA says itself.

    Example:
      >>> users_flags({"XLA_FLAGS": "--xla_gpu_autotune_level=0  --xla_dump_hlo_as_text"})
      {'xla_gpu_autotune_level': '0', 'xla_dump_hlo_as_text': 'true'}
    """
    text = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    try:
        if text and not text.startswith("-"):
            text = Path(text).read_text()
        words = shlex.split(text)
    except (OSError, ValueError):  # ValueError: a quote is not closed, or the file is not text
        return {}
    pairs = (word.lstrip("-").partition("=") for word in words if word.startswith("-"))
    return {name: value if equals else "true" for name, equals, value in pairs}
