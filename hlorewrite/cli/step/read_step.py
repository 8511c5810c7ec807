"""A compiled step as several commands take it: StableHLO, which is compiled, HLO text, or a folder of an XLA dump."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hlorewrite.cli.process import stage
from hlorewrite.cli.step.read_module import hlo_text, read_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hlorewrite.hlo.dump_chain import DumpedModule
    from hlorewrite.ir import Module
    from hlorewrite.timeline.simulate import ScheduledStep


def add_step_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name the step and its target."""
    parser.add_argument("input", metavar="IN",
                        help="StableHLO module, serialized jax.export or HLO before optimisations, to compile for the "
                             "target; optimised HLO text; or a folder of --xla_dump_to; - is standard input")
    parser.add_argument("--target", required=True, metavar="NAME:HOSTSxGPUS",
                        help="described GPUs such as h200:4x8; no GPU is needed")
    parser.add_argument("--topology", metavar="NAME:HOSTSxGPUS",
                        help="predict times on it (default: the target), such as mine.toml:4x8")
    parser.add_argument("--module", metavar="NAME", default="", help="the module of a dump to read")
    parser.add_argument("--trips", action="append", default=[], metavar="LOOP=N",
                        help="iterations of a loop whose trip count XLA lost; repeatable")
    parser.add_argument("--source", metavar="FILE",
                        help="the StableHLO from which the HLO was compiled, for lost trip counts")
    parser.add_argument("--xla-flag", action="append", default=[], metavar="NAME=VALUE",
                        help="XLA flag for the compilation; repeatable")


@dataclass(frozen=True)
class StepInput:
    """A compiled step.

    Attributes:
      name: the name to show in messages and headings.
      text: scheduled HLO.
      memory_bytes: the memory of one device in bytes, if known.
      line_trips: trip counts of the source module by line.
      dump: the module of a dump, where it comes from one.
      module: what was compiled; None where the input is a schedule.
    """

    name: str
    text: str
    memory_bytes: int | None = None
    line_trips: dict[str, int] = field(default_factory=dict)
    dump: DumpedModule | None = None
    module: Module | None = None


def scheduled_step(args: argparse.Namespace,
                   kernel_times: Mapping[str, float] | None = None) -> tuple[StepInput, ScheduledStep]:
    """The step of a command line, read and ready to be simulated.

    Raises:
      UsageError: the target has no cost model, or several modules are there to choose from.
      InputError: the input contains no schedule of XLA:GPU.
    """
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.cost import topology

    described_target(args.target)
    cluster, trips = topology(args.topology or args.target), _trips(args.trips)
    quiet_xla("cpu")
    source = read_step(args)
    from hlorewrite.timeline.simulate import ScheduledStep
    with located(source.name):
        return source, ScheduledStep(source.text, cluster, kernel_times=kernel_times, trips=trips,
                                     line_trips=source.line_trips, memory_bytes=source.memory_bytes, name=source.name)


@contextmanager
def located(name: str) -> Iterator[None]:
    """Names the file if an error about its content names no place."""
    from hlorewrite.errors import InputError
    try:
        yield
    except InputError as error:
        error.location = error.location or name
        raise


def described_target(target: str) -> None:
    """Refuses a target without a cost model.

    Raises:
      UsageError: the target is not a description of GPUs.
    """
    from hlorewrite.errors import UsageError

    if target.partition(":")[0].lower() in ("cpu", "gpu"):
        raise UsageError(f"--target {target} has no cost model", hint="name GPUs such as h200:1x8")


def read_step(args: argparse.Namespace) -> StepInput:
    """The scheduled HLO of any known input; StableHLO is compiled."""
    from hlorewrite.hlo.parse import is_scheduled
    from hlorewrite.ir.load import parse, read_bytes
    from hlorewrite.timeline.simulate import line_trips

    known = line_trips(parse(read_bytes(args.source), name=args.source)) if args.source else {}
    data, found = read_hlo(args)
    if found is not None and (found.dump is not None or is_scheduled(found.text)):
        return replace(found, line_trips=known)
    return _compiled(args, data, _name(args))


def read_hlo(args: argparse.Namespace) -> tuple[bytes, StepInput | None]:
    """(content, the step in it) of HLO text or a dump; no step if the file is something else.

    Raises:
      UsageError: the dump contains several modules, or none of the name.
      InputError: the input cannot be read, or the dump contains no scheduled HLO of XLA:GPU.
    """
    from hlorewrite.cost.report.collectives import looks_like_hlo
    from hlorewrite.errors import UsageError
    from hlorewrite.hlo.dump_chain import dumped_module
    from hlorewrite.ir.load import read_bytes

    if args.input != "-" and os.path.isdir(args.input):
        found = dumped_module(args.input, args.module)
        return b"", StepInput(found.name, hlo_text(found.text, found.name), found.memory_bytes, dump=found)
    if args.module:
        raise UsageError("--module is for a folder of --xla_dump_to", hint="leave it out")
    data = read_bytes(args.input)
    if looks_like_hlo(data):
        return data, StepInput(_name(args), hlo_text(data.decode(errors="replace"), _name(args)))
    return data, None


def _name(args: argparse.Namespace) -> str:
    return "<stdin>" if args.input == "-" else args.input


def _compiled(args: argparse.Namespace, data: bytes, name: str) -> StepInput:
    """StableHLO, compiled for the target."""
    from hlorewrite.cli.step.compile import parse_flags
    from hlorewrite.errors import InputError
    from hlorewrite.passmanager.programs import is_program
    from hlorewrite.timeline.simulate import line_trips
    from hlorewrite.util.progress import progress

    stage(f"{name}: while it was read")
    module = read_module(data, name)
    if is_program(module):
        raise InputError("is a program of several meshes; the timeline is of one compiled module", location=name,
                         hint="hlorewrite pipeline simulate shows its step")
    from hlorewrite.jaxbridge.xla.compile_for import compile_for, was_rewritten
    from hlorewrite.jaxbridge.xla.target import parse_target
    trips = line_trips(module)
    stage(f"{name}: while it was compiled for {args.target}", of="XLA")
    with progress(f"compiling for {args.target}"):
        made = compile_for(module, parse_target(args.target), protect=was_rewritten(module),
                           xla_flags=parse_flags(args.xla_flag))
    return StepInput(name, made.hlo, made.memory.total, trips, module=module)


def _trips(given: list[str]) -> dict[str, int]:
    from hlorewrite.errors import UsageError

    counts: dict[str, int] = {}
    for text in given:
        name, _, number = text.partition("=")
        if not name or not number.isdigit():
            raise UsageError(f'--trips "{text}" is not LOOP=N', hint="write while.12=8, say")
        counts[name.lstrip("%")] = int(number)
    return counts
