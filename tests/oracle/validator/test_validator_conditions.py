"""Each condition of the validator is needed: take it away, and it calls a wrong rewriting proved.

A case is a program, a wrong rewriting of it, and the condition that keeps the validator from proving it. The interpreter
shows that the rewriting is wrong.
"""
# ruff: noqa: E501 (MLIR text and snippets of source)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.load import parse

V = "hlorewrite.checks.translation_validation."
F, B, C = "tensor<4xf32>", "tensor<4xbf16>", "tensor<2xf32>"
EQUAL_TRIPS = "hlorewrite.analysis.uniform_trip_count"
G = "hlorewrite.checks.value_graph."
SAME, LOOPS, GROUPS, LINEAR = f"{G}uniform", f"{V}program.loops", f"{G}groups", f"{V}program.linear"


@dataclass(frozen=True)
class WrongRewriting:
    """A program and a wrong rewriting of it.

    Attributes:
      module: where the condition stands.
      old: its source.
      new: the source without it.
      original: the region before.
      result: the region after.
      out: what both return.
      result_out: what the region after returns, when that is another value.
      mesh: sizes of the mesh axes.
      groups: the groups of ``AR``, when they are not all devices.
      executed: whether the interpreter can distinguish the two.
    """

    module: str
    old: str
    new: str
    original: str
    result: str
    out: str = "%f"
    result_out: str = ""
    mesh: tuple[int, ...] = (2,)
    groups: str | None = None
    executed: bool = True


def line(name: str, op: str, types: str = F) -> str:
    """One line of a region."""
    return f"      %{name} = stablehlo.{op} : {types}\n"


def reduced(name: str, operand: str, groups: str = "", kind: str = "add", types: str = F) -> str:
    """An all-reduce."""
    return f"      %{name} = AR<{kind}{', ' + groups if groups else ''}>(%{operand}) : {types}\n"


def scaled(factor: str) -> tuple[str, str]:
    """``AR(s) * k`` and ``AR(s * k)``, which is wrong when k differs between devices."""
    return (factor + reduced("g", "s") + line("f", "multiply %g, %k"),
            factor + line("h", "multiply %s, %k") + reduced("f", "h"))


def branches(name: str, predicate: str, first: str, second: str) -> str:
    """One of two values."""
    return (f'      %{name} = "stablehlo.if"({predicate}) ({{\n        stablehlo.return {first} : {F}\n      }}, {{\n'
            f"        stablehlo.return {second} : {F}\n      }}) : (tensor<i1>) -> {F}\n")


ODD_GROUPS, FOUR_PAIRS = "[[0, 4], [1, 6], [2, 5], [3, 7]]", "[[0, 1], [2, 3], [4, 5], [6, 7]]"
PAIRS, OTHERS = "[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]"
DOUBLING = f"      %l = LOOP %pid (%x = %START : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n      }} yield %y\n"
OWN_TRIPS = line("part", "slice %s [0:1]", f"({F}) -> tensor<1xf32>") + line("real", "reshape %part", "(tensor<1xf32>) -> tensor<f32>") + line(
    "trips", "convert %real", "(tensor<f32>) -> tensor<i32>")
ADDING = (f"      %l = LOOP %trips (%x = %START : {F}, %k = %zero : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n"
          + line("turn", "convert %i_l", "(tensor<i32>) -> tensor<f32>") + line("turns", "broadcast_in_dim %turn, dims = []", f"(tensor<f32>) -> {F}")
          + line("own", "multiply %s, %turns") + "MET" + line("wave", "cosine %m") + line("kk", "add %k, %wave") + "      } yield %y, %kk\n")
MET, MET_ALIKE = (f"      %m = AR<add>(%{operand}) : {F}\n" for operand in ("own", "s"))
MET_AT_FIRST = line("now", "compare LT, %i_l, %i1", "(tensor<i32>, tensor<i32>) -> tensor<i1>") + (
    f'      %m = "stablehlo.if"(%now) ({{\n{MET.replace("%m", "%mm")}        stablehlo.return %mm : {F}\n      }}, {{\n'
    f"        stablehlo.return %own : {F}\n      }}) : (tensor<i1>) -> {F}\n")


def left_together(met: str, trips: str = "%trips") -> tuple[str, str]:
    """A loop that doubles a sum and executes a collective; and the sum after it, which is wrong where trips differ."""
    loop = (OWN_TRIPS if trips == "%trips" else "") + ADDING.replace("MET", met).replace("%trips", trips)
    return (f"      %g = AR<add>(%s) : {F}\n" + loop.replace("START", "g") + line("f", "maximum %l#1, %l#2"),
            loop.replace("START", "s") + f"      %r = AR<add>(%l#1) : {F}\n" + line("f", "maximum %r, %l#2"))


GROWING = f"      %t = LOOP 2 (%x = %one : {F}) {{\n        %y = stablehlo.add %x, %s : {F}\n      }} yield %y\n"
VARYING_TRIPS = f"      %t = LOOP %pid (%x = %one : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n      }} yield %y\n"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids"
GATHER = (f'      %w = "stablehlo.all_gather"(%p) <{{all_gather_dim = 0 : i64, {CHANNEL}, replica_groups = dense<[[ROW]]> : '
          f"tensor<1x2xi64>}}> : ({C}) -> {F}\n")
SCATTER = (f'      %p = "stablehlo.reduce_scatter"(%s) <{{scatter_dimension = 0 : i64, {CHANNEL}, replica_groups = dense<[[0, 1]]> : '
           f"tensor<1x2xi64>}}> ({{\n      ^bb0(%u: tensor<f32>, %v: tensor<f32>):\n        %uv = stablehlo.add %u, %v : tensor<f32>\n"
           f"        stablehlo.return %uv : tensor<f32>\n      }}) : ({F}) -> {C}\n")
DIMS = "hlorewrite.ops.dims"
ONE, EIGHT = "tensor<1xf32>", "tensor<8xf32>"
REPEATED = line("out", "broadcast_in_dim %f, dims = [0]", f"({ONE}) -> {F}")
ZERO = line("nil", "constant dense<0.0>", "tensor<f32>")
TWELVE = line("t", "concatenate %s, %s, %a, dim = 0", f"({F}, {F}, {F}) -> tensor<12xf32>") + line(
    "m", "reshape %t", "(tensor<12xf32>) -> tensor<2x6xf32>")
JOINED = line("f", "concatenate %r, %r, dim = 0", f"({C}, {C}) -> {F}")
CORNER = line("bent", "tanh %f", "tensor<3x2xf32>") + line("corner", "slice %bent [0:2, 0:2]", "(tensor<3x2xf32>) -> tensor<2x2xf32>") + line(
    "out", "reshape %corner", f"(tensor<2x2xf32>) -> {F}")


def scatter(name: str, operand: str, whole: str, part: str, dimension: int = 0, rows: str = "[[0, 1]]") -> str:
    """A reduce-scatter of sums."""
    size = f"{rows.count('[') - 1}x2"
    return (SCATTER.replace("%p =", f"%{name} =").replace("(%s)", f"(%{operand})").replace(f"({F}) -> {C}", f"({whole}) -> {part}")
            .replace("dimension = 0", f"dimension = {dimension}").replace("dense<[[0, 1]]> : tensor<1x2xi64>", f"dense<{rows}> : tensor<{size}xi64>"))


NARROW = line("n16", "convert %s", f"({F}) -> {B}") + "      %r16 = AR<add>(%n16) : tensor<4xbf16>\n" + line("f", "convert %r16", f"({B}) -> {F}")
WIDE = line("n16", "convert %s", f"({F}) -> {B}") + line("w", "convert %n16", f"({B}) -> {F}") + reduced("f", "w")
BYTES = "tensor<4xi8>"
PICKS = f"{G}index_maps"
PERMUTED = (f'      %f = "stablehlo.collective_permute"(%OPERAND) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, '
            f"source_target_pairs = dense<[[0, 2], [1, 3], [2, 0], [3, 1]]> : tensor<4x2xi64>}}> : ({F}) -> {F}\n")
SHIFTED = PERMUTED.replace("[[0, 2], [1, 3], [2, 0], [3, 1]]", "[[1, 0], [2, 1]]").replace("4x2xi64", "2x2xi64")
OWN_ELEMENT = (line("e1", "dynamic_slice %OPERAND, %pid, sizes = [1]", f"({F}, tensor<i32>) -> tensor<1xf32>")
               + line("e", "broadcast_in_dim %e1, dims = [0]", f"(tensor<1xf32>) -> {F}"))
FROM_FIRST = (f'      %f = "stablehlo.collective_broadcast"(%e) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, '
              f"replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> : ({F}) -> {F}\n")

STACKS = f"{V}program.row_stacks"


def stacked_sums(at: str = "%i_l", read: str = "", trips: int = 4, rows: int = 1) -> tuple[str, str]:
    """A loop that adds rows of ``%s`` to rows of ``%a``, and the sum of ``%a`` and the stack of these rows."""
    row = f"tensor<{rows}xf32>"
    number = line("three", "constant dense<3>", "tensor<i32>")
    before = line("back", "subtract %three, %i_l", "tensor<i32>") + line("squared", "multiply %i_l, %i_l", "tensor<i32>") + line(
        "own", f"dynamic_slice %s, %i_l, sizes = [{rows}]", f"({F}, tensor<i32>) -> {row}")
    old = line("held", f"dynamic_slice %t, {read or at}, sizes = [{rows}]", f"({F}, tensor<i32>) -> {row}") + line(
        "grown", "add %held, %own", row)
    loops = [f"      %l = LOOP {trips} (%t = {start} : {F}) {{\n{before}{body}"
             + line("y", f"dynamic_update_slice %t, {new}, {at}", f"({F}, {row}, tensor<i32>) -> {F}") + "      } yield %y\n"
             for start, body, new in (("%a", old, "%grown"), ("%zero", "", "%own"))]
    return number + loops[0] + line("f", "add %l#1, %zero"), number + loops[1] + line("f", "add %a, %l#1")


SUMS_LOST = stacked_sums()[1].replace("add %a, %l#1", "add %zero, %l#1")


def beside(at: str = "%i_l", into: str = "%u", rows: int = 1, start: str = "%a", whole: str = F) -> tuple[str, str]:
    """A loop that writes two tensors, each row of one made of a row of the other; and what it is not."""
    row, part, (before, result) = "tensor<1xf32>", f"tensor<{rows}xf32>", stacked_sums()
    lines = (line("nils", "constant dense<0.0>", whole) + before[:before.index("      %l = LOOP")]
             + f"      %l = LOOP 4 (%t = %zero : {F}, %u = {start} : {whole}) {{\n" + line("back", "subtract %three, %i_l", "tensor<i32>")
             + line("own", "dynamic_slice %s, %i_l, sizes = [1]", f"({F}, tensor<i32>) -> {row}")
             + line("held", "dynamic_slice %u, %i_l, sizes = [1]", f"({whole}, tensor<i32>) -> {row}") + line("grown", "add %held, %own", row)
             + line("new", f"dynamic_slice %s, %i_l, sizes = [{rows}]", f"({F}, tensor<i32>) -> {part}")
             + line("y", "dynamic_update_slice %t, %grown, %i_l", f"({F}, {row}, tensor<i32>) -> {F}")
             + line("z", f"dynamic_update_slice {into}, %new, {at}", f"({whole}, {part}, tensor<i32>) -> {whole}") + "      } yield %y, %z\n")
    return lines + line("f", "add %l#1, %zero"), result


def maxima_of_rows() -> tuple[str, str]:
    """Sums of maxima of rows and zeros; and the same without the zeros."""
    row, low = "tensor<1xf32>", line("least", "subtract %s, %huge")
    loops = (line("huge", "constant dense<100.0>") + low + f"      %l = LOOP 4 (%t = %zero : {F}) {{\n"
             + line("own", "dynamic_slice %least, %i_l, sizes = [1]", f"({F}, tensor<i32>) -> {row}")
             + line("held", "dynamic_slice %t, %i_l, sizes = [1]", f"({F}, tensor<i32>) -> {row}") + reduced("most", "own", kind="maximum", types=row)
             + line("more", "maximum %held, %most", row) + reduced("sum", "more", types=row)
             + line("y", "dynamic_update_slice %t, %sum, %i_l", f"({F}, {row}, tensor<i32>) -> {F}") + "      } yield %y\n" + line("f", "add %l#1, %zero"))
    return loops, loops.replace(line("more", "maximum %held, %most", row), "").replace("%more", "%most")


CASES: dict[str, WrongRewriting] = {
    # ---- what is the same on all members
    "a part of a sharded value differs": WrongRewriting(
        SAME, "            if places is None or not members.alike(places):  # type: ignore[arg-type]", "            if False:",
        *scaled("      %k = stablehlo.add %s, %s : tensor<4xf32>\n")),
    "numbers made from the device's id differ": WrongRewriting(
        SAME, "            return () if numbers is not None and members.alike([row.tobytes() for row in numbers]) else None",
        "            return ()",
        *scaled(line("cid", "convert %id", "(tensor<ui32>) -> tensor<f32>") + line("k", "broadcast_in_dim %cid, dims = []", f"(tensor<f32>) -> {F}"))),
    "members meet as many of the same in other groups": WrongRewriting(
        SAME, "                if not members.aligned(reduction.members):", "                if False:",
        reduced("k", "c", ODD_GROUPS) + reduced("g", "s", FOUR_PAIRS) + line("f", "multiply %g, %k"),
        reduced("k", "c", ODD_GROUPS) + line("h", "multiply %s, %k") + reduced("f", "h", FOUR_PAIRS), mesh=(4, 2)),
    "only members of wider groups get the same sum": WrongRewriting(
        SAME, "                if members.within(reduction.members):", "                if True:",
        reduced("k", "s", OTHERS, "maximum") + reduced("g", "s", PAIRS) + line("f", "multiply %g, %k"),
        reduced("k", "s", OTHERS, "maximum") + line("h", "multiply %s, %k") + reduced("f", "h", PAIRS), mesh=(2, 2)),
    "what a loop carries is what it becomes": WrongRewriting(
        LOOPS, "             if not state.same.same(state.graph.yields[node], members)]", "             if False]",
        f"      %l = LOOP 2 (%x = %one, %acc = %zero : {F}) {{\n".replace("%x = %one,", f"%x = %one : {F},") + f"        %g = AR<add>(%s) : {F}\n        %h = stablehlo.multiply %g, %x : {F}\n"
        f"        %y = stablehlo.add %x, %s : {F}\n        %new = stablehlo.add %acc, %h : {F}\n      }} yield %y, %new\n",
        f"      %l = LOOP 2 (%x = %one, %acc = %zero : {F}) {{\n".replace("%x = %one,", f"%x = %one : {F},") + f"        %h = stablehlo.multiply %s, %x : {F}\n"
        f"        %y = stablehlo.add %x, %s : {F}\n        %new = stablehlo.add %acc, %h : {F}\n      }} yield %y, %new\n" + reduced("f", "l#2"), "%l#2", "%f"),
    "what a loop becomes is looked at": WrongRewriting(
        SAME, "            return (*self.graph.args[node], self.graph.yields[node])", "            return self.graph.args[node]",
        *scaled(GROWING + line("k", "add %t#1, %zero"))),
    "what a loop starts from is looked at": WrongRewriting(
        SAME, "            return (*self.graph.args[node], self.graph.yields[node])", "            return (self.graph.yields[node],)",
        *scaled(f"      %t = LOOP 2 (%x = %s : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n      }} yield %y\n" + line("k", "add %t#1, %zero"))),
    "how often a loop runs decides what it leaves": WrongRewriting(
        SAME, "        return args\n\n    def _stream", "        return args[:1] if sort == 'exit' else args\n\n    def _stream",
        *scaled(VARYING_TRIPS + line("k", "add %t#1, %zero"))),
    "a custom call may differ": WrongRewriting(
        SAME, ' or str(sort).startswith(_MAY_DIFFER):', ":",
        *scaled(f"      %k = stablehlo.custom_call @mystery(%a) : ({F}) -> {F}\n"), executed=False),
    # ---- loops and branches
    "a reduction waits through a loop that members leave together": WrongRewriting(
        LOOPS, "        if not all(state.same.same(done.predicate, reduction.members) for reduction in key):", "        if False:",
        reduced("g", "s") + DOUBLING.replace("START", "g"), DOUBLING.replace("START", "s") + reduced("f", "l#1"), "%l#1", "%f"),
    "a collective in a branch of a loop does not keep members together": WrongRewriting(
        EQUAL_TRIPS, "            parent = op.parent.operation\n",
        '            parent = next((a for a in ancestors(op) if a.name == "stablehlo.while"), op.parent.operation)\n',
        *left_together(MET_AT_FIRST), executed=False),
    "a collective that does not change in the loop does not keep members together": WrongRewriting(
        EQUAL_TRIPS, " if self._dependence.survives(op, loop)]", "]",
        *left_together(MET_ALIKE), executed=False),
    "a loop whose bound is computed from the device's id is not left together": WrongRewriting(
        LOOPS, "\n               if not state.same.known_to_differ(predicate, members, following)]", "]",
        *left_together(MET, "%pid"), executed=False),
    "a reduction waits through branches that members take alike": WrongRewriting(
        f"{V}program.control", "    if len(kinds) == 1 and all(state.same.same(predicate, each) for each in members):", "    if len(kinds) == 1:",
        reduced("g", "s") + branches("f", "%first", "%g", "%zero"), branches("h", "%first", "%s", "%zero") + reduced("f", "h")),
    "what stays in a loop is yielded as it came": WrongRewriting(
        LOOPS, "        shape.streams |= {(slot, key) for key in (*entered, *yielded) if entered.get(key) != yielded.get(key)}", "        pass",
        f"      %l = LOOP 3 (%acc = %a : {F}) {{\n        %y = stablehlo.add %acc, %s : {F}\n      }} yield %y\n", "", "%l#1", "%a"),
    # ---- reductions
    "a sum is not taken in a narrower type": WrongRewriting(
        LINEAR, '    if kind not in ("sum", "product") or not is_float(element):', "    if True:", WIDE, NARROW, executed=False),
    "only sums of the original are taken in wider types": WrongRewriting(
        LINEAR, "    if not state.strategy.widen or not state.original:", "    if not state.strategy.widen:", WIDE, NARROW, executed=False),
    "no process is counted twice": WrongRewriting(
        GROUPS, '            if len(set(met)) != len(met) and outer.kind in ("sum", "product"):', "            if False:",
        reduced("g", "s") + reduced("f", "g", PAIRS), reduced("f", "s"), mesh=(2, 2)),
    "only one member holds what is summed": WrongRewriting(
        f"{G}communication_rules", "        if len(holders) != 1:", "        if not holders:",
        f'      %q = "stablehlo.collective_permute"(%s) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[0, 1], [1, 0], [2, 2]]> : tensor<3x2xi64>}}> : ({F}) -> {F}\n' + reduced("f", "q", PAIRS),
        f'      %f = "stablehlo.collective_broadcast"(%s) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[1, 0], [2, 3]]> : tensor<2x2xi64>}}> : ({F}) -> {F}\n', mesh=(2, 2)),
    "a maximum of equal values is one of them": WrongRewriting(
        f"{V}program.collectives", "        return node if state.same.same(node, members) else None\n    if not state.strategy.fold", "        return node\n    if not state.strategy.fold",
        reduced("f", "s", kind="maximum"), line("f", "add %s, %zero")),
    "a sum of equal values is a multiple": WrongRewriting(
        f"{V}program.collectives", ' or not state.same.same(node, members):', ":",
        reduced("f", "s"), line("two", "constant dense<2.0>") + line("f", "multiply %s, %two")),
    "shards come back in the order of members": WrongRewriting(
        f"{G}communication_rules", " and _own_shard(graph, tables, rows, along, node):", ":",
        SCATTER + GATHER.replace("ROW", "1, 0"), reduced("w", "s"), "%w"),
    # ---- scattered sums that move
    "tensors are put together along another dimension": WrongRewriting(
        DIMS, '    if integer(op, "dimension") == dimension:', "    if False:",
        SCATTER + line("f", "concatenate %p, %p, dim = 0", f"({C}, {C}) -> {F}"),
        line("w", "concatenate %s, %s, dim = 0", f"({F}, {F}) -> {EIGHT}") + scatter("f", "w", EIGHT, F)),
    "a slice takes what is divided whole": WrongRewriting(
        DIMS, "    if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:", "    if position:",
        SCATTER + line("f", "slice %p [0:1]", f"({C}) -> {ONE}") + REPEATED,
        line("w", "slice %s [0:2]", f"({F}) -> {C}") + scatter("f", "w", C, ONE) + REPEATED, "%out"),
    "a pad leaves what is divided alone": WrongRewriting(
        DIMS, "    if position or any(ints(op, name)[dimension] for name in PADDING):", "    if position:",
        ZERO + SCATTER + line("f", "pad %p, %nil, low = [2], high = [-1], interior = [1]", f"({C}, tensor<f32>) -> {F}"),
        ZERO + line("w", "pad %s, %nil, low = [2], high = [-1], interior = [1]", f"({F}, tensor<f32>) -> {EIGHT}") + scatter("f", "w", EIGHT, F)),
    "an update covers what is divided": WrongRewriting(
        DIMS, "    if (position or 0) > 1 or shape_of(op.operands[0])[dimension] != shape_of(op.operands[1])[dimension]:", "    if (position or 0) > 1:",
        SCATTER + line("k", "constant dense<0>", "tensor<i32>") + line("f", "dynamic_update_slice %zero, %p, %k", f"({F}, {C}, tensor<i32>) -> {F}"),
        line("k", "constant dense<0>", "tensor<i32>") + line("z8", "constant dense<0.0>", EIGHT)
        + line("w", "dynamic_update_slice %z8, %s, %k", f"({EIGHT}, {F}, tensor<i32>) -> {EIGHT}") + scatter("f", "w", EIGHT, F)),
    "a reshape keeps what is divided": WrongRewriting(
        DIMS, "        if same and math.prod(target[:place]) == before:", "        if same:",
        TWELVE + scatter("p", "m", "tensor<2x6xf32>", "tensor<2x3xf32>", 1) + line("f", "reshape %p", "(tensor<2x3xf32>) -> tensor<3x2xf32>") + CORNER,
        TWELVE + line("w", "reshape %m", "(tensor<2x6xf32>) -> tensor<6x2xf32>") + scatter("f", "w", "tensor<6x2xf32>", "tensor<3x2xf32>")
        + CORNER, "%out"),
    "all that meet after a scatter hold the same part": WrongRewriting(
        GROUPS, "        if inner.own is not None and not outer.members.alike(inner.own.places):", "        if False:",
        scatter("p", "s", F, C, rows=PAIRS) + reduced("r", "p", "[[0, 3], [1, 2]]", types=C) + JOINED,
        scatter("p", "s", F, C, rows=PAIRS) + reduced("r", "p", OTHERS, types=C) + JOINED, mesh=(2, 2)),
    # ---- stacks of rows
    "each row is written once": WrongRewriting(
        STACKS, "    return sorted(_numbers(state, graph.args[update][2 + along], predicate)) == [*range(whole[0][along])]",
        "    return True", *stacked_sums("%squared")),
    "all rows are written": WrongRewriting(
        STACKS, "== [*range(whole[0][along])]", "!= []", line("t0", "add %s, %a") + stacked_sums(trips=3)[1].replace("%zero :", "%t0 :"),
        line("t0", "add %s, %a") + stacked_sums(trips=3)[1]),
    "a row is read where it is written": WrongRewriting(
        STACKS, "    if index != here or update is None", "    if update is None", *stacked_sums(read="%back")),
    "rows of a tensor that starts as zeros are zeros": WrongRewriting(
        STACKS, 'held is not None and graph.is_identity(graph.args[held][0], "sum")', "held is not None", stacked_sums()[0], SUMS_LOST),
    "two tensors are written at the same row": WrongRewriting(STACKS, " and there == here", "", *beside("%back")),
    "rows of two tensors are as large": WrongRewriting(STACKS, " and graph.types[written] == graph.types[row]", "", *beside(rows=2)),
    "two tensors have as many rows": WrongRewriting(
        STACKS, "    if graph.types[held] != graph.types[stream]:", "    if False:", beside(start="%nils", whole="tensor<3xf32>")[0], SUMS_LOST),
    "the other tensor is written into itself": WrongRewriting(STACKS, "before == held and ", "", *beside(into="%s")),
    "rows that are summed are followed, not maxima": WrongRewriting(
        STACKS, 'label[:2] == ("reduced", "sum")', 'label[0] == "reduced"', *maxima_of_rows()),
    "rows do not overlap": WrongRewriting(STACKS, " or part[0][differing[0]] != 1:", ":", *stacked_sums(rows=2)),
    # ---- comparison
    "all members reach a collective": WrongRewriting(
        f"{V}validate", "        if not doubtful:", "        if True:",
        reduced("g", "s") + branches("f", "%first", "%g", "%g"),
        f'      %f = "stablehlo.if"(%first) ({{\n        %t = AR<add>(%s) : {F}\n        stablehlo.return %t : {F}\n      }}, {{\n'
        f"        %t = AR<add>(%s) : {F}\n        stablehlo.return %t : {F}\n      }}) : (tensor<i1>) -> {F}\n"),
    "loops of the result end": WrongRewriting(
        f"{V}validate", "        if tuple((what, colors[node]) for what, node in path) not in ending:", "        if False:",
        line("f", "add %s, %a"), line("f", "add %s, %a") + f"      %l = LOOP %n (%x = %s : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n      }} yield %y\n", executed=False),
    "effects keep their order": WrongRewriting(
        f"{V}validate", "_entry(program.view, name)), program.effects]", "_entry(program.view, name)), 0]",
        f"      stablehlo.custom_call @first(%s) {{has_side_effect = true}} : ({F}) -> ()\n      stablehlo.custom_call @second(%s) {{has_side_effect = true}} : ({F}) -> ()\n",
        f"      stablehlo.custom_call @second(%s) {{has_side_effect = true}} : ({F}) -> ()\n      stablehlo.custom_call @first(%s) {{has_side_effect = true}} : ({F}) -> ()\n", "%s", executed=False),
    # ---- elements that move
    "sums of other groups are other sums": WrongRewriting(
        PICKS, "                    same &= row[holder] == row[own]", "                    pass",
        reduced("g", "s", PAIRS) + PERMUTED.replace("OPERAND", "g"), reduced("f", "s", PAIRS), mesh=(2, 2)),
    "members move their elements alike": WrongRewriting(
        PICKS, "        if not all(members.alike(rows) for members in groups):", "        if False:",
        OWN_ELEMENT.replace("OPERAND", "s") + reduced("f", "e"), reduced("g", "s") + OWN_ELEMENT.replace("OPERAND", "g"), "%f", "%e"),
    "each process moves its own elements": WrongRewriting(
        PICKS, "            elif (here & ((place < 0) | (place >= count))).any():", "            elif False:",
        SHIFTED.replace("OPERAND", "s").replace("%f", "%h") + reduced("f", "h", PAIRS),
        reduced("h", "s", PAIRS) + SHIFTED.replace("OPERAND", "h"), mesh=(2, 2)),
    "one member holds an element": WrongRewriting(
        PICKS, "            if (present.sum(axis=0) > 1).any():", "            if False:",
        OWN_ELEMENT.replace("OPERAND", "s") + reduced("f", "e"), OWN_ELEMENT.replace("OPERAND", "s") + FROM_FIRST, "%f"),
    # ---- equations
    "zero times a float is left alone": WrongRewriting(
        f"{G}normalize", '    if short == "multiply" and (known is None or is_float(known[1])):', "    if False:",
        line("f", "add %zero, %zero"), line("inf", "constant dense<0x7F800000>") + line("f", "multiply %zero, %inf")),
}


@pytest.mark.parametrize("name", CASES)
def test_condition_is_needed(name: str, make_region: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition the wrong rewriting is unknown; without it, it is called proved."""
    case = CASES[name]
    before = parse(make_region(case.original, case.out, mesh=case.mesh, groups=case.groups))
    after = parse(make_region(case.result, case.result_out or case.out, mesh=case.mesh, groups=case.groups))
    if case.executed:
        try:
            assert not all(check(before, after, seed=seed).equal for seed in (0, 1))
        except CannotExecute as error:
            pytest.fail(str(error))
    assert isinstance(validate(before, after), Unknown)
    replace_source(case.module, case.old, case.new, monkeypatch)
    assert isinstance(validate(before, after), Proved)


@pytest.mark.parametrize("old, new, wrong", [
    ("        if self.commutes[place]:\n            colors.sort()", "        colors.sort()", "subtract %s, %acc"),
    ("moving.add(stream, (graph.args[stream][0], graph.yields[stream]))", "moving.add(stream, graph.args[stream])",
     "multiply %acc, %s"),
])
def test_wrong_partition_is_noticed(old: str, new: str, wrong: str, make_region: Callable[..., str],
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in how classes are found is noticed by the check of what was found."""
    loop = f"      %l = LOOP 3 (%acc = %a : {F}) {{\n        %y = stablehlo.LINE : {F}\n      }} yield %y\n"
    before, after = (parse(make_region(loop.replace("LINE", each), "%l#1")) for each in ("subtract %acc, %s", wrong))
    assert isinstance(validate(before, after), Unknown)
    replace_source(f"{V}congruence", old, new, monkeypatch)
    assert "does not pass its check" in str(validate(before, after))


IN_ONE_ITERATION = """
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %first = stablehlo.compare EQ, %i, %i0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      OUTSIDE
      %new = "stablehlo.if"(%first) ({
        INSIDE
        stablehlo.return %g : tensor<4xf32>
      }, {
        stablehlo.return %acc : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
    }
    return %l#1 : tensor<4xf32>
  }
}"""
SUM_OF_X = ('%g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, '
            "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({\n"
            "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"
            "stablehlo.return %s : tensor<f32>\n}) : (tensor<4xf32>) -> tensor<4xf32>")


def test_a_collective_of_one_iteration_is_not_one_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that meet in the first iteration may leave the loop apart: one in each iteration would hang."""
    before = parse(IN_ONE_ITERATION.replace("OUTSIDE", "").replace("INSIDE", SUM_OF_X))
    after = parse(IN_ONE_ITERATION.replace("INSIDE", "").replace("OUTSIDE", SUM_OF_X))
    assert not check(before, after).equal
    assert "may reach a stablehlo.all_reduce that others skip" in str(validate(before, after))
    replace_source(f"{V}validate", "len(held) >= doubtful and held == path[:len(held)]",
                   "held[:doubtful] == path[:doubtful]", monkeypatch)
    assert isinstance(validate(before, after), Proved)


@pytest.mark.parametrize("at", ["%i_l", "%back"])
def test_sums_that_grow_row_by_row(at: str, make_region: Callable[..., str]) -> None:
    """As comm-shift writes what a layer loop adds to the sums of earlier micro-batches."""
    before, after = (parse(make_region(each, "%f")) for each in stacked_sums(at))
    assert isinstance(validate(before, after), Proved) and check(before, after).equal
