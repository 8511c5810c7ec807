"""Each op with each of its operands deferred, for each reduction: what is proved is what holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlorewrite.checks.prove.prove import prove_file
from hlorewrite.checks.prove.verdict import REFUTED
from hlorewrite.checks.reference.rule_checks.facts import check_fact
from hlorewrite.rules.compile.checks import bind
from hlorewrite.rules.library import checked, load, read_source

pytest.importorskip("z3")

KINDS = ("sum", "product", "max")
IMPORT = 'import "natives.hlopat";\n'
SAME = "{{ same({}, %r); real_floating(%r); }}"
OPS = {  # op: operands, those that say which elements are taken, types, and where the operands are linear alone
    "add": (2, (), "", {(0, "max"), (1, "max")}),
    "subtract": (2, (), "", {(0, "max")}),
    "multiply": (2, (), "", {(0, "sum"), (1, "sum")}),
    "divide": (2, (), "", {(0, "sum")}),
    "maximum": (2, (), "", {(0, "max"), (1, "max")}),
    "minimum": (2, (), "", {(0, "max"), (1, "max")}),
    "clamp": (3, (), "", {(0, "max"), (1, "max"), (2, "max")}),
    "complex": (2, (), "{ parts(%r, %o0); parts(%r, %o1); }", {(0, "max"), (1, "max")}),
    "concatenate": (2, (), "", {(0, "max"), (1, "max")}),
    "pad": (2, (), "", {(0, "max"), (1, "max")}),
    "dynamic_slice": (2, (1,), "", {(0, kind) for kind in KINDS}),
    "dynamic_update_slice": (3, (2,), "", {(0, "max"), (1, "max")}),
    "gather": (2, (1,), "", {(0, kind) for kind in KINDS}),
    "select": (3, (0,), "", {(1, "max"), (2, "max")}),
    "dot_general": (2, (), "", {(0, "sum"), (1, "sum")}),
    "convolution": (2, (), "", {(0, "sum"), (1, "sum")}),
    "triangular_solve": (2, (), "", {(1, "sum")}),
}
FOLDS = {"reduce": "body", "reduce_window": "body", "scatter": "update_computation"}
BODIES = {"sum": "sum", "product": "product", "max": "max", "min": "min"}


def fact(name: str, op: str, count: int, deferred: str, kind: str, types: str, region: str = "",
         legal: str = "") -> str:
    operands = [f"%o{i}" for i in range(count)]
    fixed = "".join(f"uniform({o}); " for o in operands if o not in deferred.split(", "))
    says = legal or fixed
    return (f"linear {name} {{ match {{ root %r = stablehlo.{op}({', '.join(operands)}){region}; }} in {deferred}; "
            f"kinds {kind}; types {types} floats reassociates, rescales; {f'legal {{ {says} }}' if says else ''} }}\n")


@pytest.mark.parametrize("op", OPS)
def test_each_operand_alone(op: str, tmp_path: Path) -> None:
    """The others are uniform."""
    count, selectors, types, holds = OPS[op]
    moved = ", ".join(f"%o{i}" for i in range(count) if i not in selectors)
    types = types or SAME.format(moved)
    claims = [(i, kind) for i in range(count) for kind in KINDS]
    path = tmp_path / "a.hlopat"
    path.write_text(IMPORT + "".join(fact(f"f{i}-{kind}", op, count, f"%o{i}", kind, types) for i, kind in claims))
    assert {claim for claim, verdict in zip(claims, prove_file(str(path)), strict=True) if verdict.sound} == holds


def test_a_triangular_solve_is_linear_in_the_right_hand_side_only(tmp_path: Path) -> None:
    types = SAME.format("%o0, %o1")
    path = tmp_path / "a.hlopat"
    path.write_text(IMPORT + fact("matrix", "triangular_solve", 2, "%o0", "sum", types)
                    + fact("right", "triangular_solve", 2, "%o1", "sum", types)
                    + fact("both", "triangular_solve", 2, "%o0, %o1", "sum", types)
                    + fact("varies", "triangular_solve", 2, "%o1", "sum", types, legal="is_identity(%o1);"))
    matrix, right, both, varies = prove_file(str(path))
    assert (matrix.status, both.status, varies.sound, right.sound) == (REFUTED, REFUTED, False, True)


@pytest.mark.parametrize("op", FOLDS)
def test_each_operand_of_a_reduction_alone(op: str, tmp_path: Path) -> None:
    """By each op of the region: an initial value may be taken more than once, an update any number of times."""
    count = 3 if op == "scatter" else 2
    data = (0, 2) if op == "scatter" else (0, 1)
    types = SAME.format(", ".join(f"%o{i}" for i in data))
    claims = [(i, kind, body) for i in data for kind in KINDS for body in BODIES]
    path = tmp_path / "a.hlopat"
    path.write_text(IMPORT + "".join(fact(f"f{i}-{kind}-{body}", op, count, f"%o{i}", kind, types,
                                          f" {FOLDS[op]} reduces({body})") for i, kind, body in claims))
    proved = {claim for claim, verdict in zip(claims, prove_file(str(path)), strict=True) if verdict.sound}
    once = 0 if op == "scatter" else 1  # the operand of a scatter is taken once, an initial value is one value
    assert proved == {(0, "max", "max"), (data[1], "max", "max"), (once, "max", "min"), (once, "max", "sum"), *(
        [(0, "sum", "product")] if op == "scatter" else [])}


WRONG = {  # proved once: two elements of the first operand and one of each other were looked at
    "updates of a product": fact("a", "scatter", 3, "%o2", "sum", SAME.format("%o0, %o2"),
                                 " update_computation reduces(product)"),
    "updates of a minimum": fact("a", "scatter", 3, "%o2", "max", SAME.format("%o0, %o2"),
                                 " update_computation reduces(min)"),
    "indices of sums of least numbers": fact("a", "scatter", 3, "%o1", "max", SAME.format("%o0, %o2"),
                                             " update_computation reduces(sum)",
                                             "is_identity(%o0); is_identity(%o2);"),
    "operand and indices of a product": fact("a", "scatter", 3, "%o0, %o1", "sum", SAME.format("%o0, %o2"),
                                             " update_computation reduces(product)", "is_identity(%o2);"),
    "the matrix of a solve": fact("a", "triangular_solve", 2, "%o0", "sum", SAME.format("%o0, %o1")),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_facts_are_not_proved(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.hlopat"
    path.write_text(IMPORT + WRONG[what])
    [verdict] = prove_file(str(path))
    assert not verdict.sound


def test_an_update_of_a_product_is_wrong_when_it_is_executed(tmp_path: Path) -> None:
    """So the refusal above is not a matter of the prover's strength."""
    path = tmp_path / "a.hlopat"
    path.write_text(IMPORT + WRONG["updates of a product"])
    [compiled] = load(str(path)).facts
    natives = bind(checked(read_source(str(path)))[1], str(path))
    assert check_fact(compiled, natives).wrong


def test_declared_folds_take_any_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.hlopat"
    path.write_text(IMPORT + """meaning stablehlo.map(%a, %b) { folds %a, %b; }
linear second { match { root %r = stablehlo.map(%a, %b) computation reduces(min); } in %b; kinds max;
  types { same(%a, %b, %r); } floats exact; legal { uniform(%a); } }
linear both { match { root %r = stablehlo.map(%a, %b) computation reduces(max); } in %a, %b; kinds max;
  types { same(%a, %b, %r); real_floating(%r); } floats exact; }
""")
    assert [verdict.sound for verdict in prove_file(str(path))] == [False, True]
