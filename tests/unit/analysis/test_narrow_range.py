"""Which sums may overflow or underflow in another order, and which conditions keep them as they are."""

from __future__ import annotations

import pytest
from spmd_helpers import module

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.linearity import JointlyLinear, NotLinear, UniformContext, WithinRange
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.rules.library import shipped_facts


def answer(op: str, kind: str, types: str, arguments: str) -> JointlyLinear | NotLinear:
    view = module(f"func.func @main({arguments}) {{ %r = stablehlo.{op} : {types}\nreturn }}", partitions=2)
    context = UniformContext(kind, Uniformity(view, Groups(((0, 1),), "flattened_ids")))
    last = next(op.operation for op in view.functions["main"].regions[0].blocks[0].operations)
    return WithinRange(shipped_facts()).linear_in(last, 0, context)


@pytest.mark.parametrize(("element", "moves"), [
    ("f16", False), ("f8E5M2", False), ("f8E4M3FN", False), ("bf16", True), ("f32", True), ("i8", True)])
@pytest.mark.parametrize("op", ["add", "subtract"])
def test_sums_of_narrow_floats_are_not_regrouped(op: str, element: str, moves: bool) -> None:
    type_ = f"tensor<4x{element}>"
    found = answer(f"{op} %a, %b", "sum", type_, f"%a: {type_}, %b: {type_}")
    assert isinstance(found, JointlyLinear) == moves
    assert moves or (isinstance(found, NotLinear) and found.illegal
                     and f"the sum of {element} would be taken in another order" in found.sentence)


def test_what_only_moves_or_widens_stays_linear() -> None:
    half = "tensor<4xf16>"
    assert isinstance(answer("reshape %a", "sum", f"({half}) -> tensor<2x2xf16>", f"%a: {half}"), JointlyLinear)
    assert isinstance(answer("convert %a", "sum", f"({half}) -> tensor<4xf32>", f"%a: {half}"), JointlyLinear)
    assert isinstance(answer("maximum %a, %b", "max", half, f"%a: {half}, %b: {half}"), JointlyLinear)
