"""``-O comm`` on every golden input: a second run changes no byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlorewrite.ir.load import load
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

LIT = Path(__file__).parents[1] / "lit"
LEFT_OUT = {"not-spmd.mlir": "is refused", "reshard-to-broadcast": "programs of several meshes, which no pass reads"}
"""Files and folders that are not about ``-O comm``, with the reason."""
INPUTS = sorted(path for path in LIT.rglob("*.mlir") if LEFT_OUT.keys().isdisjoint((path.name, path.parent.name))
                and "expected-error" not in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", INPUTS, ids=[str(path.relative_to(LIT)) for path in INPUTS])
def test_twice_is_once(path: Path) -> None:
    """Also with programs that were written for other passes."""
    module = load(str(path), allow_unregistered=True)
    run_passes(module, parse_pipeline("comm"), PassContext(topology="h200:8x8"))
    text = module.text()
    run_passes(module, parse_pipeline("comm"), PassContext(topology="h200:8x8"))
    assert module.text() == text
