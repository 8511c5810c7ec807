"""The communication of a module at one moment of a run: its collectives, the loops around each, and their times."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hlorewrite.analysis.groups import device_count
from hlorewrite.analysis.loops import trip_count
from hlorewrite.analysis.parameter_provenance import ParameterProvenance
from hlorewrite.cost.report.collectives import counted_collectives
from hlorewrite.cost.report.report import CommunicationReport, Executed, build_report
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import COLLECTIVES, Editor, Module, communicates_otherwise, dissolve_calls, ir, op_key, run_at_once
from hlorewrite.ir.view import View, ancestors
from hlorewrite.passmanager.programs import is_program, program_adapter
from hlorewrite.passmanager.trace.format import TracedNest, path_of
from hlorewrite.rules.snippets import snippet

if TYPE_CHECKING:
    from hlorewrite.cost.cluster.topology import Topology

REPEATING = ("while", "fragment")
_REGIONS = {"stablehlo.while": "while", "stablehlo.case": "case", "stablehlo.if": "if"}


@dataclass(frozen=True)
class Snapshot:
    """Everything a module communicates.

    Attributes:
      report: collectives with times, as ``hlorewrite report`` counts them.
      texts: each collective as one line of text.
      places: the position in ``nests`` of the innermost loop or branch around each; -1 outside.
      nests: loops and branches, outer ones first.
      tensors: for each collective the argument of the step it belongs to, where that is known, and the type
        of its result.
    """

    report: CommunicationReport
    texts: tuple[str, ...]
    places: tuple[int, ...]
    nests: tuple[TracedNest, ...]
    tensors: tuple[tuple[str, str], ...]

    def path(self, place: int) -> tuple[tuple[str, str, int], ...]:
        """(op, source, trips) of the loops and branches at a place, outermost first."""
        return path_of(self.nests, place)

    def as_dict(self) -> dict[str, Any]:
        """The contents of ``before.json`` and ``after.json``; equal groups are written once."""
        report, table = self.report, {}
        for line in report.lines:
            table.setdefault(line.what.groups, len(table))
        rows = [{"kind": line.what.kind, "source": line.what.source, "groups": table[line.what.groups],
                 "axes": list(line.what.axes), "payload_bytes": line.what.payload_bytes, "trips": line.what.trips,
                 "trips_known": line.what.trips_known, "nest": place, "time_s": line.time_s, "text": text,
                 "argument": argument, "type": type_}
                for line, place, text, (argument, type_) in zip(report.lines, self.places, self.texts, self.tensors,
                                                                strict=True)]
        return {"form": report.form, "devices": report.devices,
                "topology": report.topology.spec if report.topology else None,
                "executed_bytes": report.executed_bytes, "time_s": report.time_s,
                "exposed_time_s": None, "groups": [[list(row) for row in rows] for rows in table],
                "nests": [vars(nest) for nest in self.nests], "collectives": rows, "remarks": list(report.remarks)}


def snapshot(module: Module, spec: str = "") -> Snapshot:
    """Reads what a module communicates, in time linear in its size; the module is not changed.

    Args:
      module: any StableHLO module, or a program of several meshes.
      spec: the topology to predict times for; empty for bytes only.

    Returns:
      The snapshot; remarks of its report name what could not be read.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> snapshot(parse("func.func @main() { return }")).report.executed_bytes
      0
    """
    view = View(module)
    if not view.ops(*COLLECTIVES) and not communicates_otherwise(view) and not is_program(module):
        return Snapshot(_report(module, "stablehlo", device_count(view) or 1, [], [], ""), (), (), (), ())
    copy = module.clone()
    if is_program(copy):
        return _of_program(copy, spec)
    return _of_stablehlo(copy, spec)


def _of_program(module: Module, spec: str) -> Snapshot:
    """The snapshot of a program of several meshes; each fragment counts as a separate loop."""
    devices, pieces, remarks = program_adapter(module).pieces_of_program(module)
    nests: dict[tuple[str, int], int] = {}
    places = tuple(nests.setdefault((piece.fragment, piece.times), len(nests)) if piece.fragment else -1
                   for piece in pieces)
    collectives = [replace(piece.what, trips=piece.what.trips * piece.times) for piece in pieces]
    return Snapshot(_report(module, "mpmd", devices, collectives, remarks, spec), tuple("" for _ in collectives),
                    places, tuple(TracedNest(-1, "fragment", name, times, True) for name, times in nests),
                    tuple(("", "") for _ in collectives))


def _of_stablehlo(module: Module, spec: str) -> Snapshot:
    view = View(module)
    dissolve_calls(Editor(view))  # all calls, as `hlorewrite report` does, so that both print the same figures
    run_at_once(Editor(view))
    places = _Places(view)
    devices, collectives, remarks = counted_collectives(view)
    texts = tuple(snippet([op], {}) for op, _ in collectives)
    where = tuple(places.of(op) for op, _ in collectives)
    report = _report(module, "stablehlo", devices, [what for _, what in collectives], remarks, spec)
    paths = ParameterProvenance(view)
    tensors = tuple((paths.of(op), str(op.results[0].type) if len(op.results) == 1 else "") for op, _ in collectives)
    return Snapshot(report, texts, where, tuple(places.nests), tensors)


class _Places:
    """Numbers the loops and branches around ops."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.nests: list[TracedNest] = []
        self._known: dict[int, int] = {}

    def of(self, op: ir.Operation) -> int:
        """The number of the innermost loop or branch around an op; -1 when there is none."""
        around = [parent for parent in ancestors(op) if parent.name in _REGIONS]
        place = -1
        for parent in reversed(around):
            key = op_key(parent)
            if key not in self._known:
                self._known[key] = len(self.nests)
                count = trip_count(parent) if parent.name == "stablehlo.while" else 1
                self.nests.append(TracedNest(place, _REGIONS[parent.name], self.view.source(parent),
                                       1 if count is None else count, count is not None))
            place = self._known[key]
        return place


def _report(module: Module, form: str, devices: int, collectives: list[Executed], remarks: list[str],
            spec: str) -> CommunicationReport:
    topo, said = None, list(remarks)
    if spec and collectives:
        try:
            topo = _sized(spec, devices)
        except HlorewriteError as error:
            said.append(f"no times are predicted: {error}")
    return build_report(module.name, form, devices, collectives, topo, remarks=said)


def _sized(spec: str, devices: int) -> Topology | None:
    from hlorewrite.cost.cluster.topology_file import topology
    from hlorewrite.errors import UsageError
    topo = topology(spec)
    if devices > topo.gpus and ":" not in spec:
        topo = topo.sized(-(-devices // topo.gpus_per_host), topo.gpus_per_host)
    if topo.gpus < devices:
        raise UsageError(f"the module runs on {devices} devices, but {topo.spec} has {topo.gpus} GPUs")
    return topo


@dataclass(frozen=True)
class Difference:
    """Collectives of the same devices that are in only one of two consecutive snapshots.

    Attributes:
      source: the user's line of the first one.
      removed: text of those that are gone.
      added: text of those that are new.
    """

    source: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


def differences(before: Snapshot, after: Snapshot) -> list[Difference]:
    """The changes between two snapshots: one entry for each set of devices.

    Args:
      before: the earlier.
      after: the later.

    Returns:
      Differences in the order of the program; loops around an op count as part of it.
    """
    gone, come = _counted(before), _counted(after)
    by_devices: dict[frozenset[int], tuple[list[str], list[str], list[str]]] = {}
    for one, counts, side in ((before, gone - come, 0), (after, come - gone, 1)):
        left = Counter(counts)
        for key, line, text in _keyed(one):
            if left[key] > 0:
                left[key] -= 1
                devices = frozenset(gpu for group in line.groups for gpu in group)
                entry = by_devices.setdefault(devices, ([], [], []))
                entry[side].append(_shown_path(key[-1]) + (text or f"{line.kind} of {line.payload_bytes} bytes"))
                entry[2].append(line.source)
    return [Difference(sources[0], tuple(removed), tuple(added)) for removed, added, sources in by_devices.values()]


def _keyed(one: Snapshot) -> list[tuple[tuple, Executed, str]]:
    return [((line.what.kind, line.what.source, line.what.groups, line.what.payload_bytes, one.path(place)),
             line.what, text) for line, place, text in zip(one.report.lines, one.places, one.texts, strict=True)]


def _counted(one: Snapshot) -> Counter[tuple]:
    return Counter(key for key, _, _ in _keyed(one))


def _shown_path(path: tuple[tuple[str, str, int], ...]) -> str:
    return "".join(f"{op} {source}{f' x{trips}' if op in REPEATING else ''} > " for op, source, trips in path)
