"""How far the outputs of two modules may differ because they add in different orders, before any values exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from hlorewrite.analysis.parameter_provenance import named, result_paths
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.rounding.sum_order import OrderWalk, Summed
from hlorewrite.checks.reference.rounding.units import float_format
from hlorewrite.errors import CannotExecute, HlorewriteError
from hlorewrite.ir import COLLECTIVES, REDUCING, Module, View, ir, nested_ops, op_key, parse
from hlorewrite.ops.table import ROUNDS_NOTHING, TERMINATORS, OpClass, ops_of
from hlorewrite.util.tables import table
from hlorewrite.util.tolerances import relative_tolerance

SHOWN = 5
"""Outputs that a text shows; JSON has all."""


@dataclass(frozen=True)
class OutputOrder:
    """One output whose terms are added in another order.

    Attributes:
      output: its position.
      type: the type of its elements.
      before: roundings in a row since the values that both modules compute alike, in unit roundoffs of the type.
      after: the same in the rewritten module.
      longest_before: terms of the longest sum on the way.
      longest_after: the same in the rewritten module.
      wires: element types of the reductions between devices on the way, in the rewritten module.
      bound: how far the output may differ, relative to the sum of the magnitudes of its terms; None if no bound is
        known without values.
      ended: the first op after the sums that is not linear; it passes the bound on by its slope. Empty if the
        output itself is such a sum.
      name: what JAX calls it, such as ``result[0]['w']``; empty if the module does not say.
    """

    output: int
    type: str
    before: float | None
    after: float | None
    longest_before: int
    longest_after: int
    wires: tuple[str, ...]
    bound: float | None
    ended: str = ""
    name: str = ""


@dataclass(frozen=True)
class SummationOrders:
    """The difference in the order of sums between two modules.

    Attributes:
      outputs: how many there are.
      changed: those whose order differs, the widest bound first.
      reason: why nothing is known; empty otherwise.
    """

    outputs: int
    changed: tuple[OutputOrder, ...] = ()
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        return {"outputs": self.outputs, "equal_order": self.outputs - len(self.changed),
                "changed": [asdict(each) | {"wires": list(each.wires)} for each in self.changed],
                "relative_to": "the sum of the magnitudes of the terms", "reason": self.reason}

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> SummationOrders:
        """What ``as_dict`` wrote.

        Raises:
          KeyError, TypeError: it is another document.
        """
        changed = tuple(OutputOrder(**{**each, "wires": tuple(each["wires"])}) for each in data["changed"])
        return cls(int(data["outputs"]), changed, str(data["reason"]))

    def lines(self) -> list[str]:
        """A table of the outputs with the widest bounds."""
        if self.reason:
            return [f"rounding: the order of sums is not compared: {self.reason}"]
        if not self.changed:
            return [f"rounding: equal order of sums in all {self.outputs} outputs"]
        rows = [["output", "type", "roundings in a row", "longest sum", "wire", "may differ by"]]
        for each in self.changed[:SHOWN]:
            rows.append([named(f"#{each.output}", each.name), each.type,
                         f"{_count(each.before)} -> {_count(each.after)}",
                         f"{each.longest_before} -> {each.longest_after}", ",".join(each.wires) or "-",
                         "no bound" if each.bound is None else f"{each.bound:.1e}"
                         + (f" before {each.ended}" if each.ended else "")])
        more = len(self.changed) - SHOWN
        return [f"rounding: another order of sums in {len(self.changed)} of {self.outputs} outputs; bounds are "
                "relative to the sum of the magnitudes of the terms", *table(rows, "<<><><<<"),
                *([f"and {more} more"] if more > 0 else [])]


@dataclass(frozen=True)
class OrdersOnDemand:
    """Two modules whose orders of sums are compared when that is first asked for: it takes as long as the passes.

    Attributes:
      before: the original, serialized.
      after: the rewritten module, serialized.
      name: the name of both modules, for messages.

    Example:
      >>> OrdersOnDemand(b"func.func @main() { return }", b"func.func @main() { return }", "empty").found
      SummationOrders(outputs=0, changed=(), reason='')
    """

    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    name: str

    @cached_property
    def found(self) -> SummationOrders:
        """The difference in the order of sums."""
        return summation_orders(parse(self.before, name=self.name), parse(self.after, name=self.name))


def summation_orders(before: Module, after: Module) -> SummationOrders:
    """Compares the order of sums of two modules.

    The bound needs no values: with n roundings in a row on one side and m on the other, of unit u, sums of the same
    terms differ by at most ``(n + m) u / (1 - (n + m) u)`` times the sum of the magnitudes of the terms.

    Args:
      before: the original.
      after: the rewritten module.

    Returns:
      The outputs of ``main`` whose order of sums differs.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> def sums(text):
      ...     return parse("func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>) -> tensor<f32> {"
      ...                  f"{text} return %y : tensor<f32> }}")
      >>> one = sums("%x = stablehlo.add %a, %b : tensor<f32>  %y = stablehlo.add %x, %c : tensor<f32>")
      >>> other = sums("%x = stablehlo.add %b, %c : tensor<f32>  %y = stablehlo.add %a, %x : tensor<f32>")
      >>> [found] = summation_orders(one, other).changed
      >>> found.before, found.after, f"{found.bound / 2.0**-24:.2f} unit roundoffs"
      (2.0, 2.0, '4.00 unit roundoffs')
      >>> summation_orders(one, one).lines()
      ['rounding: equal order of sums in all 1 outputs']
    """
    try:
        with before.context:
            first, kinds = _walked(before, None)
        with after.context:
            second, others = _walked(after, None)
        if len(kinds) != len(others):
            return SummationOrders(0, reason="the modules have different outputs")
        if [each.key for each in first.results] == [each.key for each in second.results]:
            return SummationOrders(len(kinds))
        with before.context:
            first = _walked(before, frozenset(second.keys))[0]
        with after.context:
            second = _walked(after, frozenset(first.keys))[0]
    except HlorewriteError as error:
        return SummationOrders(0, reason=error.what)
    except Exception as error:  # a report does not stop a step
        why = str(error).partition("\n")[0]
        return SummationOrders(0, reason=f"the analysis failed: {type(error).__name__}: {why}")
    pairs = enumerate(zip(first.results, second.results, kinds, strict=True))
    found = [_output(position, one, other, kind) for position, (one, other, kind) in pairs if one.key != other.key]
    changed = [each for each in found if each.bound is None or each.bound > 0]
    names = result_paths(View(before).functions["main"], len(kinds))
    changed = [replace(each, name=names[each.output]) for each in changed]
    widest = sorted(changed, key=lambda each: (-(float("inf") if each.bound is None else each.bound), each.output))
    return SummationOrders(len(kinds), tuple(widest))


@dataclass(frozen=True)
class _Walked:
    results: Sequence[Summed]
    keys: set[int]


def _walked(module: Module, shared: frozenset[int] | None) -> tuple[_Walked, list[ir.Type]]:
    view = View(module)
    function = view.functions.get("main")
    if function is None or not function.regions[0].blocks:
        raise HlorewriteError("there is no main function", location=module.name)
    walk = OrderWalk(view, shared)
    results = walk.outputs(function)
    return _Walked(results, walk.keys), list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value
                                                             ).results)


def _output(position: int, one: Summed, other: Summed, kind: ir.Type) -> OutputOrder:
    form = float_format(np.dtype(dtype_of(kind)))
    unit = form.unit if form else 2.0**-53
    error = one.most + other.most
    bound = error / (1 - error) if error < 1 else None
    ended = max((one, other), key=lambda each: each.before).ended
    return OutputOrder(position, str(ir.RankedTensorType(kind).element_type), _known(one.most / unit),
                       after=_known(other.most / unit), longest_before=one.longest, longest_after=other.longest,
                       wires=tuple(sorted(other.wires)), bound=bound, ended=ended)


def _known(count: float) -> float | None:
    return count if np.isfinite(count) else None


def _count(count: float | None) -> str:
    return "-" if count is None else f"{count:.0f}"


# ---- the types an output is computed in: a float32 result of bfloat16 products is as rough as these


_EXACT = ROUNDS_NOTHING | ops_of(OpClass.CONSTANT) | {"stablehlo.tuple", "stablehlo.get_tuple_element"} | (
    frozenset(COLLECTIVES) - frozenset(REDUCING))
"""Ops that round nothing."""


def computed_tolerances(module: Module, name: str = "main") -> tuple[float, ...]:
    """For each result of a function, the relative tolerance of the least precise float type that it is computed in.

    Args:
      module: the module.
      name: the name of the function.

    Returns:
      The tolerances (`util.tolerances.relative_tolerance`); none if the module lacks the function.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> text = ("func.func @main(%x: tensor<bf16>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {"
      ...         "%a = stablehlo.multiply %x, %x : tensor<bf16>  %b = stablehlo.convert %a : (tensor<bf16>) -> "
      ...         "tensor<f32>  %c = stablehlo.add %y, %y : tensor<f32>  return %b, %c : tensor<f32>, tensor<f32> }")
      >>> computed_tolerances(parse(text))
      (0.04, 1e-05)
    """
    view = View(module)
    function = view.functions.get(name)
    if function is None or not function.regions[0].blocks:
        return ()
    return tuple(_ComputedTypes(view).of_block(function.regions[0].blocks[0], {}))


@dataclass
class _ComputedTypes:
    view: View
    _functions: dict[int, list[float]] = field(default_factory=dict)

    def of_block(self, block: ir.Block, known: dict[ir.Value, float]) -> list[float]:
        """The tolerances of the values that a block returns; zero for values without one."""
        for each in block.operations:
            op = each.operation
            below = [known.get(operand, 0.0) for operand in op.operands]
            if op.name in TERMINATORS:
                return below
            known.update(zip(op.results, self._of(op, below, known), strict=True))
        return []

    def _of(self, op: ir.Operation, below: list[float], known: dict[ir.Value, float]) -> Iterable[float]:
        if op.name == "sdy.manual_computation":
            block = op.regions[0].blocks[0]
            return self.of_block(block, dict(zip(block.arguments, below, strict=True)))
        rough = max(below, default=0.0)
        if op.name == "func.call":
            return [max(rough, own) for own in self._called(op)]
        inside = nested_ops(op)[1:]
        rough = max([rough, *(known.get(value, 0.0) for one in inside for value in one.operands),
                     *(own for one in inside for own in self._own(one))])
        return [max(rough, own) for own in self._own(op)]

    def _own(self, op: ir.Operation) -> list[float]:
        """What each result is rounded to by the op itself."""
        if op.name == "func.call":
            return self._called(op)
        return [0.0 if op.name in _EXACT else _tolerance(result) for result in op.results]

    def _called(self, op: ir.Operation) -> list[float]:
        called = self.view.callee(op)
        if called is None or not called.regions[0].blocks:
            return [_tolerance(result) for result in op.results]
        key = op_key(called)
        if key not in self._functions:
            self._functions[key] = self.of_block(called.regions[0].blocks[0], {})
        return self._functions[key]


def _tolerance(value: ir.Value) -> float:
    try:
        return relative_tolerance(dtype_of(value.type))
    except CannotExecute:  # a type that numpy lacks
        return 0.0
