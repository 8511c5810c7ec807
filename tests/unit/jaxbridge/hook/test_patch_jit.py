"""``patch_jit``: whatever jits a step, its module is rewritten where JAX compiles it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import HlorewriteError, PassFailed, UsageError
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.decorator.optimize import HlorewriteWarning
from hlorewrite.jaxbridge.hook.patch import JitPatch
from hlorewrite.jaxbridge.processes import consensus
from hlorewrite.jaxbridge.xla import private
from hlorewrite.passmanager.base import Pass, PassContext

DEVICES = 8


@dataclass(frozen=True)
class Failing(Pass):
    """A pass that refuses every module."""

    name: ClassVar[str] = "failing"

    def run(self, module: Module, ctx: PassContext) -> bool:
        raise PassFailed("not today", location="here")


@dataclass(frozen=True)
class Crashing(Pass):
    """A pass with a bug."""

    name: ClassVar[str] = "crashing"

    def run(self, module: Module, ctx: PassContext) -> bool:
        raise KeyError("a bug")


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))


def _gradients(weights: jax.Array, batches: jax.Array, mean: Callable[[jax.Array], jax.Array]) -> jax.Array:
    def body(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
        loss = lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2)  # noqa: E731
        return total + mean(jax.grad(loss)(weights)), None
    return weights - 0.1 * jax.lax.scan(body, jnp.zeros_like(weights), batches)[0]


def manual_step(name: str = "train_step", scale: float = 1.0) -> Callable[..., jax.Array]:
    """A step that reduces its gradients in each of four micro-batches; a new function each time."""
    inner = jax.shard_map(lambda w, b: _gradients(w, b, lambda g: jax.lax.pmean(g, "d") * scale), mesh=mesh(),
                          in_specs=(P(), P(None, "d")), out_specs=P(), check_vma=False)

    def step(weights: jax.Array, batches: jax.Array) -> jax.Array:
        return inner(weights, batches)
    step.__name__ = name
    return step


def auto_step(name: str = "train_step") -> Callable[..., jax.Array]:
    """The same for XLA's partitioner."""
    def step(weights: jax.Array, batches: jax.Array) -> jax.Array:
        return _gradients(weights, batches, lambda g: g)
    step.__name__ = name
    return step


@pytest.fixture
def arguments() -> tuple[jax.Array, jax.Array]:
    """Weights and four micro-batches, sharded over eight devices."""
    generator = np.random.default_rng(0)
    batches = generator.standard_normal((4, 16, 8)).astype(np.float32)
    return (jnp.asarray(generator.standard_normal((8, 8)).astype(np.float32)),
            jax.device_put(batches, NamedSharding(mesh(), P(None, "d"))))


def only(patch: JitPatch) -> Any:
    [record] = patch.records
    return record


@pytest.mark.parametrize("make", [manual_step, auto_step])
def test_a_jitted_step_is_rewritten(make: Callable[[], Callable[..., jax.Array]],
                                    arguments: tuple[jax.Array, jax.Array]) -> None:
    """A quarter of the bytes, the same values; manual and auto-sharded."""
    expected = jax.jit(make())(*arguments)
    with hlorewrite.patch_jit("comm") as patch:
        result = jax.jit(make())(*arguments)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    record = only(patch)
    assert (record.name, record.outcome) == ("jit_train_step", "rewritten")
    assert (record.bytes_before, record.bytes_after) == (4 * 256, 256)
    assert (record.calls_before, record.calls_after) == (4, 1)
    assert re.search(r"jit_train_step  rewritten  XLA alone +1\.0 KiB -> 256 B +4 -> 1$", str(patch))


def test_one_line_for_flax_and_equinox(arguments: tuple[jax.Array, jax.Array]) -> None:
    """``nnx.jit`` with its state updates, and ``eqx.filter_jit``, train as they do without."""
    import equinox
    from flax import nnx

    def train(wrap: Callable[..., Any]) -> list[float]:
        model = nnx.Linear(8, 8, rngs=nnx.Rngs(0))

        def nnx_step(model: nnx.Linear, batches: jax.Array) -> jax.Array:
            model.kernel[...] = manual_step()(model.kernel[...], batches)
            return jnp.sum(model.kernel[...] ** 2)
        step = wrap(nnx_step)
        return [float(step(model, arguments[1])) for _ in range(3)]

    expected = train(nnx.jit)
    with hlorewrite.patch_jit("comm", "nnx_step") as patch:
        assert train(nnx.jit) == pytest.approx(expected, rel=1e-5)
    assert patch.records  # nnx.jit compiles again when its state is placed
    assert all(record.bytes_after * 4 == record.bytes_before for record in patch.records)
    assert len(set(expected)) == 3
    with hlorewrite.patch_jit("comm") as patch:
        equinox.filter_jit(manual_step("filtered"))(*arguments)
    assert only(patch).outcome == "rewritten"


def test_only_what_matches(arguments: tuple[jax.Array, jax.Array]) -> None:
    with hlorewrite.patch_jit("comm", match="train_*") as patch:
        jax.jit(manual_step("eval_step"))(*arguments)
    assert patch.records == ()
    with hlorewrite.patch_jit("comm", match=lambda name: name.endswith("eval_step")) as patch:
        jax.jit(manual_step("eval_step"))(*arguments)
    assert only(patch).name == "jit_eval_step"


def test_what_does_not_communicate_passes(arguments: tuple[jax.Array, jax.Array]) -> None:
    """A module for one device, and small ones for several."""
    with hlorewrite.patch_jit("comm") as patch:
        jax.jit(lambda x: jnp.sin(x) @ x)(arguments[0])
        jax.jit(lambda x: x + 1)(arguments[1])
        jnp.sum(arguments[1])
    assert patch.records == ()


@pytest.mark.parametrize(("failing", "reason"), [(Failing(), "here: not today"), (Crashing(), "KeyError")])
def test_an_error_compiles_the_original_with_one_warning(failing: Pass, reason: str,
                                                         arguments: tuple[jax.Array, jax.Array]) -> None:
    expected = jax.jit(manual_step())(*arguments)
    with pytest.warns(HlorewriteWarning, match="jit_train_step is compiled unrewritten") as warned, \
            hlorewrite.patch_jit([failing]) as patch:
        first, second = jax.jit(manual_step())(*arguments), jax.jit(manual_step())(*arguments)
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, expected)
    assert len([w for w in warned if issubclass(w.category, HlorewriteWarning)]) == 1
    assert [(r.outcome, reason in r.reason) for r in patch.records] == [("original", True)] * 2


def _fails(*_: Any) -> Any:
    raise RuntimeError("UNAVAILABLE: no connection")


def test_a_predicate_or_a_store_that_fails_compiles_the_original_with_one_warning(
        monkeypatch: pytest.MonkeyPatch, arguments: tuple[jax.Array, jax.Array]) -> None:
    expected = manual_step()(*arguments)
    with hlorewrite.patch_jit("comm", match=_fails) as patch, pytest.warns(HlorewriteWarning, match="UNAVAILABLE"):
        np.testing.assert_array_equal(manual_step()(*arguments), expected)
    assert patch.records == ()
    monkeypatch.setattr(consensus, "distributed_client", _fails)
    with hlorewrite.patch_jit("comm") as patch, pytest.warns(HlorewriteWarning) as said:
        patch.before_compilation("jit_f", module_of(manual_step(), arguments), "cpu",
                                 [SimpleNamespace(process_index=0), SimpleNamespace(process_index=1)],
                                 SimpleNamespace(env_option_overrides=[]))
    assert [str(one.message) for one in said] == [
        "jit_f is compiled unrewritten: RuntimeError: UNAVAILABLE: no connection"]
    assert only(patch).outcome == "original"


def module_of(step: Callable[..., jax.Array], arguments: tuple[jax.Array, jax.Array]) -> Any:
    """What JAX would compile."""
    return private.module_of(jax.jit(step).lower(*arguments))


def test_on_error_raise(arguments: tuple[jax.Array, jax.Array]) -> None:
    with hlorewrite.patch_jit([Failing()], on_error="raise"), pytest.raises(HlorewriteError, match="not today"):
        jax.jit(manual_step())(*arguments)
    with pytest.raises(UsageError, match='on_error="ignore" is unknown'):
        hlorewrite.patch_jit("comm", on_error="ignore")


def test_the_kill_switch(monkeypatch: pytest.MonkeyPatch, arguments: tuple[jax.Array, jax.Array]) -> None:
    monkeypatch.setenv("HLOREWRITE", "0")
    with pytest.warns(HlorewriteWarning, match="HLOREWRITE=0 is set"), hlorewrite.patch_jit("comm") as patch:
        jax.jit(manual_step())(*arguments)
    assert only(patch).outcome == "original"


def test_an_audit_compiles_the_original(arguments: tuple[jax.Array, jax.Array]) -> None:
    with hlorewrite.patch_jit("comm", audit=True) as patch:
        text = jax.jit(manual_step()).lower(*arguments).compile().as_text()
    record = only(patch)
    assert (record.outcome, record.bytes_before, record.bytes_after) == ("audited", 1024, 256)
    with hlorewrite.patch_jit("comm"):
        rewritten = jax.jit(manual_step()).lower(*arguments).compile().as_text()
    assert rewritten != text


def test_the_innermost_patch_that_wants_a_module_gets_it(arguments: tuple[jax.Array, jax.Array]) -> None:
    with hlorewrite.patch_jit("comm") as outer, \
            hlorewrite.patch_jit("comm", match="train_step", audit=True) as inner:
        jax.jit(manual_step())(*arguments)
        jax.jit(manual_step("other"))(*arguments)
    assert [r.name for r in inner.records] == ["jit_train_step"]
    assert [r.name for r in outer.records] == ["jit_other"]


def test_jax_gets_its_function_back() -> None:
    before = private.compile_function()
    first = hlorewrite.patch_jit("comm")
    second = hlorewrite.patch_jit("comm")
    first.undo()
    assert private.compile_function() != before
    second.undo()
    second.undo()
    assert private.compile_function() == before


def test_another_tool_that_wraps_the_same_function(arguments: tuple[jax.Array, jax.Array]) -> None:
    """It wraps ours and is undone after us: both work, and nothing is rewritten once the patch has ended."""
    before, seen = private.compile_function(), []
    assert before is not None
    patch = hlorewrite.patch_jit("comm")
    ours = private.compile_function()
    assert ours is not None

    def other(backend: Any, computation: Any, devices: Any, compile_options: Any, host_callbacks: Any,
              executable_devices: Any, *rest: Any, **named: Any) -> Any:
        seen.append(computation)
        return ours(backend, computation, devices, compile_options, host_callbacks, executable_devices, *rest, **named)
    try:
        private.set_compile_function(other)
        jax.jit(manual_step())(*arguments)
        patch.undo()
        jax.jit(manual_step("later"))(*arguments)
        with hlorewrite.patch_jit("comm") as again:
            jax.jit(manual_step("again"))(*arguments)
    finally:
        private.set_compile_function(before)
    assert (only(patch).name, only(again).name) == ("jit_train_step", "jit_again")
    assert len(seen) >= 3


def test_a_jax_without_the_function(monkeypatch: pytest.MonkeyPatch, arguments: tuple[jax.Array, jax.Array]) -> None:
    monkeypatch.setattr(private, "_COMPILE", "no_such_function")
    with pytest.warns(HlorewriteWarning, match="patch_jit does nothing: this version of JAX"), \
            hlorewrite.patch_jit("comm") as patch:
        jax.jit(manual_step())(*arguments)
    assert patch.records == ()


def test_a_decorated_step_is_rewritten_once(arguments: tuple[jax.Array, jax.Array]) -> None:
    with hlorewrite.patch_jit("comm") as patch:
        step = hlorewrite.optimize(jax.jit(manual_step()), passes="comm-shift", check="first_call")
        step(*arguments)
    assert patch.records == ()
    assert step.lower(*arguments).report.changed


def test_ahead_of_time_donation_and_callbacks(arguments: tuple[jax.Array, jax.Array]) -> None:
    """What JAX adds around a module stays: donated buffers, callbacks, the shardings of a compiled function."""
    seen: list[float] = []

    def step(weights: jax.Array, batches: jax.Array) -> jax.Array:
        out = manual_step()(weights, batches)
        jax.debug.callback(lambda x: seen.append(float(x)), jnp.sum(out))
        return out
    plain = jax.jit(step, donate_argnums=0).lower(*arguments).compile()
    with hlorewrite.patch_jit("comm", "step") as patch:
        compiled = jax.jit(lambda *a: step(*a), donate_argnums=0).lower(*arguments).compile()
        named = jax.jit(step, donate_argnums=0)
        result = named(jnp.array(arguments[0]), arguments[1])
    jax.effects_barrier()
    assert seen == [pytest.approx(float(jnp.sum(result)), rel=1e-5)] * len(seen)
    assert seen
    assert compiled.input_shardings == plain.input_shardings
    assert all(record.outcome == "rewritten" for record in patch.records)


def test_threads_that_compile_at_once(arguments: tuple[jax.Array, jax.Array]) -> None:
    expected = jax.jit(manual_step())(*arguments)
    results: dict[int, jax.Array] = {}

    def compile_one(number: int) -> None:
        results[number] = jax.jit(manual_step(f"step{number}"))(*arguments)
    with hlorewrite.patch_jit("comm") as patch:
        threads = [threading.Thread(target=compile_one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(record.name for record in patch.records) == [f"jit_step{number}" for number in range(4)]
    assert {record.outcome for record in patch.records} == {"rewritten"}
    for result in results.values():
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_the_persistent_cache_keeps_both(tmp_path: Any, arguments: tuple[jax.Array, jax.Array]) -> None:
    """Rewritten and original have entries of their own, and each is found again."""
    from jax.experimental.compilation_cache import compilation_cache
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    scale = 0.75  # a program that no other test compiles
    try:
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

        def entries() -> int:
            return len([path for path in tmp_path.iterdir() if path.name.startswith("jit_cached")
                        and not path.name.endswith("atime")])
        counts = []
        for patched in (False, True, False, True):
            if patched:
                with hlorewrite.patch_jit("comm"):
                    jax.jit(manual_step("cached", scale))(*arguments)
            else:
                jax.jit(manual_step("cached", scale))(*arguments)
            counts.append(entries())
        assert counts == [1, 2, 2, 2]
    finally:
        jax.config.update("jax_compilation_cache_dir", before[0])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])
        compilation_cache.reset_cache()


@pytest.mark.filterwarnings("ignore:PGLE collected an empty trace")  # of CPUs there is nothing to profile
def test_a_step_that_jax_compiles_again_for_its_profile(arguments: tuple[jax.Array, jax.Array]) -> None:
    """The second compilation, with the profile of the first calls, is rewritten too, and the values stay."""
    before = jax.config.jax_enable_pgle, jax.config.jax_pgle_profiling_runs
    expected = jax.jit(manual_step())(*arguments)
    try:
        jax.config.update("jax_enable_pgle", True)
        jax.config.update("jax_pgle_profiling_runs", 2)
        with hlorewrite.patch_jit("comm") as patch:
            step = jax.jit(manual_step())
            for _ in range(4):
                np.testing.assert_allclose(step(*arguments), expected, rtol=1e-5, atol=1e-6)
    finally:
        jax.config.update("jax_enable_pgle", before[0])
        jax.config.update("jax_pgle_profiling_runs", before[1])
    assert [record.outcome for record in patch.records] == ["rewritten", "rewritten"]
