"""What may go wrong with a module under XLA on GPU, depending on flags or inputs: collectives that devices may reach a
different number of times, and public faults of passes that run only under some flags."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hlorewrite.analysis.groups import Groups, Rows, device_groups, written_pairs
from hlorewrite.analysis.loops import trip_count
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import COLLECTIVE_PERMUTE, COLLECTIVES, Loop, View, ancestors, defining_op, ir

_LOOP = "stablehlo.while"
_BRANCHES = ("stablehlo.if", "stablehlo.case")
_KEEPS = ("stablehlo.optimization_barrier", "stablehlo.reshape", "stablehlo.convert", "stablehlo.transpose")
_PLACEMENT = "annotate_device_placement"


@dataclass(frozen=True)
class LintWarning:
    """One place to look at.

    Attributes:
      form: ``trips``, ``branches``, ``cycles`` or ``offload``.
      location: the source line.
      sentence: what may happen, and when.
      source: where it can be read up; empty if the specification says it.
    """

    form: str
    location: str
    sentence: str
    source: str = ""


LOOKED_AT = {
    "trips": "collectives in loops whose trip count may differ between devices",
    "branches": "collectives in branches that not all devices may take",
    "cycles": "permutes of several cycles",
    "offload": "residuals that are offloaded to the host and read back in reverse",
}
"""Texts to search a module for, by form."""


def find_warnings(view: View) -> list[LintWarning]:
    """The warnings about a module, in the order of the forms.

    Args:
      view: the module, its calls inlined.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> find_warnings(View(parse("func.func @main() { return }")))
      []
    """
    return [*_differing_trips(view), *_several_cycles(view), *_offloaded(view)]


def _differing_trips(view: View) -> Iterator[LintWarning]:
    """Collectives in loops whose predicate, or in branches whose index, may differ between the devices of a group.

    That the program would never end otherwise is what is warned of, so it does not count here.
    """
    known: dict[object, Uniformity] = {}
    for op in view.ops(*COLLECTIVES):
        around = [parent for parent in ancestors(op) if parent.name in _BRANCHES
                  or (parent.name == _LOOP and trip_count(parent) is None)]
        groups = _meeting(op, view) if around else None
        if groups is None:
            continue
        if groups.key not in known:
            known[groups.key] = Uniformity(view, groups, trusting=False)
        for parent in around:
            is_loop = parent.name == _LOOP
            varying = known[groups.key].varying(Loop(parent).predicate if is_loop else parent.operands[0])
            if varying is not None:
                does = "run a different number of times" if is_loop else "take different branches"
                what = "loop" if is_loop else "conditional"
                yield LintWarning("trips" if is_loop else "branches", view.place(op),
                                  f"the {what} at {view.place(parent)} may {does} on the devices of a group "
                                  f"({varying.sentence}): then they wait for each other forever",
                                  "StableHLO specification, \"Execution of collective ops\"")
                break


def _meeting(op: ir.Operation, view: View) -> Groups | None:
    """The devices that wait for each other in a collective; of a permute those that its pairs connect."""
    rows = device_groups(op, view)
    if isinstance(rows, str):
        return None
    if op.name == COLLECTIVE_PERMUTE.op:
        rows = _connected(rows)
    return Groups(rows, "flattened_ids") if max(map(len, rows), default=1) > 1 else None


def _connected(pairs: Rows) -> Rows:
    """The sets of devices that pairs connect."""
    sets: dict[int, set[int]] = {}
    for source, target in map(_pair, pairs):
        one, other = sets.setdefault(source, {source}), sets.setdefault(target, {target})
        if one is not other:
            small, large = sorted((one, other), key=len)
            large |= small
            sets.update(dict.fromkeys(small, large))
    return tuple(sorted({tuple(sorted(each)) for each in sets.values()}))


def _several_cycles(view: View) -> Iterator[LintWarning]:
    """Permutes that the cycle decomposer of XLA:GPU takes apart wrongly."""
    for op in view.ops(COLLECTIVE_PERMUTE.op):
        pairs = written_pairs(op, view)
        if not isinstance(pairs, str) and cycles(dict(map(_pair, pairs))) > 1:
            yield LintWarning("cycles", view.place(op), "its pairs form several cycles: if XLA decomposes permutes "
                              "(xla_gpu_collective_permute_decomposer_threshold), all but one device that closes a "
                              "cycle get zeros", "openxla/xla#45222")


def _pair(row: tuple[int, ...]) -> tuple[int, int]:
    return row[0], row[1]


def cycles(targets: Mapping[int, int]) -> int:
    """The number of cycles, each of two or more devices, that source-target pairs form.

    Args:
      targets: source of each pair -> its target.

    Example:
      >>> cycles({0: 1, 1: 0, 2: 3, 3: 2, 4: 4}), cycles({0: 1, 1: 2})
      (2, 0)
    """
    count, done = 0, set[int]()
    for start in targets:
        path, device = list[int](), start
        while device in targets and device not in done:  # Ends: a device is passed once.
            done.add(device)
            path.append(device)
            device = targets[device]
        count += device in path and len(path) - path.index(device) > 1
    return count


def _offloaded(view: View) -> Iterator[LintWarning]:
    """Values in host memory that a loop reads at an index that falls while its counter rises."""
    for op in view.ops("stablehlo.custom_call"):
        if ir.StringAttr(op.attributes["call_target_name"]).value != _PLACEMENT or "pinned_host" in str(op.attributes):
            continue
        read = _read(op.operands[0]) if len(op.operands) else None
        if read is None or read.name != "stablehlo.dynamic_slice" or not _in_loop(read):
            continue
        if any(_falls(start) for start in list(read.operands)[1:]):
            yield LintWarning("offload", view.place(read), "it reads values offloaded to the host in reverse: "
                              "XLA:GPU with host offloading reads it forwards, and gradients are wrong",
                              "openxla/xla#46231")


def _read(value: ir.Value) -> ir.Operation | None:
    """The op that makes a value, seen through ops that keep its elements."""
    op = defining_op(value)
    while op is not None and op.name in _KEEPS:  # Ends: an operand is made before its reader.
        value = op.operands[ir.OpResult(value).result_number]
        op = defining_op(value)
    return op


def _in_loop(op: ir.Operation) -> bool:
    return any(parent.name == _LOOP for parent in ancestors(op))


def _falls(index: ir.Value) -> bool:
    """Whether an index is something minus a value, seen through selects that count from the end and conversions."""
    pending, seen = [index], {index}
    for value in pending:  # Ends: a value is added once.
        op = defining_op(value)
        if op is None:
            continue
        if op.name == "stablehlo.subtract" and isinstance(op.operands[1].owner, ir.Block):
            return True
        if op.name in ("stablehlo.select", "stablehlo.convert", "stablehlo.reshape", "stablehlo.add",
                       "stablehlo.subtract"):
            fresh = [each for each in op.operands if each not in seen]
            seen.update(fresh)
            pending += fresh
    return False
