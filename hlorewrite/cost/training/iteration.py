"""Iteration time of hybrid-parallel training.

    T_iter = T_comp + T_tp + T_cp + T_pp + T_dp + T_ep + T_bubble

after "Understanding Communication Characteristics of Distributed Training" (APNet 2024), with its effective
bandwidths replaced by collective times on the topology, less what compute hides under the profile of the stack. GPUs
are numbered tensor rank first, then context, then data, then pipeline.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collectives.models import CurveModel, NcclModel, collective_model
from hlorewrite.cost.collectives.placement import regular_placement
from hlorewrite.cost.kernels.rates import StackProfile
from hlorewrite.cost.training import workload
from hlorewrite.cost.training.compute_time import (
    ComputeTime,
    compute_time,
    dense_parameters,
    expert_parameters,
    fullest_layers,
    iteration_flops,
)
from hlorewrite.cost.training.memory import memory_bytes
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import Options, Parallelism, chosen_stack
from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVE_PERMUTE, REDUCE_SCATTER

if TYPE_CHECKING:
    import numpy as np

    from hlorewrite.cost.collectives.placement import RankPlacement

    Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of one iteration; numbers, or arrays of one shape for many configurations.

    Args:
      iteration_time_s: T_iter, the sum of the seven parts below.
      tflops_per_gpu: model FLOP of the iteration over time and GPUs, in 10^12/s.
      t_comp_s: compute, with the optimizer's step.
      t_tp_s: tensor-parallel communication that compute does not hide; so with all that follow.
      t_cp_s: keys and values that the ranks of one sequence exchange.
      t_pp_s: transfers between pipeline stages.
      t_dp_s: gradient reduction, ZeRO's gathers and the tied embedding's reduction.
      t_ep_s: all-to-all of experts.
      t_bubble_s: waiting for the pipeline to fill and drain.
      r_comm: (T_tp + T_cp + T_pp + T_dp + T_ep) / T_iter.
      r_bubble: T_bubble / T_iter.
      memory_bytes_per_gpu: weights, gradients, optimizer state and activations of the fullest GPU.
      iteration_low_s: 10 of 100 measured steps of the profile's rows would be faster than this.
      iteration_high_s: 10 of 100 would be slower than this.
    """

    iteration_time_s: Any
    tflops_per_gpu: Any
    t_comp_s: Any
    t_tp_s: Any
    t_cp_s: Any
    t_pp_s: Any
    t_dp_s: Any
    t_ep_s: Any
    t_bubble_s: Any
    r_comm: Any
    r_bubble: Any
    memory_bytes_per_gpu: Any
    iteration_low_s: Any
    iteration_high_s: Any

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def estimate(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options | None = None,
             profile: StackProfile | None = None) -> Estimate:
    """Cost of one configuration.

    Args:
      shape: the model.
      sizes: groups and batches, integers.
      topo: the cluster; p*t*cp*d has to be its number of GPUs.
      options: recomputation, ZeRO, dtype and so on.
      profile: the profile of the training stack; None is the one that the options name.

    Returns:
      The estimate, plain floats.

    Raises:
      UsageError: a size that is not possible; the message says which and what to change.

    Example:
      >>> from hlorewrite.cost import model, topology
      >>> sizes = Parallelism(pp=8, tp=8, dp=1, global_batch=64)
      >>> estimated = estimate(model("gpt3-175b"), sizes, topology("a100:8x8"), Options(recompute="full"))
      >>> 15 < estimated.iteration_time_s < 21
      True
    """
    options = options or Options()
    workload.check(shape, sizes, topo, options)
    many = estimate_many(shape, sizes, topo, options, profile)
    return Estimate(*(float(value[0]) for value in many.as_dict().values()))


def estimate_many(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options | None = None,
                  profile: StackProfile | None = None) -> Estimate:
    """Cost of many configurations at once, without checking that they are possible.

    Args:
      shape: the model.
      sizes: groups and batches, arrays of shape (configurations,).
      topo: the cluster.
      options: the options that all configurations share.
      profile: the profile of the training stack; None is the one that the options name.

    Returns:
      The estimate, arrays of shape (configurations,).
    """
    import numpy as np
    options = options or Options()
    sizes = sizes.arrays()
    stack = profile or chosen_stack(shape, topo, options)
    parts = _Exposed(shape, sizes, topo, options, stack)
    compute = compute_time(shape, sizes, topo, options, stack)
    m, p = sizes.micro_batches, sizes.pp
    tensor, context, pipeline, expert = parts.tensor(), parts.context(), parts.pipeline(), parts.experts()
    data = parts.data(compute)
    chunks = np.where(options.schedule == "gpipe", 1, sizes.virtual_stages)
    # What one micro-batch takes on a stage is waited for p-1 times, v times shorter when interleaved.
    bubble = (p - 1) / chunks * (compute.micro_batch_s + tensor + context + pipeline + expert)
    t_comp = m * compute.micro_batch_s + compute.update_s
    communication = m * (tensor + context + pipeline + expert) + data
    total = t_comp + communication + bubble
    flops = iteration_flops(shape, sizes.global_batch, options.recompute)
    low, high = stack.spread
    return Estimate(
        iteration_time_s=total, tflops_per_gpu=flops / total / (p * sizes.tp * sizes.replicas) / 1e12, t_comp_s=t_comp,
        t_tp_s=m * tensor, t_cp_s=m * context, t_pp_s=m * pipeline, t_dp_s=data, t_ep_s=m * expert, t_bubble_s=bubble,
        r_comm=communication / total, r_bubble=bubble / total,
        memory_bytes_per_gpu=memory_bytes(shape, sizes, topo, options, stack),
        iteration_low_s=low * total, iteration_high_s=high * total)


@dataclass(frozen=True)
class _Exposed:
    """Communication that compute does not hide.

    Args:
      shape: the model.
      sizes: groups and batches, arrays.
      topo: the cluster.
      options: the options that all configurations share.
      stack: the profile.
    """

    shape: ModelShape
    sizes: Parallelism
    topo: Topology
    options: Options
    stack: StackProfile

    @property
    def times(self) -> NcclModel | CurveModel:
        """Times of collectives on the cluster."""
        return collective_model(self.topo)

    def hidden(self, name: str, given: float | None) -> float:
        """The share of some communication that compute hides: the given share, or that of the stack."""
        return self.stack.hidden.get(name, 0.0) if given is None else given

    @property
    def row_bytes(self) -> Array:
        """Bytes of one activation of a micro-batch on one context rank: b s h elements."""
        tokens = self.sizes.micro_batch * self.shape.seq / self.sizes.cp
        return tokens * self.shape.hidden * self.options.store_bytes

    @property
    def passes(self) -> Array | float:
        """How often the collectives of a layer's forward pass run in all: forward, backward, and recomputed."""
        import numpy as np
        again = 1.0 if self.options.recompute == "full" else 0.0
        if self.options.recompute_layers is not None:
            again = again * np.minimum(self.options.recompute_layers / fullest_layers(self.shape, self.sizes), 1.0)
        return 2.0 + again

    def tensor(self) -> Array:
        """Seconds of tensor-parallel communication of one micro-batch: all-reduces of b s h elements.

        Two in the forward and two in the backward pass of a layer, two more with full recomputation; with sequence
        parallelism each is an all-gather and a reduce-scatter of the same payload.
        """
        import numpy as np
        if np.all(self.sizes.tp == 1):
            return np.zeros_like(self.sizes.tp)
        place, times = tensor_placement(self.topo, self.sizes), self.times
        if self.options.sequence_parallel:
            one = (times.times(ALL_GATHER.kind, self.row_bytes, place)
                   + times.times(REDUCE_SCATTER.kind, self.row_bytes, place))
        else:
            one = times.times(ALL_REDUCE.kind, self.row_bytes, place)
        shown = 1 - self.hidden("tensor", self.options.tensor_overlap)
        layers = fullest_layers(self.shape, self.sizes)
        return one * (self.shape.all_reduces_per_layer * self.passes * layers * shown)

    def context(self) -> Array:
        """Seconds of gathering keys and values of a micro-batch over the ranks of a sequence.

        Once forward, once backward, where their gradients are reduced too.
        """
        import numpy as np
        if not self.shape.attends or np.all(self.sizes.cp == 1):
            return np.zeros_like(self.sizes.pp)
        payload = (self.sizes.micro_batch * self.shape.seq * self.shape.kv_width / self.sizes.tp
                   * self.options.store_bytes)
        place = strided_placement(self.topo, self.sizes.cp, self.sizes.tp)
        gather = self.times.times(ALL_GATHER.kind, payload, place)
        reduce = self.times.times(REDUCE_SCATTER.kind, payload, place)
        layers = fullest_layers(self.shape, self.sizes)
        one = layers * (self.passes * gather + reduce) * (1 - self.hidden("context", None))
        return np.where(self.sizes.cp > 1, one, 0.0)

    def pipeline(self) -> Array:
        """Seconds of stage-to-stage transfers of one micro-batch: one activation forward, one gradient backward.

        A stage of several chunks sends each chunk's. With sequence parallelism a tensor rank holds, and sends, its
        share.
        """
        import numpy as np
        sizes, topo = self.sizes, self.topo
        if np.all(sizes.pp == 1):
            return np.zeros_like(sizes.pp)
        crossing = sizes.tp * sizes.replicas >= topo.gpus_per_host
        place = regular_placement(topo, 2 * np.ones_like(sizes.tp), np.where(crossing, 1, 2),
                                  np.where(crossing, topo.gpus_per_host, 1))
        scattered = self.options.sequence_parallel or self.options.scatter_gather
        payload = self.row_bytes / (sizes.tp if scattered else 1)
        one = self.times.times(COLLECTIVE_PERMUTE.kind, payload, place)
        if self.options.scatter_gather and not self.options.sequence_parallel:
            one = one + self.times.times(ALL_GATHER.kind, self.row_bytes, tensor_placement(topo, sizes))
        shown = 1 - self.hidden("pipeline", self.options.pipeline_overlap)
        return np.where(sizes.pp > 1, 2 * sizes.virtual_stages * one * shown, 0.0)

    def data(self, compute: ComputeTime) -> Array:
        """Seconds of gradient reduction of an iteration, with ZeRO's gathers and the tied embedding's reduction.

        An expert's gradients are reduced over the ranks that hold it, all others over cp*d.
        """
        import numpy as np
        shape, sizes = self.shape, self.sizes
        dense = dense_parameters(shape, sizes)
        total = self._reduction(dense, strided_placement(self.topo, sizes.replicas, sizes.tp))
        if shape.expert_layers:
            spread = sizes.expert_split * sizes.ep
            holders = strided_placement(self.topo, sizes.tp * sizes.replicas / spread, spread)
            total = total + self._reduction(expert_parameters(shape, sizes), holders)
        if self.options.zero >= 2:  # FSDP: in each micro-batch, under its compute
            under = self.hidden("fsdp", self.options.fsdp_overlap) * compute.micro_batch_s
            least = (1 - self.hidden("fsdp_most", None)) * total
            total = sizes.micro_batches * np.maximum(least, total - under)
        else:
            total = total * (1 - self.hidden("data", self.options.data_overlap))
        return total + self._tied_embedding()

    def _tied_embedding(self) -> Array:
        """Seconds of reducing the gradients of a tied embedding between the first and the last stage."""
        import numpy as np
        sizes = self.sizes
        if not self.shape.tied_embedding or np.all(sizes.pp == 1):
            return np.zeros_like(sizes.pp)
        element = self.options.grad_bytes or self.options.store_bytes
        stride = sizes.tp * sizes.replicas * np.maximum(sizes.pp - 1, 1)
        ends = strided_placement(self.topo, 2 * np.ones_like(sizes.pp), stride)
        table = self.times.times(ALL_REDUCE.kind, self.shape.embedding_parameters / sizes.tp * element, ends)
        return np.where(sizes.pp > 1, table, 0.0)

    def _reduction(self, weights: Array, place: RankPlacement) -> Array:
        """Seconds of reducing the gradients of some weights, and of gathering the weights where ZeRO shards them."""
        import numpy as np
        options, times = self.options, self.times
        gradients = weights * (options.grad_bytes or options.store_bytes)
        if options.zero == 0:
            total = times.times(ALL_REDUCE.kind, gradients, place)
        else:
            gather = times.times(ALL_GATHER.kind, weights * options.store_bytes, place)
            total = times.times(REDUCE_SCATTER.kind, gradients, place) + (2 if options.zero == 3 else 1) * gather
        return np.where(place.ranks > 1, total, 0.0)

    def experts(self) -> Array:
        """Seconds of expert all-to-alls of one micro-batch: dispatch and combine, forward and backward.

        The fullest rank sends and receives ``expert_imbalance`` times the mean. Where a token is dispatched to a host
        once, H hosts receive H (1 - (1 - 1/H)^k) of its k copies on average.
        """
        import numpy as np
        shape, sizes, options = self.shape, self.sizes, self.options
        if not shape.expert_layers or np.all(sizes.ep == 1):
            return np.zeros_like(sizes.pp)
        place = strided_placement(self.topo, sizes.ep, sizes.expert_split)
        payload = expert_payload(shape, sizes, options) * options.expert_imbalance
        once = self.stack.dispatch_once if options.dispatch_once is None else options.dispatch_once
        if once:
            hosts = np.maximum(place.hosts, 1)
            copies = hosts * (1 - (1 - 1 / hosts) ** shape.top_k) / shape.top_k
            payload = payload * np.where(hosts > 1, copies, 1.0)
        one = self.times.times(ALL_TO_ALL.kind, payload, place)
        near, far = (1 - self.hidden(name, options.expert_overlap) for name in ("expert", "expert_far"))
        stage = fullest_layers(shape, sizes)
        layers = np.where(sizes.pp == 1, shape.expert_layers, np.minimum(stage, shape.expert_layers))
        return np.where(sizes.ep > 1, one * 2 * self.passes * layers * np.where(place.hosts > 1, far, near), 0.0)


def tensor_placement(topo: Topology, sizes: Parallelism):
    """Tensor-parallel groups: neighbouring GPUs."""
    import numpy as np
    per_host = np.minimum(sizes.tp, topo.gpus_per_host)
    return regular_placement(topo, sizes.tp, per_host, np.maximum(topo.gpus_per_host // per_host, 1))


def expert_payload(shape: ModelShape, sizes: Parallelism, options: Options) -> Array:
    """Bytes one device puts into one expert all-to-all: k b s h elements, split over t with sequence parallelism."""
    split = sizes.cp * (sizes.tp if options.sequence_parallel else 1)
    return shape.top_k * sizes.micro_batch * shape.seq * shape.hidden * options.store_bytes / split


def strided_placement(topo: Topology, ranks: Array, stride: Array):
    """Groups of ``ranks`` GPUs whose numbers are ``stride`` apart; the groups of neighbouring GPUs lie next to each
    other."""
    import numpy as np
    per_host = np.clip(topo.gpus_per_host // np.maximum(stride, 1), 1, ranks)
    return regular_placement(topo, ranks, per_host, np.minimum(stride, topo.gpus_per_host))
