"""Means and variances in one call: what merges, what has to stay, and that values are as precise as before."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generators.check import RandomProgram
from generators.code_mutation import replace_source
from generators.structure.random_statistics import random_statistics
from resnet_steps import ResNetStep, lowerable, weights

import hlorewrite
from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passes.merge_statistics import MergeStatistics
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.listener import Recorder

PROGRAMS = 3000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 120
DEVICES, ROWS = 8, 256
PASS = "hlorewrite.passes.merge_statistics"


def variance(element: str = "f32", columns: int = 4, rows: int = ROWS) -> str:
    """The sum of squared distances from the mean of a sharded matrix, column by column."""
    scalar, wide, small = (f"tensor<{shape}{element}>" for shape in ("", f"{rows}x{columns}x", f"{columns}x"))

    def sums(value: str, number: int) -> str:
        return (f"%s{number} = stablehlo.reduce({value} init: %zero) applies stablehlo.add across dimensions = [0] : "
                f"({wide}, {scalar}) -> {small}\n"
                f'%t{number} = "stablehlo.all_reduce"(%s{number}) <{{channel_handle = #stablehlo.channel_handle<handle '
                f"= {number}, type = 1>, replica_groups = dense<{[list(range(DEVICES))]}> : tensor<1x{DEVICES}xi64>, "
                "use_global_device_ids}> ({\n"
                f"^bb0(%l: {scalar}, %r: {scalar}):\n%a = stablehlo.add %l, %r : {scalar}\n"
                f"stablehlo.return %a : {scalar}\n}}) : ({small}) -> {small}\n")
    return (f"module attributes {{mhlo.num_partitions = {DEVICES} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"func.func public @main(%x: {wide}) -> {small} {{\n%zero = stablehlo.constant dense<0.0> : {scalar}\n"
            + sums("%x", 1) + f"%n = stablehlo.constant dense<{rows * DEVICES}.0> : {small}\n"
            f"%mean = stablehlo.divide %t1, %n : {small}\n"
            f"%w = stablehlo.broadcast_in_dim %mean, dims = [1] : ({small}) -> {wide}\n"
            f"%d = stablehlo.subtract %x, %w : {wide}\n%q = stablehlo.multiply %d, %d : {wide}\n" + sums("%q", 2)
            + f"return %t2 : {small}\n}}\n}}\n")


def merged(text: str, topology: str = "h200:1x8") -> tuple[Module, list[tuple[str, str]]]:
    """A module after the pass, and its remarks."""
    module, recorder = parse(text), Recorder(wants_missed=True)
    before = module.text()
    changed = run_passes(module, [MergeStatistics()], PassContext((recorder,), topology=topology))
    assert not module.verify() and changed == (module.text() != before)
    assert not run_passes(module.clone(), [MergeStatistics()], PassContext(topology=topology))
    return module, [(each.kind, each.sentence) for each in recorder.remarks]


def calls(module: Module) -> list[str]:
    """The collectives of a module."""
    return [op.name.removeprefix("stablehlo.")
            for op in View(module).ops("stablehlo.all_reduce", "stablehlo.all_gather")]


def test_a_mean_and_a_variance_travel_in_one_gather():
    module, remarks = merged(variance())
    assert calls(module) == ["all_gather"]
    assert remarks == [("applied", "the variance no longer waits for its mean: one gather takes 30 us, two all-reduces "
                                   "78 us on h200:1x8")]


@pytest.mark.parametrize(("text", "kind", "why"), [
    (variance("bf16"), "blocked", "the variance waits for its mean: other sums are too coarse in bf16"),
    (variance(rows=0), "blocked", "the variance waits for its mean: a device sums 0 values"),
    (variance(columns=1 << 20), "unprofitable", "the variance waits for its mean: one gather takes 306 us, two "
     "all-reduces 137 us on h200:1x8"),
])
def test_what_has_to_stay_is_said(text: str, kind: str, why: str):
    module, remarks = merged(text)
    assert calls(module) == ["all_reduce", "all_reduce"] and remarks == [(kind, why)]


@pytest.mark.parametrize("apart", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("mean", [0.0, 1e3, 1e5])
def test_it_is_as_precise_as_in_two_steps(mean: float, apart: float):
    """Without the sum of the distances from a device's own mean, which rounding leaves, the error is up to 1e-3."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((DEVICES, ROWS, 4)) + mean + apart * rng.standard_normal((DEVICES, 1, 1))
         ).astype(np.float32)
    exact = np.var(x.astype(np.float64), (0, 1)) * DEVICES * ROWS
    before, after = parse(variance()), merged(variance())[0]
    first, second = (np.abs(prepare(each, "main").run([[row] for row in x]).outputs[0][0] / exact - 1).max()
                     for each in (before, after))
    assert second <= max(2 * first, 1e-6)
    if mean > 0 and not apart:
        values = x.reshape(-1, 4)
        assert np.abs((values ** 2).mean(0) - values.mean(0) ** 2 - exact / len(values)).max() > 1e-4  # one-step form


def test_random_programs():
    changed = 0
    for seed in range(PROGRAMS):
        what = RandomProgram(random_statistics(random.Random(seed)), seed).check("merge-statistics")
        assert what.finding is None, f"seed {seed}: {what.finding}"
        changed += what.changed
    assert changed > PROGRAMS // 2


def test_a_factor_stays_in_a_narrow_sum():
    """Terms that a factor makes small may add up to more than the type holds without it."""
    golden = Path(__file__).parents[2] / "lit" / "passes" / "merge-statistics" / "batch-norm.mlir"
    module, remarks = merged(golden.read_text("utf-8").replace("f32", "f16"), "h200:1x4")
    assert calls(module) == ["all_reduce"] * 4
    assert [sentence.split(":")[1] for _, sentence in remarks] == [" other sums are too coarse in f16"] * 2


@pytest.mark.parametrize(("condition", "instead"), [
    ("if why := self._too_coarse(summed) or self._differs(uniform, summed.groups):", 'if why := "":'),
    ("return self._too_coarse(squares) or self._differs(mean, squares.groups)", 'return ""'),
    ("self._taken_out(summed, uniform, rest, negative != negated)", "self._taken_out(summed, uniform, rest, False)"),
    ('or ints(op, "broadcast_dimensions") != self.kept:',
     "or len(ints(op, 'broadcast_dimensions')) != len(self.kept):"),
    ("square.operands[0] != square.operands[1]", "False"),
    ('or not is_identity(zero, "sum")', ""),
    ('len(op.operands) != 1 or reduction_kind(op) != "sum"', "len(op.operands) != 1"),
    ('len(local.operands) != 2 or reduction_kind(local) != "sum"', "len(local.operands) != 2"),
    ("self._sums.get((distance.operands[0], squares.dims, squares.groups.key))",
     "next((s for (x, d, g), s in self._sums.items() if x == distance.operands[0] and d == squares.dims), None)"),
    ("self._sums.get((distance.operands[0], squares.dims, squares.groups.key))",
     "next((s for (x, d, g), s in self._sums.items() if g == squares.groups.key and d == squares.dims), None)"),
], ids=["factor differs", "mean differs", "sign", "repeated along other dimensions", "not a square", "start of the sum",
        "maximum over devices", "maximum of a device", "other groups", "mean of other values"])
def test_without_a_condition_values_are_wrong(condition: str, instead: str, monkeypatch: pytest.MonkeyPatch):
    replace_source(PASS, condition, instead, monkeypatch)
    assert any(RandomProgram(random_statistics(random.Random(seed)), seed).check("merge-statistics").finding
               for seed in range(300))


def test_a_resnet_trains_as_before_with_fewer_calls():
    step = ResNetStep(blocks=(1, 1), width=8, rows=2, size=16, classes=4, dtype=jnp.float32)
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    plain, shapes = lowerable(step, mesh)
    ours = hlorewrite.optimize(lowerable(step, mesh)[0], passes="collective-cse,merge-statistics,all-reduce-fusion",
                               keep="always")
    rng = np.random.default_rng(0)
    batch = (rng.standard_normal(shapes[1].shape).astype(np.float32), rng.integers(0, 4, shapes[2].shape, np.int32))
    placed = [jax.device_put(part, shape.sharding) for part, shape in zip(batch, shapes[1:], strict=True)]
    report = ours.lower(started(step, shapes), *placed).report
    norms, shared = 9, 2  # a block that changes the number of channels begins with two norms side by side
    assert sum(each.kind == "all_reduce" for each in report.before) >= 5 * norms
    assert sum(each.kind == "all_gather" for each in report.after) == norms - shared
    assert sum(each.trips for each in report.after) < len(report.before) / 2
    one, other = (trained(run, started(step, shapes), placed) for run in (plain, ours))
    np.testing.assert_allclose(one, other, rtol=1e-4)


def started(step: ResNetStep, shapes: Any) -> Any:
    """Weights and momenta before the first step."""
    model = weights(step, jax.random.key(0))
    return jax.tree.map(lambda leaf, shape: jax.device_put(leaf, shape.sharding),
                        (model, jax.tree.map(jnp.zeros_like, model)), shapes[0])


def trained(step: Any, state: Any, batch: list[Any]) -> list[float]:
    """The losses of five steps."""
    losses = []
    for _ in range(5):
        state, loss = step(state, *batch)
        losses.append(float(loss))
    return losses
