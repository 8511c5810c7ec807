"""Iteration time of hybrid-parallel training.

    T_iter = T_comp + T_tp + T_pp + T_dp + T_ep + T_bubble

after "Understanding Communication Characteristics of Distributed Training" (APNet 2024), with its effective
bandwidths replaced by collective times on the topology. GPUs are numbered tensor rank first, then data, then pipeline.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collectives.models import CurveModel, NcclModel, collective_model
from hlorewrite.cost.collectives.placement import regular_placement
from hlorewrite.cost.compute import compute_time, dense_parameters, expert_parameters, iteration_flops
from hlorewrite.cost.training import workload
from hlorewrite.cost.training.memory import memory_bytes
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import BYTES, Options, Parallelism
from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVE_PERMUTE, REDUCE_SCATTER

if TYPE_CHECKING:
    import numpy as np

    from hlorewrite.cost.collectives.placement import RankPlacement

    Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one iteration costs; numbers, or arrays of one shape for many configurations.

    Args:
      iteration_time_s: T_iter, the sum of the six parts below.
      tflops_per_gpu: model FLOP of the iteration over time and GPUs, in 10^12/s.
      t_comp_s: compute, with the optimizer's step.
      t_tp_s: tensor-parallel communication that compute does not hide.
      t_pp_s: transfers between pipeline stages.
      t_dp_s: gradient reduction, ZeRO's gathers and the tied embedding's reduction.
      t_ep_s: all-to-all of experts.
      t_bubble_s: waiting for the pipeline to fill and drain.
      r_comm: (T_tp + T_pp + T_dp + T_ep) / T_iter.
      r_bubble: T_bubble / T_iter.
      memory_bytes_per_gpu: weights, gradients, optimizer state and activations of the fullest GPU.
    """

    iteration_time_s: Any
    tflops_per_gpu: Any
    t_comp_s: Any
    t_tp_s: Any
    t_pp_s: Any
    t_dp_s: Any
    t_ep_s: Any
    t_bubble_s: Any
    r_comm: Any
    r_bubble: Any
    memory_bytes_per_gpu: Any

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def estimate(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options | None = None) -> Estimate:
    """Cost of one configuration.

    Args:
      shape: the model.
      sizes: groups and batches, integers.
      topo: the cluster; p*t*d has to be its number of GPUs.
      options: recomputation, ZeRO, dtype and so on.

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
    many = estimate_many(shape, sizes, topo, options)
    return Estimate(*(float(value[0]) for value in many.as_dict().values()))


def estimate_many(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options | None = None) -> Estimate:
    """Cost of many configurations at once, without checking that they are possible.

    Args:
      shape: the model.
      sizes: groups and batches, arrays of shape (configurations,).
      topo: the cluster.
      options: what is the same for all.

    Returns:
      The estimate, arrays of shape (configurations,).
    """
    import numpy as np
    options = options or Options()
    sizes = sizes.arrays()
    times = collective_model(topo)
    compute = compute_time(shape, sizes, topo, options)
    m, p = sizes.micro_batches, sizes.pp
    tensor = tensor_time(shape, sizes, topo, options, times)
    pipeline = pipeline_time(shape, sizes, topo, options, times)
    expert = expert_time(shape, sizes, topo, options, times)
    data = data_time(shape, sizes, topo, options, times)
    chunks = np.where(options.schedule == "gpipe", 1, sizes.virtual_stages)
    # What one micro-batch takes on a stage is waited for p-1 times, v times shorter when interleaved.
    bubble = (p - 1) / chunks * (compute.micro_batch_s + tensor + pipeline + expert)
    t_comp = m * compute.micro_batch_s + compute.update_s
    total = t_comp + m * (tensor + pipeline + expert) + data + bubble
    flops = iteration_flops(shape, sizes.global_batch, options.recompute)
    return Estimate(
        iteration_time_s=total, tflops_per_gpu=flops / total / (p * sizes.tp * sizes.dp) / 1e12, t_comp_s=t_comp,
        t_tp_s=m * tensor, t_pp_s=m * pipeline, t_dp_s=data, t_ep_s=m * expert, t_bubble_s=bubble,
        r_comm=(m * (tensor + pipeline + expert) + data) / total, r_bubble=bubble / total,
        memory_bytes_per_gpu=memory_bytes(shape, sizes, topo, options))


def tensor_time(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                times: NcclModel | CurveModel) -> Array:
    """Seconds of tensor-parallel communication of one micro-batch: all-reduces of b s h elements.

    Two in the forward and two in the backward pass of a layer, two more with full recomputation; with sequence
    parallelism each is an all-gather and a reduce-scatter of the same payload. The embedding and the loss add two.
    """
    place = tensor_placement(topo, sizes)
    payload = sizes.micro_batch * shape.seq * shape.hidden * BYTES[options.dtype]
    if options.sequence_parallel:
        one = times.times(ALL_GATHER.kind, payload, place) + times.times(REDUCE_SCATTER.kind, payload, place)
    else:
        one = times.times(ALL_REDUCE.kind, payload, place)
    passes = {"none": 1.0, "selective": 1.0, "full": 2.0}[options.recompute] + (1 - options.tensor_overlap)
    return one * (shape.all_reduces_per_layer * passes * shape.layers / sizes.pp)


def pipeline_time(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                  times: NcclModel | CurveModel) -> Array:
    """Seconds of stage-to-stage transfers of one micro-batch: one activation forward, one gradient backward.

    A stage of several chunks sends each chunk's. With sequence parallelism a tensor rank holds, and sends, its share.
    """
    import numpy as np
    crossing = sizes.tp * sizes.dp >= topo.gpus_per_host
    place = regular_placement(topo, 2 * np.ones_like(sizes.tp), np.where(crossing, 1, 2),
                              np.where(crossing, topo.gpus_per_host, 1))
    payload = sizes.micro_batch * shape.seq * shape.hidden * BYTES[options.dtype]
    if options.sequence_parallel or options.scatter_gather:
        one = times.times(COLLECTIVE_PERMUTE.kind, payload / sizes.tp, place)
    else:
        one = times.times(COLLECTIVE_PERMUTE.kind, payload, place)
    if options.scatter_gather and not options.sequence_parallel:
        one = one + times.times(ALL_GATHER.kind, payload, tensor_placement(topo, sizes))
    return np.where(sizes.pp > 1, 2 * sizes.virtual_stages * one, 0.0)


def tensor_placement(topo: Topology, sizes: Parallelism):
    """Tensor-parallel groups: neighbouring GPUs."""
    import numpy as np
    per_host = np.minimum(sizes.tp, topo.gpus_per_host)
    return regular_placement(topo, sizes.tp, per_host, np.maximum(topo.gpus_per_host // per_host, 1))


def data_time(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
              times: NcclModel | CurveModel) -> Array:
    """Seconds of gradient reduction of an iteration, with ZeRO's gathers and the tied embedding's reduction.

    An expert's gradients are reduced over the d/ep ranks that hold it, all others over d.
    """
    import numpy as np
    total = reduction_time(dense_parameters(shape, sizes), strided_placement(topo, sizes.dp, sizes.tp), options, times)
    if shape.experts > 1:
        holders = strided_placement(topo, sizes.dp / sizes.ep, sizes.tp * sizes.ep)
        total = total + reduction_time(expert_parameters(shape, sizes), holders, options, times)
    if shape.tied_embedding:
        element = options.grad_bytes or BYTES[options.dtype]
        ends = strided_placement(topo, 2 * np.ones_like(sizes.pp), sizes.tp * sizes.dp * np.maximum(sizes.pp - 1, 1))
        table = times.times(ALL_REDUCE.kind, shape.embedding_parameters / sizes.tp * element, ends)
        total = total + np.where(sizes.pp > 1, table, 0.0)
    return total


def reduction_time(weights: Array, place: RankPlacement, options: Options, times: NcclModel | CurveModel) -> Array:
    """Seconds of reducing the gradients of some weights, and of gathering the weights where ZeRO shards them."""
    import numpy as np
    gradients = weights * (options.grad_bytes or BYTES[options.dtype])
    if options.zero == 0:
        total = times.times(ALL_REDUCE.kind, gradients, place)
    else:
        gather = times.times(ALL_GATHER.kind, weights * BYTES[options.dtype], place)
        total = times.times(REDUCE_SCATTER.kind, gradients, place) + (2 if options.zero == 3 else 1) * gather
    return np.where(place.ranks > 1, total, 0.0)


def expert_time(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options,
                times: NcclModel | CurveModel) -> Array:
    """Seconds of expert all-to-alls of one micro-batch: dispatch and combine, forward and backward.

    The fullest rank sends and receives ``expert_imbalance`` times the mean.
    """
    import numpy as np
    if shape.experts == 1:
        return np.zeros_like(sizes.pp)
    payload = expert_payload(shape, sizes, options) * options.expert_imbalance
    place = strided_placement(topo, sizes.ep, sizes.tp)
    passes = 6 if options.recompute == "full" else 4
    one = times.times(ALL_TO_ALL.kind, payload, place)
    return np.where(sizes.ep > 1, one * passes * shape.layers / sizes.pp, 0.0)


def expert_payload(shape: ModelShape, sizes: Parallelism, options: Options) -> Array:
    """Bytes one device puts into one expert all-to-all: k b s h elements, split over t with sequence parallelism."""
    split = sizes.tp if options.sequence_parallel else 1
    return shape.top_k * sizes.micro_batch * shape.seq * shape.hidden * BYTES[options.dtype] / split


def strided_placement(topo: Topology, ranks: Array, stride: Array):
    """Groups of ``ranks`` GPUs whose numbers are ``stride`` apart, with their neighbours' groups next to them."""
    import numpy as np
    per_host = np.clip(topo.gpus_per_host // np.maximum(stride, 1), 1, ranks)
    return regular_placement(topo, ranks, per_host, np.minimum(stride, topo.gpus_per_host))
