"""Symbols that the ops of a fragment name: found past attributes that jaxlib cannot hand out."""

from __future__ import annotations

from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.pipelines.runtime.standalone import _called


def test_complex_constants_are_passed_over():
    view = View(parse("""func.func @f() -> tensor<4xcomplex<f32>> {
      %c = stablehlo.constant dense<(1.0,2.0)> : tensor<4xcomplex<f32>>
      %r = func.call @g(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
      return %r : tensor<4xcomplex<f32>> }
    func.func private @g(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
      return %a : tensor<4xcomplex<f32>> }"""))
    assert _called(view.functions["f"]) == {"g"}
