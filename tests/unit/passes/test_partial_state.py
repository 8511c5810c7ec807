"""Gradients accumulated across calls: what stays a local sum, what does not, and that each condition counts."""

from __future__ import annotations

import numpy as np
import pytest
import shard_update_steps as m
from generators.code_mutation import replace_source
from shard_update_steps import P

from hlorewrite.checks.reference.program import prepare
from hlorewrite.errors import InputError, PassFailed
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.partial_state import PartialState
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.listener import Recorder

PASS = "hlorewrite.passes.partial_state.partial_state"
ADD = f"%new = stablehlo.add %m, %sum : {P}"
LAST = "%last = stablehlo.compare GT, %loss, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>"
RESULTS = ("%r#0", "%r#1", "%loss")


def updated(accumulated: str = "%new", over: str = "%none", last: str = "%last", first: str = "") -> str:
    """The update in the calls in which ``%last`` holds; the sum restarts at a constant."""
    return (f'%none = stablehlo.constant dense<0.0> : {P}  %one = stablehlo.constant dense<1.0> : {P}  '
            f'%r:2 = "stablehlo.if"({last}) ({{ {first} %u = stablehlo.subtract %p, {accumulated} : {P} '
            f"stablehlo.return %u, {over} : {P}, {P} }}, {{ stablehlo.return %p, {accumulated} : {P}, {P} }}) : "
            f"(tensor<i1>) -> ({P}, {P})")


def accumulating(*lines: str, results: tuple[str, ...] = RESULTS, **options: str) -> Module:
    return m.step(*lines, results=results, **options)


def values(module: Module, arguments: list[np.ndarray], like: Module | None = None) -> list[np.ndarray]:
    """What a step of all devices returns."""
    program = prepare(module, like=prepare(like) if like is not None else None)
    outcome = program.run([arguments])
    assert not outcome.diverged and not outcome.replicas_differ
    return list(outcome.outputs[0])


def partial(before: Module, axis: str = "data") -> tuple[Module, list[str]]:
    """The module after the pass, with the values it had for any local sums, and what the pass said."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    text = after.text()
    changed = run_passes(after, [PartialState(axis)], PassContext((recorder,)))
    assert changed or after.text() == text, "a pass that finds nothing leaves every byte"
    said = [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]
    if not changed:
        return after, said
    rows = prepare(after).input_types[1].shape[0]
    for seed in range(4):
        draw = np.random.default_rng(seed)
        w, x = draw.normal(size=(8, 4)).astype(np.float32), draw.normal(size=(32, 4)).astype(np.float32)
        parts = draw.normal(size=(rows, 8, 4)).astype(np.float32)
        expected, found = values(before, [w, parts.sum(axis=0), x]), values(after, [w, parts, x], before)
        found[1] = found[1].sum(axis=0)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    return after, said


def ops(module: Module, name: str = "all_reduce") -> int:
    """How many ops of a name a module holds."""
    return module.text(generic=True).count(f'"stablehlo.{name}"')


def signature(module: Module) -> str:
    """The line of the function's arguments and results."""
    return next(line for line in module.text().splitlines() if "func.func public @main" in line)


KEPT = "applied: state.mu['w']: local sums between calls, added up over \"data\" where they are read"


def test_a_sum_is_reduced_in_the_calls_that_read_it():
    after, said = partial(accumulating(m.reduced(), ADD, LAST, updated()))
    assert said == [KEPT]
    assert signature(after).count("tensor<4x8x4xf32>") == 2 and signature(after).count('[{"data"}, {}, {}]') == 2
    inside = after.text().partition('"stablehlo.if"')[2]
    assert ops(after) == 2 and inside.count("stablehlo.all_reduce") == 1


def test_a_step_that_only_accumulates_reduces_nothing():
    after, said = partial(accumulating(m.reduced(), ADD, results=("%p", "%new", "%loss")))
    assert said == [KEPT] and ops(after) == 1  # that of the loss


MEAN = f"%four = stablehlo.constant dense<4.0> : {P}  %mean = stablehlo.divide %sum, %four : {P}"
RUNNING = (f"%three = stablehlo.constant dense<3.0> : {P}  %far = stablehlo.subtract %sum, %m : {P}  "
           f"%near = stablehlo.divide %far, %three : {P}  %new = stablehlo.add %m, %near : {P}")
LOOPS = {
    "mean": (m.reduced(), MEAN, ADD.replace("%sum", "%mean")),
    "running mean": (m.reduced(), RUNNING),
    "twice": (m.reduced(), m.reduced("%again", "%wave"), f"%both = stablehlo.add %sum, %again : {P}",
              ADD.replace("%sum", "%both")),
    "in a loop": (f"""%i0 = stablehlo.constant dense<0> : tensor<i32>
      %w:2 = stablehlo.while(%i = %i0, %v = %m) : tensor<i32>, {P}
      cond {{
        %c3 = stablehlo.constant dense<3> : tensor<i32>
        %go = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %c1 = stablehlo.constant dense<1> : tensor<i32>
        {m.reduced()}
        %more = stablehlo.add %v, %sum : {P}
        %j = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %j, %more : tensor<i32>, {P}
      }}""", f"%new = stablehlo.reshape %w#1 : ({P}) -> {P}"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_forms_of_sums(name: str):
    after, said = partial(accumulating(*LOOPS[name], LAST, updated()))
    assert said == [KEPT] and ops(after) == 2


CORNER = ("%cut = stablehlo.slice %p [0:1, 0:1] : (tensor<8x4xf32>) -> tensor<1x1xf32>  "
          "%corner = stablehlo.reshape %cut : (tensor<1x1xf32>) -> tensor<f32>  "
          "%last = stablehlo.compare GT, %corner, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>  "
          f"%none = stablehlo.constant dense<0.0> : {P}")
AS_NUMBERS = (f"%often = stablehlo.convert %last : (tensor<i1>) -> tensor<f32>  "
              f"%shown = stablehlo.broadcast_in_dim %often, dims = [] : (tensor<f32>) -> {P}  "
              f"%first = stablehlo.constant dense<1.0> : {P}  %hidden = stablehlo.subtract %first, %shown : {P}")
START_OVER = f"%kept = stablehlo.multiply %hidden, %new : {P}"
NORMED = (f"%square = stablehlo.multiply %new, %new : {P}", m.total("%norm", "%square"),
          f"%long = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> {P}",
          f"%far = stablehlo.divide %new, %long : {P}")  # of zeros: not a number
BY_PRODUCT = (f"%move = stablehlo.multiply %shown, %far : {P}", f"%next = stablehlo.add %p, %move : {P}")
BY_SELECTION = (f"%moved = stablehlo.add %p, %far : {P}",
                f"%next = stablehlo.select %last, %moved, %p : tensor<i1>, {P}")
MASKED = (m.reduced(), ADD, CORNER, AS_NUMBERS, START_OVER)
TOTALS = ("%next", "%kept", "%loss")


@pytest.mark.parametrize("ends", [BY_PRODUCT, BY_SELECTION], ids=["product", "selection"])
def test_a_masked_update_reads_its_sum_in_a_branch(ends: tuple[str, ...]):
    """Computed in each call, and hidden in most."""
    after, said = partial(accumulating(*MASKED, *NORMED, *ends, results=TOTALS))
    assert said == [KEPT] and ops(after) == 2
    assert after.text().partition('"stablehlo.if"')[2].count("stablehlo.all_reduce") == 1


LINEAR = f"%far = stablehlo.multiply %new, %first : {P}"


@pytest.mark.parametrize("ends", [BY_PRODUCT, BY_SELECTION], ids=["product", "selection"])
def test_masked_updates_that_are_linear(ends: tuple[str, ...]):
    _, said = partial(accumulating(*MASKED, LINEAR, *ends, results=TOTALS))
    assert said == [KEPT]


def test_groups_along_one_of_two_axes():
    """Summed over the other axis in each call, and over this one where it is read."""
    first, second = m.reduced("%some", groups="[[0, 1], [2, 3]]"), m.reduced("%sum", "%some", groups="[[0, 2], [1, 3]]")
    after, said = partial(accumulating(first, second, ADD, LAST, updated(), axes=m.TWO_AXES))
    assert said == [KEPT] and "tensor<2x8x4xf32>" in signature(after) and ops(after) == 3


def test_buffers_that_are_donated_are_paired_again():
    donated = "tf.aliasing_output = 1 : i32"  # of the parameter with the new sum, and the sum with the new parameter
    before = accumulating(m.reduced(), ADD, LAST, updated(), donated=donated)
    after, _ = partial(before)
    first, _, second = signature(after).partition("tensor<4x8x4xf32>")
    assert "jax.buffer_donor" in first and "tf.aliasing_output = 1" in second.partition(")")[0]


BY_DEVICE = ("%own = stablehlo.compare GT, %mine, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>")
STAYS = {
    "read in each call": (accumulating(m.reduced(), ADD, LAST, updated(), f"%all = stablehlo.tanh %new : {P}",
                                       f"%more = stablehlo.add %r#0, %all : {P}", results=("%more", "%r#1", "%loss")),
                          "in each call: stablehlo.tanh is not linear"),
    "starts at one": (accumulating(m.reduced(), ADD, LAST, updated(over="%one")), "other than zero"),
    "a maximum": (accumulating(m.reduced(op="maximum"), f"%new = stablehlo.maximum %m, %sum : {P}",
                               results=("%p", "%new", "%loss")),
                  'no sum over "data" is added'),
    "other groups": (accumulating(m.reduced(groups="[[0, 1], [2, 3]]"), ADD, LAST, updated(), axes=m.TWO_AXES),
                     'no sum over "data" is added'),
    "a branch of each device": (accumulating(m.reduced(), ADD, BY_DEVICE, updated(last="%own")),
                                'no sum over "data" is added'),
    "not linear": (accumulating(m.reduced(), f"%new = stablehlo.multiply %m, %sum : {P}", LAST, updated()),
                   'no sum over "data" is added'),
    "known too late": (accumulating(*MASKED, *NORMED, m.reduced("%again", "%mine", "tensor<f32>"),
                                    "%big = stablehlo.compare GT, %again, %zero : (tensor<f32>, tensor<f32>) -> "
                                    "tensor<i1>", f"%moved = stablehlo.add %p, %far : {P}",
                                    f"%next = stablehlo.select %big, %moved, %p : tensor<i1>, {P}", results=TOTALS),
                       "its sum is needed in each call"),
    "a loop that may not end": (accumulating(*MASKED, f"""%far = stablehlo.while(%v = %new) : {P} cond {{
        %zero1 = stablehlo.constant dense<0.0> : tensor<f32>
        {m.total("%size", "%v", "%zero1")}
        %size1 = stablehlo.multiply %size, %size : tensor<f32>
        %half = stablehlo.constant dense<0.5> : tensor<f32>
        %go = stablehlo.compare LT, %size1, %half : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %more = stablehlo.add %v, %v : {P}
        stablehlo.return %more : {P}
      }}""", *BY_SELECTION, results=TOTALS), "its sum is needed in each call"),
    "no name": (parse(accumulating(m.reduced(), ADD, LAST, updated()).text().replace("result[1].mu", "result[1].nu"),
                      name="m.mlir"), "no argument that is replicated"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str):
    before, reason = STAYS[name]
    after, said = partial(before)
    assert after.text() == before.text() and any(reason in sentence for sentence in said), said


def goes_wrong(before: Module) -> bool:
    """Whether the pass changes the module, or breaks."""
    try:
        return partial(before)[0].text() != before.text()
    except Exception:
        return True


@pytest.mark.parametrize("name, old, new", [
    ("starts at one", "builder.refuse(anew, _BEGINS_ANEW)", "False"),
    ("a maximum", 'if reductions.kind == "sum" and', "if"),
    ("other groups", "== step.mesh.groups_along((step.axis,))", "!= 0"),
    ("no name", "and at_the_same_place(name, paths[step.result_of_step(each)])", ""),
])
def test_each_condition_counts(name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch):
    before = STAYS[name][0]
    assert not goes_wrong(before)
    replace_source(PASS, old, new, monkeypatch)
    assert goes_wrong(before)


@pytest.mark.parametrize("name, old, new", [
    ("known too late", "None if mask is None or cone_of_numbers(mask.predicate) is None else mask", "mask"),
    ("a loop that may not end", "or is_function(op) else None", 'or is_function(op) or "while" in op.name else None')])
def test_each_condition_of_masks_counts(name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch):
    before = STAYS[name][0]
    assert not goes_wrong(before)
    replace_source("hlorewrite.passes.partial_state.masks", old, new, monkeypatch)
    try:
        assert run_passes(before.clone(), [PartialState("data")], PassContext())  # not executed: it may not end
    except PassFailed as error:
        assert "does not dominate" in str(error)


@pytest.mark.parametrize("old, new", [("products = _products(block, mask, masks)", "products = []"),
                                      ("if _is_new_value(loop, op) else masks", "if False else masks")])
def test_zeros_that_give_no_number_are_hidden_by_a_branch(old: str, new: str, monkeypatch: pytest.MonkeyPatch):
    """A product with 0 would not hide them; and a sum that starts over by a product keeps what is not a number."""
    before = accumulating(*MASKED, *NORMED, *BY_PRODUCT, results=TOTALS)
    text = partial(before)[0].text()
    replace_source("hlorewrite.passes.partial_state.masked_reads", old, new, monkeypatch)
    try:
        assert partial(before)[0].text() != text
    except AssertionError:
        return


def test_modules_without_a_step_are_errors():
    with pytest.raises(InputError, match='no axis "model"; its axes are: data'):
        partial(accumulating(m.reduced(), ADD, LAST, updated()), "model")
    with pytest.raises(InputError, match="partial-state rewrites one that is the whole step"):
        partial(parse("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"))
