"""``hlorewrite lint``: does XLA on GPU compute what this module says."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from hlorewrite.ir.collectives import ALL_REDUCE, COLLECTIVES

if TYPE_CHECKING:
    from hlorewrite.hlo.xla_hazards import Hazard
    from hlorewrite.ir.view import View

HELP = "tell whether XLA on GPU would miscompile a module; exit code 1 when it would"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite lint``."""
    parser.add_argument("input", metavar="IN", help="StableHLO module or serialized jax.export; - is standard input")
    parser.add_argument("--jaxlib", metavar="VERSION", help="only what this release gets wrong, such as 0.10.2")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite lint``."""
    from hlorewrite.hlo.xla_hazards import find_hazards
    from hlorewrite.ir.edit import Editor
    from hlorewrite.ir.inline import inline_calls
    from hlorewrite.ir.load import load
    from hlorewrite.ir.view import View

    version = _version(args.jaxlib) if args.jaxlib else None
    view = View(load(args.input))
    inline_calls(Editor(view))
    hazards = [h for h in find_hazards(view) if version is None or h.kind.affects(version)]
    note = _note(view)
    if args.json:
        print(json.dumps({"module": view.module.name, "all_reduces": len(view.ops(ALL_REDUCE.op)),
                          "hazards": [_as_dict(hazard) for hazard in hazards], "note": note}, indent=2))
    else:
        print(_text(hazards, note, args.jaxlib), end="")
    return 1 if hazards else 0


def _version(text: str) -> tuple[int, ...]:
    from hlorewrite.errors import UsageError
    parts = text.split(".")
    if len(parts) < 3 or not all(part.isdigit() for part in parts[:3]):
        raise UsageError(f'"{text}" is no release of jaxlib', location="--jaxlib", hint="write it as 0.10.2")
    return tuple(int(part) for part in parts[:3])


def _note(view: View) -> str:
    """What the user must know when there is nothing to look at."""
    if view.ops(*COLLECTIVES):
        return ""
    shardings = any(name in str(view.module.operation) for name in ("sdy.sharding", "mhlo.sharding", "sdy.mesh"))
    if not shardings:
        return "the module holds no collective"
    return ("the module holds no collective yet: XLA adds them when it partitions the program; "
            "run `hlorewrite opt --pass=expose-collectives` first, and lint its result")


def _as_dict(hazard: Hazard) -> dict[str, str]:
    kind = hazard.kind
    return {"form": kind.form, "location": hazard.location, "what": kind.what, "wrong": kind.wrong,
            "reason": hazard.reason, "versions": kind.versions, "platform": "gpu", "source": kind.source}


def _text(hazards: list[Hazard], note: str, version: str | None) -> str:
    from hlorewrite.hlo.xla_versions import CODE_MOTION
    if not hazards:
        which = f"jaxlib {version}" if version else "XLA"
        return f"note: {note}\n" if note else f"nothing found that {which} on GPU is known to miscompile\n"
    lines = []
    for hazard in hazards:
        lines += [f"{hazard.location}: warning: XLA on GPU miscompiles this all-reduce (form {hazard.kind.form})",
                  f"  the program: {hazard.kind.what}", f"  here: {hazard.reason}", f"  XLA: {hazard.kind.wrong}",
                  f"  affected: {hazard.kind.versions} ({hazard.kind.source})"]
    advice = f"compile with XLA_FLAGS=--xla_disable_hlo_passes={CODE_MOTION}; a step that hlorewrite recompiles has it"
    return "\n".join([*lines, advice]) + "\n"
