"""Whether all surfaces choose the same way: the decorator, exec, ``opt`` and ``tune`` on the same steps.

    JAX_PLATFORMS=cpu python bench/passes/surfaces.py [--only TEXT] [--no-tune] [--json] [MODULE:TARGET ...]

Steps are those of ``decisions.py``, or modules that ``hlorewrite opt`` reads. The decorator and exec are asked through
the function that their hook into JAX's compiler calls, with described devices in place of the user's, ``opt`` and
``tune`` through the command. ``tune`` tries more than the others and may find a shorter step: what counts is its row
for ``auto``, and that it says what the others do not try. The command fails where two surfaces name different ways, or
where their steps or their memory differ by more than a thousandth.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import decisions

from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.choose.planned import made_step
from hlorewrite.jaxbridge.step.options import EXEC, OPTIMIZE, StepOptions, Surface
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.util.tables import numbers_right, table

ALONE, NEAR = "XLA alone", 1e-3
"""The way that rewrites nothing, and how far equal steps may be apart."""


@dataclass(frozen=True)
class SurfaceChoice:
    """What one surface chooses for a step.

    Attributes:
      step: its name.
      surface: who chose.
      chosen: the way.
      step_s: its predicted seconds; None if the surface compared nothing.
      memory_bytes: what it takes on a device.
      more: what else it says.
    """

    step: str
    surface: str
    chosen: str
    step_s: float | None
    memory_bytes: int | None
    more: str = ""


def main() -> int:
    """Prints the table; 1 if two surfaces differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE:TARGET", help="files, each with its described GPUs")
    parser.add_argument("--only", default="", metavar="TEXT", help="steps whose name contains this")
    parser.add_argument("--no-tune", action="store_true", help="leave out tune, which takes several times as long")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    rows, wrong = list[SurfaceChoice](), list[str]()
    for name, (target, lower) in decisions.chosen_steps(args.modules, args.only).items():
        print(f"{name} for {target} ...", file=sys.stderr)
        found = list(choices(name, lower(), target, tune=not args.no_tune))
        rows += found
        wrong += [f"{name}: {each.surface} and {found[0].surface} differ" for each in found[1:]
                  if not alike(found[0], each)]
    print(json.dumps([asdict(row) for row in rows], indent=2) if args.json else text(rows))
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


def choices(name: str, module: Module, target: str, *, tune: bool) -> Iterator[SurfaceChoice]:
    """What each surface chooses."""
    for surface in (OPTIMIZE, EXEC):
        yield _hooked(name, module, target, surface)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "step.mlir"
        file.write_text(module.text())
        yield _opt(name, file, target)
        if tune:
            yield _tune(name, file, target)


def _hooked(name: str, module: Module, target: str, surface: Surface) -> SurfaceChoice:
    """What the decorator or exec compiles, by the function that their hook calls."""
    copy = module.clone()
    made, _ = made_step(copy.mlir, name, StepOptions.of(surface, {}), place_of(parse_target(target), copy))
    found = made.report.comparison
    if found is None:
        return SurfaceChoice(name, surface.name, ALONE, None, None)
    chosen = next(row.measured for row in found.rows if row.name == found.chosen)
    return SurfaceChoice(name, surface.name, found.chosen, chosen and chosen.counted_s, chosen and chosen.memory)


def _opt(name: str, file: Path, target: str) -> SurfaceChoice:
    said = _said("opt", "-O", "auto", str(file), "--target", target, "--json", "-o", str(file.with_suffix(".out")))
    row = next((row for row in said["rows"] if row["name"] == said["chosen"]), {})
    return SurfaceChoice(name, "opt", said["chosen"], row.get("step_s"), row.get("memory_bytes"))


def _tune(name: str, file: Path, target: str) -> SurfaceChoice:
    """Its row for ``auto``, and what it chooses where that is something else."""
    said = _said("tune", str(file), "--target", target, "--no-cache", "--no-compile", "--json")
    own = next(row for row in said["rows"] if row["name"].startswith("auto") and ", flags:" not in row["name"])
    best = next((row for row in said["rows"] if row["verdict"] == "chosen"), own)
    more = f"chooses {best['name']}: {said['reason']}" if best["step_s"] < own["step_s"] else ""
    chosen = own["name"].partition(": ")[2] or ALONE
    return SurfaceChoice(name, "tune", chosen, own["step_s"], own["memory_bytes"], more)


def _said(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "hlorewrite", *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"hlorewrite {words[0]} failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def alike(one: SurfaceChoice, other: SurfaceChoice) -> bool:
    """Whether two surfaces choose the same way, with the same step and memory."""
    def near(a: float | None, b: float | None) -> bool:
        return a is None or b is None or abs(a - b) <= NEAR * max(abs(a), abs(b))
    return one.chosen == other.chosen and near(one.step_s, other.step_s) and near(one.memory_bytes, other.memory_bytes)


def text(rows: list[SurfaceChoice]) -> str:
    """The table."""
    shown = [["step", "surface", "chosen", "step ms", "memory GiB", ""]]
    shown += [[row.step, row.surface, row.chosen, "" if row.step_s is None else f"{row.step_s * 1e3:.2f}",
               "" if row.memory_bytes is None else f"{row.memory_bytes / 2**30:.2f}", row.more] for row in rows]
    return "\n".join(table(shown, numbers_right(shown)))


if __name__ == "__main__":
    sys.exit(main())
