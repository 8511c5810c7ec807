"""The shardings that HLO text states for the results of an instruction."""

from __future__ import annotations

import re

from hlorewrite.hlo.parse import HloInstruction
from hlorewrite.hlo.shapes import split_top

_COMMENT = re.compile(r"/\*.*?\*/")


def shardings(instruction: HloInstruction) -> list[str]:
    """How each result of an instruction is sharded; empty if nothing is said.

    Example:
      >>> from hlorewrite.hlo.parse import HloInstruction
      >>> shardings(HloInstruction("t", "(f32[2], f32[4])", "tuple", (), ", sharding={{replicated}, {replicated}}"))
      ['{replicated}', '{replicated}']
    """
    parts = split_top(_COMMENT.sub("", instruction.attributes))
    text = next((part.removeprefix("sharding=") for part in parts if part.startswith("sharding=")), "")
    return split_top(text[1:-1]) if text.startswith("{{") else [text] * bool(text)
