"""Converts remarks of passes to data in a plan file, and back."""

import re
from dataclasses import fields
from typing import get_args

from hlorewrite.errors import PlanMismatch
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.rules.listener import Remark, RemarkKind

_PLACES = ("location", "culprit_location", "rule_location")


def remarks_data(remarks: tuple[Remark, ...]) -> tuple[dict[str, str], ...]:
    """Remarks with source lines without folders; what is empty is left out.

    Example:
      >>> remarks_data((Remark("applied", "fold", "one call", "/home/me/train.py:3:1"),))
      ({'kind': 'applied', 'rule': 'fold', 'sentence': 'one call', 'location': 'train.py:3:1'},)
    """
    return tuple({each.name: _shown(each.name, value) for each in fields(remark)
                  if (value := str(getattr(remark, each.name)))} for remark in remarks)


def remarks_of(document: PlanDocument, name: str) -> tuple[Remark, ...]:
    """The remarks of the passes when the plan was made.

    Raises:
      PlanMismatch: the plan does not contain that.
    """
    try:
        remarks = tuple(Remark(**each) for each in document.rewrites)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise PlanMismatch("is not a complete plan", location=name) from None
    if any(remark.kind not in get_args(RemarkKind) for remark in remarks):
        raise PlanMismatch("is not a complete plan", location=name)
    return remarks


def _shown(field: str, value: str) -> str:
    return short_place(value) if field in _PLACES else short_places(value)


# ---- source lines without the folders of this machine, so that plans made in different checkouts are equal


_IN_MODULE = re.compile(r'"(?:[^"\\\n]|\\.)*?([^"/\\\n]+)":(\d+):(\d+)')
_IN_SENTENCE = re.compile(r"(?<![\w.:])/(?:[^\s:/]+/)+(?=[^\s:/]+)")


def without_folders(text: str) -> str:
    """A module's text whose locations name files without their folders.

    Example:
      >>> without_folders('loc("/home/me/train.py":10:3) {name = "a/b"}')
      'loc("train.py":10:3) {name = "a/b"}'
    """
    return _IN_MODULE.sub(r'"\1":\2:\3', text)


def short_places(sentence: str) -> str:
    """A sentence whose absolute paths are file names only.

    Example:
      >>> short_places("/home/me/train.py:10:3: in /opt/lib/flax/linear.py:4, 2/3 of a/b")
      'train.py:10:3: in linear.py:4, 2/3 of a/b'
    """
    return _IN_SENTENCE.sub("", sentence)


def short_place(location: str) -> str:
    """One source line, ``folder/file.py:line:col``, without its folder; relative ones too, as they depend on where a
    program is started.

    Example:
      >>> short_place("../src/train.py:10:3"), short_place("?")
      ('train.py:10:3', '?')
    """
    return location.rpartition("/")[2]
