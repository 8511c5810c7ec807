"""``hlorewrite validate-xla``: whether XLA's passes preserve what a program computes, from a dump of every pass."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from hlorewrite.cli.validate import add_input_arguments

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.validate_xla.chain import ChainReport, PassVerdict

HELP = "prove XLA's own passes from a dump, or show which one changed the program; exit code 3 when one did"
_WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite validate-xla``."""
    parser.add_argument("input", metavar="IN",
                        help="a folder into which XLA dumped every pass; or a StableHLO module or serialized "
                             "jax.export to compile for --target")
    parser.add_argument("--target", metavar="MACHINE",
                        help="cpu:8, gpu, or described GPUs as NAME:HOSTSxGPUS such as h200:1x8 (these need no GPU)")
    parser.add_argument("--module", metavar="NAME", default="", help="which module of a dump (default: the one that "
                                                                     "passes changed most often)")
    parser.add_argument("--keep", metavar="DIR", help="with --target: leave the dump in this new folder")
    add_input_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite validate-xla``."""
    import tempfile
    from pathlib import Path

    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.errors import UsageError
    from hlorewrite.util.progress import progress

    quiet_xla("" if args.target == "gpu" else "cpu")
    if os.path.isdir(args.input):
        if args.target or args.keep:
            raise UsageError("--target and --keep are for a module; a dump says what it was compiled for",
                             location=args.input, hint="leave them out")
        return _report(args, Path(args.input))
    from hlorewrite.ir.load import load
    module = load(args.input)
    if args.target is None:
        raise UsageError("to compile a module, --target is needed", location=args.input,
                         hint="name a machine such as h200:1x8 or cpu:8, or pass the folder of a dump")
    from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as name:
        folder = Path(name)
        if args.keep:
            folder = Path(args.keep)
            folder.mkdir(parents=True)
        with progress(f"compiling for {args.target}"):
            dump = compile_with_dump(module, args.target, folder)
        return _report(args, dump)


def _report(args: argparse.Namespace, folder: os.PathLike[str]) -> int:
    from pathlib import Path

    from hlorewrite.cli.process import stage
    from hlorewrite.jaxbridge.validate_xla.chain import validate_dump

    found = validate_dump(Path(folder), module=args.module, seed=args.seed, draws=args.inputs, seconds=args.seconds,
                          progress=lambda text: stage(f"{args.input}: {text}"))
    print(json.dumps(as_dict(found, args.seed), indent=2) if args.json else _text(found, args.seed))
    return _exit_code(found)


def _exit_code(found: ChainReport) -> int:
    from hlorewrite.checks.translation_validation.equivalence import Certainty
    return {Certainty.UNKNOWN: 1, Certainty.DIFFERS: 3}.get(found.verdict, 0)


def as_dict(found: ChainReport, seed: int) -> dict[str, object]:
    """A report as JSON."""
    from hlorewrite.cli.validate import as_dict as answer_as_dict
    compared = found.partitioning is not None
    return {"module": found.module, "verdict": found.verdict.value, "in_one_proof": found.whole, "seed": seed,
            "seconds": round(found.seconds, 3), "partitioner_compared": compared if found.partitioned else None,
            "passes": [{"passes": list(row.passes), "before": row.before, "after": row.after,
                        "of_one_device": row.local, "partitions": row is found.partitioning,
                        "seconds": round(row.seconds, 3), "instruction": row.instruction, "source": row.source,
                        "moved": list(row.moved), **answer_as_dict(row.answer)} for row in found.every],
            "unread": [{"file": file, "reason": reason} for file, reason in found.unread]}


def _text(found: ChainReport, seed: int) -> str:
    from hlorewrite.checks.translation_validation.equivalence import Certainty

    lines = [f"{found.module}: {found.verdict} ({_counts(found)}, {found.seconds:.1f} s)"]
    before, after = ([row for row in found.rows if row.local is local] for local in (False, True))
    partitioning = [] if found.partitioning is None else [found.partitioning]
    for title, rows in (("before partitioning:", before), ("partitioning:", partitioning),
                        ("after partitioning:", after)):
        if rows and (found.partitioned or (before and after)):
            lines.append(title)
        for row in rows:
            lines += _row(row)
    if found.partitioned and not partitioning:
        lines.append("the partitioner is not compared: it is not known what each device computes before it")
    lines += [f"not read: {file}: {reason}" for file, reason in found.unread]
    if found.verdict is Certainty.DIFFERS:
        lines.append(f"again with --seed {seed}")
    return "\n".join(lines)


def _counts(found: ChainReport) -> str:
    changes = sum(len(row.passes) for row in found.rows)
    return f"{changes} changed program{'' if changes == 1 else 's'}"


def _row(row: PassVerdict) -> list[str]:
    """A verdict on one line, and below it what is known about one that is not proved."""
    answer = row.answer
    first, last = row.passes[0], row.passes[-1]
    what = first if len(row.passes) == 1 else f"{len(row.passes)} changes from {first} to {last}"
    verdict = str(answer) if answer.verdict.value.startswith("equal") else answer.verdict.value
    lines = [f"  {verdict}: {what}" + (f" ({answer.strategy})" if answer.strategy else "")]
    if answer.proved:
        return lines
    if row.instruction:
        lines.append(f"    at {row.instruction}" + (f", {row.source}" if row.source else ""))
    if row.moved:
        lines.append(f"    {'; '.join(row.moved)}")
    if answer.example is not None:
        lines.append(f"    {answer.example}")
    lines.append(f"    no proof: {answer.reason}")
    return lines
