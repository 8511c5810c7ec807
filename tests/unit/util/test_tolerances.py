"""The one table of tolerances."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.program import Outcome
from hlorewrite.jaxbridge.xla.execute import Value, compare_output
from hlorewrite.util.tolerances import relative_tolerance

FLOATS = [np.dtype(name) for name in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_another_order_of_a_sum_passes_and_a_missing_term_does_not(dtype: np.dtype) -> None:
    """Of eight devices, and of 256 terms added in the type itself."""
    numbers = np.random.default_rng(0).uniform(0.5, 1.5, (8, 32, 16)).astype(dtype)
    flat = numbers.reshape(256, 16)

    def added(rows: np.ndarray) -> np.ndarray:
        total = np.zeros(rows.shape[1:], dtype)
        for row in rows:
            total = total + row
        return total
    right = added(flat[:64])
    halves = [added(flat[k:64:8]) for k in range(8)]
    other, wrong = added(np.stack(halves)), added(np.stack(halves[:7]))
    scale, bound = float(np.abs(right.astype(np.float64)).max()), relative_tolerance(dtype)
    assert np.abs(right.astype(np.float64) - other.astype(np.float64)).max() / scale <= bound
    assert np.abs(right.astype(np.float64) - wrong.astype(np.float64)).max() / scale > bound


@pytest.mark.parametrize("name", ["bool", "int4", "uint4", "int8", "uint64"])
def test_integers_are_compared_exactly(name: str) -> None:
    """Those of ml_dtypes too, which NumPy takes for records."""
    assert relative_tolerance(np.dtype(getattr(ml_dtypes, name, name))) == 0.0


@pytest.mark.parametrize("dtype", [np.dtype(np.complex64), np.dtype(np.complex128), np.dtype(ml_dtypes.float8_e5m2),
                                   np.dtype(ml_dtypes.float4_e2m1fn), *FLOATS, np.dtype(np.int32)], ids=str)
def test_both_comparisons_allow_the_same(dtype: np.dtype) -> None:
    """``--check=interp`` and ``verify``."""
    array = np.ones(2, dtype)
    outcome = Outcome(((array,),), diverged=False, replicas_differ=False)
    by_oracle = compare(outcome, outcome).rows[0].tolerance
    by_devices = compare_output(Value("out", (2,), "?", ""), [array], [array], dtype=dtype).tolerance
    assert by_oracle == by_devices == relative_tolerance(dtype)
