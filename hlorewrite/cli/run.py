"""``hlorewrite run``: execute a module once on random arguments and show its outputs."""

import argparse
import json

from hlorewrite.cli.verify import add_run_arguments

HELP = "run a module once on random inputs, on a CPU mesh or on the GPUs present, and show its outputs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite run``."""
    parser.add_argument("input", metavar="IN", help="module or serialized jax.export; - is standard input")
    add_run_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FILE.npz",
                        help="also write the outputs: out0, out1, ... with one leading row for each device")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite run``."""
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.util.progress import progress

    quiet_xla(args.on)
    from hlorewrite.ir.load import load
    from hlorewrite.jaxbridge.xla.execute import prepared_for_run, random_arguments, run_module, run_target, signature
    from hlorewrite.jaxbridge.xla.show import execution_rows, execution_text

    module = load(args.input)
    target = run_target(module, args.devices, args.on)
    arguments, _ = signature(prepared_for_run(module))
    with progress(f"compiling and running on {target.text}"):
        made = run_module(module, target, random_arguments(arguments, args.seed, positive=args.inputs == "positive"))
    if args.output:
        _save(args.output, made.shards)
    if args.json:
        print(json.dumps({"target": target.text, "seed": args.seed, "outputs": execution_rows(made)}, indent=2))
    else:
        print(execution_text(made), end="")
    return 0


def _save(path: str, shards: tuple) -> None:
    import io

    import numpy as np

    from hlorewrite.util.write import write_output

    buffer = io.BytesIO()
    arrays: dict = {f"out{i}": np.stack(parts) for i, parts in enumerate(shards)}
    np.savez(buffer, **arrays)
    write_output(path, buffer.getvalue())
