"""Verdicts: shipped rules, wrong ones, contradictory ones, users' ones, and no solver."""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from hlorewrite.checks.prove.contracts import CONTRACTS, EXEMPT
from hlorewrite.checks.prove.counterexamples import search
from hlorewrite.checks.prove.elements import FLOATS, embeds
from hlorewrite.checks.prove.lemmas import steps
from hlorewrite.checks.prove.prove import NO_SOLVER, prove_file, prove_lemmas
from hlorewrite.checks.prove.rules import possible
from hlorewrite.checks.prove.solver import NoSolver, decide, satisfiable, solver
from hlorewrite.checks.prove.tensors import DeviceGroups
from hlorewrite.checks.prove.verdict import ASSUMED, REFUTED, UNKNOWN
from hlorewrite.checks.reference.check import check
from hlorewrite.cli.main import main
from hlorewrite.errors import InputError, RuleCheckError
from hlorewrite.ir.context import new_context
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.patterns.natives import composed_groups
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.library import checked, read_source, shipped_names
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.proofs import digest, how_known, known_proofs
from hlorewrite.rules.syntax import ast

z3 = pytest.importorskip("z3")

IMPORT = 'import "natives.hlopat";\n'
LINEAR = ("linear a {{ match {{ root %r = {op}; }} in {operands}; kinds {kinds}; types {types} floats {floats}; "
          "{legal} }}\n")
PAIR = ("%ra = stablehlo.all_reduce(%a) computation reduces(sum); %rb = stablehlo.all_reduce(%b) computation "
        "reduces(sum); root %s = stablehlo.add(%ra, %rb);")
SUM = ("rule a {{ match {{ " + PAIR + " }} types {{ same(%a, %b, %s); }} floats reassociates; legal {{ {legal} }} "
       "rewrite {{ %t = stablehlo.add(%a, %b) like %s; %r = stablehlo.all_reduce(%t) like %ra; "
       "replace %s with %r; }} }}\n")


def fact(op: str, types: str = "any;", operands: str = "%a", kinds: str = "sum", floats: str = "rescales",
         legal: str = "") -> str:
    return IMPORT + LINEAR.format(op=op, operands=operands, kinds=kinds, types=types, floats=floats, legal=legal)


def written(folder: Path, text: str) -> str:
    path = folder / "a.hlopat"
    path.write_text(text)
    return str(path)


# ---- shipped rules


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_rules_are_proved_and_the_kept_verdicts_are_fresh(name: str) -> None:
    """If this fails, run tools/update_proofs.py and look at what is not proved."""
    items = {i.name: i for i in checked(read_source(name))[0].items if isinstance(i, ast.Rule | ast.Linear)}
    verdicts = {verdict.name: verdict for verdict in prove_file(name)}
    assert verdicts.keys() == items.keys()
    for key, verdict in verdicts.items():
        assert verdict.sound and verdict.typings > 0, verdict
        assert (known_proofs()[key].digest, known_proofs()[key].verdict) == (digest(items[key]), verdict.sentence)


def test_kept_verdicts_are_of_the_texts_as_they_are() -> None:
    """Without a proof, which takes longer: a rule or fact that was changed has another digest."""
    for name in shipped_names():
        for item in checked(read_source(name))[0].items:
            if isinstance(item, ast.Rule | ast.Linear):
                kept = known_proofs()[item.name]
                assert kept.digest == digest(item) and kept.verdict.startswith("proved"), item.name


def test_kept_verdicts_are_about_shipped_rules_only() -> None:
    names = {i.name for name in shipped_names() for i in checked(read_source(name))[0].items
             if isinstance(i, ast.Rule | ast.Linear)}
    assert known_proofs().keys() == names


def test_a_changed_text_has_no_verdict() -> None:
    from dataclasses import replace
    item = next(i for i in checked(read_source("linearity"))[0].items if isinstance(i, ast.Linear))
    assert how_known(item) == "proved over the reals"
    assert how_known(replace(item, docs=("other words",))) == "proved over the reals"
    assert how_known(replace(item, kinds=replace(item.kinds, names=("max",)))).startswith("not proved yet")


def test_every_native_of_shipped_rules_has_a_contract_or_an_exemption() -> None:
    relations = {n.name for n in checked(read_source("collectives"))[1].values() if n.kind == "relation"}
    called = set[str]()
    for item in checked(read_source("collectives"))[0].items:
        if isinstance(item, ast.Rule):
            for block in item.blocks:
                called |= {s.expression.function for s in block.statements
                           if isinstance(s, ast.Condition | ast.Let) and isinstance(s.expression, ast.Call)}
    assert called <= {*CONTRACTS, *EXEMPT, *relations, "bytes"}


# ---- lemmas and the solver


def test_lemmas() -> None:
    verdicts = prove_lemmas()
    assert all(verdict.sound for verdict in verdicts)
    assert {step.lemma for step in steps()} == {step.lemma for step in steps() if step.holds}


def test_lemma_premises_hold_together() -> None:
    """On a set of one element they do; a contradiction would prove every step."""
    t = z3.DeclareSort("T")
    x, only = z3.Const("x", t), z3.Const("only", t)
    for step in steps():
        assert satisfiable([*step.premises, z3.ForAll([x], x == only)]), step.name


def test_unknown_is_not_proved() -> None:
    i, j, n = z3.Ints("i j n")
    assert decide(i * i * i + j * j * j + n * n * n != 42, [], 50).status == "unknown"


def test_contradictory_premises_are_noticed() -> None:
    groups = DeviceGroups("g")
    assert possible(groups.axioms, [groups])
    assert not possible([*groups.axioms, groups.n == 0], [groups])


def test_formats_agree_with_arithmetic() -> None:
    """What `embeds` says about small formats, by converting every number there is."""
    import ml_dtypes
    import numpy as np
    small = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3": ml_dtypes.float8_e4m3,
             "f8E3M4": ml_dtypes.float8_e3m4, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu}
    wide = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
    for source, dtype in small.items():
        numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        for target, other in {**small, **wide}.items():
            with np.errstate(over="ignore"):
                kept = (numbers.astype(other).astype(np.float64) == numbers).all()
            assert source in FLOATS and bool(kept) >= embeds(source, target), (source, target)


# ---- wrong ones are refuted, and a program shows it


WRONG = {
    "a narrow sum is widened": fact("stablehlo.convert(%a)", floats="widens"),
    "integers are divided": fact("stablehlo.divide(%a, %k)", "{ same(%a, %k, %r); arithmetic(%a); }",
                                 legal="legal { uniform(%k); }"),
    "a product of tensors widens": fact("stablehlo.dot_general(%a, %m)", legal="legal { uniform(%m); }"),
    "a factor differs": fact("stablehlo.multiply(%a, %k)"),
    "a sum of maxima": fact("stablehlo.maximum(%a, %b)", operands="%a, %b"),
    "an index differs": fact("stablehlo.dynamic_slice(%a, %i)", kinds="sum"),
    "padding that is added up": fact("stablehlo.pad(%a, %p)", legal="legal { uniform(%p); }"),
    "other groups": IMPORT + SUM.format(legal="reassociates(%s);"),
    "a reduction left out": IMPORT + "rule a { match { root %r = stablehlo.all_reduce(%x) computation reduces(max); } "
                            "types { same(%x, %r); } floats exact; rewrite { replace %r with %x; } }\n",
    "a reducer that is not named": fact("stablehlo.reduce(%a, %z)", "{ same(%a, %z, %r); }", "%a, %z"),
    "a permute taken back": IMPORT + "rule a { match { %p = stablehlo.collective_permute(%x); root %q = "
                            "stablehlo.collective_permute(%p); } types { same(%x, %q); } floats exact; "
                            "rewrite { replace %q with %x; } }\n",
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_comes_with_a_program(what: str, tmp_path: Path) -> None:
    path = written(tmp_path, WRONG[what])
    [verdict] = prove_file(path)
    assert verdict.status in (REFUTED, UNKNOWN)
    programs = search(path, "a")
    assert programs is not None
    before, after = (parse(text) for text in programs)
    assert not all(check(before, after, seed=seed).equal for seed in range(3))


def test_a_refutation_names_the_elements(tmp_path: Path) -> None:
    [verdict] = prove_file(written(tmp_path, fact("stablehlo.convert(%a)", "{ arithmetic(%a) and arithmetic(%r); }")))
    assert verdict.status == REFUTED and verdict.types == ("i2", "i4") and verdict.kind == "sum"
    assert {name for name, _ in verdict.model} == {"x_a[j]", "y_a[j]"}


# ---- neither proved nor refuted


def test_reasons(tmp_path: Path) -> None:
    for text, reason in (
            (fact("stablehlo.sort(%a)"), "the meaning of stablehlo.sort is not known"),
            (fact("stablehlo.map(%a, %b)").replace("linear", "meaning stablehlo.map(%a) { each %a; }\nlinear", 1),
             "the meaning of stablehlo.map has a different number of operands"),
            (fact("stablehlo.negate(%a)", "{ parts(%a, %r); }"), "`types` admits no element types"),
            (fact("stablehlo.multiply(%a, %k)", "{ same(%a, %k, %r); }", floats="exact",
                  legal="legal { uniform(%k); }"), "holds over the reals, but `floats exact` is not proved"),
            (IMPORT + SUM.format(legal="same_groups(%ra, %rb);").replace("reassociates", "exact"), "does not commute"),
            (IMPORT + "rule a { match { root %r = stablehlo.negate(%x); } types any; floats exact; "
             "rewrite { set %r[0] = %x; } }", "the prover does not follow changes in place")):
        [verdict] = prove_file(written(tmp_path, text))
        assert verdict.status == UNKNOWN and reason in verdict.reason and not verdict.sound, verdict


@pytest.mark.parametrize("legal", ["", "legal { same_collective(%p, %q); }"])
def test_same_collective_is_about_its_own_ops(legal: str, tmp_path: Path) -> None:
    """Another op in the match, here a maximum, may have another name."""
    path = tmp_path / "mine.hlopat"
    path.write_text(f"""import "natives.hlopat";
rule maximum-of-exchanges {{
  match {{
    sole %p = stablehlo.all_gather|stablehlo.all_to_all(%a);
    sole %q = stablehlo.all_gather|stablehlo.all_to_all(%b);
    root %s = stablehlo.maximum(%p, %q);
  }}
  types {{ same(%a, %b, %s); }}
  floats exact;
  {legal}
  rewrite {{ %t = stablehlo.maximum(%a, %b); %r = stablehlo.all_gather(%t) -> type(%s) like %p; replace %s with %r;
            erase %p, %q; }}
}}
""")
    [verdict] = prove_file(str(path))
    assert not verdict.sound and verdict.sentence.startswith("unknown: %r is not shown to")
    text = path.read_text().replace("stablehlo.all_gather|stablehlo.all_to_all", "stablehlo.all_gather")
    path.write_text(text)
    [verdict] = prove_file(str(path))
    assert verdict.sound == bool(legal), verdict.sentence



def test_conditions_that_contradict_each_other_prove_nothing(tmp_path: Path) -> None:
    """No device receives anything, and every device sends to itself."""
    [verdict] = prove_file(written(tmp_path, IMPORT + """rule a {
  match { root %r = stablehlo.all_reduce(%x) computation reduces($k); }
  where { $k == "sum" and $k == "max"; }
  types { same(%x, %r); }
  floats exact;
  rewrite { replace %r with %x; }
}
"""))
    assert verdict.status == UNKNOWN and "no combination of element types and reductions is admitted" in verdict.reason


# ---- users' files


def test_meanings(tmp_path: Path) -> None:
    text = IMPORT + """meaning stablehlo.sort(%a, %i) { moves %a by %i; }
meaning stablehlo.power(%a, %b) { each 3 * %a - %b; }
meaning stablehlo.map(%a, %b) { terms convert(%a) * convert(%b); }
linear moved { match { root %r = stablehlo.sort(%a, %i); } in %a; kinds any; types { same(%a, %r); } floats exact;
  legal { uniform(%i); } }
linear moved-otherwise { match { root %r = stablehlo.sort(%a, %i); } in %a; kinds any; types { same(%a, %r); }
  floats exact; }
linear both { match { root %r = stablehlo.power(%a, %b); } in %a, %b; kinds sum; types { same(%a, %b, %r);
  arithmetic(%a); } floats rescales; }
linear one { match { root %r = stablehlo.power(%a, %b); } in %a; kinds sum; types { same(%a, %b, %r);
  arithmetic(%a); } floats rescales; legal { uniform(%b); } }
linear terms { match { root %r = stablehlo.map(%a, %b); } in %a; kinds sum; types { sum_keeps_value(%r, %a); }
  floats rescales; legal { uniform(%b); } }
"""
    verdicts = {v.name: v for v in prove_file(written(tmp_path, text))}
    assert [name for name, v in verdicts.items() if v.sound] == ["moved", "both", "terms"]
    assert verdicts["moved"].trusts == ("meaning stablehlo.sort",)
    assert "given meaning stablehlo.sort" in verdicts["moved"].sentence


@pytest.mark.parametrize("line, words", [
    ("meaning stablehlo.add(%a, %b) { each %a; }", "stablehlo.add has a meaning already"),
    ("meaning stablehlo.sort(%a) { each %b; }", "`%b` is not an operand of stablehlo.sort here"),
    ("meaning stablehlo.sort(%a) { moves %b; }", "`%b` is not an operand of stablehlo.sort here"),
    ("meaning stablehlo.srot(%a) { each %a; }", "there is no op `stablehlo.srot`"),
    ("meaning stablehlo.sort(%a) { each sin(%a); }", "`sin(%a)` is not known to the prover"),
    ("meaning stablehlo.sort(%a) { each %a < 1; }", "`%a < 1` is not known to the prover"),
])
def test_wrong_meanings(line: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(RuleCheckError, match=r"a\.hlopat:2:\d+: ") as caught:
        prove_file(written(tmp_path, IMPORT + line + "\n"))
    assert words in str(caught.value)


# ---- what natives promise


def partitions(items: list[int], size: int) -> list[list[list[int]]]:
    if not items:
        return [[]]
    first, *rest = items
    return [[[first, *others], *more] for others in combinations(rest, size - 1)
            for more in partitions([i for i in rest if i not in others], size)]


def test_composed_groups_are_the_composition() -> None:
    """All pairs of partitions of up to four devices: each device's group is what it receives, each once."""
    answers = []
    for count in (2, 3, 4):
        every = [p for n in range(1, count + 1) if count % n == 0 for p in partitions(list(range(count)), n)]
        for inner in every:
            for outer in every:
                answers.append(_composition_is_right(count, inner, outer))
    assert False not in answers and answers.count(True) == 21 and None in answers


def _composition_is_right(count: int, inner: list[list[int]], outer: list[list[int]]) -> bool | None:
    """Whether the answer is the composition; None when the native refuses."""
    def reduction(result: str, operand: str, rows: list[list[int]]) -> str:
        return (f'{result} = "stablehlo.all_reduce"({operand}) <{{replica_groups = dense<{rows}> : '
                f"tensor<{len(rows)}x{len(rows[0])}xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, "
                "type = 1>, use_global_device_ids}> ({^bb0(%p: tensor<i32>, %q: tensor<i32>): %s = stablehlo.add %p, "
                "%q : tensor<i32> stablehlo.return %s : tensor<i32>}) : (tensor<2xi32>) -> tensor<2xi32>\n")
    module = parse(f"module attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
                   "func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {\n" + reduction("%a", "%x", inner)
                   + reduction("%b", "%a", outer) + "return %b : tensor<2xi32>\n}\n}")
    view = View(module)
    first, second = view.ops("stablehlo.all_reduce")
    answer: Any = composed_groups(RuleContext(view), first, second)
    if isinstance(answer, MatchFailure):
        return None
    import numpy as np
    rows = [list(map(int, row)) for row in np.array(answer)]
    group = [{d: row for row in p for d in row} for p in (inner, outer, rows)]
    return all(sorted(c for e in group[1][d] for c in group[0][e]) == sorted(group[2][d]) for d in range(count))


# ---- the command line


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "prove", "linearity", "--rule", "negate", "--fact", "select", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["status"]) for row in rows] == [("negate", "proved over the reals"), ("select", "proved")]
    with pytest.raises(InputError, match=r'there is no rule or fact "negat"; did you mean "negate"'):
        main(["rules", "prove", "linearity", "--rule", "negat"])


def test_command_with_counterexamples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = written(tmp_path, WRONG["other groups"]), tmp_path / "wrong"
    assert main(["rules", "prove", path, "--counterexamples", str(folder)]) == 3
    assert "refuted: " in capsys.readouterr().out
    before, after = (parse((folder / f"a.{side}.mlir").read_text()) for side in ("before", "after"))
    assert not check(before, after).equal
    assert main(["rules", "prove", written(tmp_path, fact("stablehlo.sort(%a)"))]) == 1


def test_no_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(NoSolver, match=r"no solver is installed, so nothing can be proved; pip install"):
        solver()
    verdicts = prove_file("collectives")
    assert {(v.status, v.reason) for v in verdicts} == {(ASSUMED, NO_SOLVER)}
    assert main(["rules", "prove", "collectives", "--rule", "collective-of-one"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == f"collective-of-one  assumed: {NO_SOLVER}"
    assert main(["opt", "--list-rules"]) == 0
    assert "; proved)" in capsys.readouterr().out  # the kept verdicts need no solver


def test_contexts_are_left_closed() -> None:
    """Relations make types in a context of their own."""
    before = new_context()
    prove_file("linearity", ["negate"])
    with before:
        assert parse("func.func @f() { return }")
