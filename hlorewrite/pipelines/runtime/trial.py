"""Runs of one program by several schedules on the same random inputs, compared and timed."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hlorewrite.errors import HlorewriteError, PlanError
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.execute import Value, compare_output, random_arguments
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.registry import make_pass
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.runtime.timeline import measured_times, timeline, write_timeline, write_times
from hlorewrite.pipelines.schedules import Schedule

_PASSES = ("expose-collectives", "comm-shift")


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes:
      schedule: its name.
      comm_shift: ``on`` or ``off``.
      seconds: median wall-clock time of a step until all its results are there; None when the schedule does not fit.
      compile_s: how long it took to compile.
      error: largest relative error against the first run; None for the first one.
      equal: whether every result is within its type's tolerance.
      why: why it does not fit.
    """

    schedule: str
    comm_shift: str
    seconds: float | None
    compile_s: float = 0.0
    error: float | None = None
    equal: bool = True
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        if self.seconds is None:
            return {"schedule": self.schedule, "comm_shift": self.comm_shift, "fits": False, "why": self.why}
        return {"schedule": self.schedule, "comm_shift": self.comm_shift, "fits": True, "step_s": self.seconds,
                "compile_s": self.compile_s, "max_rel_error": self.error, "equal": self.equal}


class Trials:
    """Runs that share their inputs.

    Args:
      seed: the seed of the inputs.
      steps: timed steps of each run.
      topology: the cluster's servers, for plans of transfers.
    """

    def __init__(self, seed: int, steps: int, topology: str = "") -> None:
        self.seed, self.steps, self.topology = seed, steps, topology
        self._values: list[np.ndarray] = []
        self._reference: list[list[np.ndarray]] | None = None
        self._last: tuple[PipelineDriver, Any] | None = None

    @staticmethod
    def shifted(module: Module) -> Module:
        """The program after expose-collectives and comm-shift."""
        made = module.clone()
        for name in _PASSES:
            make_pass(name).run(made, PassContext())
        return made

    def run(self, module: Module, schedule: str | Schedule, name: str, comm_shift: str, *, must_fit: bool) -> Trial:
        """Compiles and runs a program by a schedule.

        Args:
          module: the program.
          schedule: the schedule or its name.
          name: its name.
          comm_shift: whether the program is the rewritten one: ``on`` or ``off``.
          must_fit: raise where the schedule does not fit, instead of saying so in the trial.

        Returns:
          The trial.
        """
        begin = time.perf_counter()
        try:
            driver = PipelineDriver(module, schedule=schedule, topology=self.topology)
        except PlanError as error:
            if must_fit:
                raise
            return Trial(name, comm_shift, None, why=error.what)
        compiled = time.perf_counter() - begin
        shards = self._first(driver)
        seconds = []
        for _ in range(self.steps):
            placed = driver.place(self._values)
            jax.block_until_ready(placed)
            begin = time.perf_counter()
            driver.wait(driver(*placed))
            seconds.append(time.perf_counter() - begin)
        self._last = driver, self._values
        error, equal = self._compared(driver, shards)
        return Trial(name, comm_shift, statistics.median(seconds), compiled, error, equal)

    def check_any(self, trials: Sequence[Trial], where: str) -> None:
        """Raises an error if no schedule fitted.

        Raises:
          PlanError: none did.
        """
        if all(trial.seconds is None for trial in trials):
            raise PlanError(f"no schedule fits the program ({trials[0].why})", location=where,
                            hint="write your own with --table")

    def save(self, times: str | None, trace: str | None) -> None:
        """Measures the last run's fragments and transfers one by one, and one of its steps as it runs.

        Args:
          times: file for the seconds of each fragment and transfer; None for none.
          trace: file for the step's timeline, ending in ``.json``; None for none.
        """
        if self._last is None:
            raise HlorewriteError("nothing has run", hint="run a schedule first")
        driver, values = self._last
        if times:
            write_times(measured_times(driver, driver.place(values)), times)
        if trace:
            write_timeline(driver, timeline(driver, driver.place(values)), trace)

    def _first(self, driver: PipelineDriver) -> list[list[np.ndarray]]:
        """Results of the first step; the first run chooses inputs that give finite ones."""
        for positive in (False, True):
            if not self._values or positive:
                self._values = self._drawn(driver, positive)
            results = driver(*driver.place(self._values))
            driver.wait(results)
            shards = [[np.asarray(shard.data) for shard in result.addressable_shards] for result in results
                      if result is not None]
            if self._reference is not None or positive or all(
                    np.isfinite(part.astype(np.float64)).all() for parts in shards for part in parts):
                return shards
        raise AssertionError("the loop returns")

    def _drawn(self, driver: PipelineDriver, positive: bool) -> list[np.ndarray]:
        kinds = [driver.program.types[value] for value in driver.program.arguments]
        return random_arguments([Value("", type_.shape, type_.element, "") for type_ in kinds], self.seed,
                                positive=positive)

    def _compared(self, driver: PipelineDriver, shards: list[list[np.ndarray]]) -> tuple[float | None, bool]:
        if self._reference is None:
            self._reference = shards
            return None, True
        kinds = [driver.program.types[value] for value in driver.program.results]
        errors = [compare_output(Value("", type_.shape, type_.element, ""), before, after)
                  for type_, before, after in zip(kinds, self._reference, shards, strict=True)]
        return max((each.rel_error for each in errors), default=0.0), all(each.equal for each in errors)
