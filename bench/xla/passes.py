"""The share of XLA's passes that is proved: ``python bench/xla/passes.py [--targets h200:1x8,cpu:8] [--keep DIR]``.

``--steps DIR`` takes other steps, and ``--pass NAME`` also counts the verdicts on one pass.

Each step of ``steps.py`` is compiled for each target with a dump of every pass, and compared as ``hlorewrite
validate-xla`` does. Prints for each how many changes after the partitioner were proved, how many of those that touch
collectives or loops, whether all of them were proved at once, and what was equal on inputs, unknown or differed. Also
how often the partitioner was proved, of the steps on which it is compared. Exit code 1 when a pass was said to
differ: XLA's passes are right on these steps, so a difference is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from hlorewrite.checks.translation_validation.equivalence import Certainty
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.dump_chain import DumpStage, dump_chain
from hlorewrite.ir.load import load
from hlorewrite.jaxbridge.validate_xla.chain import validate_dump
from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump


@dataclass
class Tally:
    """What was found of some dumps."""

    verdicts: Counter[str] = field(default_factory=Counter)
    touching: Counter[str] = field(default_factory=Counter)
    dumps: int = 0
    whole: int = 0
    seconds: float = 0.0
    of_pass: Counter[str] = field(default_factory=Counter)
    partitioner: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Adds another tally."""
        self.verdicts += other.verdicts
        self.touching += other.touching
        self.dumps, self.whole = self.dumps + other.dumps, self.whole + other.whole
        self.seconds += other.seconds
        self.of_pass += other.of_pass
        self.partitioner += other.partitioner

    def row(self, name: str) -> str:
        """One line."""
        proved, total = _proved(self.verdicts), self.verdicts.total()
        touching, all_touching = _proved(self.touching), self.touching.total()
        return (f"{name:24} {proved:4}/{total:<4} {100 * proved / max(total, 1):5.1f} %   {touching:3}/{all_touching}"
                f" {100 * touching / max(all_touching, 1):5.1f} %   whole {self.whole}/{self.dumps}  "
                f"equal {self.verdicts[Certainty.EQUAL]} unknown {self.verdicts[Certainty.UNKNOWN]} "
                f"differs {self.verdicts[Certainty.DIFFERS]}   "
                f"partitioner {_proved(self.partitioner)}/{self.partitioner.total()}   {self.seconds:.0f} s")


def _proved(counts: Counter[str]) -> int:
    return counts[Certainty.PROVED] + counts[Certainty.ROUNDED]


def _skeleton(stage: DumpStage) -> Counter[tuple[str, str, str]]:
    """The collectives and loops of a program."""
    return Counter((each.opcode, each.shape, computation.name) for computation in stage.parsed.computations.values()
                   for each in computation.instructions.values()
                   if each.opcode in ("while", "conditional") or collective_kind(each.opcode))


def measured(folder: Path, watched: str = "") -> Tally:
    """What is found of one dump, and of one of XLA's passes."""
    found = validate_dump(folder, seconds=20.0)
    _, stages = dump_chain(folder)
    local = [stage for stage in stages if stage.local]
    touched = [_skeleton(before) != _skeleton(after) for before, after in pairwise(local)]
    tally, at = Tally(dumps=1, whole=int(found.whole), seconds=found.seconds), 0
    if found.partitioning is not None:
        tally.partitioner[found.partitioning.answer.verdict] += 1
    for row in (row for row in found.rows if row.local):
        tally.verdicts[row.answer.verdict] += len(row.passes)
        tally.of_pass[row.answer.verdict] += sum(bool(watched) and watched in each for each in row.passes)
        for touches in touched[at:at + len(row.passes)]:
            tally.touching[row.answer.verdict] += touches
        at += len(row.passes)
        if not row.answer.proved:
            print(f"    {row.answer.verdict}: {row.passes[-1]}: {row.answer.reason[:100]}", flush=True)
    return tally


def main() -> int:
    """Measures all steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="h200:1x8,cpu:8")
    parser.add_argument("--steps", metavar="DIR", help="exports that steps.py wrote; written anew by default")
    parser.add_argument("--keep", metavar="DIR", help="leave the dumps there, and read those that are there")
    parser.add_argument("--pass", dest="watched", default="", metavar="NAME", help="also count verdicts on this pass")
    args = parser.parse_args()
    total = Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(args.steps or f"{name}/steps")
        if not args.steps:
            import steps
            steps.write(folder)
        for target in args.targets.split(","):
            every = Tally()
            for export in sorted(folder.glob("*.export")):
                place = Path(args.keep or name) / f"{target.partition(':')[0]}-{export.stem}"
                dump = place / "dump"
                if not dump.exists():
                    place.mkdir(parents=True)
                    dump = compile_with_dump(load(str(export)), target, place)
                tally = measured(dump, args.watched)
                print(tally.row(f"{target} {export.stem}"), flush=True)
                every.add(tally)
            print(every.row(f"{target} all"), flush=True)
            total.add(every)
    print(total.row("all"))
    if args.watched:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(total.of_pass.items()) if count)
        print(f"{args.watched}: {counts or 'changed no program'}")
    return 1 if total.verdicts[Certainty.DIFFERS] else 0


if __name__ == "__main__":
    sys.exit(main())
