"""How much each op adds to the relative error of sums, from types and attributes alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlorewrite.analysis.groups import device_count, groups_of
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.rounding.elementwise_errors import ROUNDINGS
from hlorewrite.checks.reference.rounding.sums import body_op, product_of, reduction_of
from hlorewrite.checks.reference.rounding.units import float_format
from hlorewrite.checks.reference.rounding.windows import window_terms
from hlorewrite.ir import COLLECTIVES, REDUCING, View, ir, source_line
from hlorewrite.ops.attributes import scatter_numbers
from hlorewrite.ops.table import ROUNDS_NOTHING

_FIRST_ONLY = frozenset({"dynamic_slice", "pad", "gather"})
_ELEMENTS = ROUNDS_NOTHING - {"stablehlo.select"} | {"stablehlo.custom_call"}
_MOVING = frozenset(name.removeprefix("stablehlo.") for name in COLLECTIVES if name not in REDUCING)
_MARKS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape")


@dataclass(frozen=True)
class Summed:
    """What is known about a value without its elements.

    Attributes:
      key: the ops and inputs it is computed from, as a number.
      error: by how much it may be off, relative to the sum of the magnitudes of its terms, to first order; infinite
        where nothing is known.
      carried: how often a value that a loop carries is a factor of a term.
      longest: terms of the longest sum.
      wires: element types of the reductions between devices.
      ended: the op after which the error is no longer one of sums, with its line; empty if there is none.
      before: the error of the operands of that op.
    """

    key: int
    error: float = 0.0
    carried: float = 0.0
    longest: int = 0
    wires: frozenset[str] = frozenset()
    ended: str = ""
    before: float = 0.0

    @property
    def most(self) -> float:
        """The largest error of a sum on the path."""
        return max(self.error, self.before)


def merged(key: int, values: Sequence[Summed], *, product: bool = False) -> Summed:
    """The error of values that are terms of one sum, or factors of one product."""
    join = sum if product else max
    worst = max(values, key=lambda each: each.before, default=Summed(0))
    return Summed(key, float(join([v.error for v in values] or [0])), float(join([v.carried for v in values] or [0])),
                  longest=max((v.longest for v in values), default=0),
                  wires=frozenset().union(*(v.wires for v in values)),
                  ended=worst.ended or next((v.ended for v in values if v.ended), ""), before=worst.before)


def result_of(op: ir.Operation, operands: Sequence[Summed], kind: ir.Type, key: int, view: View) -> Summed:
    """How an op without control-flow regions changes its operands' errors.

    Args:
      op: the op.
      operands: the same facts about its operands.
      kind: the type of the result.
      key: the key of the result.
      view: the view of the module, for its devices and meshes.
    """
    name = op.name.removeprefix("stablehlo.")
    unit = _unit(kind)
    if name in ("add", "subtract"):
        return _rounded(merged(key, operands), unit, 2)
    if name == "multiply":
        return _rounded(merged(key, operands, product=True), unit)
    if name == "convert":
        source = _unit(op.operands[0].type)
        return _rounded(merged(key, operands), 0.0 if source and unit <= source else unit)
    if name == "divide" and not operands[1].error:
        return _rounded(merged(key, operands), unit)
    if name in _SUMS:
        return _sum_of(op, name, operands, unit, key, kind, view=view)
    if name == "select" and not operands[0].error:
        return merged(key, operands[1:])
    if op.name in _ELEMENTS or name in _MOVING or op.name.startswith("sdy."):
        indices = operands[1:] if name in _FIRST_ONLY - {"pad"} else ()
        marks = name != "custom_call" or ir.StringAttr(op.attributes["call_target_name"]).value in _MARKS
        if marks and not any(each.error for each in indices):
            return merged(key, operands)
    return _ended(op, operands, key, unit * ROUNDINGS.get(name, 2.0))


def _ended(op: ir.Operation, operands: Sequence[Summed], key: int, own: float) -> Summed:
    """The result of an op that is not linear: its operands' errors are named, and counting starts again."""
    made = merged(key, operands)
    if not made.error and not made.carried:
        return replace(made, error=own)
    place = source_line(op.location)
    name = op.name.removeprefix("stablehlo.") + (f" ({place})" if place else "")
    keep = made.before >= made.error and made.ended
    return Summed(key, own, 0.0, longest=made.longest, wires=made.wires, ended=made.ended if keep else name,
                  before=made.most)


def _rounded(value: Summed, error: float, terms: int = 0) -> Summed:
    return replace(value, error=value.error + error, longest=max(value.longest, terms))


def _sum_of(op: ir.Operation, name: str, operands: Sequence[Summed], unit: float, key: int, kind: ir.Type,
            *, view: View) -> Summed:
    if name in ("dot_general", "convolution"):
        terms = product_of(op).terms if name == "dot_general" else window_terms(op)
        narrow = any(_unit(value.type) > unit for value in op.operands)
        return _rounded(merged(key, operands, product=True), unit * (terms + 2 * narrow), terms)
    by = body_op(op)
    if by in ("maximum", "minimum", "and", "or"):
        return merged(key, operands)
    if by != "add":
        return _ended(op, operands, key, 2 * unit)
    if name == "reduce":
        form = reduction_of(op)
        return _ended(op, operands, key, unit) if form is None else \
            _rounded(merged(key, operands), unit * form.terms, form.terms)
    if name == "reduce_window":
        terms = window_terms(op)
        return _ended(op, operands, key, unit) if len(op.operands) != 2 else \
            _rounded(merged(key, operands), unit * terms, terms)
    if name == "scatter":
        numbers = scatter_numbers(op)
        window = set(numbers.update_window_dims)
        shape = ir.RankedTensorType(op.operands[2].type).shape
        terms = math.prod(size for axis, size in enumerate(shape) if axis not in window)
        made = merged(key, [operands[0], *operands[2:]])
        return _ended(op, operands, key, unit) if operands[1].error else _rounded(made, unit * terms, terms)
    groups = groups_of(op, view)
    members = (device_count(view) if isinstance(groups, str) else groups.size) or 0
    if not members:
        return _ended(op, operands, key, unit)
    made = _rounded(merged(key, operands), unit * (members - 1), members)
    return replace(made, wires=made.wires | {str(ir.RankedTensorType(kind).element_type)})


_SUMS = frozenset({"dot_general", "convolution", "reduce", "reduce_window", "scatter",
                   *(name.removeprefix("stablehlo.") for name in REDUCING)})


def _unit(kind: ir.Type) -> float:
    """The unit roundoff of a tensor's elements; 0 of integers."""
    try:
        form = float_format(np.dtype(dtype_of(kind)))
    except Exception:  # a token, or a type that numpy lacks
        return 0.0
    return 0.0 if form is None else form.unit
