"""Memory of one GPU: weights, gradients, optimizer state and activations.

Activations of a layer: s b h (10 + 24/t + 5 a s/(h t)) bytes; with sequence parallelism s b h (34 + 5 a s/h)/t;
selective recomputation drops the scores; full keeps the layer's input, 2 s b h
(Korthikanti et al., MLSys 2023, table 2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.compute import stage_parameters, uses_flash
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import BYTES, Options, Parallelism

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


def state_bytes(shape: ModelShape, sizes: Parallelism, options: Options) -> Array:
    """Weights, gradients and optimizer state of one GPU, after ZeRO's sharding over data parallelism.

    Adam in mixed precision: weights in the dtype, gradients in f32, and master weights and two moments in f32.
    """
    import numpy as np
    weights = stage_parameters(shape, sizes)
    shards = [np.where(options.zero >= stage, sizes.dp, 1) for stage in (1, 2, 3)]
    optimizer = 12.0 if BYTES[options.dtype] < 4 else 8.0
    return weights * (BYTES[options.dtype] / shards[2] + 4.0 / shards[1] + optimizer / shards[0])


def layer_activation_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> Array:
    """Activations a layer keeps for one micro-batch."""
    import numpy as np
    scale = BYTES[options.dtype] / 2
    tokens = sizes.micro_batch * shape.seq
    row = tokens * shape.hidden * scale
    split = sizes.tp if options.sequence_parallel else np.ones_like(sizes.tp)
    if options.recompute == "full":
        return 2 * row / split
    # Of the 34: 10 norms, dropouts and inputs; 8 attention (queries, keys, values, output); 16 the feed-forward's two.
    wide = (4.0 if not shape.gated else 6.0) * shape.feed_forward * shape.top_k / shape.hidden
    kept = 10 / split + (8 + (wide if shape.attends else 0.0)) / sizes.tp
    if shape.attends and options.recompute == "none" and not uses_flash(options, topo):
        kept = kept + 5 * shape.heads * shape.seq / (shape.hidden * sizes.tp)
    return row * kept


def activation_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> Array:
    """Activations of the first stage, which holds most micro-batches: min(m, p), or all m under GPipe."""
    import numpy as np
    m, p, v = sizes.micro_batches, sizes.pp, sizes.virtual_stages
    live = m if options.schedule == "gpipe" else np.minimum(m, p)
    live = np.where(v > 1, np.minimum(live * (1 + (p - 1) / (p * v)), m), live)
    one = layer_activation_bytes(shape, sizes, topo, options)
    total = live * shape.layers / p * one
    if options.recompute == "full":  # the layer being recomputed holds all of its own
        total = total + layer_activation_bytes(shape, sizes, topo, replace(options, recompute="none"))
    head = 4.0 * sizes.micro_batch * shape.seq * shape.vocab / sizes.tp
    return total + np.where(p == 1, head, 0.0)


def memory_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> Array:
    """Bytes of one GPU of the fullest stage.

    Args:
      shape: the model.
      sizes: groups and batches, arrays.
      topo: the cluster.
      options: what is the same for all.

    Returns:
      Bytes, of the shape of ``sizes``.
    """
    return state_bytes(shape, sizes, options) + activation_bytes(shape, sizes, topo, options)
