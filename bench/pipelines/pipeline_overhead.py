"""Driver time per fragment call of a pipeline program, next to the executable's own bare call, in one run.

The program is ``tests/programs/two_stages.mlir``: its fragments take microseconds on the device, so what remains is
what the host does. Per fragment call three times are taken in turns, and their medians printed:

* driver: a step in ``PipelineDriver.__call__`` (nothing is waited for), over its calls of fragments and transfers;
* bare: the same executables and transfers called with the same arrays, in the same order, in a loop without the driver;
* walk: the driver's walk alone: the same instructions with functions that do nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("PJRT_NPROC", "64")  # so that the driver never waits for threads of XLA's pool
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "bench" / "common")]


def main() -> int:
    """Runs the bench; returns the exit code: 1 when the overhead is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "tests/programs/two_stages.mlir"))
    parser.add_argument("--schedule", help="the schedule (default: the program's)")
    parser.add_argument("--devices", type=int, default=8, help="CPU devices (default 8)")
    parser.add_argument("--steps", type=int, default=200, help="measured steps of each kind (default 200)")
    parser.add_argument("--limit-us", type=float, default=200.0, help="exit 1 above (default 200)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.devices} {os.environ.get('XLA_FLAGS', '')}"
    row = measure(args.program, args.schedule, args.steps)
    if args.json:
        print(json.dumps(row))
    else:
        print(f"{row['calls']} calls a step, {row['fragments']} of fragments and {row['transfers']} of transfers; "
              f"medians of {args.steps} steps, us a call")
        for name in ("driver", "bare", "walk", "overhead"):
            print(f"  {name:<9}{row[name + '_us']:>8.1f}")
        print(f"  driver / bare  {row['ratio']:.3f}")
    return int(row["overhead_us"] > args.limit_us)


def measure(path: str, schedule: str | None, steps: int) -> dict[str, Any]:
    """Times of one program.

    Args:
      path: the program.
      schedule: name of the schedule; None for the program's.
      steps: how many steps of each kind.

    Returns:
      Medians in microseconds a call.
    """
    import jax
    from idle_driver import idle_driver

    from hlorewrite.ir.load import load
    from hlorewrite.jaxbridge.xla.execute import Value, random_arguments
    from hlorewrite.pipelines.mpmd.program import FragmentCall
    from hlorewrite.pipelines.runtime.driver import PipelineDriver

    driver = PipelineDriver(load(path), schedule=schedule, donate=False)
    kinds = [driver.program.types[value] for value in driver.program.arguments]
    values = random_arguments([Value("", type_.shape, type_.element, "") for type_ in kinds], positive=True)
    arguments = driver.place(values)
    recorded = _recorded(driver, arguments)
    idle = idle_driver(driver)

    def bare() -> list[Any]:
        return [function(*given) for function, given in recorded]

    jobs: dict[str, Callable[[], Any]] = {"driver": lambda: driver(*arguments), "bare": bare,
                                          "walk": lambda: idle(*arguments)}
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(steps + 10):
        for name, job in jobs.items():
            begin = time.perf_counter()
            made = job()
            end = time.perf_counter()
            jax.block_until_ready(made)
            if turn >= 10:
                seconds[name].append(end - begin)
    calls = len(recorded)
    fragments = sum(isinstance(step.action.step, FragmentCall) for step in driver.instructions)
    each = {name: statistics.median(times) * 1e6 / calls for name, times in seconds.items()}
    # Pairs of one iteration are compared, so that what else the machine does weighs on both alike.
    overhead = statistics.median(a - b for a, b in zip(seconds["driver"], seconds["bare"], strict=True)) * 1e6 / calls
    return {"calls": calls, "fragments": fragments, "transfers": calls - fragments, "driver_us": each["driver"],
            "bare_us": each["bare"], "walk_us": each["walk"], "overhead_us": overhead,
            "ratio": each["driver"] / each["bare"]}


def _recorded(driver: Any, arguments: Any) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Every call of one step with the arrays it was given."""
    slots = driver._template.copy()
    for slot, value in zip(driver.order.arguments, arguments, strict=True):
        slots[slot] = value
    calls = []
    for step in driver.instructions:
        given = [slots[slot] for slot in step.reads]
        calls.append((step.function, given))
        for slot, value in zip(step.writes, step.function(*given), strict=False):
            slots[slot] = value
    return calls


if __name__ == "__main__":
    sys.exit(main())
