"""Optimizer state in shards: what is sharded, what stays, and that each condition is needed."""

from __future__ import annotations

import pytest
import shard_update_steps as m
from generators.code_mutation import replace_source
from shard_update_steps import APPLY, MEAN, MOMENTUM, P

from hlorewrite.checks.reference.check import check
from hlorewrite.errors import InputError, PassFailed
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.shard_update import ShardUpdate
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.listener import Recorder

SGD = (m.reduced(), MEAN, MOMENTUM.replace("%grad", "%mean"), APPLY)
FOLDER, COMMON = "hlorewrite.passes.shard_update", "hlorewrite.passes.common.steps"
SHARDED = '[{"data"}, {}]'


def sharded(before: Module, axis: str = "data") -> tuple[Module, list[str]]:
    """The module after the pass, with equal values, and what the pass said."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    text = after.text()
    changed = run_passes(after, [ShardUpdate(axis)], PassContext((recorder,)))
    assert changed or after.text() == text, "a pass that finds nothing leaves every byte"
    for seed in (0, 1) if changed else ():
        report = check(before, after, seed=seed)
        assert report.equal, report.table()
    return after, [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]


def signature(module: Module) -> str:
    """The line of the function's arguments and results."""
    return next(line for line in module.text().splitlines() if "func.func public @main" in line)


def ops(module: Module, name: str) -> int:
    """How many ops of a name a module holds."""
    return module.text(generic=True).count(f'"stablehlo.{name}"')


def test_state_and_its_update_become_shards():
    after, said = sharded(m.step(*SGD))
    assert ops(after, "reduce_scatter") == ops(after, "all_gather") == ops(after, "all_reduce") == 1
    assert signature(after).count(SHARDED) == 3  # the batch; the momentum as argument and as result
    assert said == ["applied: state.mu['w']: sharded over \"data\", 32 bytes a device instead of 128"]
    assert f"-> {m.SHARD}" in after.text() and f"stablehlo.add %{{}} : {P}" not in after.text()


def test_a_sum_over_more_axes_is_scattered_over_one_and_reduced_over_the_rest():
    after, _ = sharded(m.step(*SGD, axes=m.TWO_AXES))
    assert "dense<[[0, 2], [1, 3]]>" in after.text() and "dense<[[0, 1], [2, 3]]>" in after.text()
    assert ops(after, "reduce_scatter") == 1 and ops(after, "all_reduce") == 2


NORM = (f"%square = stablehlo.multiply %mean, %mean : {P}", m.total("%norm", "%square"),
        f"%spread = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> {P}",
        f"%grad = stablehlo.divide %mean, %spread : {P}")


def test_a_norm_is_taken_of_shards_and_completed():
    after, _ = sharded(m.step(m.reduced(), MEAN, *NORM, MOMENTUM, APPLY))
    assert ops(after, "all_reduce") == 2 and after.text(generic=True).count('"stablehlo.reduce"') == 2


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_extrema_too(kind: str):
    norm = (NORM[0], m.total("%norm", "%square", op=kind), *NORM[2:])
    after, _ = sharded(m.step(m.reduced(), MEAN, *norm, MOMENTUM, APPLY))
    assert ops(after, "all_reduce") == 2


def test_decay_that_reads_the_parameter_too_is_paired_by_name():
    decay = f"%grad = stablehlo.add %mean, %p : {P}"
    after, _ = sharded(m.step(m.reduced(), MEAN, decay, MOMENTUM, APPLY))
    assert signature(after).count(SHARDED) == 3 and ops(after, "all_gather") == 1


def test_of_results_that_hold_one_value_the_named_one_continues_the_state(monkeypatch: pytest.MonkeyPatch):
    before = m.step(m.reduced(), MEAN, MOMENTUM.replace("%grad", "%mean"), results=("%new", "%new", "%loss"))
    assert SHARDED in signature(sharded(before)[0]).split("result[0]")[1].split("result[1]")[1]
    choice = "next((place for place in sure if named(left[place][0], place)), sure[0])"
    replace_source(f"{FOLDER}.pairs", choice, "sure[0]", monkeypatch)
    assert SHARDED in signature(sharded(before)[0]).split("result[0]")[1].split("result[1]")[0]


def test_transposes_and_reshapes_carry_shards():
    turned = ("%turned = stablehlo.transpose %mean, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>  "
              "%flat = stablehlo.reshape %turned : (tensor<4x8xf32>) -> tensor<4x2x4xf32>  "
              "%back = stablehlo.reshape %flat : (tensor<4x2x4xf32>) -> tensor<4x8xf32>  "
              "%grad = stablehlo.transpose %back, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>")
    after, _ = sharded(m.step(m.reduced(), MEAN, turned, MOMENTUM, APPLY))
    assert '[{}, {"data"}]' in signature(after)  # 2x4 does not divide along what the first dimension becomes


def test_donated_buffers_go_to_values_of_their_own_size():
    aliased = "tf.aliasing_output = 1 : i32"  # the parameter's buffer to the new momentum, and the other way round
    after, _ = sharded(m.step(*SGD, donated=aliased))
    first, second = signature(after).split("%arg1")
    assert "jax.buffer_donor = true" in first and "aliasing" not in first
    assert "tf.aliasing_output = 1 : i32" in second


# ---- what stays

REVERSED = f"%grad = stablehlo.reverse %mean, dims = [0] : {P}"
LOCAL = (f"%odd = stablehlo.multiply %mean, %wave : {P}  " + m.total("%part", "%odd") + "  "
         + m.reduced("%metric", "%part", "tensor<f32>"))
STARTED = ("%one = stablehlo.constant dense<1.0> : tensor<f32>", NORM[0], m.total("%norm", "%square", "%one"),
           *NORM[2:])
ROWS = ("%rows = stablehlo.reduce(%mean init: %zero) applies stablehlo.add across dimensions = [0] : "
        "(tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>",
        f"%spread = stablehlo.broadcast_in_dim %rows, dims = [1] : (tensor<4xf32>) -> {P}",
        f"%grad = stablehlo.divide %mean, %spread : {P}")
LOOP = ("%i = stablehlo.constant dense<0> : tensor<i32>",
        "%run:2 = stablehlo.while(%k = %i, %acc = %zero) : tensor<i32>, tensor<f32> cond { %end = stablehlo.constant "
        "dense<2> : "
        "tensor<i32>  %more = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>  "
        "stablehlo.return %more : tensor<i1> } do { %one = stablehlo.constant dense<1> : tensor<i32>  "
        "%n = stablehlo.add %k, %one : tensor<i32>  " + m.total("%t", "%mean") + "  %a = stablehlo.add %acc, %t : "
        "tensor<f32>  stablehlo.return %n, %a : tensor<i32>, tensor<f32> }",
        "%metric = stablehlo.sine %run#1 : tensor<f32>")
PLAIN = MOMENTUM.replace("%grad", "%mean")
WITH_METRIC = {"results": ("%next", "%new", "%metric")}
HALF = "tensor<8x4xbf16>"
NARROW = (f"%small = stablehlo.convert %local : ({P}) -> {HALF}", m.reduced("%half", "%small", HALF),
          f"%sum = stablehlo.convert %half : ({HALF}) -> {P}", MEAN, PLAIN, APPLY)
SCALED = (f"%own = stablehlo.broadcast_in_dim %mine, dims = [] : (tensor<f32>) -> {P}  "
          f"%odd = stablehlo.multiply %mean, %own : {P}  " + m.total("%part", "%odd") + "  "
          + m.reduced("%metric", "%part", "tensor<f32>"))
COLUMNS = ("%columns = stablehlo.reduce(%mean init: %zero) applies stablehlo.add across dimensions = [1] : "
           "(tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>  "
           f"%across = stablehlo.broadcast_in_dim %columns, dims = [0] : (tensor<8xf32>) -> {P}  "
           f"%scaled = stablehlo.multiply %grad, %across : {P}  " + MOMENTUM.replace("%grad", "%scaled"))
KEPT = {
    "moves elements": (m.step(m.reduced(), MEAN, REVERSED, MOMENTUM, APPLY), "at the same place"),
    "differs": (m.step(m.reduced(), MEAN, LOCAL, PLAIN, APPLY, **WITH_METRIC), "differs along"),
    "starts at one": (m.step(m.reduced(), MEAN, *STARTED, MOMENTUM, APPLY), "more than one element"),
    "starts at the batch": (m.step(m.reduced(), MEAN, NORM[0], m.total("%norm", "%square", "%mine", "maximum"),
                                   m.reduced("%metric", "%norm", "tensor<f32>"), PLAIN, APPLY, **WITH_METRIC),
                            "more than one element"),
    "differs by a number": (m.step(m.reduced(), MEAN, SCALED, PLAIN, APPLY, **WITH_METRIC), "differs along"),
    "several elements": (m.step(m.reduced(), MEAN, *ROWS, COLUMNS, APPLY), "more than one element"),
    "rows": (m.step(m.reduced(), MEAN, *ROWS, MOMENTUM, APPLY), None),
    "loop": (m.step(m.reduced(), MEAN, *LOOP, PLAIN, APPLY, **WITH_METRIC), "inside a loop"),
    "narrow gradient": (m.step(*NARROW), "would send 128 bytes, more than the 64 of the gradients"),
    "maximum": (m.step(m.reduced(op="maximum"), MEAN, PLAIN, APPLY), "not a sum"),
    "other groups": (m.step(m.reduced(groups="[[0, 1], [2, 3]]"), "%all = stablehlo.add %sum, %sum : " + P,
                            m.reduced("%sum2", "%all", groups="[[0, 3], [1, 2]]"), MEAN.replace("%sum,", "%sum2,"),
                            PLAIN, APPLY), "not those along axis"),
    "read elsewhere": (m.step(m.reduced(), MEAN, PLAIN, APPLY, m.total("%metric", "%m"),
                              f"%r = stablehlo.reverse %m, dims = [0] : {P}", m.total("%metric2", "%r"),
                              **WITH_METRIC), "no argument is state"),
}


@pytest.mark.parametrize("case", KEPT)
def test_it_stays(case: str):
    before, reason = KEPT[case]
    after, said = sharded(before)
    if reason is not None:
        assert any(reason in sentence for sentence in said), said
        assert ops(after, "reduce_scatter") == 0


def test_a_reduction_of_rows_moves_the_shards_to_the_other_dimension():
    after, _ = sharded(KEPT["rows"][0])
    assert '[{}, {"data"}]' in signature(after) and ops(after, "reduce_scatter") == 1


CONDITIONS = {
    "moves elements": ("carried", "op.name not in CARRIERS or len(op.results) != 1", "len(op.results) != 1"),
    "differs": ("growth", "if varying is not None:", "if False:"),
    "differs by a number": ("growth", "if varying is not None:", "if False:"),
    "starts at one": ("carried", "start == 0", "True"),
    "starts at the batch": ("carried", "kind in _COMBINED and start is not None", "kind in _COMBINED"),
    "several elements": ("carried", "element_count(op.results[0].type) != 1", "False"),
    "loop": ("growth", "if reader.block != self.step.block:", "if False:"),
    "narrow gradient": ("shard_update", "if sent > reduced:", "if False:"),
    "maximum": ("manual_step", 'if reduction_kind(op) != "sum":', "if False:"),
    "other groups": ("manual_step", "self.mesh.groups_along(spread) != wanted", "False"),
    "read elsewhere": ("growth", "NoShards(value, after) if isinstance(after, str)", "None if isinstance(after, str)"),
}


def goes_wrong(before: Module) -> bool:
    """Whether the pass shards something, makes wrong values, or breaks."""
    try:
        return ops(sharded(before)[0], "reduce_scatter") > 0
    except (AssertionError, PassFailed, KeyError):
        return True


@pytest.mark.parametrize("case", CONDITIONS)
def test_each_condition_is_needed(case: str, monkeypatch: pytest.MonkeyPatch):
    assert not goes_wrong(KEPT[case][0])
    name, old, new = CONDITIONS[case]
    folder = COMMON if name == "manual_step" else FOLDER
    replace_source(f"{folder}.{name}", old, new, monkeypatch)
    assert goes_wrong(KEPT[case][0])


UNEVEN = m.step(*SGD)


def test_uneven_tensors_are_named_in_one_line():
    text = UNEVEN.text().replace("8x4", "6x3").replace("32x4", "24x3")
    after, said = sharded(parse(text, name="m.mlir"))
    assert said == ["blocked: no dimension is divisible by 4, so their state stays whole: result[0]['w'] "
                    "(tensor<6x3xf32>)"]
    assert ops(after, "all_reduce") == 2


def test_a_result_that_is_read_outside_too_stays_whole(monkeypatch: pytest.MonkeyPatch):
    before = m.step(*SGD, after=f"%twice = stablehlo.add %0#1, %0#1 : {P}", returned="%0#0, %twice, %0#2")
    _, said = sharded(before)
    assert said == ["blocked: its gradient is reduced on every device: no argument is state of its update"]
    replace_source(f"{COMMON}.manual_step", 'len(readers) == 1 and readers[0][0].name == "func.return" and ', "",
                   monkeypatch)
    assert goes_wrong(before)


def test_sums_that_another_axis_has_yet_to_add_stay(monkeypatch: pytest.MonkeyPatch):
    text = m.step(*SGD, axes=m.TWO_AXES).text()
    head, whole, tail = text.partition("in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]")
    before = parse(head + whole + ', unreduced={"rep"}' + tail, name="m.mlir")  # the oracle does not execute it
    assert not run_passes(before.clone(), [ShardUpdate("data")], PassContext())
    replace_source(f"{COMMON}.manual_step", "not list(sharding.unreduced_axes) and ", "", monkeypatch)
    assert run_passes(before.clone(), [ShardUpdate("data")], PassContext())


def test_other_axes_and_modules_without_a_step_are_errors():
    with pytest.raises(InputError, match='no axis "model"; its axes are: data'):
        sharded(m.step(*SGD), "model")
    text = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
    with pytest.raises(InputError, match="no manual computation"):
        sharded(parse(text))
