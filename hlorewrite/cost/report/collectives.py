"""Collectives of a module, StableHLO or optimised HLO text, as the report counts them."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hlorewrite.analysis.block_frequency import never_runs
from hlorewrite.analysis.groups import device_count, device_groups
from hlorewrite.analysis.loops import trip_count
from hlorewrite.analysis.mesh import Mesh, axis_names, meshes
from hlorewrite.cost.report.report import UNCOUNTED_CALLS, UNCOUNTED_MESSAGES, Executed, counted_names
from hlorewrite.errors import UsageError
from hlorewrite.hlo.collectives import collective_kind, collectives, executions
from hlorewrite.hlo.parse import HloText, custom_call_target, parse_hlo
from hlorewrite.hlo.wrapped import WrappedCollectives
from hlorewrite.ir import COLLECTIVE_PERMUTE, COLLECTIVES, DYNAMIC_ROOT, RAGGED_ALL_TO_ALL, ir, kind_of, sdy, timed_kind
from hlorewrite.ir.async_pairs import run_at_once, unread_communication
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import dissolve_calls
from hlorewrite.ir.module import Module
from hlorewrite.ir.types import tensor_bytes
from hlorewrite.ir.view import View, ancestors, callee_name, nested_ops
from hlorewrite.ops.table import RAGGED_ALL_TO_ALL_CALL, SHARDY_COLLECTIVES, may_communicate
from hlorewrite.util.sizes import MOST_DEVICES, format_bytes

# ---- of a StableHLO module


_SUMS = "sums of unreduced values are not counted; XLA creates them when it partitions"
_BETWEEN_PROGRAMS = ("stablehlo.send", "stablehlo.recv")
_KNOWN_DIALECTS = frozenset(("builtin", "stablehlo", "chlo", "func", "sdy", "mpmd", "arith", "math", "shape", "tensor"))


def collectives_of(module: Module) -> tuple[int, list[Executed], list[str]]:
    """Reads a module's collectives; its calls and composites are inlined, and asynchronous ops run where they start.

    Args:
      module: a module of the caller's own: reading it changes it.

    Returns:
      (devices, collectives in program order, messages about what could not be read).
    """
    view = View(module)
    dissolve_calls(Editor(view))
    run_at_once(Editor(view))
    devices, counted, remarks = counted_collectives(view)
    return devices, [what for _, what in counted], remarks


def counted_collectives(view: View) -> tuple[int, list[tuple[ir.Operation, Executed]], list[str]]:
    """The collectives of a module without calls, each with its op.

    Args:
      view: the module, its calls dissolved (``ir.inline.dissolve_calls``), and what it starts by itself in the place of
        the start (``run_at_once``).

    Returns:
      (devices, op and collective in program order, messages about what is not counted: collectives that cannot be read,
      and ops that communicate, or may, in another form).

    Raises:
      InputError: the module has more than ``MOST_DEVICES`` devices.
    """
    counted: list[tuple[ir.Operation, Executed]] = []
    remarks: list[str] = []
    for op in nested_ops(view.module.operation):
        unread = _unread(op)
        if not (unread or op.name in COLLECTIVES or _is_ragged(op)) or never_runs(op):
            continue
        if unread:
            remarks.append(f"{view.place(op)}: {op.name} is left out: {unread}")
            continue
        what = executed_of(op, view)
        if isinstance(what, str):
            remarks.append(f"{view.place(op)}: {op.name} is left out: {what}")
            continue
        counted.append((op, what))
    named = max((gpu + 1 for _, what in counted for group in what.groups for gpu in group), default=1)
    widest = max((mesh.size for mesh in meshes(view).values()), default=1)
    return max(device_count(view) or 0, named, widest), counted, [*remarks, *uncounted(view)]


def uncounted(view: View) -> list[str]:
    """Messages about what communicates or may communicate, but is in no list of collectives.

    Args:
      view: the module, its calls dissolved.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> print(*uncounted(View(parse("func.func @main() { stablehlo.custom_call @exchange() : () -> () return }"))))
      custom calls that may communicate are not counted: exchange (1)
    """
    found: dict[str, Counter[str]] = {}
    for op in nested_ops(view.module.operation):
        why, name = _why_uncounted(op, view)
        if why and not never_runs(op):
            found.setdefault(why, Counter())[name] += 1
        if (summed := _summed_axes(op)) and not never_runs(op):
            size = format_bytes(tensor_bytes(op.results[0].type))
            found.setdefault(_SUMS, Counter())[f"{size} over {', '.join(summed)} at {view.place(op)}"] += 1
    return counted_names(found)


def _why_uncounted(op: ir.Operation, view: View) -> tuple[str, str]:
    """(why an op may communicate uncounted, its name); nothing of an op that does not."""
    name = op.name
    if _unread(op):  # named by itself
        return "", ""
    if name == "stablehlo.custom_call":
        target = _target(op)
        silent = target == RAGGED_ALL_TO_ALL_CALL or not may_communicate(target)
        return ("", "") if silent else (UNCOUNTED_CALLS, target)
    if name in SHARDY_COLLECTIVES:
        return "ops of Shardy that exchange shards are not counted; XLA lowers them when it partitions", name
    if name in _BETWEEN_PROGRAMS and _between_devices(op):
        return UNCOUNTED_MESSAGES, name
    if name == "stablehlo.composite":
        return "composites without a decomposition in the module are not counted", str(op.attributes["name"])
    if name == "func.call":
        return "calls that cannot be inlined count the called function once", f"@{callee_name(op)}"
    return ("", "") if name.partition(".")[0] in _KNOWN_DIALECTS else (
        "ops of other dialects may communicate and are not counted", name)


def _summed_axes(op: ir.Operation) -> list[str]:
    """The axes along which a constraint sums up: its operand is unreduced over them, and its result is not."""
    if op.name not in ("sdy.sharding_constraint", "sdy.reshard"):
        return []
    kept = _unreduced(op.attributes["sharding"])
    return [axis for axis in _unreduced(_sharding_of(op.operands[0])) if axis not in kept]


def _unreduced(sharding: ir.Attribute | None) -> list[str]:
    return [] if sharding is None else [
        sdy.AxisRefAttr(axis).name for axis in sdy.TensorShardingAttr(sharding).unreduced_axes]


def _sharding_of(value: ir.Value) -> ir.Attribute | None:
    """The sharding that a value is written with: by a constraint, a manual computation, its op or its function."""
    if isinstance(value.owner, ir.Block):
        function = value.owner.owner.operation
        if function.name != "func.func" or "arg_attrs" not in function.attributes:
            return None
        written = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[ir.BlockArgument(value).arg_number])
        return next((named.attr for named in written if named.name == "sdy.sharding"), None)
    op, attributes = value.owner.operation, value.owner.operation.attributes
    if "sharding" in attributes and op.name.startswith("sdy."):
        return attributes["sharding"]
    for name in ("out_shardings", "sdy.sharding"):
        if name in attributes:
            return sdy.TensorShardingPerValueAttr(attributes[name]).shardings[ir.OpResult(value).result_number]
    return None


def _unread(op: ir.Operation) -> str:
    return "" if _is_ragged(op) else unread_communication(op)


def _is_ragged(op: ir.Operation) -> bool:
    return op.name == "stablehlo.custom_call" and _target(op) == RAGGED_ALL_TO_ALL_CALL


def _between_devices(op: ir.Operation) -> bool:
    """Whether a message goes to another device and not to the host (StableHLO, "channel_type")."""
    return not ("is_host_transfer" in op.attributes and ir.BoolAttr(op.attributes["is_host_transfer"]).value)


def _target(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["call_target_name"]).value


def executed_of(op: ir.Operation, view: View) -> Executed | str:
    """One collective as the report counts it, or why it cannot count it."""
    groups = device_groups(op, view)
    if isinstance(groups, str):
        return groups
    operands = list(op.operands)[:-1] if DYNAMIC_ROOT in op.attributes else list(op.operands)
    values = [*operands, *op.results]
    if any(isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape for value in values):
        return "its shape is not static"
    ragged = op.name == "stablehlo.custom_call"
    sizes = [tensor_bytes(op.operands[0].type)] if ragged else [
        sum(tensor_bytes(value.type) for value in side) for side in (operands, op.results)]
    trips, known, loops = 1, True, []
    for parent in ancestors(op):
        if parent.name == "stablehlo.while":
            count = trip_count(parent)
            known, trips = known and count is not None, trips * (1 if count is None else count)
            loops.append(parent)
    kind = timed_kind(RAGGED_ALL_TO_ALL.kind) if ragged else kind_of(op.name)
    of_pairs = kind == COLLECTIVE_PERMUTE.kind
    axes = view.memoize(("axes of groups", of_pairs, groups),
                        lambda: _pair_axes(groups, view) if of_pairs else axis_names(groups, view) or ())
    return Executed(kind, view.place(op), groups, axes=tuple(axes), payload_bytes=max(sizes), trips=trips,
                    trips_known=known, loop=view.place(loops[0]) if loops else "", loop_depth=len(loops))


def _pair_axes(pairs: Sequence[Sequence[int]], view: View) -> tuple[str, ...]:
    """The mesh axes along which a permute moves data."""
    for mesh in meshes(view).values():
        places = mesh.coordinates([name for name, _ in mesh.axes])
        if all(gpu in places for pair in pairs for gpu in pair):
            moved = [any(places[a][i] != places[b][i] for a, b in pairs) for i in range(len(mesh.axes))]
            return tuple(name for (name, _), moves in zip(mesh.axes, moved, strict=True) if moves)
    return ()


# ---- of optimised HLO text


_MESSAGES = ("send", "recv")
_COMMENTS = ((b"//", b"\n"), (b"/*", b"*/"))


def looks_like_hlo(data: bytes) -> bool:
    """Whether a file is HLO text: comments may be before its first line.

    Example:
      >>> looks_like_hlo(b"// RUN: a test\\nHloModule m"), looks_like_hlo(b"module {}")
      (True, False)
    """
    at, comment = 0, True
    while comment:  # Ends: each round goes past a comment.
        while data[at:at + 1].isspace():  # Ends: each round goes past a byte.
            at += 1
        comment = False
        for begin, end in _COMMENTS:
            if data.startswith(begin, at):
                after = data.find(end, at + len(begin))
                if after < 0:
                    return False
                at, comment = after + len(end), True
                break
    return data.startswith((b"HloModule", b"ENTRY"), at)


def collectives_of_hlo(text: str) -> tuple[int, list[Executed], list[str]]:
    """Reads the collectives of a compiled module.

    Args:
      text: optimised HLO, as ``Compiled.as_text()`` prints it.

    Returns:
      (devices, collectives, messages about what could not be read).

    Raises:
      InputError: the text or the groups of a collective cannot be read.
    """
    module = parse_hlo(text)
    loops = _loops(module)
    executed, remarks = [], []
    for each in collectives(module):
        place = each.source if each.source != "?" else each.name
        if not each.bytes or not each.groups:
            remarks.append(f"{place}: {each.name} is left out: its payload or groups are unknown")
            continue
        largest = max(map(max, each.groups))
        if largest >= module.devices > 1:  # a header that names no devices says nothing about them
            remarks.append(f"{place}: {each.name} is left out: its groups name device {largest}, "
                           f"but the module has {module.devices}")
            continue
        kind = timed_kind(each.kind)
        executed.append(Executed(kind, place, each.groups, axes=(), payload_bytes=each.bytes, trips=each.trips,
                                 trips_known=each.trips_known,
                                 loop=loops.get(each.name, "-") if each.loop_depth else "", loop_depth=each.loop_depth,
                                 name=each.name))
    named = max((gpu + 1 for what in executed for group in what.groups for gpu in group), default=1)
    return max(module.devices, named), executed, [*remarks, *uncounted_hlo(module)]


def uncounted_hlo(module: HloText) -> list[str]:
    """Messages about what communicates or may communicate, but is in no list of collectives.

    Args:
      module: the module.

    Raises:
      InputError: a computation calls itself.

    Example:
      >>> print(*uncounted_hlo(parse_hlo("HloModule m\\nENTRY %e (p: f32[2]) -> f32[2] {\\n  %p = f32[2] parameter(0)"
      ...                                '\\n  ROOT %c = f32[2] custom-call(%p), custom_call_target="exchange"\\n}')))
      custom calls that may communicate are not counted: exchange (1)
    """
    found: dict[str, Counter[str]] = {}
    for run in executions(module):
        for instruction in run.computation.instructions.values():
            if instruction.opcode in _MESSAGES and "is_host_transfer=true" not in instruction.attributes:
                found.setdefault(UNCOUNTED_MESSAGES, Counter())[instruction.opcode] += 1
            elif instruction.opcode.removesuffix("-start") == "custom-call":
                target = custom_call_target(instruction)
                if may_communicate(target):
                    found.setdefault(UNCOUNTED_CALLS, Counter())[target] += 1
    return counted_names(found)


def _loops(module: HloText) -> dict[str, str]:
    """The user's line of the innermost loop around each collective, also where the loop's body calls what holds it."""
    body_of: dict[str, str] = {}
    for computation in module.computations.values():
        for instruction in computation.instructions.values():
            if instruction.opcode == "while":
                place = module.source(instruction)
                for name in instruction.called("body"):
                    body_of[name] = place if place != "?" else instruction.name
    wrapped = WrappedCollectives(module)
    loops: dict[str, str] = {}
    for name, place in body_of.items():
        body = module.computations.get(name)
        for instruction in body.instructions.values() if body is not None else ():
            if collective_kind(instruction.opcode):
                loops[instruction.name] = place
            loops |= {each.instruction.name: place for each in wrapped.inside(instruction)}
    return loops


# ---- names of mesh axes, for modules that contain no mesh, such as optimised HLO


def parse_mesh(text: str) -> Mesh:
    """Reads ``data=4,model=2``: axes from the slowest varying to the fastest.

    Args:
      text: names and sizes.

    Returns:
      The mesh of devices 0, 1, ... in row-major order.

    Raises:
      UsageError: the text has another form.

    Example:
      >>> parse_mesh("data=4,model=2").size
      8
    """
    axes = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*([1-9]\d*)\s*", part)
        if not match or match[1] in dict(axes):
            raise UsageError(f'"{text}" is not a mesh', hint='write it like "data=4,model=2"')
        axes.append((match[1], int(match[2])))
    if math.prod(size for _, size in axes) > MOST_DEVICES:
        raise UsageError(f'the mesh "{text}" has more than {MOST_DEVICES} devices', hint="name a smaller one")
    return Mesh(tuple(axes), tuple(range(math.prod(size for _, size in axes))))


def with_axes(collectives: Sequence[Executed], mesh: Mesh) -> list[Executed]:
    """The same collectives, with axes of a mesh if they have none yet.

    Args:
      collectives: what is executed.
      mesh: the mesh the module was made for.

    Returns:
      New collectives; the axes stay empty if the groups are not those of the mesh.
    """
    return [what if what.axes else replace(what, axes=axes_of(what, mesh)) for what in collectives]


def axes_of(what: Executed, mesh: Mesh) -> tuple[str, ...]:
    """The axes along which a collective moves data; empty when its groups are not those of the mesh."""
    names = [name for name, _ in mesh.axes]
    places = mesh.coordinates(names)
    if any(gpu not in places for group in what.groups for gpu in group):
        return ()
    spread = tuple(name for i, name in enumerate(names)
                   if any(len({places[gpu][i] for gpu in group}) > 1 for group in what.groups))
    if what.kind == COLLECTIVE_PERMUTE.kind:
        return spread
    return spread if frozenset(frozenset(group) for group in what.groups) == mesh.groups_along(spread) else ()
