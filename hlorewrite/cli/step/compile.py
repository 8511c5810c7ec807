"""``hlorewrite compile``: compile a module for a real or a described mesh and show what it communicates."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.ir.module import Module
    from hlorewrite.jaxbridge.xla.target import Target

HELP = "compile a module for a mesh, even without the GPUs, and show its collectives and memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite compile``."""
    parser.add_argument("input", metavar="IN", help="module or serialized jax.export; - is standard input")
    parser.add_argument("--target", required=True, metavar="MACHINE",
                        help="cpu:8, gpu, or described GPUs as NAME:HOSTSxGPUS such as h200:2x8")
    parser.add_argument("--emit-hlo", action="store_true", help="print the optimised HLO instead of the table")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="write there instead of standard output")
    parser.add_argument("--trace", metavar="DIR", help="add memory and collectives to the trace of the run that read "
                                                       "or made this module, for `hlorewrite view`")
    parser.add_argument("--protect", action=argparse.BooleanOptionalAction,
                        help="switch off XLA's while-loop-all-reduce-code-motion where it miscompiles (GPU, 0.10.1 to "
                             "0.11.2); by default for modules that hlorewrite has rewritten")
    parser.add_argument("--against", default="", metavar="ORIGINAL",
                        help="also compile the module that IN was rewritten from, and print both side by side")
    parser.add_argument("--xla-flags", choices=("best",),
                        help="with --against: also compile ORIGINAL with published sets of XLA flags, and show the one "
                             "with the shortest predicted step")
    parser.add_argument("--xla-flag", action="append", default=[], metavar="NAME=VALUE",
                        help="XLA flag for this compilation; repeatable")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite compile``."""
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.util.progress import progress

    quiet_xla("" if args.target == "gpu" else "cpu")
    from hlorewrite.cli.step.read_module import read_module
    from hlorewrite.ir.load import read_bytes
    from hlorewrite.jaxbridge.xla.target import parse_target
    from hlorewrite.passmanager.trace.writer import side_of
    from hlorewrite.util.write import write_output

    target = parse_target(args.target)
    flags = parse_flags(args.xla_flag)
    data = read_bytes(args.input)
    side = side_of(args.trace, data, args.input) if args.trace else None
    module = read_module(data, args.input)
    from hlorewrite.jaxbridge.xla.compile_for import compile_for, was_rewritten
    from hlorewrite.jaxbridge.xla.show import compilation_text

    protect = was_rewritten(module) if args.protect is None else args.protect
    if args.xla_flags and not args.against:
        from hlorewrite.errors import UsageError
        raise UsageError("--xla-flags needs --against", hint="add --against ORIGINAL")
    if args.against:
        return _against(args, module, protect)
    with progress(f"compiling for {target.text}"):
        made = compile_for(module, target, protect=protect, xla_flags=flags)
    if side is not None:
        from pathlib import Path

        from hlorewrite.passmanager.trace.format import COMPILED, write_json
        write_json(Path(args.trace) / COMPILED[side], made.as_json() | simulated(made.hlo, target, made.memory.total))
    if args.json:
        content = json.dumps(made.as_json() | ({"hlo": made.hlo} if args.emit_hlo else {}), indent=2) + "\n"
    else:
        content = made.hlo.rstrip("\n") + "\n" if args.emit_hlo else compilation_text(made)
    write_output(args.output, content.encode())
    return 0


def simulated(hlo: str, target: Target, memory_bytes: int) -> dict[str, object]:
    """The step that the page of a trace shows, simulated; empty for targets that are not described GPUs."""
    if target.platform != "described":
        return {}
    from hlorewrite.cost import topology
    from hlorewrite.cost.kernels.rates import timeline_constants
    from hlorewrite.timeline.simulate import ScheduledStep
    from hlorewrite.timeline.spans import spans, trace_events

    cluster = topology(f"{target.text.partition(':')[0].lower()}:{target.hosts}x{target.devices_per_host}")
    step = ScheduledStep(hlo, cluster, memory_bytes=memory_bytes)
    at = step.at(timeline_constants()["overlap_slowdown"], record=True)
    content = at.as_json()
    return {"timeline": {key: content[key] for key in ("step_s", "compute_s", "communication_s", "exposed_s", "bound_s",
                                                       "slowdown", "complete", "topology")}
            | {"traceEvents": trace_events(spans(at.trace, step.program))}}


def _against(args: argparse.Namespace, module: Module, protect: bool) -> int:
    """Both modules compiled to the end, side by side."""
    from hlorewrite.ir.load import parse, read_bytes
    from hlorewrite.jaxbridge.baseline.comparison import compiled_modules
    from hlorewrite.util.write import write_output

    original = parse(read_bytes(args.against), name=args.against)
    made = compiled_modules(original, module, args.target, parse_flags(args.xla_flag), protect=protect,
                            best=args.xla_flags == "best")
    content = json.dumps(made.as_json(), indent=2) if args.json else made.text(times=True)
    write_output(args.output, f"{content}\n".encode())
    return 0


def parse_flags(given: list[str]) -> dict[str, str | bool | int]:
    """``NAME=VALUE`` pairs as XLA takes them; ``true`` and ``false`` become booleans, digits integers."""
    from hlorewrite.errors import UsageError

    out: dict[str, str | bool | int] = {}
    for text in given:
        name, equals, value = text.lstrip("-").partition("=")
        if not equals or not name:
            raise UsageError(f'--xla-flag "{text}" is not NAME=VALUE', hint="write xla_gpu_autotune_level=0, say")
        out[name] = {"true": True, "false": False}.get(value.lower(), int(value) if value.isdigit() else value)
    return out
