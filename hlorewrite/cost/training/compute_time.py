"""The time that a GPU computes in one iteration: products, attention, and the bytes that move around them.

Of a layer's forward pass on the tokens of one GPU: 2 W/t FLOP for each of its W matrix weights, and attention. Fused
attention does the causal half, 2 s h/t FLOP a token, and its backward pass takes 2.5 times as long (Dao, 2023, section
4.1); unfused attention does all of 4 s h/t and moves the scores. Norms, residuals and activation functions move bytes:
Korthikanti et al., MLSys 2023, section 4 counts what each stores; what each moves follows from its reads and writes.
Rates are those of :mod:`hlorewrite.cost.kernels.rates` under a profile of the stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.kernels.rates import KernelRates, StackProfile, by_generation, compute_constants
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import NARROW, Options, Parallelism, chosen_stack, uses_flash

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


def iteration_flops(shape: ModelShape, global_batch: Array, recompute: str) -> Array:
    """FLOP of one iteration on all GPUs, from which TFLOP/s per GPU follows.

    For a GPT without recomputation 72 B s l h^2 (1 + s/(6h) + V/(12 l h)), with it
    96 B s l h^2 (1 + s/(6h) + V/(16 l h)) (Narayanan et al., SC 2021, equation 3).

    Args:
      shape: the model.
      global_batch: sequences of an iteration.
      recompute: none, selective or full; selective counts as none, as its authors do.

    Returns:
      FLOP, of the shape of ``global_batch``.
    """
    scores = 2.0 * shape.attended * shape.score_width
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
    layers = shape.parameters - shape.routed_weights - shape.embedding_parameters * (1 if shape.tied_embedding else 2)
    tables = np.where((sizes.pp > 1) | shape.tied_embedding, 1, 2) * shape.embedding_parameters
    return layers * _fullest_share(shape, sizes) / sizes.tp + tables / sizes.tp


def expert_parameters(shape: ModelShape, sizes: Parallelism) -> Array:
    """Parameters of the experts on one GPU; 0 in a dense model."""
    return shape.routed_weights * _fullest_share(shape, sizes) / (sizes.expert_split * sizes.ep)


def fullest_layers(shape: ModelShape, sizes: Parallelism) -> Array:
    """Layers of the fullest stage."""
    import numpy as np
    return np.ceil(shape.layers / np.asarray(sizes.pp, dtype=float))


def _fullest_share(shape: ModelShape, sizes: Parallelism) -> Array:
    return fullest_layers(shape, sizes) / shape.layers


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds of a layer, or of some, on one micro-batch.

    Args:
      forward: forward pass.
      backward: backward pass without recomputation.
      attention: forward pass of attention's scores alone.
    """

    forward: Array
    backward: Array
    attention: Array


def compute_time(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                 profile: StackProfile | None = None) -> ComputeTime:
    """Seconds of compute of one micro-batch and of the update.

    Args:
      shape: the model.
      sizes: groups and batches, arrays.
      topo: the cluster.
      options: the options that all configurations share.
      profile: the profile of the training stack; None is the one the options choose.

    Returns:
      Times, arrays of the shape of ``sizes``.
    """
    import numpy as np
    stack = profile or chosen_stack(shape, topo, options)
    rates = KernelRates(topo, stack)
    if options.utilisation is not None:
        return _at_utilisation(shape, sizes, options, options.utilisation * rates.peak(options.dtype))
    layers = _Layers(shape, sizes, options, rates, flash=uses_flash(options, topo))
    plain = layers.times(experts=False) if shape.dense_layers or shape.experts == 1 else None
    mixed = layers.times(experts=True) if shape.expert_layers else None
    usual = mixed or plain
    assert usual is not None
    full = fullest_layers(shape, sizes)
    whole = _with_recomputation(usual, options, stack, full)
    stage = full * whole
    if plain is not None and mixed is not None:  # the first stage alone has dense layers: with one stage they count
        first = shape.dense_layers * _with_recomputation(plain, options, stack, full)
        stage = np.where(sizes.pp == 1, first + shape.expert_layers * whole, stage)
    head = layers.head()
    # Where layers do not divide, the last stage has as many fewer as make up for the output layer.
    short = np.minimum(full * sizes.pp - shape.layers, np.ceil(head / whole))
    micro = np.maximum(np.where(short > 0, stage, 0.0), stage - short * whole + head)
    sums = stack.gradient_bytes * stage_parameters(shape, sizes) / rates.memory_bytes_per_s
    micro = micro + sums / np.where(options.zero >= 2, sizes.replicas, 1)
    update = compute_constants()["update_bytes_per_parameter"] * _updated(shape, sizes, options)
    return ComputeTime(micro, update / rates.memory_bytes_per_s, usual.forward)


def _updated(shape: ModelShape, sizes: Parallelism, options: Options) -> Array:
    """Parameters whose optimizer state one GPU holds."""
    import numpy as np
    shards = np.where(options.zero >= 1, sizes.replicas, 1)
    holders = np.where(options.zero >= 1, sizes.tp * sizes.replicas / (sizes.expert_split * sizes.ep), 1)
    return dense_parameters(shape, sizes) / shards + expert_parameters(shape, sizes) / holders


def _at_utilisation(shape: ModelShape, sizes: Parallelism, options: Options, rate: float) -> ComputeTime:
    """Compute at a rate in FLOP/s: 8 (N/(p t)) b s FLOP of a micro-batch with recomputation, 6 without."""
    import numpy as np
    tokens = sizes.micro_batch * shape.seq / sizes.cp
    passes = 4.0 if options.recompute == "full" else 3.0
    idle = shape.expert_layers * shape.expert_weights * (shape.experts - shape.top_k)
    micro = 2 * passes * (shape.parameters - idle) / (sizes.pp * sizes.tp) * tokens / rate
    return ComputeTime(micro, np.zeros_like(micro), micro / passes * sizes.pp / shape.layers)


def _with_recomputation(times: PassTimes, options: Options, stack: StackProfile, layers: Array) -> Array:
    """Seconds of a layer on one micro-batch, with what its backward pass computes again."""
    import numpy as np
    selected = stack.selective * times.forward if stack.selective else times.attention
    again = {"full": times.forward, "selective": selected, "none": 0.0}[options.recompute]
    if options.recompute_layers is not None:
        again = again * np.minimum(options.recompute_layers / layers, 1.0)
    return times.forward + times.backward + again


@dataclass(frozen=True)
class _Layers:
    """Times of the layers of a model on one GPU.

    Args:
      shape: the model.
      sizes: groups and batches, arrays.
      options: the options that all configurations share.
      rates: the rates of the GPU under the stack.
      flash: whether attention is fused.
    """

    shape: ModelShape
    sizes: Parallelism
    options: Options
    rates: KernelRates
    flash: bool

    @property
    def tokens(self) -> Array:
        """Tokens of a micro-batch on one GPU."""
        return self.sizes.micro_batch * self.shape.seq / self.sizes.cp

    def times(self, *, experts: bool) -> PassTimes:
        """Seconds of a layer, with experts or without."""
        stack, sizes = self.rates.stack, self.sizes
        attention, again = self._attention()
        work = self._products(experts) + self._outside(experts) / self.rates.memory_bytes_per_s
        work = work + (stack.expert_launch_s if experts else 0.0) + 0.0 * sizes.pp
        return PassTimes(work + attention, 2 * work + again, attention)

    def head(self) -> Array:
        """Seconds of the output layer and the loss, forward and backward."""
        rate = self.rates.product_rate(self.options.store, self.shape.hidden / self.sizes.tp)
        rows = self.tokens * self.shape.vocab / self.sizes.tp
        return 6.0 * rows * self.shape.hidden / rate + 24.0 * rows / self.rates.memory_bytes_per_s

    def _products(self, experts: bool) -> Array:
        """Forward pass of a layer's linear products."""
        shape, width = self.shape, self.shape.hidden / self.sizes.tp
        scale = 2.0 * self.tokens / self.sizes.tp
        rate = self.rates.product_rate(self.options.dtype, width)
        if not experts:
            return scale * (shape.attention_weights + shape.dense_weights) / rate
        narrow = min(shape.hidden, shape.feed_forward) / self.sizes.expert_split
        routed = shape.expert_weights * shape.top_k * self.options.expert_imbalance
        shared = shape.expert_weights * shape.shared_experts + shape.hidden * shape.experts
        return scale * ((shape.attention_weights + shared) / rate
                        + routed / self.rates.product_rate(self.options.dtype, narrow, experts=True))

    def _attention(self) -> tuple[Array, Array]:
        """Forward pass and backward pass of a layer's scores."""
        shape, sizes = self.shape, self.sizes
        half = 2.0 * self.tokens * shape.attended * shape.score_width / sizes.tp
        if self.flash or not shape.attends:
            forward = half / self.rates.attention_rate
            return forward, self.rates.stack.attention_backward * forward
        # Scores written and read by products, softmax read and written, dropout with its mask: 6.5 elements.
        moved = (self.rates.stack.score_elements * self._element * self.tokens * shape.heads * shape.attended
                 / sizes.tp)
        rate = self.rates.product_rate(self.options.store, shape.hidden / sizes.tp)
        forward = 2 * half / rate + moved / self.rates.memory_bytes_per_s
        return forward, 2 * forward

    @property
    def _element(self) -> float:
        return float(self.options.store_bytes)

    def _outside(self, experts: bool) -> Array:
        """Bytes that a layer's forward pass moves outside of products and scores."""
        import numpy as np
        shape, sizes, stack = self.shape, self.sizes, self.rates.stack
        # Two norms (read, write) and two dropouts with residual (read two, write one and a mask): 11 h elements.
        split = sizes.tp if self.options.sequence_parallel else np.ones_like(sizes.tp)
        wide = self._wide(experts)
        elements = 11.0 * shape.hidden / split + (3.0 if shape.gated else 2.0) * wide / sizes.tp
        elements = elements * stack.outside_bytes
        if self.options.dtype in NARROW:
            elements = elements + stack.convert_bytes * self._ends(experts) / sizes.tp
        if experts and stack.expert_bytes:
            moved = by_generation(stack.expert_bytes, self.rates.generation)
            elements = elements + moved * shape.top_k * shape.hidden / sizes.tp
        return elements * self._element * self.tokens

    def _wide(self, experts: bool) -> float:
        """Width of what a token makes inside the feed-forward."""
        shape = self.shape
        if not shape.attends:
            return 2.0 * shape.hidden
        if experts:
            return float(shape.feed_forward * (shape.top_k + shape.shared_experts))
        return float(shape.dense_feed_forward or shape.feed_forward)

    def _ends(self, experts: bool) -> float:
        """Elements of a token that linear products read and write: what is converted to and from a narrow type."""
        shape = self.shape
        queries = shape.heads * (shape.head_width + shape.rope_dim)
        attention = 2.0 * shape.hidden + queries + shape.kv_width + shape.heads * shape.head_width
        into = float(shape.hidden) * ((shape.top_k + shape.shared_experts) if experts else 1)
        return attention + 2 * into + self._wide(experts) * (3 if shape.gated else 2)
