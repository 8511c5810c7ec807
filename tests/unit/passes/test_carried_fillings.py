"""What a few ops make from constants, carried by a loop: each loop makes its own, and other carried values stay."""

from __future__ import annotations

import fusion_modules as m
import pytest

from hlorewrite.ir.edit import Editor
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, users
from hlorewrite.oracle.check import check
from hlorewrite.passes.common.loop_copies.carried_fillings import fill_again, read_outside
from hlorewrite.passes.peel_last_micro_batch.peel_last_micro_batch import PeelLastMicroBatch
from hlorewrite.passes.rotate_collectives.rotate_collectives import RotateCollectives
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.spmd.loops import Loop

X, B, N = "tensor<8xf32>", "tensor<8xi1>", "tensor<i32>"
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
  %start = stablehlo.constant dense<0> : {N}
  %bound = stablehlo.constant dense<4> : {N}
  %step = stablehlo.constant dense<1> : {N}
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
