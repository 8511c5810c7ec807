"""The environment of a match, a list with a slot for each name, and its literals."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlorewrite.errors import RuleCheckError
from hlorewrite.ir.binding import ir
from hlorewrite.rules.syntax import ast

CONTEXT = 0
Environment = list[Any]


class _Absent:
    """The value of an absent optional attribute; equal only to itself."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass
class Slots:
    """Slot numbers of names (with sigils), and which names stand for ops.

    Attributes:
      numbers: slot of each name.
      ops: slot of each op name, without ``%``.
      results: for names of single results: the op's slot and the result's number.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    ops: dict[str, int] = field(default_factory=dict)
    results: dict[str, tuple[int, int]] = field(default_factory=dict)

    def slot(self, name: str) -> int:
        """The slot of a name, made on first use."""
        return self.numbers.setdefault(name, len(self.numbers) + 1)

    def empty(self, context: Any) -> Environment:
        """An environment in which only the context is set."""
        return [context] + [None] * len(self.numbers)


# ---- literals of rule files and MLIR attributes: compared in ``match``, built in ``rewrite``


# Flags that MLIR writes as a unit attribute, present or absent, and not as a truth value.
UNIT_ATTRIBUTES = frozenset({"use_global_device_ids"})


def attribute_matches(attribute: Any, wanted: ast.Literal | ast.Mlir, context: ir.Context) -> bool:
    """Whether an attribute (or ``ABSENT``) is what a literal says; ``false`` also matches an absent flag."""
    if attribute is ABSENT:
        return isinstance(wanted, ast.Literal) and wanted.value is False
    if isinstance(wanted, ast.Mlir):
        return attribute == parse_mlir(wanted.text, context)
    value = python_value(attribute)
    return type(value) is type(wanted.value) and value == wanted.value


def python_value(attribute: ir.Attribute) -> Any:
    """A simple attribute as a Python value: truth value, number, text or tuple of integers; None for others."""
    if isinstance(attribute, ir.BoolAttr):
        return bool(attribute.value)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.UnitAttr):
        return True
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return tuple(attribute)
    if isinstance(attribute, ir.DenseIntElementsAttr):
        table = np.array(attribute)
        return tuple(int(x) for x in table) if table.ndim == 1 else None
    return None


def to_attribute(value: Any, name: str, context: ir.Context) -> ir.Attribute | None:
    """The MLIR attribute for the value of an expression; None when it should be absent.

    Args:
      value: an attribute, ``ABSENT``, or a Python value.
      name: the attribute's name; some flags are unit attributes.
      context: the MLIR context.
    """
    if value is ABSENT or value is None:
        return None
    if isinstance(value, ir.Attribute):
        return value
    with context:
        if isinstance(value, bool):
            if name in UNIT_ATTRIBUTES:
                return ir.UnitAttr.get() if value else None
            return ir.BoolAttr.get(value)
        if isinstance(value, int):
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        if isinstance(value, str):
            return ir.StringAttr.get(value)
        if isinstance(value, ir.Type):
            return ir.TypeAttr.get(value)
        return ir.DenseI64ArrayAttr.get([int(x) for x in value])


def parse_mlir(text: str, context: ir.Context) -> ir.Attribute:
    """Parses text between back-quotes.

    Raises:
      RuleCheckError: it is not an attribute.
    """
    try:
        return ir.Attribute.parse(text, context)
    except ir.MLIRError as error:
        reason = str(error).splitlines()[-1].strip() or "MLIR cannot parse it"
        raise RuleCheckError(f"`{text}` is not an MLIR attribute ({reason})", hint="correct the text") from None
