"""Orders of sums without values: what is equal, what a bound is relative to, loops, narrow wires, ends of sums."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.reference.rounding.summation_order import SummationOrders, summation_orders
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

U = 2.0**-24
GROUPS = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"


def accumulating(body: str, step: str = "%next = stablehlo.add %acc, %r : tensor<8xf32>", trips: int = 16,
                 carried: str = "%i = %zero, %acc = %zeros", kinds: str = "tensor<i32>, tensor<8xf32>",
                 results: str = "%j, %next", after: str = "") -> str:
    """A loop over rows of %x; ``body`` makes %r of the row %g."""
    return f"""
module @step attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<{trips}x8xf32>) -> tensor<8xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end = stablehlo.constant dense<{trips}> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
    %out:{carried.count("=")} = stablehlo.while({carried}) : {kinds}
    cond {{
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 8]
        : (tensor<{trips}x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
      %g = stablehlo.reshape %row : (tensor<1x8xf32>) -> tensor<8xf32>
      {body}
      {step}
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return {results} : {kinds}
    }}
    {after or "return %out#1 : tensor<8xf32>"}
  }}
}}
"""


def all_reduce(result: str, operand: str, kind: str = "tensor<8xf32>") -> str:
    """A sum over four devices."""
    scalar = kind.replace("8x", "")
    return f"""{result} = "stablehlo.all_reduce"({operand}) <{{{GROUPS}, use_global_device_ids,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}> ({{
      ^bb0(%p: {scalar}, %q: {scalar}):
        %s = stablehlo.add %p, %q : {scalar}
        stablehlo.return %s : {scalar}
      }}) : ({kind}) -> {kind}"""


IN_THE_LOOP = accumulating(all_reduce("%r", "%g"))
AFTER_IT = accumulating("%r = stablehlo.negate %g : tensor<8xf32>").replace("%r = stablehlo.negate %g", "").replace(
    " : tensor<8xf32>\n      %next = stablehlo.add %acc, %r", "\n      %next = stablehlo.add %acc, %g").replace(
    "return %out#1", all_reduce("%sum", "%out#1") + "\n    return %sum")


def orders(before: str, after: str) -> SummationOrders:
    """What two texts differ in."""
    return summation_orders(parse(before), parse(after))


def test_a_reduction_that_leaves_a_loop():
    """16 times 3 additions between devices and one in the loop; after: 16 additions and 3."""
    found = orders(IN_THE_LOOP, AFTER_IT)
    [output] = found.changed
    assert (output.before, output.after, output.longest_before, output.longest_after) == (64, 19, 16, 16)
    assert output.wires == ("f32",) and not output.ended and output.bound == pytest.approx(83 * U, rel=1e-5)
    assert "16 -> 16" in "\n".join(found.lines())


def test_the_bound_holds_where_terms_are_positive():
    """There the sum of the magnitudes is the result itself, so the bound is one of the relative difference."""
    before, after = parse(IN_THE_LOOP), parse(AFTER_IT)
    [output] = summation_orders(before, after).changed
    original = prepare(before, "main")
    made = prepare(after, "main", like=original)
    rng = np.random.default_rng(0)
    inputs = [[rng.uniform(0.1, 1.0, (16, 8)).astype(np.float32)] for _ in range(original.processes)]
    one, other = original.run(inputs).outputs, made.run(inputs).outputs
    apart = max(float(np.max(np.abs(a[0] - b[0]) / a[0])) for a, b in zip(one, other, strict=True))
    assert output.bound is not None and 0 < apart <= output.bound


def test_positions_of_carried_values_make_no_difference():
    more = accumulating(all_reduce("%r", "%g"), carried="%i = %zero, %extra = %x, %acc = %zeros",
                        kinds="tensor<i32>, tensor<16x8xf32>, tensor<8xf32>", results="%j, %extra, %next",
                        after="return %out#2 : tensor<8xf32>")
    assert not orders(IN_THE_LOOP, more).changed


def test_another_number_of_iterations_or_another_start_differs():
    twice = IN_THE_LOOP.replace("dense<1> : tensor<i32>", "dense<2> : tensor<i32>")
    started = IN_THE_LOOP.replace("%acc = %zeros", "%acc = %row0").replace(
        "%zeros =", "%s0 = stablehlo.slice %x [0:1, 0:8] : (tensor<16x8xf32>) -> tensor<1x8xf32>\n"
        "    %row0 = stablehlo.reshape %s0 : (tensor<1x8xf32>) -> tensor<8xf32>\n    %zeros =")
    assert orders(IN_THE_LOOP, twice).changed and orders(IN_THE_LOOP, started).changed


def test_a_narrow_wire_is_counted_in_its_own_unit():
    narrow = AFTER_IT.replace(all_reduce("%sum", "%out#1"), "\n".join([
        "%low = stablehlo.convert %out#1 : (tensor<8xf32>) -> tensor<8xbf16>",
        all_reduce("%wide", "%low", "tensor<8xbf16>"),
        "%sum = stablehlo.convert %wide : (tensor<8xbf16>) -> tensor<8xf32>"]))
    [output] = orders(AFTER_IT, narrow).changed
    assert output.wires == ("bf16",) and output.bound == pytest.approx(3 * U + 4 * 2.0**-8, rel=0.05)


def test_an_op_that_is_not_linear_ends_the_sums():
    ended = [text.replace("return %out#1", "%y = stablehlo.tanh %out#1 : tensor<8xf32>\n    return %y").replace(
        "return %sum", "%y = stablehlo.tanh %sum : tensor<8xf32>\n    return %y") for text in (IN_THE_LOOP, AFTER_IT)]
    [output] = orders(*ended).changed
    assert output.ended.startswith("tanh") and output.bound == pytest.approx(83 * U, rel=1e-5)
    assert "before tanh" in orders(*ended).lines()[-1]


UNKNOWN_END = ("%end = stablehlo.constant dense<16>",
               "%c = stablehlo.convert %x : (tensor<16x8xf32>) -> tensor<16x8xi32>\n"
               "    %c1 = stablehlo.slice %c [0:1, 0:1] : (tensor<16x8xi32>) -> tensor<1x1xi32>\n"
               "    %end = stablehlo.reshape %c1 : (tensor<1x1xi32>) -> tensor<i32> //")


def test_a_loop_of_unknown_trip_count_has_no_bound():
    [output] = orders(IN_THE_LOOP.replace(*UNKNOWN_END), AFTER_IT.replace(*UNKNOWN_END)).changed
    assert output.bound is None


def test_a_loop_that_multiplies_what_it_carries_with_itself_has_no_bound():
    square = "%m = stablehlo.multiply %acc, %acc : tensor<8xf32>\n      "
    first, last = ("%n = stablehlo.add %m, %g : tensor<8xf32>\n      %next = stablehlo.add %n, %g : tensor<8xf32>",
                   "%n = stablehlo.add %g, %g : tensor<8xf32>\n      %next = stablehlo.add %m, %n : tensor<8xf32>")
    [output] = orders(accumulating("", square + first), accumulating("", square + last)).changed
    assert output.bound is None
    once = "%m = stablehlo.add %acc, %acc : tensor<8xf32>\n      "
    [output] = orders(accumulating("", once + first), accumulating("", once + last)).changed
    assert output.bound == pytest.approx(80 * U, rel=0.01)


def test_a_pass_that_changes_no_order_has_equal_orders():
    before = parse(IN_THE_LOOP)
    after = before.clone()
    run_passes(after, parse_pipeline("canonicalize,cse,inline"), PassContext())
    assert summation_orders(before, after).lines() == ["rounding: equal order of sums in all 1 outputs"]


def test_what_cannot_be_compared_is_said():
    none = parse("func.func @f(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")
    assert "no main function" in summation_orders(none, none).lines()[0]
    assert SummationOrders.of_dict(orders(IN_THE_LOOP, AFTER_IT).as_dict()) == orders(IN_THE_LOOP, AFTER_IT)
