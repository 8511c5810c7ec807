"""Every public function that a pass changed is executed, or named as one that was not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.checks.reference.check import Comparison, check
from hlorewrite.cli.main import main
from hlorewrite.errors import CannotExecute, ValuesDiffer
from hlorewrite.ir.load import parse

T = "tensor<4xf32>"
MAIN = f"func.func @main(%x: {T}) -> {T} {{ return %x : {T} }}\n"


def step(op: str, visibility: str = "", name: str = "step") -> str:
    return (f"func.func {visibility}@{name}(%x: {T}, %y: {T}) -> {T} {{ %r = stablehlo.{op} %x, %y : {T} "
            f"return %r : {T} }}\n")


CALLS = f"func.func @step(%x: {T}) -> {T} {{ %r = func.call @inside(%x, %x) : ({T}, {T}) -> {T} return %r : {T} }}\n"
WAYS = {
    "second": (lambda op: MAIN + step(op), "@step #0"),
    "first": (lambda op: step(op) + MAIN, "@step #0"),
    "by a private one": (lambda op: MAIN + CALLS + step(op, "private ", "inside"), "@step #0"),
    "nested": (lambda op: f"{MAIN}module @inner {{ {step(op)} }}", "@inner::@step #0"),
    "nested without a name": (lambda op: f"{MAIN}module {{ {step(op)} }}", "@0::@step #0"),
    "nested twice": (lambda op: f"{MAIN}module @a {{ module @b {{ {step(op)} }} }}", "@a::@b::@step #0"),
    "a main inside": (lambda op: f"{MAIN}module @inner {{ {step(op, name='main')} }}", "@inner::@main #0"),
    "no main": (lambda op: step("add", name="other") + step(op), "@step #0"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_changed_is_executed(way: str) -> None:
    text, row = WAYS[way]
    before, same, other = (parse(text(op)) for op in ("add", "add", "multiply"))
    assert check(before, same).equal
    found = check(before, other)
    assert not found.equal and row in [each.output for each in found.rows if not each.equal]


def test_the_order_of_operands_is_a_change_that_is_equal() -> None:
    before, after = (parse(MAIN + step("add").replace("%x, %y :", order + " :")) for order in ("%x, %y", "%y, %x"))
    found = check(before, after)
    assert found.equal and [row.output for row in found.rows] == ["@main #0", "@step #0"]


def test_what_is_as_before_is_left_out() -> None:
    found = check(parse(MAIN + step("add")), parse(MAIN + step("add")))
    assert [row.output for row in found.rows] == ["@main #0"]


def test_what_cannot_be_executed_is_named() -> None:
    """A further function; without ``main`` or one that can be executed the check is refused."""
    before, after = (parse(MAIN + _odd(config)) for config in ("a", "b"))
    found = check(before, after)
    assert found.equal and [row.output for row in found.rows] == ["@main #0"]
    assert found.notes == ("@step differs and was not executed: the StableHLO interpreter cannot run "
                           'stablehlo.custom_call "odd"',)
    assert found.notes[0] in found.table() and Comparison.from_json(found.to_json()) == found
    with pytest.raises(CannotExecute):
        check(parse(_odd("a")), parse(_odd("b")))


def _odd(config: str) -> str:
    return (f'func.func @step(%x: {T}) -> {T} {{ %r = stablehlo.custom_call @odd(%x) {{backend_config = "{config}"}} : '
            f"({T}) -> {T} return %r : {T} }}\n")


def test_the_command_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``opt`` executes what it changed; ``verify`` what XLA does not start with."""
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(MAIN + step("add"))
    after.write_text(MAIN + step("multiply"))
    assert main(["verify", str(before), str(after)]) == 3
    assert "@step #0" in capsys.readouterr().out
    assert main(["verify", str(before), str(after), "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert [row["output"] for row in answer["other_functions"]["rows"]] == ["@step #0"]
    assert main(["verify", str(before), str(before)]) == 0
    rule = tmp_path / "wrong.hlopat"
    rule.write_text('import "natives.hlopat";\nrule wrong { match { root %r = stablehlo.add(%a, %b); } '
                    "types { same(%a, %b, %r); } floats exact; "
                    "rewrite { %n = stablehlo.multiply(%a, %b) like %r; replace %r with %n; } }\n")
    with pytest.raises(ValuesDiffer, match="output @step #0 differs"):
        main(["opt", str(before), f"--rules={rule}", "--check=interp", "-o", str(tmp_path / "out.mlir")])
