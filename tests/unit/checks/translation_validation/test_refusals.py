"""What the validator does not read: unknown with a reason, never an error."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import pytest

from hlorewrite.checks.translation_validation import validate as module_of_validate
from hlorewrite.checks.translation_validation.validate import FAILED, validate
from hlorewrite.checks.value_graph.graph import identity_of
from hlorewrite.checks.value_graph.groups import Members
from hlorewrite.ir.load import parse

TEXT = ("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = stablehlo.tanh %x : tensor<4xf32>\n"
        "  return %y : tensor<4xf32>\n}")


def test_an_error_of_the_validator_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run never fails because of it."""
    def fails(*_: object) -> None:
        raise AttributeError("no such attribute")
    monkeypatch.setattr(module_of_validate, "face_difference", fails)
    assert str(validate(parse(TEXT), parse(TEXT))) == f"unknown: {FAILED} (AttributeError: no such attribute)"


@pytest.mark.parametrize("before, after, reason", [
    (TEXT, TEXT.replace("@main", "@other"), "other functions are public"),
    (TEXT, TEXT.replace("tensor<4xf32>", "tensor<4xbf16>"), "@main is called differently"),
    (TEXT.replace("func.func", "func.func private"), TEXT.replace("func.func", "func.func private"), "no function is public"),
    (f"module {{\nsdy.mesh @m = <[\"x\"=2]>\n{TEXT}\n}}", f"module {{\nsdy.mesh @m = <[\"x\"=4]>\n{TEXT}\n}}",
     "the meshes differ"),
    (f"module {{\nmodule {{\n{TEXT}\n}}\n}}", f"module {{\nmodule {{\n{TEXT}\n}}\n}}", "the module contains builtin.module"),
])
def test_faces(before: str, after: str, reason: str) -> None:
    """What has to be the same before anything is compared."""
    assert reason in str(validate(parse(before), parse(after)))


def test_members() -> None:
    """Groups within wider ones, and groups that meet others evenly."""
    pairs, halves, all_ = (Members(rows) for rows in (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1, 2, 3),)))
    assert pairs.within(all_) and not all_.within(pairs) and not pairs.within(halves)
    assert pairs.aligned(halves) and pairs.aligned(all_)
    assert not Members(((0, 1), (2, 3))).aligned(Members(((0,), (1, 2), (3,))))
    assert pairs.alike([7, 7, 8, 8]) and not pairs.alike([7, 8, 7, 8])


@pytest.mark.parametrize("kind, element, number", [
    ("max", "ui8", 0), ("min", "ui8", 255), ("min", "i16", 32767), ("and", "i8", -1), ("and", "ui8", 255), ("or", "i1", False),
    ("product", "bf16", 1.0), ("max", "f8E4M3FN", -448.0), ("sum", "f8E8M0FNU", None), ("max", "complex<f32>", None),
    ("sum", "!quant.uniform<i8:f32, 1.0>", None),
])
def test_identities(kind: str, element: str, number: object) -> None:
    """The identity of each reduction, and the types that have none."""
    assert identity_of(kind, element) == number
