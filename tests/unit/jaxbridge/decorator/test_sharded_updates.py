"""Steps whose optimizer state is sharded on request: calls, shardings, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sharded_update_step import STEPS, DataParallelStep

import hlorewrite
from hlorewrite.errors import InputError, UsageError

WIDTH = 32


def mesh_of_eight() -> Any:
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def both(step: DataParallelStep, **options: Any) -> tuple[Any, Any, tuple]:
    """The replicated step, the sharded one, and arguments."""
    mesh = mesh_of_eight()
    return step.jitted(mesh), hlorewrite.optimize(step.jitted(mesh), shard_update="data", **options), \
        step.arguments(mesh, WIDTH)


def copied(tree: Any) -> Any:
    return jax.tree.map(lambda a: a.copy(), tree)


def close(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        coarse = a.dtype == jnp.bfloat16
        np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=1e-2 if coarse else 1e-4,
                                   atol=1e-3 if coarse else 1e-5)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_ten_calls_agree_and_arguments_shrink(step: DataParallelStep):
    plain, sharded, (params, state, x) = both(step, check="first_call")
    even = [leaf for leaf in jax.tree.leaves(state) if any(size % 8 == 0 for size in leaf.shape)]
    saved = sum(leaf.nbytes - leaf.nbytes // 8 for leaf in even)
    before = plain.lower(params, state, x).compile().memory_analysis().argument_size_in_bytes
    after = sharded.lower(params, state, x).compile().memory_analysis()
    assert after.argument_size_in_bytes == before - saved
    assert saved > 0.8 * sum(a.nbytes for a in jax.tree.leaves(state))
    assert after.alias_size_in_bytes == after.argument_size_in_bytes - x.nbytes // 8, "all that is donated is used"
    expected, found = copied((params, state)), (params, state)
    for call in range(10):
        *expected, loss = plain(*expected, x + call)
        *found, other = sharded(*found, x + call)
        np.testing.assert_allclose(loss, other, rtol=1e-2 if step.dtype == "bfloat16" else 1e-4)
    close(expected, found)
    odd, even_state = found[1].get("odd", None), found[1]
    assert odd is None or odd.sharding.is_fully_replicated
    specs = {leaf.sharding.spec[0] for leaf in jax.tree.leaves(even_state) if leaf.ndim and leaf.shape[0] % 8 == 0}
    assert specs == {"data"} and all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(found[0]))


def test_sharded_state_is_taken_as_it_is_and_replicated_state_is_placed():
    _, sharded, (params, state, x) = both(STEPS[0])
    placed_params, placed, placed_x = sharded.place(params, state, x)
    (_, wanted, _), named = sharded.in_shardings(params, state, x)
    assert named == {} and placed_params["w"] is params["w"] and placed_x is x
    assert jax.tree.map(lambda leaf: leaf.sharding, placed) == wanted and wanted["w"].spec == P("data", None)
    assert sharded.out_shardings(params, state, x)[1]["w"].is_equivalent_to(wanted["w"], 2)
    other = copied((params, {"odd": state["odd"]}))
    first = sharded(params, placed, x)
    assert placed["w"].is_deleted() and params["w"].is_deleted(), "shards are donated as they come"
    with pytest.raises(UsageError, match=r"argument \[1\]\['odd'\] was donated to an earlier call, or deleted; give"):
        sharded(other[0], state, x)
    second = sharded(other[0], state | other[1], x)
    assert not state["w"].is_deleted(), "replicated state is copied into shards"
    close(first, second)


def test_checkpoints_convert_both_ways(tmp_path: Path):
    plain, sharded, (params, state, x) = both(STEPS[1])
    whole = NamedSharding(mesh_of_eight(), P())
    tree = jax.tree.structure((params, state))

    def saved(values: Any, name: str) -> list[np.ndarray]:
        leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(values)]
        np.savez(tmp_path / name, *leaves)
        with np.load(tmp_path / f"{name}.npz") as stored:
            return [stored[f"arr_{place}"] for place in range(len(leaves))]

    def restored(leaves: list[np.ndarray], shardings: Any) -> Any:
        typed = [leaf.astype(old.dtype) for leaf, old in zip(leaves, types, strict=True)]
        return jax.device_put(jax.tree.unflatten(tree, typed), shardings)

    types = jax.tree.leaves(jax.eval_shape(lambda *trees: trees, params, state))
    shardings = sharded.in_shardings(params, state, x)[0][:2]
    expected = copied((params, state))
    for _ in range(4):
        *expected, _loss = plain(*expected, x)
    *found, _loss = plain(params, state, x)
    found = restored(saved(found, "replicated"), shardings)  # into the sharded step
    for _ in range(2):
        *found, _loss = sharded(*found, x)
    assert found[1]["mu"]["w"].sharding.spec == P("data", None)
    found = restored(saved(found, "sharded"), whole)  # and back
    *found, _loss = plain(*found, x)
    close(expected, found)


def test_auto_sharded_steps_are_partitioned_first():
    mesh = mesh_of_eight()
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    def step(w: jax.Array, m: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        m = 0.9 * m + jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        return w - 0.1 * m, m

    options = {"in_shardings": (whole, whole, rows), "out_shardings": (whole, whole)}
    plain, sharded = jax.jit(step, **options), hlorewrite.optimize(jax.jit(step, **options), shard_update="data")
    w = jax.device_put(jnp.ones((16, 4)), whole)
    x = jax.device_put(jax.random.normal(jax.random.key(0), (16, 16)), rows)
    expected, found = (w, jnp.zeros_like(w)), (w, jnp.zeros_like(w))
    for _ in range(3):
        expected, found = plain(*expected, x), sharded(*found, x)
    close(expected, found)
    assert found[1].sharding.spec == P("data", None) and sharded.lower(w, w, x).report.exposed


def test_an_axis_that_the_mesh_lacks_is_one_line():
    _, _, arguments = both(STEPS[0])
    step = hlorewrite.optimize(STEPS[0].jitted(mesh_of_eight()), shard_update="model")
    with pytest.raises(InputError, match='the mesh of the step has no axis "model"; its axes are: data'):
        step(*arguments)
