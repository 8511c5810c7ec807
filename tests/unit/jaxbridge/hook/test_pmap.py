"""``jax.pmap`` through the decorator and the hook: its semantics, the user's names, fewer bytes."""

from __future__ import annotations

import copy
import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlorewrite
from hlorewrite import optimize, patch_jit
from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.hook.patch import matches

DEVICES, WIDTH, MICRO_BATCHES = 8, 16, 4
KEYS = jax.random.split(jax.random.key(0), 3)
WEIGHTS = {"a": jax.random.normal(KEYS[0], (WIDTH, WIDTH)), "b": jax.random.normal(KEYS[1], (WIDTH, 1))}
BATCH = jax.random.normal(KEYS[2], (DEVICES, MICRO_BATCHES, 8, WIDTH))


def loss(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return jnp.mean(jnp.square(jnp.tanh(x @ weights["a"]) @ weights["b"]))


def pmapped(name: str = "train_step", **options: Any) -> Any:
    """A fresh pmap of a step that reduces gradients in each micro-batch."""
    def step(weights: dict[str, jax.Array], xs: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        def body(grads: Any, x: jax.Array) -> tuple[Any, jax.Array]:
            value, grad = jax.value_and_grad(loss)(weights, x)
            return jax.tree.map(jnp.add, grads, jax.lax.pmean(grad, "data")), value
        grads, values = jax.lax.scan(body, jax.tree.map(jnp.zeros_like, weights), xs)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), jax.lax.pmean(jnp.mean(values), "data")
    code = step.__code__.replace(co_name=name, co_qualname=f"pmapped.<locals>.{name}")
    named = types.FunctionType(code, step.__globals__, name, None, step.__closure__)
    return jax.pmap(named, axis_name="data", **options)


def replicated() -> dict[str, jax.Array]:
    return jax.tree.map(lambda w: jnp.stack([w] * DEVICES), WEIGHTS)


def same(ours: Any, theirs: Any) -> None:
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), ours, theirs)


def test_the_decorator_rewrites_a_pmap_and_names_it() -> None:
    wanted, step = pmapped()(replicated(), BATCH), optimize(pmapped(), passes="comm")
    same(step(replicated(), BATCH), wanted)
    (record,) = step.records
    assert (record.name, record.outcome) == ("pmap_train_step", "rewritten")
    assert record.bytes_after < 0.3 * record.bytes_before


def test_lower_is_the_rewritten_lowering() -> None:
    lowered = optimize(pmapped(), passes="comm").lower(replicated(), BATCH)
    assert lowered.report.changed
    same(lowered.compile()(replicated(), BATCH), pmapped()(replicated(), BATCH))


def test_donated_arguments_are_donated() -> None:
    step = optimize(pmapped(donate_argnums=0), passes="comm")
    given, _ = step(replicated(), BATCH)
    step(given, BATCH)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(given))


@pytest.mark.parametrize("match", ["train_step", "pmap_train_step", "train*"])
def test_the_hook_finds_a_pmap_by_the_users_name(match: str) -> None:
    with patch_jit("comm", match=match) as patch:
        same(pmapped()(replicated(), BATCH), pmapped()(replicated(), BATCH))
    assert {record.name for record in patch.records} == {"pmap_train_step"}


def test_the_hook_leaves_another_pmap_alone() -> None:
    with patch_jit("comm", match="eval_step") as patch:
        pmapped()(replicated(), BATCH)
    assert patch.records == ()
    assert not matches("train_step", "pmap_eval_step")


def test_jit_options_are_refused_for_a_pmap() -> None:
    with pytest.raises(UsageError, match="is jitted already, so donate_argnums cannot be given here"):
        optimize(pmapped(), passes="comm", donate_argnums=0)


def test_attributes_of_the_function_do_not_replace_ours() -> None:
    def double(x: jax.Array) -> jax.Array:
        return x + x
    for name in ("_options", "_dispatch", "records", "colour"):
        setattr(double, name, "blue")
    step: Any = optimize(double, passes="comm")
    assert step(jnp.float32(2)) == 4 and step.lower(jnp.float32(2)).report is not None
    assert step.colour == "blue" and step.records == () and step.original.records == "blue"


@pytest.mark.filterwarnings("ignore:.*contains no collective")
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_run_and_lower(copied: Any) -> None:
    step: Any = optimize(jax.jit(lambda x: x + 1), passes="comm")
    step(jnp.float32(1))
    other = copied(step)
    assert other is not step and other(jnp.float32(1)) == 2 and not other.lower(jnp.float32(1)).report.changed
    pmap = copied(optimize(pmapped(), passes="comm"))
    same(pmap(replicated(), BATCH), pmapped()(replicated(), BATCH))
    assert pmap.records[0].outcome == "rewritten"


def test_records_print_without_the_program() -> None:
    step = hlorewrite.optimize(pmapped(), passes="comm")
    step(replicated(), BATCH)
    assert "ENTRY" not in repr(step.records)
