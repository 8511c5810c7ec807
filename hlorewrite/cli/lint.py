"""``hlorewrite lint``: whether XLA on GPU computes what a module says."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hlorewrite.ir.collectives import ALL_REDUCE, COLLECTIVES
from hlorewrite.util.sizes import format_bytes

if TYPE_CHECKING:
    from hlorewrite.audit.resharding import ReshardedLine
    from hlorewrite.hlo.xla_hazards import Hazard
    from hlorewrite.hlo.xla_warnings import LintWarning
    from hlorewrite.ir.module import Module
    from hlorewrite.ir.view import View
    from hlorewrite.jaxbridge.baseline.constraint_advice import ConstraintAdvice
    from hlorewrite.jaxbridge.validate_xla.chain import ChainReport, PassVerdict

HELP = "check whether XLA on GPU would miscompile a module; exit code 1 if so"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite lint``."""
    parser.add_argument("input", metavar="IN", help="StableHLO module or serialized jax.export; optimised HLO text; "
                                                    "or a folder of --xla_dump_to; - is standard input")
    parser.add_argument("--module", metavar="NAME", default="", help="the module of a dump to read")
    parser.add_argument("--jaxlib", metavar="VERSION", help="report only what this jaxlib miscompiles, such as 0.10.2")
    parser.add_argument("--prove", action="store_true",
                        help="also compile it here for described GPUs, compare the programs between XLA's passes, and "
                             "say which of the forms found are confirmed; of a dump, compare its programs")
    parser.add_argument("--target", metavar="NAME:HOSTSxGPUS",
                        help="with --prove: GPUs that it is compiled for (default: one host of H200s, as many as it "
                             "runs on)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite lint``."""
    from hlorewrite.cost.report.collectives import uncounted
    from hlorewrite.hlo.xla_hazards import find_hazards
    from hlorewrite.hlo.xla_warnings import find_warnings
    from hlorewrite.ir.async_pairs import run_at_once
    from hlorewrite.ir.edit import Editor
    from hlorewrite.ir.inline import dissolve_calls
    from hlorewrite.ir.view import View

    version = _version(args.jaxlib) if args.jaxlib else None
    source = _read(args)
    hazards, warnings, count, note = [], [], 0, source.note
    looked = ""
    compiled = source.module.clone() if args.prove and source.module is not None else None
    if source.module is not None:
        view = View(source.module)
        dissolve_calls(Editor(view))
        run_at_once(Editor(view))
        hazards = [h for h in find_hazards(view) if version is None or h.kind.affects(version)]
        warnings = find_warnings(view)
        count, note = len(view.ops(ALL_REDUCE.op)), note or _note(view)
        looked = _looked_at(view, version)
        note = "; ".join([*([note] if note else []), *uncounted(view)])
    proof = _proved(args, compiled) if args.prove else None
    if args.json:
        print(json.dumps({**({"proof": proof.as_dict()} if proof else {}), "module": source.name, "all_reduces": count,
                          "hazards": [_as_dict(hazard) for hazard in hazards], "note": note,
                          "warnings": [asdict(warning) for warning in warnings], "looked_at": looked,
                          "resharded": [asdict(line) for line in source.resharded],
                          "constraints": [asdict(line) for line in source.constraints]}, indent=2))
    else:
        lines = [_text(hazards, note, looked, warned=bool(warnings)), *map(_warning_text, warnings),
                 _resharded_text(source.resharded), *(f"{line}\n" for line in source.constraints)]
        print("".join(lines) + (proof.text(bool(hazards)) if proof else ""), end="")
    return 1 if hazards or (proof is not None and proof.changed) else 0


@dataclass(frozen=True)
class LintProof:
    """The result of comparing the programs between XLA's passes.

    Attributes:
      report: the verdicts.
    """

    report: ChainReport

    @property
    def changed(self) -> list[PassVerdict]:
        """The passes that changed the program."""
        from hlorewrite.checks.translation_validation.equivalence import Certainty
        return [row for row in self.report.every if row.answer.verdict is Certainty.DIFFERS]

    def as_dict(self) -> dict[str, object]:
        """The same as JSON."""
        from hlorewrite.cli.validate_xla import as_dict
        return as_dict(self.report, 0)

    def text(self, found: bool) -> str:
        """The confirmed forms, and other passes that change the program."""
        from hlorewrite.hlo.xla_hazards import CODE_MOTION
        moved = [row for row in self.changed if row.passes[-1].endswith(f"/{CODE_MOTION}")]
        lines = []
        if found:
            lines.append(f"confirmed: {CODE_MOTION} changes the program here: {moved[0].answer.example}" if moved else
                         f"not confirmed: the passes of the installed XLA leave the program as it is "
                         f"({self.report.verdict})")
        lines += [f"{row.source or row.instruction}: warning: XLA's pass {row.passes[-1]} changes the program: "
                  f"{row.answer.example}" for row in self.changed if row not in moved or not found]
        if not found and not self.changed:
            lines.append(f"XLA's passes: {self.report.verdict}")
        return "".join(f"{line}\n" for line in lines)


def _proved(args: argparse.Namespace, module: Module | None) -> LintProof | None:
    """The verdicts on XLA's passes; None if there is nothing that can be compiled."""
    import os
    import tempfile
    from pathlib import Path

    from hlorewrite.cli.parser import quiet_xla
    quiet_xla("cpu")
    from hlorewrite.jaxbridge.validate_xla.chain import validate_dump
    if args.input != "-" and os.path.isdir(args.input):
        return LintProof(validate_dump(Path(args.input), module=args.module))
    if module is None:
        return None
    from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump
    from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
    target = args.target or f"h200:1x{for_spmd(module).devices}"
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as name:
        return LintProof(validate_dump(compile_with_dump(module, target, Path(name))))


@dataclass(frozen=True)
class LintInput:
    """What is read.

    Attributes:
      name: the name to show in messages.
      module: the program before XLA optimises it; None if the input does not contain it.
      resharded: lines of the optimised program whose values the partitioner reshards.
      note: what could not be checked.
      constraints: constraints of activations with which an auto-sharded program would send less.
    """

    name: str
    module: Module | None
    resharded: Sequence[ReshardedLine] = ()
    note: str = ""
    constraints: Sequence[ConstraintAdvice] = ()


def _read(args: argparse.Namespace) -> LintInput:
    """The module of any known input."""
    from hlorewrite.audit.resharding import resharded_lines
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.cli.step.read_step import located, read_hlo
    from hlorewrite.ir.load import parse

    data, found = read_hlo(args)
    if found is None:
        module = parse(data, name=args.input)
        return LintInput(args.input, module, constraints=_constraints(module))
    with located(found.name):
        lines = resharded_lines(found.text)
    if found.dump is None or not found.dump.partitioned:
        return LintInput(found.name, None, lines, "lint needs the program before XLA's optimisations; give "
                         "StableHLO, or a dump that contains after_spmd_partitioner.txt")
    quiet_xla("cpu")
    from hlorewrite.jaxbridge.choose.audited import program_of_dump
    return LintInput(found.name, program_of_dump(found.dump.partitioned, found.name), lines)


def _constraints(module: Module) -> Sequence[ConstraintAdvice]:
    """What constraints of activations would save; none without jax."""
    from hlorewrite.cli.parser import quiet_xla
    try:
        quiet_xla("cpu")
        from hlorewrite.jaxbridge.baseline.constraint_advice import constraint_advice
    except ImportError:
        return ()
    return constraint_advice(module)


def _resharded_text(lines: Sequence[ReshardedLine]) -> str:
    return "".join(f"{line.source}: note: XLA's partitioner reshards this value in {line.calls} calls of "
                   f"{format_bytes(line.bytes, 1)} a step; jax.lax.with_sharding_constraint names the sharding\n"
                   for line in lines)


def _version(text: str) -> tuple[int, ...]:
    from hlorewrite.errors import UsageError
    parts = text.split(".")
    if len(parts) < 3 or not all(part.isdigit() for part in parts[:3]):
        raise UsageError(f'"{text}" is not a release of jaxlib', location="--jaxlib", hint="write it as 0.10.2")
    return tuple(int(part) for part in parts[:3])


def _note(view: View) -> str:
    """What the user must know when there is nothing to look at."""
    from hlorewrite.ir.async_pairs import unread_communication
    from hlorewrite.ir.view import nested_ops

    unread = [f"{view.place(op)}: {why}" for op in nested_ops(view.module.operation)
              if (why := unread_communication(op))]
    if view.ops(*COLLECTIVES) or unread:
        return "; ".join(unread)
    shardings = any(name in str(view.module.operation) for name in ("sdy.sharding", "mhlo.sharding", "sdy.mesh"))
    if not shardings:
        return "the module contains no collective"
    return ("the module contains no collective yet: XLA adds them when it partitions the program; "
            "run `hlorewrite opt --pass=expose-collectives` first, and lint its result")


def _as_dict(hazard: Hazard) -> dict[str, str]:
    kind = hazard.kind
    return {"form": kind.form, "location": hazard.location, "what": kind.what, "wrong": kind.wrong,
            "reason": hazard.reason, "versions": kind.versions, "platform": "gpu", "source": kind.source}


def _looked_at(view: View, version: tuple[int, ...] | None) -> str:
    """What the module was searched for: nothing found says nothing about all else."""
    from hlorewrite.hlo.xla_hazards import CODE_MOTION, MISCOMPILATIONS
    from hlorewrite.hlo.xla_warnings import LOOKED_AT
    forms = [form for form, kind in MISCOMPILATIONS.items() if version is None or kind.affects(version)]
    return (f"looked at {len(view.ops(ALL_REDUCE.op))} all-reduces and {len(view.ops('stablehlo.while'))} loops for "
            f"{len(forms)} forms that {CODE_MOTION} gets wrong ({', '.join(forms)}), and for "
            f"{', '.join(LOOKED_AT.values())}; nothing else is checked")


def _warning_text(warning: LintWarning) -> str:
    source = f" ({warning.source})" if warning.source else ""
    return f"{warning.location}: warning: {warning.sentence}{source}\n"


def _text(hazards: list[Hazard], note: str, looked: str, warned: bool) -> str:
    from hlorewrite.hlo.xla_hazards import CODE_MOTION
    said = f"note: {note}\n" if note else ""
    if not hazards:
        return said + (f"{'no such form' if warned else 'nothing'} found; {looked}\n" if looked else "")
    lines = []
    for hazard in hazards:
        lines += [f"{hazard.location}: warning: XLA on GPU miscompiles this all-reduce (form {hazard.kind.form})",
                  f"  the program: {hazard.kind.what}", f"  here: {hazard.reason}", f"  XLA: {hazard.kind.wrong}",
                  f"  affected: {hazard.kind.versions} ({hazard.kind.source})"]
    advice = f"compile with XLA_FLAGS=--xla_disable_hlo_passes={CODE_MOTION}; a step that hlorewrite recompiles has it"
    return "\n".join([*lines, advice]) + f"\n{said}{looked}\n"
