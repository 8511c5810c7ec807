"""Loops and nests of loops: each read a few times and borne out, with as many nodes for an op however deep they are."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

from typing import Any

import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.translation_validation.program import loops
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.load import parse

F = "tensor<4xf32>"
LOOPS = "hlorewrite.checks.translation_validation.program.loops"
HEAD = ("module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func @main(%x: {F}, %y: {F}) -> {F} {{\n"
        "%zero = stablehlo.constant dense<0> : tensor<i32>\n%one = stablehlo.constant dense<1> : tensor<i32>\n"
        f"%eight = stablehlo.constant dense<8> : tensor<i32>\n%none = stablehlo.constant dense<0.0> : {F}\n")


def reduction(name: str, operand: str) -> str:
    """An all-reduce."""
    return (f'%{name} = "stablehlo.all_reduce"(%{operand}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, '
            "use_global_device_ids, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({\n"
            "^bb0(%l: tensor<f32>, %r: tensor<f32>):\n%s = stablehlo.add %l, %r : tensor<f32>\n"
            f"stablehlo.return %s : tensor<f32>\n}}) : ({F}) -> {F}\n")


def loop(name: str, start: str, body: str, last: str) -> str:
    """A loop of eight iterations that adds a value to what it carries."""
    return (f"%{name}:2 = stablehlo.while(%n{name} = %zero, %a{name} = %{start}) : tensor<i32>, {F}\ncond {{\n"
            f"%go{name} = stablehlo.compare LT, %n{name}, %eight, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"stablehlo.return %go{name} : tensor<i1>\n}} do {{\n{body}%s{name} = stablehlo.add %a{name}, %{last} : {F}\n"
            f"%m{name} = stablehlo.add %n{name}, %one : tensor<i32>\n"
            f"stablehlo.return %m{name}, %s{name} : tensor<i32>, {F}\n}}\n")


def nest(depth: int, inside: tuple[str, str], start: str = "none") -> tuple[str, str]:
    """Loops in each other around some lines; the lines and the value they end in."""
    body, last = inside
    for number in range(depth):
        body, last = loop(f"w{depth}_{number}", start, body, last), f"w{depth}_{number}#1"
    return body, last


def program(lines: str, result: str) -> str:
    """A module."""
    return f"{HEAD}{lines}return %{result} : {F}\n}}\n}}"


def within_and_after(depth: int, start: str = "none") -> tuple[str, str]:
    """Sums that are reduced in the innermost loop, and after the outermost one."""
    body, last = nest(depth, ("", "x"))
    return program(*nest(depth, (reduction("g", "x"), "g"), start)), program(body + reduction("g", last), "g")


def siblings(reduced: str) -> str:
    """Two loops in a nest of three; the second one reads what the first one leaves."""
    first, _ = nest(1, (reduction("g", "x"), "g"))
    second = loop("second", "w1_0#1", reduction("h", reduced), "h")
    return program(*nest(3, (first + second, "second#1")))


def test_a_last_iteration_with_a_loop_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop inside ends while the body around it is evaluated once more: that is not freed yet."""
    inner, last = nest(1, ("", "x"))
    whole = loop("outer", "none", inner, last)
    apart = whole.replace("%nouter, %eight", "%nouter, %seven") + f"{inner}%f = stablehlo.add %outer#1, %{last} : {F}\n"
    seven = "%seven = stablehlo.constant dense<7> : tensor<i32>\n"
    programs = parse(program(whole, "outer#1")), parse(program(seven + apart, "f"))
    assert isinstance(validate(*programs), Proved)
    replace_source("hlorewrite.checks.translation_validation.program.state", " or self.read_again", "", monkeypatch)
    assert "cannot read" in str(validate(*programs))


ROW_OF_OWN_CHOICE = """
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func @main(%x: tensor<1x4xf32>, %acc: tensor<1x4xf32>) -> tensor<1x4xf32> {
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%eight = stablehlo.constant dense<8> : tensor<i32>
%id = stablehlo.partition_id : tensor<ui32>
%own = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
%w:3 = stablehlo.while(%n = %zero, %i = %zero, %a = %acc) : tensor<i32>, tensor<i32>, tensor<1x4xf32>
cond {
%go = stablehlo.compare LT, %n, %eight, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %go : tensor<i1>
} do {
%g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<1x4xf32>) -> tensor<4x4xf32>
%r = stablehlo.dynamic_slice %g, %i, %zero, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
%b = stablehlo.add %a, %r : tensor<1x4xf32>
%j = stablehlo.add %i, %own : tensor<i32>
%m = stablehlo.add %n, %one : tensor<i32>
stablehlo.return %m, %j, %b : tensor<i32>, tensor<i32>, tensor<1x4xf32>
}
return %w#2 : tensor<1x4xf32>
}
}"""


def test_a_row_that_each_device_chooses_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is assumed once that they choose the same, and then it is known that they do not: a few passes, not endless ones."""
    passes, run = [], loops._run

    def counted(*args: Any) -> loops.LoopPass:
        passes.append(args[1])
        assert len(passes) < 20
        return run(*args)

    monkeypatch.setattr(loops, "_run", counted)
    assert isinstance(validate(parse(ROW_OF_OWN_CHOICE), parse(ROW_OF_OWN_CHOICE)), Proved)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 9])
def test_sums_leave_nests(depth: int) -> None:
    """A sum that is reduced in the innermost loop, or after the outermost one; another start is another sum."""
    within, after = within_and_after(depth)
    assert isinstance(validate(parse(within), parse(after)), Proved)
    assert isinstance(validate(parse(after), parse(within)), Proved)
    assert isinstance(validate(parse(within_and_after(depth, "y")[0]), parse(after)), Unknown)


def test_nodes_grow_with_the_ops_alone() -> None:
    """No loop is read once for each loop around it: as many nodes for a loop in deep nests as in others."""
    nodes = []
    for depth in (4, 8, 16):
        text = within_and_after(depth, "x")[0]
        answer = validate(parse(text), parse(text))
        assert isinstance(answer, Proved)
        nodes.append(answer.nodes)
    assert nodes[2] - nodes[1] < 2.1 * (nodes[1] - nodes[0])


def test_loops_in_the_same_body() -> None:
    """What the first of two loops leaves undecided is decided before the second one counts."""
    text = siblings("x")
    assert isinstance(validate(parse(text), parse(text)), Proved)
    assert isinstance(validate(parse(text), parse(siblings("y"))), Unknown)


def of_one_of_two(chosen: str, around: int, sibling: bool) -> str:
    """Two loops that differ in how often they run, and a result that reads one of them.

    Each also carries sums that wait: they make a pass over it fail that is right about what the result reads.
    """
    inner, last = nest(1, (reduction("g", "x"), "g"), "x")
    own = (f"%KEY:3 = stablehlo.while(%nKEY = %zero, %p = %x, %w = %none) : tensor<i32>, {F}, {F}\ncond {{\n"
           "%gok = stablehlo.compare LT, %nKEY, %TRIPS, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
           f"stablehlo.return %gok : tensor<i1>\n}} do {{\n{inner}%next = stablehlo.tanh %p : {F}\n"
           f"%sum = stablehlo.add %w, %{last} : {F}\n%mk = stablehlo.add %nKEY, %one : tensor<i32>\n"
           f"stablehlo.return %mk, %next, %sum : tensor<i32>, {F}, {F}\n}}\n")
    lines = own.replace("KEY", "more").replace("TRIPS", "eight") + own.replace("KEY", "fewer").replace("TRIPS", "four")
    beside = loop("beside", "none", "", "y") if sibling else ""
    return program(*nest(around, (f"%four = stablehlo.constant dense<4> : tensor<i32>\n{lines}{beside}", f"{chosen}#1")))


@pytest.mark.parametrize(("old", "new", "around", "sibling"), [
    ("return not state.put_off and kept", "return kept", 2, False),
    ("    state.put_off = put_off\n", "    state.put_off = PutOff.NOTHING\n", 2, True),
    ("state.depth > (1 if state.put_off else _READ_AT_ONCE)", "state.depth > 0", 0, False)])
def test_loops_around_are_read_again(old: str, new: str, around: int, sibling: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, what one iteration makes is taken for what the loop leaves."""
    right, wrong = (parse(of_one_of_two(chosen, around, sibling)) for chosen in ("more", "fewer"))
    assert isinstance(validate(right, wrong), Unknown) and isinstance(validate(right, right), Proved)
    replace_source(LOOPS, old, new, monkeypatch)
    assert isinstance(validate(right, wrong), Proved)


def test_values_of_wrong_kinds_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would make a part change that stays, and the first normal form would not prove it."""
    def sums_of_sums(within: bool) -> str:
        added, total = (reduction("g", "x"), "g") if within else ("", "x")
        inner = (f"%k:3 = stablehlo.while(%nk = %zero, %p = %none, %q = %none) : tensor<i32>, {F}, {F}\ncond {{\n"
                 "%gok = stablehlo.compare LT, %nk, %eight, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                 f"stablehlo.return %gok : tensor<i1>\n}} do {{\n%more = stablehlo.add %q, %{total} : {F}\n"
                 f"%sum = stablehlo.add %p, %q : {F}\n%mk = stablehlo.add %nk, %one : tensor<i32>\n"
                 f"stablehlo.return %mk, %sum, %more : tensor<i32>, {F}, {F}\n}}\n%both = stablehlo.add %k#1, %{total} : {F}\n")
        lines, last = nest(3, (added + inner, "both"))
        return program(*((lines, last) if within else (lines + reduction("g", last), "g")))

    programs = parse(sums_of_sums(within=True)), parse(sums_of_sums(within=False))
    answer = validate(*programs)
    assert isinstance(answer, Proved) and answer.strategy == "defer reductions"
    replace_source(LOOPS, "state.put_off is PutOff.KINDS or ", "", monkeypatch)
    after = validate(*programs)
    assert isinstance(after, Unknown) or after.strategy != "defer reductions"
