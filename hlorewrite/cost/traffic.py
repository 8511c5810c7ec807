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

from hlorewrite.cost.collectives.kinds import check_kind
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import BYTES, Options, Parallelism
from hlorewrite.errors import UsageError
from hlorewrite.ir.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BY_KIND,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
    wire_share,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

MOST_DEVICES = 16384
"""Rows and columns of the largest matrix: two GiB."""
CATEGORIES = ("tp", "dp", "pp", "embedding", "ep")


@dataclass(frozen=True, slots=True)
class CollectiveTraffic:
    """One collective of an iteration, executed some number of times.

    Args:
      kind: one of ``hlorewrite.cost.KINDS``.
      payload_bytes: the larger of operand and result, bytes of one device.
      groups: device numbers of each group; [source, target] pairs for collective-permute.
      count: how many times an iteration executes it.
      category: what it is for: one of ``CATEGORIES``, or empty.
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
    """GPU number of a pipeline stage's, data and tensor coordinate: tensor rank runs fastest, stage slowest."""
    return (stage * sizes.dp + data) * sizes.tp + tensor


def iteration_transfers(shape: ModelShape, sizes: Parallelism,
                        options: Options | None = None) -> list[CollectiveTraffic]:
    """Every collective of one iteration, from the configuration alone.

    Args:
      shape: the model.
      sizes: groups and batches, integers.
      options: recomputation, sequence parallelism, ZeRO stage, dtype.

    Returns:
      Transfers of the categories ``tp``, ``dp``, ``pp``, ``embedding`` and ``ep``.

    Example:
      >>> from hlorewrite.cost import Parallelism, model
      >>> small = model("gpt", layers=4, hidden=8, heads=2, seq=4, vocab=16)
      >>> sorted({t.category for t in iteration_transfers(small, Parallelism(2, 2, 2, 8))})
      ['dp', 'embedding', 'pp', 'tp']
    """
    options = options or Options()
    transfers = [*_tensor(shape, sizes, options), *_pipeline(shape, sizes, options), *_data(shape, sizes, options),
                 *_experts(shape, sizes, options)]
    return [transfer for transfer in transfers if transfer.groups and transfer.payload_bytes and transfer.count]


def _groups(sizes: Parallelism, axis: str, stages: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Groups along one axis within the given stages."""
    if axis == "tp":
        return tuple(tuple(rank(sizes, s, d, t) for t in range(sizes.tp)) for s in stages for d in range(sizes.dp))
    return tuple(tuple(rank(sizes, s, d, t) for d in range(sizes.dp)) for s in stages for t in range(sizes.tp))


def _activation_bytes(shape: ModelShape, sizes: Parallelism, options: Options) -> float:
    return sizes.micro_batch * shape.seq * shape.hidden * BYTES[options.dtype]


def _tensor(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    if sizes.tp == 1:
        return []
    groups = _groups(sizes, "tp", range(sizes.pp))
    payload = _activation_bytes(shape, sizes, options)
    passes = 3 if options.recompute == "full" else 2
    count = sizes.micro_batches * shape.layers // sizes.pp * shape.all_reduces_per_layer * passes
    kinds = (ALL_GATHER.kind, REDUCE_SCATTER.kind) if options.sequence_parallel else (ALL_REDUCE.kind,)
    transfers = [CollectiveTraffic(kind, payload, groups, count, "tp") for kind in kinds]
    if options.sequence_parallel:  # norms see a part of the sequence each: their gradients are partial sums
        element = options.grad_bytes or BYTES[options.dtype]
        copied = shape.layers * shape.copied_small / sizes.pp * element
        transfers.append(CollectiveTraffic(ALL_REDUCE.kind, copied, groups, 1, "tp"))
    if options.vocabulary_terms:
        transfers += _vocabulary(shape, sizes, options)
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
            CollectiveTraffic(ALL_REDUCE.kind, 4.0 * sizes.micro_batch * shape.seq, last, 3 * m, "tp")]


def _pipeline(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    if sizes.pp == 1:
        return []
    split = sizes.tp if options.sequence_parallel or options.scatter_gather else 1
    payload = _activation_bytes(shape, sizes, options) / split
    places = [(d, t) for d in range(sizes.dp) for t in range(sizes.tp)]
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
    element = options.grad_bytes or BYTES[options.dtype]
    transfers = []
    for stage in range(sizes.pp):
        groups = _groups(sizes, "dp", [stage])
        dense, expert = stage_weights(shape, sizes, stage)
        if sizes.dp > 1:
            transfers += _reductions(dense, groups, element, options)
        if expert and sizes.dp > sizes.ep:
            narrow = tuple(tuple(group[i] for i in range(first, sizes.dp, sizes.ep))
                           for group in groups for first in range(sizes.ep))
            transfers += _reductions(expert, narrow, element, options)
    if shape.tied_embedding and sizes.pp > 1:
        ends = tuple((rank(sizes, 0, d, t), rank(sizes, sizes.pp - 1, d, t))
                     for d in range(sizes.dp) for t in range(sizes.tp))
        transfers.append(CollectiveTraffic(ALL_REDUCE.kind, shape.embedding_parameters / sizes.tp * element, ends, 1,
                                           "embedding"))
    return transfers


def stage_weights(shape: ModelShape, sizes: Parallelism, stage: int) -> tuple[float, float]:
    """(dense, expert) parameters on one GPU of a stage.

    Matrices and their biases are split over t, norms and the biases added after a reduction are not; both ends of the
    pipeline hold an embedding, the first also the positions.
    """
    experts = shape.layers * shape.expert_weights * shape.experts if shape.experts > 1 else 0.0
    first, last = stage == 0, stage == sizes.pp - 1
    tables = shape.embedding_parameters * (2 if first and last and not shape.tied_embedding else first or last)
    expert = experts / (sizes.pp * sizes.tp * sizes.ep)
    if shape.parameters_given is not None:  # nothing is known of its parts: all is split evenly
        copies = 1 if shape.tied_embedding else 2
        layers = shape.parameters - experts - copies * shape.embedding_parameters
        return (layers / sizes.pp + tables) / sizes.tp, expert
    split = shape.layers * (shape.layer_weights + shape.split_small) - experts
    copied = shape.layers * shape.copied_small / sizes.pp + (shape.position_parameters if first else 0.0)
    return (split / sizes.pp + tables) / sizes.tp + copied, expert


def _reductions(weights: float, groups: tuple[tuple[int, ...], ...], element: int,
                options: Options) -> list[CollectiveTraffic]:
    if options.zero == 0:
        return [CollectiveTraffic(ALL_REDUCE.kind, weights * element, groups, 1, "dp")]
    gathers = 2 if options.zero == 3 else 1
    return [CollectiveTraffic(REDUCE_SCATTER.kind, weights * element, groups, 1, "dp"),
            CollectiveTraffic(ALL_GATHER.kind, weights * BYTES[options.dtype], groups, gathers, "dp")]


def _experts(shape: ModelShape, sizes: Parallelism, options: Options) -> list[CollectiveTraffic]:
    if shape.experts == 1 or sizes.ep == 1:
        return []
    groups = tuple(group[first:first + sizes.ep] for group in _groups(sizes, "dp", range(sizes.pp))
                   for first in range(0, sizes.dp, sizes.ep))
    split = sizes.tp if options.sequence_parallel else 1
    payload = shape.top_k * _activation_bytes(shape, sizes, options) / split
    passes = 6 if options.recompute == "full" else 4
    count = sizes.micro_batches * shape.layers // sizes.pp * passes
    return [CollectiveTraffic(ALL_TO_ALL.kind, payload, groups, count, "ep")]
