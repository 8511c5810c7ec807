"""Compares XLA alone with the other ways to compile a step: a table, and a message about what is compiled and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from hlorewrite.cost.cluster.capacity import usable_bytes
from hlorewrite.hlo.published_flags import PROFILE, users_flags
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline import judge
from hlorewrite.jaxbridge.baseline.baseline_run import BestOfXla, best_of_xla
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.xla.compile_for import place_of, rewritten_flags
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.page.decision import CHOSEN, NOT_BETTER, NOT_COMPARED
from hlorewrite.util.sizes import format_bytes, format_seconds, part_of, step_saving, told_apart
from hlorewrite.util.tables import table


@dataclass(frozen=True)
class WayRow:
    """A way to compile a step, and its outcome.

    Attributes:
      name: the name of the way; those of the user's own module begin with ``XLA``.
      measured: XLA's compilation of it; None if it was not compiled.
      why: why it is not better than XLA alone, or was not compiled; empty if it is better.
      cpu_s: CPU time of its passes and of the thread that compiles it; XLA starts more threads, which are not counted.
      flags: XLA options of the way, without dashes.
    """

    name: str
    measured: Measured | None
    why: str = ""
    cpu_s: float = 0.0
    flags: tuple[tuple[str, str | bool | int], ...] = ()

    @property
    def shown_flags(self) -> dict[str, str | bool | int]:
        """The XLA options, with the name of a profile's file instead of its path."""
        return {name: PurePath(str(value)).name if name == PROFILE else value for name, value in self.flags}

    def as_json(self, chosen: str) -> dict[str, object]:
        """The keys that ``opt --json`` and ``tune --json`` print for each way.

        Args:
          chosen: the name of the way that is compiled.
        """
        made = self.measured
        known = {} if made is None else {
            "step_s": made.step_s, "exposed_s": made.exposed_s, "wire_bytes": made.wire, "executed_bytes": made.bytes,
            "calls": made.calls, "temp_bytes": made.temp, "memory_bytes": made.memory,
            "room_bytes": usable_bytes(made.capacity) or None, "fits": judge.fits(made)}
        empty = dict.fromkeys(("step_s", "exposed_s", "wire_bytes", "executed_bytes", "calls", "temp_bytes",
                               "memory_bytes", "room_bytes", "fits"))
        verdict = CHOSEN if self.name == chosen else NOT_COMPARED if made is None else NOT_BETTER
        why = self.why or (f"no better than {chosen}" if verdict == NOT_BETTER else "")
        return {"name": self.name, **empty, **known, "cpu_s": round(self.cpu_s, 3), "verdict": verdict, "why": why,
                "xla_options": self.shown_flags}


@dataclass(frozen=True)
class XlaComparison:
    """XLA alone compared with another way to compile the step.

    Attributes:
      devices: what both are compiled for, such as ``8 x NVIDIA H200``.
      alone: the user's own module under XLA alone.
      ours: the other way; None if it was not compiled because it cannot be better.
      partitioner: the platform whose partitioner the rewritten module went through, ``gpu`` or ``cpu``; empty for
        manual modules.
      against: why the other way is not taken; empty when it is.
      with_code: whether both were compiled to the end.
      best: XLA alone with published flags, if requested.
      name: the name of the other way.
      tried: all ways that were tried, XLA alone first; empty if there were only the two.
    """

    devices: str
    alone: Measured
    ours: Measured | None
    partitioner: str
    against: str
    with_code: bool
    best: BestOfXla | None = None
    name: str = judge.REWRITTEN
    tried: tuple[WayRow, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the rewritten module is run."""
        return not self.against and not self.name.startswith(judge.ALONE)

    @property
    def chosen(self) -> str:
        """The name of the way that is compiled."""
        return judge.ALONE if self.against else self.name

    @property
    def rows(self) -> tuple[WayRow, ...]:
        """All ways with their figures, XLA alone first."""
        if self.tried:
            return self.tried
        ours = [] if self.ours is None else [WayRow(self.name, self.ours, self.against, self.ours.cpu_s)]
        return (WayRow(judge.ALONE, self.alone, "", self.alone.cpu_s), *ours)

    @property
    def compiled(self) -> Measured:
        """XLA's compilation of the way that is chosen."""
        return self.alone if self.against else self.rewritten

    @property
    def options(self) -> Flags:
        """XLA options of the way that is compiled, beyond the user's."""
        return next((dict(row.flags) for row in self.rows if row.name == self.chosen), {})

    @property
    def rewritten(self) -> Measured:
        """The other way, which must have been compiled."""
        assert self.ours is not None, "the rewritten module was not compiled"
        return self.ours

    @property
    def sentence(self) -> str:
        """What is compiled and why."""
        large = "" if judge.fits(self.alone) is not False else f"; {judge.ALONE} does not fit: {of_room(self.alone)}"
        if self.against:
            return f"your own module is compiled: {self.against}{large}"
        ours, alone = self.rewritten, self.alone
        if not judge.comparable(alone, ours):
            untimed = self.alone.untimed or ours.untimed
            without = f"; step times are not compared: {untimed}" if untimed else ""
            return f"the rewritten module is compiled: compared with XLA alone it {gain_of(alone, ours)}{without}"
        steps = told_apart(ours.counted_s or 0.0, alone.counted_s or 0.0, format_seconds, 3)
        step = f"{steps[0]}, not {steps[1]} on {self.devices}" if judge.shorter(alone, ours) else \
            f"{steps[0]} on {self.devices}, as {judge.ALONE} takes; it {gain_of(alone, ours)}"
        room = f"; fits ({of_room(ours)})" if judge.fits(ours) else ""
        return f"{self.name} is compiled: {step}; {_temporaries(alone, ours)}{room}{large}"

    @property
    def saving(self) -> str:
        """What the chosen way saves compared with XLA alone; empty if XLA alone is chosen.

        Example:
          >>> before, after = Measured(8, 8000, 14000, 0, 0.0, ""), Measured(1, 1000, 1750, 0, 0.0, "")
          >>> compared(before, after, "8 x GPU").saving
          'Sends 1000 B, not 7.8 KiB, in 1 call, not 8'
        """
        if self.against:
            return ""
        ours, alone = self.rewritten, self.alone
        if judge.comparable(alone, ours) and judge.shorter(alone, ours) and ours.counted_s and alone.counted_s:
            return step_saving(ours.counted_s, alone.counted_s, judge.ALONE)
        gain = gain_of(alone, ours)
        return f"{gain[:1].upper()}{gain[1:]}"

    def as_json(self) -> dict[str, object]:
        """The figures of all ways and the decision."""
        return {"devices": self.devices, "kept": "rewritten" if self.kept else "original", "chosen": self.chosen,
                "saving": self.saving, "reason": self.sentence, "partitioner": self.partitioner,
                "with_code": self.with_code,
                "xla_alone": self.alone.as_json(), "rewritten": self.ours.as_json() if self.ours else None,
                "rows": [row.as_json(self.chosen) for row in self.rows],
                **({"xla_best": self.best.as_json()} if self.best else {})}

    def __str__(self) -> str:
        return self.text()

    def text(self, *, times: bool = False) -> str:
        """All ways as a table, and what is compiled.

        Args:
          times: also show XLA's wall-clock time, which differs from run to run.
        """
        how = "" if self.with_code or not times else " (XLA's times are up to code generation)"
        return "\n".join([*self.lines(times=times), f"{self.sentence}{how}"])

    def lines(self, *, times: bool = False) -> list[str]:
        """The table alone, line by line."""
        sides = [("rewritten" if row.name == judge.REWRITTEN else row.name, row.measured) for row in self.rows
                 if row.measured is not None]
        sides[1:1] = [(f"XLA, {self.best.name}", self.best.measured)] if self.best else []
        steps = any(side.step_s is not None for _, side in sides)
        rows = [[f"for {self.devices}", "calls", "executed", "temporaries", *(["step", "exposed"] if steps else []),
                 *(["XLA's time"] if times else [])]]
        rows += [[name, str(side.calls), format_bytes(side.bytes, 1), format_bytes(side.temp, 1),
                  *([_seconds(side.step_s), _seconds(side.exposed_s)] if steps else []),
                  *([f"{side.seconds:.2f} s"] if times else [])] for name, side in sides]
        left = [f"not compared: {each}" for each in self.best.left_out] if self.best else []
        large = [f"{name} does not fit: {of_room(side)}" for name, side in sides if judge.fits(side) is False]
        return [*table(rows, "<>>>>>>"), *left, *large]


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_seconds(seconds)


def compared(alone: Measured, ours: Measured, devices: str, partitioner: str = "", *, budget: int | None = None,
             with_code: bool = False, or_equal: bool = False) -> XlaComparison:
    """Decides between XLA alone and a rewritten module.

    Args:
      alone: the user's own module under XLA alone.
      ours: the rewritten one.
      devices: the devices that both are compiled for, in words.
      partitioner: whose partitioner the rewritten module went through.
      budget: bytes of temporaries that the user allows; None without a budget.
      with_code: whether both were compiled to the end.
      or_equal: whether the rewritten module need not be better, because the passes changed more than its communication.

    Returns:
      Both, with the decision.

    Example:
      >>> before = Measured(8, 8000, 14000, 1000, 0.0, "")
      >>> compared(before, Measured(1, 1000, 1750, 1000, 0.0, ""), "8 x GPU").kept
      True
      >>> compared(before, Measured(8, 8000, 14000, 1000, 0.0, ""), "8 x GPU").against
      'XLA alone does as well'
    """
    return XlaComparison(devices, alone, ours, partitioner, judge.why_not(alone, ours, budget, or_equal), with_code)


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
    return XlaComparison(devices, alone, None, partitioner, judge.AS_WELL, with_code=False)


# ---- sentences


def of_room(made: Measured) -> str:
    return part_of(made.memory, usable_bytes(made.capacity))


def _temporaries(alone: Measured, ours: Measured) -> str:
    of_ours, of_alone = told_apart(ours.temp, alone.temp, format_bytes, 1)
    return f"{of_ours} of temporaries" + ("" if of_ours == of_alone else f", not {of_alone}")


def gain_of(alone: Measured, ours: Measured) -> str:
    calls = "in as many calls" if ours.calls == alone.calls else \
        f"in {ours.calls} call{'' if ours.calls == 1 else 's'}, not {alone.calls}"
    if ours.wire < alone.wire * (1 - judge.NOISE):
        of_ours, of_alone, where = judge.sent_by(alone, ours)
        return f"sends {of_ours}{where}, not {of_alone}, {calls}"
    where = judge.sent_by(alone, ours)[2]
    if ours.calls < alone.calls:
        return f"sends as much{where} {calls}"
    if ours.calls == alone.calls:
        return f"sends as much{where} in as many calls"
    if not judge.saves_memory(alone, ours):
        return f"sends as much{where} {calls}"
    of_ours, of_alone = told_apart(ours.temp, alone.temp, format_bytes, 1)
    return f"sends as much{where}, and takes {of_ours} of temporaries, not {of_alone}"


# ---- compares two modules for a named target: the rewritten one, and the original under XLA alone


def compared_modules(original: Module, rewritten: Module, target: str, *, budget: int | None = None, best: bool = False
                     ) -> XlaComparison | None:
    """Compiles both up to code generation.

    Args:
      original: the original module; it is not changed.
      rewritten: what the passes made of it; it is not changed.
      target: what for, such as ``h200:1x8``.
      budget: bytes of temporaries that the user allows; None without a budget.
      best: also compile the original with published sets of XLA flags, and show the shortest step.

    Returns:
      Both, with the decision; None if they are equal, or run on one device.

    Raises:
      UsageError: no such target, or it has other devices than the modules.
      InputError: XLA refuses one of them.
    """
    if for_spmd(original).devices == 1 or original.text() == rewritten.text():
        return None
    place = place_of(parse_target(target), original)

    def measure(module: Module, flags: Flags) -> Measured:
        return timed(scheduled(module, place, flags)[0], place.topology)

    alone, ours = measure(original, {}), measure(rewritten, rewritten_flags(rewritten, place))
    made = compared(alone, ours, target, budget=budget)
    if not best:
        return made
    return replace(made, best=best_alone(original, place, alone))


def best_alone(module: Module, place: DeviceSet, alone: Measured) -> BestOfXla:
    """XLA alone under the published flags that make its step the shortest; each set is compiled up to code generation.

    Args:
      module: the user's module; it is not changed.
      place: the target.
      alone: XLA's compilation of it by default.
    """
    return best_of_xla(alone, lambda flags: timed(scheduled(module, place, flags)[0], place.topology),
                       flags_given(place))


def flags_given(place: DeviceSet) -> dict[str, object]:
    """XLA flags that no set overrides: those of the devices, and the user's own in the environment."""
    return {**users_flags(), **place.flags}


def compiled_modules(original: Module, rewritten: Module, target: str, xla_flags: Mapping[str, str | bool | int], *,
                     protect: bool, best: bool = False) -> XlaComparison:
    """Compiles both to the end.

    Args:
      original: the original module; it is not changed.
      rewritten: what the passes made of it; it is not changed.
      target: what for, such as ``h200:1x8``.
      xla_flags: XLA flags for both, without dashes.
      protect: compile the rewritten one without the XLA pass that miscompiles on GPU.
      best: also compile the original with published sets of XLA flags, and show the shortest step.

    Returns:
      Both, with the decision.

    Raises:
      UsageError: no such target, or it has other devices than the modules.
      InputError: XLA refuses one of them.
    """
    place = place_of(parse_target(target), original)
    flags = rewritten_flags(rewritten, place) if protect else {}

    def measure(module: Module, more: Flags, *, code: bool = True) -> Measured:
        every = {**xla_flags, **more}
        made = compiled(module, place, every) if code else scheduled(module, place, every)[0]
        return timed(made, place.topology)

    alone = measure(original, {})
    made = compared(alone, measure(rewritten, flags), target, with_code=True)
    if not best:
        return made
    found = best_of_xla(alone, lambda more: measure(original, more, code=False), {**flags_given(place), **xla_flags})
    return replace(made, best=replace(found, measured=measure(original, found.flags) if found.flags else alone))
