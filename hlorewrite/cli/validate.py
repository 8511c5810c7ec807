"""``hlorewrite validate``: whether two modules compute the same, by proof or on inputs."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.checks.translation_validation.equivalence import Equivalence
    from hlorewrite.ir.module import Module

HELP = "prove that two modules compute the same, or find inputs on which they differ; exit code 3 when they do"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite validate``."""
    parser.add_argument("before", metavar="BEFORE", help="StableHLO as text or bytecode, a serialized jax.export, or "
                                                         "HLO text as XLA prints it")
    parser.add_argument("after", metavar="AFTER", help="the other module, in any of these forms")
    add_input_arguments(parser)


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that ``validate`` and ``validate-xla`` share."""
    parser.add_argument("--seed", type=int, metavar="N", default=0,
                        help="seed of the inputs that are tried if no proof is found")
    parser.add_argument("--inputs", type=int, metavar="N", default=7, help="how many; 0 tries none (default: 7)")
    parser.add_argument("--seconds", type=float, metavar="S", default=60.0,
                        help="seconds after which no further input is tried (default: 60)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite validate``."""
    from hlorewrite.checks.translation_validation.equivalence import compare_modules

    before, after = _modules(args.before, args.after)
    answer = compare_modules(before, after, seed=args.seed, draws=args.inputs, seconds=args.seconds)
    print(json.dumps(as_dict(answer), indent=2) if args.json else text(answer))
    return exit_code(answer)


def exit_code(answer: Equivalence) -> int:
    """0 if it is proved or was equal on inputs, 1 if it is unknown, 3 for a difference."""
    from hlorewrite.checks.translation_validation.equivalence import Certainty
    return {Certainty.UNKNOWN: 1, Certainty.DIFFERS: 3}.get(answer.verdict, 0)


def as_dict(answer: Equivalence) -> dict[str, object]:
    """An answer as JSON."""
    from dataclasses import asdict
    return {**asdict(answer), "verdict": answer.verdict.value}


def text(answer: Equivalence) -> str:
    """An answer in words: the verdict, and if it is not a proof, the reason and the inputs that show it."""
    from hlorewrite.checks.translation_validation.equivalence import Certainty

    if answer.proved:
        return f"{answer.verdict} ({answer.strategy})"
    lines = [str(answer)]
    if answer.verdict is not Certainty.UNKNOWN:
        where = f" at {answer.location}" if answer.location else ""
        lines.append(f"  no proof: {answer.reason}{where}")
    if answer.verdict is Certainty.DIFFERS:
        lines.append(f"  again with --seed {answer.seed}")
    return "\n".join(lines)


def _modules(before: str, after: str) -> tuple[Module, Module]:
    """Both modules; where one is HLO, what only StableHLO says about arguments is dropped from the other."""
    from hlorewrite.cost.report.collectives import looks_like_hlo
    from hlorewrite.ir.load import parse, read_bytes

    read = [(name, read_bytes(name)) for name in (before, after)]
    of_hlo = [looks_like_hlo(data) for _, data in read]
    if not any(of_hlo):
        return parse(read[0][1], name=before), parse(read[1][1], name=after)
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.cli.step.read_module import hlo_text
    quiet_xla("cpu")
    from hlorewrite.hlo.parse import parse_hlo
    from hlorewrite.jaxbridge.validate_xla.read_hlo import like_hlo, read_hlo
    parsed = [parse_hlo(hlo_text(data.decode(errors="replace"), name)) if hlo else None
              for (name, data), hlo in zip(read, of_hlo, strict=True)]
    like = next(each for each in parsed if each is not None)
    modules = [read_hlo(each, name)[0] if each is not None else like_hlo(parse(data, name=name), like)
               for each, (name, data) in zip(parsed, read, strict=True)]
    return modules[0], modules[1]
