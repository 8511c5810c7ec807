"""The subject of a remark, in the user's terms: the user's line, the library's line, the parameter, the tensor's
type. Remarks of one cause are one group.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hlorewrite.analysis.parameter_provenance import ParameterProvenance
from hlorewrite.ir import BY_OP, COLLECTIVES, UNKNOWN, View, ir, op_key
from hlorewrite.rules.listener import Remark, RemarkKind


@dataclass(frozen=True)
class RemarkSubject:
    """The subject of a remark.

    Attributes:
      location: the user's own source line, ``file:line:col``.
      framework: the line of the library that made the op; empty when that is the user's own.
      op: the op's name.
      parameter: the path of the argument of the step that a collective belongs to; empty when it is not known.
      type: the type of the larger side of a collective, or of an op's first result; empty without one.
    """

    location: str
    framework: str = ""
    op: str = ""
    parameter: str = ""
    type: str = ""


class RemarkSubjects:
    """The subjects of the ops of one module.

    Parameters are looked for when the first remark is made. Ops that passes make later have none until the number of
    edits has doubled, so the cost of remarks stays linear in the edits.

    Args:
      view: the module.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._names: dict[tuple[int, int], str] = {}
        self._looked_at = -1
        self._paths: ParameterProvenance | None = None

    def of(self, op: ir.Operation) -> RemarkSubject:
        """The subject of a remark about an op."""
        lines = self.view.source_lines(op)
        place = lines.own if lines.own != UNKNOWN else self.view.place(op)
        return RemarkSubject(place, lines.framework, op.name, self._parameter(op), _type(op))

    def accumulator(self, value: ir.Value) -> str:
        """The path of the step's argument that a value represents, if it is only read to update it.

        Args:
          value: a tensor.

        Returns:
          The path; empty for other values, and for scalars: counters and metrics.
        """
        if self._paths is None:
            self._paths = ParameterProvenance(self.view)
        return self._paths.accumulator(value)

    def _parameter(self, op: ir.Operation) -> str:
        if op.name not in COLLECTIVES:
            return ""
        key = self._key(op)
        if key not in self._names and self.view.module.edits >= 2 * self._looked_at:
            self._looked_at = max(1, self.view.module.edits)
            paths = self._paths = ParameterProvenance(self.view)
            self._names.update((self._key(each), paths.of(each)) for each in self.view.ops(*COLLECTIVES))
        return self._names.get(key, "")

    def _key(self, op: ir.Operation) -> tuple[int, int]:
        """A key that stays valid when an erased collective's address is reused."""
        return op_key(op), self.view.erased.get(op_key(op), 0)


def _type(op: ir.Operation) -> str:
    row = BY_OP.get(op.name)
    values = op.operands if row is not None and row.larger == "operand" else op.results
    return str(values[0].type) if len(values) else ""


def remark_about(subject: RemarkSubject, kind: RemarkKind, rule: str, sentence: str, *, culprit: str = "",
                 culprit_location: str = "", rule_location: str = "", advice: str = "") -> Remark:
    """A remark about a subject; the arguments are those of ``Remark``.

    Example:
      >>> subject = RemarkSubject("train.py:3:1", parameter="params['w']")
      >>> print(remark_about(subject, "applied", "fold", "two became one"))
      train.py:3:1: remark: applied: fold: two became one [params['w']]
    """
    return Remark(kind, rule, sentence, location=subject.location, op=subject.op, culprit=culprit,
                  culprit_location=culprit_location, rule_location=rule_location, parameter=subject.parameter,
                  type=subject.type, framework=subject.framework, advice=advice)


# ---- groups remarks of one cause: a step of twelve layers gives the same reason twelve times


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
