"""Proves every shipped rule and fact, and keeps the verdicts in patterns/proofs.json.

Usage: ``python tools/update_proofs.py [--check]``. ``--check`` writes nothing and ends with 1 when the file would
change. Rules that are not proved are executed as ``hlorewrite rules check`` does, and the number of programs is kept
with it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hlorewrite.checks.prove.prove import prove_file  # noqa: E402
from hlorewrite.checks.reference.rule_checks.worker import results_in_subprocess  # noqa: E402
from hlorewrite.rules.library import checked, read_source, shipped_names  # noqa: E402
from hlorewrite.rules.proofs import PROOFS, KnownProof, digest  # noqa: E402
from hlorewrite.rules.syntax import ast  # noqa: E402


def fresh() -> dict[str, KnownProof]:
    """The verdicts, by rule and fact."""
    found: dict[str, KnownProof] = {}
    for name in shipped_names():
        digests = {item.name: digest(item) for item in checked(read_source(name))[0].items
                   if isinstance(item, ast.Rule | ast.Linear)}
        verdicts = prove_file(name)
        unproved = {verdict.name for verdict in verdicts if not verdict.sound}
        executed = {row["rule"]: row["rewritten"] for row in (
            results_in_subprocess(name, 150, lambda *_: None) if unproved else ()) if not row["wrong"]}
        for verdict in verdicts:
            count = executed.get(verdict.name, 0) if verdict.name in unproved else 0
            found[verdict.name] = KnownProof(digests[verdict.name], verdict.sentence, count)
    return found


def text(proofs: dict[str, KnownProof]) -> str:
    """The file: a line for each rule and fact."""
    rows = [f"  {json.dumps(name)}: {json.dumps({'digest': p.digest, 'verdict': p.verdict, 'executed': p.executed})}"
            for name, p in proofs.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    new = text(fresh())
    if "--check" in sys.argv:
        sys.exit(0 if PROOFS.read_text(encoding="utf-8") == new else 1)
    PROOFS.write_text(new, encoding="utf-8")
