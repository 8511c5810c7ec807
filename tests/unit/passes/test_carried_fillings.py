"""What a few ops make from constants, carried by a loop: each loop makes its own, and other carried values stay."""

from __future__ import annotations

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.module import Module
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View, ancestors, users
from hlorewrite.passes.common.loop_copies.rematerialize_splats import fill_again, read_outside
from hlorewrite.passes.peel_last_micro_batch.peel_last_micro_batch import PeelLastMicroBatch
from hlorewrite.passes.rotate_collectives.rotate_collectives import RotateCollectives
from hlorewrite.passmanager.base import Pass, PassContext

X, B, N = "tensor<8xf32>", "tensor<8xi1>", "tensor<i32>"
FOUR_TIMES = "\n".join(f"%{name} = stablehlo.constant dense<{number}> : {N}"
                       for name, number in (("start", 0), ("bound", 4), ("step", 1)))
MASK = (f"%places = stablehlo.iota dim = 0 : tensor<8xi32>\n"
        f"%four = stablehlo.constant dense<4> : tensor<8xi32>\n"
        f"%first = stablehlo.compare LT, %places, %four : (tensor<8xi32>, tensor<8xi32>) -> {B}\n")
MASKED = f"%g = stablehlo.select %m, %c, %x : {B}, {X}"
IN_A_BRANCH = (f'%g = "stablehlo.case"(%i) ({{\n%a = stablehlo.select %m, %c, %x : {B}, {X}\n'
               f"stablehlo.return %a : {X}\n}}, {{\nstablehlo.return %c : {X}\n}}) : ({N}) -> {X}")
CALLED = f"%first = func.call @mask() : () -> {B}\n"
FUNCTION = f"func.func private @mask() -> {B} {{\n{MASK}return %first : {B}\n}}"


def program(made: str = MASK, *, kept: str = "%m", more: str = "", reduced: str = "%g", behind: str = "",
            masked: str = MASKED, functions: str = "", arguments: str = "") -> Module:
    """A loop that carries ``%first`` as ``%m``, masks by it, and sums ``reduced``."""
    reduces = m.reduce("%red", reduced, X) if reduced else ""
    return m.module(f"%x: {X}{arguments}", X, f"""
  %zero = stablehlo.constant dense<0.0> : {X}
  {FOUR_TIMES}
  {made}
  %o:4 = stablehlo.while(%i = %start, %m = %first, %c = %x, %acc = %zero) : {N}, {B}, {X}, {X}
  cond {{
    %less = stablehlo.compare LT, %i, %bound : ({N}, {N}) -> tensor<i1>
    {more}
    stablehlo.return %less : tensor<i1>
  }} do {{
    {masked}
    %c1 = stablehlo.add %g, %x : {X}
    {reduces}
    %acc1 = stablehlo.add %acc, {"%red" if reduced else "%c1"} : {X}
    %flipped = stablehlo.not %m : {B}
    %next = stablehlo.add %i, %step : {N}
    stablehlo.return %next, {kept}, %c1, %acc1 : {N}, {B}, {X}, {X}
  }}""", behind or f"%r = stablehlo.select %o#1, %o#3, %x : {B}, {X}", f"return %r : {X}", functions=functions)


CARRIED = {
    "a mask": program(),
    "a mask that a function makes": program(CALLED, functions=FUNCTION),
    "a mask that a branch reads": program(masked=IN_A_BRANCH),
    "a constant": program(f"%first = stablehlo.constant dense<true> : {B}\n"),
}
STAYS = {
    "it changes": program(kept="%flipped"),
    "an argument": program("", arguments=f", %first: {B}"),
    "made from an argument": program(f"%first = stablehlo.not %p : {B}\n", arguments=f", %p: {B}"),
    "different numbers": program(f"%first = stablehlo.constant dense<[1, 1, 1, 1, 0, 0, 0, 0]> : {B}\n"),
    "the condition reads it": program(more=f"%unread = stablehlo.not %m : {B}\n"),
    "many ops": program(MASK.replace("%first", "%p0") + "".join(
        f"%p{n + 1} = stablehlo.not %p{n} : {B}\n" for n in range(16)) + f"%first = stablehlo.not %p16 : {B}\n"),
    "a function that makes it from an argument": program(
        f"%first = func.call @mask(%p) : ({B}) -> {B}\n", arguments=f", %p: {B}",
        functions=f"func.func private @mask(%p: {B}) -> {B} {{\n%0 = stablehlo.not %p : {B}\nreturn %0 : {B}\n}}"),
}


def filled(before: Module) -> tuple[Module, int]:
    """The module whose loop makes what it can itself, and how many ops that takes."""
    after = before.clone()
    editor = Editor(View(after))
    op = editor.view.ops("stablehlo.while")[0]
    fillings = read_outside(Loop(op), editor)
    count = len(fillings)
    fill_again(op, fillings, editor)
    assert not after.verify()
    return after, count


def mask_is_read(module: Module) -> bool:
    """Whether something reads the mask as the loop carries it, or as its result."""
    op = View(module).ops("stablehlo.while")[0]
    return any(reader.name != "stablehlo.return" for value in (Loop(op).body.arguments[1], op.results[1])
               for reader, _ in users(value))


@pytest.mark.parametrize("what", CARRIED)
def test_the_body_makes_it_itself(what: str) -> None:
    after, count = filled(CARRIED[what])
    assert count and not mask_is_read(after)
    assert check(CARRIED[what], after).equal


@pytest.mark.parametrize("what", STAYS)
def test_other_values_are_carried(what: str) -> None:
    after, count = filled(STAYS[what])
    assert not count and mask_is_read(after)
    assert str(after.mlir) == str(STAYS[what].mlir)


@pytest.mark.parametrize("passed", [RotateCollectives(), PeelLastMicroBatch()], ids=lambda each: each.name)
@pytest.mark.parametrize("what", CARRIED)
def test_copies_of_the_body_read_no_buffer_of_it(what: str, passed: Pass) -> None:
    before = CARRIED[what] if isinstance(passed, RotateCollectives) else program(
        reduced="", behind=m.reduce("%r", "%o#3", X))
    after = before.clone()
    assert passed.run(after, PassContext(ignore_cost=True, topology="h200:1x4"))
    assert check(before, after).equal
    assert not mask_is_read(after)
    barriers = View(after).ops("stablehlo.optimization_barrier")
    assert barriers and not any(str(value.type) == B for op in barriers for value in op.operands)


Z, WIDE = "tensor<8x8xi1>", "tensor<16x8x8xi1>"
NUMBERS = WIDE.replace("i1", "i32")
PLACES = (f"%p = stablehlo.iota dim = 0 : tensor<8x8xi32>\n%q = stablehlo.iota dim = 1 : tensor<8x8xi32>\n"
          f"%small = stablehlo.compare GE, %p, %q : (tensor<8x8xi32>, tensor<8x8xi32>) -> {Z}\n")
REPEATED = f"%first = stablehlo.broadcast_in_dim %small, dims = [1, 2] : ({Z}) -> {WIDE}\n"


def attention(made: str = PLACES + REPEATED, *, wide: str = WIDE, outside: str = "", inside: str = "") -> Module:
    """Micro-batches in a loop, layers in another, which carries a mask of all heads and reduces what it computes."""
    heads = wide.replace("i1", "f32")
    inner = f"""
    {inside}
    %o:4 = stablehlo.while(%i = %start, %m = %first, %c = %x, %acc = %zero) : {N}, {wide}, {heads}, {heads}
    cond {{
      %less = stablehlo.compare LT, %i, %bound : ({N}, {N}) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }} do {{
      %g = stablehlo.select %m, %c, %zero : {wide}, {heads}
      %c1 = stablehlo.multiply %g, %x : {heads}
      {m.reduce("%red", "%c1", heads)}
      %acc1 = stablehlo.add %acc, %red : {heads}
      %next = stablehlo.add %i, %step : {N}
      stablehlo.return %next, %m, %c1, %acc1 : {N}, {wide}, {heads}, {heads}
    }}"""
    return m.module(f"%x: {heads}", heads, f"""
  %zero = stablehlo.constant dense<0.0> : {heads}
  {FOUR_TIMES}
  {outside}
  %r:2 = stablehlo.while(%j = %start, %sum = %zero) : {N}, {heads}
  cond {{
    %more = stablehlo.compare LT, %j, %bound : ({N}, {N}) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    {made if not outside else ""}
    {inner}
    %sum1 = stablehlo.add %sum, %o#3 : {heads}
    %after = stablehlo.add %j, %step : {N}
    stablehlo.return %after, %sum1 : {N}, {heads}
  }}""", f"return %r#1 : {heads}")


def kept(after: Module) -> list[str]:
    """What the barriers of one value hold, and what is around each."""
    return [f"{op.operands[0].type} in {next(ancestors(op)).name}"
            for op in View(after).ops("stablehlo.optimization_barrier") if len(op.operands) == 1]


def rotated(before: Module, *, executed: bool = True) -> Module:
    """The module with its inner loop rotated; executed before and after unless it is not asked."""
    after = before.clone()
    assert RotateCollectives().run(after, PassContext(ignore_cost=True, topology="h200:1x4"))
    assert not after.verify()
    assert not executed or check(before, after).equal
    return after


SMALL = {
    "in the outer loop": attention(),
    "before both loops": attention(outside=PLACES + REPEATED),
    "made before, repeated in the outer loop": attention(outside=PLACES, inside=REPEATED),
}
LARGE = {
    "an eighth": (PLACES + REPEATED.replace("16x", "8x"), "tensor<8x8x8xi1>"),
    "an iota alone": (f"%q = stablehlo.iota dim = 0 : tensor<8xi32>\n%four = stablehlo.constant dense<4> : {NUMBERS}\n"
                      f"%row = stablehlo.broadcast_in_dim %q, dims = [2] : (tensor<8xi32>) -> {NUMBERS}\n"
                      f"%first = stablehlo.compare LT, %row, %four : ({NUMBERS}, {NUMBERS}) -> {WIDE}\n", WIDE),
    "one number": ("%a = stablehlo.constant dense<true> : tensor<i1>\n%b = stablehlo.not %a : tensor<i1>\n"
                   f"%first = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<i1>) -> {WIDE}\n", WIDE),
}


@pytest.mark.parametrize("what", SMALL)
def test_a_small_source_is_made_once_before_all_loops(what: str) -> None:
    after = rotated(SMALL[what])
    assert kept(after) == [f"{Z} in func.func"]
    compared = [op for op in View(after).ops("stablehlo.compare") if str(op.results[0].type) == Z]
    assert len(compared) == 1 and next(ancestors(compared[0])).name == "func.func"
    assert len(View(after).ops("stablehlo.iota")) == 2
    again = after.clone()
    assert not RotateCollectives().run(again, PassContext(ignore_cost=True, topology="h200:1x4"))


@pytest.mark.parametrize("what", LARGE)
def test_other_sources_are_made_in_each_loop(what: str) -> None:
    made, wide = LARGE[what]
    assert not kept(rotated(attention(made, wide=wide)))


def test_a_source_that_fills_the_cache_of_a_gpu_is_made_in_each_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlorewrite.passes.common.loop_copies.kept_sources._MOST_BYTES", 63)
    assert not kept(rotated(attention()))


@pytest.mark.parametrize(("old", "new"), [
    ("anchor = outer", "anchor = reader"),  # made in the loop of micro-batches, once for each
    ("// _TIMES_SMALLER", "// 8"),
    ("element_count(source.type) > 1", "element_count(source.type) > 0"),
    ("maker.name not in _AS_FAST and", "True and"),
])
def test_each_condition_is_needed(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source("hlorewrite.passes.common.loop_copies.kept_sources", old, new, monkeypatch)
    small = all(kept(rotated(module, executed=False)) == [f"{Z} in func.func"] for module in SMALL.values())
    assert not small or any(kept(rotated(attention(made, wide=wide), executed=False)) for made, wide in LARGE.values())


UNROLLED = "\n".join(f"""%p{k} = stablehlo.iota dim = 0 : tensor<8x8xi32>
%q{k} = stablehlo.iota dim = 1 : tensor<8x8xi32>
%small{k} = stablehlo.compare GE, %p{k}, %q{k} : (tensor<8x8xi32>, tensor<8x8xi32>) -> {Z}
%wide{k} = stablehlo.broadcast_in_dim %small{k}, dims = [1, 2] : ({Z}) -> {WIDE}
%h{k + 1} = stablehlo.select %wide{k}, %h{k}, %zero : {WIDE}, {WIDE.replace("i1", "f32")}""" for k in range(3))
"""Three layers, each with a mask of its own that is the same as the others."""


def unrolled(layers: str = UNROLLED, *, wide: str = WIDE, functions: str = "") -> Module:
    """Micro-batches in a loop, their layers one after the other; the sum is reduced in each."""
    heads = wide.replace("i1", "f32")
    return m.module(f"%x: {heads}", heads, f"""
  %zero = stablehlo.constant dense<0.0> : {heads}
  {FOUR_TIMES}
  %loop:3 = stablehlo.while(%j = %start, %h0 = %x, %sum = %zero) : {N}, {heads}, {heads}
  cond {{
    %more = stablehlo.compare LT, %j, %bound : ({N}, {N}) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    {layers}
    %sum1 = stablehlo.add %sum, %h3 : {heads}
    %after = stablehlo.add %j, %step : {N}
    stablehlo.return %after, %h3, %sum1 : {N}, {heads}, {heads}
  }}""", m.reduce("%red", "%loop#2", heads), f"return %red : {heads}", functions=functions)


CALLS = "\n".join(f"""%small{k} = func.call @mask() : () -> {Z}
%wide{k} = stablehlo.broadcast_in_dim %small{k}, dims = [1, 2] : ({Z}) -> {WIDE}
%h{k + 1} = stablehlo.select %wide{k}, %h{k}, %zero : {WIDE}, {WIDE.replace("i1", "f32")}""" for k in range(3))


@pytest.mark.parametrize("before", [
    unrolled(), unrolled(CALLS, functions=f"func.func private @mask() -> {Z} {{\n{PLACES}return %small : {Z}\n}}")],
    ids=["ops", "calls"])
def test_equal_small_sources_of_a_body_are_made_once(before: Module) -> None:
    """Before the loop, for all layers in it and in the copy behind it."""
    after = before.clone()
    assert PeelLastMicroBatch().run(after, PassContext(ignore_cost=True, topology="h200:1x4"))
    assert not after.verify() and check(before, after).equal
    assert kept(after) == [f"{Z} in func.func"]
    masks = [op for op in View(after).ops("stablehlo.compare") if str(op.results[0].type) == Z]
    assert len(masks) == 1 and len(View(after).ops("func.call")) <= 1


def test_what_an_eighth_repeats_is_made_in_each_copy() -> None:
    wide = "tensor<8x8x8xi1>"
    after = unrolled(UNROLLED.replace("16x8x8", "8x8x8"), wide=wide)
    assert PeelLastMicroBatch().run(after, PassContext(ignore_cost=True, topology="h200:1x4"))
    assert not kept(after)
