"""A rewritten module against XLA alone: which of the two a user should run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlorewrite.jaxbridge.baseline.flag_sets import BestOfXla
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.util.sizes import format_bytes, format_seconds, told_apart
from hlorewrite.util.tables import table

NOISE = 0.001
"""Bytes on the wire, and predicted steps, that differ by a smaller share count as equal."""
MEMORY_FACTOR = 1.02
"""How far temporaries may grow: buffers of equal sizes are packed differently from schedule to schedule."""
MEMORY_SLACK = 64 * 1024
"""Bytes by which temporaries may grow in any case: less than a buffer of a step worth rewriting."""


@dataclass(frozen=True)
class KeepLimits:
    """What a rewritten module may need compared with XLA alone.

    Attributes:
      memory_factor: most temporaries, as a multiple.
      memory_slack: bytes they may grow by in any case.
      step: whether the predicted step may not be longer.
    """

    memory_factor: float = MEMORY_FACTOR
    memory_slack: int = MEMORY_SLACK
    step: bool = False

    def grown(self, size: int) -> KeepLimits:
        """The same with so many bytes of temporaries more."""
        return replace(self, memory_slack=self.memory_slack + size)


_AS_WELL = "XLA alone does as well"
USUAL = KeepLimits()
"""The limits of ``keep="better"``."""


def allowed_growth(budget: int | None, taken: int, by_time: bool) -> int:
    """Bytes by which the temporaries of a candidate may grow beyond the limits.

    Args:
      budget: bytes of temporaries that the user allows; None without a budget.
      taken: bytes that the passes count for what they keep for longer.
      by_time: whether the passes decide by predicted time; without a budget they may take what they count.

    Example:
      >>> allowed_growth(None, 100, True), allowed_growth(30, 100, True), allowed_growth(None, 100, False)
      (100, 30, 0)
    """
    return budget if budget is not None else taken if by_time else 0


def usual_limits(budget: int | None, taken: int, by_time: bool) -> KeepLimits:
    """The limits of ``keep="better"`` for one candidate; arguments as for ``allowed_growth``.

    Example:
      >>> usual_limits(None, 100, True).step, usual_limits(None, 100, False) == USUAL
      (True, True)
    """
    return replace(USUAL.grown(allowed_growth(budget, taken, by_time)), step=by_time)


EXACT = KeepLimits(1.0, 0, step=True)
"""No byte more than XLA alone, and no longer step."""


@dataclass(frozen=True)
class XlaComparison:
    """XLA alone compared with a rewritten module.

    Attributes:
      devices: what both are compiled for, such as ``8 x NVIDIA H200``.
      alone: the user's own module.
      ours: the rewritten one; None where it was not compiled, because it cannot be better.
      partitioner: whose partitioner the rewritten one went through: ``gpu``, ``cpu``; empty for manual modules.
      against: why the rewritten module is not to be run; empty when it is.
      with_code: whether both were compiled to the end.
      step: whether predicted steps were to be compared.
      best: XLA alone with published flags, where that was asked for.
    """

    devices: str
    alone: Measured
    ours: Measured | None
    partitioner: str
    against: str
    with_code: bool
    step: bool = False
    best: BestOfXla | None = None

    @property
    def kept(self) -> bool:
        """Whether the rewritten module is run."""
        return not self.against

    @property
    def rewritten(self) -> Measured:
        """The rewritten module, of which it is known that it was compiled."""
        assert self.ours is not None, "the rewritten module was not compiled"
        return self.ours

    @property
    def sentence(self) -> str:
        """What is kept and why."""
        if not self.kept:
            return f"your own module is compiled: {self.against}"
        ours = self.rewritten
        untimed = self.alone.untimed or ours.untimed
        without = f"; step times are not compared: {untimed}" if self.step and untimed else ""
        known = self.step and self.alone.step_s is not None and ours.step_s is not None
        step = f"; its predicted step takes {_seconds(ours.step_s)}, not {_seconds(self.alone.step_s)}"
        step = step if known else ""
        return (f"the rewritten module is compiled: compared with XLA alone it {_gain(self.alone, ours)}"
                f"{step}{without}")

    def as_json(self) -> dict[str, object]:
        """The figures of both sides and the decision."""
        return {"devices": self.devices, "kept": "rewritten" if self.kept else "original", "reason": self.sentence,
                "partitioner": self.partitioner, "with_code": self.with_code, "xla_alone": self.alone.as_json(),
                "rewritten": self.ours.as_json() if self.ours else None,
                **({"xla_best": self.best.as_json()} if self.best else {})}

    def __str__(self) -> str:
        return self.text()

    def text(self, *, times: bool = False) -> str:
        """Both sides as a table, and what is kept.

        Args:
          times: also show XLA's wall-clock time, which differs from run to run.
        """
        how = "" if self.with_code or not times else " (XLA's times are up to the generation of code)"
        return "\n".join([*self.lines(times=times), f"{self.sentence}{how}"])

    def lines(self, *, times: bool = False) -> list[str]:
        """The table alone, line by line."""
        best = [(f"XLA, {self.best.name}", self.best.measured)] if self.best else []
        ours = [("rewritten", self.ours)] if self.ours else []
        sides = [("XLA alone", self.alone), *best, *ours]
        steps = any(side.step_s is not None for _, side in sides)
        rows = [[f"for {self.devices}", "calls", "executed", "temporaries", *(["step", "exposed"] if steps else []),
                 *(["XLA's time"] if times else [])]]
        rows += [[name, str(side.calls), format_bytes(side.bytes, 1), format_bytes(side.temp, 1),
                  *([_seconds(side.step_s), _seconds(side.exposed_s)] if steps else []),
                  *([f"{side.seconds:.2f} s"] if times else [])] for name, side in sides]
        left = [f"not compared: {each}" for each in self.best.left_out] if self.best else []
        large = [line for name, side in sides if (line := self._does_not_fit(name, side))]
        return [*table(rows, "<>>>>>>"), *left, *large]

    def _does_not_fit(self, name: str, side: Measured) -> str:
        """That one side takes more memory than a device has; empty where it does not, or XLA:CPU made it."""
        if side.memory <= side.capacity or not side.capacity or self.devices.endswith("CPU"):
            return ""
        of_side, of_device = told_apart(side.memory, side.capacity, format_bytes, 1)
        return f"{name} does not fit: {of_side} of arguments, results and temporaries, where a device has {of_device}"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_seconds(seconds)


def compared(alone: Measured, ours: Measured, devices: str, partitioner: str = "", limits: KeepLimits = KeepLimits(), *,
             with_code: bool = False, or_equal: bool = False) -> XlaComparison:
    """Decides between two modules.

    Args:
      alone: the user's own module under XLA alone.
      ours: the rewritten one.
      devices: what both are compiled for, in words.
      partitioner: whose partitioner the rewritten module went through.
      limits: how much more memory it may take.
      with_code: whether both were compiled to the end.
      or_equal: whether the rewritten module need not be better, because the passes changed something else than what it
        communicates.

    Returns:
      Both, with the decision: the rewritten module sends as many bytes at most, up to noise, stays within the limits,
      and sends less or makes fewer calls.

    Example:
      >>> before = Measured(8, 8000, 14000, 1000, 0.0, "")
      >>> compared(before, Measured(1, 1000, 1750, 1000, 0.0, ""), "8 x GPU").kept
      True
      >>> compared(before, Measured(8, 8000, 14000, 1000, 0.0, ""), "8 x GPU").against
      'XLA alone does as well'
    """
    return XlaComparison(devices, alone, ours, partitioner, _against(alone, ours, limits, or_equal), with_code,
                         limits.step)


def unbeaten(alone: Measured, devices: str, partitioner: str = "") -> XlaComparison:
    """The comparison with a rewritten module that need not be compiled, because it cannot be better.

    Args:
      alone: the user's own module under XLA alone.
      devices: what both are for, in words.
      partitioner: whose partitioner the rewritten module went through.

    Example:
      >>> unbeaten(Measured(1, 1000, 1750, 1000, 0.0, ""), "8 x GPU").sentence
      'your own module is compiled: XLA alone does as well'
    """
    return XlaComparison(devices, alone, None, partitioner, _AS_WELL, with_code=False)


def _against(alone: Measured, ours: Measured, limits: KeepLimits, or_equal: bool) -> str:
    if not (alone.trips_known and ours.trips_known) and alone.trips_known != ours.trips_known:
        return "how often its loops run is known on one side only, so bytes cannot be compared"
    if ours.wire > alone.wire * (1 + NOISE):
        of_ours, of_alone, where = _sent(alone, ours)
        return f"rewritten it would send {of_ours}{where}, and XLA alone sends {of_alone}"
    if too_much_memory(alone, ours, limits):
        of_ours, of_alone = told_apart(ours.temp, alone.temp, format_bytes, 1)
        return f"rewritten it would take {of_ours} of temporaries, and XLA alone takes {of_alone}"
    if longer_step(alone, ours, limits):
        of_ours, of_alone = told_apart(ours.step_s or 0.0, alone.step_s or 0.0, format_seconds, 3)
        return f"rewritten its step would take {of_ours}, and XLA alone's takes {of_alone}"
    or_equal = or_equal or alone.calls == ours.calls == 0  # nothing to save: the passes were about something else
    if not or_equal and not _better(alone, ours) and not (limits.step and _saves_time(alone, ours)):
        return _AS_WELL
    return ""


def _better(alone: Measured, ours: Measured) -> bool:
    """Whether something is gained: bytes on the wire, or calls for as many; memory where calls are split."""
    if ours.wire < alone.wire * (1 - NOISE) or ours.calls < alone.calls:
        return True
    return _split_for_memory(alone, ours)


def _split_for_memory(alone: Measured, ours: Measured) -> bool:
    """Whether calls are split, as sequence parallelism does, for temporaries that are smaller by more than the limits.
    """
    return ours.bytes > alone.bytes * (1 + NOISE) and _saves_memory(alone, ours)


def _saves_memory(alone: Measured, ours: Measured) -> bool:
    return ours.temp < min(alone.temp / MEMORY_FACTOR, alone.temp - MEMORY_SLACK)


def _saves_time(alone: Measured, ours: Measured) -> bool:
    return alone.step_s is not None and ours.step_s is not None and ours.step_s < alone.step_s * (1 - NOISE)


def too_much_memory(alone: Measured, ours: Measured, limits: KeepLimits = KeepLimits()) -> bool:
    """Whether temporaries grow beyond the limits."""
    return ours.temp > max(alone.temp * limits.memory_factor, alone.temp + limits.memory_slack)


def longer_step(alone: Measured, ours: Measured, limits: KeepLimits) -> bool:
    """Whether predicted steps are compared, both are known, and the rewritten one is longer by more than noise."""
    if not limits.step or alone.step_s is None or ours.step_s is None:
        return False
    return ours.step_s > alone.step_s * (1 + NOISE)


def _gain(alone: Measured, ours: Measured) -> str:
    if ours.wire < alone.wire * (1 - NOISE):
        of_ours, of_alone, where = _sent(alone, ours)
        return f"sends {of_ours}{where}, not {of_alone}, in {ours.calls} calls, not {alone.calls}"
    where = _sent(alone, ours)[2]
    if ours.calls < alone.calls:
        return f"sends as much{where} in {ours.calls} calls, not {alone.calls}"
    if ours.calls == alone.calls:
        return f"sends as much{where} in as many calls"
    if not _saves_memory(alone, ours):
        return f"sends as much{where} in {ours.calls} calls, not {alone.calls}"
    of_ours, of_alone = told_apart(ours.temp, alone.temp, format_bytes, 1)
    return f"sends as much{where}, and takes {of_ours} of temporaries, not {of_alone}"


def _sent(alone: Measured, ours: Measured) -> tuple[str, str, str]:
    """What both send, in words, and where: payloads; bytes on the wire where the two do not compare alike."""
    alike = abs(ours.bytes * alone.wire - ours.wire * alone.bytes) <= NOISE * alone.bytes * alone.wire
    one, other = (ours.bytes, alone.bytes) if alike else (ours.wire, alone.wire)
    return *told_apart(one, other, format_bytes, 1), "" if alike else " on the wire"
