"""The inliner: nested calls, several calls, recursion, symbols that something else still needs."""

from __future__ import annotations

import pytest

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import contains_any, erase_dead_functions, inline_calls
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, symbol_name

HEAD = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @b(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
"""
A = """
func.func private @a(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @b(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @b(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
"""
B = """
func.func private @b(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.negate %x : tensor<f32>
  return %0 : tensor<f32>
}
"""


def inlined(text: str) -> tuple[Module, View, int]:
    """The module after inlining, a fresh view of it, and the number of calls inlined."""
    module = parse(text)
    count = inline_calls(Editor(View(module)))
    assert not module.verify()
    return module, View(module), count


def test_nested_and_repeated_calls() -> None:
    """Both copies of @b in @a, and its copy in main: three negations come out."""
    _module, view, count = inlined(HEAD + A + B)
    assert count == 4  # two in @a, @a itself, one in main
    assert [op.name for op in view.functions["main"].regions[0].blocks[0].operations] == [
        "stablehlo.negate"] * 3 + ["func.return"]
    assert list(view.functions) == ["main"]


class CountingEditor(Editor):
    """Counts the ops that are moved to where a call was."""

    moved = 0

    def adopt(self, op: ir.Operation) -> None:
        self.moved += 1
        super().adopt(op)


def test_a_chain_of_calls_is_linear() -> None:
    """Callers come first, so each op is copied once, and a function goes before what it calls makes it larger."""
    names = [f"f{n}" for n in range(30)]
    calls = [f"func.func private @{name}(%x: tensor<f32>) -> tensor<f32> {{\n%0 = stablehlo.negate %x : tensor<f32>\n"
             f"%1 = call @{callee}(%0) : (tensor<f32>) -> tensor<f32>\nreturn %1 : tensor<f32>\n}}\n"
             for name, callee in zip(names, [*names[1:], "b"], strict=True)]
    for functions in (calls, calls[::-1]):
        module = parse("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
                       "%0 = call @f0(%x) : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}\n"
                       + "".join(functions) + B)
        editor = CountingEditor(View(module))
        assert inline_calls(editor) == 31
        assert editor.moved == 30 + 31  # the calls inside, and the negations
        assert [op.name for op in View(module).functions["main"].regions[0].blocks[0].operations] == [
            "stablehlo.negate"] * 31 + ["func.return"]
        assert list(View(module).functions) == ["main"] and not module.verify()


def test_functions_that_nothing_calls_receive_nothing() -> None:
    """They go first: the calls in them are not inlined."""
    module = parse(HEAD + A + B + A.replace("@a", "@unused"))
    editor = CountingEditor(View(module))
    inline_calls(editor)
    assert editor.moved == 5 and list(View(module).functions) == ["main"]  # @a: two calls; @b: three negations


def test_nothing_to_do_changes_nothing() -> None:
    """Byte for byte, also private functions that are not called."""
    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }" + B
    module = parse(text)
    before = module.text(debug_info=True)
    assert inline_calls(Editor(View(module))) == 0
    assert module.text(debug_info=True) == before


def test_calls_inside_regions() -> None:
    """A scan body, its results mixed up and repeated."""
    module, _view, count = inlined("""
      func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> (tensor<f32>, tensor<f32>) {
        %0:2 = "stablehlo.if"(%p) ({
          %1:2 = func.call @swap(%x, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
          stablehlo.return %1#1, %1#0 : tensor<f32>, tensor<f32>
        }, {
          stablehlo.return %x, %x : tensor<f32>, tensor<f32>
        }) : (tensor<i1>) -> (tensor<f32>, tensor<f32>)
        return %0#0, %0#1 : tensor<f32>, tensor<f32>
      }
      func.func private @swap(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
        return %b, %a : tensor<f32>, tensor<f32>
      }""")
    assert count == 1 and "call" not in module.text()


def test_recursive_functions_stay() -> None:
    """Directly and through each other; others are inlined around them."""
    _module, view, count = inlined("""
      func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @odd(%x) : (tensor<f32>) -> tensor<f32>
        %1 = call @self(%0) : (tensor<f32>) -> tensor<f32>
        %2 = call @b(%1) : (tensor<f32>) -> tensor<f32>
        return %2 : tensor<f32>
      }
      func.func private @odd(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @even(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }
      func.func private @even(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @odd(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }
      func.func private @self(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @self(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }""" + B)
    assert count == 1
    assert sorted(view.functions) == ["even", "main", "odd", "self"]


def test_public_functions_and_declarations_stay() -> None:
    """The one may be called from outside; the other has no body."""
    _module, view, count = inlined("""
      func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @open(%x) : (tensor<f32>) -> tensor<f32>
        %1 = call @outside(%0) : (tensor<f32>) -> tensor<f32>
        return %1 : tensor<f32>
      }
      func.func public @open(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
      func.func private @outside(tensor<f32>) -> tensor<f32>
      """)
    assert count == 0 and sorted(view.functions) == ["main", "open", "outside"]


def test_only_wanted_functions() -> None:
    """A caller can choose."""
    module = parse(HEAD + A + B)
    assert inline_calls(Editor(View(module)), lambda f: symbol_name(f) == "a") == 1
    assert sorted(View(module).functions) == ["b", "main"]


def test_functions_other_ops_name_stay() -> None:
    """A custom call's callee is not a dead function."""
    _module, view, count = inlined("""
      func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @b(%x) : (tensor<f32>) -> tensor<f32>
        %1 = stablehlo.custom_call @foo(%0) {called_computations = [@kept]} : (tensor<f32>) -> tensor<f32>
        %2 = stablehlo.composite "my.op" %1 {decomposition = @also} : (tensor<f32>) -> tensor<f32>
        return %2 : tensor<f32>
      }
      func.func private @kept(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
      func.func private @also(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
      """ + B)
    assert count == 1 and sorted(view.functions) == ["also", "kept", "main"]


def test_dead_functions_go_in_chains() -> None:
    """@a is dead, and @b only @a called."""
    module = parse("func.func @main() { return }" + A + B)
    assert erase_dead_functions(Editor(View(module))) == 2
    assert list(View(module).functions) == ["main"]


def test_locations_of_inlined_ops_survive() -> None:
    """An inlined op keeps the user's line."""
    _module, view, _ = inlined(HEAD + A + B.replace("%0 = stablehlo.negate %x : tensor<f32>",
                                                   '%0 = stablehlo.negate %x : tensor<f32> loc("m.py":7:9)'))
    assert view.source(view.ops("stablehlo.negate")[0]) == "m.py:7:9"


def chain(*edges: str) -> str:
    """Functions, each of which calls others: ``f>gh`` is a function f that calls g and h."""
    functions = []
    for edge in edges:
        name, _, called = edge.partition(">")
        calls = "".join(f"%{i} = call @{each}(%x) : (tensor<f32>) -> tensor<f32>\n" for i, each in enumerate(called))
        visibility = "public" if name == "m" else "private"
        functions.append(f"func.func {visibility} @{name}(%x: tensor<f32>) -> tensor<f32> {{\n"
                         f"{calls}return %x : tensor<f32>\n}}")
    return "\n".join(functions)


def test_functions_in_circles_stay() -> None:
    """Circles of one, two and three functions; what only leads to a circle, or hangs below it, is inlined."""
    _, view, count = inlined(chain("m>abdg", "a>aw", "b>c", "c>bw", "d>e", "e>f", "f>d", "g>b", "w>"))
    assert set(view.functions) == {"m", "a", "b", "c", "d", "e", "f"}
    assert count == 3  # g in m, w in a and in c


def test_functions_that_only_dead_ones_call_are_dead() -> None:
    """A chain of functions after one that nothing calls, and one of them that something else calls too."""
    view = View(parse(chain("m>d", "a>b", "b>cd", "c>e", "d>", "e>")))
    assert erase_dead_functions(Editor(view)) == 4
    assert set(view.functions) == set(View(view.module).functions) == {"m", "d"}


def test_what_a_function_holds_through_others() -> None:
    """A chain of calls before an op, and functions next to it."""
    text = chain("m>a", "a>b", "b>n", "c>") + B.replace("@b", "@n")
    view = View(parse(text))
    holds = contains_any(("stablehlo.negate",), view)
    assert {name for name, function in view.functions.items() if holds(function)} == {"m", "a", "b", "n"}


def test_calls_of_follows_edits() -> None:
    """Calls that are erased, moved and made: the view lists those that a fresh view does, in the same order."""
    view = View(parse(HEAD + A + B))
    editor, b = Editor(view), view.functions["b"]
    assert len(view.calls_of(b)) == 3
    first, second = view.calls_of(view.functions["a"])[0], view.calls_of(b)[0]
    editor.clone_before(view.calls_of(b)[1], view.calls_of(b)[1])
    editor.move_before(view.calls_of(b)[2], view.calls_of(b)[1])
    editor.replace(second.results[0], first.results[0])
    editor.erase(second)
    assert [op_key(op) for op in view.calls_of(b)] == [op_key(op) for op in View(view.module).calls_of(b)]
    assert len(view.calls_of(b)) == 3


def test_functions_of_modules_inside_a_module_are_found() -> None:
    inner = "module @inner { func.func @f() { return } }"
    assert list(View(parse("func.func @g() { return }" + inner)).functions) == ["g", "f"]
    assert list(View(parse("func.func @g() { return }")).functions) == ["g"]


def test_the_index_of_calls_is_kept_without_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a call is copied, moved and erased the view knows all of them; only their order takes a walk."""
    view = View(parse(HEAD + A + B))
    editor, b = Editor(view), view.functions["b"]
    view.calls_of(b)
    walks: list[int] = []
    rescan = View._rescan
    monkeypatch.setattr(View, "_rescan", lambda self, names: walks.append(1) or rescan(self, names))
    first, second, third = view.calls_of(b)
    copy = editor.clone_before(first, first)
    editor.move_before(third, copy)
    editor.replace(second.results[0], first.results[0])
    editor.erase(second)
    known = [op_key(op) for op in view.calls_of(b, in_order=False)]
    assert sorted(known) == sorted(map(op_key, (first, third, copy))) and not walks
    assert [op_key(op) for op in view.calls_of(b)] == [op_key(op) for op in View(view.module).calls_of(b)]
    assert len(walks) == 2  # of this view and of the new one


def test_a_function_that_does_not_return_is_called_still() -> None:
    """Its results come from nowhere: nothing could stand in the place of the call's."""
    from hlorewrite.ir.inline import dissolve_calls
    module = parse("""func.func @main() -> tensor<f32> { %0 = func.call @dies() : () -> tensor<f32>
        return %0 : tensor<f32> }
      func.func private @dies() -> tensor<f32> { "my.unreachable"() : () -> () }""", allow_unregistered=True)
    dissolve_calls(Editor(View(module)))
    assert "call @dies" in module.text()
