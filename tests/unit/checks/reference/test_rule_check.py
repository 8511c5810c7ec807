"""Rules checked by execution: sound ones pass, wrong ones are caught, conditions are shown to be needed or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.checks.reference.rule_checks.facts import check_fact, forms
from hlorewrite.checks.reference.rule_checks.instances import NotGenerated, instance
from hlorewrite.checks.reference.rule_checks.rules import RuleResult, check_rule
from hlorewrite.cli.main import main
from hlorewrite.rules.compile.checks import bind
from hlorewrite.rules.library import checked, load, load_text, natives_of, read_source
from hlorewrite.rules.syntax.parser import parse

SOUND = {rule.name: rule for rule in load("collectives").rules}


def natives() -> dict:
    return bind(checked(read_source("natives"))[1], "natives")


def checked_rule(text: str, programs: int = 60) -> RuleResult:
    return check_rule(load_text('import "natives.hlopat";\n' + text).rules[0], natives(), programs=programs)


@pytest.mark.parametrize("name", sorted(SOUND))
def test_shipped_rules_keep_values_on_generated_programs(name: str) -> None:
    result = check_rule(SOUND[name], natives(), programs=40, executed=6)
    assert result.wrong == () and result.not_generated == ""
    assert result.rewritten > 0


WRONG = {
    "a sum of sums over other groups": """rule a {
      match { %p = stablehlo.all_reduce(%x) computation reduces(sum);
              %q = stablehlo.all_reduce(%y) computation reduces(sum); root %r = stablehlo.add(%p, %q); }
      types any;
      floats exact;
      rewrite { %t = stablehlo.add(%x, %y); %s = stablehlo.all_reduce(%t) like %p; replace %r with %s; } }""",
    "a reduction left out": """rule a { match { root %r = stablehlo.all_reduce(%x); }
      where { type(%x) == type(%r); } types any; floats exact; rewrite { replace %r with %x; } }""",
    "a sum made a maximum": """rule a { match { root %r = stablehlo.all_reduce(%x) computation reduces(sum); }
      types any;
      floats exact;
      rewrite { %t = stablehlo.all_reduce(%x) computation reduces(max) -> type(%r) like %r; replace %r with %t; } }""",
    "a permute taken for its own inverse": """rule a { match { %p = stablehlo.collective_permute(%x) \
{source_target_pairs = $s}; root %r = stablehlo.collective_permute(%p) {source_target_pairs = $s}; }
      types any;
      floats exact;
      rewrite { replace %r with %x; erase %p; } }""",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_wrong_rules_are_caught(text: str) -> None:
    assert any("the values differ" in sentence for sentence in checked_rule(text).wrong)


def test_conditions_are_seen_to_be_needed_or_reported() -> None:
    result = check_rule(SOUND["add-of-all-reduces"], natives(), programs=80)
    noticed = {c.text: c.noticed for c in result.conditions}
    assert noticed["same_groups(%ra, %rb)"]
    assert not noticed["one_use(%ra)"]
    assert "one_use(%ra)" in [c.text for c in result.untested]


def test_a_condition_that_keeps_definitions_before_uses_is_noticed() -> None:
    rules = load(str(Path(__file__).parents[2] / "rules" / "pairs.hlopat")).rules
    result = check_rule(next(rule for rule in rules if rule.name == "duplicate-collective"), natives(), programs=150)
    assert {c.text for c in result.conditions if c.noticed} >= {"before(%p, %q)", "same_collective(%p, %q)"}


def test_rules_about_regions_say_that_they_are_not_executed() -> None:
    result = checked_rule("""rule a {
      match { root %w = stablehlo.while(...) body ^(...) { %n = stablehlo.negate(%x); }; }
      types any;
      floats exact;
      rewrite { replace %n with %x; } }""")
    assert result.not_generated == "it matches inside regions" and result.wrong == ()


def test_instances_are_the_same_for_the_same_seed_and_hold_2_to_8_devices() -> None:
    source = read_source("collectives")
    rule = load("collectives").rules[0].rule
    assert natives_of(parse(source.text), source)
    made = [instance(rule, seed) for seed in range(30)]
    texts = [m.text() for m in made if m is not None]
    again = [m.text() for m in (instance(rule, seed) for seed in range(30)) if m is not None]
    assert texts == again
    assert {n for n in (2, 4, 8) if any(f"num_partitions = {n} " in text for text in texts)} == {2, 4, 8}


def test_ops_no_program_is_made_for_are_named() -> None:
    rule = load_text("rule a { match { root %r = stablehlo.sort(%x); } " \
           "types any; floats exact; rewrite { erase %r; } }").rules[0]
    with pytest.raises(NotGenerated, match=r"it matches stablehlo\.sort"):
        instance(rule.rule, 0)


def test_the_command_exits_with_3_for_a_wrong_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.hlopat"
    path.write_text('import "natives.hlopat";\n' + WRONG["a reduction left out"])
    assert main(["rules", "check", "--programs=20", str(path)]) == 3
    assert "wrong: <instance" in capsys.readouterr().out
    assert main(["rules", "check", "--static", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rules"] == 1


FACTS = {fact.name: fact for fact in load("linearity").facts}


@pytest.mark.parametrize("name", ["add", "multiply-by-uniform", "clamp", "dynamic-slice", "reduce-sum", "scatter-max",
                                  "fft", "triangular-solve"])
def test_shipped_facts_hold_and_their_conditions_are_needed(name: str) -> None:
    result = check_fact(FACTS[name], natives())
    assert result.wrong == () and result.rewritten > 0 and result.untested == ()


@pytest.mark.parametrize(("text", "conditions"), [
    ("linear a { match { root %r = stablehlo.maximum(%x, %y); } in %x, %y; kinds sum; types any; floats exact; }", 0),
    ("linear a { match { root %r = stablehlo.minimum(%k, %x); } in %x; kinds sum; " \
           "types any; floats exact; legal { uniform(%k); } }", 1),
    ("linear a { match { root %r = stablehlo.reduce(%x, %z) body reduces(max); } in %x, %z; kinds sum; " \
           "types any; floats exact; }", 0),
])
def test_wrong_facts_are_caught(text: str, conditions: int) -> None:
    result = check_fact(load_text('import "natives.hlopat";\n' + text).facts[0], natives())
    assert result.wrong and len(result.conditions) == conditions


@pytest.mark.parametrize(("op", "attribute"), [
    ("collective_permute", "source_target_pairs"), ("all_to_all", "split_dimension = $d, concat_dimension = $e, "
                                                    "replica_groups"),
    ("all_reduce", "replica_groups"), ("collective_broadcast", "replica_groups")])
def test_equal_ids_may_mean_replicas_in_one_op_and_partitions_in_another(op: str, attribute: str) -> None:
    """Groups or pairs of one name are equal lists; ``same_collective`` also says that they are of the same devices."""
    body = " computation reduces(sum)" if op == "all_reduce" else ""
    text = f"""import "natives.hlopat";
rule add-of-two {{
  match {{
    sole %p = stablehlo.{op}(%a) {{{attribute} = $p}}{body};
    sole %q = stablehlo.{op}(%b) {{{attribute} = $p}}{body};
    root %s = stablehlo.add(%p, %q);
  }}
  types {{ same(%a, %b, %s); }}
  floats reassociates;
  LEGAL
  rewrite {{ %t = stablehlo.add(%a, %b); %r = stablehlo.{op}(%t) -> type(%s) like %p; replace %s with %r;
             erase %p, %q; }}
}}
"""
    assert "differ" in " ".join(check_rule(load_text(text.replace("LEGAL", "")).rules[0], natives()).wrong)
    right = check_rule(load_text(text.replace("LEGAL", "legal { same_collective(%p, %q); }")).rules[0], natives())
    assert right.executed and not right.wrong and right.conditions[-1].noticed


def test_a_rule_that_ends_the_interpreter_does_not_end_the_command(tmp_path: Path,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.hlopat"  # integers divided by zero
    path.write_text("""import "natives.hlopat";
linear bad { match { root %r = stablehlo.divide(%k, %x); } in %x; kinds sum;
  types any; floats exact; legal { uniform(%k); } }
linear good { match { root %r = stablehlo.negate(%x); } in %x; kinds sum; types any; floats exact; }
""")
    assert main(["rules", "check", str(path)]) == 1  # nor is it proved
    out = capsys.readouterr().out
    assert "bad: not executed: the interpreter's process ended" in out
    assert "good: applies to 3 of 3 programs, equal values" in out


def test_every_shipped_fact_has_forms() -> None:
    names = {form.name for form in forms()}
    assert not [name for name, fact in FACTS.items() if not names & set(fact.names)]
