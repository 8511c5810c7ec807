"""Loops and branches that contain collectives, also where devices disagree."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference import execute, prepare
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.load import parse

ALL_REDUCE = """"stablehlo.all_reduce"(%v) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    replica_groups = dense<GROUPS> : tensor<SHAPExi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>"""
PAIR = ALL_REDUCE.replace("GROUPS", "[[0, 1]]").replace("SHAPE", "1x2")
PAIRS = ALL_REDUCE.replace("GROUPS", "[[0, 1], [2, 3]]").replace("SHAPE", "2x2")


def loop(reduce: str) -> str:
    """acc = Σ over n iterations of AR(v), v growing by x; n is an argument."""
    return f"""func.func @main(%x: tensor<f32>, %n: tensor<i32>) -> (tensor<f32>, tensor<i32>) {{
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r:3 = stablehlo.while(%i = %c0, %acc = %z, %v = %x) : tensor<i32>, tensor<f32>, tensor<f32>
      cond {{
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %0 = {reduce}
        %a2 = stablehlo.add %acc, %0 : tensor<f32>
        %v2 = stablehlo.add %v, %x : tensor<f32>
        %i2 = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %i2, %a2, %v2 : tensor<i32>, tensor<f32>, tensor<f32>
      }}
      return %r#1, %r#0 : tensor<f32>, tensor<i32>
    }}"""


def scalars(*rows: tuple[float, int]) -> list[list[np.ndarray]]:
    """(x, n) of each device."""
    return [[np.float32(x), np.int32(n)] for x, n in rows]


def test_a_reduction_in_a_loop() -> None:
    """Every iteration reduces the values of its own iteration: 11 · (1 + 2 + ... + 40)."""
    outputs = execute(parse(loop(PAIR)), scalars((1, 40), (10, 40)))
    assert [float(row[0]) for row in outputs] == [11 * 820.0] * 2


def test_groups_may_iterate_differently() -> None:
    """Devices 0 and 1 twice, 2 and 3 five times, which is legal: each group agrees."""
    outputs = execute(parse(loop(PAIRS)), scalars((1, 2), (10, 2), (100, 5), (1000, 5)))
    assert [float(row[0]) for row in outputs] == [11 * 3.0] * 2 + [1100 * 15.0] * 2
    assert [int(row[1]) for row in outputs] == [2, 2, 5, 5]


def test_members_of_a_group_that_disagree_would_hang() -> None:
    """Found, instead of an answer."""
    module = parse(loop(PAIRS))
    with pytest.raises(CannotExecute, match="reach a collective that others skip"):
        execute(module, scalars((1, 2), (10, 3), (100, 5), (1000, 5)))
    assert prepare(module, per_device=True).run(scalars((1, 0), (1, 1), (1, 1), (1, 1))).diverged
    assert not prepare(module, per_device=True).run(scalars((1, 0), (1, 0), (1, 1), (1, 1))).diverged


def branch(reduce: str, op: str = "if") -> str:
    """A branch that reduces, and one that negates."""
    first = f"%0 = {reduce}\n stablehlo.return %0"
    second = "%0 = stablehlo.negate %v : tensor<f32>\n stablehlo.return %0"
    regions = [first, second] if op == "if" else [second, first, second]
    kind = "tensor<i1>" if op == "if" else "tensor<i32>"
    bodies = ", ".join("{ " + body + " : tensor<f32> }" for body in regions)
    return (f"func.func @main(%v: tensor<f32>, %p: {kind}) -> tensor<f32> {{\n"
            f'  %y = "stablehlo.{op}"(%p) ({bodies}) : ({kind}) -> tensor<f32>\n  return %y : tensor<f32> }}')


def test_branches_by_group() -> None:
    """Each group takes its own branch."""
    rows = [[np.float32(v), np.bool_(p)] for v, p in ((1, True), (2, True), (3, False), (4, False))]
    assert [float(r[0]) for r in execute(parse(branch(PAIRS)), rows)] == [3, 3, -3, -4]
    rows[1][1] = np.bool_(False)
    with pytest.raises(CannotExecute, match="others skip"):
        execute(parse(branch(PAIRS)), rows)


@pytest.mark.parametrize(("index", "result"), [(0, -1), (1, 3), (2, -1), (9, -1), (-1, -1)])
def test_case_of_all_devices(index: int, result: float) -> None:
    """Out of range means the last branch."""
    rows = [[np.float32(v), np.int32(index)] for v in (1, 2)]
    assert float(execute(parse(branch(PAIR, "case")), rows)[0][0]) == result


def test_case_by_group() -> None:
    """Out of range on some devices only."""
    rows = [[np.float32(v), np.int32(i)] for v, i in ((1, 1), (2, 1), (3, 7), (4, 0))]
    assert [float(r[0]) for r in execute(parse(branch(PAIRS, "case")), rows)] == [3, 3, -3, -4]


def test_a_branch_with_one_predicate_stays() -> None:
    """The predicate is a constant here, so all devices share it."""
    text = branch(PAIR).replace("%p: tensor<i1>", "%q: tensor<f32>").replace(
        '%y = "stablehlo.if"', '%p = stablehlo.constant dense<true> : tensor<i1>\n %y = "stablehlo.if"')
    rows = [[np.float32(v), np.float32(0)] for v in (1, 2)]
    assert [float(r[0]) for r in execute(parse(text), rows)] == [3, 3]


def test_a_loop_inside_a_branch_not_taken_ends() -> None:
    """A device that skips a branch runs it with its own values; the loop there must not run for ever."""
    text = f"""func.func @main(%v: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {{
      %y = "stablehlo.if"(%p) ({{
        %r = stablehlo.while(%w = %v) : tensor<f32>
        cond {{
          %ten = stablehlo.constant dense<10.0> : tensor<f32>
          %q = stablehlo.compare NE, %w, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %q : tensor<i1>
        }} do {{
          %0 = {PAIRS.replace('%v', '%w')}
          %h = stablehlo.constant dense<5.0> : tensor<f32>
          %1 = stablehlo.divide %0, %0 : tensor<f32>
          %2 = stablehlo.multiply %1, %h : tensor<f32>
          %3 = stablehlo.add %w, %2 : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }}
        stablehlo.return %r : tensor<f32>
      }}, {{ stablehlo.return %v : tensor<f32> }}) : (tensor<i1>) -> tensor<f32>
      return %y : tensor<f32>
    }}"""
    rows = [[np.float32(v), np.bool_(p)] for v, p in ((5, True), (5, True), (0.5, False), (0.25, False))]
    assert [float(r[0]) for r in execute(parse(text), rows)] == [10, 10, 0.5, 0.25]


def test_calls_are_followed() -> None:
    """Twice, with other arguments each time; plain functions are copied once."""
    text = f"""func.func @main(%x: tensor<f32>) -> tensor<f32> {{
      %0 = call @sum(%x) : (tensor<f32>) -> tensor<f32>
      %1 = call @sum(%0) : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }}
    func.func private @sum(%v: tensor<f32>) -> tensor<f32> {{
      %0 = {PAIR}
      %1 = call @half(%0) : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }}
    func.func private @half(%v: tensor<f32>) -> tensor<f32> {{
      %c = stablehlo.constant dense<0.5> : tensor<f32>
      %0 = stablehlo.multiply %v, %c : tensor<f32>
      return %0 : tensor<f32>
    }}"""
    assert [float(r[0]) for r in execute(parse(text), [[np.float32(1)], [np.float32(4)]])] == [2.5, 2.5]


def test_recursion_is_refused() -> None:
    """Only where it contains collectives does it matter."""
    text = f"""func.func @main(%v: tensor<f32>) -> tensor<f32> {{
      %0 = call @f(%v) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }}
    func.func private @f(%v: tensor<f32>) -> tensor<f32> {{
      %0 = {PAIR}
      %1 = call @f(%0) : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }}"""
    with pytest.raises(CannotExecute, match="@f is recursive"):
        prepare(parse(text))
