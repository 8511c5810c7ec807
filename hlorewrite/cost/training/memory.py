"""Memory of one GPU: weights, gradients, optimizer state, activations and buffers.

Activations of a layer: s b h (10 + 24/t + 5 a s/(h t)) bytes; with sequence parallelism s b h (34 + 5 a s/h)/t;
selective recomputation drops the scores; full keeps the layer's input, 2 s b h
(Korthikanti et al., MLSys 2023, table 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.kernels.rates import StackProfile
from hlorewrite.cost.training.compute_time import dense_parameters, expert_parameters, fullest_layers
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import Options, Parallelism, chosen_stack, uses_flash

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


def state_bytes(shape: ModelShape, sizes: Parallelism, options: Options) -> Array:
    """Weights, gradients and optimizer state of one GPU, after ZeRO's sharding over the ranks that hold the same.

    Adam in mixed precision: weights in the type of storage, gradients in f32 or as they are reduced, and master
    weights and two moments in f32.
    """
    import numpy as np
    gradient = options.grad_bytes or 4.0
    optimizer = 12.0 if options.store_bytes < 4 else 8.0
    spread = sizes.expert_split * sizes.ep
    total = 0.0
    for weights, holders in ((dense_parameters(shape, sizes), sizes.replicas),
                             (expert_parameters(shape, sizes), sizes.tp * sizes.replicas / spread)):
        shards = [np.where(options.zero >= stage, holders, 1) for stage in (1, 2, 3)]
        total = total + weights * (options.store_bytes / shards[2] + gradient / shards[1] + optimizer / shards[0])
    return total


def layer_activation_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                           profile: StackProfile | None = None) -> Array:
    """Activations a layer keeps for one micro-batch."""
    import numpy as np
    stack = profile or chosen_stack(shape, topo, options)
    scale = options.store_bytes / 2
    tokens = sizes.micro_batch * shape.seq / sizes.cp
    row = tokens * shape.hidden * scale
    split = sizes.tp if options.sequence_parallel else np.ones_like(sizes.tp)
    if options.recompute == "full":
        return 2 * row / split
    # Of the 34: 10 norms, dropouts and inputs; 8 attention (queries, keys, values, output); 16 the feed-forward's two.
    copies = shape.top_k + shape.shared_experts if shape.expert_layers else 1
    wide = (4.0 if not shape.gated else 6.0) * shape.feed_forward * copies / shape.hidden
    routed = 4.0 * shape.top_k if shape.expert_layers else 0.0  # tokens as they are dispatched and combined
    heads = 2.0 * (2 * shape.score_width + shape.kv_width) / shape.hidden if shape.attends else 8.0
    kept = 10 / split + (heads + (wide + routed if shape.attends else 0.0)) / sizes.tp
    if options.recompute == "selective" and stack.selective:
        kept = kept * stack.selective_kept
    elif shape.attends and options.recompute == "none" and not uses_flash(options, topo):
        kept = kept + 5 * shape.heads * shape.seq / (shape.hidden * sizes.tp)
    return row * kept


def activation_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                     profile: StackProfile | None = None) -> Array:
    """Activations of the first stage, which holds the most micro-batches: min(m, p), or all m under GPipe."""
    import numpy as np
    stack = profile or chosen_stack(shape, topo, options)
    m, p, v = sizes.micro_batches, sizes.pp, sizes.virtual_stages
    live = m if options.schedule == "gpipe" else np.minimum(m, p)
    live = np.where(v > 1, np.minimum(live * (1 + (p - 1) / (p * v)), m), live)
    layers, plain = fullest_layers(shape, sizes), replace(options, recompute="none")
    one = layer_activation_bytes(shape, sizes, topo, options, stack)
    whole = layer_activation_bytes(shape, sizes, topo, plain, stack)
    again = layers if options.recompute_layers is None else np.minimum(options.recompute_layers, layers)
    total = live * (again * one + (layers - again) * whole)
    if options.recompute == "full":  # the layer being recomputed holds all of its own
        total = total + whole
    tokens = sizes.micro_batch * shape.seq / sizes.cp
    head = stack.logit_bytes * tokens * shape.vocab / sizes.tp
    return total + np.where(p == 1, head, 0.0)


def gathered_bytes(shape: ModelShape, sizes: Parallelism, options: Options, stack: StackProfile) -> Array:
    """Weights and gradients that FSDP holds unsharded: two layers of them, or all of a pipeline's stage."""
    import numpy as np
    if options.zero < 2:
        return np.zeros_like(sizes.pp)
    weights = dense_parameters(shape, sizes) + expert_parameters(shape, sizes)
    gradient = options.grad_bytes or options.store_bytes
    at_once = np.where(sizes.pp > 1, stack.gathered_in_pipelines, 2 / fullest_layers(shape, sizes))
    return weights * at_once * (options.store_bytes + gradient)


def memory_bytes(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                 profile: StackProfile | None = None) -> Array:
    """Bytes of one GPU of the fullest stage.

    Args:
      shape: the model.
      sizes: groups and batches, arrays.
      topo: the cluster.
      options: the options that all configurations share.
      profile: the profile of the training stack; None is the one the options choose.

    Returns:
      Bytes, of the shape of ``sizes``.
    """
    stack = profile or chosen_stack(shape, topo, options)
    activations = activation_bytes(shape, sizes, topo, options, stack) * stack.memory_factor
    held = state_bytes(shape, sizes, options) + gathered_bytes(shape, sizes, options, stack)
    return held + activations + whole_rows_bytes(shape, sizes, options) + stack.memory_bytes


def whole_rows_bytes(shape: ModelShape, sizes: Parallelism, options: Options) -> Array:
    """Activations that sequence parallelism holds whole: an input, an output, a gradient."""
    import numpy as np
    rows = 3.0 * sizes.micro_batch * shape.seq / sizes.cp * shape.hidden * options.store_bytes
    return np.where((sizes.tp > 1) & options.sequence_parallel, rows, 0.0)


@dataclass(frozen=True, slots=True)
class MemoryVerdict:
    """Whether a configuration fits.

    Args:
      fits: ``fits``; ``tight``, where measured peaks of such steps are on both sides; ``recompute``, where it fits with
        full recomputation alone; or ``no``.
      bytes_per_gpu: what is needed.
      least_bytes: what is needed with full recomputation.
    """

    fits: str
    bytes_per_gpu: float
    least_bytes: float


MARGIN = 0.15
"""How far measured peaks lie from predicted ones (``bench/predictions/public_runs.py --memory``)."""


def memory_verdict(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> MemoryVerdict:
    """Whether one configuration fits, with the margin that measured peaks justify.

    A published step that "does not fit" as it is described recomputed or offloaded activations without saying so, so
    only one that does not fit with full recomputation either is called impossible.

    Example:
      >>> from hlorewrite.cost import model, topology
      >>> memory_verdict(model("gpt3-175b"), Parallelism(1, 1, 8, 8), topology("h100"), Options()).fits
      'no'
    """
    used, least = (float(memory_bytes(shape, sizes.arrays(), topo, each)[0])
                   for each in (options, replace(options, recompute="full", recompute_layers=None)))
    most = topo.memory_bytes
    if used <= (1 - MARGIN) * most:
        fits = "fits"
    elif used <= (1 + MARGIN) * most:
        fits = "tight"
    else:
        fits = "recompute" if least <= (1 + MARGIN) * most else "no"
    return MemoryVerdict(fits, used, least)
