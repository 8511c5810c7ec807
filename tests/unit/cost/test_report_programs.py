"""The report of a program counts what one step executes, through its loop over micro-batches."""

from __future__ import annotations

from pathlib import Path

from hlorewrite.ir.load import load
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.adapter.collectives import collectives_of_program

GOLDEN = Path(__file__).parents[2] / "lit" / "passes" / "comm-shift" / "programs"
TWO = Path(__file__).parents[2] / "programs" / "two_stages.mlir"


def executed(path: Path, *, shifted: bool) -> dict[str, int]:
    """Executions of one step, by kind."""
    module = load(str(path))
    if shifted:
        run_passes(module, [CommShift()], PassContext())
    devices, lines, remarks = collectives_of_program(module)
    assert devices == 4
    assert not remarks
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.kind] = counts.get(line.kind, 0) + line.trips
    return counts


def test_reductions_before_and_after_comm_shift():
    assert executed(GOLDEN / "program.mlir", shifted=False)["all-reduce"] == 4
    assert executed(GOLDEN / "program.mlir", shifted=True)["all-reduce"] == 1
    tied = GOLDEN / "program-tied-weights.mlir"
    assert executed(tied, shifted=False) == {"all-reduce": 8, "collective-permute": 1}
    assert executed(tied, shifted=True) == {"all-reduce": 1, "collective-permute": 1}


def test_transfers_of_every_micro_batch():
    devices, lines, _ = collectives_of_program(load(str(TWO)))
    assert devices == 8
    assert [(line.kind, line.trips, line.payload_bytes) for line in lines] == [("collective-permute", 4, 128)] * 2
    assert lines[0].groups == ((0, 4), (1, 5), (2, 6), (3, 7))
