"""Remarks of real steps: the parameter, the tensor's type, the user's own line, the library's, and what to change."""

from __future__ import annotations

import json
from typing import Any

import framework_steps as steps
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen, nnx

import hlorewrite
from hlorewrite.jaxbridge.hook.patch import JitPatch
from hlorewrite.jaxbridge.hook.records import steps_report
from hlorewrite.jaxbridge.step.report import RewriteReport
from hlorewrite.rules.listener import Remark

HERE = "test_remarks.py"


class TwoLayers(linen.Module):
    """Two layers."""

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return linen.Dense(3, name="out")(linen.relu(linen.Dense(8, name="up")(x)))


def linen_step(params: Any, state: Any, xs: jax.Array, ys: jax.Array) -> Any:
    value, grads = steps.accumulated(lambda p, x, y: jnp.mean((TwoLayers().apply(p, x) - y) ** 2), params, xs, ys)
    updates, state = optax.adam(0.1).update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def linen_arguments() -> tuple[Any, ...]:
    params = TwoLayers().init(jax.random.key(0), steps.ROWS[0])
    return params, optax.adam(0.1).init(params), *steps.batch()


def moved(report: RewriteReport | None) -> dict[str, Remark]:
    """Parameter -> the remark about its gradient."""
    assert report is not None
    return {remark.parameter: remark for remark in report.remarks if remark.rule == "comm-shift"}


@pytest.fixture(scope="module")
def linen_report() -> RewriteReport:
    return hlorewrite.optimize(jax.jit(linen_step)).lower(*linen_arguments()).report


def test_linen_parameters_have_their_paths(linen_report: RewriteReport) -> None:
    remarks = moved(linen_report)
    assert set(remarks) == {"", *(f"params['params']['{layer}']['{leaf}']" for layer in ("up", "out")
                                  for leaf in ("kernel", "bias"))}
    assert remarks[""].type == "tensor<f32>"
    kernel = remarks["params['params']['up']['kernel']"]
    assert kernel.location.partition(":")[0].endswith(HERE)
    assert kernel.framework.startswith("flax/linen/linear.py:")
    assert kernel.type in ("tensor<6x8xf32>", "tensor<8x6xf32>")
    assert f" [params['params']['up']['kernel'], {kernel.type}, in flax/linen/linear.py:" in str(kernel)


def records(make: Any, *arguments: Any) -> JitPatch:
    with hlorewrite.patch_jit("comm-shift", match="*_step") as patch:
        make(*arguments)
    return patch


def test_flax_nnx_under_patch_jit() -> None:
    """NNX hands JAX numbered leaves: the numbers are said, no name is made up."""
    patch = records(nnx.jit(steps.nnx_step), *steps.network(), *steps.batch())
    remarks = moved(patch.records[0].report)
    assert set(remarks) == {"", "model.states[0][0]", "model.states[0][1]"}
    assert remarks["model.states[0][1]"].location.partition(":")[0].endswith("framework_steps.py")
    assert remarks["model.states[0][1]"].framework.startswith("flax/nnx/nn/linear.py:")


def test_equinox_under_patch_jit_and_on_the_page() -> None:
    patch = records(steps.eqx.filter_jit(steps.equinox_step), *steps.equinox_model(), *steps.batch())
    remarks = moved(patch.records[0].report)
    assert set(remarks) == {"", *(f"layers[{layer}].{leaf}" for layer in (0, 1) for leaf in ("weight", "bias"))}
    page = steps_report(patch.records, "comm-shift").content("page.html")
    assert "<code>layers[0].weight</code>" in page and "in <code>equinox/nn/_linear.py:" in page
    data = json.loads(json.dumps(patch.records[0].as_json()))
    assert {"layers[1].bias", "layers[0].weight"} <= {remark["parameter"] for remark in data["remarks"]}


def multisteps(params: Any, state: Any, xs: jax.Array, ys: jax.Array) -> Any:
    """Updates the parameters, or not, after each micro-batch."""
    optimizer = optax.MultiSteps(optax.adam(0.1), every_k_schedule=4)

    def micro_batch(carry: Any, pair: Any) -> tuple[Any, None]:
        params, state = carry
        grads = jax.grad(lambda p: jnp.mean((pair[0] @ p["w"] - pair[1]) ** 2))(params)
        updates, state = optimizer.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), None
    return jax.lax.scan(micro_batch, (params, state), (xs, ys))[0]


def test_what_stays_says_what_to_change() -> None:
    params = {"w": jnp.ones((6, 3))}
    state = optax.MultiSteps(optax.adam(0.1), every_k_schedule=4).init(params)
    report = hlorewrite.optimize(jax.jit(multisteps)).lower(params, state, *steps.batch()).report
    remark = moved(report)["params['w']"]
    assert remark.kind in ("blocked", "missed")
    assert remark.advice == ("the next iteration reads the values that this one changes; to accumulate gradients, "
                             "update the parameters once, after the loop")
    assert str(remark).endswith(f"; {remark.advice}")


def accumulate_step(params: Any, total: Any, x: jax.Array, y: jax.Array) -> Any:
    """One micro-batch: the accumulator is handed from call to call."""
    return jax.tree.map(jnp.add, total, jax.grad(lambda p: jnp.mean((x @ p["w"] - y) ** 2))(params))


def test_an_accumulator_that_outlives_the_call_is_named() -> None:
    params, (xs, ys) = {"w": jnp.ones((6, 3))}, steps.batch()
    patch = records(jax.jit(accumulate_step), params, {"w": jnp.zeros((6, 3))}, xs[0], ys[0])
    remark = moved(patch.records[0].report)[""]
    assert remark.kind == "missed" and remark.type in ("tensor<6x3xf32>", "tensor<3x6xf32>")
    assert remark.sentence == "each call adds it to total['w'], which outlives the call, so each call needs it reduced"
    assert "lax.scan" in remark.advice
    report = steps_report(patch.records, "x")
    assert remark.advice in report.text and remark.advice in report.content("page.html")


def test_a_moment_is_no_accumulator() -> None:
    """Momentum decays in each call: nothing could be put off."""
    def momentum_step(params: Any, moment: Any, x: jax.Array, y: jax.Array) -> Any:
        grads = jax.grad(lambda p: jnp.mean((x @ p["w"] - y) ** 2))(params)
        moment = jax.tree.map(lambda m, g: 0.9 * m + g, moment, grads)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, moment), moment
    params, (xs, ys) = {"w": jnp.ones((6, 3))}, steps.batch()
    patch = records(jax.jit(momentum_step), params, {"w": jnp.zeros((6, 3))}, xs[0], ys[0])
    assert not moved(patch.records[0].report)


def test_frames_are_chosen() -> None:
    own = hlorewrite.Frames(own=("flax",), skip=(HERE.removesuffix(".py"),))
    report = hlorewrite.optimize(jax.jit(linen_step), frames=own).lower(*linen_arguments()).report
    kernel = moved(report)["params['params']['up']['kernel']"]
    assert kernel.location.startswith("flax/linen/linear.py:") and not kernel.framework
