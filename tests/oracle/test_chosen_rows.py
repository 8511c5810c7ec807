"""The validator on rows that a number chooses: stacks of layers read one by one, gathered, masked or broadcast."""

from __future__ import annotations

import re
from functools import cache

import pytest
from generators.golden_cases import cases, modules

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.load import parse

FOLDER = "passes/reshard-to-broadcast/"
FORMS, IN_LOOP, LARGE = (FOLDER + name for name in ("stack-forms.mlir", "stack-in-a-loop.mlir",
                                                    "large-stack-in-a-loop.mlir"))


@cache
def texts(file: str, first_line: int) -> tuple[str, str]:
    """A module of a golden file before and after its pipeline."""
    case = next(case for case in cases() if case.file == file)
    pair = dict(modules(case)[1])[first_line]
    assert not isinstance(pair, str), pair
    return pair[0].text(), pair[1].text()


def swapped_branches(text: str) -> str:
    """The second and the third branch of a case in each other's place."""
    first, second = "dense<[[1, 0, 2, 3]]>", "dense<[[2, 0, 1, 3]]>"
    assert first in text and second in text
    return text.replace(first, "OTHER").replace(second, first).replace("OTHER", second)


def replaced(old: str, new: str, count: int = 1):
    """Replaces a text that has to be there."""
    def change(text: str) -> str:
        assert re.search(old, text), old
        return re.sub(old, new, text, count=count)
    return change


WRONG = [
    pytest.param(FORMS, 1, replaced(r"dense<\[0, 1, 2, 3\]>", "dense<[0, 2, 1, 3]>"), id="places-in-another-order"),
    pytest.param(FORMS, 1, replaced(r"dense<\[0, 1, 2, 3\]>", "dense<[0, 1, 2, 2]>"), id="two-of-one-place"),
    pytest.param(FORMS, 1, replaced(r"dense<7> : tensor<i32>", "dense<6> : tensor<i32>"), id="clamped-too-low"),
    pytest.param(FORMS, 1, replaced(r"dense<2> : tensor<i32>", "dense<4> : tensor<i32>"), id="other-divisor"),
    pytest.param(FORMS, 1, replaced(r"stablehlo.compare EQ", "stablehlo.compare NE"), id="everyone-else"),
    pytest.param(FORMS, 1, replaced(r"(%c_5 = stablehlo.constant dense<)0>", r"\g<1>1>"), id="others-send-one"),
    pytest.param(FORMS, 63, replaced(r"dense<\[1, 1, 0, 0\]>", "dense<[0, 0, 1, 1]>"), id="order-within-groups"),
    pytest.param(FORMS, 97, replaced(r"\[1:2, 0:16, 0:16\]", "[0:1, 0:16, 0:16]"), id="another-row"),
    pytest.param(IN_LOOP, 1, replaced(r"stablehlo.remainder", "stablehlo.divide"), id="row-of-another-layer"),
    pytest.param(LARGE, 1, swapped_branches, id="branches-swapped"),
    pytest.param(LARGE, 1, replaced(r"dense<7> : tensor<i32>", "dense<9> : tensor<i32>"), id="beyond-the-last-branch"),
]


@pytest.mark.parametrize(("file", "first_line", "change"), WRONG)
def test_wrong_rows_are_not_proved(file: str, first_line: int, change) -> None:
    """The change makes another program of a proved one: the validator does not know it any more."""
    before, after = texts(file, first_line)
    assert isinstance(validate(parse(before), parse(after)), Proved)
    assert isinstance(validate(parse(before), parse(change(after))), Unknown)


def test_what_is_not_proved_differs() -> None:
    """The interpreter sees other values where the index is fixed: the changes are not harmless ones."""
    before, after = texts(IN_LOOP, 1)
    wrong = replaced(r"stablehlo.remainder", "stablehlo.divide")(after)
    assert not check(parse(before), parse(wrong)).equal


PROGRAM = """
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<1x4xf32>, %i: tensor<i32> {mhlo.sharding = "{replicated}"}) -> tensor<1x4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<3> : tensor<i32>
    %id = stablehlo.partition_id : tensor<ui32>
    %device = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %bit = stablehlo.and %i, %one : tensor<i32>
    %own = stablehlo.add %bit, %device : tensor<i32>
    BODY
    return %row : tensor<1x4xf32>
  }
}"""
GROUPS = ("channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : "
          "tensor<1x4xi64>, use_global_device_ids")
GATHERED = f"""%all = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {GROUPS}}}>
      : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %row = stablehlo.dynamic_slice %all, NUMBER, %zero, sizes = [1, 4]
      : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>"""
MASKED = f"""%k = stablehlo.clamp %zero, NUMBER, %last : tensor<i32>
    %mine = stablehlo.compare EQ, %device, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %none = stablehlo.constant dense<0.0> : tensor<1x4xf32>
    %held = stablehlo.select %mine, %x, %none : tensor<i1>, tensor<1x4xf32>
    %row = "stablehlo.all_reduce"(%held) <{{{GROUPS}}}> ({{
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<1x4xf32>) -> tensor<1x4xf32>"""


@pytest.mark.parametrize(("number", "same"), [("%i", True), ("%bit", True), ("%own", False)])
def test_the_number_is_the_same_on_all_members(number: str, same: bool) -> None:
    """With a number of its own each device asks for another row, and the holders mask by their own numbers."""
    before, after = (parse(PROGRAM.replace("BODY", body).replace("NUMBER", number)) for body in (GATHERED, MASKED))
    assert isinstance(validate(before, after), Proved) == same
    assert same or not check(before, after).equal
