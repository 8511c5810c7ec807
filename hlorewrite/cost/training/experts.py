"""Uneven experts: how far the fullest rank lies above the mean, and when the all-to-alls burst.

The gate sends each token to k of E experts. Token shares over experts follow a symmetric Dirichlet law whose
concentration says how even they are: training starts uneven and grows uniform (APNet 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Load of the fullest expert rank over the mean, as a distribution.

    Args:
      mean: expected value.
      median: the middle.
      p95: 95 of 100 micro-batches stay below it.
      largest: the worst possible, all tokens on one rank.
    """

    mean: float
    median: float
    p95: float
    largest: float


def expert_imbalance(experts: int, ep: int, concentration: float, *, samples: int = 2000, seed: int = 0) -> Imbalance:
    """The distribution of the fullest rank's load.

    Args:
      experts: experts of a layer, E.
      ep: ranks they are spread over.
      concentration: the concentration of the Dirichlet law; 100 is nearly even, 1 is very uneven.
      samples: draws.
      seed: the seed of the draws.

    Returns:
      The distribution of max over mean.

    Raises:
      UsageError: a number is out of range.

    Example:
      >>> expert_imbalance(8, 8, 100.0).mean < expert_imbalance(8, 8, 1.0).mean
      True
    """
    if ep < 1 or experts % ep:
        raise UsageError(f"{experts} experts are not divisible by ep = {ep}", hint="change --ep")
    if concentration <= 0:
        raise UsageError(f"a concentration of {concentration}", hint="it must be above 0; 100 is nearly even")
    import numpy as np
    shares = np.random.default_rng(seed).dirichlet(np.full(experts, concentration), size=samples)
    fullest = shares.reshape(samples, ep, experts // ep).sum(-1).max(-1) * ep
    return Imbalance(float(fullest.mean()), float(np.median(fullest)), float(np.quantile(fullest, 0.95)), float(ep))


def sample_expert_matrix(payload_bytes: float, ranks: int, concentration: float, *, seed: int = 0) -> Array:
    """One draw of an uneven all-to-all.

    Args:
      payload_bytes: bytes one rank dispatches.
      ranks: ranks of the group.
      concentration: the concentration of the Dirichlet law.
      seed: the seed of the draw.

    Returns:
      Bytes from row to column, shape (ranks, ranks), zero on the diagonal.
    """
    import numpy as np
    shares = np.random.default_rng(seed).dirichlet(np.full(ranks, concentration))
    matrix = np.tile(payload_bytes * shares, (ranks, 1))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def on_off_pattern(micro_batches: int, layers: int, layer_s: float, burst_s: float) -> list[tuple[float, float]]:
    """When the expert all-to-alls of a forward and backward pass are active.

    Args:
      micro_batches: m.
      layers: mixture layers of a stage.
      layer_s: compute of a layer's forward pass; backward takes twice that.
      burst_s: one all-to-all.

    Returns:
      (start, end) in seconds of each burst: dispatch and combine, forward then backward, of each layer.

    Example:
      >>> on_off_pattern(1, 1, 1.0, 0.5)[:2]
      [(0.5, 1.0), (1.5, 2.0)]
    """
    bursts, now = [], 0.0
    for scale in [part for _ in range(micro_batches) for part in (1.0, 2.0) for _ in range(layers)]:
        for _ in ("dispatch", "combine"):
            now += scale * layer_s / 2
            bursts.append((now, now + burst_s))
            now += burst_s
    return bursts
