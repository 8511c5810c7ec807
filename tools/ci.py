"""Everything that continuous integration checks, in a fixed order: values first. ``.ci/run`` starts it.

Each part runs whatever the parts before it gave, and none is left out. The last line says what ran: how many tests of
each part, what failed, and how many were skipped for which reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from versions import version_in

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "ci"
VALUES = ("tests/oracle", "tests/unit/checks")
PIPELINES = ("tests/unit/pipelines", "tests/e2e/test_pipeline_example.py")
OF_OTHER_VERSIONS = (
    "tests/oracle/test_golden_values.py", "tests/oracle/test_against_jax.py", "tests/oracle/test_xla_situations.py",
    "tests/unit/checks/translation_validation", "tests/unit/ir", "tests/unit/hlo", "tests/unit/jaxbridge",
    "tests/unit/timeline", "tests/unit/audit", "tests/unit/cli/test_hostile_inputs.py", "tests/test_lit.py")
"""What runs on each other supported version of JAX: what reads or writes modules of JAX and XLA."""
OF_OUTPUTS = "0.10"
"""The version whose outputs stand in blocks of pages that vary: only it compares them."""


@dataclass(frozen=True)
class CiPart:
    """One part of a run.

    Attributes:
      name: for the last line.
      arguments: of pytest.
    """

    name: str
    arguments: tuple[str, ...]


@dataclass
class CiResult:
    """What the parts gave.

    Attributes:
      counts: of each part: how many tests ran.
      failed: parts, or tests of parts, that failed.
      skipped: reasons, each with how often.
    """

    counts: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, code: int, report: Path) -> None:
        """Adds what pytest wrote of one part.

        Args:
          name: of the part.
          code: its exit code; a failure without a failed test counts too.
          report: its file of results in the form of JUnit.
        """
        ran, failed = 0, 0
        for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
            skip = case.find("skipped")
            if skip is not None:
                self.skipped[skip.get("message", "")] += 1
                continue
            ran += 1
            failed += case.find("failure") is not None or case.find("error") is not None
        self.counts[name] = ran
        if code or failed:
            self.failed.append(f"{name} ({failed} failed, exit code {code})")

    def line(self) -> str:
        """The last line.

        Example:
          >>> result = CiResult({"values": 3, "heavy": 2}, [], Counter({"no GPU": 2}))
          >>> result.line()
          'ran: values 3, heavy 2; failed: nothing; skipped: 2 no GPU'
        """
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        skipped = "; ".join(f"{count} {' '.join(reason.split())}" for reason, count in self.skipped.most_common())
        return f"ran: {counts}; failed: {', '.join(self.failed) or 'nothing'}; skipped: {skipped or 'nothing'}"


def parts() -> tuple[CiPart, ...]:
    """The parts on the version of JAX that is installed, in their order."""
    apart = tuple(f"--ignore={path}" for path in (*VALUES, *PIPELINES))
    return (CiPart("values", VALUES),
            CiPart("core", ("--doctest-modules", *apart, "hlorewrite", "tests")),
            CiPart("pipelines", PIPELINES),
            CiPart("heavy", ("--run-heavy", "-m", "heavy", "tests")))


def main() -> int:
    """Runs all parts; exit code 1 when one failed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    result = CiResult()
    begin = time.monotonic()
    lint = subprocess.Popen(["make", "--no-print-directory", "lint"], cwd=ROOT, stdin=subprocess.DEVNULL)
    for part in parts():
        _run(result, part.name, [sys.executable, "-m", "pytest"], part.arguments)
        print(f"== {part.name}: {time.monotonic() - begin:.0f} s after the begin", flush=True)
        if part.name == "values" and lint.wait():
            result.failed.append("lint")
    name, python = other_version(sys.executable)
    if python:
        _run(result, f"JAX {name}", [python, "-m", "pytest"], OF_OTHER_VERSIONS)
        if name == OF_OUTPUTS:
            _run(result, f"outputs on JAX {name}", [python, "-m", "pytest"], ("--run-heavy", *outputs_that_vary()))
    else:
        result.skipped["the part on another version of JAX: no Python for one here"] += 1
    if name != OF_OUTPUTS and not version_in(sys.executable).startswith(f"{OF_OUTPUTS}."):
        result.skipped[f"outputs that vary, which are those of JAX {OF_OUTPUTS}: no Python for it here"] += 1
    print(f"== all: {time.monotonic() - begin:.0f} s after the begin", flush=True)
    print(result.line(), flush=True)
    return 1 if result.failed else 0


def outputs_that_vary() -> tuple[str, ...]:
    """The tests that compare what is kept as ``OF_OUTPUTS`` prints it: pages with blocks that vary.

    Example:
      >>> "tests/docs/test_pages.py::test_what_the_page_shows_is_what_happens[README.md]" in outputs_that_vary()
      True
    """
    pages = [page.relative_to(ROOT).as_posix() for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
             if "<!-- versions vary -->" in page.read_text(encoding="utf-8")]
    return tuple(f"tests/docs/test_pages.py::test_what_the_page_shows_is_what_happens[{page}]" for page in pages)


def other_version(python: str) -> tuple[str, str]:
    """Another minor version of JAX: next to the newest the oldest supported one, next to any other the newest.

    Args:
      python: an interpreter with a supported JAX.

    Returns:
      Its name and the interpreter of its environment, which is made; nothing if this machine has no Python for one.
    """
    from versions import SUPPORTED, environment
    installed = version_in(python)
    newest_first = not installed.startswith(f"{SUPPORTED[0].name}.")
    for minor in SUPPORTED if newest_first else reversed(SUPPORTED):
        if not installed.startswith(f"{minor.name}.") and (inside := environment(minor)):
            return minor.name, inside
    return "", ""


def _run(result: CiResult, name: str, command: Sequence[str], arguments: Sequence[str]) -> None:
    report = FOLDER / f"{name.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    print(f"== {name}", flush=True)
    cores = min(8, len(os.sched_getaffinity(0)))
    workers = str(cores + (name in ("pipelines", "heavy")))  # one more than cores, since tests of processes wait
    done = subprocess.run([*command, "-q", "-n", workers, "--dist", "loadscope",
                           "--no-loadscope-reorder", f"--junitxml={report}", *arguments], cwd=ROOT, check=False,
                          stdin=subprocess.DEVNULL)
    result.add(name, done.returncode, report)


if __name__ == "__main__":
    sys.exit(main())
