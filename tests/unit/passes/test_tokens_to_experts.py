"""Tokens sent to the devices of their experts: what moves, what has to stay, and that values are the same."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from expert_steps import ExpertModel, exported, lowerable

import hlorewrite
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step, rewrite_step
from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passes.tokens_to_experts import TokensToExperts
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import Remark

SMALL = ExpertModel(length=16, slots=2, width=16, hidden=64, layers=2)
BY_BATCH, BY_EXPERT = '[{}, {"x"}, {}, {}]', '[{"x"}, {}, {}, {}]'
WITH_GPU_COMPILER = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                       reason="the CUDA compiler is not installed (extra: aot)")

FORWARD = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%mask: tensor<4x8x4x2xf32>, %tokens: tensor<4x8x16xf32>, %w: tensor<4x16x64xf32>)
    -> tensor<4x8x64xf32> {
  %kept = sdy.sharding_constraint %mask <@mesh, [{"x"}, {}, {}, {}]> : tensor<4x8x4x2xf32>
  %made = stablehlo.dot_general %kept, %tokens, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<4x8x4x2xf32>, tensor<4x8x16xf32>) -> tensor<4x4x2x16xf32>
  %slots = stablehlo.transpose %made, dims = [1, 0, 2, 3] : (tensor<4x4x2x16xf32>) -> tensor<4x4x2x16xf32>
  %sent = sdy.sharding_constraint %slots <@mesh, [{}, {"x"}, {}, {}]> : tensor<4x4x2x16xf32>
  %weight = sdy.sharding_constraint %w <@mesh, [{"x"}, {}, {}]> : tensor<4x16x64xf32>
  %up = stablehlo.dot_general %sent, %weight, batching_dims = [0] x [0], contracting_dims = [3] x [1]
    : (tensor<4x4x2x16xf32>, tensor<4x16x64xf32>) -> tensor<4x4x2x64xf32>
  %done = sdy.sharding_constraint %up <@mesh, [{}, {"x"}, {}, {}]> : tensor<4x4x2x64xf32>
  %act = func.call @act(%done) : (tensor<4x4x2x64xf32>) -> tensor<4x4x2x64xf32>
  %out = stablehlo.dot_general %kept, %act, batching_dims = [0] x [1], contracting_dims = [3, 2] x [2, 0]
    : (tensor<4x8x4x2xf32>, tensor<4x4x2x64xf32>) -> tensor<4x8x64xf32>
  return %out : tensor<4x8x64xf32>
}
func.func private @act(%a: tensor<4x4x2x64xf32>) -> tensor<4x4x2x64xf32> {
  %b = stablehlo.tanh %a : tensor<4x4x2x64xf32>
  return %b : tensor<4x4x2x64xf32>
}
"""


class Said:
    """Keeps remarks."""

    wants_text = wants_missed = wants_mismatches = False

    def __init__(self) -> None:
        self.remarks: list[Remark] = []

    def remark(self, remark: Remark) -> None:
        self.remarks.append(remark)


def moved(text: str) -> tuple[bool, Module, list[str]]:
    module, said = parse(text), Said()
    changed = TokensToExperts().run(module, PassContext((said,)))  # pyright: ignore[reportArgumentType]
    return changed, module, [remark.sentence for remark in said.remarks]


def test_tokens_go_to_the_devices_of_their_experts():
    changed, module, remarks = moved(FORWARD)
    text = module.text()
    assert changed and not module.verify()
    assert text.count(BY_EXPERT) == 3 and BY_BATCH not in text  # slots, products, and the mask as it was
    assert remarks == ["tokens go to the devices that hold their experts (2.5 KiB a device), so that no device gathers "
                       "expert weights (16.0 KiB for 1 product): 2 sharding constraints move axis x from dimension 1 "
                       "to 0"]
    assert not moved(text)[0]  # it is where it should be


@pytest.mark.parametrize(("axes", "rest"), [('"data", "x"', '"data"'), ('"x", "data"', '"data"')])
def test_other_axes_of_the_batch_stay(axes: str, rest: str):
    text = FORWARD.replace('["x"=4]', '["data"=2, "x"=2]').replace(BY_BATCH, f"[{{}}, {{{axes}}}, {{}}, {{}}]")
    changed, module, remarks = moved(text)
    assert changed and module.text().count(f'[{{"x"}}, {{{rest}}}, {{}}, {{}}]') == 2 and "move axis x" in remarks[0]


@pytest.mark.parametrize(("old", "new", "why"), [
    ("%weight = sdy.sharding_constraint %w <", "%computed = stablehlo.tanh %w : tensor<4x16x64xf32>\n"
     "  %weight = sdy.sharding_constraint %computed <", "what is no parameter may be smaller elsewhere"),
    ('%w <@mesh, [{"x"}, {}, {}]>', "%w <@mesh, [{}, {}, {}]>", "the weight is on every device"),
    ('%w <@mesh, [{"x"}, {}, {}]>', '%w <@mesh, [{}, {}, {"x"}]>', "the weight is sharded by another dimension"),
    ('["x"=4]', '["x"=3]', "experts do not divide over the axis"),
    ('{"x"}', '{"x":(1)2}', "parts of axes are not followed"),
    ("tensor<4x16x64xf32>", "tensor<4x16x1xf32>", "weights are smaller than tokens"),
])
def test_conditions(old: str, new: str, why: str):
    """Each variation of the program breaks one condition, so nothing moves."""
    text = FORWARD.replace(old, new)
    if "x1xf32" in new:
        text = text.replace("2x64xf32", "2x1xf32").replace("8x64xf32", "8x1xf32")
    assert text != FORWARD
    changed, module, _ = moved(text)
    assert not changed and module.text() == parse(text).text(), why


def test_slots_that_are_sharded_by_expert_stay_so():
    """The products around the experts, whose mask and cotangent are sharded by batch, are no products of weights."""
    for by, changes in (("batch", True), ("expert", False)):
        module = parse(exported(replace(SMALL, by=by)))
        before = module.text()
        assert TokensToExperts().run(module, PassContext()) is changes
        assert (module.text() == before) is not changes and not module.verify()


def test_a_step_is_the_one_whose_slots_are_sharded_by_expert():
    """Forward and backward, under rematerialization: the same constraints as in the model that was written so."""
    module, wanted = (parse(exported(replace(SMALL, by=by))) for by in ("batch", "expert"))
    TokensToExperts().run(module, PassContext())

    def constraints(text: str) -> list[str]:
        return [line.split("sharding_constraint")[1].split("<", 1)[1].split(" loc")[0] for line in text.splitlines()
                if "sharding_constraint" in line]
    assert constraints(module.text()) == constraints(wanted.text())


def arguments(shapes: Any) -> Any:
    """Values of the shapes of a step, on its devices."""
    random_ = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jax.device_put(random_.standard_normal(leaf.shape).astype(leaf.dtype),
                                                    leaf.sharding), shapes)


@pytest.mark.parametrize("keep", ["better", "always"])
def test_values_are_the_same_and_bytes_are_fewer(keep: Any):
    step, shapes = lowerable(SMALL)
    new, loss = step(*arguments(shapes))
    rewritten = hlorewrite.optimize(step, passes="tokens-to-experts,comm-shift", keep=keep)
    ours, our_loss = rewritten(*arguments(shapes))
    report = rewritten.lower(*arguments(shapes)).report
    assert report.changed and any(each.rule == "tokens-to-experts" for each in report.remarks)
    if keep == "better":
        assert report.comparison is not None and report.comparison.ours.wire < 0.7 * report.comparison.alone.wire
    np.testing.assert_allclose(our_loss, loss, rtol=2e-2)  # products of bfloat16
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(new), strict=True):
        np.testing.assert_allclose(one, other, rtol=5e-2, atol=5e-2 * float(np.abs(other).max()))


@WITH_GPU_COMPILER
def test_auto_keeps_it_and_another_process_repeats_it():
    """A layer of 64 KiB of tokens and 96 MiB of weights for each device."""
    module = parse(exported(ExpertModel(length=512, slots=160, width=2048, hidden=4096, layers=2)), name="moe")
    place = place_of(parse_target("h200:1x8"), module)
    options = StepOptions.of(OPTIMIZE, {"passes": "auto"})
    made, _ = rewrite_step(module.clone(), options, place)
    comparison = made.report.comparison
    assert comparison is not None and comparison.chosen.startswith("time, tokens to experts"), comparison.sentence
    assert comparison.ours.wire < 0.5 * comparison.alone.wire
    again = replayed_step(module.clone(), options, place, made.how)
    assert again.bytecode == made.bytecode and again.report.changed
