"""Collectives of one iteration concurrently with the compute of another: where it is legal, what it leaves alone."""

from __future__ import annotations

import random
import re

import fusion_modules as m
import pytest
from fusion_modules import went_wrong
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.module import Module
from hlorewrite.passes.comm_shift.comm_shift import CommShift
from hlorewrite.passes.common.overlap_model import CROWDED, OVERLAPPED
from hlorewrite.passes.rotate_collectives.rotate_collectives import RotateCollectives
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder

X, N = "tensor<8xf32>", "tensor<i32>"
GATHER = ('%full = "stablehlo.all_gather"(%part) <{all_gather_dim = 0 : i64, '
          "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
          "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : "
          f"(tensor<2xf32>) -> {X}")


def sent(name: str, value: str) -> str:
    """A permute to the next device of a ring of four."""
    return (f'%{name} = "stablehlo.collective_permute"(%{value}) <{{channel_handle = '
            "#stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = "
            f"dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}}> : ({X}) -> {X}\n")


def loop(body: str, *, carried: str = f"%c = %x : {X}, %acc = %zero : {X}", returned: str = "%c1, %acc1",
         bound: object = 4, condition: str = "LT, %i, %bound", inside_condition: str = "", results: str = "",
         arguments: str = "") -> Module:
    """A loop with a counter and other carried values; ``carried`` is ``%name = %start : type`` for each."""
    slots = [part.strip() for part in carried.split(", %")]
    slots = [part if part.startswith("%") else f"%{part}" for part in slots]
    types = [part.rpartition(" : ")[2] for part in slots]
    begins = [part.rpartition(" : ")[0] for part in slots]
    results = results or ", ".join(f"%o#{number + 1}" for number in range(len(slots)))
    return m.module(f"%x: {X}, %w: tensor<4x2xf32>{arguments}", f"({', '.join(types)})", f"""
  %zero = stablehlo.constant dense<0.0> : {X}
  %start = stablehlo.constant dense<0> : {N}
  %bound = stablehlo.constant dense<{bound}> : {N}
  %step = stablehlo.constant dense<1> : {N}
  %o:{len(slots) + 1} = stablehlo.while(%i = %start, {', '.join(begins)}) : {N}, {', '.join(types)}
  cond {{
    {inside_condition}
    %more = stablehlo.compare {condition} : ({N}, {N}) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    {body}
    %next = stablehlo.add %i, %step : {N}
    stablehlo.return %next, {returned} : {N}, {', '.join(types)}
  }}""", f"return {results} : {', '.join(types)}")


def rotated(before: Module, *, ignore_cost: bool = True, min_gain: float = 0.01) -> tuple[Module, bool, list[str]]:
    """The module after the pass, whether it changed, and what was said."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    changed = RotateCollectives(min_gain).run(
        after, PassContext(listeners=(recorder,), ignore_cost=ignore_cost, topology="h200:1x4"))
    assert not after.verify()
    return after, changed, [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]


SUMMED = f"\n%acc1 = stablehlo.add %acc, %red : {X}"
REDUCED = f"%c1 = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%red", "%c1", X) + SUMMED
"""A gradient computed from a chain, its reduction, and the sum of all."""
NUMBER = (f"%n = stablehlo.convert %i : ({N}) -> tensor<f32>\n"
          f"%b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> {X}")
PART = (f"%z = stablehlo.constant dense<0> : {N}\n"
        f"%row = stablehlo.dynamic_slice %w, %i, %z, sizes = [1, 2] : (tensor<4x2xf32>, {N}, {N}) -> tensor<1x2xf32>\n"
        "%part = stablehlo.reshape %row : (tensor<1x2xf32>) -> tensor<2xf32>\n")
GATHERED = f"{PART}{GATHER}\n%c1 = stablehlo.multiply %c, %full : {X}"
"""A layer whose weights are gathered."""
BARRIER = f"%b:2 = stablehlo.optimization_barrier %p, %c : tensor<2xf32>, {X}\n"
REMATERIALISED = (f"{PART}{BARRIER}{GATHER}\n%c1 = stablehlo.multiply %b#1, %full : {X}".replace("%part =", "%p =")
                  .replace('"stablehlo.all_gather"(%part)', '"stablehlo.all_gather"(%b#0)'))
"""A layer that jax.checkpoint computes again: one barrier contains its weights and what it computes with them."""
LEGAL = {
    "a reduction": loop(REDUCED),
    "two iterations": loop(REDUCED, bound=2),
    "the counter next to the reduction": loop(
        f"%c1 = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%red", "%c1", X) +
        f"\n{NUMBER}\n%sc = stablehlo.multiply %red, %b : {X}\n%acc1 = stablehlo.add %acc, %sc : {X}"),
    "a carried value next to the reduction": loop(
        f"%c1 = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%red", "%c1", X) +
        f"\n%sc = stablehlo.multiply %red, %c : {X}\n%acc1 = stablehlo.add %acc, %sc : {X}"),
    "two reductions": loop(
        f"%c1 = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%red", "%c1", X) + "\n" + m.reduce("%t", "%c", X) +
        f"\n%sc = stablehlo.subtract %red, %t : {X}\n%acc1 = stablehlo.add %acc, %sc : {X}"),
    "what stays the same": loop(
        f"%c1 = stablehlo.multiply %c, %same : {X}\n" + m.reduce("%red", "%c1", X) +
        f"\n%sc = stablehlo.multiply %red, %same : {X}\n%acc1 = stablehlo.add %acc, %sc : {X}",
        carried=f"%c = %x : {X}, %acc = %zero : {X}, %same = %x : {X}", returned="%c1, %acc1, %same"),
    "two that change places": loop(
        f"%c1 = stablehlo.multiply %d, %x : {X}\n" + m.reduce("%red", "%c1", X) + SUMMED,
        carried=f"%c = %x : {X}, %d = %zero : {X}, %acc = %zero : {X}", returned="%c1, %c, %acc1"),
    "the last reduction alone": loop(
        f"%c1 = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%red", "%c1", X), returned="%c1, %red"),
    "a constant in the second half": loop(
        f"%c1 = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%red", "%c1", X) +
        f"\n%four = stablehlo.constant dense<4.0> : {X}\n%sc = stablehlo.divide %red, %four : {X}\n"
        f"%acc1 = stablehlo.add %acc, %sc : {X}"),
    "a gather": loop(GATHERED, carried=f"%c = %x : {X}", returned="%c1"),
    "a gather whose value is carried on": loop(
        GATHERED, carried=f"%c = %x : {X}, %last = %zero : {X}", returned="%c1, %full"),
    "a gather next to the counter": loop(
        f"{PART}{GATHER}\n{NUMBER}\n%t = stablehlo.multiply %full, %b : {X}\n"
        f"%c1 = stablehlo.add %c, %t : {X}", carried=f"%c = %x : {X}", returned="%c1"),
    "a gather behind a barrier": loop(REMATERIALISED, carried=f"%c = %x : {X}", returned="%c1"),
    "a sum that a ring passes on": loop(
        f"%g = stablehlo.sine %c : {X}\n%sum = stablehlo.add %acc, %g : {X}\n" + sent("acc1", "sum") +
        f"%c1 = stablehlo.multiply %c, %x : {X}"),
    "two sums, one of which moves to another place": loop(
        f"%g = stablehlo.sine %c : {X}\n%sum = stablehlo.add %acc, %g : {X}\n" + sent("acc1", "sum") +
        f"%c1 = stablehlo.multiply %c, %x : {X}", carried=f"%c = %x : {X}, %acc = %zero : {X}, %last = %zero : {X}",
        returned="%c1, %acc1, %acc"),
    "a value that a ring passes on before it is read": loop(
        sent("c1", "c") + f"%g = stablehlo.sine %c1 : {X}\n%acc1 = stablehlo.add %acc, %g : {X}"),
    "a value before it is read, and a sum": loop(
        sent("c1", "c") + f"%g = stablehlo.sine %c1 : {X}\n%sum = stablehlo.add %acc, %g : {X}\n" +
        sent("acc1", "sum")),
    "a gather and a reduction": loop(
        f"{PART}{GATHER}\n%c1 = stablehlo.multiply %c, %full : {X}\n" + m.reduce("%red", "%c1", X) +
        f"\n%acc1 = stablehlo.add %acc, %red : {X}"),
}


@pytest.mark.parametrize("what", LEGAL)
def test_it_rotates_with_equal_values(what: str) -> None:
    """The same halves run in the same order: every output is that of before, bit for bit."""
    after, changed, said = rotated(LEGAL[what])
    assert changed and said[0].startswith("applied: rotated: ") and OVERLAPPED in after.text()
    compared = check(LEGAL[what], after)
    assert compared.equal and all(row.absolute == 0 for row in compared.rows)
    text = after.text()
    assert not rotated(after)[1] and after.text() == text


def test_the_reduction_reads_what_the_iteration_before_made() -> None:
    text = rotated(loop(REDUCED))[0].text()
    body = text.partition("} do {")[2].partition("stablehlo.return %")[0]
    operand = re.search(r'"stablehlo.all_reduce"\((%\w+)\)', body)
    assert operand and operand[1].startswith("%iterArg")


def test_the_gather_is_read_by_the_next_iteration() -> None:
    text = rotated(LEGAL["a gather"])[0].text()
    body = text.partition("} do {")[2]
    multiplied = re.search(r"stablehlo.multiply %iterArg\w*, (%\w+)", body)
    assert multiplied and multiplied[1].startswith("%iterArg")


def test_each_copy_has_channels_of_its_own() -> None:
    after = rotated(LEGAL["two reductions"])[0]
    assert sorted(int(found) for found in re.findall(r"handle = (\d+)", after.text())) == [1, 1, 2, 2]


def test_a_barrier_is_divided_only_where_the_loop_is_rotated() -> None:
    """The gather's part of the barrier leaves the layer's, and both keep one."""
    barriers = re.compile(r"optimization_barrier (%[^:\n]*) :")
    before = loop(REMATERIALISED, carried=f"%c = %x : {X}", returned="%c1")
    text = rotated(before)[0].text()
    body = text.partition("} do {")[2].partition("stablehlo.return")[0]
    assert [len(found.split(",")) for found in barriers.findall(body)] == [1, 1]
    after, changed, _ = rotated(before, ignore_cost=False, min_gain=0.5)
    assert not changed and [len(found.split(",")) for found in barriers.findall(after.text())] == [2]


WIDE = 2048


def layers(rows: int) -> Module:
    """Four layers that gather two weights: the first is read at once, the second after a product of so many rows."""
    row, square = f"tensor<{rows}x{WIDE}xbf16>", f"tensor<{WIDE}x{WIDE}xbf16>"
    stacked, part = f"tensor<4x{WIDE // 4}x{WIDE}xbf16>", f"tensor<{WIDE // 4}x{WIDE}xbf16>"
    sliced_part = f"tensor<1x{WIDE // 4}x{WIDE}xbf16>"

    def gathered(name: str, index: int) -> str:
        return (f'%{name} = "stablehlo.all_gather"(%{name}s) <{{all_gather_dim = 0 : i64, channel_handle = '
                f"#stablehlo.channel_handle<handle = {index}, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : "
                f"tensor<1x4xi64>, use_global_device_ids}}> : ({part}) -> {square}\n")

    def sliced(name: str) -> str:
        return (f"%{name}r = stablehlo.dynamic_slice %{name}w, %i, %z, %z, sizes = [1, {WIDE // 4}, {WIDE}] : "
                f"({stacked}, {N}, {N}, {N}) -> {sliced_part}\n"
                f"%{name}s = stablehlo.reshape %{name}r : ({sliced_part}) -> {part}\n")

    def product(name: str, left: str, weights: str) -> str:
        return (f"%{name} = stablehlo.dot_general %{left}, %{weights}, contracting_dims = [1] x [0] : ({row}, "
                f"{square}) -> {row}\n")

    return m.module(f"%x: {row}, %aw: {stacked}, %bw: {stacked}", f"{row}", f"""
  %start = stablehlo.constant dense<0> : {N}
  %bound = stablehlo.constant dense<4> : {N}
  %z = stablehlo.constant dense<0> : {N}
  %step = stablehlo.constant dense<1> : {N}
  %o:2 = stablehlo.while(%i = %start, %c = %x) : {N}, {row}
  cond {{
    %more = stablehlo.compare LT, %i, %bound : ({N}, {N}) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    {sliced("a")}{sliced("b")}{gathered("b", 2)}{gathered("a", 1)}{product("d", "c", "a")}{product("e", "d", "b")}
    %next = stablehlo.add %i, %step : {N}
    stablehlo.return %next, %e : {N}, {row}
  }}""", f"return %o#1 : {row}")


def test_a_gather_that_is_hidden_stays_in_its_iteration() -> None:
    """The weights that are read last are not carried: a carried result is copied once an iteration."""
    after, changed, said = rotated(layers(65536), ignore_cost=False)
    assert changed and said[0].startswith("applied: rotated: an iteration, of which a collective takes"), said
    assert CROWDED not in after.text() and after.text().count('"stablehlo.all_gather"') == 4
    assert not rotated(after, ignore_cost=False)[1]


def test_where_communication_fills_an_iteration_all_gathers_go_and_share_a_call() -> None:
    after, changed, said = rotated(layers(1024), ignore_cost=False)
    assert changed and said[0].startswith("applied: rotated: an iteration, of which 2 collectives take"), said
    assert CROWDED in after.text()
    merged, passes = after.clone(), parse_pipeline("all-reduce-fusion{kinds=all-reduce crowded=true}")
    assert run_passes(merged, passes, PassContext(topology="h200:1x4"))
    assert merged.text().partition("} do {")[2].count("stablehlo.all_gather") == 1
    left = after.clone()
    assert not run_passes(left, parse_pipeline("all-reduce-fusion{kinds=all-reduce}"), PassContext(topology="h200:1x4"))


REFUSED = {
    "compute of the same iteration that does not need it": loop(
        m.reduce("%red", "%c", X) + f"\n%acc1 = stablehlo.add %acc, %red : {X}\n%c1 = stablehlo.multiply %c, %x : {X}"),
    "an unknown trip count": loop(REDUCED, condition="LT, %i, %n", arguments=f", %n: {N}"),
    "one iteration": loop(REDUCED, bound=1),
    "no iteration": loop(REDUCED, bound=0),
    "the next iteration needs it": loop(
        f"%g = stablehlo.multiply %c, %x : {X}\n" + m.reduce("%c1", "%g", X), carried=f"%c = %x : {X}", returned="%c1"),
    "its own iteration needs it": loop(
        m.reduce("%red", "%c", X) + f"\n%c1 = stablehlo.multiply %red, %x : {X}", carried=f"%c = %x : {X}",
        returned="%c1"),
    "a gather of what the iteration computes": loop(
        "%part = stablehlo.slice %c [0:2] : (tensor<8xf32>) -> tensor<2xf32>\n" + GATHER +
        f"\n%c1 = stablehlo.multiply %c, %full : {X}", carried=f"%c = %x : {X}", returned="%c1"),
    "a gather behind a barrier of what the iteration computes": loop(
        f"%p = stablehlo.slice %c [0:2] : ({X}) -> tensor<2xf32>\n" + REMATERIALISED.partition("tensor<2xf32>\n")[2],
        carried=f"%c = %x : {X}", returned="%c1"),
    "a permute between the compute of two iterations": loop(
        f"%g = stablehlo.sine %c : {X}\n" + sent("c1", "g"), carried=f"%c = %x : {X}", returned="%c1"),
    "a condition that prints": loop(
        REDUCED, inside_condition="stablehlo.custom_call @log() {has_side_effect = true} : () -> ()"),
    "a condition that communicates": loop(REDUCED, inside_condition=m.reduce("%all", "%c", X)),
    "effects in both halves": loop(
        f"stablehlo.custom_call @log() {{has_side_effect = true}} : () -> ()\n{REDUCED}\n"
        f"stablehlo.custom_call @log(%acc1) {{has_side_effect = true}} : ({X}) -> ()"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_stays(what: str) -> None:
    text = REFUSED[what].text()
    after, changed, _ = rotated(REFUSED[what])
    assert not changed and after.text() == text


def test_it_has_to_pay() -> None:
    """A loop without compute hides nothing; at a tenth of a percent, nothing is duplicated."""
    before = loop(REDUCED)
    after, changed, said = rotated(before, ignore_cost=False)
    assert not changed and after.text() == before.text()
    assert said[0].startswith("unprofitable: it stays as it is: an iteration, of which a collective takes")


def test_a_copy_that_takes_as_long_as_what_it_hides_gains_nothing() -> None:
    """The rows are gathered in 5 us, and XLA copies what the reduction of the iteration before reads in as many."""
    table, rows, places = "tensor<50304x4096xf32>", "tensor<512x4096xf32>", "tensor<512x1xi32>"
    before = m.module(f"%t: {table}, %p: {places}", rows, f"""
  %zero = stablehlo.constant dense<0.0> : {rows}
  %start = stablehlo.constant dense<0> : {N}
  %bound = stablehlo.constant dense<8> : {N}
  %step = stablehlo.constant dense<1> : {N}
  %o:2 = stablehlo.while(%i = %start, %c = %zero) : {N}, {rows}
  cond {{
    %more = stablehlo.compare LT, %i, %bound : ({N}, {N}) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %all = stablehlo.broadcast_in_dim %i, dims = [] : ({N}) -> {places}
    %at = stablehlo.add %p, %all : {places}
    %x = "stablehlo.gather"(%t, %at) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims =
      [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4096>}}> : ({table}, {places}) ->
      {rows}
    %y = stablehlo.multiply %x, %x : {rows}
    {m.reduce("%r", "%y", rows)}
    %h = stablehlo.tanh %r : {rows}
    %d = stablehlo.add %c, %h : {rows}
    %next = stablehlo.add %i, %step : {N}
    stablehlo.return %next, %d : {N}, {rows}
  }}""", f"return %o#1 : {rows}")
    after, changed, said = rotated(before, ignore_cost=False)
    assert not changed and after.text() == before.text()
    assert said[0].startswith("unprofitable: it stays as it is: an iteration, of which a collective takes"), said


def test_a_loop_within_a_loop() -> None:
    """The layers are rotated inside the micro-batches, whose values stay."""
    before = loop(f"""%k:3 = stablehlo.while(%j = %start, %d = %c, %sum = %zero) : {N}, {X}, {X}
    cond {{
      %go = stablehlo.compare LT, %j, %bound : ({N}, {N}) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %d1 = stablehlo.multiply %d, %x : {X}
      {m.reduce("%red", "%d1", X)}
      %sum1 = stablehlo.add %sum, %red : {X}
      %jj = stablehlo.add %j, %step : {N}
      stablehlo.return %jj, %d1, %sum1 : {N}, {X}, {X}
    }}
    %acc1 = stablehlo.add %acc, %k#2 : {X}""", returned="%k#1, %acc1")
    after, changed, _ = rotated(before)
    assert changed and after.text().count(OVERLAPPED) == 1 and check(before, after).equal


def test_a_loop_around_loops_only_when_asked() -> None:
    """A micro-batch is rotated around the reduction after its layers, with equal values."""
    before = loop(f"""%k:2 = stablehlo.while(%j = %start, %d = %c) : {N}, {X}
    cond {{
      %go = stablehlo.compare LT, %j, %bound : ({N}, {N}) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %d1 = stablehlo.multiply %d, %x : {X}
      %jj = stablehlo.add %j, %step : {N}
      stablehlo.return %jj, %d1 : {N}, {X}
    }}
    {m.reduce("%red", "%k#1", X)}{SUMMED}""", returned="%k#1, %acc1")
    assert not rotated(before)[1]
    after = before.clone()
    assert RotateCollectives(outer=True).run(after, PassContext(ignore_cost=True)) and not after.verify()
    assert check(before, after).equal


def test_comm_shift_leaves_it_there() -> None:
    after = rotated(loop(REDUCED))[0]
    text = after.text()
    assert not CommShift().run(after, PassContext()) and after.text() == text


PASS = "hlorewrite.passes.rotate_collectives.rotate_collectives"
EMIT = "hlorewrite.passes.rotate_collectives.emit"
CONDITIONS = [
    (PASS, "if trips is None:", "if False:", "an unknown trip count"),
    (PASS, "if trips < 2:", "if False:", "no iteration"),
    ("hlorewrite.passes.rotate_collectives.split", "pending += [maker.operands[position]] if", "pending += [] if",
     "a gather behind a barrier of what the iteration computes"),
    (EMIT, "        remap(inner, made)", "        pass", "a sum that a ring passes on"),
    (EMIT, "_given(end.operands[slot], made)", "end.operands[slot]", "two sums, one of which moves to another place"),
]


@pytest.mark.parametrize(("module", "old", "new", "what"), CONDITIONS, ids=[c[3] for c in CONDITIONS])
def test_without_a_condition_some_program_goes_wrong(module: str, old: str, new: str, what: str,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source(module, old, new, monkeypatch)
    assert went_wrong({**LEGAL, **REFUSED}[what], "rotate-collectives")


@pytest.mark.parametrize(("left", "changed"), [(32, True), (31, False), (None, True)])
def test_what_is_carried_is_taken_from_the_memory_budget(left: int | None, changed: bool) -> None:
    """XLA's copy of eight numbers of four bytes, which the loop carries anyway and the reduction still reads."""
    module, recorder = loop(REDUCED), Recorder(wants_missed=True)
    context = PassContext(listeners=(recorder,), ignore_cost=True, topology="h200:1x4", memory_left=left)
    assert RotateCollectives().run(module, context) == changed
    assert context.memory_taken == (32 if changed else 0)
    said = "take 32 bytes, but only 31 are left of the memory budget"
    assert any(said in remark.sentence for remark in recorder.remarks) != changed


# ---- random rings


def random_ring(seed: int) -> Module:
    """A loop that carries two to four values; its iterations compute, permute, and pass values on in any order."""
    rng = random.Random(seed)
    carried = [f"c{number}" for number in range(rng.randint(2, 4))]
    values, body = list(carried), ""
    for number in range(rng.randint(2, 7)):
        name, kind = f"v{number}", rng.choice(("sine", "multiply", "add", "permute"))
        if kind == "permute":
            body += sent(name, rng.choice(values))
        elif kind == "sine":
            body += f"%{name} = stablehlo.sine %{rng.choice(values)} : {X}\n"
        else:
            body += f"%{name} = stablehlo.{kind} %{rng.choice(values)}, %{rng.choice(values)} : {X}\n"
        values.append(name)
    starts = ", ".join(f"%{name} = %{rng.choice(('x', 'zero'))} : {X}" for name in carried)
    returned = ", ".join(f"%{rng.choice(values)}" for _ in carried)
    return loop(body, carried=starts, returned=returned, bound=rng.randint(2, 5))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_rings_keep_their_values(first: int) -> None:
    changed = 0
    for seed in range(first, first + 10):
        before = random_ring(seed)
        after, rotates, _ = rotated(before)
        changed += rotates
        assert not rotates or check(before, after).equal, seed
    assert changed
