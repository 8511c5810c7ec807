"""Programs of other libraries train the same under ``hlorewrite exec``, unedited.

Keras, MaxText and accumulation across calls run in ``make nightly`` (``tools/trainers.py``).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ROOT / "examples" / "trainers"


def comparing() -> ModuleType:
    """``examples/trainers/compare.py``."""
    spec = importlib.util.spec_from_file_location("compare", TRAINERS / "compare.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compare"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("program", "before", "after"), [
    ("linen_optax.py", 25744, 6436), ("nnx_trainer.py", 25744, 6436), ("equinox_multisteps.py", 25744, 6436),
])
def test_accumulation_inside_the_step_reduces_once(program: str, before: int, after: int) -> None:
    """Four micro-batches: a quarter of the bytes, which is what the parameters and the loss weigh."""
    found = comparing().compare([str(TRAINERS / program), "10"])
    assert len(found.plain) == 10 and found.plain[-1] < found.plain[0]
    assert found.difference < 1e-6
    assert (found.step["bytes_before"], found.step["bytes_after"]) == (before, after)
