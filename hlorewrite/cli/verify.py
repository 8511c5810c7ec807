"""``hlorewrite verify``: run two modules on the same random arguments and compare what every device holds."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.checks.reference.check import Comparison
    from hlorewrite.ir.module import Module

HELP = "run two modules on the same random inputs and compare the values; exit code 3 when they differ"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite verify``."""
    parser.add_argument("before", metavar="BEFORE", help="the original module or serialized jax.export")
    parser.add_argument("after", metavar="AFTER", help="the rewritten one")
    add_run_arguments(parser)
    parser.add_argument("--tol", type=float, metavar="REL",
                        help="largest error relative to an output's largest magnitude (default: what rounding "
                             "explains, computed for these inputs)")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that ``verify`` and ``run`` share."""
    parser.add_argument("--devices", type=int, metavar="N",
                        help="how many devices (default: the number in the module)")
    parser.add_argument("--on", choices=["cpu", "gpu"], default="cpu", help="CPU devices, or the GPUs of this machine")
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="of the random inputs")
    parser.add_argument("--inputs", choices=["auto", "normal", "positive"], default="auto",
                        help="floats: standard normal, positive below 1, or normal unless that gives infinities")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite verify``."""
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.util.progress import progress

    quiet_xla(args.on)
    from hlorewrite.ir.load import load
    from hlorewrite.jaxbridge.xla.execute import require_same_signature, run_target, verify
    from hlorewrite.passmanager.programs import is_program

    before, after = load(args.before), load(args.after)
    if is_program(before) and is_program(after):
        return _verify_programs(args, before, after)
    require_same_signature(before, after)
    target = run_target(before, args.devices, args.on)
    run_target(after, args.devices, args.on)
    with progress(f"compiling and running both on {target.text}"):
        made = verify(before, after, target, seed=args.seed, tolerance=args.tol,
                      positive={"auto": None, "normal": False, "positive": True}[args.inputs])
    others = _other_functions(before, after, args.seed, args.tol)
    equal = made.equal and (others is None or others.equal)
    if args.json:
        print(json.dumps({"equal": equal, "target": made.before.compilation.target, "seed": args.seed,
                          "inputs": "positive" if made.positive_inputs else "normal",
                          "outputs": [{"name": o.value.name, "shape": list(o.value.shape), "dtype": o.value.element,
                                       "max_abs_error": o.abs_error, "max_rel_error": o.rel_error,
                                       "tolerance": o.tolerance, "bound": o.bound, "reason": o.reason,
                                       "nonfinite": o.nonfinite, "equal": o.equal}
                                      for o in made.outputs],
                          "problems": list(made.problems),
                          "other_functions": json.loads(others.to_json()) if others else None}, indent=2))
    else:
        from hlorewrite.jaxbridge.xla.show import verification_text
        print(verification_text(made), end="")
        if others:
            print("\nother public functions that differ, executed by the reference interpreter:\n" + _shown(others),
                  end="")
    return 0 if equal else 3


def _other_functions(before: Module, after: Module, seed: int, tolerance: float | None) -> Comparison | None:
    """The public functions that differ and that XLA, which starts with one, did not run."""
    from hlorewrite.checks.reference.entries import entry_pairs
    from hlorewrite.checks.reference.worker import check_in_subprocess
    from hlorewrite.ir.view import symbol_name
    from hlorewrite.jaxbridge.xla.spmd_module import main_function

    main = symbol_name(main_function(before))
    others = [pair.label for pair in entry_pairs(before, after) if pair.label != main and pair.changed]
    return check_in_subprocess(before, after, seed=seed, tolerance=tolerance, functions=others) if others else None


def _verify_programs(args: argparse.Namespace, before: Module, after: Module) -> int:
    """Programs of several meshes are compared by the reference interpreter, fragment after fragment."""
    from hlorewrite.checks.reference.worker import check_in_subprocess
    from hlorewrite.errors import UsageError

    for flag, given in (("--devices", args.devices is not None), ("--on", args.on != "cpu"),
                        ("--inputs", args.inputs != "auto")):
        if given:
            raise UsageError(f"{flag} cannot be used with programs of several meshes: only the reference interpreter "
                             "compares these", hint="leave it out")
    report = check_in_subprocess(before, after, seed=args.seed, tolerance=args.tol)
    print(report.to_json() if args.json else _shown(report), end="\n" if args.json else "")
    return 0 if report.equal else 3


def _shown(report: Comparison) -> str:
    return report.table() + "".join(f"{problem}\n" for problem in report.problems)
