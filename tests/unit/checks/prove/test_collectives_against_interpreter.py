"""The index definitions of collectives, which proofs rest on, are those of the reference interpreter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hlorewrite.checks.prove.solver import decide
from hlorewrite.checks.prove.tensors import (
    Cell,
    Chosen,
    DeviceGroups,
    DeviceTensor,
    Number,
    Pairs,
    Reduced,
    all_gather,
    all_reduce,
    all_to_all,
    collective_broadcast,
    collective_permute,
    device_sort,
    dynamic_slice,
    index_sort,
    reduce_scatter,
)
from hlorewrite.checks.reference.program import execute
from hlorewrite.ir.load import parse

z3 = pytest.importorskip("z3")

DEVICES, ROWS = 4, [[2, 0], [1, 3]]
SHAPE = (4, 6)
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GROUPS = f"replica_groups = dense<{ROWS}> : tensor<2x2xi64>, {CHANNEL}, use_global_device_ids"
PAIRS = [(0, 1), (1, 2), (2, 0)]
ADD = ("({^bb0(%p: tensor<i32>, %q: tensor<i32>): %s = stablehlo.add %p, %q : tensor<i32> "
       "stablehlo.return %s : tensor<i32>})")


def operands() -> list[np.ndarray]:
    """Elements that name their device and place."""
    count = int(np.prod(SHAPE))
    return [np.arange(count, dtype=np.int32).reshape(SHAPE) + 100 * (d + 1) for d in range(DEVICES)]


def run(op: str, region: str, attributes: str, result: tuple[int, ...], extra: str = "",
        more: str = "") -> list[np.ndarray]:
    kinds = ["tensor<" + "".join(f"{n}x" for n in shape) + "i32>" for shape in (SHAPE, result)]
    given, types = ("%x" + more, f"{kinds[0]}{', tensor<ui32>' * more.count('%')}")
    text = (f"module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"func.func @main(%x: {kinds[0]}) -> {kinds[1]} {{\n{extra}"
            f'%r = "stablehlo.{op}"({given}) <{{{attributes}}}> {region} : ({types}) -> {kinds[1]}\n'
            f"return %r : {kinds[1]}\n}}\n}}\n")
    return [np.asarray(row[0]) for row in execute(parse(text), [[x] for x in operands()])]


class ProcessGrid:
    """Four devices in two groups, as premises."""

    def __init__(self) -> None:
        self.devices = [z3.Const(f"device{d}", device_sort()) for d in range(DEVICES)]
        self.groups, self.pairs = DeviceGroups("g"), Pairs("p")
        self.element = z3.Function("x", device_sort(), index_sort(), z3.IntSort())
        sizes = self.index(SHAPE)
        self.x = DeviceTensor("x", sizes, lambda d, i: Cell(self.element(d, i)))
        grp, pos, mem = self.groups.grp, self.groups.pos, self.groups.mem
        self.premises: list[Any] = [self.groups.n == len(ROWS[0]), z3.Distinct(*self.devices)]
        for row in ROWS:
            for place, d in enumerate(row):
                self.premises += [pos(self.devices[d]) == place, grp(self.devices[d]) == grp(self.devices[row[0]]),
                                  mem(grp(self.devices[row[0]]), place) == self.devices[d]]
        self.premises.append(grp(self.devices[ROWS[0][0]]) != grp(self.devices[ROWS[1][0]]))
        receives = {target: source for source, target in PAIRS}
        for d, device in enumerate(self.devices):
            self.premises.append(self.pairs.receives(device) == (d in receives))
            if d in receives:
                self.premises.append(self.pairs.source(device) == self.devices[receives[d]])

    def index(self, place: tuple[int, ...]) -> Any:
        array = z3.K(z3.IntSort(), z3.IntVal(0))
        for dimension, coordinate in enumerate(place):
            array = z3.Store(array, dimension, coordinate)
        return array

    def named(self, number: int) -> Any:
        """The element that a number of ``operands`` names."""
        device, place = number // 100 - 1, np.unravel_index(number % 100, SHAPE)
        return self.element(self.devices[device], self.index(tuple(int(c) for c in place)))

    def places(self, outcome: list[np.ndarray]) -> Iterator[tuple[int, Any, Any, int]]:
        for d in range(DEVICES):
            for place in itertools.product(*(range(n) for n in outcome[d].shape)):
                yield d, self.devices[d], self.index(place), int(outcome[d][place])

    def proves(self, claim: Any) -> bool:
        return decide(claim, self.premises).status == "proved"


def moved(world: ProcessGrid, tensor: DeviceTensor, outcome: list[np.ndarray]) -> None:
    """Each element is the one that the interpreter took."""
    for _, device, index, number in world.places(outcome):
        node = tensor.at(device, index)
        if isinstance(node, Chosen):
            taken = world.proves(node.condition)
            assert taken or world.proves(z3.Not(node.condition))
            node = node.then if taken else node.otherwise
        if isinstance(node, Number):
            assert node.name == "zero" and number == 0
        else:
            assert isinstance(node, Cell) and world.proves(node.value == world.named(number))


def reduced(world: ProcessGrid, tensor: DeviceTensor, outcome: list[np.ndarray]) -> None:
    """Each element adds up what the members contribute."""
    values = operands()
    for d, device, index, number in world.places(outcome):
        node = tensor.at(device, index)
        assert isinstance(node, Reduced)
        total = 0
        for e, member in enumerate(world.devices):
            together = any({d, e} <= set(row) for row in ROWS)
            assert world.proves(node.groups.together(node.device, member) == together)
            if together:
                term = node.term(member)
                assert isinstance(term, Cell)
                total += next(int(v) for v in values[e].reshape(-1) if world.proves(term.value == world.named(int(v))))
        assert total == number


def test_all_gather() -> None:
    world = ProcessGrid()
    outcome = run("all_gather", "", f"all_gather_dim = 1 : i64, {GROUPS}", (4, 12))
    moved(world, all_gather(world.x, z3.IntVal(1), world.groups), outcome)


@pytest.mark.parametrize("split, concat, shape, size", [(0, 1, (2, 12), 2), (1, 0, (8, 3), 3), (1, 1, (4, 6), 3)])
def test_all_to_all(split: int, concat: int, shape: tuple[int, ...], size: int) -> None:
    world = ProcessGrid()
    outcome = run("all_to_all", "", f"split_dimension = {split} : i64, concat_dimension = {concat} : i64, "
                  f"split_count = 2 : i64, replica_groups = dense<{ROWS}> : tensor<2x2xi64>, {CHANNEL}", shape)
    tensor = all_to_all(world.x, z3.IntVal(split), z3.IntVal(concat), world.groups, z3.IntVal(size))
    moved(world, tensor, outcome)
    assert all(world.proves(tensor.sizes[k] == n) for k, n in enumerate(shape))


def test_collective_permute() -> None:
    world = ProcessGrid()
    pairs = [list(pair) for pair in PAIRS]
    outcome = run("collective_permute", "", f"source_target_pairs = dense<{pairs}> : tensor<3x2xi64>, {CHANNEL}", SHAPE)
    moved(world, collective_permute(world.x, world.pairs), outcome)


def test_collective_broadcast() -> None:
    world = ProcessGrid()
    outcome = run("collective_broadcast", "", f"replica_groups = dense<{ROWS}> : tensor<2x2xi64>, {CHANNEL}", SHAPE)
    moved(world, collective_broadcast(world.x, world.groups), outcome)


def test_dynamic_slice_moves_back_what_would_not_fit() -> None:
    world = ProcessGrid()
    start = "%id = stablehlo.partition_id : tensor<ui32>\n%two = stablehlo.constant dense<2> : tensor<ui32>\n" \
            "%at = stablehlo.multiply %id, %two : tensor<ui32>\n"
    outcome = run("dynamic_slice", "", "slice_sizes = array<i64: 3, 2>", (3, 2), start, ", %at, %at")
    starts = {d: z3.IntVal(2 * d) for d in range(DEVICES)}
    for d, device in enumerate(world.devices):
        tensor = dynamic_slice(world.x, lambda _, k, d=d: starts[d], world.index((3, 2)))
        for place in itertools.product(range(3), range(2)):
            node = tensor.at(device, world.index(place))
            assert isinstance(node, Cell)
            coordinates = tuple(int(c) for c in np.unravel_index(int(outcome[d][place]) % 100, SHAPE))
            read = node.value.arg(1)
            assert all(world.proves(read[k] == c) for k, c in enumerate(coordinates))


def test_reductions() -> None:
    world = ProcessGrid()
    moved_up = run("all_reduce", ADD, GROUPS, SHAPE)
    reduced(world, all_reduce(world.x, "sum", world.groups), [o[:1, :2] for o in moved_up])
    scattered = run("reduce_scatter", ADD, f"scatter_dimension = 1 : i64, {GROUPS}", (4, 3))
    tensor = reduce_scatter(world.x, "sum", z3.IntVal(1), world.groups, z3.IntVal(3))
    reduced(world, tensor, [o[:1] for o in scattered])
