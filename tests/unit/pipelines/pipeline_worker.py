"""One process of a pipeline: joins, runs steps, prints its relative errors, and misbehaves when asked to.

Arguments: a JSON file of the work, the number of this process.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[3]), str(Path(__file__).resolve().parent)]

# ruff: noqa: E402
import jax
import pipeline_cases as cases

from hlorewrite.jaxbridge.processes.join import join
from hlorewrite.pipelines.runtime.driver import PipelineDriver


def main() -> None:
    """Runs the work."""
    work = json.loads(Path(sys.argv[1]).read_text())
    process = int(sys.argv[2])
    wrong = work["wrong"] if process == work["who"] else ""
    join(work["coordinator"], work["processes"], process, work["timeout_s"])
    if wrong == "absent":
        time.sleep(3 * work["timeout_s"])
        os._exit(0)
    schedule = "gpipe" if wrong == "other schedule" else work["schedule"]
    driver = PipelineDriver(getattr(cases, work["program"])(), schedule=schedule, timeout_s=work["timeout_s"])
    given = cases.values()
    *state, loss = driver(*driver.place(given))
    wanted = cases.reference(*given)
    errors = [max(cases.relative_errors([array], [want])) for array, want in zip((*state, loss), wanted, strict=True)
              if array is not None]
    print(json.dumps({"errors": errors, "loss": float(driver.fetch(2, loss)), "kinds": sorted(
        {plan.kind for plan in driver.plans.values()})}), flush=True)
    data = driver.place(given)[2:]
    for step in range(work["steps"]):
        if wrong and step == 10:
            misbehave(wrong, driver)
        *state, loss = driver(*state, *data)
    driver.wait([*state, loss])
    print("done", flush=True)


def misbehave(how: str, driver: PipelineDriver) -> None:
    """Dies, leaves, raises, or makes a fragment fail."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "sleeps":
        time.sleep(1000)
    if how == "leaves":
        sys.exit(0)
    if how == "raises":
        raise ValueError("a bad batch")

    def out_of_memory(*_: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    place = next(i for i, each in enumerate(driver.instructions) if getattr(each.action.step, "task", "") == "B")
    broken = dataclasses.replace(driver.instructions[place], function=out_of_memory)
    driver.instructions = (*driver.instructions[:place], broken, *driver.instructions[place + 1:])


if __name__ == "__main__":
    main()
