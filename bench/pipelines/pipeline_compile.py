"""The first call of a pipelined T5 next to the compilation of its unsplit step, on the cores there are.

    python bench/pipelines/pipeline_compile.py                    # four stages of an encoder and four of a decoder
    python bench/pipelines/pipeline_compile.py --layers 2
    python bench/pipelines/pipeline_compile.py --kernels          # how many kernels XLA generates
    python bench/pipelines/pipeline_compile.py --whole            # without the pass share-fragments

Both compile the same losses and updates; the first call also traces, splits, rewrites and runs one step. The CPU
time is printed too: it says how much is compiled, whatever else the machine does. The time of the thread
that runs later steps is what dispatching costs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import jax
import jax.numpy as jnp

import hlorewrite

WIDTH, HEADS, ROWS, SEQ, VOCAB, MICROBATCHES = 32, 2, 16, 8, 64, 4


def _normal(key: jax.Array, *shape: int) -> jax.Array:
    return 0.05 * jax.random.normal(key, shape)


def init(stages: int, layers: int) -> dict[str, Any]:
    """Parameters of an encoder and a decoder of as many stages each; embeddings are tied."""
    keys = iter(jax.random.split(jax.random.key(0), 1 + 2 * stages * layers * 10))

    def attention() -> dict[str, jax.Array]:
        return {name: _normal(next(keys), WIDTH, WIDTH) for name in ("q", "k", "v", "o")}

    def layer(cross: bool) -> dict[str, Any]:
        made: dict[str, Any] = {"own": attention(), "up": _normal(next(keys), WIDTH, 4 * WIDTH),
                                "down": _normal(next(keys), 4 * WIDTH, WIDTH), "norms": jnp.ones((3, WIDTH))}
        return made | ({"cross": attention()} if cross else {})

    return {"embed": _normal(next(keys), VOCAB, WIDTH),
            "encoder": [[layer(False) for _ in range(layers)] for _ in range(stages)],
            "decoder": [[layer(True) for _ in range(layers)] for _ in range(stages)]}


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def _attend(x: jax.Array, source: jax.Array, p: dict[str, jax.Array], causal: bool) -> jax.Array:
    def heads(y: jax.Array) -> jax.Array:
        return y.reshape(*y.shape[:-1], HEADS, -1)

    scores = jnp.einsum("bqhc,bkhc->bhqk", heads(x @ p["q"]), heads(source @ p["k"]))
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores), heads(source @ p["v"]))
    return mixed.reshape(x.shape) @ p["o"]


def loss_fn(params: dict[str, Any], source: jax.Array, target: jax.Array) -> jax.Array:
    """Mean cross-entropy of the next token of the target."""
    stages = len(params["encoder"])
    x = params["embed"][source]
    for index, layers in enumerate(params["encoder"]):
        x = hlorewrite.stage(x, index)
        for p in layers:
            own = _norm(x, p["norms"][0])
            x = x + _attend(own, own, p["own"], False)
            x = x + jax.nn.relu(_norm(x, p["norms"][1]) @ p["up"]) @ p["down"]
    encoded = x
    y = params["embed"][target[:, :-1]]
    for index, layers in enumerate(params["decoder"]):
        y, encoded = hlorewrite.stage((y, encoded), stages + index)
        for p in layers:
            own = _norm(y, p["norms"][0])
            y = y + _attend(own, own, p["own"], True)
            y = y + _attend(_norm(y, p["norms"][1]), encoded, p["cross"], False)
            y = y + jax.nn.relu(_norm(y, p["norms"][2]) @ p["up"]) @ p["down"]
    logits = jax.nn.log_softmax(y @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits, target[:, 1:, None], -1))


def step(params: dict[str, Any], batch: tuple[jax.Array, jax.Array]) -> tuple[dict[str, Any], jax.Array]:
    """One step of gradient descent."""
    loss, grads = hlorewrite.mean_over_microbatches(
        lambda rows: jax.value_and_grad(loss_fn)(params, *rows), batch, MICROBATCHES)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def measured(stages: int, layers: int, whole: bool) -> dict[str, float]:
    """Seconds of wall and CPU time, the number of compilations, and the relative difference of the losses."""
    params = init(stages, layers)
    keys = jax.random.split(jax.random.key(1), 2)
    batch = (jax.random.randint(keys[0], (ROWS, SEQ), 0, VOCAB), jax.random.randint(keys[1], (ROWS, SEQ), 0, VOCAB))
    jax.block_until_ready((params, batch))
    wall, cpu = time.perf_counter(), time.process_time()
    unsplit = jax.jit(step).lower(params, batch).compile()
    unsplit_s, unsplit_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    expected = unsplit(params, batch)[1]
    pipelined = hlorewrite.pipeline(step, meshes=[(1,)] * (2 * stages), share_fragments=not whole)
    wall, cpu = time.perf_counter(), time.process_time()
    loss = jax.block_until_ready(pipelined(params, batch))[1]
    first_s, first_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    seconds = []
    for _ in range(20):
        begin = time.thread_time()
        made = pipelined(params, batch)
        seconds.append(time.thread_time() - begin)
        jax.block_until_ready(made)
    return {"unsplit_s": unsplit_s, "first_call_s": first_s, "ratio": first_s / unsplit_s,
            "unsplit_cpu_s": unsplit_cpu_s, "first_call_cpu_s": first_cpu_s, "cpu_ratio": first_cpu_s / unsplit_cpu_s,
            "host_ms_a_step": 1e3 * statistics.median(seconds),
            "difference": abs(float(loss) - float(expected)) / abs(float(expected))}


def kernels(folder: Path) -> dict[str, int]:
    """Kernels that XLA generated, one object file each: of the unsplit step, and of all fragments."""
    modules = [file.name.split(".")[1] for file in folder.glob("module_*.obj-file.*.o")]
    return {"step": modules.count("jit_step"),
            "fragments": sum(re.match("(before|forward|backward|update)_", module) is not None for module in modules)}


def main() -> None:
    """Prints the times as JSON, or the numbers of kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, default=4, help="of the encoder, and of the decoder")
    parser.add_argument("--layers", type=int, default=1, help="of each stage")
    parser.add_argument("--kernels", action="store_true", help="count what is generated, instead of times")
    parser.add_argument("--whole", action="store_true", help="fragments stay whole: share_fragments=False")
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2 * args.stages)
    if args.kernels:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={folder}"
            measured(args.stages, args.layers, args.whole)
            print(json.dumps(kernels(Path(folder))))
        return
    print(json.dumps({name: round(value, 9 if name == "difference" else 2)
                      for name, value in measured(args.stages, args.layers, args.whole).items()}))


if __name__ == "__main__":
    main()
