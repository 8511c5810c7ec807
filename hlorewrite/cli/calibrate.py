"""``hlorewrite calibrate``: a topology file from nccl-tests output."""

import argparse
import json

from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE

MOST_RANKS = 1 << 20
HELP = "turn the output of nccl-tests into a topology file with measured curves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite calibrate``."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="output of all_reduce_perf, all_gather_perf, ...; "
                                                                 "- is standard input")
    parser.add_argument("--topology", required=True, metavar="NAME:HOSTSxGPUS", help="a shipped topology to extend")
    parser.add_argument("--name", metavar="TOPOLOGY",
                        help="name of the new topology (default: the old one + -calibrated)")
    parser.add_argument("--kind", metavar="COLLECTIVE",
                        help="the collective, if the output does not name its binary")
    parser.add_argument("--ranks", type=int, metavar="N",
                        help="the number of ranks, if the output does not list them")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="write there instead of standard output")
    parser.add_argument("--json", action="store_true", help="print the errors before and after as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite calibrate``."""
    from dataclasses import replace

    from hlorewrite.cost import collective_model, topology, topology_names
    from hlorewrite.cost.collective_kinds import check_kind
    from hlorewrite.cost.collectives.calibrate import calibrated_toml, curve_name, fitted_constants
    from hlorewrite.errors import UsageError
    from hlorewrite.util.progress import progress
    from hlorewrite.util.write import write_file

    if args.kind:
        check_kind(args.kind)
    topo = topology(args.topology)
    if topo.name not in topology_names():
        raise UsageError(f'"{args.topology}" is not a shipped topology', hint="extend one of the shipped ones")
    sweeps = [read_sweep(file, args) for file in args.files]
    curves = {curve_name(sweep, topo): sweep.points for sweep in sweeps}
    with progress(f"fitting the model of {topo.name} to {len(sweeps)} sweeps"):
        constants = fitted_constants(topo, sweeps)
    text = calibrated_toml(topo.name, args.name or f"{topo.name}-calibrated", curves, constants)
    if args.output != "-":
        write_file(args.output, text.encode())
    if args.json:
        after = replace(topo, curves=dict(topo.curves) | curves)
        rows = [{"curve": curve_name(sweep, topo), "points": len(sweep.points),
                 "median_error_before": median_error(collective_model(topo), sweep),
                 "median_error_after": median_error(collective_model(after), sweep)} for sweep in sweeps]
        print(json.dumps({"topology": topo.spec, "curves": rows}, indent=2))
    elif args.output == "-":
        print(text, end="")
    return 0


def read_sweep(file: str, args: argparse.Namespace):
    """One file of nccl-tests output."""
    import sys
    from dataclasses import replace

    from hlorewrite.cost.collectives.calibrate import parse_nccl_tests
    from hlorewrite.errors import UsageError
    from hlorewrite.util.read import read_text

    text = sys.stdin.read() if file == "-" else read_text(file, "replace")
    sweep = parse_nccl_tests(text, file, args.kind)
    if args.ranks is not None and not 1 <= args.ranks <= MOST_RANKS:
        raise UsageError(f"--ranks is {args.ranks}", hint=f"ranks must be from 1 to {MOST_RANKS}")
    return replace(sweep, ranks=args.ranks) if args.ranks else sweep


def median_error(times, sweep) -> float:
    """Median relative error of a model on a sweep."""
    import statistics
    topo = times.topology
    ranks = sweep.ranks or topo.gpus
    if sweep.kind == COLLECTIVE_PERMUTE.kind:
        groups = [[gpu, (gpu + 1) % ranks] for gpu in range(ranks)]
    else:
        groups = [list(range(ranks))]
    return statistics.median(abs(times.collective_time(sweep.kind, int(size), groups) / time - 1)
                             for size, time in sweep.points)
