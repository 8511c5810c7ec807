"""Halves of tensors: what `interleave-halves` makes is proved, and mistakes in it are not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source
from test_sequence_parallel import CARRIED, THROUGH, program
from test_sequence_parallel_random import SequenceParallelWriter, TensorParallelWriter

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.program import joined_halves
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.checks.value_graph.groups import Members, OwnPart, Reduction
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.interleave_halves.interleave_halves import InterleaveHalves
from hlorewrite.passmanager.base import PassContext

HALVES = "hlorewrite.checks.translation_validation.program.joined_halves"
DIMS = "hlorewrite.ops.dims"
WHOLE, HALF, WEIGHT = "tensor<8x6xf32>", "tensor<4x6xf32>", "tensor<6x6xf32>"
PROGRAMS = 60


def divided(module: Module) -> tuple[Module, bool]:
    """A copy of a module as it was, and whether the pass changed the module."""
    before = parse(module.text())
    return before, InterleaveHalves(min_gain=-1.0).run(module, PassContext(topology="h200:1x4"))


@pytest.mark.parametrize("name", THROUGH)
def test_layers_are_proved(name: str) -> None:
    module = program(*THROUGH[name])
    before, _ = divided(module)
    assert isinstance(validate(before, module), Proved)


def test_loops_that_carry_halves_are_proved() -> None:
    module = program(*CARRIED)
    before, changed = divided(module)
    assert changed and isinstance(validate(before, module), Proved)


@pytest.mark.parametrize("writer", [TensorParallelWriter, SequenceParallelWriter])
def test_random_programs_are_proved(writer: type[TensorParallelWriter]) -> None:
    count = 0
    for seed in range(PROGRAMS):
        module = writer(seed).program()
        before, changed = divided(module)
        count += changed
        assert isinstance(validate(before, module), Proved), seed
    assert count >= PROGRAMS // 4


# ---- mistakes in a loop

LAYERS = m.module(
    f"%x: {WHOLE}, %w: {WEIGHT}, %v: {WEIGHT}", WHOLE, "%i = stablehlo.constant dense<0> : tensor<i32>",
    "%one = stablehlo.constant dense<1> : tensor<i32>", "%n = stablehlo.constant dense<3> : tensor<i32>",
    f"%L:2 = stablehlo.while(%k = %i, %h = %x) : tensor<i32>, {WHOLE} cond {{",
    "%p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    "stablehlo.return %p : tensor<i1> } do {", f"%t = stablehlo.tanh %h : {WHOLE}",
    f"%g = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : ({WHOLE}, {WEIGHT}) -> {WHOLE}",
    m.reduce("%y", "%g", WHOLE), "%next = stablehlo.add %k, %one : tensor<i32>",
    f"stablehlo.return %next, %y : tensor<i32>, {WHOLE} }}", f"return %L#1 : {WHOLE}")
MISTAKES = {
    "starts exchanged": ("%iterArg_2 = %0, %iterArg_3 = %1", "%iterArg_2 = %1, %iterArg_3 = %0"),
    "one start twice": ("%iterArg_2 = %0, %iterArg_3 = %1", "%iterArg_2 = %0, %iterArg_3 = %0"),
    "yields exchanged": ("stablehlo.return %11, %9, %10", "stablehlo.return %11, %10, %9"),
    "one yield twice": ("stablehlo.return %11, %9, %10", "stablehlo.return %11, %9, %9"),
    "a yield before its reduction": ("stablehlo.return %11, %9, %10", "stablehlo.return %11, %9, %8"),
    "results exchanged": ("concatenate %3#1, %3#2", "concatenate %3#2, %3#1"),
    "another weight": ("optimization_barrier %arg1", "optimization_barrier %arg2"),
    "another op": ("%6 = stablehlo.tanh", "%6 = stablehlo.sine"),
    "one operand twice": ("%6 = stablehlo.tanh %iterArg_3", "%6 = stablehlo.tanh %iterArg_2"),
    "other groups": ("handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>",
                     "handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "rows twice": ("%arg0 [4:8, 0:6]", "%arg0 [3:7, 0:6]"),
    "a layer less": ("dense<3> : tensor<i32>", "dense<2> : tensor<i32>"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_not_proved(name: str) -> None:
    """One change of what the pass makes: other values, and not proved."""
    module = parse(LAYERS.text())
    before, changed = divided(module)
    old, new = MISTAKES[name]
    assert changed and isinstance(validate(before, module), Proved) and module.text().count(old) == 1
    wrong = parse(module.text().replace(old, new))
    assert not check(before, wrong).equal
    assert isinstance(validate(before, wrong), Unknown)


GATHERED = m.module(
    f"%x: tensor<2x6xf32>, %w: {WEIGHT}", "tensor<2x6xf32>",
    f'%g = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {m.groups_text(m.ALL)}, {m.CHANNEL}, '
    f"use_global_device_ids}}> : (tensor<2x6xf32>) -> {WHOLE}",
    f"%p = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : ({WHOLE}, {WEIGHT}) -> {WHOLE}",
    m.reduce("%s", "%p", WHOLE).replace("all_reduce", "reduce_scatter").replace(
        "<{", "<{scatter_dimension = 0 : i64, ").replace(f"-> {WHOLE}", "-> tensor<2x6xf32>"),
    "return %s : tensor<2x6xf32>")
WRONG_ROWS = {
    "one row twice": ("%arg0 [1:2, 0:6]", "%arg0 [0:1, 0:6]"),
    "rows exchanged": ("concatenate %7, %8", "concatenate %8, %7"),
    "one gather twice": ("dot_general %4, %0,", "dot_general %3, %0,"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_rows_of_devices_are_proved_and_mistakes_are_not(name: str) -> None:
    """Each device has two rows of eight, so halves of the eight rows are one row of each device."""
    module = parse(GATHERED.text())
    before, changed = divided(module)
    old, new = WRONG_ROWS[name]
    assert changed and isinstance(validate(before, module), Proved) and module.text().count(old) == 1
    wrong = parse(module.text().replace(old, new))
    assert not check(before, wrong).equal
    assert isinstance(validate(before, wrong), Unknown)


# ---- each condition

FIRST = f"%s = stablehlo.slice %a [0:4, 0:6] : ({WHOLE}) -> {HALF}"
SECOND = f"%t = stablehlo.slice %a [4:8, 0:6] : ({WHOLE}) -> {HALF}"
SINES = (f"%p = stablehlo.sine %s : {HALF}", f"%q = stablehlo.sine %t : {HALF}")
JOINED = f"%y = stablehlo.concatenate %p, %q, dim = 0 : ({HALF}, {HALF}) -> {WHOLE}"


def of(*body: str, result: str = WHOLE) -> Module:
    """A program of four devices that makes ``%y`` of ``%a`` and others."""
    return m.module(f"%a: {WHOLE}, %b: {WHOLE}, %w: {WEIGHT}, %v: {WEIGHT}, %d: tensor<16x6xf32>", result,
                    "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
                    "%two = stablehlo.constant dense<2.0> : tensor<f32>", *body, f"return %y : {result}")


def product(result: str, operand: str, weight: str, kind: str) -> str:
    return (f"{result} = stablehlo.dot_general {operand}, {weight}, contracting_dims = [1] x [0] : "
            f"({kind}, {WEIGHT}) -> {kind}")


def grouped(op: str, result: str, operand: str, kinds: tuple[str, str], attributes: str) -> str:
    return (f'{result} = "stablehlo.{op}"({operand}) <{{{attributes}, {m.groups_text(m.ALL)}, channel_handle = '
            f"#stablehlo.channel_handle<handle = 1, type = 1>}}> : ({kinds[0]}) -> {kinds[1]}")


def of_halves(op: str, results: tuple[str, str], attributes: str) -> tuple[Module, Module]:
    """A collective, and the same of two halves joined."""
    kind, half = results
    return (of(grouped(op, "%y", "%a", (WHOLE, kind), attributes), result=kind),
            of(FIRST, SECOND, grouped(op, "%p", "%s", (HALF, half), attributes),
               grouped(op, "%q", "%t", (HALF, half), attributes),
               f"%y = stablehlo.concatenate %p, %q, dim = 0 : ({half}, {half}) -> {kind}", result=kind))


def total(result: str, operand: str, kind: str, start: str) -> str:
    return (f"{result} = stablehlo.reduce({operand} init: {start}) applies stablehlo.add across dimensions = [0] : "
            f"({kind}, tensor<f32>) -> tensor<6xf32>")


def in_blocks(first: str, second: str) -> tuple[str, ...]:
    """Halves joined as those of two blocks."""
    two, four = "tensor<2x2x6xf32>", "tensor<2x4x6xf32>"
    return (*(f"{half}b = stablehlo.reshape {half} : ({HALF}) -> {two}" for half in (first, second)),
            f"%j = stablehlo.concatenate {first}b, {second}b, dim = 1 : ({two}, {two}) -> {four}",
            f"%y = stablehlo.reshape %j : ({four}) -> {WHOLE}")


def reshaped(parts: tuple[str, str]) -> tuple[str, ...]:
    """Two parts of an argument, reshaped and joined."""
    part, turned = "tensor<4x3xf32>", "tensor<3x4xf32>"
    return (*(f"%s{k} = stablehlo.slice %a {each} : ({WHOLE}) -> {part}" for k, each in enumerate(parts)),
            *(f"%t{k} = stablehlo.reshape %s{k} : ({part}) -> {turned}" for k in (0, 1)),
            f"%y = stablehlo.concatenate %t0, %t1, dim = 1 : ({turned}, {turned}) -> tensor<3x8xf32>")


def part(result: str, operand: str, start: str, rows: int) -> str:
    """Some rows of a value from a start on."""
    whole = WHOLE if operand == "%a" else HALF
    return (f"{result} = stablehlo.dynamic_slice {operand}, {start}, %none, sizes = [{rows}, 6] : ({whole}, "
            f"tensor<i32>, tensor<i32>) -> tensor<{rows}x6xf32>")


def in_four(result: str, start: int) -> tuple[str, ...]:
    """Two rows of every four."""
    return (f"{result}w = stablehlo.reshape %a : ({WHOLE}) -> tensor<2x4x6xf32>",
            f"{result}p = stablehlo.slice {result}w [0:2, {start}:{start + 2}, 0:6] : (tensor<2x4x6xf32>) -> "
            f"tensor<2x2x6xf32>", f"{result} = stablehlo.reshape {result}p : (tensor<2x2x6xf32>) -> {HALF}")


OWN = ("%number = stablehlo.partition_id : tensor<ui32>",
       "%id = stablehlo.convert %number : (tensor<ui32>) -> tensor<i32>",
       "%none = stablehlo.constant dense<0> : tensor<i32>", "%last = stablehlo.constant dense<3> : tensor<i32>",
       "%twice = stablehlo.add %id, %id : tensor<i32>", "%back = stablehlo.subtract %last, %id : tensor<i32>")
BLOCKS = (f"%r = stablehlo.reshape %a : ({WHOLE}) -> tensor<4x2x6xf32>",
          *(f"%{name}p = stablehlo.slice %r [0:4, {k}:{k + 1}, 0:6] : (tensor<4x2x6xf32>) -> tensor<4x1x6xf32>"
            for k, name in enumerate("st")),
          *(f"%{name} = stablehlo.reshape %{name}p : (tensor<4x1x6xf32>) -> {HALF}" for name in "st"))
TWO = "%y = stablehlo.concatenate %p, %q, dim = 0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>"
SINE = of(f"%y = stablehlo.sine %a : {WHOLE}")
CONDITIONS: dict[str, tuple[Module, Module, Sequence[tuple[str, str, str]]]] = {
    "both are parts of one value": (
        SINE, of(FIRST, SECOND.replace("%a", "%b"), *SINES, JOINED),
        [(HALVES, "or graph.args[first] != graph.args[second] or", "or")]),
    "one part follows the other": (
        SINE, of(FIRST, SECOND, *SINES, JOINED.replace("%p, %q", "%q, %p")),
        [(HALVES, "or others != following:", "or False:")]),
    "parts hold neighbours": (
        of("%c = stablehlo.slice %d [0:8, 0:6] : (tensor<16x6xf32>) -> tensor<8x6xf32>",
           f"%y = stablehlo.sine %c : {WHOLE}"),
        of("%s = stablehlo.slice %d [0:4, 0:6] : (tensor<16x6xf32>) -> tensor<4x6xf32>",
           "%t = stablehlo.slice %d [4:12:2, 0:6] : (tensor<16x6xf32>) -> tensor<4x6xf32>", *SINES, JOINED),
        [(HALVES, "{*strides, *also} != {1} or", "")]),
    "what is not divided is one value": (
        of(product("%y", "%a", "%w", WHOLE)),
        of(FIRST, SECOND, product("%p", "%s", "%w", HALF), product("%q", "%t", "%v", HALF), JOINED),
        [(HALVES, "if place is None and one != other:", "if False:")]),
    "both halves do the same": (
        SINE, of(FIRST, SECOND, SINES[0], SINES[1].replace("sine", "cosine"), JOINED),
        [(HALVES, "if label != graph.labels[second] or len(args[0]) != len(args[1]):", "if False:")]),
    "both sums do the same": (
        of(f"%y = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : ({WHOLE}, {WHOLE}) -> {WEIGHT}",
           result=WEIGHT),
        of(FIRST, SECOND, f"%e = stablehlo.slice %b [0:4, 0:6] : ({WHOLE}) -> {HALF}",
           f"%f = stablehlo.slice %b [4:8, 0:6] : ({WHOLE}) -> {HALF}",
           f"%p = stablehlo.dot_general %s, %e, contracting_dims = [0] x [0] : ({HALF}, {HALF}) -> {WEIGHT}",
           f"%q = stablehlo.dot_general %t, %f, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : "
           f"({HALF}, {HALF}) -> {WEIGHT}", f"%y = stablehlo.add %p, %q : {WEIGHT}", result=WEIGHT),
        [(HALVES, "if label != graph.labels[second] or not self._same_form(first, second) or not args:", "if False:")]),
    "gathers leave the dimension alone": (
        *of_halves("all_gather", ("tensor<32x6xf32>", "tensor<16x6xf32>"),
                   "all_gather_dim = 0 : i64, use_global_device_ids"),
        [(HALVES, "or size % rows == 0", "or True"), (HALVES, " or rows != half[dim]:", ":")]),
    "exchanges leave the dimension alone": (
        *of_halves("all_to_all", (WHOLE, HALF),
                   "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : i64"),
        [(HALVES, "or (size // pieces) % rows == 0", "or True")]),
    "sums start at zero": (
        of(total("%y", "%a", WHOLE, "%two"), result="tensor<6xf32>"),
        of(FIRST, SECOND, total("%p", "%s", HALF, "%two"), total("%q", "%t", HALF, "%two"),
           "%y = stablehlo.add %p, %q : tensor<6xf32>", result="tensor<6xf32>"),
        [(DIMS, 'if not is_identity(op.operands[1], "sum"):', "if False:"),
         (HALVES, 'and all(graph.is_identity(arg, "sum") for arg in whole)', "")]),
    "parts of blocks are no halves of the whole": (
        SINE, of(FIRST, SECOND, *SINES, *in_blocks("%p", "%q")),
        [(HALVES, " or rows != half[dim]:", ":")]),
    "a reshaped operand has rows in the same chunks": (
        of("%c = stablehlo.slice %a [0:8, 0:3] : (tensor<8x6xf32>) -> tensor<8x3xf32>",
           "%y = stablehlo.reshape %c : (tensor<8x3xf32>) -> tensor<3x8xf32>", result="tensor<3x8xf32>"),
        of(*reshaped(("[0:4, 0:3]", "[4:8, 0:3]")), result="tensor<3x8xf32>"),
        [(HALVES, " or rows != half[dim]:", ":"), (HALVES, "chunk % size == 0 and", "")]),
    "chunks are rows of a reshaped operand": (
        of("%c = stablehlo.slice %a [0:4, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>",
           "%y = stablehlo.reshape %c : (tensor<4x6xf32>) -> tensor<3x8xf32>", result="tensor<3x8xf32>"),
        of(*reshaped(("[0:4, 0:3]", "[0:4, 3:6]")), result="tensor<3x8xf32>"),
        [(HALVES, " or rows != half[dim]:", ":"), (HALVES, " and before[0][d] % (chunk // size) == 0]", "]")]),
    "own parts are at one place": (
        of(*OWN, part("%y", "%a", "%twice", 2), result="tensor<2x6xf32>"),
        of(*OWN, *BLOCKS, part("%p", "%s", "%id", 1), part("%q", "%t", "%back", 1), TWO, result="tensor<2x6xf32>"),
        [(HALVES, "if args[0][1:] != args[1][1:] or starts is None", "if starts is None")]),
    "own parts begin where rows do": (
        of(*OWN, part("%y", "%a", "%twice", 4), result="tensor<4x6xf32>"),
        of(*OWN, *in_four("%s", 0), *in_four("%t", 2), part("%p", "%s", "%id", 2), part("%q", "%t", "%id", 2),
           "%y = stablehlo.concatenate %p, %q, dim = 0 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>",
           result="tensor<4x6xf32>"),
        [(HALVES, " or (starts % rows).any():", ":")]),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its conditions a mistake is called proved; likeness of expressions is a guess, and keeps nothing out."""
    before, wrong, conditions = CONDITIONS[name]
    assert isinstance(validate(before, wrong), Unknown)
    monkeypatch.setattr(joined_halves, "_fingerprints", lambda state: [0] * len(state.graph.labels))
    gone = dict[str, list[tuple[str, str]]]()
    for where, old, new in conditions:
        assert isinstance(validate(before, wrong), Unknown)
        replace_source(where, old, new, monkeypatch, more=gone.setdefault(where, []))
        gone[where].append((old, new))
    assert isinstance(validate(before, wrong), Proved)


def test_scattered_sums_are_left_alone() -> None:
    members = Members(((0, 1),))
    plain, own = (Reduction(members, "sum", "f32", 0, each) for each in (None, OwnPart(((0, 1),), 0, (8, 6))))
    assert joined_halves._keeps_apart(("reduced", "sum", ((plain,),)), 0, 4, 8)
    assert not joined_halves._keeps_apart(("reduced", "sum", ((own,),)), 0, 4, 8)


def test_halves_of_one_row_are_proved() -> None:
    """A half of one place repeats one place as well as it keeps it."""
    text = re.sub(r"\b8x6x", "2x6x", LAYERS.text())
    module = parse(text)
    before, changed = divided(module)
    assert changed and isinstance(validate(before, module), Proved)
