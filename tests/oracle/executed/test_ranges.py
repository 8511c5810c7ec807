"""What is equal on standard normal inputs, and leaves the range of its types on large, cancelling or tiny ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.inputs import KINDS, SHARES, exponents_of, extreme_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.cli.main import main
from hlorewrite.errors import ValuesDiffer
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module

HEAD = "module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
NARROW = ("f16", "f8E4M3FN", "f8E5M2")
WIDE = ("f32", "bf16", "f64")


def reduced(result: str, operand: str, kind: str, by: str = "add") -> str:
    scalar = f"tensor<{kind}>"
    return (f'%{result} = "stablehlo.all_reduce"(%{operand}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, '
            "type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> "
            f"({{^bb0(%p: {scalar}, %q: {scalar}): %s = stablehlo.{by} %p, %q : {scalar} stablehlo.return %s : {scalar}"
            f"}}) : (tensor<4x{kind}>) -> tensor<4x{kind}>\n")


def loop(kind: str, body: str, carried: str, arguments: str = "%x: tensor<4x{t}>", start: str = "0.0") -> str:
    """30 iterations that add to %a and yield %n; %r is the last one."""
    t = f"tensor<4x{kind}>"
    return (f"func.func @main({arguments.format(t=kind)}) -> {t} {{\n%c0 = stablehlo.constant dense<0> : tensor<i32> "
            "%c1 = stablehlo.constant dense<1> : tensor<i32> %c30 = stablehlo.constant dense<30> : tensor<i32> "
            f"%z = stablehlo.constant dense<{start}> : {t}\n"
            f"%l:2 = stablehlo.while(%i = %c0, %a = %z) : tensor<i32>, {t} cond {{ "
            "%more = stablehlo.compare LT, %i, %c30 : (tensor<i32>, tensor<i32>) -> tensor<i1> "
            f"stablehlo.return %more : tensor<i1> }} do {{ %j = stablehlo.add %i, %c1 : tensor<i32> {body} "
            f"stablehlo.return %j, %{carried} : tensor<i32>, {t} }}\n")


def accumulated(kind: str, deferred: bool, scale: str = "") -> Module:
    """A sum over devices in each iteration, times a factor, or once after the loop of factors times operands."""
    t, factor = f"tensor<4x{kind}>", f"%f = stablehlo.constant dense<{scale}> : tensor<4x{kind}> " if scale else ""
    times = f"{factor}%v = stablehlo.multiply %{{}}, %f : {t} " if scale else ""
    if deferred:
        body = f"{times.format('x')}%n = stablehlo.add %a, %{'v' if scale else 'x'} : {t}"
        rest = f"%y = stablehlo.add %l#1, %z : {t} " + reduced("r", "y", kind)
    else:
        body = f"{reduced('w', 'x', kind)} {times.format('w')}%n = stablehlo.add %a, %{'v' if scale else 'w'} : {t}"
        rest = f"%r = stablehlo.add %l#1, %z : {t} "
    return parse(f"{HEAD}{loop(kind, body, 'n')}{rest}return %r : {t} }} }}")


@pytest.mark.parametrize("kind", ["f16", "f8E4M3FN"])
def test_sums_that_cancel_between_devices(kind: str) -> None:
    """Each device alone adds up to more than the largest number."""
    before, after = accumulated(kind, False), accumulated(kind, True)
    assert check(before, before).equal
    found = check(before, after)
    assert "on cancelling inputs, for which the original stays in the range of its types" in found.problems[0]
    with pytest.raises(ValuesDiffer, match=r"becomes (nan|inf|-inf) instead of"):
        found.raise_if_different("a.mlir")


def test_a_factor_before_the_sum_loses_what_is_tiny() -> None:
    before, after = accumulated("f16", False, "0.125"), accumulated("f16", True, "0.125")
    assert check(before, before).equal
    assert [problem for problem in check(before, after).problems if "becomes 0 instead of" in problem]


@pytest.mark.parametrize("scale", ["", "0.125"])
@pytest.mark.parametrize("kind", WIDE)
def test_wide_formats_have_room_for_both(kind: str, scale: str) -> None:
    found = check(accumulated(kind, False, scale), accumulated(kind, True, scale))
    assert found.equal, found


@pytest.mark.parametrize("kind", NARROW)
def test_a_quotient_moved_behind_a_sum_overflows(kind: str) -> None:
    t = f"tensor<4x{kind}>"
    eighth = f"%e = stablehlo.constant dense<0.125> : {t} "
    inside = f"{eighth}%d = stablehlo.multiply %x, %e : {t} {reduced('r', 'd', kind)}"
    outside = f"{eighth}{reduced('s', 'x', kind)}%r = stablehlo.multiply %s, %e : {t} "
    before, after = (parse(f"{HEAD}func.func @main(%x: {t}) -> {t} {{ {text} return %r : {t} }} }}")
                     for text in (inside, outside))
    assert check(before, before).equal
    assert "on large inputs" in check(before, after).problems[0]
    wide = [parse(module.text().replace(kind, "f32")) for module in (before, after)]
    assert check(*wide).equal


def test_an_identity_that_is_not_one() -> None:
    """The lowest number of e4m3fn plus a negative one is not a number."""
    kind, t = "f8E4M3FN", "tensor<4xf8E4M3FN>"
    arguments = "%x: tensor<4x{t}>, %k: tensor<4x{t}>"
    body = f"%b = stablehlo.add %a, %k : {t} %n = stablehlo.maximum %b, %{{}} : {t} "
    each = loop(kind, reduced("w", "x", kind, "maximum") + body.format("w"), "n", arguments) + (
        f"%r = stablehlo.add %l#1, %z : {t} ")
    once = loop(kind, body.format("x"), "n", arguments, "-448.0") + (
        f"%o = stablehlo.constant dense<0.0> : {t} %y = stablehlo.maximum %l#1, %o : {t} "
        + reduced("r", "y", kind, "maximum"))
    before, after = (parse(f"{HEAD}{text}return %r : {t} }} }}") for text in (each, once))
    assert not check(before, after).equal


@pytest.mark.parametrize("kind", ["f16", "bf16", "f8E5M2", "f32"])
def test_sums_in_another_order_are_equal(kind: str) -> None:
    """By halves of the group instead of the whole: in range on all inputs that are drawn."""
    t = f"tensor<4x{kind}>"
    whole = reduced("r", "x", kind)
    halves = reduced("h", "x", kind).replace("[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>",
                                             "[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>") + \
        reduced("r", "h", kind).replace("[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>",
                                        "[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>")
    before, after = (parse(f"{HEAD}func.func @main(%x: {t}) -> {t} {{ {text} return %r : {t} }} }}")
                     for text in (whole, halves))
    found = check(before, after)
    assert found.equal, found


def test_what_the_original_loses_itself_is_not_held_against_the_rewritten_module() -> None:
    """A square overflows on large inputs, and is lost on tiny ones; inputs nearer to one are compared."""
    t = "tensor<4xf16>"
    text = "func.func @main(%x: {t}) -> {t} {{ %y = stablehlo.multiply %x, %x : {t} {} return %r : {t} }}"
    plain = text.format("%r = stablehlo.add %y, %y : tensor<4xf16>", t=t)
    doubled = text.format("%c = stablehlo.constant dense<2.0> : tensor<4xf16> "
                          "%d = stablehlo.multiply %x, %c : tensor<4xf16> "
                          "%r = stablehlo.multiply %d, %x : tensor<4xf16>", t=t)
    assert check(parse(plain), parse(doubled)).equal
    scaled = text.format("%c = stablehlo.constant dense<4096.0> : tensor<4xf16> "
                         "%e = stablehlo.constant dense<2.44140625e-4> : tensor<4xf16> "
                         "%u = stablehlo.multiply %y, %c : tensor<4xf16> "
                         "%v = stablehlo.multiply %u, %e : tensor<4xf16> "
                         "%r = stablehlo.add %v, %v : tensor<4xf16>", t=t)
    assert not check(parse(plain), parse(scaled)).equal


def test_a_loop_that_floats_decide_is_left_alone() -> None:
    """On large inputs this one never ends."""
    text = """func.func @main(%x: tensor<f16>) -> tensor<f16> {
      %one = stablehlo.constant dense<1.0> : tensor<f16>
      %limit = stablehlo.constant dense<100.0> : tensor<f16>
      %r = stablehlo.while(%a = %x) : tensor<f16> cond {
        %p = stablehlo.compare GT, %a, %limit : (tensor<f16>, tensor<f16>) -> tensor<i1>
        stablehlo.return %p : tensor<i1> } do {
        %n = stablehlo.add %a, %one : tensor<f16>
        %m = stablehlo.subtract %n, %one : tensor<f16>
        stablehlo.return %m : tensor<f16> }
      return %r : tensor<f16> }"""
    module = parse(text)
    assert check(module, module).equal


@pytest.mark.parametrize("narrow, wide", [("i8", "i32"), ("ui8", "ui16"), ("i32", "i64")])
def test_integers_next_to_the_ends_of_their_type(narrow: str, wide: str) -> None:
    """A narrow sum wraps around before it is widened."""
    a, b = f"tensor<{narrow}>", f"tensor<{wide}>"
    first = f"%s = stablehlo.add %x, %x : {a} %r = stablehlo.convert %s : ({a}) -> {b}"
    last = f"%s = stablehlo.convert %x : ({a}) -> {b} %r = stablehlo.add %s, %s : {b}"
    before, after = (parse(f"func.func @main(%x: {a}) -> {b} {{ {text} return %r : {b} }}") for text in (first, last))
    assert check(before, before).equal
    assert not any(check(before, after, seed=seed).equal for seed in range(4))


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "complex<f32>", "i8", "ui32"])
def test_inputs_are_finite_and_their_sums_too(kind: str) -> None:
    text = f"{HEAD}func.func @main(%x: tensor<4x{kind}>) -> tensor<4x{kind}> {{ {reduced('r', 'x', kind)}return %r : " \
        f"tensor<4x{kind}> }} }}"
    program = prepare(parse(text))
    size = exponents_of(program)
    assert (size is None) == ("i" in kind and "c" not in kind)
    for which in KINDS:
        for share in SHARES:
            inputs = extreme_inputs(program, 0, which, share, size)
            again = extreme_inputs(program, 0, which, share, size)
            assert all(np.array_equal(a[0], b[0]) for a, b in zip(inputs, again, strict=True))
            numbers = np.array([np.abs(row[0].astype(np.complex128 if "c" in kind else np.float64)) for row in inputs])
            assert np.isfinite(numbers).all()
            if size is not None:
                assert (numbers > 0).all()
                if which == "cancelling":  # in any order
                    assert np.isfinite(np.asarray(numbers[:4].sum(axis=0)).astype(inputs[0][0].real.dtype)).all()


def test_verify_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XLA on CPUs adds float16 up in float32, so the interpreter is asked."""
    for name, deferred in (("before", False), ("after", True)):
        (tmp_path / f"{name}.mlir").write_text(accumulated("f16", deferred).text())
    before, after = str(tmp_path / "before.mlir"), str(tmp_path / "after.mlir")
    assert main(["verify", before, after]) == 3
    assert "on cancelling inputs, for which the original stays in the range of its types" in capsys.readouterr().out
    assert main(["verify", before, before]) == 0
