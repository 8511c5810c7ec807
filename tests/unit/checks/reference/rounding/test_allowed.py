"""The table of a comparison: what is allowed stands beside the error it is about."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.program import Outcome
from hlorewrite.checks.reference.rounding.bounds import OutputBound, RoundingBounds


@pytest.mark.parametrize(("second", "equal", "allowed", "line"), [
    (1.4, True, "10", "nearest to its bound: output @main #0, 0.4 of 0.5"),
    (1.6, False, "0.5", "above its bound: output @main #0, 0.6 of 0.5")])
def test_each_element_has_its_own_bound(second: float, equal: bool, allowed: str, line: str) -> None:
    """The largest error is that of the first element, and the second one is nearest to its bound."""
    before, after = (Outcome(((np.array(values),),), False, False) for values in ([100.0, 1.0], [104.0, second]))
    found = compare(before, after, "main", rounding=RoundingBounds(((OutputBound(np.array([10.0, 0.5])),),)))
    [row] = found.rows
    assert (row.equal, row.absolute, row.allowed) == (equal, 4.0, allowed)
    assert line in found.table()
    assert found.from_json(found.to_json()) == found
