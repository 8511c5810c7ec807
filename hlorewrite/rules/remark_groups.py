"""Groups remarks of one cause: a step of twelve layers gives the same reason twelve times."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hlorewrite.rules.listener import Remark

_FEWEST = 3
"""From this number on, remarks of one cause are printed as one; two stay separate."""
_SHOWN = 3
"""How many places are printed after the first; ``--json`` and ``report.remarks`` have all."""
_PLACE = re.compile(r" at \S+:\d+:\d+")


@dataclass(frozen=True)
class RemarkGroup:
    """Remarks that say the same about several places.

    Attributes:
      remarks: at least one, in the order in which they were made.
    """

    remarks: tuple[Remark, ...]

    @property
    def first(self) -> Remark:
        """The remark that is printed for the whole group."""
        return self.remarks[0]

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The other places: source line, parameter and type, as far as they are known; each once.

        Example:
          >>> RemarkGroup((Remark("blocked", "r", "no", "a.py:1"), Remark("blocked", "r", "no", "a.py:2"))).elsewhere
          ('a.py:2',)
        """
        places = dict.fromkeys(f"{each.location} [{each.about}]" if each.about else each.location
                               for each in self.remarks[1:])
        return tuple(places)

    def __str__(self) -> str:
        places = self.elsewhere
        if not places:
            return str(self.first)
        more = len(places) - _SHOWN
        rest = f" and {more} other place{'' if more == 1 else 's'}" if more > 0 else ""
        return f"{self.first}\n  the same at {', '.join(places[:_SHOWN])}{rest}"


def grouped_remarks(remarks: Iterable[Remark]) -> tuple[RemarkGroup, ...]:
    """Remarks by cause: kind, rule, sentence and advice.

    Args:
      remarks: the remarks, in any order.

    Returns:
      Groups, in the order of their first remarks; remarks of a cause that has only one or two stay apart.

    Example:
      >>> several = [Remark("blocked", "comm-shift", "its sum is read", f"train.py:{line}:1") for line in range(7)]
      >>> print(*grouped_remarks(several))
      train.py:0:1: remark: blocked: comm-shift: its sum is read
        the same at train.py:1:1, train.py:2:1, train.py:3:1 and 3 other places
    """
    by_cause: dict[tuple[str, ...], list[Remark]] = {}
    order: list[tuple[Remark, list[Remark]]] = []
    for remark in remarks:
        sentence = _PLACE.sub("", remark.sentence)  # the op at fault differs from place to place
        same = by_cause.setdefault((remark.kind, remark.rule, sentence, remark.advice), [])
        same.append(remark)
        order.append((remark, same))
    return tuple(RemarkGroup(tuple(same) if len(same) >= _FEWEST else (remark,)) for remark, same in order
                 if len(same) < _FEWEST or remark is same[0])
