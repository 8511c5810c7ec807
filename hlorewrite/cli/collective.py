"""``hlorewrite collective``: the time of one collective on a topology."""

import argparse
import json
from dataclasses import asdict

from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE, TIMED_KINDS
from hlorewrite.util.read import read_json

HELP = "predict the time of one collective on a topology"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite collective``."""
    parser.add_argument("kind", metavar="KIND", help=f"{', '.join(TIMED_KINDS[:-1])} or {TIMED_KINDS[-1]}")
    parser.add_argument("--bytes", required=True, metavar="SIZE", dest="size",
                        help="bytes per device of the larger of operand and result: 1GiB, 64MB, 4096")
    parser.add_argument("--topology", required=True, metavar="NAME:HOSTSxGPUS",
                        help="such as h200:1x8, or a topology file")
    parser.add_argument("--group-size", type=int, metavar="N", help="groups of N neighbours (default: all GPUs, one)")
    parser.add_argument("--groups", metavar="LISTS", help='explicit groups, as in "{{0,2},{1,3}}"; pairs of a permute')
    parser.add_argument("--model", choices=["measured", "nccl"], default="measured",
                        help="measured curves if the topology has them, or NCCL's tuning model alone")
    parser.add_argument("--plot", metavar="FILE", help="plot effective bandwidth against size: PNG or SVG")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite collective``."""
    from hlorewrite.cost import NcclModel, collective_model, topology
    from hlorewrite.cost.collective_kinds import check_kind
    from hlorewrite.cost.collectives.bandwidth import describe
    from hlorewrite.cost.collectives.models import waiting_for_ranks
    from hlorewrite.util.sizes import format_bytes, format_seconds, parse_bytes

    check_kind(args.kind)
    size = parse_bytes(args.size)
    topo = topology(args.topology)
    groups = chosen_groups(args, topo.gpus)
    times = collective_model(topo) if args.model == "measured" else NcclModel(topo)
    described = describe(times, args.kind, size, groups)
    if args.plot:
        from hlorewrite.cost.training.plots import draw_bandwidth, save
        save(draw_bandwidth(times, groups, kinds=[args.kind]), args.plot)
    ranks = max(len(group) for group in groups)
    wait, host = waiting_for_ranks(ranks), times.constant("host_call_s")
    if args.json:
        print(json.dumps(described | {"waiting_s": asdict(wait), "host_call_s": host}, indent=2))
        return 0
    print(f"{args.kind} of {format_bytes(size)} among {ranks} of {topo.gpus} GPUs ({topo.spec}): "
          f"{format_seconds(described['time_s'])}")
    print(f"  algorithm bandwidth {described['algorithm_bandwidth_bytes_per_s'] / 1e9:.1f} GB/s, "
          f"bus bandwidth {described['bus_bandwidth_bytes_per_s'] / 1e9:.1f} GB/s; NCCL would choose "
          f"{described['algorithm']}/{described['protocol']}")
    print(f"  if nothing hides it, it also waits for late ranks: {format_seconds(wait.mean)} on average, in 80 "
          f"of 100 calls {format_seconds(wait.low)} to {format_seconds(wait.high)}; a call from Python adds about "
          f"{format_seconds(host)}")
    return 0


def chosen_groups(args: argparse.Namespace, gpus: int) -> list[list[int]]:
    """The groups the flags ask for."""
    from hlorewrite.errors import UsageError

    if args.groups and args.group_size:
        raise UsageError("--groups and --group-size cannot be used together", hint="pass one of them")
    if args.groups:
        return parse_groups(args.groups)
    size = gpus if args.group_size is None else args.group_size
    if size < 1 or gpus % size:
        raise UsageError(f"{gpus} GPUs are not divisible by groups of {size}", hint="change --group-size")
    if args.kind == COLLECTIVE_PERMUTE.kind:
        return [[first + i, first + (i + 1) % size] for first in range(0, gpus, size) for i in range(size)]
    return [list(range(first, first + size)) for first in range(0, gpus, size)]


def parse_groups(text: str) -> list[list[int]]:
    """Reads ``{{0,1},{2,3}}``; brackets may be square too."""
    from hlorewrite.errors import UsageError

    try:
        groups = read_json(text.replace("{", "[").replace("}", "]"))
        if isinstance(groups, list) and groups and all(
                isinstance(group, list) and all(type(gpu) is int for gpu in group) for group in groups):
            return groups
    except ValueError:
        pass
    raise UsageError(f'"{text}" is not a list of groups', hint='write it like "{{0,1},{2,3}}"')
