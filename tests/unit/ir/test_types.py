"""Sizes of tensor types."""

from __future__ import annotations

import pytest

from hlorewrite.ir.binding import ir
from hlorewrite.ir.context import new_context
from hlorewrite.ir.types import element_bytes, element_count, is_floating, is_static_tensor, tensor_bytes


@pytest.mark.parametrize(("kind", "size"), [
    ("tensor<4x8xf32>", 128), ("tensor<4x8xbf16>", 64), ("tensor<3xf16>", 6), ("tensor<2xf64>", 16),
    ("tensor<5xi1>", 5), ("tensor<4xi4>", 2), ("tensor<3xi4>", 2), ("tensor<3xui4>", 2), ("tensor<4xi2>", 1),
    ("tensor<3xui8>", 3), ("tensor<i64>", 8), ("tensor<4xf8E4M3FN>", 4), ("tensor<4xf8E5M2>", 4),
    ("tensor<4xf4E2M1FN>", 2), ("tensor<4xf6E2M3FN>", 3), ("tensor<2xtf32>", 8),
    ("tensor<2xcomplex<f32>>", 16), ("tensor<2xcomplex<f64>>", 32), ("tensor<0x4xf32>", 0),
    ("tensor<?x4xf32>", 0), ("tensor<*xf32>", 0), ("!stablehlo.token", 0),
])
def test_bytes_of_a_tensor(kind: str, size: int) -> None:
    with new_context():
        assert tensor_bytes(ir.Type.parse(kind)) == size


@pytest.mark.parametrize(("kind", "count"), [
    ("tensor<4x8xf32>", 32), ("tensor<f32>", 1), ("tensor<4x0xf32>", 0), ("tensor<?xf32>", 0), ("!stablehlo.token", 0)])
def test_number_of_elements(kind: str, count: int) -> None:
    with new_context():
        assert element_count(ir.Type.parse(kind)) == count


@pytest.mark.parametrize(("kind", "static"), [
    ("tensor<4xf32>", True), ("tensor<f32>", True), ("tensor<?xf32>", False), ("tensor<*xf32>", False),
    ("!stablehlo.token", False)])
def test_static_tensors(kind: str, static: bool) -> None:
    with new_context():
        assert is_static_tensor(ir.Type.parse(kind)) is static


@pytest.mark.parametrize(("element", "floating"), [
    ("f32", True), ("bf16", True), ("tf32", True), ("f8E4M3FN", True), ("complex<f32>", True), ("i32", False),
    ("ui8", False), ("i1", False)])
def test_floating_elements(element: str, floating: bool) -> None:
    with new_context():
        type_ = ir.Type.parse(element)
        assert is_floating(type_) is floating
        assert element_bytes(type_) > 0
