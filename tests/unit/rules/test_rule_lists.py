"""``rules list`` by purpose with status, what conditions say when they fail, and ``rules check`` without a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.rules.native_source import failure_text

UNDECIDED = """rule all-gather-of-broadcast tags(algebra) {
  match {
    %b = stablehlo.broadcast_in_dim(%a) {broadcast_dimensions = $bd};
    root %g = stablehlo.all_gather(%b) {all_gather_dim = $d};
  }
  types { same(%b, %g); }
  floats exact;
  rewrite {
    %r = stablehlo.broadcast_in_dim(%a) {broadcast_dimensions = $bd} -> type(%g);
    replace %g with %r;
    erase %b;
  }
}
"""


def test_the_list_is_grouped_by_purpose_with_status(capsys: pytest.CaptureFixture[str]):
    assert guarded(["rules", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sums of reductions (patterns/collectives.hlopat)"
    assert any(line.startswith("  add-of-all-reduces ") and " proved over the reals " in line for line in lines)
    assert sum(not line.startswith("  ") and bool(line) for line in lines) >= 8
    assert guarded(["rules", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["purpose"] == "sums of reductions"


@pytest.mark.parametrize(("condition", "text"), [
    ("one_use(%ga)", "its result is read ... times"),
    ("same_shards(%ga, %gb)", "the groups differ (... and ...)"), ("no_such_native(%a)", ""), ("%a == %b", "")])
def test_conditions_say_what_their_natives_say(condition: str, text: str):
    assert failure_text(condition).partition("; or ")[0] == text


def test_the_documentation_of_a_rule_has_the_failure_text(capsys: pytest.CaptureFixture[str]):
    assert guarded(["rules", "docs", "collectives"]) == 0
    said = capsys.readouterr().out
    assert "the groups differ (... and ...)" in said and said.count("own sentence") <= 3


def test_a_rule_without_a_verdict_is_exit_code_one_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                               capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.hlopat").write_text('import "natives.hlopat";\n\n' + UNDECIDED)
    assert guarded(["rules", "check", "mine.hlopat"]) == 1
    assert capsys.readouterr().err == (
        "hlorewrite: 1 of 1 rules and facts neither executed nor proved: all-gather-of-broadcast; run a module that it "
        "matches with `hlorewrite opt --rules=FILE --check=interp`\n")
