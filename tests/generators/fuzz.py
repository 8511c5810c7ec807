"""Random programs through every pipeline, in processes that may die: ``python -m generators.fuzz --programs 10000``.

A worker takes a range of seeds and prints a line of JSON for each; a seed after which a worker dies or is silent for a
minute is a finding too. Findings are written to a folder as modules that ``hlorewrite opt`` reads.
"""

from __future__ import annotations

import argparse
import json
import random
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from generators.check import EVERY, RandomProgram
from generators.random_programs import random_program

_RANGE = 100
_SILENT_SECONDS = 60.0


def main() -> int:
    """Runs the command; exit code 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m generators.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000, metavar="N", help="how many programs (10000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the seed of the first (0)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="how many processes (2)")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), metavar="DIR", help="where findings go")
    parser.add_argument("--seeds", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seeds:
        return _work(*options.seeds)
    return _report(options)


def _work(first: int, last: int) -> int:
    """A worker: checks the programs of a range of seeds."""
    for seed in range(first, last):
        program = RandomProgram(random_program(random.Random(seed)), seed)
        done = [program.check(pipeline) for pipeline in EVERY]
        found = [(c.finding.kind, c.finding.pipeline, c.finding.message) for c in done if c.finding]
        print(json.dumps({"seed": seed, "changed": sum(c.changed for c in done), "found": found}), flush=True)
    return 0


def _report(options: argparse.Namespace) -> int:
    """Spreads ranges of seeds over workers, and prints what they saw."""
    totals, kinds = Counter[str](), Counter[str]()
    last = options.first + options.programs
    ranges = iter([(n, min(n + _RANGE, last)) for n in range(options.first, last, _RANGE)])
    for line in _lines(ranges, options.workers):
        totals.update(programs=1, runs=len(EVERY), changed=line["changed"])
        for kind, pipeline, message in line["found"]:
            kinds[kind] += 1
            _keep(options.out, line["seed"], kind, pipeline, message)
        if sys.stderr.isatty():
            print(f"\r{totals['programs']} of {options.programs} programs, {kinds.total()} findings", end="",
                  file=sys.stderr)
    print(f"{totals['programs']} programs, {totals['runs']} runs of {len(EVERY)} pipelines, "
          f"{totals['changed']} rewritten")
    print("findings: " + (", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"))
    return 1 if kinds else 0


def _keep(folder: Path, seed: int, kind: str, pipeline: str, message: str) -> None:
    """Writes a program with what is wrong with it; prints where."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{kind}-{seed}.mlir"
    said = "".join(f"// {line}\n" for line in f"--pass={pipeline}\n{message}".splitlines())
    file.write_text(said + random_program(random.Random(seed)), "utf-8")
    print(f"{file}: {kind} after {pipeline}: {message.splitlines()[0]}", flush=True)


def _lines(ranges: Iterator[tuple[int, int]], workers: int) -> Iterator[dict]:
    """What workers print; a line of our own for a seed at which one died or was silent for too long."""
    running: dict[subprocess.Popen[str], list[int]] = {}  # process -> [next seed, end of its range]
    waiting = list(ranges)[::-1]
    selector = selectors.DefaultSelector()

    def start(first: int, last: int) -> None:
        process = subprocess.Popen([sys.executable, "-m", "generators.fuzz", "--seeds", str(first), str(last)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1)
        running[process] = [first, last]
        selector.register(process.stdout, selectors.EVENT_READ, process)  # pyright: ignore[reportArgumentType]

    def stop(process: subprocess.Popen[str]) -> None:
        selector.unregister(process.stdout)  # pyright: ignore[reportArgumentType]
        process.kill()
        process.wait()
        first, last = running.pop(process)
        if first < last:
            waiting.append((first, last))

    while waiting or running:  # Ends: each iteration reads a seed's line or leaves one seed out.
        while waiting and len(running) < workers:
            start(*waiting.pop())
        ready = selector.select(_SILENT_SECONDS)
        for process in [key.data for key, _ in ready] or list(running):
            text = process.stdout.readline() if ready else ""
            first, last = running[process]
            if text:
                running[process][0] += 1
                yield json.loads(text)
                continue
            if first < last:
                kind = "died" if ready else "hang"
                running[process][0] += 1
                yield {"seed": first, "changed": 0, "found": [(kind, ",".join(EVERY[:1]), "its process ended")]}
            stop(process)


if __name__ == "__main__":
    sys.exit(main())
