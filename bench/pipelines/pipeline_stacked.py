"""A GPT with stacked layers in a ``lax.scan`` next to the same GPT with a list of stages: transfers and memory.

    python bench/pipelines/pipeline_stacked.py                    # eight stages of two layers
    python bench/pipelines/pipeline_stacked.py --stages 4 --target h200
    python bench/pipelines/pipeline_stacked.py --lengths 1,3,2    # stages of one, three and two layers

Both programs come from one model with the same numbers. Transfers are counted, memory is simulated; nothing is
compiled.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

import jax
import jax.numpy as jnp
import pipeline_gpt as gpt  # pyright: ignore[reportMissingImports]
from jax import lax

import hlorewrite
from hlorewrite.pipelines.mpmd.program import Transfer


def stacked_loss(begins: tuple[int, ...], params: dict, tokens: jax.Array, cfg: gpt.PipelinedGptConfig) -> jax.Array:
    """The example's loss, its layers in one scan; stages but the first begin with the layers given."""
    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        x = hlorewrite.stage_layers(x, begins)
        x = x + gpt.attention(gpt.norm(x, layer["norm1"]), layer, cfg)
        return x + jax.nn.gelu(gpt.norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"], None

    x = params["embed"][tokens[:, :-1]] + params["position"]
    x, _ = lax.scan(block, x, params["layers"])
    log_probs = jax.nn.log_softmax(gpt.norm(x, params["final_norm"]) @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1))


def shortened(state: dict, lengths: list[int]) -> dict:
    """The example's state with as many layers as each stage is to have."""
    def one(params: dict) -> dict:
        return params | {"stages": [jax.tree.map(lambda leaf, length=length: leaf[:length], stage)
                                    for stage, length in zip(params["stages"], lengths, strict=True)]}
    return {name: one(value) if isinstance(value, dict) else value for name, value in state.items()}


def stacked(state: dict) -> dict:
    """The example's state with the layers of all stages in one array each."""
    def one(params: dict) -> dict:
        rest = {name: value for name, value in params.items() if name != "stages"}
        return rest | {"layers": jax.tree.map(lambda *parts: jnp.concatenate(parts), *params["stages"])}
    return {name: one(value) if isinstance(value, dict) else value for name, value in state.items()}


def train_step(loss: Callable[..., jax.Array], cfg: gpt.PipelinedGptConfig, state: dict, tokens: jax.Array
               ) -> tuple[dict, jax.Array]:
    """The example's step with another loss."""
    def micro_batch(carry: tuple, batch: jax.Array) -> tuple[tuple, None]:
        value, grads = jax.value_and_grad(loss)(state["params"], batch, cfg)
        return (jax.tree.map(jnp.add, carry[0], grads), carry[1] + value), None

    zeros = jax.tree.map(jnp.zeros_like, state["params"])
    (grads, value), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
    grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
    return gpt.adamw(state, grads), value / cfg.micro_batches


def measured(loss: Callable[..., jax.Array], cfg: gpt.PipelinedGptConfig, state: dict, target: str) -> dict[str, Any]:
    """Bytes that one step sends between meshes, and the largest memory of a stage."""
    tokens = jax.ShapeDtypeStruct((cfg.micro_batches, cfg.batch, cfg.seq + 1), jnp.int32)
    pipelined = hlorewrite.pipeline(functools.partial(train_step, loss, cfg), meshes=[(1, 1)] * cfg.stages,
                                    microbatches=cfg.micro_batches, donate_argnums=0, passes="")
    lowered = pipelined.lower(state, tokens)
    program = lowered.data()
    parts = ((program.before, 1), (program.body, program.iterations), (program.after, 1))
    sent = sum(times * program.types[step.operand].bytes for steps, times in parts for step in steps
               if isinstance(step, Transfer))
    return {"sent_bytes": sent, "peak_bytes": max(lowered.simulate(target).peak_bytes)}


def main() -> None:
    """Prints both, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, default=8)
    parser.add_argument("--layers", type=int, default=2, help="of each stage")
    parser.add_argument("--lengths", help="layers of each stage, such as 1,3,2; instead of the two before")
    parser.add_argument("--target", default="h200", help="the cluster that is simulated")
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    lengths = [int(each) for each in args.lengths.split(",")] if args.lengths else [args.layers] * args.stages
    jax.config.update("jax_num_cpu_devices", len(lengths))
    cfg = gpt.PipelinedGptConfig(stages=len(lengths), layers=max(lengths))
    state = shortened(gpt.init_state(cfg), lengths)
    begins = tuple(sum(lengths[:stage]) for stage in range(1, len(lengths)))
    listed = measured(gpt.loss_fn, cfg, state, args.target)
    scanned = measured(functools.partial(stacked_loss, begins), cfg, stacked(state), args.target)
    print(json.dumps({"list": listed, "stacked": scanned,
                      "ratio": {name: scanned[name] / listed[name] for name in listed}}))


if __name__ == "__main__":
    main()
