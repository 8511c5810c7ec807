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
from accumulating_steps import IN_A_BRANCH, STEPS, AccumulatingStep, loss_of
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import InputError, UsageError
from hlorewrite.jaxbridge.decorator.state.new_state import PartialSum, is_partial, parts_of
from hlorewrite.jaxbridge.step.notices import HlorewriteWarning

CALLS = 10
WIDTH = 16


def mesh_of_eight() -> Any:
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def both(step: AccumulatingStep, **options: Any) -> tuple[Any, Any, Any, jax.Array]:
    """The step of ``jax.jit``, that with local sums, its state and a batch."""
    mesh = mesh_of_eight()
    jitted = step.jitted(mesh, **options)
    return jitted, hlorewrite.optimize(jitted, partial_state="data"), *step.arguments(mesh, WIDTH)


def manual(step: AccumulatingStep) -> Callable[[Any, jax.Array], Any]:
    """A step with its reductions written out."""
    def each(state: Any, x: jax.Array) -> Any:
        params, kept = state
        loss, gradients = jax.value_and_grad(loss_of)(params, x)
        gradients = jax.tree.map(lambda g: jax.lax.pmean(g, "data"), gradients)
        return step.update(params, kept, gradients), jax.lax.pmean(loss, "data")
    return jax.shard_map(each, mesh=mesh_of_eight(), in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False)


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


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_calls_agree_and_only_those_that_update_reduce(step: AccumulatingStep):
    plain, partial, state, x = both(step)
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


@pytest.mark.parametrize("step", [IN_A_BRANCH, STEPS[-1]], ids=lambda step: step.name)
def test_a_step_with_its_reductions_written_out(step: AccumulatingStep):
    """``MultiSteps`` stands in a branch of its own there, whose predicate is a constant."""
    plain = jax.jit(manual(step))
    partial = hlorewrite.optimize(plain, partial_state="data", check="first_call")
    expected, x = step.arguments(mesh_of_eight(), WIDTH)
    found = expected
    for call in range(CALLS):
        expected, found = plain(expected, x + call)[0], partial(found, x + call)[0]
    assert len(sums_in(found)) == 2
    close(expected, partial.whole(found))


def test_donated_sums_are_taken_and_named_when_they_come_again():
    _, partial, state, x = both(IN_A_BRANCH, donate_argnums=0)
    first, _ = partial(*partial.place(state, x))
    parts = [each.parts for each in sums_in(first)]
    used = partial.lower(state, x).compile().memory_analysis()
    assert used.alias_size_in_bytes == used.argument_size_in_bytes - x.nbytes // 8, "all that is donated is used"
    partial(first, x)
    assert all(each.is_deleted() for each in parts)
    with pytest.raises(UsageError, match="was donated to an earlier call, or deleted"):
        partial(first, x)


def test_whole_sums_are_divided_and_local_ones_come_back():
    _, partial, state, x = both(IN_A_BRANCH)
    middle, _ = partial(state, x)
    whole = partial.whole(middle)
    assert not sums_in(whole) and whole[1][0]["w"].sharding.is_equivalent_to(NamedSharding(mesh_of_eight(), P()), 2)
    (placed, _), (again, _) = partial.place(whole, x), partial.place(middle, x)
    assert sums_in(again)[0].parts is sums_in(middle)[0].parts, "nothing is moved"
    np.testing.assert_array_equal(np.asarray(sums_in(placed)[0].parts)[1:], 0)
    close(partial.whole(partial(placed, x)[0]), partial.whole(partial(middle, x)[0]))
    assert partial.in_shardings(whole, x)[0][0][1][0]["w"].spec == P("data", None, None)
    assert partial.out_shardings(whole, x)[0][1][0]["w"].spec == P("data", None, None)


def test_a_checkpoint_with_local_sums_goes_on_in_a_new_function(tmp_path: Path):
    ocp = pytest.importorskip("orbax.checkpoint")
    _, partial, state, x = both(IN_A_BRANCH)
    middle, _ = partial(state, x)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", middle)
        checkpointer.wait_until_finished()
        wanted = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), middle)
        restored = checkpointer.restore(tmp_path / "state", wanted)
    assert len(sums_in(restored)) == 2
    _, fresh, _, _ = both(IN_A_BRANCH)
    close(fresh.whole(fresh(restored, x)[0]), partial.whole(partial(middle, x)[0]))


def test_other_functions_take_the_sum():
    _, partial, state, x = both(IN_A_BRANCH)
    middle, _ = partial(state, x)
    value = middle[1][0]["w"]
    assert (value.shape, value.ndim, value.dtype) == ((WIDTH, WIDTH), 2, jnp.float32)
    norm = jax.jit(lambda state: jnp.linalg.norm(state[1][0]["w"].whole()))
    expected = np.asarray(value.whole())
    np.testing.assert_allclose(norm(middle), np.linalg.norm(expected), rtol=1e-5)
    np.testing.assert_allclose(jnp.abs(value), np.abs(expected), rtol=1e-5)


def test_parts_add_up_to_the_array():
    sharding = NamedSharding(mesh_of_eight(), P("data", None))
    value = PartialSum(parts_of(np.arange(4.0, dtype=np.float32), sharding))
    assert value.parts.shape == (8, 4) and value.sharding.spec == P(None)
    np.testing.assert_array_equal(value.whole(), np.arange(4.0))


def test_switched_off_the_original_runs_on_whole_sums(monkeypatch: pytest.MonkeyPatch):
    plain, partial, state, x = both(IN_A_BRANCH)
    middle, _ = partial(state, x)
    monkeypatch.setenv("HLOREWRITE", "0")
    _, off, _, _ = both(IN_A_BRANCH)
    found, _ = off(middle, x)
    assert not sums_in(found)
    close(found, plain(plain(state, x)[0], x)[0])


def test_a_step_that_reads_its_sum_in_each_call_stays_and_says_so():
    def step(state: Any, x: jax.Array) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(state[0], x)
        params, (total, calls) = IN_A_BRANCH.update(*state, gradients)
        return (params, (total, calls)), loss + optax.tree.norm(total)
    mesh = mesh_of_eight()
    partial = hlorewrite.optimize(jax.jit(step, out_shardings=NamedSharding(mesh, P())), partial_state="data")
    _, _, state, x = both(IN_A_BRANCH)
    with pytest.warns(HlorewriteWarning, match=r'keeps no local sums over "data": .*its sum is needed in each call'):
        found, _ = partial(state, x)
    assert not sums_in(found)
    middle = both(IN_A_BRANCH)[1](state, x)[0]
    close(partial(middle, x)[0], partial(found, x)[0])


@pytest.mark.parametrize("options, message", [
    ({"shard_update": "data"}, "cannot be used together"),
    ({"plan": "step.plan"}, "a plan cannot store a step with partial_state")])
def test_options_that_do_not_go_together(options: dict[str, str], message: str):
    with pytest.raises(UsageError, match=message):
        hlorewrite.optimize(manual(IN_A_BRANCH), partial_state="data", **options)


def test_another_axis_is_an_error():
    with pytest.raises(InputError, match='no axis "model"; its axes are: data'):
        hlorewrite.optimize(manual(IN_A_BRANCH), partial_state="model")(*IN_A_BRANCH.arguments(mesh_of_eight(), WIDTH))
