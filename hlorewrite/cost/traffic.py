"""The communication matrix: bytes every GPU sends to every other in one iteration.

One rule turns a collective into traffic, whether the collective comes from a formula or from a module. All-reduce,
all-gather and reduce-scatter are rings in group order (2(n-1)/n, (n-1)/n and (n-1)/n of the payload to the next
member); an all-to-all sends 1/n of its operand to each member, a permute its operand to its target, a broadcast
passes its operand down the group. A matrix counts logical traffic, not the algorithm NCCL picks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.cost.collective_kinds import check_kind
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import Options, Parallelism
from hlorewrite.errors import UsageError
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BY_KIND, COLLECTIVE_PERMUTE, REDUCE_SCATTER, wire_share

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

MOST_DEVICES = 16384
"""Rows and columns of the largest matrix: two GiB."""
CATEGORIES = ("tp", "cp", "dp", "pp", "embedding", "ep")


@dataclass(frozen=True, slots=True)
class CollectiveTraffic:
    """One collective of an iteration, executed some number of times.

    Args:
      kind: one of ``hlorewrite.cost.KINDS``.
      payload_bytes: the larger of operand and result, bytes of one device.
      groups: device numbers of each group; [source, target] pairs for collective-permute.
      count: how many times an iteration executes it.
      category: its purpose: one of ``CATEGORIES``, or empty.
    """

    kind: str
    payload_bytes: float
    groups: tuple[tuple[int, ...], ...]
    count: float = 1.0
    category: str = ""


def add_traffic(matrix: Array, transfer: CollectiveTraffic) -> None:
    """Adds one collective's bytes to a matrix, in place.

    Args:
      matrix: bytes from row to column, shape (GPUs, GPUs).
      transfer: the collective.
    """
    check_kind(transfer.kind)
    sent = transfer.payload_bytes * transfer.count
    for group in transfer.groups:
        n = len(group)
        if n < 2:
            continue
        if BY_KIND[transfer.kind].copies:
            for source, target in itertools.pairwise(group):
                if source != target:
                    matrix[source, target] += sent
        elif transfer.kind == ALL_TO_ALL.kind:
            for source in group:
                for target in group:
                    if source != target:
                        matrix[source, target] += sent / n
        else:
            share = sent * float(wire_share(transfer.kind, n))
            for source, target in zip(group, (*group[1:], group[0]), strict=True):
                matrix[source, target] += share


def traffic_matrix(transfers: Iterable[CollectiveTraffic], gpus: int) -> Array:
    """The matrix of all transfers together.

    Args:
      transfers: collectives of an iteration.
      gpus: GPUs of the cluster.

    Returns:
      Bytes from row to column, shape (gpus, gpus).

    Raises:
      UsageError: there are more than ``MOST_DEVICES`` GPUs.

    Example:
      >>> traffic_matrix([CollectiveTraffic("all-reduce", 100, ((0, 1),))], 2).tolist()
      [[0.0, 100.0], [100.0, 0.0]]
    """
    import numpy as np
    if gpus > MOST_DEVICES:
        raise UsageError(f"a matrix of {gpus} devices is too large", hint=f"matrices have at most {MOST_DEVICES} rows")
    matrix = np.zeros((gpus, gpus))
    for transfer in transfers:
        add_traffic(matrix, transfer)
    return matrix


def traffic_by_category(transfers: Iterable[CollectiveTraffic], gpus: int) -> Mapping[str, Array]:
    """One matrix for each category that occurs, in the order of ``CATEGORIES``."""
    listed = list(transfers)
    return {category: traffic_matrix((t for t in listed if t.category == category), gpus)
            for category in CATEGORIES if any(t.category == category for t in listed)}


def rank(sizes: Parallelism, stage: int, data: int, tensor: int) -> int:
    """The number of the GPU at a stage, data and tensor coordinate: the tensor rank runs fastest, the stage slowest.

    Data coordinates count context ranks too, which run faster than replicas.
    """
    return (stage * sizes.replicas + data) * sizes.tp + tensor


def layers_of(shape: ModelShape, sizes: Parallelism, stage: int) -> int:
    """Layers of a stage; if they do not divide evenly, the last stages have one fewer."""
    full = -(-shape.layers // sizes.pp)
    return full - (stage >= sizes.pp - (full * sizes.pp - shape.layers))


def iteration_transfers(shape: ModelShape, sizes: Parallelism,
                        options: Options | None = None) -> list[CollectiveTraffic]:
    """Every collective of one iteration, from the configuration alone.

    Args:
      shape: the model.
      sizes: groups and batches, integers.
      options: recomputation, sequence parallelism, ZeRO stage, dtype.

    Returns:
      Transfers of the categories ``tp``, ``cp``, ``dp``, ``pp``, ``embedding`` and ``ep``.

    Example:
      >>> from hlorewrite.cost import Parallelism, model
      >>> small = model("gpt", layers=4, hidden=8, heads=2, seq=4, vocab=16)
      >>> sorted({t.category for t in iteration_transfers(small, Parallelism(2, 2, 2, 8))})
      ['dp', 'embedding', 'pp', 'tp']
    """
    options = options or Options()
    transfers = [*_tensor(shape, sizes, options), *_context(shape, sizes, options), *_pipeline(shape, sizes, options),
                 *_data(shape, sizes, options), *_experts(shape, sizes, options)]
    return [transfer for transfer in transfers if transfer.groups and transfer.payload_bytes and transfer.count]


def _groups(sizes: Parallelism, axis: str, stages: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Groups along one axis within the given stages."""
    d = sizes.replicas
    if axis == "tp":
        return tuple(tuple(rank(sizes, s, i, t) for t in range(sizes.tp)) for s in stages for i in range(d))
    return tuple(tuple(rank(sizes, s, i, t) for i in range(d)) for s in stages for t in range(sizes.tp))


def _activation_bytes(shape: ModelShape, sizes: Parallelism, options: Options) -> float:
    return sizes.micro_batch * shape.seq / sizes.cp * shape.hidden * options.store_bytes


def _passes(options: Options, layers: int) -> tuple[int, int]:
    """(layers of a stage that run their forward pass twice, layers that run it once)."""
    again = layers if options.recompute == "full" else 0
    if options.recompute_layers is not None:
        again = min(again, options.recompute_layers)
    return again, layers - again


def _tensor(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    if sizes.tp == 1:
        return []
    payload = _activation_bytes(shape, sizes, options)
    kinds = (ALL_GATHER.kind, REDUCE_SCATTER.kind) if options.sequence_parallel else (ALL_REDUCE.kind,)
    transfers = []
    for layers, stages in _equal_stages(shape, sizes):
        groups = _groups(sizes, "tp", stages)
        again, once = _passes(options, layers)
        count = sizes.micro_batches * shape.all_reduces_per_layer * (3 * again + 2 * once)
        transfers += [CollectiveTraffic(kind, payload, groups, count, "tp") for kind in kinds]
        if options.sequence_parallel:  # norms see a part of the sequence each: their gradients are partial sums
            copied = layers * shape.copied_small * (options.grad_bytes or options.store_bytes)
            transfers.append(CollectiveTraffic(ALL_REDUCE.kind, copied, groups, 1, "tp"))
    if options.vocabulary_terms:
        transfers += _vocabulary(shape, sizes, options)
    return transfers


def _equal_stages(shape: ModelShape, sizes: Parallelism) -> list[tuple[int, list[int]]]:
    """Stages by their number of layers."""
    found: dict[int, list[int]] = {}
    for stage in range(sizes.pp):
        found.setdefault(layers_of(shape, sizes, stage), []).append(stage)
    return list(found.items())


def _context(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    """Keys and values over the ranks of a sequence: gathered in each pass, their gradients reduced."""
    if sizes.cp == 1 or not shape.attends:
        return []
    payload = sizes.micro_batch * shape.seq * shape.kv_width / sizes.tp * options.store_bytes
    transfers = []
    for layers, stages in _equal_stages(shape, sizes):
        groups = tuple(group[first:first + sizes.cp] for group in _groups(sizes, "dp", stages)
                       for first in range(0, sizes.replicas, sizes.cp))
        again, once = _passes(options, layers)
        transfers += [CollectiveTraffic(kind, payload, groups, sizes.micro_batches * count, "cp")
                      for kind, count in ((ALL_GATHER.kind, 3 * again + 2 * once), (REDUCE_SCATTER.kind, layers))]
    return transfers


def _vocabulary(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    """Reductions of an embedding split over the vocabulary.

    Looked-up rows once forward; the head's input gradient once backward; the loss's maximum, sum of exponentials and
    label's logit, b s numbers in f32 each.
    """
    m = sizes.micro_batches
    payload = _activation_bytes(shape, sizes, options)
    first, last = _groups(sizes, "tp", [0]), _groups(sizes, "tp", [sizes.pp - 1])
    return [CollectiveTraffic(ALL_REDUCE.kind, payload, first, m, "tp"),
            CollectiveTraffic(ALL_REDUCE.kind, payload, last, m, "tp"),
            CollectiveTraffic(ALL_REDUCE.kind, 4.0 * sizes.micro_batch * shape.seq / sizes.cp, last, 3 * m, "tp")]


def _pipeline(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    if sizes.pp == 1:
        return []
    split = sizes.tp if options.sequence_parallel or options.scatter_gather else 1
    payload = _activation_bytes(shape, sizes, options) / split
    places = [(d, t) for d in range(sizes.replicas) for t in range(sizes.tp)]
    transfers = []
    # Chunk c of the last stage feeds chunk c+1 of the first: the wrap is crossed once less than the others.
    for stage in range(sizes.pp):
        crossings = sizes.virtual_stages - (stage == sizes.pp - 1)
        following = (stage + 1) % sizes.pp
        forward = tuple((rank(sizes, stage, d, t), rank(sizes, following, d, t)) for d, t in places)
        backward = tuple((target, source) for source, target in forward)
        count = sizes.micro_batches * crossings
        transfers += [CollectiveTraffic(COLLECTIVE_PERMUTE.kind, payload, pairs, count, "pp")
                      for pairs in (forward, backward)]
        if options.scatter_gather and not options.sequence_parallel and sizes.tp > 1:
            both = _groups(sizes, "tp", [following]) + _groups(sizes, "tp", [stage])
            transfers.append(CollectiveTraffic(ALL_GATHER.kind, payload * split, both, count, "pp"))
    return transfers


def _data(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    """Gradients of each stage's own parameters, ZeRO's gathers, and the tied embedding's reduction."""
    element = options.grad_bytes or options.store_bytes
    spread = sizes.expert_split * sizes.ep
    transfers = []
    for stage in range(sizes.pp):
        groups = _groups(sizes, "dp", [stage])
        dense, expert = stage_weights(shape, sizes, stage)
        if sizes.replicas > 1:
            transfers += _reductions(dense, groups, element, sizes, options)
        if expert and sizes.tp * sizes.replicas > spread:
            devices = [rank(sizes, stage, 0, 0) + i for i in range(sizes.tp * sizes.replicas)]
            holders = tuple(tuple(devices[first::spread]) for first in range(spread))
            transfers += _reductions(expert, holders, element, sizes, options)
    if shape.tied_embedding and sizes.pp > 1:
        ends = tuple((rank(sizes, 0, d, t), rank(sizes, sizes.pp - 1, d, t))
                     for d in range(sizes.replicas) for t in range(sizes.tp))
        transfers.append(CollectiveTraffic(ALL_REDUCE.kind, shape.embedding_parameters / sizes.tp * element, ends, 1,
                                           "embedding"))
    return transfers


def stage_weights(shape: ModelShape, sizes: Parallelism, stage: int) -> tuple[float, float]:
    """(dense, expert) parameters on one GPU of a stage.

    Matrices and their biases are split over t, norms and the biases added after a reduction are not; both ends of the
    pipeline hold an embedding, the first also the positions. Layers with and without experts are assumed to be spread
    evenly over the stages.
    """
    first, last = stage == 0, stage == sizes.pp - 1
    share = layers_of(shape, sizes, stage) / shape.layers
    tables = shape.embedding_parameters * (2 if first and last and not shape.tied_embedding else first or last)
    expert = shape.routed_weights * share / (sizes.expert_split * sizes.ep)
    if shape.parameters_given is not None:  # nothing is known about its parts: all is split evenly
        copies = 1 if shape.tied_embedding else 2
        layers = shape.parameters - shape.routed_weights - copies * shape.embedding_parameters
        return (layers * share + tables) / sizes.tp, expert
    split = shape.matrix_weights + shape.layers * shape.split_small - shape.routed_weights
    copied = shape.layers * shape.copied_small * share + (shape.position_parameters if first else 0.0)
    return (split * share + tables) / sizes.tp + copied, expert


def _reductions(weights: float, groups: tuple[tuple[int, ...], ...], element: int, sizes: Parallelism,
                options: Options) -> list[CollectiveTraffic]:
    """The traffic of some gradients, with the gathers of the weights where ZeRO shards them; FSDP's run in each
    micro-batch."""
    if options.zero == 0:
        return [CollectiveTraffic(ALL_REDUCE.kind, weights * element, groups, 1, "dp")]
    times = sizes.micro_batches if options.zero >= 2 else 1
    gathers = 2 if options.zero == 3 else 1
    return [CollectiveTraffic(REDUCE_SCATTER.kind, weights * element, groups, times, "dp"),
            CollectiveTraffic(ALL_GATHER.kind, weights * options.store_bytes, groups, times * gathers, "dp")]


def _experts(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    if not shape.expert_layers or sizes.ep == 1:
        return []
    split = sizes.cp * (sizes.tp if options.sequence_parallel else 1)
    payload = shape.top_k * sizes.micro_batch * shape.seq * shape.hidden * options.store_bytes / split
    transfers = []
    for layers, stages in _equal_stages(shape, sizes):
        groups = tuple(group for stage in stages for group in _expert_groups(sizes, stage))
        again, once = _passes(options, layers)
        mixed = shape.expert_layers / shape.layers
        count = sizes.micro_batches * (6 * again + 4 * once) * mixed
        transfers.append(CollectiveTraffic(ALL_TO_ALL.kind, payload, groups, count, "ep"))
    return transfers


def _expert_groups(sizes: Parallelism, stage: int) -> list[tuple[int, ...]]:
    """Ranks that share the experts of a stage: neighbours in data, or neighbours where they replace tensor ranks."""
    devices = [rank(sizes, stage, 0, 0) + i for i in range(sizes.tp * sizes.replicas)]
    stride = sizes.expert_split
    lanes = [devices[lane::stride] for lane in range(stride)]
    return [tuple(lane[first:first + sizes.ep]) for lane in lanes for first in range(0, len(lane), sizes.ep)]
