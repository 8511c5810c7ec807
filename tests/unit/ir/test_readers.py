"""The index of readers answers what a search of all readers does, under every kind of edit."""

from __future__ import annotations

import random

import pytest

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.load import parse
from hlorewrite.ir.user_index import UserIndex
from hlorewrite.ir.view import View, ancestors

T = "tensor<f32>"
NAMES = frozenset({"stablehlo.negate", "stablehlo.abs"})
BRANCHES = f"""
func.func @main(%x: {T}, %y: {T}, %which: tensor<i1>) -> {T} {{
  %a = stablehlo.negate %x : {T}
  %b = stablehlo.abs %x : {T}
  %c = "stablehlo.if"(%which) ({{
    %d = stablehlo.negate %x : {T}
    %e = stablehlo.negate %x : {T}
    stablehlo.return %e : {T}
  }}, {{
    %f = stablehlo.abs %x : {T}
    stablehlo.return %f : {T}
  }}) : (tensor<i1>) -> {T}
  %g = stablehlo.negate %y : {T}
  %h = stablehlo.negate %x : {T}
  return %h : {T}
}}"""


def expected(view: View, value: ir.Value, op: ir.Operation) -> set[int]:
    """The readers of a value of an op's name that stand before it, in its block or one around."""
    around = {op_key(each) for each in ancestors(op)} | {op_key(op)}
    found = set()
    for reader in view.ops(*NAMES):
        outer = next((each for each in (op, *ancestors(op)) if each.block == reader.block), None)
        if (reader.operands[0] == value and reader.name == op.name and outer is not None and op_key(outer) in around
                and outer != reader and reader.is_before_in_block(outer)):
            found.add(op_key(reader))
    return found


class Reporter:
    """Reports edits to an index, as the rule driver does."""

    def __init__(self, index: UserIndex) -> None:
        self.inserted = index.inserted
        self.erasing = index.erasing
        self.replacing = index.replacing

    def moved(self, op: ir.Operation) -> None:
        raise AssertionError("nothing is moved here")


@pytest.mark.parametrize("seed", range(20))
def test_index_and_search_agree(seed: int) -> None:
    """Ops are made, erased and given other operands at random."""
    random_, view = random.Random(seed), View(parse(BRANCHES))
    index = UserIndex(NAMES, lambda op: op.name)
    editor = Editor(view, "test", (Reporter(index),))
    x, y = list(view.functions["main"].regions[0].blocks[0].arguments)[:2]
    for _ in range(40):
        ops = view.ops(*NAMES)
        op = random_.choice(ops)
        choice = random_.random()
        if choice < 0.5:
            editor.create(random_.choice(sorted(NAMES)), [random_.choice([x, y])], [x.type], location=op.location,
                          before=op)
        elif choice < 0.9:
            editor.erase_if_dead(op)
        else:
            editor.replace(x, y)
            x, y = y, x
        for each in view.ops(*NAMES):
            for value in (x, y):
                assert {op_key(found) for found in index.before(value, each)} == expected(view, value, each)


def test_order_and_others() -> None:
    """Readers come in the order of the program; of what is nowhere before an op, some other reader is still there."""
    view = View(parse(BRANCHES))
    first, *_, last = [op for op in view.ops("stablehlo.negate") if op.operands[0].owner == op.block]
    index = UserIndex(NAMES, lambda op: op.name)
    assert [op == first for op in index.before(last.operands[0], last)] == [True]
    assert not list(index.before(first.operands[0], first))
    other = index.other(first.operands[0], first)
    assert other is not None and other != first
