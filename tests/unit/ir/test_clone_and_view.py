"""Clones are independent; the view stays true under every kind of edit."""

from __future__ import annotations

import random

import pytest

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View, ancestors, defining_op, nested_ops, symbol_name, terminator, users

LOOP = """
module @m attributes {mhlo.num_partitions = 4 : i32, test.x = "y"} {
  sdy.mesh @mesh = <["a"=4]>
  func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32> {a.b = 1 : i32}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<4xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %y = stablehlo.add %x, %x : tensor<4xf32>
      stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
    }
    %1 = func.call @f(%0#1) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
}
"""
NAMES = ("stablehlo.add", "stablehlo.constant", "stablehlo.while", "stablehlo.negate", "stablehlo.compare", "func.func",
         "func.call", "stablehlo.return")


def fresh_index(view: View) -> dict[str, list[int]]:
    """What the view should say: a walk from scratch."""
    index: dict[str, list[int]] = {name: [] for name in NAMES}
    for op in nested_ops(view.module.operation):
        if op.name in index:
            index[op.name].append(op_key(op))
    return index


def assert_true(view: View) -> None:
    """The view says what a walk from scratch says, in the same order."""
    assert {name: [op_key(op) for op in view.ops(name)] for name in NAMES} == fresh_index(view)


def following(op: ir.Operation) -> ir.Operation:
    """The next op of the block."""
    ops = [other.operation for other in op.block.operations]
    return ops[ops.index(op) + 1]


def test_clone_is_whole_and_independent() -> None:
    """Attributes, meshes, argument attributes; editing one leaves the other."""
    module = parse(LOOP)
    text = module.text()
    copy = module.clone()
    assert copy.text() == text and copy.name == module.name and copy.context is module.context
    view = View(copy)
    Editor(view).erase(view.ops("sdy.mesh")[0])
    assert module.text() == text and copy.text() != text and not copy.verify()


def test_verify_tells_what_is_wrong() -> None:
    """Diagnostics instead of a printed message."""
    module = parse(LOOP)
    function = module.mlir.body.operations[1]
    with module.context:
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
    diagnostics = module.verify()
    assert diagnostics and diagnostics[0].severity == "error"


def test_view_finds_ops_in_order_and_inside_regions() -> None:
    """Pre-order, the order of the text."""
    view = View(parse(LOOP))
    assert_true(view)
    assert [str(op.results[0].type) for op in view.ops("stablehlo.add")] == ["tensor<i32>", "tensor<4xf32>"]
    assert [op.name for op in ancestors(view.ops("stablehlo.add")[0])] == ["stablehlo.while", "func.func"]
    assert sorted(view.functions) == ["f", "main"]
    call = view.ops("func.call")[0]
    callee = view.callee(call)
    assert callee is not None and symbol_name(callee) == "f"
    assert view.calls_of(callee) == [call]
    returned = terminator(callee.regions[0].blocks[0])
    assert returned.name == "func.return" and defining_op(returned.operands[0]) is None
    assert users(callee.regions[0].blocks[0].arguments[0]) == [(returned, 0)]


def test_view_stays_true_under_edits() -> None:
    """Create, clone, move, replace, erase, each followed by a comparison with a walk from scratch."""
    module = parse(LOOP)
    view = View(module)
    editor = Editor(view, rule="test")
    assert_true(view)
    loop = view.ops("stablehlo.while")[0]
    clone = editor.clone_before(loop, loop)
    assert_true(view)
    assert clone != loop and len(view.ops("stablehlo.while")) == 2
    first, second = view.ops("stablehlo.while")
    editor.replace(second.results[1], first.results[1])
    editor.erase(second)
    assert_true(view)
    add = view.ops("stablehlo.add")[1]
    negated = editor.create("stablehlo.negate", [add.operands[0]], [add.operands[0].type], location=add.location,
                            before=add)
    editor.set_operand(add, 1, negated.results[0])
    assert_true(view)
    assert 'hlorewrite.test' in str(negated.location)
    editor.move_before(view.ops("stablehlo.constant")[-1], terminator(add.block))
    assert_true(view)
    assert view.module.edits > 0


def test_replace_can_spare_readers() -> None:
    """``keep`` ops go on reading the old value."""
    module = parse("func.func @f(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {\n"
                   "  %0 = stablehlo.negate %a : tensor<f32>\n  %1 = stablehlo.abs %a : tensor<f32>\n"
                   "  return %0, %1 : tensor<f32>, tensor<f32>\n}")
    view = View(module)
    block = view.functions["f"].regions[0].blocks[0]
    negate, absolute = view.ops("stablehlo.negate")[0], view.ops("stablehlo.abs")[0]
    Editor(view).replace(block.arguments[0], block.arguments[1], keep=[absolute])
    assert negate.operands[0] == block.arguments[1] and absolute.operands[0] == block.arguments[0]


@pytest.mark.parametrize("seed", range(8))
def test_view_stays_true_under_random_edits(seed: int) -> None:
    """Twenty random edits, a comparison after each."""
    rng = random.Random(seed)
    view = View(parse(LOOP))
    editor = Editor(view, rule="random")
    for _ in range(20):
        op = rng.choice(view.ops("stablehlo.add", "stablehlo.constant", "stablehlo.negate"))
        kind = rng.randrange(4)
        if kind == 0:
            editor.clone_before(op, op)
        elif kind == 1:
            made = editor.create("stablehlo.negate", [op.results[0]], [op.results[0].type], location=op.location,
                                 before=following(op))
            editor.replace(op.results[0], made.results[0], keep=[made])
        elif kind == 2:
            editor.erase_if_dead(op)
        else:
            last = terminator(op.block)
            editor.move_before(op, last) if not any(users(r) for r in op.results) else None
        assert_true(view)
    assert not view.module.verify()


def test_functions_follow_edits() -> None:
    """Erasing a function takes it from the table."""
    view = View(parse(LOOP))
    editor = Editor(view)
    call = view.ops("func.call")[0]
    editor.replace(call.results[0], call.operands[0])
    editor.erase(call)
    editor.erase(view.functions["f"])
    assert list(view.functions) == ["main"]
    assert_true(view)


@pytest.mark.parametrize(("locations", "expected"), [
    ({"x": '"a.py":1:2', "y": '"a.py":2:2', "z": '"a.py":3:2'}, "at a.py:2:2"),
    ({"x": '"a.py":1:2', "z": '"a.py":3:2'}, "near a.py:1:2"),
    ({"z": '"a.py":3:2'}, "near a.py:3:2"),
    ({"w": '"a.py":4:2'}, "near a.py:4:2"),
    ({}, ""),
])
def test_an_op_without_a_line_is_near_one_that_has_one(locations: dict[str, str], expected: str) -> None:
    """Operands first, then readers, then what lies after them."""
    where = {name: f"loc({locations.get(name, 'unknown')})" for name in "xyzw"}
    view = View(parse(f"""func.func @f(%a: tensor<f32>) -> tensor<f32> {{
      %x = stablehlo.negate %a : tensor<f32> {where["x"]}
      %y = stablehlo.multiply %x, %a : tensor<f32> {where["y"]}
      %z = stablehlo.tanh %y : tensor<f32> {where["z"]}
      %w = stablehlo.exponential %z : tensor<f32> {where["w"]}
      return %w : tensor<f32> loc(unknown) }}"""))
    assert view.whereabouts(view.ops("stablehlo.multiply")[0]) == expected
