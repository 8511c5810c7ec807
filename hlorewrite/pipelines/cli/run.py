"""``hlorewrite pipeline run``: a program of several meshes on devices of this machine, by one or all schedules."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlorewrite.pipelines.runtime.trial import Trial

_SPARE_THREADS = 64


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that only ``pipeline run`` takes."""
    group = parser.add_argument_group("run", "of a program, on random inputs")
    group.add_argument("--on", choices=["cpu", "gpu"], default="cpu",
                       help="CPU devices, as many as the program needs, or the GPUs of this machine (default: cpu)")
    group.add_argument("--steps", type=int, default=5, metavar="N", help="timed steps of each schedule (default: 5)")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the random inputs")
    group.add_argument("--save-times", metavar="FILE", help="write measured seconds of each fragment and transfer, for "
                                                            "simulate --times")


def run_program(args: argparse.Namespace) -> int:
    """Runs a program by each schedule that fits, compares the values, prints times.

    Args:
      args: the command line; ``--comm-shift on`` also runs the program after the pass comm-shift.

    Returns:
      0, or 3 when two runs give different values.

    Raises:
      UsageError: no program is named, or ``--steps`` is below one.
      PlanError: the named schedule does not fit.
    """
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.errors import UsageError

    if not args.program:
        raise UsageError("run needs a program", hint="name a .mlir file, as split-stages writes it")
    if args.steps < 1:
        raise UsageError(f"--steps {args.steps}", hint="run at least one")
    quiet_xla(args.on)
    os.environ.setdefault("PJRT_NPROC", str(_SPARE_THREADS))  # collectives that wait hold threads of XLA's pool
    trials = _trials(args)
    equal = all(trial.equal for trial in trials if trial.seconds is not None)
    if args.json:
        print(json.dumps({"equal": equal, "runs": [trial.as_json() for trial in trials]}, indent=2))
    else:
        print(_table(trials))
    return 0 if equal else 3


def _trials(args: argparse.Namespace) -> list[Trial]:
    """All runs, the first one the reference of the others."""
    from hlorewrite.ir.load import load
    from hlorewrite.pipelines.mpmd.program import read_program
    from hlorewrite.pipelines.runtime.trial import Trials
    from hlorewrite.pipelines.schedules import SCHEDULES, custom_schedule
    from hlorewrite.util.progress import progress
    from hlorewrite.util.read import read_text

    module = load(args.program)
    devices = read_program(module).devices
    flags = os.environ.get("XLA_FLAGS", "")
    if args.on == "cpu" and "xla_force_host_platform_device_count" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={devices}".strip()
    schedules: list[Any] = [custom_schedule(read_text(args.table), where=args.table)] if args.table else \
        [args.schedule] if args.schedule else list(SCHEDULES)
    forms = {"off": module}
    trials = Trials(args.seed, args.steps, args.topology or "")
    with progress("running") as step:
        if args.comm_shift == "on":
            step("comm-shift")
            forms["on"] = trials.shifted(module)
        results = []
        for form, program in forms.items():
            for schedule in schedules:
                name = schedule if isinstance(schedule, str) else schedule.name
                step(f"{name}, Comm-Shift {form}")
                results.append(trials.run(program, schedule, name, form, must_fit=len(schedules) == 1))
        trials.check_any(results, args.program)
        if args.save_times or args.trace:
            step("measuring fragments and transfers")
            trials.save(args.save_times, args.trace)
    return results


def _table(trials: list[Trial]) -> str:
    from hlorewrite.util.sizes import format_seconds
    from hlorewrite.util.tables import table

    rows = [["schedule", "Comm-Shift", "step", "compiled in", "largest relative error"]]
    for trial in trials:
        if trial.seconds is None:
            rows.append([trial.schedule, trial.comm_shift, f"does not fit: {trial.why}"])
        else:
            error = "reference" if trial.error is None else f"{trial.error:.1e}" + ("" if trial.equal else "  DIFFERS")
            rows.append([trial.schedule, trial.comm_shift, format_seconds(trial.seconds),
                         format_seconds(trial.compile_s), error])
    return "\n".join(table(rows, "<<>>"))
