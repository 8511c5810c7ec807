"""A tuned step as text: every choice that was tried, the frontier, and the line of Python for each of its points."""

from typing import Any

from hlorewrite.tune.choice import NEAR, TunedStep, TunePoint
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table


def tuned_text(tuned: TunedStep, target: str) -> str:
    """The tables.

    Args:
      tuned: what a search found.
      target: what for.

    Example:
      >>> from hlorewrite.tune.choice import TuneChoice
      >>> point = TunePoint(TuneChoice(""), step_s=0.5, exposed_s=0.1, executed_bytes=2048, memory_bytes=4096)
      >>> print(tuned_text(TunedStep((point,)), "h200:1x8"))
      for h200:1x8  predicted step ms  exposed ms  executed KiB  memory KiB  compile
      * XLA alone                 500         100           2.0         4.0        -
      * no other choice is faster in as little memory
      <BLANKLINE>
      XLA alone: step = jax.jit(step)
    """
    rows = [[f"for {target}", "predicted step", "exposed", "executed", "memory", "compile"]]
    shown = _distinct(tuned)
    rows += [_row(point, point in tuned.frontier) for point in shown]
    lines = [*table(rows, "<>>>>>"), "* no other choice is faster in as little memory"] if shown else []
    if len(shown) < len(tuned.points):
        lines.append(f"{len(tuned.points) - len(shown)} more choices compile to the same program as one of these")
    if tuned.memory is not None:
        too_large = sum(p.step_s is not None and p.memory_bytes > tuned.memory for p in tuned.points)
        lines += [f"{too_large} of them take more than {format_bytes(tuned.memory, 1)}"] if too_large else []
    if tuned.left_out:
        lines.append(f"the time was over before {tuned.left_out} more were tried; "
                     "with a cache, the same command continues with them")
    if not tuned.frontier:
        measured = any(point.step_s is not None for point in tuned.points)
        return "\n".join([*lines, "no choice fits" if measured else "no choice was measured"])
    lines += [beside] if (beside := beside_auto(tuned)) else []
    return "\n".join([*lines, "", *(f"{p.name}: {p.choice.python(target)}" for p in tuned.frontier)])


def beside_auto(tuned: TunedStep) -> str:
    """Whether the fastest choice is what ``auto`` compiles; empty where either is not known.

    Example:
      >>> from hlorewrite.tune.choice import TuneChoice
      >>> alone, auto, more = (
      ...     TunePoint(TuneChoice(*parts), step_s=seconds, memory_bytes=1, digest=str(seconds), way=way)
      ...     for parts, seconds, way in ((("",), 3.0, ""), (("auto", "better"), 2.0, "time"), (("comm",), 1.0, "")))
      >>> beside_auto(TunedStep((alone, auto)))
      'optimize and exec compile the fastest one by default'
      >>> beside_auto(TunedStep((alone, auto, more)))
      'optimize and exec compile "time" by default, whose step is 100.0% longer: they do not try "comm"'
    """
    best, auto = tuned.best, tuned.auto
    if best is None or auto is None or best.step_s is None or auto.step_s is None:
        return ""
    longer = auto.step_s / best.step_s - 1
    if best == auto or longer <= NEAR or (best.digest == auto.digest and not best.choice.flags):
        return "optimize and exec compile the fastest one by default"
    return (f'optimize and exec compile "{auto.way}" by default, whose step is {longer:.1%} longer: they do not try '
            f'"{best.name}"')


def as_json(tuned: TunedStep, target: str) -> dict[str, Any]:
    """The same for programs."""
    best = tuned.best
    return {"target": target, "memory": tuned.memory, "left_out": tuned.left_out,
            "chosen": None if best is None else best.way or best.choice.name, "reason": beside_auto(tuned),
            "rows": [_row_data(point, tuned.memory) for point in tuned.points],
            "points": [point.as_json() for point in tuned.points],
            "frontier": [{**point.as_json(), "python": point.choice.python(target)} for point in tuned.frontier]}


def _row_data(point: TunePoint, memory: int | None) -> dict[str, Any]:
    """A choice under the keys of ``hlorewrite opt --json``."""
    known = point.step_s is not None
    return {"name": point.name, "step_s": point.step_s, "exposed_s": point.exposed_s,
            "executed_bytes": point.executed_bytes if known else None,
            "memory_bytes": point.memory_bytes if known else None,
            "fits": known and (memory is None or point.memory_bytes <= memory), "why": point.failed}


def _distinct(tuned: TunedStep) -> list[TunePoint]:
    """One point of those with equal modules and flags, and all that failed."""
    kept: dict[object, TunePoint] = {}
    for point in (*tuned.frontier, *tuned.points):
        kept.setdefault(point.choice if point.failed else (point.digest, point.choice.flags), point)
    return [point for point in tuned.points if point in kept.values()]


def _row(point: TunePoint, best: bool) -> list[str]:
    name = f"{'*' if best else ' '} {point.name}"
    if point.failed:
        return [name, point.failed]
    return [name, _seconds(point.step_s), _seconds(point.exposed_s), format_bytes(point.executed_bytes, 1),
            format_bytes(point.memory_bytes, 1), "-" if point.compile_s is None else f"{point.compile_s:.1f} s"]


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_seconds(seconds)
