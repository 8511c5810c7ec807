"""``estimate`` and the timeline read one model of kernels: a GPT step takes as long by both."""

from __future__ import annotations

import json
from pathlib import Path

import gpt
import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.cost import Estimate, Options, Parallelism, estimate, model, topology

SIZES = {  # none of them had a part in choosing the profile's constants
    "wide": gpt.GptConfig(vocab=16384, layers=3, heads=16, width=1536, seq=1024, batch=32, micro_batches=4),
    "long": gpt.GptConfig(vocab=32768, layers=4, heads=8, width=1024, seq=3072, batch=8, micro_batches=2),
}


def estimated(size: gpt.GptConfig) -> Estimate:
    """The step by ``estimate``."""
    shape = model("gpt", layers=size.layers, hidden=size.width, heads=size.heads, seq=size.seq, vocab=size.vocab)
    sizes = Parallelism(1, 1, 8, size.batch * size.micro_batches, size.batch // 8)
    return estimate(shape, sizes, topology("h200:1x8"), Options(dtype="tf32", stack="xla", grad_bytes=4))


@pytest.mark.parametrize("size", SIZES)
def test_a_gpt_step_takes_as_long_by_its_schedule(size: str, tmp_path: Path,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    """The step with its reductions after the loop, compiled for eight described H200."""
    before, after = tmp_path / "step.export", tmp_path / "shifted.export"
    before.write_bytes(gpt.export_step(SIZES[size]))
    assert guarded(["opt", str(before), "--pass=comm-shift", "--emit=export", "-o", str(after)]) == 0
    capsys.readouterr()
    code = guarded(["timeline", str(after), "--target", "h200:1x8", "--slowdown", "0", "--json"])
    printed = capsys.readouterr()
    if code == 2 and "jax-cuda" in printed.err:
        pytest.skip("compiling for described GPUs needs jax-cuda13-plugin: pip install 'hlorewrite[aot]'")
    step = json.loads(printed.out)["step_s"]
    assert estimated(SIZES[size]).iteration_time_s == pytest.approx(step, rel=0.05)


@pytest.mark.parametrize("size", SIZES)
def test_a_gpt_step_takes_as_long_by_its_module(size: str) -> None:
    """By the model of fusion on StableHLO, which lies up to a fifth from schedules."""
    import jax

    from hlorewrite.cost.kernels.clock import KernelClock
    from hlorewrite.ir.load import parse
    from hlorewrite.ir.view import View
    config = SIZES[size]
    exported = jax.export.deserialize(bytearray(gpt.export_step(config)))
    module = parse(exported.mlir_module(), name=size)
    seconds = KernelClock(View(module), topology("h200:1x8")).function_seconds("main")
    assert estimated(config).t_comp_s == pytest.approx(seconds, rel=0.2)
