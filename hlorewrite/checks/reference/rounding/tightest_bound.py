"""Differences and their bounds: finds the element and the output that come closest to their rounding bound."""

from collections.abc import Sequence

import numpy as np


def nearest(expected: np.ndarray, actual: np.ndarray, most: np.ndarray) -> tuple[float, float]:
    """The difference and the bound of the element that uses the largest share of its bound.

    Args:
      expected: what the original computed.
      actual: what the rewritten module computed.
      most: the bound of each element, or one for all.

    Returns:
      (difference, bound), absolute; of elements that are equal the one with the largest bound.

    Example:
      >>> nearest(np.array([1.0, 2.0]), np.array([1.5, 2.0]), np.array([1.0, 4.0]))
      (0.5, 1.0)
      >>> nearest(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([1.0, 4.0]))
      (0.0, 4.0)
    """
    if not expected.size:
        return 0.0, 0.0
    apart, most = apart_by(expected, actual), np.broadcast_to(most, expected.shape).reshape(-1)
    with np.errstate(all="ignore"):
        shares = np.where(apart == 0, 0.0, np.where(most > 0, apart / most, np.inf))
    worst = np.flatnonzero(shares == shares.max())
    at = worst[np.argmax(apart[worst])] if shares.max() else np.argmax(most)
    return float(apart[at]), float(most[at])


def at_largest(apart: np.ndarray, most: np.ndarray) -> tuple[float, float]:
    """The largest difference and the bound of its element.

    Args:
      apart: the difference of each element, as `apart_by` gives it.
      most: the bound of each element, of the same shape.

    Returns:
      (difference, bound), absolute; of elements with equal differences the one with the largest bound.

    Example:
      >>> at_largest(np.array([0.5, 2.0, 1.0]), np.array([300.0, 8.0, 3.0]))
      (2.0, 8.0)
    """
    difference = float(apart.max(initial=0.0))
    return difference, float(most[apart == difference].max(initial=0.0))


def apart_by(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """The absolute difference of each element; infinite if NaN or an infinity is on only one side."""
    if expected.dtype.kind in "iub" or "int" in expected.dtype.name:
        return np.where(expected == actual, 0.0, np.abs(expected.astype(object) - actual.astype(object)).astype(float)
                        ).reshape(-1)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = expected.astype(wide).reshape(-1), actual.astype(wide).reshape(-1)
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isnan(apart), np.inf, apart))


def share(pair: tuple[float, float]) -> tuple[float, float]:
    """How much of a bound a difference uses, to find the largest; if shares are equal, the larger bound counts.

    Example:
      >>> share((0.5, 1.0)), share((0.0, 0.0)), share((1.0, 0.0))
      ((0.5, 1.0), (0.0, 0.0), (inf, 0.0))
    """
    difference, bound = pair
    return (difference / bound if bound else float("inf") if difference else 0.0), bound


def bound_lines(rows: Sequence[tuple[str, float | None, float | None, str]]) -> list[str]:
    """Messages about some outputs: which is nearest to its bound, and which have none.

    Args:
      rows: for each output its name, and the difference and bound of its nearest element, or why there is no bound.

    Example:
      >>> print(*bound_lines([("#0", 4.1e-7, 2.2e-6, ""), ("#1", 0.0, 0.0, ""), ("#2", None, None, "sort")]), sep="\\n")
      nearest to its bound: output #0, 4.1e-07 of 2.2e-06
      output #2 is compared with a tolerance, no bound: sort
    """
    bounded = [(name, (difference, bound)) for name, difference, bound, _ in rows
               if difference is not None and bound is not None]
    lines = []
    if any(share(pair)[0] for _, pair in bounded):
        name, (difference, bound) = max(bounded, key=lambda row: share(row[1]))
        where = "nearest to" if difference <= bound else "above"
        lines.append(f"{where} its bound: output {name}, {difference:.2g} of {bound:.2g}")
    return lines + [f"output {name} is compared with a tolerance, no bound: {reason}" for name, _, _, reason in rows
                    if reason]
