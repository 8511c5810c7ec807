"""``hlorewrite.export``: steps of every library as files, with the user's own names."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import framework_steps
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.errors import UsageError

eqx = pytest.importorskip("equinox")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")
OPTIMIZER = optax.adam(1e-3)


@dataclass
class Settings:
    """No pytree: a leaf that is part of the program."""

    scale: float


@functools.partial(jax.tree_util.register_dataclass, data_fields=["params", "opt_state"], meta_fields=["name"])
@dataclass
class StateOfStep:
    """A train state with a static field."""

    params: Any
    opt_state: Any
    name: str


def over(*axes: str | None) -> NamedSharding:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec(*axes))


def state_and_batch() -> tuple[StateOfStep, jax.Array]:
    params = jax.device_put({"w": jnp.ones((8, 8))}, over())
    return StateOfStep(params, OPTIMIZER.init(params), "run"), jax.device_put(jnp.ones((8, 8)), over("data"))


def train(state: StateOfStep, batch: jax.Array) -> tuple[StateOfStep, dict[str, jax.Array]]:
    loss, grads = jax.value_and_grad(lambda p: jnp.mean(jnp.tanh(batch @ p["w"]) ** 2))(state.params)
    updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)
    return StateOfStep(optax.apply_updates(state.params, updates), opt_state, state.name), {"loss": loss}


STEP = jax.jit(train, donate_argnums=0)
ARGUMENTS = ("state.params['w']", "state.opt_state[0].count", "state.opt_state[0].mu['w']",
             "state.opt_state[0].nu['w']", "batch")


def test_optax_state_is_exported_with_names_donation_and_shardings():
    exported = hlorewrite.export(STEP, *state_and_batch())
    assert exported.arguments == ARGUMENTS
    assert exported.results == (*(name.replace("state", "result[0]", 1) for name in ARGUMENTS[:4]), "result[1]['loss']")
    assert (exported.devices, exported.platforms) == (8, ("cpu",))
    assert "devices=8" in repr(exported) and "data=" not in repr(exported)  # a prompt prints it
    text = exported.text()
    assert text.count("tf.aliasing_output") + text.count("jax.buffer_donor") == 4
    assert 'sdy.mesh @mesh = <["data"=8]>' in text and 'sdy.sharding = #sdy.sharding<@mesh, [{"data"}' in text
    assert "state.opt_state[0].mu['w']" in text and f"{Path(__file__).name}\":" in text


def test_the_file_computes_what_the_step_does():
    state, batch = state_and_batch()
    exported = jax.export.deserialize(bytearray(hlorewrite.export(STEP, state, batch).data))
    plain = ((state.params, tuple(map(tuple, state.opt_state))), batch)
    (params, _), metrics = exported.call(*plain)
    new, wanted = jax.jit(train)(state, batch)
    np.testing.assert_array_equal(params["w"], new.params["w"])
    np.testing.assert_array_equal(metrics["loss"], wanted["loss"])


@pytest.mark.parametrize("ending", [".mlir", ".export"])
def test_subcommands_read_the_file(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / f"step{ending}"
    hlorewrite.export(STEP, *state_and_batch(), path=path)
    assert path.read_bytes().startswith(b"#loc") == (ending == ".mlir")
    rewritten = str(tmp_path / "after.mlir")
    assert guarded(["opt", str(path), "-O", "comm", "-o", rewritten]) == 0
    capsys.readouterr()
    for words in (["report", str(path), "--json"], ["compile", str(path), "--target", "cpu:8", "--json"]):
        assert guarded(words) == 0
        assert json.loads(capsys.readouterr().out)


def test_functions_without_a_jit_keep_static_leaves_in_the_program():
    exported = hlorewrite.export(lambda state, settings, double: state["w"] * settings.scale * (2 if double else 1),
                                 {"w": jnp.ones(3), "name": "run"}, Settings(3.0), double=True)
    assert (exported.arguments, exported.results) == (("state['w']",), ("result",))
    assert jax.export.deserialize(bytearray(exported.data)).call(jnp.ones(3)).tolist() == [6, 6, 6]


class StepAsMethod:
    """A step that is a method."""

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, x: jax.Array) -> jax.Array:
        return x * 2


@pytest.mark.parametrize("step", [hlorewrite.optimize(STEP), hlorewrite.optimize("comm")(train),
                                  functools.partial(STEP)])
def test_wrappers_are_exported_as_the_step_inside(step: Any):
    assert hlorewrite.export(step, *state_and_batch()).arguments == ARGUMENTS


def test_methods_shapes_and_platforms():
    shaped = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=over("data"))
    exported = hlorewrite.export(StepAsMethod().step, shaped, platforms="gpu")
    assert (exported.arguments, exported.platforms, exported.devices) == (("x",), ("cuda",), 8)


def test_nnx_names_are_paths_of_the_objects():
    model, optimizer = framework_steps.network()
    exported = hlorewrite.export(nnx.jit(framework_steps.nnx_step, donate_argnums=0), model, optimizer,
                                 *framework_steps.batch())
    assert exported.arguments[:2] == ("model.bias", "model.kernel")
    assert "optimizer.opt_state[0].mu.kernel" in exported.arguments
    assert exported.results[-1] == "result" and exported.results[1] == "model.kernel"
    assert not [name for name in exported.arguments + exported.results if "states[" in name]
    assert "tf.aliasing_output" in exported.text() or "jax.buffer_donor" in exported.text()


def test_equinox_names_are_paths_of_the_modules():
    model, state = framework_steps.equinox_model()
    exported = hlorewrite.export(eqx.filter_jit(framework_steps.equinox_step), model, state, *framework_steps.batch())
    assert exported.arguments[:2] == ("model.layers[0].weight", "model.layers[0].bias")
    assert exported.arguments[-2:] == ("xs", "ys") and "state[0].mu.layers[0].weight" in exported.arguments
    assert exported.results[:2] == ("equinox.marker", "result[0].layers[0].weight")
    assert not re.search("dynamic_|leaves", " ".join(exported.arguments))


REFERENCE = jax.new_ref(jnp.ones(3))


@jax.jit
def stores(x: jax.Array) -> jax.Array:
    REFERENCE[...] = x
    return x


@jax.jit
def prints(x: jax.Array) -> jax.Array:
    jax.debug.print("{}", x.sum())
    return x


@pytest.mark.parametrize(("step", "args", "options", "where", "message"), [
    (jax.jit(lambda state: state), ({"name": "run"},), {}, "test_export.py",
     "<lambda> cannot take state['name'], which is of type str; name the argument in static_argnames"),
    (prints, (jnp.ones(3),), {}, "test_export.py", "prints calls back to Python, which a file cannot store; export it"),
    (stores, (jnp.ones(3),), {}, "test_export.py", "stores changes references (jax.new_ref) that it closes over"),
    (3, (), {}, "test_export.py", "export takes a step, but got int; write hlorewrite.export("),
    (STEP, (), {"platforms": "cud"}, "test_export.py", 'there is no platform "cud"; did you mean "cuda"?'),
    (eqx.filter_jit(lambda x: x), (jax.ShapeDtypeStruct((3,), jnp.float32),), {}, "test_export.py",
     "which takes jax.ShapeDtypeStruct for a static leaf; pass")])
def test_what_is_refused_names_the_users_line(step: Any, args: tuple, options: dict[str, str], where: str,
                                              message: str):
    with pytest.raises(UsageError) as refused:
        hlorewrite.export(step, *args, **options)
    assert where in (refused.value.location or "") and message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_errors_of_the_step_are_the_users_own():
    with pytest.raises(ZeroDivisionError):
        hlorewrite.export(lambda x: x / (1 // 0), jnp.ones(3))
