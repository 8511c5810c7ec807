"""The subject of a remark, in the user's terms: the user's line, the library's line, the parameter, the tensor's
type.
"""

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
