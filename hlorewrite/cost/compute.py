"""Time a GPU computes: matrix products at a size-dependent share of the peak, the rest at memory speed.

A layer's forward pass on a micro-batch of one GPU, per token: 2 W/t FLOP for its W matrix weights and 4 s h/t for
attention scores; backward is twice that, full recomputation one more forward. Norms, dropouts, activation functions
and unfused softmax move bytes: Korthikanti et al., MLSys 2023, section 4 counts what each stores; what each moves
follows from its reads and writes. Constants: ``data/compute.toml``.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import BYTES, Options, Parallelism

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


@dataclass(frozen=True, slots=True)
class ComputeTime:
    """Seconds of compute on one GPU.

    Args:
      micro_batch_s: forward and backward of one micro-batch on the slowest stage.
      update_s: the optimizer's step.
      layer_forward_s: forward of one layer on one micro-batch.
    """

    micro_batch_s: Array
    update_s: Array
    layer_forward_s: Array


@functools.cache
def compute_constants() -> Mapping[str, Any]:
    """Calibrated constants, by name, as in ``data/compute.toml``."""
    text = (Path(__file__).parent / "data" / "compute.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def timeline_constants() -> Mapping[str, Any]:
    """Constants of the simulated schedule, by name, as in ``data/timeline.toml``."""
    text = (Path(__file__).parent / "data" / "timeline.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def uses_flash(options: Options, topo: Topology) -> bool:
    """Whether attention scores stay on chip."""
    if options.flash_attention is not None:
        return options.flash_attention
    return topo.architecture in ("hopper", "blackwell")


def iteration_flops(shape: ModelShape, global_batch: Array, recompute: str) -> Array:
    """FLOP of one iteration on all GPUs, the yardstick of TFLOP/s per GPU.

    For a GPT without recomputation 72 B s l h^2 (1 + s/(6h) + V/(12 l h)), with it
    96 B s l h^2 (1 + s/(6h) + V/(16 l h)) (Narayanan et al., SC 2021, equation 3).

    Args:
      shape: the model.
      global_batch: sequences of an iteration.
      recompute: none, selective or full; selective counts as none, as its authors do.

    Returns:
      FLOP, of the shape of ``global_batch``.
    """
    scores = 2.0 * shape.seq * shape.hidden if shape.attends else 0.0
    passes = 4 if recompute == "full" else 3
    layer = 2.0 * (shape.active_weights + scores) * passes
    head = 6.0 * shape.hidden * shape.vocab
    return global_batch * shape.seq * (shape.layers * layer + head)


def stage_parameters(shape: ModelShape, sizes: Parallelism) -> Array:
    """Parameters on one GPU of the fullest stage (that of the embedding)."""
    return dense_parameters(shape, sizes) + expert_parameters(shape, sizes)


def dense_parameters(shape: ModelShape, sizes: Parallelism) -> Array:
    """Those of them that do not belong to an expert."""
    import numpy as np
    experts = shape.expert_weights * shape.experts * shape.layers if shape.experts > 1 else 0.0
    layers = shape.parameters - experts - shape.embedding_parameters * (1 if shape.tied_embedding else 2)
    tables = np.where((sizes.pp > 1) | shape.tied_embedding, 1, 2) * shape.embedding_parameters
    return layers / (sizes.pp * sizes.tp) + tables / sizes.tp


def expert_parameters(shape: ModelShape, sizes: Parallelism) -> Array:
    """Parameters of the experts on one GPU; 0 in a dense model."""
    experts = shape.expert_weights * shape.experts * shape.layers if shape.experts > 1 else 0.0
    return experts / (sizes.pp * sizes.tp * sizes.ep)


def compute_time(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> ComputeTime:
    """Seconds of compute of one micro-batch and of the update.

    Args:
      shape: the model.
      sizes: groups and batches, arrays.
      topo: the cluster.
      options: what is the same for all.

    Returns:
      Times, arrays of the shape of ``sizes``.
    """
    import numpy as np
    peak = topo.peak_flops[options.dtype]
    tokens = sizes.micro_batch * shape.seq
    passes = 4.0 if options.recompute == "full" else 3.0
    if options.utilisation is not None:
        # 8 (N/(p t)) b s with recomputation, 6 without: the required FLOP of a micro-batch on one GPU.
        active = shape.parameters - shape.layers * shape.expert_weights * (shape.experts - shape.top_k)
        micro = 2 * passes * active / (sizes.pp * sizes.tp) * tokens / (options.utilisation * peak)
        return ComputeTime(micro, np.zeros_like(micro), micro / passes * sizes.pp / shape.layers)
    rate = peak * _matmul_share(shape, sizes, topo)
    memory = topo.memory_bytes_per_s * compute_constants()["memory_efficiency"]
    scores = 2.0 * shape.seq * shape.hidden if shape.attends else 0.0
    linear = 2.0 * tokens * shape.active_weights * _imbalance(shape, options) / sizes.tp / rate
    attention = 2.0 * tokens * scores / sizes.tp / rate
    moved, moved_scores = _moved_bytes(shape, sizes, topo, options)
    forward = linear + attention + (moved + moved_scores) / memory
    again = {"full": forward, "selective": attention + moved_scores / memory, "none": 0.0}[options.recompute]
    layer = 3 * forward + again
    head = 6.0 * tokens * shape.hidden * shape.vocab / sizes.tp / rate + 24.0 * tokens * shape.vocab / sizes.tp / memory
    micro = shape.layers / sizes.pp * layer + head
    shards = np.where(options.zero >= 1, sizes.dp, 1)
    update = compute_constants()["update_bytes_per_parameter"] * stage_parameters(shape, sizes) / shards / memory
    return ComputeTime(micro, update, forward)


def _imbalance(shape: ModelShape, options: Options) -> float:
    """How much the fullest expert stretches a layer's products."""
    if shape.experts == 1:
        return 1.0
    experts = shape.expert_weights * shape.top_k
    return 1 + (options.expert_imbalance - 1) * experts / shape.active_weights


def _matmul_share(shape: ModelShape, sizes: Parallelism, topo: Topology) -> Array:
    """Share of the peak that matrix products reach: narrow ones reach less."""
    data = compute_constants()
    return data["matmul_efficiency"][topo.architecture] / (1 + data["matmul_half_width"] * sizes.tp / shape.hidden)


def _moved_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> tuple[Array, Array]:
    """Bytes a layer's forward pass moves outside matrix products: (all but scores, attention scores)."""
    import numpy as np
    element = float(BYTES[options.dtype])
    tokens = sizes.micro_batch * shape.seq
    # Two norms (read, write) and two dropouts with residual (read two, write one and a mask): 11 h elements.
    split = sizes.tp if options.sequence_parallel else np.ones_like(sizes.tp)
    moved = 11.0 * element * tokens * shape.hidden / split
    wide = shape.feed_forward * shape.top_k if shape.attends else 2.0 * shape.hidden
    moved = moved + (3.0 if shape.gated else 2.0) * element * tokens * wide / sizes.tp
    if not shape.attends or uses_flash(options, topo):
        return moved, np.zeros_like(moved)
    # Scores written and read by products, softmax read and written, dropout with its mask: 6.5 elements.
    return moved, 6.5 * element * tokens * shape.heads * shape.seq / sizes.tp
