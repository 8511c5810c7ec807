"""What comm-shift knows after a placement without planning anew: it is what another plan would find."""

from __future__ import annotations

from pathlib import Path

import pytest
from spmd_helpers import V, loop, module, region

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.passes.comm_shift import comm_shift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder

GOLDEN = Path(__file__).resolve().parents[3] / "lit/passes/comm-shift"
FILES = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.mlir"))
GRADIENT = f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n"


def shifted(text: str) -> tuple[str, list[str]] | str:
    """The module after comm-shift and its remarks, or the refusal."""
    rewritten, recorder = parse(text, allow_unregistered=True), Recorder(wants_missed=True)
    try:
        run_passes(rewritten, parse_pipeline("comm-shift"), PassContext((recorder,)))
    except HlorewriteError as error:
        return str(error)
    return rewritten.text(), sorted(map(repr, recorder.remarks))


@pytest.mark.parametrize("name", FILES)
def test_planning_anew_finds_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same module and the same remarks."""
    parts = (GOLDEN / name).read_text(encoding="utf-8").split("// -----")
    known = [shifted(part) for part in parts]
    monkeypatch.setattr(comm_shift._Attempt, "_is_least", lambda *arguments: False)
    monkeypatch.setattr(comm_shift._Settled, "keep_apart_from", lambda self, placement: self.stay.clear())
    assert [shifted(part) for part in parts] == known


def plans(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many flows comm-shift builds for a program."""
    built: list[int] = []
    build = DeferralGraphBuilder.build
    monkeypatch.setattr(DeferralGraphBuilder, "build", lambda self, sources: built.append(1) or build(self, sources))
    assert run_passes(module(text).module, parse_pipeline("comm-shift"), PassContext())
    return len(built)


SUM = f"%new = stablehlo.add %acc, %g : {V}"


@pytest.mark.parametrize(("body", "result", "count"), [
    (GRADIENT + SUM, "%l#1", 1),
    # a clip's square reads the sum twice
    (GRADIENT + SUM, f"%q = stablehlo.multiply %l#1, %l#1 : {V}|%q", 1),
    # scaled by a value that is reduced too: that one stays in the loop, next to each device's own sum
    (GRADIENT + f"%one_s = stablehlo.slice %s [0:1] : ({V}) -> tensor<1xf32>\n%h = AR(%one_s) : tensor<1xf32>\n"
     f"%b = stablehlo.broadcast_in_dim %h, dims = [0] : (tensor<1xf32>) -> {V}\n"
     f"%m = stablehlo.multiply %g, %b : {V}\n%new = stablehlo.add %acc, %m : {V}", "%l#1", 2),
])
def test_a_class_that_was_placed_is_not_planned_again(body: str, result: str, count: int,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """But where one factor of a product leaves and the other stays: it meets other values now."""
    tail, _, returned = result.rpartition("|")
    assert plans(region(loop("l", 5, {"acc": "%zero"}, body, "%new") + tail, returned), monkeypatch) == count
