"""Which results of a loop a reduction behind it reads, in time and space linear in the ops."""

from __future__ import annotations

import tracemalloc

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import nested_ops
from hlorewrite.passes.peel_last_micro_batch.gain import reductions_behind

_TYPE = "tensor<8xf32>"


def _module(results: int, behind: list[str]) -> Module:
    """A loop that carries some values, %l#1 and following, and ops behind it."""
    types = ", ".join(["tensor<i32>", *[_TYPE] * results])
    carried = ", ".join(["%n = %zero", *(f"%c{i} = %x" for i in range(results))])
    lines = ["module attributes {mhlo.num_partitions = 2 : i32} {", f"func.func public @main(%x: {_TYPE}) {{",
             "%zero = stablehlo.constant dense<0> : tensor<i32>",
             f"%l:{results + 1} = stablehlo.while({carried}) : {types}",
             "cond {", "%go = stablehlo.compare LT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>",
             "stablehlo.return %go : tensor<i1>", "} do {",
             f"stablehlo.return {', '.join(['%n', *(f'%c{i}' for i in range(results))])} : {types}", "}", *behind,
             "return", "}", "}"]
    return parse("\n".join(lines))


def _add(result: str, left: str, right: str) -> str:
    return f"{result} = stablehlo.add {left}, {right} : {_TYPE}"


def _reduce(result: str, operand: str) -> str:
    return (f'{result} = "stablehlo.all_reduce"({operand}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
            "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({\n"
            "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"
            f"stablehlo.return %s : tensor<f32>\n}}) : ({_TYPE}) -> {_TYPE}")


def _slots(module: Module) -> list[set[int]]:
    loop = next(op for op in nested_ops(module.operation) if op.name == "stablehlo.while")
    return [set(each.slots) for each in reductions_behind(loop)]


def test_a_reduction_reads_what_its_operand_is_made_from() -> None:
    """Directly, by sums of sums, by one value twice; a reduction of another one reads none of the loop's results."""
    module = _module(4, [
        _reduce("%r0", "%l#1"), _add("%p", "%l#2", "%l#3"), _add("%q", "%p", "%l#4"), _add("%t", "%q", "%p"),
        _add("%u", "%x", "%x"), _add("%v", "%l#3", "%u"), _reduce("%r1", "%t"), _reduce("%r2", "%v"),
        _reduce("%r3", "%r0")])
    assert sorted(map(sorted, _slots(module))) == [[], [1], [2, 3, 4], [3]]


def test_values_share_what_they_are_made_from() -> None:
    """Sums over thousands of results take space in proportion to them, not to their square."""
    assert _peak_of_sums(16_000) < 5 * _peak_of_sums(4_000)


def _peak_of_sums(count: int) -> int:
    """Bytes that reductions_behind needs for a sum over so many results."""
    sums = [_add("%s1", "%l#1", "%l#1"), *(_add(f"%s{i}", f"%s{i - 1}", f"%l#{i}") for i in range(2, count + 1))]
    module = _module(count, [*sums, _reduce("%r", f"%s{count}")])
    tracemalloc.start()
    try:
        assert _slots(module) == [set(range(1, count + 1))]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
