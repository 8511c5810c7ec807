"""One process of a pipeline that saves its state by orbax, is killed, restores it in another run and goes on.

Arguments: a JSON file of the work, the number of this process. Prints the loss of each step.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[3]), str(Path(__file__).resolve().parent)]

# ruff: noqa: E402
import jax
import jax.numpy as jnp
from jax import lax

import hlorewrite
from hlorewrite.jaxbridge.processes.join import join


def loss_of(params, x, y, stages):
    """Stacked layers on four stages, with a projection of the first stage before them."""
    def layer(h, w):
        return jnp.tanh(hlorewrite.stage_layers(h, stages) @ w), None
    h, _ = lax.scan(layer, x @ params["first"], params["layers"])
    return jnp.mean((h * params["scale"] - y) ** 2)


def step(stages, state, x, y):
    """One step of momentum, with a count of steps."""
    loss, grads = hlorewrite.mean_over_microbatches(
        lambda rows: jax.value_and_grad(loss_of)(state["params"], *rows, stages), (x, y), 4)
    speed = jax.tree.map(lambda v, g: 0.9 * v + g, state["speed"], grads)
    params = jax.tree.map(lambda p, v: p - 0.1 * v, state["params"], speed)
    return {"params": params, "speed": speed, "count": state["count"] + 1}, loss


def first_state():
    """The state before the first step, the same on every process."""
    keys = jax.random.split(jax.random.key(0), 3)
    params = {"first": jax.random.normal(keys[0], (6, 8)), "layers": jax.random.normal(keys[1], (8, 8, 8)) * 0.4,
              "scale": jax.random.normal(keys[2], (8,))}
    return jax.device_get({"params": params, "speed": jax.tree.map(jnp.zeros_like, params), "count": jnp.int32(0)})


def main() -> None:
    """Runs the work."""
    work = json.loads(Path(sys.argv[1]).read_text())
    process = int(sys.argv[2])
    join(work["coordinator"], work["processes"], process, work["timeout_s"])
    pipelined = hlorewrite.pipeline(functools.partial(step, work["stages"]), meshes=[(1,)] * 4, donate_argnums=0,
                                    timeout_s=work["timeout_s"])
    state = first_state()
    batch = (jax.device_get(jax.random.normal(jax.random.key(5), (16, 6))),
             jax.device_get(jax.random.normal(jax.random.key(6), (16, 8))))
    if work["checkpoints"]:
        import orbax.checkpoint as ocp

        checkpointer = ocp.Checkpointer(ocp.StandardCheckpointHandler())
        if work["restore"]:
            wanted = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
                                  pipelined.to_global(state))
            state = checkpointer.restore(work["checkpoints"], args=ocp.args.StandardRestore(wanted))
    for number in range(work["steps"]):
        state, loss = pipelined(pipelined.to_global(state) if number and work["by_global"] else state, *batch)
        print(json.dumps({"loss": float(pipelined.fetch(loss))}), flush=True)
        alone = pipelined.fetch(state["params"]["scale"], to=1)
        assert (alone is None) == (process != 1)
        if number + 1 == work["save_after"]:
            checkpointer.save(work["checkpoints"], args=ocp.args.StandardSave(pipelined.to_global(state)))
            print("saved", flush=True)
            if process == work["who"]:
                print(f"killed at {time.time()}", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
    whole = pipelined.fetch(state)
    print(json.dumps({"count": int(whole["count"]), "sum": float(whole["params"]["layers"].sum())}), flush=True)


if __name__ == "__main__":
    main()
