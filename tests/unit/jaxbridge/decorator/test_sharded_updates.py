"""Steps whose optimizer state is sharded on request: calls, shardings, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sharded_update_step import STEPS, DataParallelStep

import hlorewrite
from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.step.notices import HlorewriteWarning
from hlorewrite.jaxbridge.xla.compile_for import compile_for
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

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
    saved = step.saved(WIDTH)
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


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_ten_calls_are_within_the_rounding_bound(step: DataParallelStep):
    """Each call is compared with the replicated step on the same arguments; no output lacks a bound."""
    mesh = mesh_of_eight()
    params, state, x = step.arguments(mesh, 96)
    for call in range(10):
        sharded = hlorewrite.optimize(step.jitted(mesh), shard_update="data", check="first_call")
        params, state, _ = sharded(params, state, x + call)
        assert not any("no bound" in sentence for sentence in sharded.first_call), sharded.first_call


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_for_gpus_arguments_are_as_computed_and_no_more_is_sent(step: DataParallelStep):
    before = parse(step.exported(256))
    after = before.clone()
    run_passes(after, parse_pipeline("comm-shift,shard-update{axis=data},comm-shift"), PassContext())
    alone, ours = (compile_for(module, parse_target("h200:1x8")) for module in (before, after))
    assert ours.memory.argument == alone.memory.argument - step.saved(256)
    scalars = [one for one in ours.collectives if one.kind == "all-reduce" and one.bytes < 64]
    assert {one.kind for one in ours.collectives} == {"reduce-scatter", "all-gather", "all-reduce"} and scalars


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
    with pytest.raises(UsageError, match=r"argument \[1\]\['odd'\] was donated to an earlier call, or deleted; pass"):
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
    assert sharded._with_states.cache_info() == "1 steps", "restored shards are what it was compiled for"
    found = restored(saved(found, "sharded"), whole)  # and back
    *found, _loss = plain(*found, x)
    close(expected, found)


def test_orbax_restores_into_either_placement(tmp_path: Path):
    ocp = pytest.importorskip("orbax.checkpoint")
    plain, sharded, (params, state, x) = both(STEPS[0])
    whole = NamedSharding(mesh_of_eight(), P())
    shards = sharded.in_shardings(params, state, x)[0][:2]

    def kept(values: Any, name: str, shardings: Any) -> Any:
        """What is restored with other shardings than it was saved with."""
        places = shardings if isinstance(shardings, tuple) else jax.tree.map(lambda _: shardings, values)
        described = jax.tree.map(lambda a, to: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=to), values, places)
        with ocp.StandardCheckpointer() as saver:
            saver.save(tmp_path / name, values)
            saver.wait_until_finished()
            return saver.restore(tmp_path / name, described)

    found, expected = (params, state), copied((params, state))
    for _ in range(3):
        expected = plain(*expected, x)[:2]
    found = kept(plain(*found, x)[:2], "whole", shards)
    assert found[1]["w"].sharding.spec == P("data", None)
    found = kept(sharded(*found, x)[:2], "shards", whole)
    assert found[1]["w"].sharding.is_fully_replicated
    close(expected, plain(*found, x)[:2])


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


OPTIMIZERS = {"clip and adamw": optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2)),
              "MultiSteps": optax.MultiSteps(optax.adamw(1e-2), every_k_schedule=2)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_of_optax_without_annotations(name: str):
    """Nothing but the arguments says what is replicated; accumulators of several calls are sharded too."""
    mesh, optimizer = mesh_of_eight(), OPTIMIZERS[name]

    @jax.jit
    def plain(params: Any, state: Any, x: jax.Array) -> tuple[Any, Any]:
        grads = jax.grad(lambda p: jnp.mean(jnp.tanh(x @ p["w"] + p["b"]) ** 2))(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    params = {"w": jax.random.normal(jax.random.key(1), (16, 24)), "b": jnp.zeros(24)}
    found = expected = jax.device_put((params, optimizer.init(params)), NamedSharding(mesh, P()))
    x = jax.device_put(jax.random.normal(jax.random.key(0), (16, 16)), NamedSharding(mesh, P("data")))
    sharded = hlorewrite.optimize(plain, shard_update="data")
    for call in range(4):
        expected, found = plain(*expected, x + call), sharded(*found, x + call)
    close(expected, found)
    tensors = [leaf for leaf in jax.tree.leaves(found[1]) if leaf.ndim]
    assert len(tensors) >= 4 and not any(leaf.sharding.is_fully_replicated for leaf in tensors)


def test_parameters_that_are_sharded_over_another_axis_are_sharded_over_both():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def step(w: jax.Array, m: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def loss(w: jax.Array) -> jax.Array:
            return jnp.mean(jax.lax.psum(x @ w, "model") ** 2)
        m = 0.9 * m + jax.lax.pmean(jax.grad(loss)(w), "data")
        return w - 0.1 * m, m

    rows = P("model")
    plain = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(rows, rows, P("data", "model")), out_specs=(rows, rows),
                                  check_vma=False))
    sharded = hlorewrite.optimize(plain, shard_update="data")
    w = jax.device_put(jax.random.normal(jax.random.key(1), (16, 3)), NamedSharding(mesh, rows))
    x = jax.random.normal(jax.random.key(0), (8, 16))
    expected, found = (w, w), (w, w)
    for _ in range(3):
        expected, found = plain(*expected, x), sharded(*found, x)
    close(expected, found)
    assert found[1].sharding.spec == P(("model", "data"), None)


def test_a_plan_is_replayed_with_its_shardings(tmp_path: Path):
    for _ in range(2):
        _, sharded, (params, state, x) = both(STEPS[0], plan=tmp_path)
        plan = sharded.lower(params, state, x).report.plan
        found = sharded(params, state, x)[1]["w"]
        assert found.sharding.spec == P("data", None)
    assert "replayed" in plan, plan


# ---- what goes wrong is one line


def test_an_axis_that_the_mesh_lacks_is_one_line():
    plain, _, (params, state, x) = both(STEPS[0])
    line = 'the mesh of the step has no axis "model"; its axes are: data'
    step = hlorewrite.optimize(plain, shard_update="model")
    with pytest.raises(InputError, match=line):
        step(params, state, x)
    expected = plain(*copied((params, state)), x)
    with pytest.warns(HlorewriteWarning, match=f"runs unrewritten: .*{line}"):
        close(expected, hlorewrite.optimize(plain, shard_update="model", on_error="fallback")(params, state, x))


def momentum_step(reduced: Any, gathered: Any, state: Any) -> Any:
    """A step of one parameter by hand."""
    def step(w: jax.Array, m: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        m = 0.9 * m + reduced(jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w))
        return gathered(w, m), m
    return jax.jit(jax.shard_map(step, mesh=mesh_of_eight(), in_specs=(P(), state, P("data")), out_specs=(P(), state),
                                 check_vma=False))


def by_hand(w: jax.Array, m: jax.Array) -> jax.Array:
    """The update of a parameter whose momentum is sharded."""
    own = jax.lax.dynamic_slice_in_dim(w, jax.lax.axis_index("data") * 2, 2)
    return jax.lax.all_gather(own - 0.1 * m, "data", tiled=True)


@pytest.mark.parametrize("rows, reduced, gathered, state, reason", [
    (7, lambda g: jax.lax.pmean(g, "data"), lambda w, m: w - 0.1 * m, P(),
     r"no dimension is divisible by 8, so their state stays whole: result\[0\] \(tensor<7x3xf32>\)"),
    (16, lambda g: jax.lax.psum_scatter(g, "data", tiled=True) / 8, by_hand, P("data"),
     "its gradients are scattered already, or added over other axes"),
    (16, lambda g: g - jax.lax.all_gather(g, "data").mean(0), lambda w, m: w, P(), "no tensor is added up"),
], ids=["uneven", "sharded already", "no sum"])
def test_steps_that_stay_as_they_are_are_one_line(rows: int, reduced: Any, gathered: Any, state: Any, reason: str):
    plain = momentum_step(reduced, gathered, state)
    sharded = hlorewrite.optimize(plain, shard_update="data")
    mesh = mesh_of_eight()
    w = jax.device_put(jax.random.normal(jax.random.key(1), (rows, 3)), NamedSharding(mesh, P()))
    m, x = jnp.zeros((rows, 3)), jax.random.normal(jax.random.key(0), (8, rows))
    m = jax.device_put(m, NamedSharding(mesh, state))
    with pytest.warns(HlorewriteWarning, match=f'shards no optimizer state over "data": .*{reason}') as said:
        found = sharded(*sharded(w, m, x), x)
    assert len(said) == 1
    close(plain(*plain(w, m, x), x), found)
    assert found[1].sharding.spec == state
