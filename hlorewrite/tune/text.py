"""A tuned step for people: every choice as text, the line of Python for each, and the frontier as a picture."""

from typing import Any

from hlorewrite.cost.training.plots import draw_times
from hlorewrite.errors import HlorewriteError
from hlorewrite.page.decision import CHOSEN, NOT_BETTER, NOT_COMPARED
from hlorewrite.page.run_page import PageSection, PageTable
from hlorewrite.tune.choice import NEAR, TunedStep, TunePoint
from hlorewrite.util.sizes import format_bytes, format_seconds, step_saving
from hlorewrite.util.tables import table

# ---- as text

# A tuned step as text: every choice that was tried, the frontier, and the line of Python for each of its points.


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
        lines.append(f"time ran out before {tuned.left_out} more were tried; "
                     "with a cache, the same command continues with them")
    if not tuned.frontier:
        return "\n".join([*lines, _nothing(tuned)])
    lines += [beside] if (beside := beside_auto(tuned)) else []
    return "\n".join([*lines, "", *(f"{p.name}: {p.choice.python(target)}" for p in tuned.frontier)])


def beside_auto(tuned: TunedStep) -> str:
    """Whether the fastest choice is what ``auto`` compiles; empty if either is not known.

    Example:
      >>> from hlorewrite.tune.choice import TuneChoice
      >>> alone, auto, more = (
      ...     TunePoint(TuneChoice(*parts), step_s=seconds, memory_bytes=1, digest=str(seconds), way=way)
      ...     for parts, seconds, way in ((("",), 3.0, ""), (("auto", "better"), 2.0, "time"), (("comm",), 1.0, "")))
      >>> beside_auto(TunedStep((alone, auto)))
      'optimize and exec compile the fastest one by default'
      >>> beside_auto(TunedStep((alone, auto, more)))
      'optimize and exec compile "time" by default; its step is 100.0% longer, because they do not try "comm"'
    """
    best, auto = tuned.best, tuned.auto
    if best is None or auto is None or best.step_s is None or auto.step_s is None:
        return ""
    longer = auto.step_s / best.step_s - 1
    if best == auto or longer <= NEAR or (best.digest == auto.digest and not best.choice.flags):
        return "optimize and exec compile the fastest one by default"
    return (f'optimize and exec compile "{auto.way}" by default; its step is {longer:.1%} longer, because they do not '
            f'try "{best.name}"')


def as_json(tuned: TunedStep, target: str) -> dict[str, Any]:
    """The same for programs."""
    best = tuned.best
    return {"target": target, "devices": target, "memory": tuned.memory, "left_out": tuned.left_out,
            "chosen": None if best is None else best.way or best.choice.name, "saving": _saving(tuned),
            "reason": beside_auto(tuned) if tuned.frontier else _nothing(tuned),
            "rows": [_row_data(point, tuned) for point in tuned.points],
            "points": [point.as_json() for point in tuned.points],
            "frontier": [{**point.as_json(), "python": point.choice.python(target)} for point in tuned.frontier]}


def tuned_section(tuned: TunedStep, target: str, name: str) -> PageSection:
    """The section of the page: the fastest choice, all others, and the Python line of each that pays.

    Args:
      tuned: what a search found.
      target: what for.
      name: the name of the module.
    """
    found = as_json(tuned, target)
    code = PageTable("The fastest choice, and those that take less memory, in Python", ("choice", "Python"),
                     [(point.name, point.choice.python(target)) for point in tuned.frontier], folded=False)
    return PageSection(name, found["saving"] or found["reason"], found, said=found["reason"], tables=(code,))


def _saving(tuned: TunedStep) -> str:
    """What the fastest choice saves compared with XLA alone, which is tried first; empty if that is the fastest."""
    best, alone = tuned.best, tuned.points[0] if tuned.points else None
    if best is None or alone is None or best == alone or best.step_s is None or alone.step_s is None:
        return ""
    return step_saving(best.step_s, alone.step_s, alone.name)


def _nothing(tuned: TunedStep) -> str:
    """Why there is no fastest choice."""
    return "no choice fits" if any(point.step_s is not None for point in tuned.points) else "no choice was measured"


def _row_data(point: TunePoint, tuned: TunedStep) -> dict[str, Any]:
    """A choice under the keys of ``hlorewrite opt --json``."""
    known, memory = point.step_s is not None, tuned.memory
    verdict, why = _verdict(point, tuned)
    return {"name": point.name, "step_s": point.step_s, "exposed_s": point.exposed_s,
            "executed_bytes": point.executed_bytes if known else None,
            "memory_bytes": point.memory_bytes if known else None, "room_bytes": memory,
            "fits": known and (memory is None or point.memory_bytes <= memory), "verdict": verdict, "why": why}


def _verdict(point: TunePoint, tuned: TunedStep) -> tuple[str, str]:
    """What is said about a choice: the word, and the sentence."""
    if point == tuned.best:
        return CHOSEN, ""
    if point.step_s is None or point not in _distinct(tuned):
        return NOT_COMPARED, point.failed or "it compiles to the same program as another choice"
    if tuned.memory is not None and point.memory_bytes > tuned.memory:
        return NOT_BETTER, "it takes more memory than there is"
    if point in tuned.frontier:
        return NOT_BETTER, "slower, in less memory"
    return NOT_BETTER, f"no better than {tuned.best.name}" if tuned.best else ""


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


# ---- as a picture, which needs the ``viz`` extra

# The frontier of a tuned step as a picture. Needs the ``viz`` extra.


_MOST_NAME = 40


def draw_tuned(tuned: TunedStep, target: str) -> Any:
    """Predicted step time over memory of all choices, and the frontier.

    Args:
      tuned: what a search found.
      target: what for.

    Returns:
      The figure.

    Raises:
      HlorewriteError: no choice has a predicted time, or matplotlib is missing.
    """
    timed = [_spot(point) for point in tuned.points if point.step_s is not None]
    if not timed:
        raise HlorewriteError("nothing to draw: no choice has a predicted step time")
    return draw_times(timed, [(_spot(point), point.choice.name[:_MOST_NAME]) for point in tuned.frontier], of="choice",
                      ylabel="predicted step, ms", title=f"for {target}")


def _spot(point: TunePoint) -> tuple[float, float]:
    return point.memory_bytes / 2**30, (point.step_s or 0.0) * 1e3
