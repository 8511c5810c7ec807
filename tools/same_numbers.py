"""The figures that README and the documents show of their main steps, on several versions of JAX side by side.

``python tools/same_numbers.py PYTHON...`` runs each interpreter (such as those that ``make versions`` leaves in
``build/versions/*/bin/python``; by default these and the one that runs this) and prints one table: a row a figure, a
column a version, and in the last column how far the largest differs from the smallest. ``--json`` prints an object.

Calls and executed bytes are of the program; the versions' XLA must agree in them. Step times, exposed times and
temporaries follow from the schedule, the fusions and the buffers of each XLA.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "h200:1x8"
EXACT = ("calls", "executed MiB")
"""Figures in which the versions have to agree."""


def measured() -> dict[str, float | str]:
    """The figures of this interpreter: of GPT ``small`` alone, under XLA's best flags and rewritten by ``comm``."""
    sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
    import gpt
    import jax

    from hlorewrite.ir.load import parse
    from hlorewrite.jaxbridge.baseline.comparison import compared_modules
    from hlorewrite.jaxbridge.step.options import as_passes
    from hlorewrite.jaxbridge.step.rewrite import rewrite

    original = parse(gpt.export_step(gpt.SIZES["small"], platform="cuda"), name="gpt small")
    made = rewrite(original.clone(), as_passes("comm"), topology=TARGET)
    comparison = compared_modules(original, made.module, TARGET, best=True)
    assert comparison is not None and comparison.ours is not None and comparison.best is not None
    found: dict[str, float | str] = {"jax": jax.__version__, "best flags": comparison.best.name}
    for name, side in (("XLA alone", comparison.alone), ("XLA, best flags", comparison.best.measured),
                       ("rewritten", comparison.ours)):
        found |= {f"{name}: calls": side.calls, f"{name}: executed MiB": round(side.bytes / 2**20, 1),
                  f"{name}: temporaries MiB": round(side.temp / 2**20, 1),
                  f"{name}: step ms": round((side.step_s or 0) * 1e3, 3),
                  f"{name}: exposed ms": round((side.exposed_s or 0) * 1e3, 3)}
    return found


def side_by_side(columns: Sequence[dict[str, float | str]]) -> tuple[list[list[str]], list[str]]:
    """The table, and the figures in which the versions must agree and do not.

    Args:
      columns: what ``measured`` gives on each version; there is one at least.

    Example:
      >>> table, wrong = side_by_side([{"jax": "0.10.2", "a: calls": 8}, {"jax": "0.12.0", "a: calls": 9}])
      >>> table[1], wrong
      (['a: calls', '8', '9', '12 %'], ['a: calls'])
    """
    rows = [["figure", *(f"jax {column['jax']}" for column in columns), "differs by"]]
    wrong = []
    for name in (name for name in columns[0] if name != "jax"):
        values = [column[name] for column in columns]
        numbers = [value for value in values if not isinstance(value, str)]
        apart = (max(numbers) - min(numbers)) / (min(numbers) or 1) if numbers else 0.0
        rows.append([name, *map(str, values), f"{apart:.0%}".replace("%", " %") if numbers else ""])
        if apart and name.endswith(EXACT):
            wrong.append(name)
    return rows, wrong


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; exit code 1 if figures of the program differ between the versions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="interpreters, each with a version of JAX")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.measure:
        print(json.dumps(measured()))
        return 0
    pythons = options.pythons or [*map(str, sorted((ROOT / "build" / "versions").glob("*/bin/python"))), sys.executable]
    columns = []
    for python in pythons:
        done = subprocess.run([python, __file__, "--measure"], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"})
        columns.append(json.loads(done.stdout.splitlines()[-1]))
    rows, wrong = side_by_side(columns)
    if options.json:
        print(json.dumps({"versions": columns, "wrong": wrong}, indent=2))
    else:
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        for row in rows:
            first, *others = zip(row, widths, strict=True)
            print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip())
        print(*(f"differs, and must not: {name}" for name in wrong), sep="\n", end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
