"""Ranks all configurations of a model on a cluster that divide evenly and fit in memory."""

import math
from dataclasses import dataclass

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.training.iteration import Estimate, estimate_many
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import MOST_SEQUENCES, Options, Parallelism, check_options
from hlorewrite.errors import UsageError


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration and what it costs."""

    sizes: Parallelism
    cost: Estimate


def search(shape: ModelShape, topo: Topology, global_batch: int, options: Options | None = None, *,
           most_virtual_stages: int = 1, memory_share: float = 0.94) -> list[Candidate]:
    """All (p, t, d, b, v) that divide evenly and fit, fastest first.

    Args:
      shape: the model.
      topo: the cluster.
      global_batch: sequences of an iteration.
      options: recomputation, ZeRO, dtype and so on.
      most_virtual_stages: try up to that many model chunks of a stage.
      memory_share: share of a GPU's memory a configuration may use.

    Returns:
      Candidates by iteration time; empty when nothing fits.

    Raises:
      UsageError: the global batch or an option is not possible.

    Example:
      >>> from hlorewrite.cost import model, topology
      >>> best = search(model("gpt-22b"), topology("a100:2x8"), 64, Options(recompute="full"))[0]
      >>> best.sizes.pp * best.sizes.tp * best.sizes.dp
      16
    """
    options = options or Options()
    check_options(options)
    if not 1 <= global_batch <= MOST_SEQUENCES:
        raise UsageError(f"global_batch is {global_batch}", hint=f"sizes must be from 1 to {MOST_SEQUENCES}")
    rows = configurations(shape, topo, global_batch, options, most_virtual_stages)
    if not rows:
        return []
    import numpy as np
    columns = np.array(rows, dtype=float).T
    cost = estimate_many(shape, Parallelism(*columns), topo, options)
    fits = np.flatnonzero(cost.memory_bytes_per_gpu <= memory_share * topo.memory_bytes)
    order = fits[np.argsort(cost.iteration_time_s[fits], kind="stable")]
    values = cost.as_dict().values()
    return [Candidate(Parallelism(*rows[i]), Estimate(*(float(value[i]) for value in values))) for i in order]


def configurations(shape: ModelShape, topo: Topology, global_batch: int, options: Options,
                   most_virtual_stages: int) -> list[tuple[int, ...]]:
    """Rows (pp, tp, dp, global batch, micro-batch, ep, virtual stages) that divide evenly."""
    rows = []
    for t in _divisors(topo.gpus):
        if shape.heads % t or (options.sequence_parallel and shape.seq % t):
            continue
        for p in _divisors(topo.gpus // t):
            d = topo.gpus // t // p
            if shape.layers % p or global_batch % d:
                continue
            for b in _divisors(global_batch // d):
                for v in range(1, most_virtual_stages + 1 if p > 1 else 2):
                    if shape.layers % (p * v) == 0:
                        rows += [(p, t, d, global_batch, b, ep, v) for ep in _divisors(d) if shape.experts % ep == 0]
    return rows


def _divisors(number: int) -> list[int]:
    small = [part for part in range(1, math.isqrt(number) + 1) if number % part == 0]
    return small + [number // part for part in reversed(small) if part * part != number]
