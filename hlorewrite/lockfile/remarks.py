"""What the passes said, as data in a plan file, and back."""

from dataclasses import fields
from typing import get_args

from hlorewrite.errors import PlanMismatch
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.lockfile.locations import short_place, short_places
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
    """What the passes said when a plan was made.

    Raises:
      PlanMismatch: the plan does not hold that.
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
