"""What XLA:GPU makes of the module in each shipped rule's golden file, alone and after the rule.

``python bench/passes/shipped_rules.py [--json]`` compiles the first module in which a rule fires for four H200s,
without a GPU, as it is and rewritten, and prints the collectives of the optimised HLO with their payload. Exit code 1
when a rule leaves more bytes than XLA alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "docs"))

from rule_pages import golden_cases

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.compile_for import compile_for
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.library import load

LEFT_OUT = ("and-of-all-reduces", "or-of-all-reduces")
"""XLA:GPU ends the process on conjunctions and disjunctions of integers."""


@dataclass(frozen=True)
class RuleMeasurement:
    """One rule.

    Attributes:
      rule: its name.
      alone: (kind, bytes) of each collective in what XLA makes of the module.
      after: the same after the rule.
    """

    rule: str
    alone: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]


def row_of(rule: str) -> RuleMeasurement:
    """Compiles the golden module of a rule twice."""
    text = next(case.text for case in golden_cases(rule) if case.comment.startswith("It fires"))
    module = parse(text)
    run_passes(module, parse_pipeline(f"rules{{only={rule}}}"), PassContext())
    return RuleMeasurement(rule, collectives(parse(text)), collectives(module))


def collectives(module: Module) -> tuple[tuple[str, int], ...]:
    """Kinds and payloads of the collectives in the compiled module, without the broadcasts that golden files use to
    keep a module one of several devices."""
    compiled = compile_for(module, parse_target("h200:1x4")).collectives
    return tuple(sorted((one.kind, one.bytes) for one in compiled if one.kind != "collective-broadcast"))


def words(pairs: tuple[tuple[str, int], ...]) -> str:
    """Collectives in words."""
    return ", ".join(f"{kind} {size} B" for kind, size in pairs) or "none"


def main() -> int:
    """Prints one row a rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [row_of(rule.name) for rule in load("collectives").rules if rule.name not in LEFT_OUT]
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print(f"{'rule':<34}{'XLA alone':<52}with the rule")
        for row in rows:
            print(f"{row.rule:<34}{words(row.alone):<52}{'the same' if row.alone == row.after else words(row.after)}")
    return 1 if any(sum(b for _, b in row.after) > sum(b for _, b in row.alone) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
