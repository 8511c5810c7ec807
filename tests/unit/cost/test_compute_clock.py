"""The model's time of kernels of a module that is not compiled yet."""

from __future__ import annotations

import pytest

from hlorewrite.cost import topology
from hlorewrite.cost.compute_clock import ComputeClock
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

SQUARE = "tensor<8192x8192x{}>"


def seconds(element: str, precision: str = "", cluster: str = "h200") -> float:
    """Of one product."""
    t = SQUARE.format(element)
    view = View(parse(f"func.func @f(%a: {t}) -> {t} {{ %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]"
                      f"{precision} : ({t}, {t}) -> {t} return %0 : {t} }}"))
    return ComputeClock(view, topology(cluster)).seconds(view.ops("stablehlo.dot_general")[0])


@pytest.mark.parametrize(("precision", "peak"), [
    ("", "tf32"), (", precision = [DEFAULT, DEFAULT]", "tf32"), (", precision = [HIGHEST, HIGHEST]", "f32"),
    (", precision = [HIGH, DEFAULT]", "f32")])
def test_f32_is_multiplied_in_tf32_where_the_precision_allows(precision: str, peak: str) -> None:
    """As XLA:GPU does it, and as the timeline of the compiled step has it."""
    peaks = topology("h200").peak_flops
    assert seconds("f32", precision) == pytest.approx(seconds("bf16") * peaks["bf16"] / peaks[peak], rel=0.01)
