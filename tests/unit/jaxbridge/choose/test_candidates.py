"""What is compiled in the end: a rewritten candidate of one of the partitioners, or the user's own module."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose import candidates, fastest, selection, speculate
from hlorewrite.jaxbridge.choose.candidates import Contest, RewriteCandidate
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step, rewrite_step
from hlorewrite.jaxbridge.choose.selection import Comparator
from hlorewrite.jaxbridge.step.options import Keep, StepOptions, as_passes
from hlorewrite.jaxbridge.step.rewrite import clone_of, rewrite
from hlorewrite.jaxbridge.step.variants import StepChoice, Variant, variants
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet, compile_no_codegen
from hlorewrite.jaxbridge.xla.partition import expose_collectives
from hlorewrite.jaxbridge.xla.platform_passes import with_platform_passes
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passes.reduce_scatter_creation import ReduceScatterCreation
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.named import named_pipeline

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="the CUDA compiler is not installed (extra: aot)")
SHIFT = as_passes("comm-shift")


def make_mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def embedding(weights: bool = False) -> jax.stages.Lowered:
    """The gradient of an embedding, a scatter, summed over micro-batches; auto-sharded. With weights, theirs too."""
    whole, split = NamedSharding(make_mesh(), P()), NamedSharding(make_mesh(), P(None, "data"))

    def loss(params: tuple, batch: jax.Array) -> jax.Array:
        x = params[0][batch]
        return jnp.mean(jnp.tanh(x @ params[1] if weights else x) ** 2)

    def step(params: tuple, batches: jax.Array) -> tuple:
        def micro_batch(total: tuple, batch: jax.Array) -> tuple[tuple, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, batch)), None
        total = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), batches)[0]
        return jax.tree.map(jnp.subtract, params, total)

    params = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((512, 64), (64, 64))[:1 + weights]]
    return jax.jit(step, in_shardings=(whole, split), out_shardings=whole, donate_argnums=0).lower(
        tuple(params), jax.ShapeDtypeStruct((4, 32, 16), jnp.int32))


def accumulating(inside: bool) -> jax.stages.Lowered:
    """Gradients summed over micro-batches by hand, averaged in the loop or after it."""
    def local(w: jax.Array, batches: jax.Array) -> jax.Array:
        def micro_batch(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            grad = batch.T @ jnp.tanh(batch @ w)
            return total + (jax.lax.pmean(grad, "data") if inside else grad), None
        total, _ = jax.lax.scan(micro_batch, jnp.zeros_like(w), batches)
        return w - (total if inside else jax.lax.pmean(total, "data"))

    sharded = jax.shard_map(local, mesh=make_mesh(), in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False)
    return jax.jit(sharded).lower(jax.ShapeDtypeStruct((64, 64), jnp.float32),
                                  jax.ShapeDtypeStruct((4, 32, 64), jnp.float32))


def two_gradients() -> jax.stages.Lowered:
    """Two sums over all devices that may share a call."""
    sharded = jax.shard_map(lambda a, b: (jax.lax.psum(a, "data"), jax.lax.psum(b, "data")), mesh=make_mesh(),
                            in_specs=(P("data"), P("data")), out_specs=(P(), P()), check_vma=False)
    return jax.jit(sharded).lower(*[jax.ShapeDtypeStruct((64, 8), jnp.float32)] * 2)


def both_gradients() -> jax.stages.Lowered:
    """Two gradients summed over micro-batches, averaged in the loop."""
    def local(a: jax.Array, b: jax.Array, batches: jax.Array) -> tuple[jax.Array, jax.Array]:
        def micro_batch(total: tuple, batch: jax.Array) -> tuple[tuple, None]:
            grads = (batch.T @ jnp.tanh(batch @ each) for each in (a, b))
            return tuple(t + jax.lax.pmean(g, "data") for t, g in zip(total, grads, strict=True)), None
        return jax.lax.scan(micro_batch, (a * 0, b * 0), batches)[0]

    sharded = jax.shard_map(local, mesh=make_mesh(), in_specs=(P(), P(), P(None, "data")), out_specs=(P(), P()),
                            check_vma=False)
    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    return jax.jit(sharded).lower(shape, shape, jax.ShapeDtypeStruct((4, 32, 64), jnp.float32))


def module_of(lowered: jax.stages.Lowered) -> Module:
    return clone_of(private.module_of(lowered), "step")


@pytest.fixture(scope="module")
def gpus() -> DeviceSet:
    return DeviceSet("gpu", tuple(devices_of_target(parse_target("h200:1x8"), 8, "test")))


def test_less_bytes_than_xla_alone_are_kept_with_the_figures_of_both():
    made, sentences = rewrite_step(module_of(accumulating(inside=True)), StepOptions(SHIFT), DeviceSet("cpu"))
    assert made.bytecode is not None and sentences == []
    comparison = made.report.comparison
    assert comparison is not None and comparison.kept
    assert (comparison.alone.calls, comparison.ours.calls) == (4, 1)
    assert comparison.ours.bytes * 4 == comparison.alone.bytes
    assert [r.sentence for r in made.report.remarks if r.rule == "against-xla"] == [comparison.sentence]
    assert "\n".join(comparison.lines()) in str(made.report)
    assert str(made.report).count(comparison.sentence) == 1


def test_where_nothing_is_gained_the_users_own_module_is_compiled_and_no_saving_is_reported():
    """A pass changes something, but XLA alone sends as little."""
    made, _ = rewrite_step(module_of(embedding()), StepOptions(as_passes("rules{only=algebra},cse")), DeviceSet("cpu"))
    report = made.report
    assert made.bytecode is None
    assert not report.changed and not report.exposed
    assert report.comparison is not None and not report.comparison.kept
    assert report.before == report.after
    assert [r.kind for r in report.remarks if r.rule == "against-xla"] == ["unprofitable"]
    always, _ = rewrite_step(module_of(embedding()), StepOptions(as_passes("cse"), keep="always"), DeviceSet("cpu"))
    assert always.report.comparison is None


@needs_cuda_compiler
def test_on_gpus_both_partitioners_compete(gpus: DeviceSet):
    """XLA:GPU adds the gradient into the carried sum inside the scatter, where nothing can be deferred."""
    module = module_of(embedding())
    made, sentences = rewrite_step(module.clone(), StepOptions(SHIFT), gpus)
    comparison = made.report.comparison
    assert comparison is not None and comparison.kept and sentences == []
    assert comparison.devices == "h200:1x8"
    assert comparison.ours.bytes * 3 < comparison.alone.bytes  # XLA alone without the pass that miscompiles this step
    again, _ = rewrite_step(module.clone(), StepOptions(SHIFT), gpus)
    assert again.report.digest == made.report.digest


@needs_cuda_compiler
def test_the_rule_goes_first_where_a_scatter_keeps_the_carry(gpus: DeviceSet):
    """The passes have no rules, and the choice can be made again by its text."""
    module = module_of(embedding())
    made, _ = rewrite_step(module.clone(), StepOptions(SHIFT), gpus)
    assert made.report.comparison is not None and made.report.comparison.partitioner == "gpu"
    assert "passes rules{only=carry-inside-scatter},comm-shift\n" in made.how and made.report.pipeline == "comm-shift"
    assert replayed_step(module, StepOptions(SHIFT), gpus, made.how).bytecode == made.bytecode
    exact, _ = rewrite_step(module, StepOptions(as_passes("comm-shift{exact=true}")), gpus)
    assert "carry-inside-scatter" not in exact.how


@needs_cuda_compiler
def test_where_the_rule_makes_nothing_to_keep_the_passes_run_without_it(
        gpus: DeviceSet, monkeypatch: pytest.MonkeyPatch):
    """XLA's figures are faked: after the rule a step takes too much memory."""
    def scheduled(module: Module, place: DeviceSet, flags: object, partitioned: bool = False,
                  _: object = None) -> tuple:
        small = partitioned or candidates.scatters_into_a_choice(module)
        return Measured(8 if partitioned else 2, 100, 100, (1 if small else 2) << 20, 0.0, ""), None

    monkeypatch.setattr(speculate, "scheduled", scheduled)
    made, _ = rewrite_step(module_of(embedding(weights=True)), StepOptions(SHIFT, protect=False), gpus)
    assert made.report.comparison is not None and made.report.comparison.kept
    assert "passes comm-shift\n" in made.how


@needs_cuda_compiler
@pytest.mark.parametrize(("near", "passes"), [
    (1.02, "rules{only=carry-inside-scatter},comm-shift"), (100.0, "comm-shift")])
def test_the_rule_has_to_save_more_than_what_counts_as_equal(
        near: float, passes: str, gpus: DeviceSet, monkeypatch: pytest.MonkeyPatch):
    """XLA's figures are faked, so that the first candidate is kept. One partitioner is asked either way."""
    def scheduled(module: Module, place: DeviceSet, flags: object, partitioned: bool = False,
                  _: object = None) -> tuple:
        return Measured(8 if partitioned else 2, 100, 100, 1 << 20, 0.0, ""), None

    monkeypatch.setattr(speculate, "scheduled", scheduled)
    monkeypatch.setattr(candidates, "NEAR", near)
    made, _ = rewrite_step(module_of(embedding(weights=True)), StepOptions(SHIFT, protect=False), gpus)
    assert made.report.comparison is not None and made.report.comparison.kept
    assert made.report.comparison.partitioner == "gpu" and f"passes {passes}\n" in made.how


@needs_cuda_compiler
def test_a_candidate_is_compiled_only_where_it_may_be_the_best(gpus: DeviceSet, monkeypatch: pytest.MonkeyPatch):
    """Of two programs with scatters the one that sends less is compiled; the other one sends more than that."""
    compiled: list[str] = []
    original = speculate.scheduled

    def recorded(module: Module, place: DeviceSet, flags: dict, partitioned: bool = False, *dumps: Path) -> object:
        compiled.extend([module.text()] if "manual_computation" in module.text() else [])
        return original(module, place, flags, partitioned, *dumps)

    monkeypatch.setattr(speculate, "scheduled", recorded)
    monkeypatch.setattr(speculate, "scheduled", recorded)
    monkeypatch.setattr(candidates, "takes_carry_outside", lambda _: False)
    made, _ = rewrite_step(module_of(embedding()), StepOptions(SHIFT), gpus)
    assert made.report.comparison is not None and made.report.comparison.partitioner == "cpu"
    assert compiled == [made.module.text()]


def test_what_is_fused_and_sends_more_than_xla_alone_comes_after_what_is_not(monkeypatch: pytest.MonkeyPatch):
    """XLA's figures are faked. The fused module is compiled only where the other one is not kept."""
    shifted = as_passes("comm-shift")
    passes = (*shifted, *as_passes("all-reduce-fusion"))
    asked: list[int] = []

    def trial(alone: Measured, unfused: Measured, begun: Future[Measured] | None = None) -> list[int]:
        def scheduled(module: Module, place: DeviceSet, flags: object) -> tuple[Measured, None]:
            asked.append(len(View(module).ops("stablehlo.all_reduce")))
            return unfused if asked[-1] == 2 else Measured(1, 100, 100, 1000, 0.0, ""), None

        monkeypatch.setattr(speculate, "scheduled", scheduled)
        asked.clear()
        module, short, whole = module_of(both_gradients()), Variant(shifted), Variant(passes)
        made = rewrite(module.clone(), passes, shorter=shifted)
        assert made.shorter is not None
        first = RewriteCandidate("", module, made, whole)
        other = RewriteCandidate("", module, made.shorter.finish(), short)
        compilations = speculate.Compilations(Contest(module, DeviceSet("cpu"), 8, lambda *_: made, (), False), {})
        compilations.ahead |= {first: begun} if begun is not None else {}
        selection.Selection(Comparator(alone, "8 x CPU"), compilations, lambda *_: other).best([first], [short])
        return list(asked)

    better, worse = Measured(2, 100, 100, 1000, 0.0, ""), Measured(2, 300, 300, 1000, 0.0, "")
    assert trial(Measured(8, 200, 200, 1000, 0.0, ""), better) == [2]  # the modules send 56 KiB
    assert trial(Measured(8, 200, 200, 1000, 0.0, ""), worse) == [2, 1]
    assert trial(Measured(8, 1 << 20, 1 << 20, 1000, 0.0, ""), better) == [1]
    begun: Future[Measured] = Future()  # compiled ahead, before it was known what XLA alone sends
    begun.set_result(Measured(1, 100, 100, 1000, 0.0, ""))
    assert trial(Measured(8, 200, 200, 1000, 0.0, ""), better, begun) == [2]
    assert trial(Measured(8, 1 << 20, 1 << 20, 1000, 0.0, ""), better, begun) == []


def scaled_in_the_loop() -> jax.stages.Lowered:
    """Auto-sharded gradients of stacked weights, averaged in each micro-batch, which XLA alone leaves in the loop."""
    whole, split = NamedSharding(make_mesh(), P()), NamedSharding(make_mesh(), P(None, "data"))

    def step(w: jax.Array, batches: jax.Array) -> jax.Array:
        def loss(w: jax.Array, batch: jax.Array) -> jax.Array:
            return jnp.mean(jax.lax.scan(lambda x, layer: (jnp.tanh(x @ layer), None), batch, w)[0] ** 2)

        def micro_batch(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            return total + jax.grad(loss)(w, batch), None
        return w - jax.lax.scan(micro_batch, jnp.zeros_like(w), batches)[0]

    return jax.jit(step, in_shardings=(whole, split), out_shardings=whole).lower(
        jax.ShapeDtypeStruct((3, 64, 64), jnp.float32), jax.ShapeDtypeStruct((4, 32, 64), jnp.float32))


@needs_cuda_compiler
@pytest.mark.parametrize(("lowered", "passes", "partitioners"), [
    (scaled_in_the_loop, "comm-shift", ["gpu"]), (embedding, "comm-shift", ["gpu"]),
    (embedding, "rules{only=slice-of-all-reduce},comm-shift", ["gpu", "cpu"]),
    (embedding, named_pipeline("comm"), ["gpu"])])
def test_the_other_partitioner_runs_only_where_a_scatter_keeps_the_carry(
        lowered, passes: str, partitioners: list[str], gpus: DeviceSet, monkeypatch: pytest.MonkeyPatch):
    """The rules take the carry out of the scatter, so that one program is enough."""
    asked = []

    def counted(module: Module, place: DeviceSet | None = None, dump: bytes | None = None) -> Module:
        asked.append("cpu" if place is None else place.platform)
        return expose_collectives(module, place, dump)

    monkeypatch.setattr(candidates, "expose_collectives", counted)
    made, _ = rewrite_step(module_of(lowered()), StepOptions(as_passes(passes)), gpus)
    assert made.report.comparison is not None and made.report.comparison.kept
    assert asked == partitioners


@needs_cuda_compiler
@pytest.mark.parametrize("keep", ["better", "compiled"])
def test_a_step_that_xla_alone_miscompiles_is_compared_with_the_right_program(keep: Keep, gpus: DeviceSet):
    """To the end or not: the program that computes the user's gradient sends the table in each micro-batch."""
    place = replace(gpus, flags={"xla_gpu_autotune_level": 0})
    made, _ = rewrite_step(module_of(embedding()), StepOptions(as_passes(named_pipeline("comm")), keep=keep), place)
    comparison = made.report.comparison
    assert comparison is not None and comparison.kept and comparison.with_code == (keep == "compiled")
    assert comparison.alone.bytes == 4 * comparison.ours.bytes and comparison.ours.temp <= comparison.alone.temp
    if keep == "compiled":
        assert comparison.alone.step_s is not None and comparison.ours.step_s is not None
        assert comparison.ours.step_s <= comparison.alone.step_s


@needs_cuda_compiler
def test_both_partitioners_give_what_is_sent_least_of_an_embedding(gpus: DeviceSet):
    """Rewritten bytes are equal, whichever program the rules and comm-shift start from."""
    module = module_of(embedding())
    sent = [rewrite(expose_collectives(module.clone(), place), as_passes(named_pipeline("comm")), exposed=True)
            .report.executed_bytes_after for place in (DeviceSet("cpu"), gpus)]
    assert sent[0] == sent[1]
    assert sum(sent[0].values()) == 512 * 64 * 4  # the table once


@pytest.mark.parametrize("platform", ["cpu", pytest.param("gpu", marks=needs_cuda_compiler)])
def test_the_program_in_the_compilation_of_xla_alone_is_the_partitioners(platform: str,
                                                                         request: pytest.FixtureRequest):
    """A process that makes the choice of another one again partitions without that compilation."""
    place = request.getfixturevalue("gpus") if platform == "gpu" else DeviceSet("cpu")
    module = module_of(embedding())
    dump = compile_no_codegen(module, place, partitioned=True).partitioned
    assert dump is not None
    assert expose_collectives(module, place, dump).text() == expose_collectives(module, place).text()


@needs_cuda_compiler
def test_on_gpus_a_step_that_xla_gets_as_good_itself_is_left_alone(gpus: DeviceSet):
    made, _ = rewrite_step(module_of(accumulating(inside=False)), StepOptions(as_passes(named_pipeline("comm"))), gpus)
    assert made.bytecode is None


@pytest.mark.parametrize(("lowered", "compilations", "kept"), [(two_gradients, 2, False), (both_gradients, 3, True)])
def test_passes_run_again_with_less_memory_where_that_makes_another_module(
        lowered, compilations: int, kept: bool, monkeypatch: pytest.MonkeyPatch):
    """XLA's figures are faked: what is fused takes twice the memory."""
    figures = iter([Measured(8, 800, 800, 1 << 20, 0.0, ""), Measured(1, 100, 100, 1 << 21, 0.0, ""),
                    Measured(2, 100, 100, 1 << 20, 0.0, "")])
    answers: dict[int, Measured] = {}

    def scheduled(module: Module, place: DeviceSet, flags: object, *_: object) -> tuple[Measured, None]:
        answers[len(answers)] = next(figures)
        return answers[len(answers) - 1], None

    monkeypatch.setattr(speculate, "scheduled", scheduled)
    monkeypatch.setattr(selection, "ThreadPoolExecutor", _InOrder)
    pipeline = "comm-shift,all-reduce-fusion"
    made, _ = rewrite_step(module_of(lowered()), StepOptions(as_passes(pipeline)), DeviceSet("cpu"))
    assert len(answers) == compilations
    assert made.report.changed == (made.bytecode is not None) == kept
    assert made.report.pipeline == pipeline
    assert len(made.report.after) == 2  # as before, or moved and not fused


class _InOrder:
    """A pool that does everything at once."""

    def __init__(self, max_workers: int) -> None:
        pass

    def submit(self, function, *args):
        future = Future()
        try:
            future.set_result(function(*args))
        except InputError as error:
            future.set_exception(error)
        return future

    def shutdown(self, **_: object) -> None:
        pass


@pytest.mark.parametrize("failing", ["alone", "ours"])
def test_where_xla_refuses_the_users_module_is_compiled_and_it_is_said(failing: str, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def scheduled(module: Module, place: DeviceSet, flags: object, *_: object) -> tuple[Measured, None]:
        asked.append(module)
        if (len(asked) == 1) == (failing == "alone"):
            raise InputError("XLA cannot compile the module (too bad)")
        return Measured(8, 800, 800, 0, 0.0, ""), None

    monkeypatch.setattr(speculate, "scheduled", scheduled)
    monkeypatch.setattr(selection, "ThreadPoolExecutor", _InOrder)
    made, sentences = rewrite_step(module_of(accumulating(inside=True)), StepOptions(SHIFT), DeviceSet("cpu"))
    assert made.bytecode is None
    assert len(sentences) == 1 and "too bad" in sentences[0] and 'keep="always"' in sentences[0]


def test_compiled_confirms_with_both_compiled_to_the_end():
    settings = StepOptions(SHIFT, keep="compiled")
    made, _ = rewrite_step(module_of(accumulating(inside=True)), settings, DeviceSet("cpu"))
    comparison = made.report.comparison
    assert comparison is not None and comparison.with_code
    assert comparison.kept == (comparison.ours.temp <= comparison.alone.temp)
    assert comparison.alone.bytes == 4 * comparison.ours.bytes


def faked(seconds: float, exposed_at: Mapping[str, float] | None = None) -> Callable[[Measured, str], Measured]:
    """Predicted times that are given, of which communication takes half."""
    return lambda made, _: replace(made, temp=0, step_s=seconds, counted_s=seconds, plain_s=seconds,
                                   compute_s=seconds / 2, exposed_at=exposed_at or {})


@needs_cuda_compiler
@pytest.mark.parametrize(("alone", "kept"), [(2.0, True), (0.5, False)])
def test_compiled_keeps_no_longer_step(alone: float, kept: bool, gpus: DeviceSet, monkeypatch: pytest.MonkeyPatch):
    """Predicted times are faked: before code is generated the rewritten step is shorter."""
    times = iter([2.0, 1.0, alone, 1.0])
    monkeypatch.setattr(fastest, "timed", lambda made, cluster: faked(next(times))(made, cluster))
    place = replace(gpus, flags={"xla_gpu_autotune_level": 0})
    settings = StepOptions(SHIFT, keep="compiled")
    made, _ = rewrite_step(module_of(accumulating(inside=True)), settings, place)
    comparison = made.report.comparison
    assert comparison is not None and comparison.with_code and (made.bytecode is not None) == kept
    assert ("comm-shift would take 1 s" in comparison.against) != kept


@needs_cuda_compiler
def test_remarks_say_what_their_line_exposes(gpus: DeviceSet, monkeypatch: pytest.MonkeyPatch):
    settings = StepOptions(SHIFT)
    plain, _ = rewrite_step(module_of(accumulating(inside=True)), settings, DeviceSet("cpu"))
    moved = next(remark for remark in plain.report.remarks if remark.rule == "comm-shift")
    exposed_at = {moved.location: 2e-3}
    monkeypatch.setattr(fastest, "timed", faked(1.0, exposed_at))
    made, _ = rewrite_step(module_of(accumulating(inside=True)), settings, gpus)
    said = [remark.exposed for remark in made.report.remarks if remark.location == moved.location]
    assert said and set(said) == {"2 ms"}
    assert "; under XLA alone the collectives of this line expose 2 ms a step" in str(made.report)
    assert not any(remark.exposed for remark in made.report.remarks if remark.location not in exposed_at)


def test_steps_for_unknown_devices_are_rewritten_without_comparison_and_it_is_said():
    for place in (DeviceSet("tpu"), DeviceSet("gpu")):
        made, sentences = rewrite_step(module_of(accumulating(inside=True)), StepOptions(SHIFT), place)
        assert made.report.changed and made.report.comparison is None
        assert len(sentences) == 1 and sentences[0].startswith("is not compared with XLA alone")


def test_the_decorator_and_the_patch_take_the_policy():
    with pytest.raises(UsageError, match='keep="sometimes" is unknown'):
        hlorewrite.optimize(lambda x: x, keep="sometimes")
    with pytest.raises(UsageError, match='keep="sometimes" is unknown'):
        hlorewrite.patch_jit("comm", keep="sometimes")
    always = hlorewrite.optimize(jax.jit(lambda x: x * 2), keep="always")
    assert always.lower(jnp.ones(4)).report.comparison is None


def test_variants_are_the_pipeline_then_less_of_it():
    comm = as_passes(named_pipeline("comm"))
    names = [[step.name for step in variant.passes] for variant in variants(comm, xla_scatters=False)]
    assert names[0] == [step.name for step in comm]
    assert set(names[0]) - set(names[1]) == {"all-reduce-fusion"}
    assert [names[k].count("reduce-scatter-creation") for k in (0, 1)] == [2, 1]
    assert [variant.memory for variant in variants(comm, xla_scatters=False)] == [None, None, 0]
    first = variants(comm, xla_scatters=True)[0]
    assert all(step.only_split for step in first.passes if isinstance(step, ReduceScatterCreation))
    assert all("slice-of-all-reduce" in step.skip for step in first.passes if step.name == "rules")  # type: ignore
    assert [v.memory for v in variants(SHIFT, xla_scatters=True)] == [None, 0]
    only = as_passes("reduce-scatter-creation")
    assert variants(only, xla_scatters=True)[0].passes == only
    assert replace(first, memory=3).memory == 3


# ---- the choice of another process


def test_a_choice_that_is_made_again_gives_the_same_module() -> None:
    """Manual and auto-sharded, the rewritten module kept and not."""
    for lowered in (accumulating(inside=True), embedding()):
        for pipeline in ("comm-shift", "rules{only=algebra},cse"):
            settings, place = StepOptions(as_passes(pipeline)), DeviceSet("cpu")
            made, _ = rewrite_step(module_of(lowered), settings, place)
            if "compiled" not in made.how:
                continue
            again = replayed_step(module_of(lowered), settings, place, made.how)
            assert (again.report.digest, again.bytecode is None) == (made.report.digest, made.bytecode is None)
            assert (again.report.changed, again.how) == (made.report.changed, made.how)


def test_every_choice_of_a_pipeline_can_be_made_again() -> None:
    settings, place = StepOptions(SHIFT), DeviceSet("cpu")
    passes = with_platform_passes(SHIFT, "cpu")
    choices = [str(StepChoice.of(passes, "", variant)) for variant in variants(passes, xla_scatters=False)]
    kept = [replayed_step(module_of(accumulating(inside=True)), settings, place, how).bytecode for how in choices]
    assert kept[0] is not None and len(kept) > 1
    with pytest.raises(InputError, match="something that these passes do not offer"):
        replayed_step(module_of(accumulating(inside=True)), settings, place, "pipeline cse")


def test_a_memory_budget_is_spent_and_is_the_judges_limit() -> None:
    """What passes keep, and how far temporaries may grow; without a budget the candidate is refused."""
    from hlorewrite.jaxbridge.baseline.comparison import compared
    alone, larger = Measured(8, 800, 800, 1 << 30, 0.0, ""), Measured(1, 100, 100, 2 << 30, 0.0, "")
    assert not compared(alone, larger, "8 x GPU").kept
    assert compared(alone, larger, "8 x GPU", budget=1 << 30).kept
    taken: list[int | None] = []

    class Spends(Pass):
        name = "spends"

        def run(self, module, ctx) -> bool:
            taken.append(ctx.memory_left)
            return False

    for budget, expected in (("1GiB", 1 << 30), (0, 0), (None, None)):
        hlorewrite.optimize(lambda x: x + 1, passes=Spends(), keep="always", memory_budget=budget).lower(jnp.ones(4))
        assert taken.pop() == expected
