"""What changed between the run that made a plan and the one that would replay it, in one line."""

from __future__ import annotations

from collections.abc import Mapping

_LONG = 60
_MOST = 240
_DIGEST = 64


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What differs, one entry each: name, what the plan was made for, and what this run has.

    Args:
      old: what the plan was made for.
      new: the same of this run.

    Example:
      >>> differences({"jaxlib": "0.10.1", "keep": "better"}, {"jaxlib": "0.10.2", "keep": "better"})
      ['jaxlib 0.10.1 -> 0.10.2']
      >>> differences({}, {"keep": "better"})
      ['keep (none) -> better']
    """
    names = sorted({*old, *new})
    changed = [(name, old.get(name, ""), new.get(name, "")) for name in names if old.get(name, "") != new.get(name, "")]
    return [f"{name} {before or '(none)'} -> {after or '(none)'}"
            for name, before, after in ((name, *_shortened(a, b)) for name, a, b in changed)]


def _shortened(old: str, new: str) -> tuple[str, str]:
    """Digests by their first digits; of long lists what is between the parts both have in common."""
    if len(old) == len(new) == _DIGEST:
        return old[:12], new[:12]
    if max(len(old), len(new)) <= _LONG:
        return old, new
    one, other = old.split(","), new.split(",")
    start = _in_common(one, other)
    end = _in_common(one[start:][::-1], other[start:][::-1])
    shown = [",".join([*(["..."] if start else []), *parts[start:len(parts) - end], *(["..."] if end else [])])[:_MOST]
             for parts in (one, other)]
    return shown[0], shown[1]


def _in_common(first: list[str], second: list[str]) -> int:
    """How many parts two lists begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
