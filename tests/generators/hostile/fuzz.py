"""Damaged inputs of every form through the command: ``python -m generators.hostile.fuzz --seconds 600``.

With ``--grammar`` the inputs are well-formed and mean something else.

Findings are written to a folder, one each: the input, and the command line with what it said.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from generators.hostile.grammar import rewritten
from generators.hostile.mutations import mutate
from generators.hostile.seeds import FORMS, Seed, seeds
from generators.hostile.trials import Misbehaviour, preload, seeded, trial


def main() -> int:
    """Runs the command; exit code 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m generators.hostile.fuzz", description=__doc__)
    parser.add_argument("--form", choices=FORMS, action="append", help="this form only; repeatable")
    parser.add_argument("--count", type=int, default=2000, metavar="N", help="mutations of each form (2000)")
    parser.add_argument("--grammar", action="store_true",
                        help="inputs that are well-formed and mean something else, in place of damaged ones")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first mutation (0)")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help="for all forms together (600)")
    parser.add_argument("--real", type=int, default=50, metavar="N", help="each Nth starts a process (50)")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), metavar="DIR", help="where findings go")
    options = parser.parse_args()
    forms = options.form or list(FORMS)
    preload((options.out / "seeds").resolve())
    found, begin = Counter[str](), time.monotonic()
    for place, form in enumerate(forms):
        until = begin + options.seconds * (place + 1) / len(forms)
        done = 0
        sound = seeds(form, (options.out / "seeds").resolve())
        for number in range(options.first, options.first + options.count):
            if time.monotonic() > until:
                break
            random_ = seeded(form, number)
            change = rewritten if options.grammar else mutate
            damaged = change(random_.choice(sound), random_)
            finding = trial(damaged, real=number % options.real == options.real - 1)
            if finding and finding.kind == "hang":  # others may have had the processor, or the fork's parent a lock
                finding = _again(damaged)
            done += 1
            if finding:
                found[f"{form}: {finding.kind}"] += 1
                _keep(options.out, number, damaged, finding)
        print(f"{form}: {done} mutations, {sum(n for key, n in found.items() if key.startswith(form + ':'))} findings",
              flush=True)
    print("findings: " + (", ".join(f"{count} {kind}" for kind, count in sorted(found.items())) or "none"))
    return 1 if found else 0


def _again(damaged: Seed) -> Misbehaviour | None:
    """What is found in processes of their own; several, because a deadlock may need a rare order of threads."""
    trials = (trial(damaged, real=True) for _ in range(5))
    return next((finding for finding in trials if finding), None)


def _keep(out: Path, number: int, damaged: Seed, finding: Misbehaviour) -> None:
    folder = out / f"{damaged.form}-{number}-{finding.kind}"
    for path, content in damaged.content:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "finding.txt").write_text(f"hlorewrite {' '.join(map(repr, finding.words))}\n\n{finding.said}")
    last = (finding.said.strip().splitlines() or ["(nothing)"])[-1][:200]
    print(f"{folder}: {' '.join(finding.words)[:160]}: {last}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
