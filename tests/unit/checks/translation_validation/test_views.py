"""Equations of XLA's simplifiers: each proves its pair, and a pair that differs a little from it is not proved."""

# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import pytest

from hlorewrite.checks.reference.refute import refute
from hlorewrite.checks.translation_validation.equivalence import Certainty, prove
from hlorewrite.ir.load import parse

ADD = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32> })"""


def module(signature: str, *lines: str):
    """A module of one function; the last line returns."""
    return parse(f"func.func @main{signature} {{\n" + "\n".join(lines) + "\n}")


SQUARE = "(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32>"
VECTOR = "(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32>"
T = "(tensor<4x4xf32>) -> tensor<4x4xf32>"
D = "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"
END, ENDV = "return %r : tensor<4x4xf32>", "return %r : tensor<8xf32>"

# name: signature, original, equal, different in one place
PAIRS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "transposed-sum": (
        SQUARE, ("%s = stablehlo.add %a, %b : tensor<4x4xf32>", f"%r = stablehlo.transpose %s, dims = [1, 0] : {T}", END),
        (f"%x = stablehlo.transpose %a, dims = [1, 0] : {T}", f"%y = stablehlo.transpose %b, dims = [1, 0] : {T}",
         "%r = stablehlo.add %y, %x : tensor<4x4xf32>", END),
        (f"%x = stablehlo.transpose %a, dims = [1, 0] : {T}", "%r = stablehlo.add %b, %x : tensor<4x4xf32>", END)),
    "product-of-transposed": (
        SQUARE, (f"%d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : {D}",
                 f"%r = stablehlo.transpose %d, dims = [1, 0] : {T}", END),
        (f"%r = stablehlo.dot_general %b, %a, contracting_dims = [0] x [1] : {D}", END),
        (f"%r = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : {D}", END)),
    "product-of-rows": (
        "(%a: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>",
        ("%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4xf32>) -> "
         "tensor<4xf32>", "return %r : tensor<4xf32>"),
        ("%z = stablehlo.constant dense<0.0> : tensor<f32>",
         "%w = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>",
         "%m = stablehlo.multiply %w, %a : tensor<4x4xf32>",
         "%r = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, "
         "tensor<f32>) -> tensor<4xf32>", "return %r : tensor<4xf32>"),
        ("%z = stablehlo.constant dense<0.0> : tensor<f32>",
         "%w = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>",
         "%m = stablehlo.multiply %w, %a : tensor<4x4xf32>",
         "%r = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, "
         "tensor<f32>) -> tensor<4xf32>", "return %r : tensor<4xf32>")),
    "reduction-in-two-steps": (
        "(%a: tensor<2x3x4xf32>) -> tensor<3xf32>",
        ("%z = stablehlo.constant dense<0.0> : tensor<f32>",
         "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x4xf32>, "
         "tensor<f32>) -> tensor<3xf32>", "return %r : tensor<3xf32>"),
        ("%z = stablehlo.constant dense<0.0> : tensor<f32>",
         "%s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [2] : (tensor<2x3x4xf32>, "
         "tensor<f32>) -> tensor<2x3xf32>",
         "%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, "
         "tensor<f32>) -> tensor<3xf32>", "return %r : tensor<3xf32>"),
        ("%z = stablehlo.constant dense<0.0> : tensor<f32>", "%o = stablehlo.constant dense<1.0> : tensor<f32>",
         "%s = stablehlo.reduce(%a init: %o) applies stablehlo.add across dimensions = [2] : (tensor<2x3x4xf32>, "
         "tensor<f32>) -> tensor<2x3xf32>",
         "%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, "
         "tensor<f32>) -> tensor<3xf32>", "return %r : tensor<3xf32>")),
    "part-of-joined": (
        VECTOR, ("%c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>",
                 "%m = stablehlo.reshape %c : (tensor<16xf32>) -> tensor<2x8xf32>",
                 "%s = stablehlo.slice %m [1:2, 0:8] : (tensor<2x8xf32>) -> tensor<1x8xf32>",
                 "%r = stablehlo.reshape %s : (tensor<1x8xf32>) -> tensor<8xf32>", ENDV),
        ("%r = stablehlo.reshape %b : (tensor<8xf32>) -> tensor<8xf32>", ENDV),
        ("%r = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<8xf32>", ENDV)),
    "reversed-twice": (
        VECTOR, ("%x = stablehlo.reverse %a, dims = [0] : tensor<8xf32>", "%y = stablehlo.negate %x : tensor<8xf32>",
                 "%r = stablehlo.reverse %y, dims = [0] : tensor<8xf32>", ENDV),
        ("%r = stablehlo.negate %a : tensor<8xf32>", ENDV),
        ("%y = stablehlo.negate %a : tensor<8xf32>", "%r = stablehlo.reverse %y, dims = [0] : tensor<8xf32>", ENDV)),
    "sum-in-another-order": (
        VECTOR, ("%x = stablehlo.subtract %a, %b : tensor<8xf32>", "%r = stablehlo.add %x, %x : tensor<8xf32>", ENDV),
        ("%t = stablehlo.constant dense<2.0> : tensor<8xf32>", "%x = stablehlo.multiply %t, %a : tensor<8xf32>",
         "%y = stablehlo.multiply %b, %t : tensor<8xf32>", "%r = stablehlo.subtract %x, %y : tensor<8xf32>", ENDV),
        ("%t = stablehlo.constant dense<2.0> : tensor<8xf32>", "%x = stablehlo.multiply %t, %a : tensor<8xf32>",
         "%r = stablehlo.subtract %x, %b : tensor<8xf32>", ENDV)),
    "quotient-of-root": (
        VECTOR, ("%x = stablehlo.sqrt %b : tensor<8xf32>", "%r = stablehlo.divide %a, %x : tensor<8xf32>", ENDV),
        ("%x = stablehlo.rsqrt %b : tensor<8xf32>", "%r = stablehlo.multiply %x, %a : tensor<8xf32>", ENDV),
        ("%x = stablehlo.rsqrt %a : tensor<8xf32>", "%r = stablehlo.multiply %x, %b : tensor<8xf32>", ENDV)),
    "clamp": (
        VECTOR, ("%l = stablehlo.constant dense<0.0> : tensor<f32>", "%h = stablehlo.constant dense<1.0> : tensor<f32>",
                 "%r = stablehlo.clamp %l, %a, %h : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>", ENDV),
        ("%l = stablehlo.constant dense<0.0> : tensor<8xf32>", "%h = stablehlo.constant dense<1.0> : tensor<8xf32>",
         "%x = stablehlo.maximum %a, %l : tensor<8xf32>", "%r = stablehlo.minimum %x, %h : tensor<8xf32>", ENDV),
        ("%h = stablehlo.constant dense<1.0> : tensor<8xf32>", "%r = stablehlo.minimum %a, %h : tensor<8xf32>", ENDV)),
    "turned-comparison": (
        VECTOR, ("%p = stablehlo.compare GT, %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>",
                 "%r = stablehlo.select %p, %a, %b : tensor<8xi1>, tensor<8xf32>", ENDV),
        ("%p = stablehlo.compare LT, %b, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>",
         "%n = stablehlo.not %p : tensor<8xi1>", "%r = stablehlo.select %n, %b, %a : tensor<8xi1>, tensor<8xf32>", ENDV),
        ("%p = stablehlo.compare LT, %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>",
         "%r = stablehlo.select %p, %a, %b : tensor<8xi1>, tensor<8xf32>", ENDV)),
    "narrow-op-widened": (
        "(%a: tensor<8xbf16>, %b: tensor<8xbf16>) -> tensor<8xbf16>",
        ("%x = stablehlo.maximum %a, %b : tensor<8xbf16>", "%r = stablehlo.add %x, %a : tensor<8xbf16>",
         "return %r : tensor<8xbf16>"),
        ("%u = stablehlo.convert %a : (tensor<8xbf16>) -> tensor<8xf32>",
         "%v = stablehlo.convert %b : (tensor<8xbf16>) -> tensor<8xf32>", "%x = stablehlo.maximum %u, %v : tensor<8xf32>",
         "%s = stablehlo.add %x, %u : tensor<8xf32>", "%r = stablehlo.convert %s : (tensor<8xf32>) -> tensor<8xbf16>",
         "return %r : tensor<8xbf16>"),
        ("%u = stablehlo.convert %a : (tensor<8xbf16>) -> tensor<8xf32>",
         "%v = stablehlo.convert %b : (tensor<8xbf16>) -> tensor<8xf32>", "%x = stablehlo.maximum %u, %v : tensor<8xf32>",
         "%s = stablehlo.add %x, %v : tensor<8xf32>", "%r = stablehlo.convert %s : (tensor<8xf32>) -> tensor<8xbf16>",
         "return %r : tensor<8xbf16>")),
    "unsigned-remainder": (
        "(%a: tensor<8xui32>) -> tensor<8xui32>",
        ("%c = stablehlo.constant dense<8> : tensor<8xui32>", "%r = stablehlo.remainder %a, %c : tensor<8xui32>",
         "return %r : tensor<8xui32>"),
        ("%c = stablehlo.constant dense<7> : tensor<8xui32>", "%r = stablehlo.and %a, %c : tensor<8xui32>",
         "return %r : tensor<8xui32>"),
        ("%c = stablehlo.constant dense<8> : tensor<8xui32>", "%r = stablehlo.and %a, %c : tensor<8xui32>",
         "return %r : tensor<8xui32>")),
    "iota-of-two-dimensions": (
        "(%a: tensor<2x4xi32>) -> tensor<4x2xi32>",
        ("%i = stablehlo.iota dim = 1 : tensor<2x4xi32>", "%s = stablehlo.add %i, %a : tensor<2x4xi32>",
         "%r = stablehlo.transpose %s, dims = [1, 0] : (tensor<2x4xi32>) -> tensor<4x2xi32>",
         "return %r : tensor<4x2xi32>"),
        ("%x = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x4xi32>) -> tensor<4x2xi32>",
         "%i = stablehlo.iota dim = 0 : tensor<4x2xi32>", "%r = stablehlo.add %x, %i : tensor<4x2xi32>",
         "return %r : tensor<4x2xi32>"),
        ("%x = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x4xi32>) -> tensor<4x2xi32>",
         "%i = stablehlo.iota dim = 1 : tensor<4x2xi32>", "%r = stablehlo.add %x, %i : tensor<4x2xi32>",
         "return %r : tensor<4x2xi32>")),
    "gather-of-a-flat-batch": (
        "(%a: tensor<32x4xf32>, %i: tensor<2x3xi32>) -> tensor<2x3x4xf32>",
        ("%j = stablehlo.reshape %i : (tensor<2x3xi32>) -> tensor<2x3x1xi32>",
         '%r = "stablehlo.gather"(%a, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<32x4xf32>, tensor<2x3x1xi32>) -> tensor<2x3x4xf32>',
         "return %r : tensor<2x3x4xf32>"),
        ("%j = stablehlo.reshape %i : (tensor<2x3xi32>) -> tensor<6x1xi32>",
         '%g = "stablehlo.gather"(%a, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<32x4xf32>, tensor<6x1xi32>) -> tensor<6x1x4xf32>',
         "%r = stablehlo.reshape %g : (tensor<6x1x4xf32>) -> tensor<2x3x4xf32>", "return %r : tensor<2x3x4xf32>"),
        ("%t = stablehlo.transpose %i, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>",
         "%j = stablehlo.reshape %t : (tensor<3x2xi32>) -> tensor<6x1xi32>",
         '%g = "stablehlo.gather"(%a, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<32x4xf32>, tensor<6x1xi32>) -> tensor<6x1x4xf32>',
         "%r = stablehlo.reshape %g : (tensor<6x1x4xf32>) -> tensor<2x3x4xf32>", "return %r : tensor<2x3x4xf32>")),
    "gather-with-batching-dimensions": (
        "(%a: tensor<2x8xf32>, %i: tensor<2x3xi32>) -> tensor<2x3xf32>",
        ("%j = stablehlo.reshape %i : (tensor<2x3xi32>) -> tensor<2x3x1xi32>",
         '%r = "stablehlo.gather"(%a, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x8xf32>, tensor<2x3x1xi32>) -> tensor<2x3xf32>',
         "return %r : tensor<2x3xf32>"),
        ("%j = stablehlo.reshape %i : (tensor<2x3xi32>) -> tensor<2x3x1xi32>",
         "%k = stablehlo.iota dim = 0 : tensor<2x3x1xi32>",
         "%c = stablehlo.concatenate %k, %j, dim = 2 : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x2xi32>",
         '%r = "stablehlo.gather"(%a, %c) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x8xf32>, tensor<2x3x2xi32>) -> tensor<2x3xf32>',
         "return %r : tensor<2x3xf32>"),
        ("%j = stablehlo.reshape %i : (tensor<2x3xi32>) -> tensor<2x3x1xi32>",
         "%k = stablehlo.iota dim = 1 : tensor<2x3x1xi32>",
         "%c = stablehlo.concatenate %k, %j, dim = 2 : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x2xi32>",
         '%r = "stablehlo.gather"(%a, %c) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x8xf32>, tensor<2x3x2xi32>) -> tensor<2x3xf32>',
         "return %r : tensor<2x3xf32>")),
    "scatter-of-a-flat-batch": (
        "(%a: tensor<8x4xf32>, %i: tensor<2x3x1xi32>, %u: tensor<2x3x4xf32>) -> tensor<8x4xf32>",
        ('%r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ' + ADD + " : (tensor<8x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<8x4xf32>",
         "return %r : tensor<8x4xf32>"),
        ("%j = stablehlo.reshape %i : (tensor<2x3x1xi32>) -> tensor<6x1xi32>",
         "%v = stablehlo.reshape %u : (tensor<2x3x4xf32>) -> tensor<6x1x4xf32>",
         '%r = "stablehlo.scatter"(%a, %j, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ' + ADD + " : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x1x4xf32>) -> tensor<8x4xf32>",
         "return %r : tensor<8x4xf32>"),
        ("%t = stablehlo.transpose %i, dims = [1, 0, 2] : (tensor<2x3x1xi32>) -> tensor<3x2x1xi32>",
         "%j = stablehlo.reshape %t : (tensor<3x2x1xi32>) -> tensor<6x1xi32>",
         "%v = stablehlo.reshape %u : (tensor<2x3x4xf32>) -> tensor<6x1x4xf32>",
         '%r = "stablehlo.scatter"(%a, %j, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ' + ADD + " : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x1x4xf32>) -> tensor<8x4xf32>",
         "return %r : tensor<8x4xf32>")),
}


@pytest.mark.parametrize("name", PAIRS)
def test_an_equation_proves_its_pair_and_no_other(name: str):
    signature, original, equal, different = PAIRS[name]
    before = module(signature, *original)
    assert prove(before, module(signature, *equal)).verdict is Certainty.PROVED
    wrong = module(signature, *different)
    assert prove(before, wrong).verdict is Certainty.UNKNOWN
    assert refute(before, wrong).example is not None


def test_constants_that_xla_computed_are_an_answer_of_their_own():
    divided = module(VECTOR, "%c = stablehlo.constant dense<3.0> : tensor<8xf32>",
                     "%r = stablehlo.divide %a, %c : tensor<8xf32>", ENDV)
    multiplied = module(VECTOR, "%c = stablehlo.constant dense<0.333333343> : tensor<8xf32>",
                        "%r = stablehlo.multiply %a, %c : tensor<8xf32>", ENDV)
    assert prove(divided, multiplied).verdict is Certainty.ROUNDED
    near = module(VECTOR, "%c = stablehlo.constant dense<0.33334> : tensor<8xf32>",
                  "%r = stablehlo.multiply %a, %c : tensor<8xf32>", ENDV)
    assert prove(divided, near).verdict is Certainty.UNKNOWN


def test_a_division_by_a_power_of_two_is_exact():
    divided = module(VECTOR, "%c = stablehlo.constant dense<4.0> : tensor<8xf32>",
                     "%r = stablehlo.divide %a, %c : tensor<8xf32>", ENDV)
    multiplied = module(VECTOR, "%c = stablehlo.constant dense<0.25> : tensor<8xf32>",
                        "%r = stablehlo.multiply %a, %c : tensor<8xf32>", ENDV)
    assert prove(divided, multiplied).verdict is Certainty.PROVED


def test_integers_wrap_around_and_do_not_divide():
    signature = "(%a: tensor<8xi32>) -> tensor<8xi32>"
    end = "return %r : tensor<8xi32>"
    divided = module(signature, "%c = stablehlo.constant dense<4> : tensor<8xi32>",
                     "%x = stablehlo.divide %a, %c : tensor<8xi32>", "%r = stablehlo.multiply %x, %c : tensor<8xi32>", end)
    same = module(signature, "%z = stablehlo.constant dense<0> : tensor<8xi32>",
                  "%r = stablehlo.add %a, %z : tensor<8xi32>", end)
    assert prove(divided, same).verdict is Certainty.UNKNOWN
    doubled = module(signature, "%c = stablehlo.constant dense<-2147483648> : tensor<8xi32>",
                     "%x = stablehlo.multiply %a, %c : tensor<8xi32>", "%r = stablehlo.add %x, %x : tensor<8xi32>", end)
    zero = module(signature, "%r = stablehlo.constant dense<0> : tensor<8xi32>", end)
    assert prove(doubled, zero).verdict is Certainty.PROVED


def test_a_higher_precision_is_not_given_up():
    highest = module(SQUARE, "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = "
                             f"[HIGHEST, HIGHEST] : {D}", END)
    default = module(SQUARE, f"%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : {D}", END)
    assert prove(highest, default).verdict is Certainty.UNKNOWN


def test_a_float_times_zero_stays():
    times = module(VECTOR, "%c = stablehlo.constant dense<0.0> : tensor<8xf32>",
                   "%r = stablehlo.multiply %a, %c : tensor<8xf32>", ENDV)
    zero = module(VECTOR, "%r = stablehlo.constant dense<0.0> : tensor<8xf32>", ENDV)
    assert prove(times, zero).verdict is Certainty.UNKNOWN


def test_a_promise_about_indices_is_not_added():
    signature = "(%a: tensor<32x4xf32>, %i: tensor<3x1xi32>) -> tensor<3x4xf32>"
    line = ('%r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = SORTED, slice_sizes = array<i64: 1, 4>}> : (tensor<32x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>')
    plain, sorted_ = (module(signature, line.replace("SORTED", word), "return %r : tensor<3x4xf32>")
                      for word in ("false", "true"))
    assert prove(plain, plain).verdict is Certainty.PROVED
    assert prove(plain, sorted_).verdict is Certainty.UNKNOWN
