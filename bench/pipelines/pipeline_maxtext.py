"""MaxText's llama layers in four stages on four processes, next to one jit: losses, a checkpoint, a killed process.

    python bench/pipelines/pipeline_maxtext.py                    # needs MaxText and orbax in the same environment
    python bench/pipelines/pipeline_maxtext.py --steps 10 --save 5

Eight layers of ``maxtext.models.llama2.LlamaDecoderLayer``, stacked and scanned, at small width, with an embedding
before and a head after them; optax's chain of a clip by global norm and adamw. The first run saves at a step, and
then a process is killed; the second restores and goes on. All losses are compared with those of one jit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"

import jax
import jax.numpy as jnp
import numpy as np

import hlorewrite

PROCESSES, LAYERS, WIDTH, VOCAB, SEQ, ROWS, MICROBATCHES = 4, 8, 64, 256, 32, 16, 4
_CONFIG = f"""run_name=t base_output_directory=unused dataset_type=synthetic enable_checkpointing=False hardware=cpu
    enable_goodput_recording=False skip_jax_distributed_system=True attention=dot_product base_emb_dim={WIDTH}
    base_num_query_heads=4 base_num_kv_heads=4 head_dim=16 base_mlp_dim=128 base_num_decoder_layers={LAYERS}
    vocab_size={VOCAB} max_target_length={SEQ} per_device_batch_size={ROWS // MICROBATCHES} dtype=float32
    weight_dtype=float32 scan_layers=True"""


class LlamaModel:
    """MaxText's layers between an embedding and a head."""

    def __init__(self) -> None:
        import maxtext
        from flax import nnx
        from maxtext.common.common_types import MODEL_MODE_TRAIN
        from maxtext.configs import pyconfig
        from maxtext.models.llama2 import LlamaDecoderLayer

        base = os.path.join(os.path.dirname(maxtext.__file__), "configs", "base.yml")
        config = pyconfig.initialize(["pipeline_maxtext", base, *_CONFIG.split()])
        self.axes = tuple(config.mesh_axes)
        one = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(self.axes)), self.axes)
        layers = [nnx.split(LlamaDecoderLayer(config, MODEL_MODE_TRAIN, one, nnx.Rngs(seed)), nnx.Param, ...)
                  for seed in range(LAYERS)]
        self.rest = jax.tree.map(_on_host, layers[0][2])
        self.graph, self.merge, self.mode = layers[0][0], nnx.merge, MODEL_MODE_TRAIN
        keys = jax.random.split(jax.random.key(1), 2)
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]),
                               *(params for _, params, _ in layers))
        self.params = {"embed": np.asarray(0.05 * jax.random.normal(keys[0], (VOCAB, WIDTH))), "layers": stacked,
                       "head": np.asarray(0.05 * jax.random.normal(keys[1], (WIDTH, VOCAB)))}

    def loss(self, params: Any, tokens: jax.Array) -> jax.Array:
        """Cross entropy of the next token; tokens [rows, length + 1]."""
        given, wanted = tokens[:, :-1], tokens[:, 1:]
        segments = jnp.ones(given.shape, jnp.int32)
        positions = jnp.broadcast_to(jnp.arange(given.shape[1]), given.shape)

        def layer(x: jax.Array, own: Any) -> tuple[jax.Array, None]:
            x = hlorewrite.stage_layers(x, PROCESSES)
            return self.merge(self.graph, own, self.rest)(x, segments, positions, True, self.mode)[0], None

        x, _ = jax.lax.scan(layer, params["embed"][given], params["layers"])
        x = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x @ params["head"]), wanted[..., None], -1))


def _on_host(leaf: Any) -> Any:
    """A number generator's state, which no layer reads without dropout, as NumPy's."""
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)


def train_step(model: LlamaModel) -> tuple[Any, Any]:
    """(the step, its first state): a clip by global norm and adamw."""
    import optax

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3))

    def step(state: Any, tokens: jax.Array) -> tuple[Any, jax.Array]:
        params, memory = state
        loss, grads = hlorewrite.mean_over_microbatches(
            lambda rows: jax.value_and_grad(model.loss)(params, rows), tokens, MICROBATCHES)
        updates, memory = optimizer.update(grads, memory, params)
        return (optax.apply_updates(params, updates), memory), loss

    return step, (model.params, jax.tree.map(np.asarray, optimizer.init(model.params)))


def batch(number: int) -> np.ndarray:
    """The tokens of a step: of few patterns, so that something can be learnt."""
    random = np.random.RandomState(number % 7)
    return (random.randint(0, 16, (ROWS, 1)) * 5 + np.arange(SEQ + 1) * random.randint(1, 4, (ROWS, 1))) % VOCAB


def run_whole(steps: int) -> list[float]:
    """Losses of one jit."""
    step, state = train_step(LlamaModel())
    jitted, losses = jax.jit(step, donate_argnums=0), []
    for number in range(steps):
        state, loss = jitted(state, batch(number))
        losses.append(float(loss))
    return losses


def run_process(work: dict[str, Any], process: int) -> None:
    """One process of the pipeline; prints the loss of each step."""
    import orbax.checkpoint as ocp

    from hlorewrite.jaxbridge.processes.join import join

    join(work["coordinator"], PROCESSES, process, 300.0)
    model = LlamaModel()
    step, state = train_step(model)
    pipelined = hlorewrite.pipeline(step, meshes=[(1,) * len(model.axes)] * PROCESSES, axes=model.axes,
                                    donate_argnums=0, timeout_s=300.0)
    checkpointer = ocp.Checkpointer(ocp.StandardCheckpointHandler())
    if work["first"]:
        like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
                            pipelined.to_global(state))
        state = checkpointer.restore(work["file"], args=ocp.args.StandardRestore(like))
    elif process == 0:
        lowered = pipelined.lower(state, batch(0))
        print(json.dumps({"state": [(each.mesh, each.before, each.after) for each in lowered.state()]}), flush=True)
    for number in range(work["first"], work["last"]):
        begin = time.perf_counter()
        state, loss = pipelined(state, batch(number))
        value = float(pipelined.fetch(loss))
        print(json.dumps({"step": number, "loss": value, "seconds": time.perf_counter() - begin}), flush=True)
        if number + 1 == work["save"]:
            checkpointer.save(work["file"], args=ocp.args.StandardSave(pipelined.to_global(state)))
        if number + 1 == work["kill"] and process == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def run_processes(**work: Any) -> tuple[list[dict[str, Any]], list[int]]:
    """What process 0 prints, and the exit code of each."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        work["coordinator"] = f"localhost:{probe.getsockname()[1]}"
    started = [subprocess.Popen([sys.executable, __file__, "--work", json.dumps(work), "--process", str(process)],
                                stdout=subprocess.PIPE if process == 0 else subprocess.DEVNULL, text=True)
               for process in range(PROCESSES)]
    out, _ = started[0].communicate()
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], [each.wait() for each in started]


def main() -> int:
    """Runs both halves and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--save", type=int, default=25)
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    parser.add_argument("--process", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        run_process(json.loads(given.work), given.process)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "state")
        before, codes = run_processes(first=0, last=given.steps, save=given.save, kill=given.save + 3, file=file)
        print(f"killed after step {given.save + 3}: exit codes {codes}")
        after, codes = run_processes(first=given.save, last=given.steps, save=0, kill=0, file=file)
        print(f"restored at step {given.save}: exit codes {codes}")
    print("state", next(each["state"] for each in before if "state" in each))
    losses = {each["step"]: each["loss"] for each in (*before, *after) if "step" in each}
    expected = run_whole(given.steps)
    worst = max(abs(losses[number] - want) / abs(want) for number, want in enumerate(expected))
    print(f"{len(losses)} losses from {losses[0]:.4f} to {losses[given.steps - 1]:.4f}; one jit {expected[-1]:.4f}; "
          f"largest difference {worst:.2e} relative")
    return int(worst > 1e-3 or codes != [0] * PROCESSES)


if __name__ == "__main__":
    sys.exit(main())
