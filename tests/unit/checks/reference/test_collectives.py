"""Every collective against what the StableHLO specification says, written out in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference import execute, prepare
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.load import parse

ADD = """({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
  })"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GLOBAL = f"{CHANNEL}, use_global_device_ids"


def program(op: str, attributes: str, operand: str, result: str, region: str = "", module: str = "") -> str:
    """A per-device module of one collective."""
    return (f"module {module} {{ func.func @main(%x: {operand}) -> {result} {{\n"
            f'  %y = "stablehlo.{op}"(%x) <{{{attributes}}}> {region} : ({operand}) -> {result}\n'
            f"  return %y : {result}\n}} }}")


def inputs(shape: tuple[int, ...], devices: int) -> list[np.ndarray]:
    """Different small integers as floats on each device, so that sums are exact."""
    return [np.asarray(np.random.default_rng(d).integers(-9, 9, shape), np.float32) for d in range(devices)]


def run(text: str, values: list[np.ndarray]) -> list[np.ndarray]:
    """The single result on each device."""
    return [row[0] for row in execute(parse(text), [[v] for v in values])]


def groups(text: str, shape: str) -> str:
    """A ``replica_groups`` attribute."""
    return f"replica_groups = dense<{text}> : tensor<{shape}xi64>"


def test_all_reduce_over_groups_in_any_order() -> None:
    """Each device gets the sum of its group."""
    x = inputs((3,), 4)
    y = run(program("all_reduce", f"{GLOBAL}, {groups('[[2, 0], [1, 3]]', '2x2')}", "tensor<3xf32>", "tensor<3xf32>",
                    ADD), x)
    for device, members in ((0, (0, 2)), (2, (0, 2)), (1, (1, 3)), (3, (1, 3))):
        np.testing.assert_array_equal(y[device], sum(x[m] for m in members))


@pytest.mark.parametrize("devices", [1, 2, 3, 8, 16])
def test_more_devices_than_cores(devices: int) -> None:
    """Nothing waits for a thread."""
    x = inputs((2,), devices)
    ids = str(list(range(devices)))
    y = run(program("all_reduce", f"{GLOBAL}, {groups(f'[{ids}]', f'1x{devices}')}", "tensor<2xf32>", "tensor<2xf32>",
                    ADD), x)
    for value in y:
        np.testing.assert_array_equal(value, sum(x))


def test_uneven_groups() -> None:
    """Padded with -1."""
    x = inputs((2,), 3)
    y = run(program("all_reduce", f"{GLOBAL}, {groups('[[0, 2], [1, -1]]', '2x2')}", "tensor<2xf32>", "tensor<2xf32>",
                    ADD), x)
    np.testing.assert_array_equal(y[0], x[0] + x[2])
    np.testing.assert_array_equal(y[1], x[1])


@pytest.mark.parametrize(("attributes", "members"), [
    # two replicas of two partitions; process = 2 * replica + partition
    (groups("[[0, 1]]", "1x2"), {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}),                    # cross_replica
    (f"{CHANNEL}, {groups('[[0], [1]]', '2x1')}", {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}),   # and partition
    (f"{CHANNEL}, {groups('[[0, 1]]', '1x2')}", dict.fromkeys(range(4), (0, 1, 2, 3))),
    (f"{GLOBAL}, {groups('[[0, 3], [1, 2]]', '2x2')}", {0: (0, 3), 3: (0, 3), 1: (1, 2), 2: (1, 2)}),  # flattened
    ("replica_groups = dense<> : tensor<0x0xi64>", {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}),
])
def test_ways_of_grouping(attributes: str, members: dict[int, tuple[int, ...]]) -> None:
    """The four modes of the specification."""
    x = inputs((2,), 4)
    module = "attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32}"
    y = run(program("all_reduce", attributes, "tensor<2xf32>", "tensor<2xf32>", ADD, module), x)
    for device, group in members.items():
        np.testing.assert_array_equal(y[device], sum(x[m] for m in group))


@pytest.mark.parametrize(("op", "function"), [("maximum", np.maximum), ("minimum", np.minimum),
                                              ("multiply", np.multiply)])
def test_other_reducers(op: str, function: np.ufunc) -> None:
    """Applied to whole tensors."""
    x = inputs((4,), 3)
    y = run(program("all_reduce", f"{GLOBAL}, {groups('[[0, 1, 2]]', '1x3')}", "tensor<4xf32>", "tensor<4xf32>",
                    ADD.replace("add", op)), x)
    np.testing.assert_array_equal(y[0], function(function(x[0], x[1]), x[2]))


def test_a_reducer_of_several_ops() -> None:
    """In the order of the group: ((x0 + x1)·... is not what a sum would give."""
    x = inputs((4,), 3)
    region = ADD.replace("stablehlo.return %s", "%t = stablehlo.add %s, %s : tensor<f32>\n stablehlo.return %t")
    y = run(program("all_reduce", f"{GLOBAL}, {groups('[[2, 0, 1]]', '1x3')}", "tensor<4xf32>", "tensor<4xf32>",
                    region), x)
    np.testing.assert_array_equal(y[1], 2 * (2 * (x[2] + x[0]) + x[1]))


def test_all_gather() -> None:
    """In the order of the group, along a dimension."""
    x = inputs((2, 3), 4)
    y = run(program("all_gather", f"{GLOBAL}, all_gather_dim = 1 : i64, {groups('[[1, 0], [2, 3]]', '2x2')}",
                    "tensor<2x3xf32>", "tensor<2x6xf32>"), x)
    np.testing.assert_array_equal(y[0], np.concatenate([x[1], x[0]], 1))
    np.testing.assert_array_equal(y[3], np.concatenate([x[2], x[3]], 1))


def test_reduce_scatter() -> None:
    """Each gets the part of its place in the group."""
    x = inputs((2, 4), 4)
    y = run(program("reduce_scatter", f"{GLOBAL}, scatter_dimension = 1 : i64, {groups('[[1, 0], [2, 3]]', '2x2')}",
                    "tensor<2x4xf32>", "tensor<2x2xf32>", ADD), x)
    total = x[0] + x[1]
    np.testing.assert_array_equal(y[1], total[:, :2])
    np.testing.assert_array_equal(y[0], total[:, 2:])
    np.testing.assert_array_equal(y[3], (x[2] + x[3])[:, 2:])


def test_all_to_all() -> None:
    """Split along one dimension, concatenated along another."""
    x = inputs((4, 2), 2)
    y = run(program("all_to_all", f"{CHANNEL}, split_dimension = 0 : i64, concat_dimension = 1 : i64, "
                    f"split_count = 2 : i64, {groups('[[1, 0]]', '1x2')}", "tensor<4x2xf32>", "tensor<2x4xf32>"), x)
    np.testing.assert_array_equal(y[1], np.concatenate([x[1][:2], x[0][:2]], 1))
    np.testing.assert_array_equal(y[0], np.concatenate([x[1][2:], x[0][2:]], 1))


def test_collective_permute() -> None:
    """Who receives nothing gets zeros."""
    x = inputs((2,), 3)
    y = run(program("collective_permute", f"{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>",
                    "tensor<2xf32>", "tensor<2xf32>"), x)
    np.testing.assert_array_equal(y, [0 * x[0], x[0], x[1]])


def test_collective_broadcast() -> None:
    """From the first of the group; who is in no group gets zeros."""
    x = inputs((2,), 4)
    module = "attributes {mhlo.num_partitions = 4 : i32}"
    y = run(program("collective_broadcast", f"{CHANNEL}, {groups('[[2, 0]]', '1x2')}", "tensor<2xf32>",
                    "tensor<2xf32>", module=module), x)
    np.testing.assert_array_equal(y, [x[2], 0 * x[0], x[2], 0 * x[0]])


def test_ids() -> None:
    """Process = replica · partitions + partition."""
    text = """module attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 3 : i32} {
      func.func @main() -> (tensor<ui32>, tensor<ui32>) {
        %0 = stablehlo.replica_id : tensor<ui32>
        %1 = stablehlo.partition_id : tensor<ui32>
        return %0, %1 : tensor<ui32>, tensor<ui32>
      } }"""
    rows = execute(parse(text), [[]] * 6)
    assert [(int(r), int(p)) for r, p in rows] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(("attributes", "what"), [
    (f"{GLOBAL}, {groups('[[0, 1, 2, 3]]', '1x4')}", "names device 3, and the program runs on 3"),
    (f"{GLOBAL}, {groups('[[0, 1]]', '1x2')}", "device 2 is in no group"),
])
def test_groups_that_mean_nothing(attributes: str, what: str) -> None:
    """Refused with the reason."""
    text = program("all_reduce", attributes, "tensor<2xf32>", "tensor<2xf32>", ADD,
                   "attributes {mhlo.num_partitions = 3 : i32}")
    with pytest.raises(CannotExecute, match=what):
        prepare(parse(text))


def test_agrees_with_the_interpreters_own_parallel_run() -> None:
    """Outside of loops, on two devices: what ``interpreter.run_parallel`` does on any machine of two cores."""
    import os

    from hlorewrite.ir.binding import ir, stablehlo
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("interpreter.run_parallel needs a core for each device")
    body = program("reduce_scatter", f"{GLOBAL}, scatter_dimension = 0 : i64, {groups('[[1, 0]]', '1x2')}",
                   "tensor<4xf32>", "tensor<2xf32>", ADD)
    x = inputs((4,), 2)
    ours = run(body, x)
    module = parse(body)
    stablehlo.register_interpreter_dialect(module.context)
    with module.context, ir.Location.unknown():
        text = module.text().replace("@main", "@device").rstrip().removesuffix("}") + """
          func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
            %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@device, @device]]}
              : (tensor<4xf32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
            return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
          } }"""
        theirs = stablehlo.eval_module(ir.Module.parse(text), [ir.DenseElementsAttr.get(v) for v in x])
    np.testing.assert_array_equal(ours, [np.array(v) for v in theirs])
