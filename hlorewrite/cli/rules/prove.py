"""``hlorewrite rules prove``: proofs for all ranks, sizes, groups and element types."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hlorewrite.errors import InputError, ValuesDiffer, did_you_mean

if TYPE_CHECKING:
    from hlorewrite.checks.prove.verdict import Verdict

HELP = "prove rules and facts for all ranks, sizes, groups and element types"
DESCRIPTION = (HELP + ". Exit code 0: all are proved; 1: some are unknown or, without a solver, assumed; 3: some are "
               "refuted.")


def add_prove_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rules prove`` in addition to its files."""
    parser.add_argument("--rule", "--fact", action="append", default=[], metavar="NAME", dest="only",
                        help="prove only this rule or fact; repeatable")
    parser.add_argument("--lemmas", action="store_true", help="check the steps of the lemmas too")
    parser.add_argument("--counterexamples", metavar="DIR",
                        help="write two modules with different values for each wrong rule or fact")
    parser.add_argument("--natives", action="append", default=[], metavar="MODULE",
                        help="import a module, or a .py file, that registers natives; repeatable")


def prove(args: argparse.Namespace, files: Sequence[str]) -> int:
    """Proves the files; returns the exit code.

    Raises:
      InputError: a named rule or fact is in none of them.
    """
    from hlorewrite.checks.prove.prove import has_solver, prove_file, prove_lemmas
    from hlorewrite.rules.register import load_natives
    from hlorewrite.util.progress import progress
    load_natives(args.natives)
    _require_names(files, args.only)
    verdicts: list[Verdict] = []
    shown: dict[str, str] = {}
    with progress("proving") as step:
        for file in files:
            for verdict in prove_file(file, args.only, step):
                verdict, command = _with_counterexample(verdict, file, args)
                verdicts.append(verdict)
                shown |= {verdict.name: command} if command else {}
        if args.lemmas and has_solver():
            verdicts += prove_lemmas()
    if args.json:
        print(json.dumps([_row(v, shown) for v in verdicts], indent=2, ensure_ascii=False))
    else:
        _print(verdicts, shown)
    return _exit_code(verdicts)


def _require_names(files: Sequence[str], names: Sequence[str]) -> None:
    from hlorewrite.checks.prove.prove import provable
    from hlorewrite.rules.library import checked, read_source
    known = [item.name for file in files for item in provable(checked(read_source(file))[0])]
    for name in names:
        if name not in known:
            raise InputError(f'there is no rule or fact "{name}"',
                             hint=did_you_mean(name, known, "hlorewrite rules list"))


def _with_counterexample(verdict: Verdict, file: str, args: argparse.Namespace) -> tuple[Verdict, str]:
    """A verdict that is not a proof, with a program that refutes it where one is found."""
    from dataclasses import replace

    from hlorewrite.checks.prove.counterexamples import counterexample, write_counterexample
    from hlorewrite.checks.prove.verdict import REFUTED, UNKNOWN
    if verdict.status not in (REFUTED, UNKNOWN):
        return verdict, ""
    programs = counterexample(file, verdict.name, [*args.load, *args.natives])
    if programs is None:
        return verdict, ""
    command = write_counterexample(verdict, programs, args.counterexamples) if args.counterexamples else ""
    return replace(verdict, status=REFUTED), command


def _exit_code(verdicts: Sequence[Verdict]) -> int:
    from hlorewrite.checks.prove.verdict import REFUTED
    if any(v.status == REFUTED for v in verdicts):
        return ValuesDiffer.exit_code
    return 0 if all(v.sound for v in verdicts) else 1


def _row(verdict: Verdict, shown: dict[str, str]) -> dict[str, Any]:
    row = asdict(verdict) | {"model": dict(verdict.model), "counterexample": shown.get(verdict.name, "")}
    return {**row, "sentence": verdict.sentence}


def _print(verdicts: Sequence[Verdict], shown: dict[str, str]) -> None:
    width = max((len(v.name) for v in verdicts), default=0)
    for verdict in verdicts:
        print(f"{verdict.name:<{width}}  {verdict.sentence}")
        if verdict.model:
            print(f"{'':<{width}}    with {', '.join(f'{name} = {value}' for name, value in verdict.model)}")
        if verdict.name in shown:
            print(f"{'':<{width}}    run: {shown[verdict.name]}")
    counts = Counter(v.status for v in verdicts)
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "nothing to prove")
