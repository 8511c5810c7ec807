"""Judges whether a way to compile a step is better than XLA alone, and which of several ways is the best.

The objective is the predicted step on the cluster, with the documented slowdown of compute during a collective. The
constraint is the memory of one device, less a reserve; a budget narrows it. Bytes on the wire, calls and temporaries
decide between steps that are equal within noise, and where no time is known, as on CPU. Every surface asks this file.
"""

from collections.abc import Sequence

from hlorewrite.cost.cluster.capacity import usable_bytes
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.tune.choice import NEAR
from hlorewrite.util.sizes import format_bytes, format_seconds, told_apart

NOISE = 0.001
"""Bytes on the wire that differ by a smaller share count as equal."""
STEP_NOISE = NEAR
"""Predicted steps that differ by a smaller share count as equal: schedules of one program differ by that much."""
MEMORY_FACTOR = 1.02
"""How far temporaries may grow if the memory of a device is not known: XLA packs buffers of equal sizes differently
from schedule to schedule."""
MEMORY_SLACK = 64 * 1024
"""Bytes by which temporaries may always grow: less than one buffer of a step worth rewriting."""
ALONE = "XLA alone"
REWRITTEN = "the rewritten module"
"""The name of the other way when there is only one."""
AS_WELL = "XLA alone does as well"


# ---- the decision


def why_not(alone: Measured, ours: Measured, budget: int | None = None, or_equal: bool = False,
            name: str = REWRITTEN) -> str:
    """Why a way is not better than XLA alone.

    Args:
      alone: the user's own module under XLA alone.
      ours: the way.
      budget: bytes of temporaries that the user allows; None without a budget.
      or_equal: whether it need not be better, because the passes changed more than its communication.
      name: the name of the way, for the sentence.

    Returns:
      A sentence; empty if the way is better: it fits, and its predicted step is shorter by more than noise with the
      documented slowdown and not longer without any; or, where steps are equal or not known, it sends no more bytes,
      and fewer bytes, calls or temporaries.

    Example:
      >>> slow, fast = (Measured(8, 800, 800, 0, 0.0, "", counted_s=s, plain_s=s) for s in (2.0, 1.0))
      >>> why_not(slow, fast), why_not(fast, slow, name="time")
      ('', 'time would take 2 s, and XLA alone takes 1 s')
    """
    if not (alone.trips_known and ours.trips_known) and alone.trips_known != ours.trips_known:
        return "the trip counts of its loops are known on only one side, so bytes cannot be compared"
    large = too_large(alone, ours, budget, name)
    if large:
        return large
    if comparable(alone, ours):
        if shorter(alone, ours):
            slowed = (ours.plain_s or 0.0) > (alone.plain_s or 0.0)
            return f"{name} is shorter only while collectives slow compute down" if slowed else ""
        if shorter(ours, alone):
            of_ours, of_alone = told_apart(ours.counted_s or 0.0, alone.counted_s or 0.0, format_seconds, 3)
            return f"{name} would take {of_ours}, and {ALONE} takes {of_alone}"
    return _why_not_by_bytes(alone, ours, budget, or_equal, name)


def best_of(alone: Measured, tried: Sequence[tuple[str, Measured]], budget: int | None = None) -> int | None:
    """The one of several ways that is compiled.

    Args:
      alone: the user's own module under XLA alone.
      tried: names and figures of ways, in order of preference among equals.
      budget: bytes of temporaries that the user allows.

    Returns:
      The index of the best way; None if that is XLA alone.

    Example:
      >>> ways = [Measured(8, 800, 800, 0, 0.0, "", counted_s=s, plain_s=s) for s in (2.0, 1.5, 1.499)]
      >>> best_of(ways[0], [("a", ways[1]), ("b", ways[2])]), best_of(ways[2], [("a", ways[0])])
      (0, None)
    """
    good = [number for number, (name, made) in enumerate(tried) if not why_not(alone, made, budget, name=name)]
    if not good:
        return None
    if all(comparable(alone, tried[number][1]) for number in good):
        least = min(tried[number][1].counted_s or 0.0 for number in good)
        return next(n for n in good if (tried[n][1].counted_s or 0.0) <= least * (1 + STEP_NOISE))
    return min(good, key=lambda n: (tried[n][1].wire, tried[n][1].calls, tried[n][1].temp))


def comparable(alone: Measured, ours: Measured) -> bool:
    """Whether predicted steps decide: both are known, except for parts that are the same in both."""
    return alone.counted_s is not None and ours.counted_s is not None and alone.unknown == ours.unknown


def shorter(alone: Measured, ours: Measured) -> bool:
    """Whether a predicted step is shorter than another one by more than noise."""
    return (ours.counted_s or 0.0) < (alone.counted_s or 0.0) * (1 - STEP_NOISE)


# ---- memory


def room_of(alone: Measured, budget: int | None) -> int | None:
    """Bytes of a device that a way may take for arguments, results and temporaries.

    A step that does not fit as the user wrote it may not grow.

    Args:
      alone: the user's own module under XLA alone.
      budget: bytes by which temporaries may grow; None without a budget.

    Returns:
      The bytes; None if the memory of the devices is not known.

    Example:
      >>> alone = Measured(8, 800, 800, 0, 0.0, "", memory=500, capacity=1000)
      >>> room_of(alone, None), room_of(alone, 100), room_of(alone, 0)
      (900, 600, 500)
    """
    if not alone.capacity:
        return None
    most = usable_bytes(alone.capacity)
    return max(alone.memory, most if budget is None else min(most, alone.memory + budget))


def too_large(alone: Measured, ours: Measured, budget: int | None = None, name: str = REWRITTEN) -> str:
    """Why a way takes too much memory; empty if it does not. Arguments as for ``why_not``."""
    room = room_of(alone, budget)
    if room is None:
        return _larger_temporaries(alone, ours, budget, name)
    if ours.memory <= room or (fits(ours) and not _grows(alone, ours)):
        return ""
    of_ours, of_room = told_apart(ours.memory, room, format_bytes, 1)
    limit = (f"{ALONE}, which does not fit either, takes {of_room}" if not fits(alone) else
             f"a device has {of_room} for a step" if room == usable_bytes(alone.capacity) else
             f"the memory budget allows {of_room}")
    return f"{name} would take {of_ours} of memory, and {limit}"


def _larger_temporaries(alone: Measured, ours: Measured, budget: int | None, name: str) -> str:
    if not _grows(alone, ours, budget or 0):
        return ""
    of_ours, of_alone = told_apart(ours.temp, alone.temp, format_bytes, 1)
    return f"{name} would take {of_ours} of temporaries, and {ALONE} takes {of_alone}"


def _grows(alone: Measured, ours: Measured, budget: int = 0) -> bool:
    """Whether temporaries grow by more than a different packing of buffers explains, plus the budget."""
    return ours.temp > max(alone.temp * MEMORY_FACTOR, alone.temp + MEMORY_SLACK) + budget


def fits(made: Measured) -> bool | None:
    """Whether a step fits into the usable memory of a device; None if the capacity is not known."""
    return made.memory <= usable_bytes(made.capacity) if made.capacity else None


# ---- bytes, calls and temporaries


def _why_not_by_bytes(alone: Measured, ours: Measured, budget: int | None, or_equal: bool, name: str) -> str:
    if ours.wire > alone.wire * (1 + NOISE):
        of_ours, of_alone, where = sent_by(alone, ours)
        return f"{name} would send {of_ours}{where}, and {ALONE} sends {of_alone}"
    if large := _larger_temporaries(alone, ours, budget, name):
        return large
    or_equal = or_equal or alone.calls == ours.calls == 0  # no communication to save: the passes do something else
    return "" if or_equal or _better(alone, ours) else AS_WELL


def _better(alone: Measured, ours: Measured) -> bool:
    """Whether the way saves bytes on the wire or calls, or memory if it splits calls."""
    if ours.wire < alone.wire * (1 - NOISE) or ours.calls < alone.calls:
        return True
    split = ours.bytes > alone.bytes * (1 + NOISE)  # as sequence parallelism does
    return split and saves_memory(alone, ours)


def saves_memory(alone: Measured, ours: Measured) -> bool:
    """Whether temporaries shrink by more than a different packing of buffers explains."""
    return ours.temp < min(alone.temp / MEMORY_FACTOR, alone.temp - MEMORY_SLACK)


def sent_by(alone: Measured, ours: Measured) -> tuple[str, str, str]:
    """The bytes of both, in words: payloads, or bytes on the wire if the ratio of those differs."""
    alike = abs(ours.bytes * alone.wire - ours.wire * alone.bytes) <= NOISE * alone.bytes * alone.wire
    one, other = (ours.bytes, alone.bytes) if alike else (ours.wire, alone.wire)
    return *told_apart(one, other, format_bytes, 1), "" if alike else " on the wire"
