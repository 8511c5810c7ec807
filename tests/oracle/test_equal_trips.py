"""Loops whose bound may differ between devices as far as is known, with values, and each condition of the proof.

``equal_trips`` concludes from a collective in each iteration that a loop runs equally often on a group.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from generators.condition_mutations import Mutation, check_condition

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

EQUAL = "hlorewrite.analysis.uniform_trip_count"
F, WIDE = "tensor<4xf32>", "tensor<4x8xf32>"
IDS = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids, "


def reduce(name: str, operand: str, rows: str, kind: str = F, ids: str = IDS) -> str:
    """One all-reduce as text."""
    count, size = rows.count("[") - 1, len(rows.split("]")[0].split(","))
    return (f'      {name} = "stablehlo.all_reduce"({operand}) <{{{ids}replica_groups = dense<{rows}> : '
            f"tensor<{count}x{size}xi64>}}> ({{\n      ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
            f"        %t = stablehlo.add %p, %q : tensor<f32>\n        stablehlo.return %t : tensor<f32>\n"
            f"      }}) : ({kind}) -> {kind}\n")


def counted(bound: str, body: str, carried: str = "%s", name: str = "%l", new: str = "%new", kind: str = F) -> str:
    """A loop from 0 to a bound that carries one value, ``%acc``."""
    tag = name[1:]
    return (f"      {name}:2 = stablehlo.while(%i_{tag} = %zero, %acc = {carried}) : tensor<i32>, {kind}\n"
            f"      cond {{\n"
            f"        %lt = stablehlo.compare LT, %i_{tag}, {bound} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"        stablehlo.return %lt : tensor<i1>\n      }} do {{\n{body}"
            f"        %next = stablehlo.add %i_{tag}, %one : tensor<i32>\n"
            f"        stablehlo.return %next, {new} : tensor<i32>, {kind}\n      }}\n")


def per_device(body: str, out: str, kind: str = F, partitions: int = 4, replicas: int = 1, functions: str = "") -> str:
    """A module in the form of XLA's tests: what each device runs, with plain arguments."""
    return (f"module attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : i32}} {{\n"
            f"  func.func public @main(%s: {F}, %n: tensor<i32>) -> {kind} {{\n"
            "      %id = stablehlo.partition_id : tensor<ui32>\n"
            "      %pid = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>\n"
            "      %zero = stablehlo.constant dense<0> : tensor<i32>\n"
            "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
            "      %mine = stablehlo.add %pid, %one : tensor<i32>\n"
            "      %three = stablehlo.constant dense<3> : tensor<i32>\n"
            "      %some = stablehlo.clamp %one, %n, %three : tensor<i32>\n"
            f"      %start = stablehlo.constant dense<0.0> : {F}\n{body}"
            f"      return {out} : {kind}\n  }}\n{functions}}}\n")


ADD = f"        %new = stablehlo.add %acc, %g : {F}\n"


def turn(tag: str = "l") -> str:
    """A number of its own for each iteration, so that no compiler takes a collective of it out of the loop."""
    return (f"        %turn = stablehlo.convert %i_{tag} : (tensor<i32>) -> tensor<f32>\n"
            f"        %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> {F}\n"
            f"        %own = stablehlo.multiply %s, %turns : {F}\n")


def agreed(rows: str) -> str:
    """A number of iterations that is equal within groups, and that nothing in the program says how it was computed."""
    count, size = rows.count("[") - 1, len(rows.split("]")[0].split(","))
    return (f'      %agreed = "stablehlo.all_reduce"(%some) <{{{IDS}replica_groups = dense<{rows}> : '
            f"tensor<{count}x{size}xi64>}}> ({{\n      ^bb0(%p: tensor<i32>, %q: tensor<i32>):\n"
            "        %t = stablehlo.maximum %p, %q : tensor<i32>\n        stablehlo.return %t : tensor<i32>\n"
            "      }) : (tensor<i32>) -> tensor<i32>\n")


ALL, PAIRS = "[[0, 1, 2, 3]]", "[[0, 1], [2, 3]]"


@pytest.mark.parametrize("rows", [ALL, PAIRS])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_a_bound_that_is_a_plain_argument(rows: str, trips: int) -> None:
    """The form of XLA's own tests: the reduction leaves the loop, and the values stay."""
    before = parse(per_device(counted("%n", turn() + reduce("%g", "%own", rows) + ADD, "%start"), "%l#1"))
    after = before.clone()
    assert run_passes(after, parse_pipeline("comm-shift"), PassContext())
    original = prepare(before, "main")
    inputs = [[np.arange(4, dtype=np.float32) * (device + 1), np.int32(trips)] for device in range(4)]
    assert compare(original.run(inputs), prepare(after, "main").run(inputs), "main", None).equal


@pytest.mark.parametrize("trips", [(1, 1, 3, 3), (2, 2, 0, 0)])
def test_groups_of_different_trip_counts(trips: tuple[int, ...]) -> None:
    """Each group has a count of its own."""
    before = parse(per_device(counted("%n", turn() + reduce("%g", "%own", PAIRS) + ADD, "%start"), "%l#1"))
    after = before.clone()
    assert run_passes(after, parse_pipeline("comm-shift"), PassContext())
    inputs = [[np.full(4, 10.0**device, np.float32), np.int32(count)] for device, count in enumerate(trips)]
    original = prepare(before, "main").run(inputs)
    assert not original.diverged
    assert compare(original, prepare(after, "main").run(inputs), "main", None).equal


def test_the_original_hangs_when_the_counts_differ() -> None:
    """What the proof rests on."""
    module = parse(per_device(counted("%n", reduce("%g", "%s", ALL) + ADD, "%start"), "%l#1"))
    inputs = [[np.ones(4, np.float32), np.int32(1 + device)] for device in range(4)]
    assert prepare(module, "main").run(inputs).diverged


SMALLER = f"      %out = stablehlo.slice %l#1 [0:4, 0:1] : ({WIDE}) -> tensor<4x1xf32>\n"


def through(rows: str, bound: str, inside: str, ids: str = IDS) -> str:
    """A wide sum that a loop doubles and that is sliced after it, so that it pays to reduce it there."""
    wide = f"      %w = stablehlo.broadcast_in_dim %s, dims = [0] : ({F}) -> {WIDE}\n"
    double = f"        %twice = stablehlo.add %acc, %acc : {WIDE}\n"
    add = f"        %new = stablehlo.add %twice, %z : {WIDE}\n"
    return wide + reduce("%g", "%w", rows, WIDE, ids) + counted(bound, inside + double + add, "%g", kind=WIDE) + SMALLER


def joined(ids: str, rows: str) -> str:
    """An all-reduce that the carried value reads, and that stays in the loop: next to nothing of its size is added."""
    return (turn() + reduce("%h", "%own", rows, ids=ids) + f"        %k = stablehlo.constant dense<1.0e-30> : {WIDE}\n"
            f"        %size = stablehlo.abs %h : {F}\n"
            f"        %b = stablehlo.broadcast_in_dim %size, dims = [0] : ({F}) -> {WIDE}\n"
            f"        %z = stablehlo.multiply %b, %k : {WIDE}\n")


CALLED = (f"  func.func private @f(%s: {F}, %n: tensor<i32>) -> {F} {{\n"
          "      %zero = stablehlo.constant dense<0> : tensor<i32>\n"
          "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
          f"      %start = stablehlo.constant dense<0.0> : {F}\n"
          + counted("%n", turn() + reduce("%g", "%own", ALL) + ADD, "%start") + f"      return %l#1 : {F}\n  }}\n")
CALLS = (f"      %a = func.call @f(%s, %some) : ({F}, tensor<i32>) -> {F}\n"
         "      %four = stablehlo.constant dense<4> : tensor<i32>\n"
         "      %rest = stablehlo.subtract %four, %some : tensor<i32>\n"
         f"      %b = func.call @f(%a, %rest) : ({F}, tensor<i32>) -> {F}\n")
ONCE = ('        %now = stablehlo.compare LT, %i_l, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>\n'
        f'        %z = "stablehlo.if"(%now) ({{\n{joined(IDS, ALL).replace("%z", "%zz")}'
        f"          stablehlo.return %zz : {WIDE}\n        }}, {{\n"
        f"          %none = stablehlo.constant dense<0.0> : {WIDE}\n          stablehlo.return %none : {WIDE}\n"
        f"        }}) : (tensor<i1>) -> {WIDE}\n")
INNER = counted("%some", turn("k") + reduce("%g", "%own", ALL) + ADD, "%outer", "%k").replace("%acc", "%inner").replace(
    "= %outer", "= %acc").replace("%next", "%step").replace("%lt", "%go")
COLUMN = "tensor<4x1xf32>"
MUTATIONS = {
    "groups lie within what the collectives join": Mutation(
        EQUAL, "    return all(len(row) == 1 or set(row) <= part.get(row[0], set()) for row in rows)",
        "    return bool(part)",
        whole=per_device(agreed(PAIRS) + through(ALL, "%agreed", joined(IDS, PAIRS)), "%out", COLUMN)),
    "the ids mean the same devices": Mutation(
        EQUAL, " and g.mode in modes}", "}", whole=per_device(
            agreed(PAIRS) + through("[[0, 1]]", "%agreed", joined(IDS, PAIRS), ""), "%out", COLUMN, partitions=2,
            replicas=2)),
    "the collective runs in every iteration": Mutation(
        EQUAL, "            parent = op.parent.operation\n",
        '            parent = next((a for a in ancestors(op) if a.name == "stablehlo.while"), op.parent.operation)\n',
        whole=per_device(through(ALL, "%some", ONCE), "%out", COLUMN)),
    "the loop is entered once": Mutation(
        EQUAL, "                entered_once(loop.op, self.view) and", "                True and",
        whole=per_device(counted("%three", INNER, "%start", new="%k#1"), "%l#1"), executed=False),
    "a function is called once": Mutation(
        EQUAL, " and not self._has_copy(loop.op)", "",
        whole=per_device(CALLS, "%b", functions=CALLED),
        executed=False),
    # The interpreter says about these that they never end, and XLA ends them.
    "every compiler executes the collective in each iteration": Mutation(
        EQUAL, " if self._dependence.survives(op, loop)]", "]",
        whole=per_device(counted("%some", reduce("%g", "%s", ALL) + ADD, "%start"), "%l#1"), executed=False),
    "the bound is not computed from the device's id": Mutation(
        "hlorewrite.analysis.uniform",
        "\n                             if not self._is_known_to_differ(predicate)}", "}",
        whole=per_device(counted("%mine", turn() + reduce("%g", "%own", ALL) + ADD, "%start"), "%l#1"), executed=False),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_condition_is_needed(name: str, make_region: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition nothing moves or the values stay; without it they do not."""
    check_condition(MUTATIONS[name], make_region, monkeypatch)
