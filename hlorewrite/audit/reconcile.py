"""Compares predicted times with measured ones, collective by collective, and names what has no counterpart.

A profile that says which HLO instruction a kernel belongs to is matched by name. A trace is matched by order: kernels
of one kind on one device, in the order of the schedule, step after step. A sum over all kernels of a name is matched by
kind alone. If the numbers of runs do not fit, nothing is matched, and a note says so.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlorewrite.audit.profile import ProfiledKernel, nccl_kinds
from hlorewrite.ir.collectives import BY_KIND
from hlorewrite.timeline.program import OpCode, StreamProgram
from hlorewrite.timeline.result import CollectiveExposure, StepTimeline

_MOST_RUNS = 1_000_000
_MOST_NAMED = 4


@dataclass(frozen=True)
class ReconciledTime:
    """Collectives with both times.

    Attributes:
      collectives: instructions of the schedule; several where the profile does not distinguish them.
      kind: the kind of the collectives.
      source: the user's line, of the first of several.
      calls: how often they run in a step on one device.
      runs: how often their kernels run in the profile.
      predicted_s: one call, on average.
      measured_s: the same.
    """

    collectives: tuple[str, ...]
    kind: str
    source: str
    calls: int
    runs: int
    predicted_s: float
    measured_s: float

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"collectives": list(self.collectives), "kind": self.kind, "source": self.source, "calls": self.calls,
                "runs": self.runs, "predicted_s": self.predicted_s, "measured_s": self.measured_s}


@dataclass(frozen=True)
class ReconciledProfile:
    """A profile next to a schedule.

    Attributes:
      matched: what has both times.
      how: what kernels were matched by: ``instruction``, ``order`` or ``kind``.
      runs_per_call: steps times devices in the profile; None if kinds disagree.
      compute_s: predicted, of a step.
      measured_compute_s: the same, measured; None without ``runs_per_call``, or without such kernels.
      unmatched: messages about kernels and collectives without a partner.
    """

    matched: tuple[ReconciledTime, ...]
    how: str
    runs_per_call: int | None
    compute_s: float
    measured_compute_s: float | None
    unmatched: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"how": self.how, "runs_per_call": self.runs_per_call, "compute_s": self.compute_s,
                "measured_compute_s": self.measured_compute_s, "matched": [each.as_json() for each in self.matched],
                "unmatched": list(self.unmatched)}


def reconcile(kernels: Sequence[ProfiledKernel], step: StepTimeline, program: StreamProgram) -> ReconciledProfile:
    """Matches the kernels of a profile with the collectives of a schedule.

    Args:
      kernels: the kernels of the profile, of any number of steps and devices.
      step: the simulated schedule.
      program: what it runs.

    Returns:
      Both times of all that could be matched, and messages about the rest.
    """
    collectives = _by_launch([one for one in step.collectives if one.kind in BY_KIND])
    communication = [each for each in kernels if nccl_kinds(each.name)]
    said = [f"{one.name} ({one.source}) is in a loop with an unknown trip count" for one in collectives
            if one.trips is None]
    counted = [one for one in collectives if one.trips]
    if any(each.op for each in communication):
        how, rows, more = "instruction", *_by_instruction(communication, counted)
    elif communication and all(each.start_s is not None for each in communication):
        first = {one.name: number for number, one in reversed(list(enumerate(step.collectives)))}
        order = [one for number in _launches(program, 1) if first[(one := step.collectives[number]).name] == number]
        how, rows, more = "order", *_by_order(communication, counted, order)
    else:
        how, rows, more = "kind", *_by_kind(communication, counted)
    ratios = Counter(row.runs // row.calls for row in rows if row.runs % row.calls == 0)
    runs = ratios.most_common(1)[0][0] if ratios else None
    more += [f"{_named(row)}: {row.runs} runs in the profile are not a multiple of {row.calls} a step" for row in rows
             if row.runs % row.calls]
    if len(ratios) > 1:
        more += [f"{_named(row)}: {row.runs // row.calls} steps and devices in the profile, others have {runs}"
                 for row in rows if row.runs % row.calls == 0 and row.runs // row.calls != runs]
    busy = sum(each.seconds for each in kernels if not nccl_kinds(each.name))
    return ReconciledProfile(tuple(sorted(rows, key=lambda row: -row.measured_s * row.runs)), how, runs, step.compute_s,
                             busy / runs if runs and busy else None, (*said, *more))


def _by_launch(collectives: Sequence[CollectiveExposure]) -> list[CollectiveExposure]:
    """The collectives of each instruction as one, since a profile shows several that one starts under its name."""
    together: dict[str, CollectiveExposure] = {}
    for one in collectives:
        before = together.get(one.name)
        together[one.name] = one if before is None else replace(
            before, payload_bytes=before.payload_bytes + one.payload_bytes, time_s=before.time_s + one.time_s,
            exposed_s=before.exposed_s + one.exposed_s, waited_s=before.waited_s + one.waited_s)
    return list(together.values())


def _by_instruction(kernels: Sequence[ProfiledKernel],
                    collectives: Sequence[CollectiveExposure]) -> tuple[list[ReconciledTime], list[str]]:
    by_name = {name: one for one in collectives for name in (one.name, one.name.replace("-start", "", 1))}
    found: dict[str, list[ProfiledKernel]] = {}
    strange: list[ProfiledKernel] = []
    for kernel in kernels:
        one = by_name.get(kernel.op)
        if one is None:
            strange.append(kernel)
        else:
            found.setdefault(one.name, []).append(kernel)
    rows = [_row([one], found[one.name]) for one in collectives if one.name in found]
    return rows, [*_missing([one for one in collectives if one.name not in found]), *_strange(strange)]


def _by_order(kernels: Sequence[ProfiledKernel], collectives: Sequence[CollectiveExposure],
              order: Sequence[CollectiveExposure]) -> tuple[list[ReconciledTime], list[str]]:
    rows, said, rest = list[ReconciledTime](), list[str](), list[ProfiledKernel]()
    groups, strange, missing = _grouped(kernels, collectives)
    for kinds, (measured, listed) in groups.items():
        wanted = [one for one in order if one.kind in kinds]
        devices = dict.fromkeys(each.device for each in measured)
        runs = {device: sorted((each for each in measured if each.device == device), key=lambda each: each.start_s or 0)
                for device in devices}
        if not wanted or any(len(each) % len(wanted) for each in runs.values()):
            said.append(f"{' or '.join(kinds)}: kernels are matched by kind, since a device runs "
                        f"{', '.join(str(len(each)) for each in list(runs.values())[:_MOST_NAMED])} of them and a step "
                        f"has {len(wanted)}")
            rows.append(_row(listed, measured))
            continue
        found: dict[str, list[ProfiledKernel]] = {}
        for each in runs.values():
            for number, kernel in enumerate(each):
                found.setdefault(wanted[number % len(wanted)].name, []).append(kernel)
        rows += [_row([one], found[one.name]) for one in listed]
    return rows, [*said, *_missing(missing), *_strange([*strange, *rest])]


def _by_kind(kernels: Sequence[ProfiledKernel],
             collectives: Sequence[CollectiveExposure]) -> tuple[list[ReconciledTime], list[str]]:
    groups, strange, missing = _grouped(kernels, collectives)
    return [_row(listed, measured) for measured, listed in groups.values()], [*_missing(missing), *_strange(strange)]


_Groups = dict[tuple[str, ...], tuple[list[ProfiledKernel], list[CollectiveExposure]]]


def _grouped(kernels: Sequence[ProfiledKernel], collectives: Sequence[CollectiveExposure],
             ) -> tuple[_Groups, list[ProfiledKernel], list[CollectiveExposure]]:
    """Kernels and collectives by the kinds a kernel may be, then kernels and collectives without a partner."""
    groups: _Groups = {}
    strange: list[ProfiledKernel] = []
    for kernel in kernels:
        kinds = nccl_kinds(kernel.name)
        listed = [one for one in collectives if one.kind in kinds]
        if listed:
            groups.setdefault(kinds, ([], listed))[0].append(kernel)
        else:
            strange.append(kernel)
    covered = {one.name for _, listed in groups.values() for one in listed}
    return groups, strange, [one for one in collectives if one.name not in covered]


def _row(collectives: Sequence[CollectiveExposure], kernels: Sequence[ProfiledKernel]) -> ReconciledTime:
    calls, runs = sum(one.trips or 0 for one in collectives), sum(each.runs for each in kernels)
    return ReconciledTime(tuple(one.name for one in collectives), collectives[0].kind, collectives[0].source,
                          calls=calls, runs=runs, predicted_s=sum(one.communication_s for one in collectives) / calls,
                          measured_s=sum(each.seconds for each in kernels) / max(runs, 1))


def _missing(collectives: Sequence[CollectiveExposure]) -> Iterator[str]:
    for one in collectives:
        yield f"{one.name} ({one.source}) has no kernel in the profile"


def _strange(kernels: Sequence[ProfiledKernel]) -> Iterator[str]:
    for name, runs in Counter({each.name: 0 for each in kernels}).items():
        runs = sum(each.runs for each in kernels if each.name == name)
        yield f"the kernel {name.split('(')[0]} ({runs} runs) belongs to no collective of the schedule"


def _named(row: ReconciledTime) -> str:
    return row.collectives[0] if len(row.collectives) == 1 else f"{row.kind} ({len(row.collectives)} of them)"


def _launches(program: StreamProgram, times: int) -> Iterator[int]:
    """Numbers of the transfers of a step in the order they are launched; what a branch launches is left out."""
    for _ in range(min(times, _MOST_RUNS)):
        for op in program.ops:
            if op[0] in (OpCode.START, OpCode.SYNC):
                yield op[-1]
            elif op[0] == OpCode.LOOP:
                yield from _launches(op[3], op[5] or 0)
            elif op[0] == OpCode.CALL:
                yield from _launches(op[3], 1)
            elif op[0] == OpCode.BRANCH:
                continue
