"""share-fragments: what is compiled once, and each condition under which a fragment stays whole."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.mpmd.program import FragmentCall, read_program
from hlorewrite.pipelines.passes.share_fragments import ShareFragments, share_fragments
from hlorewrite.rules.listener import Recorder

TENSOR = "tensor<4x4xf32>"
LAYER = """%a = stablehlo.tanh %x : T
  %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (T, T) -> T
  %c = stablehlo.add %b, %x : T
  %y = stablehlo.sine %c : T"""
SMALL = ("x w", LAYER, "y")


def value_type(mesh: str, spec: str = "{}, {}") -> str:
    return f'!mpmd.mesh_tensor<"{mesh}", {TENSOR}, sharding=<@{mesh}, [{spec}]>>'


def fragment(name: str, mesh: str, given: str, ops: str, made: str, axes: str, spec: str) -> str:
    """A private function; its body is a manual computation where the mesh has several devices."""
    row = f"{{sdy.sharding = #sdy.sharding<@{mesh}, [{spec}]>}}"
    results = ", ".join([f"{TENSOR} {row}"] * len(made.split()))
    values = [f"%{each}" for each in made.split()]
    types = ", ".join([TENSOR] * len(values))
    local, body = TENSOR, ops
    taken = [f"%{each}" for each in given.split()]
    if axes != '"d"=1':
        local = "tensor<2x4xf32>" if spec.startswith('{"') else TENSOR
        inner = f"{body.replace('T', local)}\n sdy.return {', '.join(values)} : {', '.join([local] * len(values))}"
        listed = [", ".join([f"<@{mesh}, [{spec}]>"] * len(side)) for side in (taken, values)]
        outer = [f"%o{place}" for place in range(len(taken))]
        names = re.sub(r"=\d+", "", axes)
        body = (f"%m:{len(values)} = sdy.manual_computation({', '.join(outer)}) in_shardings=[{listed[0]}] "
                f"out_shardings=[{listed[1]}] manual_axes={{{names}}} "
                f"({', '.join(f'{each}: {local}' for each in taken)}) {{ {inner} }} : "
                f"({', '.join([TENSOR] * len(taken))}) -> ({types})")
        taken, values = outer, [f"%m#{place}" for place in range(len(values))]
    arguments = ", ".join(f"{each}: {TENSOR} {row}" for each in taken)
    return f"""func.func private @{name}({arguments}) -> ({results}) attributes {{mesh_shape = #sdy.mesh<[{axes}]>}} {{
      {body.replace("T", local)}
      return {", ".join(values)} : {types} }}"""


def program(large: tuple[str, str, str], small: tuple[str, str, str] = SMALL, *, axes: Sequence[str] = ('"d"=1',) * 2,
            specs: Sequence[str] = ("{}, {}",) * 2, copies: int = 1) -> Module:
    """Two fragments without a loop: a large one on the first mesh, called several times, and a small one."""
    meshes = ("m0", "m1")
    taken = [(0, f"%p{place}") for place in range(len(large[0].split()))]
    taken += [(1, f"%q{place}") for place in range(len(small[0].split()))]
    calls, returned = [], []
    for number, (side, which) in enumerate([*[(large, 0)] * copies, (small, 1)]):
        kind, count = value_type(meshes[which], specs[which]), len(side[2].split())
        given = [name for place, name in taken if place == which]
        calls.append(f'%r{number}:{count} = mpmd.fragment_call<mesh="{meshes[which]}", origin=["x"]> '
                     f'@{("large", "small")[which]}({", ".join(given)}) {{hlorewrite.stage = {number} : i64, '
                     f'hlorewrite.task = "update"}} : ({", ".join([kind] * len(given))}) -> '
                     f'({", ".join([kind] * count)})')
        returned += [(f"%r{number}#{place}", kind) for place in range(count)]
    arguments = ", ".join(f"{name}: {value_type(meshes[which], specs[which])}" for which, name in taken)
    types = ", ".join(kind for _, kind in returned)
    topology = ", ".join(f'<"{mesh}" : <[{each}]>>' for mesh, each in zip(meshes, axes, strict=True))
    return parse("\n".join([
        "module @two {", *(f"sdy.mesh @{mesh} = <[{each}]>" for mesh, each in zip(meshes, axes, strict=True)),
        f"func.func public @main({arguments}) -> ({types}) attributes {{topology = #mpmd.topology<{topology}>}} {{",
        *calls, f"return {', '.join(name for name, _ in returned)} : {types} }}",
        fragment("large", "m0", *large, axes[0], specs[0]), fragment("small", "m1", *small, axes[1], specs[1]), "}"]))


def divided(before: Module, least: int = 3) -> tuple[Module, list[str]]:
    """The program after the pass and its remarks: verified, of the same values, the same twice."""
    after, recorder = before.clone(), Recorder()
    changed = run_passes(after, [ShareFragments(least)], PassContext((recorder,)))
    again = before.clone()
    run_passes(again, [ShareFragments(least)], PassContext())
    assert again.text() == after.text()
    assert not after.verify()
    assert changed == (after.text() != before.text())
    assert check(before, after).equal
    return after, [remark.sentence for remark in recorder.remarks]


def pieces(after: Module) -> list[tuple[str, int, int]]:
    """Mesh and numbers of operands and results of each call."""
    return [(step.mesh, len(step.operands), len(step.results)) for step in read_program(after).steps
            if isinstance(step, FragmentCall)]


def shared_text(after: Module, name: str) -> str:
    """A fragment without its name, its mesh's and its locations."""
    text = str(View(after).functions[name])
    return re.sub(rf"@{name}\b", "@f", re.sub(r"@m\d", "@m", text))


def after_op(op: str = "cosine") -> tuple[str, str, str]:
    return "x w", f"{LAYER}\n%z = stablehlo.{op} %y : T", "z"


def test_what_is_shared_is_equal_but_for_the_mesh():
    after, said = divided(program(after_op()))
    assert pieces(after) == [("m0", 2, 1), ("m0", 1, 1), ("m1", 2, 1)]
    assert shared_text(after, "large") == shared_text(after, "small")
    assert said == ["@large runs as 2 fragments; 4 ops are compiled once for it and @small"]


@pytest.mark.parametrize("large, expected", [
    (("v w", f"%x = stablehlo.cosine %v : T\n{LAYER}", "y"), [(1, 1), (2, 1)]),
    (("v w", f"%x = stablehlo.cosine %v : T\n{LAYER}\n%z = stablehlo.cosine %y : T", "z"), [(1, 1), (2, 1), (1, 1)]),
    (("x w v", f"{LAYER}\n%z = stablehlo.cosine %v : T", "z y"), [(2, 1), (1, 1)]),
    # what is around it on both sides, and linked past it
    (("v w", f"%x = stablehlo.cosine %v : T\n%k = stablehlo.floor %v : T\n{LAYER}\n%z = stablehlo.add %k, %y : T", "z"),
     [(1, 1), (2, 1), (2, 1)]),
    (("v w", f"%x = stablehlo.cosine %v : T\n{LAYER}\n%z = stablehlo.add %x, %y : T", "z"), [(1, 1), (2, 1), (2, 1)]),
    (("v w", f"%k = stablehlo.floor %v : T\n%x = stablehlo.cosine %k : T\n{LAYER}\n%z = stablehlo.add %k, %y : T", "z"),
     [(1, 2), (2, 1), (2, 1)]),
])
def test_before_after_and_beside_it(large, expected):
    after, _ = divided(program(large))
    assert pieces(after)[:-1] == [("m0", *each) for each in expected]


def test_a_fragment_without_another_in_it_stays_byte_for_byte():
    before = program(("x w", LAYER.replace("sine", "cosine"), "y"))
    after, said = divided(before, least=4)
    assert (after.text(), said) == (before.text(), [])


def test_a_small_fragment_is_not_shared():
    assert divided(program(after_op()), least=5)[1] == []


def test_each_call_that_is_added_needs_its_work():
    assert len(pieces(divided(program(after_op(), copies=2), least=2)[0])) == 5
    assert len(pieces(divided(program(after_op(), copies=2), least=3)[0])) == 3


REFUSED = {
    "what is around it needs it and is needed by it": (
        ("x w", LAYER.replace("%b, %x", "%k, %x").replace("%c =", "%k = stablehlo.cosine %b : T\n%c ="), "y"),
        ("x w v", LAYER.replace("%b, %x", "%v, %x"), "b y"),
        "ops before it depend on the ops in it"),
    "what it makes inside is read outside": (
        ("x w", f"{LAYER}\n%z = stablehlo.cosine %b : T", "y z"), SMALL, "that the part does not return"),
    "a result of it is not read": (
        ("x w", f"{LAYER}\n%z = stablehlo.cosine %y : T", "z"), ("x w", LAYER, "y c"), "nothing reads a result"),
    "it returns an argument": (
        ("x w", f"{LAYER}\n%z = stablehlo.cosine %y : T", "z x"), SMALL, "returns an argument, or a value twice"),
    "it returns a value twice": (
        ("x w", f"{LAYER}\n%z = stablehlo.cosine %y : T", "z z"), SMALL, "returns an argument, or a value twice"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_stays_whole_where(case):
    large, small, why = REFUSED[case]
    before = program(large, small)
    after, said = divided(before)
    assert after.text() == before.text()
    assert len(said) == 1 and re.search(why, said[0])


def test_data_that_is_read_around_it_is_made_again():
    ops = LAYER.replace("%b, %x", "%b, %k").replace("%a =", "%k = stablehlo.constant dense<2.0> : T\n%a =")
    after, _ = divided(program(("x w", f"{ops}\n%z = stablehlo.multiply %y, %k : T", "z"), ("x w", ops, "y")))
    assert len(pieces(after)) == 3
    assert str(View(after).functions["large_1"]).count("constant") == 1


def test_the_same_value_twice_is_not_two_arguments():
    ops = LAYER.replace("%b, %x", "%b, %v")
    before = program(("x w", f"{LAYER}\n%z = stablehlo.cosine %y : T", "z"), ("x w v", ops, "y"))
    assert divided(before)[0].text() == before.text()


def test_effects_keep_their_order():
    call = '%e = stablehlo.custom_call @f(%x) {has_side_effect = true} : (T) -> T'
    large = ("x w", f"{call}\n{LAYER}\n%z = stablehlo.add %y, %e : T", "z")
    before = program(large)
    after = before.clone()
    assert not ShareFragments(3).run(after, PassContext())
    pure = large[1].replace("has_side_effect = true", "")
    assert ShareFragments(3).run(program((large[0], pure, "z")), PassContext())


def test_the_same_ops_in_another_order_end():
    lines = ["%a = stablehlo.tanh %x : T", "%b = stablehlo.sine %x : T", "%y = stablehlo.add %a, %b : T",
             "%z = stablehlo.cosine %y : T"]
    before = program(("x", "\n".join(lines), "z"), ("x", "\n".join([lines[1], lines[0], *lines[2:]]), "z"))
    after, said = divided(before)
    assert after.text() == before.text()
    assert "there is nothing around it" in said[0]


def test_a_fragment_that_returns_less_returns_the_rest_too():
    after, said = divided(program(SMALL, ("x w", LAYER, "y b")))
    assert pieces(after) == [("m0", 2, 2), ("m1", 2, 2)]
    assert shared_text(after, "large") == shared_text(after, "small")
    assert said == ["@large returns more than is read; 4 ops are compiled once for it and @small"]


def test_what_it_returns_in_addition_takes_few_bytes(monkeypatch):
    monkeypatch.setattr(share_fragments, "EXTRA", 0.3)  # one value besides three
    after, said = divided(program(SMALL, ("x w", LAYER, "y b")))
    assert pieces(after)[0] == ("m0", 2, 1)
    assert "of the bytes of its inputs and outputs" in said[0]


LOOP = """%zero = stablehlo.constant dense<0> : tensor<i32>
  %l:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, T
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare NE, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.reverse %v, dims = [0] : T
    %t = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (T, T) -> T
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t : tensor<i32>, T
  }
  %y = stablehlo.tanh %l#1 : T"""


def test_a_loop_counts_for_its_ops():
    """The loop, the comparison, what moves data in it, the product, the addition; and the tanh."""
    large = "x w", LOOP + "\n%z = stablehlo.cosine %y : T", "z"
    assert len(pieces(divided(program(large, ("x w", LOOP, "y")), least=6)[0])) == 3
    assert len(pieces(divided(program(large, ("x w", LOOP, "y")), least=7)[0])) == 2


def test_common_parts_of_two_fragments_that_do_not_hold_each_other():
    after, said = divided(program(("x w", f"{LAYER}\n%z = stablehlo.cosine %y : T", "z"),
                                  ("x w", f"{LAYER}\n%z = stablehlo.exponential %y : T", "z")), least=2)
    assert pieces(after) == [("m0", 2, 1), ("m0", 1, 1), ("m1", 2, 1), ("m1", 1, 1)]
    assert shared_text(after, "large") == shared_text(after, "small")
    assert len(said) == 2


TWO = ('"d"=2', '"d"=2')
POINTWISE = LAYER.replace("stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (T, T) -> T",
                          "stablehlo.multiply %a, %w : T")
AFTER = "x w", f"{POINTWISE}\n%z = stablehlo.cosine %y : T", "z"
BESIDE = "x w v", f"{POINTWISE}\n%z = stablehlo.cosine %v : T", "z y"


def on_two(large: tuple[str, str, str], spec: str, *others: str, axes: Sequence[str] = TWO) -> Module:
    """Fragments that are manual computations over two devices."""
    return program(large, ("x w", POINTWISE, "y"), axes=axes, specs=(spec, *(others or (spec,))))


def test_values_between_pieces_are_cut_over_all_devices():
    after, _ = divided(on_two(AFTER, '{"d"}, {}'))
    assert len(pieces(after)) == 3
    assert shared_text(after, "large") == shared_text(after, "small")
    before = on_two(AFTER, "{}, {}")
    same, said = divided(before)
    assert same.text() == before.text()
    assert "not cut over all axes of the mesh" in said[0]


def test_nothing_lies_between_parts_without_a_link():
    assert len(pieces(divided(on_two(BESIDE, "{}, {}"))[0])) == 3


@pytest.mark.parametrize("before, why", [
    (on_two(BESIDE, '{"d"}, {}', '{"e"}, {}', axes=('"d"=2, "e"=2',) * 2), "a value is placed differently"),
    (on_two(BESIDE, "{}, {}", axes=('"d"=2', '"d"=1')), "the meshes differ"),
    (on_two(("v w", f"%x = stablehlo.cosine %v : T\n{POINTWISE}\n%z = stablehlo.add %x, %y : T", "z x"), '{"d"}, {}'),
     ""),
    (on_two(("v w", f"%k = stablehlo.floor %v : T\n%x = stablehlo.cosine %k : T\n{POINTWISE}\n"
             "%z = stablehlo.add %k, %y : T", "z"), '{"d"}, {}'), "the placement of a value between them is unknown"),
])
def test_fragments_that_lie_otherwise_are_not_shared(before, why):
    after, said = divided(before)
    assert (after.text() == before.text()) == bool(why)
    assert why in said[0]


@pytest.fixture(autouse=True)
def _any_bytes_and_calls(monkeypatch):
    """The programs here are small: one value between pieces is a third of all, and one more call is half of them."""
    monkeypatch.setattr(share_fragments, "EXTRA", 1.0)
    monkeypatch.setattr(share_fragments, "GROWTH", 1.0)


def test_what_lies_between_pieces_takes_few_bytes(monkeypatch):
    before = program(after_op())
    monkeypatch.setattr(share_fragments, "EXTRA", 0.34)
    assert len(pieces(divided(before)[0])) == 3
    monkeypatch.setattr(share_fragments, "EXTRA", 0.33)
    after, said = divided(before)
    assert after.text() == before.text()
    assert "of the bytes of its inputs and outputs" in said[0]


def test_depths_take_as_much_as_there_are_values():
    """A chain of 20 000 ops; numbers of ops reached, as sets of bits, would take 50 MB."""
    import tracemalloc

    from hlorewrite.pipelines.passes.share_fragments.fragment_graph import FragmentGraph, GraphOp
    count = 20_000
    ops = tuple(GraphOp(None, 0, (place,), (place + 1,), False) for place in range(count))  # type: ignore[arg-type]
    graph = FragmentGraph(None, None, None, 1, (None,) * (count + 1), ops, (count,), {}, (), False)  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        assert graph.depths[-1] == count
        assert tracemalloc.get_traced_memory()[1] < 100 * count
    finally:
        tracemalloc.stop()


def test_few_calls(monkeypatch):
    large = ("v w", f"%x = stablehlo.cosine %v : T\n{LAYER}\n%z = stablehlo.cosine %y : T", "z")
    before = program(large)
    assert len(pieces(divided(before)[0])) == 4
    monkeypatch.setattr(share_fragments, "CALLS", 2)
    after, said = divided(before)
    assert after.text() == before.text()
    assert "its task would be more than 2 fragments" in said[0]


def loop(large: tuple[str, str, str], carried: int, update: tuple[str, str, str] | None = None) -> Module:
    """The large fragment in a loop: it takes what is carried as one of its arguments, and makes the next. An update may
    follow, of the result and the first argument.
    """
    a, b = value_type("m0"), value_type("m1")
    rest = [f"%p{place}" for place in range(len(large[0].split()) - 1)]
    given = [*rest[:carried], "%c0", *rest[carried:]]
    taken = f"%c0: {a}, %c1: {b}, {', '.join(f'{each}: {a}' for each in rest)}, %q: {b}"
    kinds = f"{a}, {b}, {', '.join([a] * len(rest))}, {b}"
    topology = 'topology = #mpmd.topology<<"m0" : <["d"=1]>>, <"m1" : <["d"=1]>>>'
    call = ('mpmd.fragment_call<mesh="{0}", origin=["x"]> @{1}({2}) '
            '{{hlorewrite.stage = {3} : i64, hlorewrite.task = "F"}}')
    after = call.replace('"F"', '"update"').format("m0", "update", f"%r#0, {rest[0]}", 0)
    following = [f"%u = {after} : ({a}, {a}) -> {a}"] if update else []
    return parse("\n".join([
        'module @loop { sdy.mesh @m0 = <["d"=1]>', 'sdy.mesh @m1 = <["d"=1]>',
        f"func.func public @main({taken.replace('%c', '%i')}) -> ({a}, {b}) attributes {{{topology}}} {{",
        "%r:2 = mpmd.for (%i0, %i1) {hlorewrite.sums = array<i1: false, false>, iterations = 5 : ui32} "
        f"(%c0: {a}, %c1: {b}, %index: tensor<ui32>) {{",
        f"%n:2 = mpmd.call @microbatch(%c0, %c1, {', '.join(rest)}, %q) : ({kinds}) -> ({a}, {b})",
        f"mpmd.return %n#0, %n#1 : {a}, {b} }} : {a}, {b}",
        *following, f"return {'%u' if update else '%r#0'}, %r#1 : {a}, {b} }}",
        f"func.func private @microbatch({taken}) -> ({a}, {b}) attributes {{{topology}}} {{",
        f"%n0 = {call.format('m0', 'large', ', '.join(given), 0)} : ({', '.join([a] * len(given))}) -> {a}",
        f"%n1 = {call.format('m1', 'small', '%c1, %q', 1)} : ({b}, {b}) -> {b}", f"return %n0, %n1 : {a}, {b} }}",
        fragment("large", "m0", *large, '"d"=1', "{}, {}"), fragment("small", "m1", *SMALL, '"d"=1', "{}, {}"),
        fragment("update", "m0", *update, '"d"=1', "{}, {}") if update else "", "}"]))


def test_what_is_carried_passes_through_one_piece():
    added = ("x w v", f"{LAYER}\n%z = stablehlo.add %v, %y : T", "z")
    assert len(pieces(divided(loop(added, 2))[0])) == 3  # %v is carried
    for large, carried in ((added, 0), (("x w", f"{LAYER}\n%z = stablehlo.add %x, %y : T", "z"), 0)):
        before = loop(large, carried)
        after, said = divided(before)
        assert after.text() == before.text()
        assert "carried to the next micro-batch would pass through both" in said[0]


def test_a_call_after_the_loop_counts_once_for_all_micro_batches():
    """Five micro-batches: four ops in the loop are worth a call for four ops each, after it a call for twenty."""
    after_loop = ("x w", f"{LAYER}\n%z = stablehlo.cosine %y : T", "z")
    added = ("x w v", f"{LAYER}\n%z = stablehlo.add %v, %y : T", "z")
    assert len(pieces(divided(loop(added, 2), least=4)[0])) == 3
    assert len(pieces(divided(loop(added, 2), least=5)[0])) == 2
    assert len(pieces(divided(loop(SMALL, 0, after_loop), least=20)[0])) == 4
    assert len(pieces(divided(loop(SMALL, 0, after_loop), least=21)[0])) == 3


def test_a_micro_batch_makes_few_more_calls(monkeypatch):
    before = loop(("x w v", f"{LAYER}\n%z = stablehlo.add %v, %y : T", "z"), 2)
    monkeypatch.setattr(share_fragments, "GROWTH", 0.4)
    after, said = divided(before)
    assert after.text() == before.text()
    assert "a micro-batch would make more than 2 calls" in said[0]
