"""What natives promise to proofs (``hlorewrite/checks/prove/contracts.py``), on every case of four devices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.patterns.device_masks import kept_by_one
from hlorewrite.patterns.natives import composed_pairs, identity_permute, same_groups, same_shards
from hlorewrite.patterns.shards import own_shard, shard_pairs
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.match_failure import MatchFailure

DEVICES = 4
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
PAIRS_OF_ROWS = [[[0, 1], [2, 3]], [[1, 0], [2, 3]], [[0, 2], [3, 1]], [[3, 0], [1, 2]]]
MODULE = "module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{\n{}\n}}"
ADD = ("({^bb0(%p: tensor<i32>, %q: tensor<i32>): %s = stablehlo.add %p, %q : tensor<i32> "
       "stablehlo.return %s : tensor<i32>})")


def groups(rows: list[list[int]]) -> str:
    return f"replica_groups = dense<{rows}> : tensor<2x2xi64>, {CHANNEL}, use_global_device_ids"


def sliced(first: str, starts: tuple[int, ...]) -> str:
    """The program that slices a value of 8 x 3 elements in pieces of 4 x 3, where a table says for each device."""
    whole, piece = "tensor<8x3xi32>", "tensor<4x3xi32>"
    given = whole if "all_reduce" in first else piece
    return MODULE.format(f"""func.func @main(%x: {given}) -> {piece} {{
  %a = {first}
  %id = stablehlo.partition_id : tensor<ui32>
  %table = stablehlo.constant dense<{list(starts)}> : tensor<4xi32>
  %row = stablehlo.dynamic_slice %table, %id, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
  %at = stablehlo.reshape %row : (tensor<1xi32>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.dynamic_slice %a, %at, %zero, sizes = [4, 3] : ({whole}, tensor<i32>, tensor<i32>) -> {piece}
  return %r : {piece}
}}""")


def asked(native: Any, text: str, first: str, second: str) -> Any:
    view = View(parse(text))
    one, *more = view.ops(first)
    other = more[0] if first == second else view.ops(second)[-1]
    return native(RuleContext(view), one, other)


def cases() -> Iterator[tuple[list[list[int]], tuple[int, ...], dict[int, int]]]:
    """Groups, the start each device asks for, and the shard it gets: starts are moved into the value."""
    for rows in PAIRS_OF_ROWS:
        for starts in itertools.product((0, 4), repeat=DEVICES):
            yield rows, starts, {d: s // 4 for d, s in enumerate(starts)}
    yield PAIRS_OF_ROWS[0], (-3, 9, 0, 4), {0: 0, 1: 1, 2: 0, 3: 1}
    yield PAIRS_OF_ROWS[0], (0, 4, 2, 4), {}


def test_own_shard() -> None:
    """The member at place i reads shard i; refused exactly when some group does not read one shard each."""
    for rows, starts, shard in cases():
        first = (f'"stablehlo.all_reduce"(%x) <{{{groups(rows)}}}> {ADD} : (tensor<8x3xi32>) -> tensor<8x3xi32>')
        answer = asked(own_shard, sliced(first, starts), "stablehlo.all_reduce", "stablehlo.dynamic_slice")
        distinct = bool(shard) and all({shard[d] for d in row} == {0, 1} for row in rows)
        assert isinstance(answer, MatchFailure) != distinct, (rows, starts)
        if distinct:
            dimension, made = answer
            new = [[int(d) for d in row] for row in np.array(made)]
            assert dimension == 0 and sorted(map(sorted, new)) == sorted(map(sorted, rows))
            assert all(shard[d] == place for row in new for place, d in enumerate(row))


def test_shard_pairs() -> None:
    """Each device receives from the member whose shard it reads."""
    for rows, starts, shard in cases():
        first = f'"stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {groups(rows)}}}> : (tensor<4x3xi32>) -> ' \
                "tensor<8x3xi32>"
        answer = asked(shard_pairs, sliced(first, starts), "stablehlo.all_gather", "stablehlo.dynamic_slice")
        distinct = bool(shard) and all({shard[d] for d in row} == {0, 1} for row in rows)
        assert isinstance(answer, MatchFailure) != distinct, (rows, starts)
        if distinct:
            received = {int(target): int(source) for source, target in np.array(answer)}
            assert received == {d: row[shard[d]] for row in rows for d in row}


def permutes(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> str:
    lines = "".join(
        f'%{name} = "stablehlo.collective_permute"(%{operand}) <{{source_target_pairs = dense<{list(map(list, pairs))}>'
        f" : tensor<{len(pairs)}x2xi64>, {CHANNEL}}}> : (tensor<2xi32>) -> tensor<2xi32>\n"
        for name, operand, pairs in (("a", "x", first), ("b", "a", second)))
    return MODULE.format("func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {\n" + lines
                         + "return %b : tensor<2xi32>\n}")


def test_pairs() -> None:
    """A device receives what its source received, from there; nothing when that received nothing."""
    every = [[(0, 1)], [(0, 1), (1, 0)], [(0, 1), (1, 2), (2, 3), (3, 0)], [(2, 0), (3, 1)], [(d, d) for d in range(4)]]
    for first, second in itertools.product(every, repeat=2):
        text = permutes(first, second)
        op = "stablehlo.collective_permute"
        source = {target: sender for sender, target in first}
        expected = {target: source[middle] for middle, target in second if middle in source}
        answer = asked(composed_pairs, text, op, op)
        received = {} if isinstance(answer, MatchFailure) else {int(t): int(s) for s, t in np.array(answer)}
        assert received == expected
        view = View(parse(text))
        stays = identity_permute(RuleContext(view), view.ops(op)[0]) is True
        assert stays == (first == every[-1])


@pytest.mark.parametrize("native, alike", [(same_groups, lambda row: frozenset(row)), (same_shards, tuple)])
def test_same_groups(native: Any, alike: Any) -> None:
    for first, second in itertools.product(PAIRS_OF_ROWS, repeat=2):
        lines = "".join(f'%{name} = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {groups(rows)}}}> : '
                        "(tensor<4x3xi32>) -> tensor<8x3xi32>\n" for name, rows in (("a", first), ("b", second)))
        text = MODULE.format("func.func @main(%x: tensor<4x3xi32>) -> (tensor<8x3xi32>, tensor<8x3xi32>) {\n" + lines
                             + "return %a, %b : tensor<8x3xi32>, tensor<8x3xi32>\n}")
        expected = {alike(row) for row in first} == {alike(row) for row in second}
        assert (asked(native, text, "stablehlo.all_gather", "stablehlo.all_gather") is True) == expected


def test_kept_by_one() -> None:
    """It answers the side that is not zero, exactly when one member of each group takes it."""
    whole = "tensor<8x3xi32>"
    for rows, keeps, swapped in itertools.product(PAIRS_OF_ROWS, itertools.product((True, False), repeat=DEVICES),
                                                  (True, False)):
        sides = "%zero, %x" if swapped else "%x, %zero"
        table = str([here != swapped for here in keeps]).lower()
        text = MODULE.format(f"""func.func @main(%x: {whole}) -> {whole} {{
  %zero = stablehlo.constant dense<0> : {whole}
  %id = stablehlo.partition_id : tensor<ui32>
  %table = stablehlo.constant dense<{table}> : tensor<4xi1>
  %row = stablehlo.dynamic_slice %table, %id, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
  %own = stablehlo.reshape %row : (tensor<1xi1>) -> tensor<i1>
  %mask = stablehlo.broadcast_in_dim %own, dims = [] : (tensor<i1>) -> tensor<8x3xi1>
  %kept = stablehlo.select %mask, {sides} : tensor<8x3xi1>, {whole}
  %r = "stablehlo.all_reduce"(%kept) <{{{groups(rows)}}}> {ADD} : ({whole}) -> {whole}
  return %r : {whole}
}}""")
        view = View(parse(text))
        [choice], [sum_] = view.ops("stablehlo.select"), view.ops("stablehlo.all_reduce")
        answer = kept_by_one(RuleContext(view), choice, sum_)
        assert isinstance(answer, MatchFailure) == any(sum(keeps[d] for d in row) != 1 for row in rows)
        assert isinstance(answer, MatchFailure) or answer == choice.operands[2 if swapped else 1]
