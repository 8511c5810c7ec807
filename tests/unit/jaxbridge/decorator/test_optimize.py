"""The decorator: same behaviour as jax.jit in everything but the rewritten ops, and jax.jit itself untouched."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import HlorewriteError, PassFailed, UsageError, ValuesDiffer
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.decorator.optimize import HlorewriteWarning, OptimizedFunction, optimize
from hlorewrite.jaxbridge.step.no_rewrite import no_rewrite
from hlorewrite.passmanager.base import Pass, PassContext

pytestmark = pytest.mark.filterwarnings("ignore:.*contains no collective")


@dataclass(frozen=True)
class SineToCosine(Pass):
    """Makes every sine a cosine, so that a rewritten run is distinguished from an original one."""

    name = "sine-to-cosine"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Replaces the ops."""
        editor = ctx.editor(module)
        ops = editor.view.ops("stablehlo.sine")
        for op in ops:
            made = editor.create("stablehlo.cosine", list(op.operands), [op.results[0].type], location=op.location,
                                 before=op)
            editor.replace(op.results[0], made.results[0])
            editor.erase(op)
        return bool(ops)


@dataclass(frozen=True)
class DropReductions(Pass):
    """Replaces each all-reduce by its operand: a wrong pass, and a way to see which ones a pass can see."""

    name = "drop-reductions"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Removes the ops."""
        editor = ctx.editor(module)
        ops = editor.view.ops("stablehlo.all_reduce")
        for op in ops:
            editor.replace(op.results[0], op.operands[0])
            editor.erase(op)
        return bool(ops)


@dataclass(frozen=True)
class Refuse(Pass):
    """Refuses every module."""

    name = "refuse"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Raises."""
        raise PassFailed("this pass refuses", hint="leave it out")


COSINE = SineToCosine()
rewritten = functools.partial(optimize, passes=COSINE)


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def summed(scope: Any = None):
    """psum over eight devices, optionally inside a scope."""
    def local(x):
        if scope is None:
            return jax.lax.psum(x, "data")
        with scope():
            return jax.lax.psum(x, "data")
    return jax.jit(jax.shard_map(local, mesh=mesh(), in_specs=P("data"), out_specs=P(), check_vma=False))


def test_the_users_function_and_its_lowering_stay_untouched():
    plain = jax.jit(lambda x: jnp.sin(x) * 2)
    x = jnp.float32(0.5)
    text = plain.lower(x).as_text()
    changed = rewritten(plain)
    assert np.allclose(changed(x), 2 * np.cos(0.5))
    assert plain.lower(x).as_text() == text
    assert np.allclose(plain(x), 2 * np.sin(0.5))
    assert np.allclose(plain.lower(x).compile()(x), 2 * np.sin(0.5))
    assert np.allclose(changed(x), 2 * np.cos(0.5))  # now on the fast path


def test_all_forms_and_the_wrapped_protocol():
    @optimize
    def bare(x):
        """Doubles."""
        return x + x

    @optimize("inline,canonicalize", static_argnames=("k",))
    def with_options(x, *, k):
        return x * k

    around = optimize(jax.jit(lambda x: jnp.sin(x)), passes=[COSINE, "canonicalize"])
    for function in (bare, with_options, around):
        assert isinstance(function, jax.stages.Wrapped)
        assert isinstance(function, OptimizedFunction)
    assert (bare.__name__, bare.__doc__) == ("bare", "Doubles.")
    assert list(inspect.signature(with_options).parameters) == ["x", "k"]
    assert bare(jnp.float32(2)) == 4
    assert with_options(jnp.float32(2), k=3) == 6
    assert np.allclose(around(jnp.float32(0)), 1)
    assert bare.eval_shape(jnp.zeros((2, 3))).shape == (2, 3)
    assert bare.trace(jnp.zeros(2)).jaxpr.in_avals[0].shape == (2,)


def test_lowered_shows_both_texts_the_diff_and_the_report():
    lowered = rewritten(lambda x: jnp.sin(x)).lower(jax.ShapeDtypeStruct((4,), jnp.float32))
    assert isinstance(lowered, jax.stages.Lowered)
    assert "stablehlo.cosine" in lowered.as_text()
    assert "stablehlo.sine" in lowered.original_text()
    assert "+    %0 = stablehlo.cosine" in lowered.diff()
    assert lowered.report.changed
    assert lowered.report.pipeline.split(",")[0] == "sine-to-cosine"  # the CPU may get a legalising pass after it
    assert np.allclose(lowered.compile()(jnp.zeros(4)), 1)
    assert lowered.out_tree == jax.tree.structure(0)


def test_a_pipeline_that_changes_nothing_gives_jax_its_own_module_back():
    plain = jax.jit(lambda x: jnp.exp(x))
    lowered = rewritten(plain).lower(jnp.zeros(3))
    assert not lowered.report.changed
    assert lowered.diff() == ""
    assert lowered.as_text() == plain.lower(jnp.zeros(3)).as_text()


def test_methods_get_their_object():
    class Model:
        scale = 3.0

        @functools.partial(optimize, passes=COSINE, static_argnums=0)
        def step(self, x):
            """One step."""
            return jnp.sin(x) * self.scale

    model = Model()
    assert np.allclose(model.step(jnp.float32(0)), 3)
    assert "cosine" in model.step.lower(jnp.float32(0)).as_text()
    assert model.step.__doc__ == "One step."


def test_donation_static_keyword_unused_and_weak_arguments():
    def step(state, unused, scale=1.0, *, power, offset=None):
        out = jnp.sin(state) * scale + power
        return out if offset is None else out + offset

    options: dict[str, Any] = {"donate_argnums": 0, "static_argnames": ("power",)}
    plain, changed = jax.jit(step, **options), rewritten(jax.jit(step, **options))
    ours, theirs = jnp.zeros(4), jnp.full(4, np.pi / 2, jnp.float32)
    for scale in (2, 2.0, np.float32(2), jnp.float32(2)):
        for offset in (None, 1, jnp.arange(4)):
            a, b = changed(ours + 0, 5, scale, power=3, offset=offset), \
                plain(theirs + 0, 5, scale, power=3, offset=offset)
            assert np.allclose(a, b)
            assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
    changed(ours, 5, power=2)
    assert ours.is_deleted()
    assert np.allclose(changed(jnp.zeros(4), 5, power=7), 8)
    with pytest.raises(TypeError):
        changed(jnp.zeros(4))


def test_shardings_are_kept_and_each_signature_compiles_once():
    sharding = NamedSharding(mesh(), P("data"))
    plain = jax.jit(lambda x: jnp.sin(x), in_shardings=sharding, out_shardings=sharding)
    changed = rewritten(plain)
    x = jax.device_put(jnp.zeros((8, 2)), sharding)
    for _ in range(3):
        assert changed(x).sharding.is_equivalent_to(sharding, 2)
    changed(jax.device_put(jnp.zeros((16, 2)), sharding))
    assert len(changed._known) == 2
    changed.clear_cache()
    assert not changed._known
    assert np.allclose(changed(x), 1)


def test_prng_keys_pytrees_and_closed_over_constants():
    table = jnp.arange(4.0)

    def step(key, tree):
        return {"out": jnp.sin(tree["x"]) + table, "key": jax.random.split(key)[0], "none": None}

    key = jax.random.key(0)
    made = rewritten(step)(key, {"x": jnp.zeros(4), "empty": ()})
    again = rewritten(step)(key, {"x": jnp.zeros(4), "empty": ()})
    assert np.allclose(made["out"], 1 + table)
    assert made["none"] is None
    assert (jax.random.key_data(made["key"]) == jax.random.key_data(jax.random.split(key)[0])).all()
    assert np.allclose(again["out"], made["out"])


def test_effects_happen_on_every_call(capfd: pytest.CaptureFixture[str]):
    seen: list[float] = []

    @rewritten
    def step(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x, ordered=True)
        jax.debug.print("value {x}", x=x)
        host = jax.pure_callback(lambda v: np.float32(v + 1), jax.ShapeDtypeStruct((), jnp.float32), x)
        return jnp.sin(x) + host

    for number in range(3):
        assert np.allclose(step(jnp.float32(number)), np.cos(number) + number + 1, atol=1e-6)
    jax.effects_barrier()
    assert seen == [0, 1, 2]
    assert capfd.readouterr().out.count("value") == 3


def test_references_run_unrewritten_as_ahead_of_time_compilation_lacks_them():
    reference = jax.new_ref(jnp.zeros(()))

    def step(x):
        reference[...] += x
        return jnp.sin(x)

    changed = rewritten(step)
    changed(jnp.float32(1))
    changed(jnp.float32(2))
    assert reference[...] == 3


def test_under_a_transformation_the_original_runs_and_says_so_once():
    changed = rewritten(lambda x: jnp.sin(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.allclose(jax.grad(changed)(1.0), np.cos(1.0))
        assert np.allclose(jax.vmap(changed)(jnp.zeros(3)), 0)
        assert np.allclose(jax.jit(lambda x: changed(x))(0.0), 0)
    told = [w for w in caught if "inside a transformation" in str(w.message)]
    assert len(told) == 1
    assert told[0].category is HlorewriteWarning
    assert told[0].filename == __file__
    assert np.allclose(changed(0.0), 1)


def test_the_kill_switch_runs_the_original(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HLOREWRITE", "0")
    changed = rewritten(lambda x: jnp.sin(x))
    assert np.allclose(changed(jnp.zeros(2)), 0)
    assert "HLOREWRITE=0" in str(changed.lower(jnp.zeros(2)).report)
    monkeypatch.delenv("HLOREWRITE")
    assert np.allclose(changed(jnp.zeros(3)), 1)


def test_errors_raise_or_fall_back_with_one_warning():
    with pytest.raises(HlorewriteError, match="refuses"):
        optimize(lambda x: jnp.sin(x), passes=Refuse())(0.0)
    falls = optimize(lambda x: jnp.sin(x), passes=Refuse(), on_error="fallback")
    with pytest.warns(HlorewriteWarning, match="runs unrewritten: this pass refuses") as caught:
        assert np.allclose(falls(0.0), 0)
        assert np.allclose(falls(jnp.zeros(3)), 0)
    assert len(caught) == 1


def test_first_call_check_finds_a_wrong_pass_and_passes_a_right_one():
    x = jnp.arange(8.0)
    wrong = optimize(summed(), passes=DropReductions(), check="first_call")
    with pytest.raises(ValuesDiffer, match=r"output 0 of .* differs after rewriting: by .*, where rounding explains"):
        wrong(x)
    right = optimize(jax.jit(lambda s: {"a": s + 1}, donate_argnums=0), passes="canonicalize", check="first_call")
    assert np.allclose(right(x)["a"], np.arange(8) + 1)


def accumulated():
    """A sum over eight devices of a sum over four micro-batches, and an argument that JAX leaves out."""
    def local(weights, batches, unused):
        def body(total, batch):
            return total + jax.lax.psum(jnp.tanh(batch @ weights).sum(0), "data"), ()
        return jax.lax.scan(body, jnp.zeros(8, jnp.float32), batches)[0]
    return jax.jit(jax.shard_map(local, mesh=mesh(), in_specs=(P(), P(None, "data"), P()), out_specs=P(),
                                 check_vma=False))


def test_a_first_call_check_says_which_output_is_nearest_to_its_bound():
    batches = jax.random.normal(jax.random.key(0), (4, 64, 8), jnp.float32)
    weights = jax.random.normal(jax.random.key(1), (8, 8), jnp.float32)
    with jax.set_mesh(mesh()):
        step = optimize(accumulated(), passes="comm-shift", check="first_call", keep="always")
        step(weights, jax.device_put(batches, NamedSharding(mesh(), P(None, "data"))), jnp.zeros(3))
    (sentence,) = step.first_call
    difference, bound = re.fullmatch(r"nearest to its bound: output 0, (\S+) of (\S+)", sentence).groups()
    assert 0 < float(difference) <= float(bound) < 1e-2
    sorting = optimize(lambda x: jnp.sort(jnp.sin(x)), passes=COSINE, check="first_call")
    sorting(jnp.full(4, np.pi / 4, jnp.float32))
    assert sorting.first_call == ("output 0 is compared with a tolerance, no bound: " + sorting.first_call[0].split(
        "no bound: ")[1],) and "sort" in sorting.first_call[0]


def test_a_proof_is_reported_and_its_lack_is_warned_of():
    x = jnp.arange(8.0)
    wrong = optimize(summed(), passes=DropReductions(), check="proof")
    with pytest.warns(HlorewriteWarning, match=r"is rewritten without a proof \(unknown: output 0 is"):
        report = wrong.lower(x).report
        wrong(x)
    assert report.proof.startswith("unknown: ")
    with warnings.catch_warnings():
        warnings.simplefilter("error", HlorewriteWarning)
        right = optimize(summed(), passes="rules", check="proof")
        assert right.lower(x).report.proof == ("proved" if right.lower(x).report.changed else "")


def test_a_first_call_check_keeps_donation():
    step = optimize(jax.jit(lambda s: (jnp.sin(s), s * 0 + 5), donate_argnums=0), passes=COSINE, check="first_call")
    state = jnp.full(4, np.pi / 4, jnp.float32)  # where sine and cosine agree
    step(state)
    assert state.is_deleted()


def test_no_rewrite_parts_are_invisible_to_passes():
    x = jnp.arange(8.0)
    assert np.allclose(optimize(summed(), passes=DropReductions())(x)[0], 0)
    kept = optimize(summed(no_rewrite), passes=DropReductions())
    assert np.allclose(kept(x), 28)
    assert kept.lower(x).report.executed_bytes_after == {"all_reduce": 4}


def test_a_step_without_collectives_says_so_once():
    with pytest.warns(HlorewriteWarning, match="contains no collective") as caught:
        step = optimize(lambda x: x + 1, passes="canonicalize")
        step(jnp.zeros(2))
        step(jnp.zeros(3))
    assert len(caught) == 1


@pytest.mark.parametrize(("make", "words"), [
    (lambda: optimize(jax.jit(jnp.sin), donate_argnums=0), "donate_argnums cannot be given again"),
    (lambda: optimize(jnp.sin, passes="no-such-pass"), 'unknown pass "no-such-pass"'),
    (lambda: optimize(jnp.sin, on_error="ignore"), 'on_error="ignore" is unknown'),  # type: ignore[call-overload]
    (lambda: optimize(jnp.sin, check="always"), 'check="always" is unknown'),  # type: ignore[call-overload]
    (lambda: optimize(optimize(lambda x: x)), "optimized already"),
    (lambda: optimize("inline", passes="inline"), "two pipelines"),
])
def test_misuse_is_named(make: Any, words: str):
    with pytest.raises(UsageError) as caught:
        make()
    assert words in str(caught.value)


def test_clear_caches_empties_ours_too() -> None:
    runs = []

    @dataclass(frozen=True)
    class Counted(SineToCosine):
        """Counts how often it runs."""

        def run(self, module: Module, ctx: PassContext) -> bool:
            runs.append(module.name)
            return super().run(module, ctx)
    step = optimize(jax.jit(jnp.sin), passes=Counted())
    for calls in (1, 2):
        assert step(1.0) == step(1.0) == jnp.cos(1.0)
        assert len(runs) == calls and step._known.cache_info() == "1 signatures"
        jax.clear_caches()
        assert step._known.cache_keys() == []


def test_check_of_xlas_own_passes():
    report = optimize(summed(), passes="rules", check="xla").lower(jnp.arange(8.0)).report
    assert report.proof in ("proved", "proved up to rounding of constants", "equal on inputs")
