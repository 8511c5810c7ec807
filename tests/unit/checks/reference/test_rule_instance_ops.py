"""Rules about ops that change shapes and about linear algebra: programs are made for them, wrong ones are caught."""

from __future__ import annotations

import pytest

from hlorewrite.checks.reference.rule_checks.rules import RuleResult, check_rule
from hlorewrite.rules.compile.checks import bind
from hlorewrite.rules.library import checked, load_text, read_source


def checked_rule(text: str, programs: int = 60) -> RuleResult:
    natives = bind(checked(read_source("natives"))[1], "natives")
    return check_rule(load_text('import "natives.hlopat";\n' + text).rules[0], natives, programs=programs)


def behind(op: str, attributes: str) -> str:
    """AR(op(x)) = op(AR(x)) for sums."""
    braces = f"{{{attributes}}}" if attributes else ""
    return f"""rule a {{ match {{ %m = stablehlo.{op}(%x) {braces};
                root %r = stablehlo.all_reduce(%m) computation reduces(sum); }}
      types any;
      floats exact;
      rewrite {{ %s = stablehlo.all_reduce(%x) computation reduces(sum) -> type(%x) like %r;
                %t = stablehlo.{op}(%s) {braces} -> type(%r); replace %r with %t; erase %m; }} }}"""


SLICE = "start_indices = $a, limit_indices = $b, strides = $c"


@pytest.mark.parametrize(("op", "attributes"), [
    ("transpose", "permutation = $p"), ("transpose", "permutation = [1, 0]"), ("reshape", ""), ("slice", SLICE),
    ("fft", "fft_type = $k, fft_length = $n"), ("fft", "fft_type = `#stablehlo<fft_type IFFT>`, fft_length = $n")])
def test_a_sum_and_a_linear_op_change_places(op: str, attributes: str) -> None:
    result = checked_rule(behind(op, attributes), 150)
    assert result.wrong == () and result.not_generated == ""
    assert result.rewritten > 0


SOLVE = """rule a { match { %y = stablehlo.triangular_solve(%m, %b) {left_side = $l, lower = true, unit_diagonal = $u,
                  transpose_a = $t}; root %r = stablehlo.all_reduce(%y) computation reduces(sum); }
      WHERE
      types any;
      floats exact;
      rewrite { %s = stablehlo.all_reduce(%b) -> type(%b) like %r;
                %z = stablehlo.triangular_solve(%m, %s) {left_side = $l, lower = true, unit_diagonal = $u,
                     transpose_a = $t} -> type(%r); replace %r with %z; erase %y; } }"""


def test_a_matrix_that_differs_between_devices_is_noticed() -> None:
    assert any("the values differ" in sentence for sentence in checked_rule(SOLVE.replace("WHERE", ""), 400).wrong)


@pytest.mark.parametrize("text", [
    """rule a { match { root %r = stablehlo.transpose(%x) {permutation = [1, 0]}; } where { type(%x) == type(%r); }
      types any;
      floats exact;
      rewrite { replace %r with %x; } }""",
    """rule a recursive(2) { match { root %r = stablehlo.slice(%x) {strides = $s, limit_indices = $l,
                                                                   start_indices = $a}; }
      types any;
      floats exact;
      rewrite { %t = stablehlo.negate(%x);
                %u = stablehlo.slice(%t) {start_indices = $a, limit_indices = $l, strides = $s} -> type(%r);
                replace %r with %u; } }""",
    """rule a { match { root %r = stablehlo.fft(%x) {fft_type = `#stablehlo<fft_type FFT>`, fft_length = $n}; }
      types any;
      floats exact;
      rewrite { %t = stablehlo.fft(%x) {fft_type = `#stablehlo<fft_type IFFT>`, fft_length = $n} -> type(%r);
                replace %r with %t; } }"""], ids=("transpose", "slice", "fft"))
def test_wrong_ones_are_caught(text: str) -> None:
    assert any("the values differ" in sentence for sentence in checked_rule(text, 150).wrong)
