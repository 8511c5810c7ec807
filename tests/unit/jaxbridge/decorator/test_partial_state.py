"""Steps that keep gradients accumulated across calls as local sums: values, layouts, checkpoints, errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.decorator.notices import HlorewriteWarning
from hlorewrite.jaxbridge.decorator.partial_sum import PartialSum, is_partial, parts_of

CALLS = 10
WIDTH = 16


def mesh_of_eight() -> Any:
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss_of(params: Any, x: jax.Array) -> jax.Array:
    return jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** 2)


def by_hand(state: Any, x: jax.Array) -> tuple[Any, jax.Array]:
    """Adds up four gradients, then updates and starts over, in a branch."""
    params, total, calls = state
    loss, gradients = jax.value_and_grad(loss_of)(params, x)
    total = jax.tree.map(jnp.add, total, gradients)

    def update(params: Any, total: Any) -> Any:
        return jax.tree.map(lambda p, t: p - 0.1 * t / 4, params, total), jax.tree.map(jnp.zeros_like, total)
    params, total = jax.lax.cond(calls == 3, update, lambda params, total: (params, total), params, total)
    return (params, total, jnp.where(calls == 3, 0, calls + 1)), loss


def like_keras(state: Any, x: jax.Array) -> tuple[Any, jax.Array]:
    """Adds up four gradients and computes an update in each call; conditions choose what is kept."""
    params, velocity, total, calls = state
    loss, gradients = jax.value_and_grad(loss_of)(params, x)
    last = calls == 3

    def chosen(new: Any, old: Any) -> Any:
        return jax.lax.cond(last, lambda: new, lambda: old)
    mean = chosen(jax.tree.map(lambda t, g: (t + g) / 4, total, gradients), gradients)
    total = chosen(jax.tree.map(jnp.zeros_like, total), jax.tree.map(jnp.add, total, gradients))
    faster = jax.tree.map(lambda v, g: 0.9 * v + g * jax.lax.rsqrt(g * g + 1e-3), velocity, mean)
    moved = jax.tree.map(lambda p, v: p - 0.1 * v, params, faster)
    return (chosen(moved, params), chosen(faster, velocity), total, jnp.where(last, 0, calls + 1)), loss


def with_optax(optimizer: optax.GradientTransformation) -> Callable[..., Any]:
    steps = optax.MultiSteps(optimizer, 4)

    def step(state: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        params, kept = state
        loss, gradients = jax.value_and_grad(loss_of)(params, x)
        updates, kept = steps.update(gradients, kept, params)
        return (optax.apply_updates(params, updates), kept), loss
    return step


def parameters() -> Any:
    return {"w": jnp.full((WIDTH, WIDTH), 0.1), "b": jnp.zeros(WIDTH)}


def zeros() -> Any:
    return jax.tree.map(jnp.zeros_like, parameters())


def initial(optimizer: optax.GradientTransformation) -> Any:
    return parameters(), optax.MultiSteps(optimizer, 4).init(parameters())


CLIPPED = optax.chain(optax.clip_by_global_norm(0.01), optax.adamw(1e-2))
STEPS: dict[str, tuple[Callable[..., Any], Any]] = {
    "by hand": (by_hand, (parameters(), zeros(), jnp.int32(0))),
    "like Keras": (like_keras, (parameters(), zeros(), zeros(), jnp.int32(0))),
    "MultiSteps, sgd": (with_optax(optax.sgd(0.1, 0.9)), initial(optax.sgd(0.1, 0.9))),
    "MultiSteps, adamw": (with_optax(optax.adamw(1e-2)), initial(optax.adamw(1e-2))),
    "MultiSteps, clipped": (with_optax(CLIPPED), initial(CLIPPED)),
}


def both(name: str, manual: bool = False, **options: Any) -> tuple[Any, Any, Any, jax.Array]:
    """The step of ``jax.jit``, that with local sums, its state and a batch."""
    mesh = mesh_of_eight()
    fun, state = STEPS[name]
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    if manual:
        def inside(state: Any, x: jax.Array) -> Any:
            return fun(state, x)

        def averaged(params: Any, x: jax.Array) -> jax.Array:
            return jax.lax.pmean(loss_of(params, x), "data")
        fun = manual_step
        assert inside and averaged
    state = jax.device_put(jax.tree.map(jnp.copy, state), whole)
    x = jax.device_put(np.random.default_rng(0).normal(size=(64, WIDTH)).astype(np.float32), rows)
    jitted = jax.jit(fun, out_shardings=None if manual else whole)
    return jitted, hlorewrite.optimize(jitted, partial_state="data", **options), state, x


def manual_step(state: Any, x: jax.Array) -> Any:
    """``by_hand`` with its reduction written out."""
    def each(state: Any, x: jax.Array) -> Any:
        params, total, calls = state
        loss, gradients = jax.value_and_grad(loss_of)(params, x)
        total = jax.tree.map(lambda t, g: t + jax.lax.pmean(g, "data"), total, gradients)

        def update(params: Any, total: Any) -> Any:
            return jax.tree.map(lambda p, t: p - 0.1 * t / 4, params, total), jax.tree.map(jnp.zeros_like, total)
        params, total = jax.lax.cond(calls == 3, update, lambda params, total: (params, total), params, total)
        return (params, total, jnp.where(calls == 3, 0, calls + 1)), jax.lax.pmean(loss, "data")
    return jax.shard_map(each, mesh=mesh_of_eight(), in_specs=(P(), P("data")), out_specs=(P(), P()),
                         check_vma=False)(state, x)


def close(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


def sums_in(tree: Any) -> list[PartialSum]:
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=is_partial) if is_partial(leaf)]


def reductions(text: str) -> tuple[int, int]:
    """All-reduces outside and inside of branches."""
    depth, outside, inside = 0, 0, 0
    branches: list[int] = []
    for line in text.splitlines():
        if "stablehlo.case" in line or "stablehlo.if" in line:
            branches.append(depth)
        if "stablehlo.all_reduce" in line:
            inside, outside = (inside + 1, outside) if branches else (inside, outside + 1)
        depth += line.count("{") - line.count("}")
        while branches and depth <= branches[-1]:
            branches.pop()
    return outside, inside


@pytest.mark.parametrize("name", STEPS)
def test_calls_agree_and_only_those_that_update_reduce(name: str):
    plain, partial, state, x = both(name, check="first_call")
    lowered = partial.lower(state, x)
    outside, inside = reductions(lowered.as_text())
    assert (outside, inside) == (1, 2), "the loss in each call, two gradients in a branch"
    expected, found = state, state
    for call in range(CALLS):
        expected, loss = plain(expected, x + call)
        found, other = partial(found, x + call)
        np.testing.assert_allclose(loss, other, rtol=1e-4)
        assert [each.parts.sharding.spec[0] for each in sums_in(found)] == ["data", "data"]
        whole = partial.whole(found)
        assert jax.tree.structure(whole) == jax.tree.structure(expected)
        close(expected, whole)


def test_a_step_with_its_reductions_written_out():
    plain, partial, state, x = both("by hand", manual=True)
    expected, found = state, state
    for call in range(CALLS):
        expected, found = plain(expected, x + call)[0], partial(found, x + call)[0]
    assert len(sums_in(found)) == 2
    close(expected, partial.whole(found))


def test_donated_sums_are_taken_and_named_when_they_come_again():
    mesh = mesh_of_eight()
    jitted = jax.jit(by_hand, donate_argnums=0, out_shardings=NamedSharding(mesh, P()))
    partial = hlorewrite.optimize(jitted, partial_state="data")
    _, _, state, x = both("by hand")
    first, _ = partial(*partial.place(state, x))
    parts = [each.parts for each in sums_in(first)]
    used = partial.lower(state, x).compile().memory_analysis()
    assert used.alias_size_in_bytes == used.argument_size_in_bytes - x.nbytes // 8, "all that is donated is used"
    partial(first, x)
    assert all(each.is_deleted() for each in parts)
    with pytest.raises(UsageError, match="was donated to an earlier call, or deleted"):
        partial(first, x)


def test_whole_sums_are_divided_and_local_ones_come_back():
    _, partial, state, x = both("by hand")
    middle, _ = partial(state, x)
    whole = partial.whole(middle)
    assert not sums_in(whole) and whole[1]["w"].sharding.is_equivalent_to(NamedSharding(mesh_of_eight(), P()), 2)
    (placed, _), (again, _) = partial.place(whole, x), partial.place(middle, x)
    assert sums_in(again)[0].parts is sums_in(middle)[0].parts, "nothing is moved"
    np.testing.assert_array_equal(np.asarray(sums_in(placed)[0].parts)[1:], 0)
    close(partial.whole(partial(placed, x)[0]), partial.whole(partial(middle, x)[0]))
    assert partial.in_shardings(whole, x)[0][0][1]["w"].spec == P("data", None, None)
    assert partial.out_shardings(whole, x)[0][1]["w"].spec == P("data", None, None)


def test_a_checkpoint_with_local_sums_goes_on_in_a_new_function(tmp_path: Path):
    import orbax.checkpoint
    _, partial, state, x = both("by hand")
    middle, _ = partial(state, x)
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", middle)
        checkpointer.wait_until_finished()
        wanted = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), middle)
        restored = checkpointer.restore(tmp_path / "state", wanted)
    assert len(sums_in(restored)) == 2
    _, fresh, _, _ = both("by hand")
    close(fresh.whole(fresh(restored, x)[0]), partial.whole(partial(middle, x)[0]))


def test_other_functions_take_the_sum():
    _, partial, state, x = both("by hand")
    middle, _ = partial(state, x)
    value = middle[1]["w"]
    assert (value.shape, value.ndim, value.dtype) == ((WIDTH, WIDTH), 2, jnp.float32)
    norm = jax.jit(lambda state: jnp.linalg.norm(state[1]["w"].whole()))
    expected = np.asarray(value.whole())
    np.testing.assert_allclose(norm(middle), np.linalg.norm(expected), rtol=1e-5)
    np.testing.assert_allclose(jnp.abs(value), np.abs(expected), rtol=1e-5)


def test_parts_add_up_to_the_array():
    sharding = NamedSharding(mesh_of_eight(), P("data", None))
    value = PartialSum(parts_of(np.arange(4.0, dtype=np.float32), sharding))
    assert value.parts.shape == (8, 4) and value.sharding.spec == P(None)
    np.testing.assert_array_equal(value.whole(), np.arange(4.0))


def test_switched_off_the_original_runs_on_whole_sums(monkeypatch: pytest.MonkeyPatch):
    plain, partial, state, x = both("by hand")
    middle, _ = partial(state, x)
    monkeypatch.setenv("HLOREWRITE", "0")
    _, off, _, _ = both("by hand")
    found, _ = off(middle, x)
    assert not sums_in(found)
    close(found, plain(plain(state, x)[0], x)[0])


def test_a_step_that_reads_its_sum_in_each_call_stays_and_says_so():
    def step(state: Any, x: jax.Array) -> Any:
        (params, total, calls), loss = by_hand(state, x)
        return (params, total, calls), loss + optax.global_norm(total)
    mesh = mesh_of_eight()
    partial = hlorewrite.optimize(jax.jit(step, out_shardings=NamedSharding(mesh, P())), partial_state="data")
    _, _, state, x = both("by hand")
    with pytest.warns(HlorewriteWarning, match=r'keeps no local sums over "data": .*its sum is needed in each call'):
        found, _ = partial(state, x)
    assert not sums_in(found)
    middle = both("by hand")[1](state, x)[0]
    close(partial(middle, x)[0], partial(found, x)[0])


@pytest.mark.parametrize("options, message", [
    ({"shard_update": "data"}, "cannot be given together"),
    ({"plan": "step.plan"}, "a plan cannot hold a step with partial_state")])
def test_options_that_do_not_go_together(options: dict[str, str], message: str):
    with pytest.raises(UsageError, match=message):
        hlorewrite.optimize(by_hand, partial_state="data", **options)


def test_another_axis_is_an_error():
    plain, _, state, x = both("by hand", manual=True)
    with pytest.raises(hlorewrite.errors.InputError, match='no axis "model"; its axes are: data'):
        hlorewrite.optimize(plain, partial_state="model", on_error="raise")(state, x)
