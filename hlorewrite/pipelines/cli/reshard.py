"""``hlorewrite reshard``: plans how a sharded tensor gets from one device mesh to another."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlorewrite.pipelines.reshard import ReshardMesh, ReshardPlan
    from hlorewrite.pipelines.reshard.lower import Lowered

HELP = "plan how a sharded tensor gets from one device mesh to another, and how long it takes"
STRATEGIES = ("auto", "send-recv", "all-gather", "global-all-gather", "trees", "broadcast")
ROWS = 40
_DTYPE = re.compile(r"(?:u|s|i|ui|f|bf|c|int|uint|float|bfloat|complex)(\d+)(?:_?e\d+m\d+\w*)?")
_VALUES = ("--src-spec", "--dst-spec", "--shape")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite reshard``."""
    parser.add_argument("--shape", required=True, metavar="DIMS", help="the tensor's shape, as 1024,1024,512")
    parser.add_argument("--dtype", metavar="TYPE", default="float32",
                        help="its dtype, such as int32 or bf16 (default: float32)")
    for side, name in (("src", "source"), ("dst", "destination")):
        parser.add_argument(f"--{side}-mesh", required=True, metavar="MESH",
                            help=f"{name} mesh: HOSTSxGPUS such as 2x4, or named axes such as data=2,model=4")
        parser.add_argument(f"--{side}-spec", required=True, metavar="SPEC",
                            help=f"{name} sharding: per dimension host, gpu, all, an axis name, or - for unsharded; "
                                 "join axes by +")
    parser.add_argument("--dst-first-device", type=int, metavar="N",
                        help="number of the destination's first device (default: the one after the source's last); "
                             "smaller numbers make the meshes overlap")
    parser.add_argument("--strategy", default="auto", metavar="NAME",
                        help=f"{', '.join(STRATEGIES)} (default: auto, the fastest)")
    parser.add_argument("--order", default="optimal", metavar="NAME", help="naive, size or optimal (default: optimal)")
    parser.add_argument("--sender", metavar="NAME",
                        help="first or least-loaded holder of a slice (default: first for the naive order)")
    parser.add_argument("--topology", default="p3.8xlarge", metavar="NAME",
                        help="servers the meshes are made of, or a TOML file (default: p3.8xlarge)")
    parser.add_argument("--json", action="store_true", help="print one JSON object with every transfer")
    parser.add_argument("--gantt", metavar="FILE", help="draw the links over time: PNG, SVG or PDF")
    parser.add_argument("--emit-module", metavar="FILE", help="write the plan as a StableHLO module (- for stdout)")
    parser.add_argument("--target", default="gpu", metavar="NAME",
                        help="the module's target: gpu (collective_broadcast, all_gather) or cpu "
                             "(collective_permute) (default: gpu)")
    parser.add_argument("--chunk-bytes", type=int, metavar="N",
                        help="memory the module may use in addition to source and destination (default: chosen)")


def prepare(words: list[str]) -> list[str]:
    """Binds values that start with ``-`` to their options: ``--dst-spec -,host,-``.

    Example:
      >>> prepare(["--dst-spec", "-,host", "--json"])
      ['--dst-spec=-,host', '--json']
    """
    out: list[str] = []
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in _VALUES else None
        out.append(word if value is None else f"{word}={value}")
    return out


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite reshard``."""
    from hlorewrite.errors import UsageError
    from hlorewrite.pipelines.reshard.gantt import check_ending, gantt
    if args.gantt:
        check_ending(args.gantt)
    if args.emit_module == "-" and args.json:
        raise UsageError("--json and --emit-module - both write to stdout", hint="write --emit-module FILE")
    from hlorewrite.util.progress import progress
    with progress("planning the transfer") as step:
        plan = planned(args)
        step("drawing" if args.gantt else "writing the module")
        picture = gantt(plan, args.gantt) if args.gantt else None
        module, lowered = _module(plan, args) if args.emit_module else (None, None)
    from hlorewrite.util.write import write_output
    if picture is not None:
        write_output(args.gantt, picture)
    if module is not None:
        write_output(args.emit_module, module)
    if args.json:
        for part in _json(plan, args, lowered):
            sys.stdout.write(part)
    elif args.emit_module != "-":
        print(_text(plan, args))
        if lowered:
            print(f"module for {args.target}: {lowered.rounds} rounds, {lowered.seconds:.6f} s one after another "
                  f"according to the model, {lowered.chunk_bytes} bytes in addition to source and destination")
    return 0


def planned(args: argparse.Namespace) -> ReshardPlan:
    """The plan that the command line asks for."""
    from hlorewrite.cost.cluster.topology_file import topology
    from hlorewrite.errors import UsageError
    from hlorewrite.pipelines.reshard import hosts_of_meshes, network_of, parse_mesh, parse_spec, plan_reshard, sharded
    shape = parse_shape(args.shape)
    itemsize = bytes_of(args.dtype)
    source = parse_mesh(args.src_mesh)
    first = source.size if args.dst_first_device is None else args.dst_first_device
    if first < 0:
        raise UsageError(f"--dst-first-device {first} is negative", hint="devices are numbered from 0")
    destination = parse_mesh(args.dst_mesh, first)
    cluster = topology(args.topology)
    gpus = cluster.gpus_per_host if ":" in args.topology else cluster.server_gpus
    _tell_crowding((source, destination), gpus, args.topology)
    network = network_of(cluster, hosts_of_meshes(source, destination, gpus))
    have, want = (sharded(shape, mesh, _spec(parse_spec(spec, mesh), spec, shape)) for mesh, spec in
                  ((source, args.src_spec), (destination, args.dst_spec)))
    return plan_reshard(have, want, itemsize, network, strategy=args.strategy, order=args.order, sender=args.sender)


def _spec(parsed: tuple[tuple[str, ...], ...], text: str, shape: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    from hlorewrite.errors import UsageError
    if len(parsed) != len(shape) and not (len(shape) == 0 and not any(parsed)):
        raise UsageError(f'the sharding "{text}" has {len(parsed)} entries for {len(shape)} dimensions',
                         hint="pass one entry per dimension, - for unsharded")
    return parsed if shape else ()


def _tell_crowding(meshes: tuple[ReshardMesh, ReshardMesh], gpus: int, name: str) -> None:
    most = max(mesh.size // mesh.axes[0][1] if mesh.axes[0][0] == "host" else 0 for mesh in meshes)
    if most > gpus:
        print(f"hlorewrite: note: a {name} host has {gpus} GPUs; planned as if {most} shared its NICs", file=sys.stderr)


def parse_shape(text: str) -> tuple[int, ...]:
    """Reads a shape.

    Raises:
      UsageError: an entry is not a size.

    Example:
      >>> parse_shape("1024,16")
      (1024, 16)
    """
    from hlorewrite.errors import UsageError
    if not text.strip():
        return ()
    sizes = [size.strip() for size in text.split(",")]
    if not all(size.isdecimal() for size in sizes):
        raise UsageError(f'"{text}" is not a shape', hint="write sizes separated by commas, such as 1024,1024,512")
    return tuple(int(size) for size in sizes)


def bytes_of(dtype: str) -> int:
    """Bytes of an element.

    Raises:
      UsageError: the dtype is unknown or smaller than a byte.

    Example:
      >>> [bytes_of(name) for name in ("int32", "bf16", "bool", "float8_e4m3fn", "complex64")]
      [4, 2, 1, 1, 8]
    """
    from hlorewrite.errors import UsageError
    if dtype in ("bool", "pred", "i1"):
        return 1
    match = _DTYPE.fullmatch(dtype)
    if match is None or int(match[1]) not in (8, 16, 32, 64, 128):
        raise UsageError(f'"{dtype}" is not a dtype of whole bytes', hint="write int32, float32, bf16, u8, ...")
    return int(match[1]) // 8


def _module(plan: ReshardPlan, args: argparse.Namespace) -> tuple[bytes, Lowered]:
    from hlorewrite.ir.load import parse
    from hlorewrite.ir.save import emit
    from hlorewrite.pipelines.reshard.lower import lower
    lowered = lower(plan, _element_type(args.dtype), args.target, args.chunk_bytes)
    return emit(parse(lowered.text, name="resharding")), lowered


def _element_type(dtype: str) -> str:
    """MLIR's name of a dtype given as NumPy, MLIR or HLO writes it."""
    if dtype in ("bool", "pred", "i1"):
        return "i1"
    name = dtype.replace("uint", "ui").replace("bfloat", "bf").replace("float", "f")
    if small := re.fullmatch(r"f8_?(e\d+m\d+\w*)", name):
        return f"f8{small[1].upper()}"
    if pair := re.fullmatch(r"(?:complex|c)(\d+)", name):
        return f"complex<f{int(pair[1]) // 2}>"
    name = re.sub(r"^(int|s)(?=\d)", "i", name)
    return re.sub(r"^u(?=\d)", "ui", name)


def _facts(plan: ReshardPlan, args: argparse.Namespace) -> dict[str, Any]:
    return {"shape": list(plan.tasks.source.shape), "dtype": args.dtype, "topology": args.topology,
            "strategy": plan.strategy, "order": plan.order, "makespan_s": plan.makespan_s,
            "lower_bound_s": plan.lower_bound_s, "gap": plan.gap, "proven_optimal": plan.proven or plan.gap == 0.0,
            "digest": plan.digest, "note": plan.note}


def _json(plan: ReshardPlan, args: argparse.Namespace, lowered: Lowered | None) -> Iterator[str]:
    """The JSON object in parts: a plan has up to a million transfers."""
    module = {"module": {"target": args.target, "rounds": lowered.rounds, "rounds_s": lowered.seconds,
                         "chunk_bytes": lowered.chunk_bytes}} if lowered else {}
    yield json.dumps(_facts(plan, args) | module)[:-1] + ', "tasks": ['
    for i, task in enumerate(plan.task_dicts()):
        yield (",\n  " if i else "\n  ") + json.dumps(task)
    yield "\n]}\n"


def _text(plan: ReshardPlan, args: argparse.Namespace) -> str:
    from hlorewrite.util.tables import table
    size = int(plan.rows.size.sum()) if len(plan.rows) else 0
    lines = [f"{plan.strategy}, {plan.order} order on {args.topology}: {len(plan.rows)} transfers, {size} bytes"]
    rows = [["slice", "kind", "sender", "receivers", "start s", "end s"]]
    for task in plan.task_dicts():
        if len(rows) > ROWS:
            break
        receivers = task["receivers"]
        shown = ",".join(map(str, receivers[:8])) + (f",... ({len(receivers)})" if len(receivers) > 8 else "")
        box = "[" + ", ".join(f"{a}:{b}" for a, b in task["slice"]) + "]"
        rows.append([box, task["kind"], str(task["sender"]), shown, f"{task['start_s']:.6f}", f"{task['end_s']:.6f}"])
    if len(rows) > 1:
        lines += table(rows, "<<><>>")
    if len(plan.rows) > ROWS:
        lines.append(f"... and {len(plan.rows) - ROWS} more; --json prints them all")
    lines.append(f"makespan {plan.makespan_s:.6f} s, lower bound {plan.lower_bound_s:.6f} s, gap {plan.gap:.2%}")
    return "\n".join([*lines, plan.note] if plan.note else lines)
