"""Advice of comm-shift changes nothing that a step computes; remarks always say where."""

from __future__ import annotations

import re

import pytest

from hlorewrite.errors import InputError
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.passes.comm_shift import remarks
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Remark

BATCH_NORM = """module @step attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%w: tensor<4x4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4x4xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end = stablehlo.constant dense<4> : tensor<i32>
    %out:2 = stablehlo.while(%i = %start, %acc = %zero) : tensor<i32>, tensor<4x4xf32>
    cond {
      %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %mean = "stablehlo.all_reduce"(%w) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %sum = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %g = stablehlo.multiply %mean, %x : tensor<4x4xf32>
      %next = stablehlo.add %acc, %g : tensor<4x4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %next : tensor<i32>, tensor<4x4xf32>
    }
    return %out#1 : tensor<4x4xf32>
  }
}"""
"""The mean of a group times what differs between its devices, in a loop."""
CALLS = re.compile(r"\b(?:lax\.)?(?:psum|pmean|pmax|pmin|all_gather)\b|make .* equal")


class Remarks:
    """Collects remarks."""

    wants_text = wants_missed = wants_mismatches = True

    def __init__(self) -> None:
        self.said: list[Remark] = []

    def remark(self, remark: Remark) -> None:
        """Keeps one."""
        self.said.append(remark)


def test_no_advice_inserts_a_collective_or_makes_values_equal() -> None:
    texts = [*remarks.ADVICE.values(), *(value for name, value in vars(remarks).items() if isinstance(value, str))]
    assert len(texts) > 15 and not [text for text in texts if CALLS.search(text)]


@pytest.mark.parametrize("located", [True, False])
def test_what_differs_by_nature_is_not_to_be_made_equal_and_has_a_place(located: bool) -> None:
    text = BATCH_NORM if located else without_locations(BATCH_NORM)
    module = parse(text, name="step.mlir")
    listener = Remarks()
    run_passes(module, parse_pipeline("comm-shift"), PassContext((listener,)))  # pyright: ignore[reportArgumentType]
    (remark,) = [remark for remark in listener.said if "differs between devices" in remark.sentence]
    assert remark.advice.startswith("if that value is in fact equal on all devices, compute it from constants")
    assert "?" not in str(remark), str(remark)
    assert remark.location.startswith("step.mlir:12" if located else "@main")


def without_locations(text: str) -> str:
    """The same module, each op with an unknown location."""
    from hlorewrite.ir.binding import ir
    from hlorewrite.ir.context import new_context

    with new_context():
        printed = str(ir.Module.parse(text).operation.get_asm(enable_debug_info=True))
    return re.sub(r"loc\(#?\w+\)|loc\(\"[^()]*\)", "loc(unknown)", re.sub(r"(?m)^#loc.*$", "", printed))


def test_a_place_is_a_line_near_or_a_function_and_never_a_question_mark() -> None:
    module = parse(without_locations(BATCH_NORM), name="step.mlir")
    view = View(module)
    assert {view.place(op) for op in view.ops("stablehlo.all_reduce", "stablehlo.while", "func.func")} == {"@main"}
    assert str(InputError("is wrong", location=view.source(view.functions["main"]))) == "is wrong"
