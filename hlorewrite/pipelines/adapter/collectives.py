"""Collectives and transfers of a program of several meshes, written in the ``mpmd`` dialect.

Devices are numbered mesh by mesh, in the order of the topology. A transfer is the permute it needs at least. Each
device of the target mesh gets every part of its shard from one device of the source mesh that holds it: from the one
at its own place where that one does, else from the one that has sent least.
"""

import math
import re
from collections import Counter
from dataclasses import replace

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.cost.report.collectives import executed_of
from hlorewrite.cost.report.report import Executed
from hlorewrite.errors import InputError
from hlorewrite.ir import COLLECTIVE_PERMUTE, COLLECTIVES, Editor, Module, element_bytes, inline_calls, ir, op_key
from hlorewrite.ir.view import View, ancestors, nested_ops, symbol_name
from hlorewrite.passmanager.programs import ProgramPiece
from hlorewrite.pipelines.mpmd.types import meshes_in_topology

_TENSOR = re.compile(r'!mpmd\.mesh_tensor<"([^"]+)",\s*(tensor<[^>]*>)(?:,\s*sharding=<@?[\w.]+,\s*\[(.*?)\]\s*[,>])?')
_DIMENSION = re.compile(r"\{([^}]*)\}")

Box = tuple[tuple[int, int], ...]  # (start, stop) of each dimension


def collectives_of_program(module: Module) -> tuple[int, list[Executed], list[str]]:
    """Reads collectives of all fragments and the transfers between meshes.

    Args:
      module: a program of the caller's own: reading it changes it.

    Returns:
      (devices, collectives and transfers, messages about what could not be read).

    Raises:
      InputError: the topology cannot be read, or an op names a mesh or function that is not there.
    """
    devices, pieces, remarks = pieces_of_program(module)
    counts: Counter[Executed] = Counter()
    for piece in pieces:
        counts[piece.what] += piece.times
    return devices, [replace(what, trips=what.trips * times) for what, times in counts.items()], remarks


def pieces_of_program(module: Module) -> tuple[int, list[ProgramPiece], list[str]]:
    """The same, with the fragment that each is in; equal ones are not added up."""
    view = View(module)
    inline_calls(Editor(view))
    main = view.functions.get("main") or next(f for f in view.functions.values() if "topology" in f.attributes)
    parts = meshes_in_topology(main.attributes["topology"], module.name)
    calls: Counter[tuple[int, int]] = Counter()
    bodies: dict[tuple[int, int], tuple[ir.Operation, Mesh]] = {}
    pieces: list[ProgramPiece] = []
    remarks: list[str] = []
    for op, times in _executed(main, view):
        if op.name == "mpmd.transfer":
            pieces += [ProgramPiece("", times, what) for what in _transfer(op, view, parts)]
        elif op.name in ("mpmd.fragment_call", "mpmd.fragment"):
            body = view.callee(op) if op.name == "mpmd.fragment_call" else op
            part = parts.get(ir.StringAttr(op.attributes["mesh_name"]).value)
            if body is None or part is None:
                raise InputError(f"{op.name} names a function or mesh that the program does not contain",
                                 location=view.source(op), hint="correct the program")
            key = (op_key(body), part.device_ids[0])
            calls[key] += times
            bodies[key] = (body, part)
    for key, (body, part) in bodies.items():
        inside, said = _fragment(body, part, view)
        remarks += said
        pieces += [ProgramPiece(_fragment_name(body, part, parts), calls[key], what) for what in inside]
    return sum(part.size for part in parts.values()), pieces, remarks


def _fragment_name(body: ir.Operation, part: Mesh, parts: dict[str, Mesh]) -> str:
    mesh = next(name for name, known in parts.items() if known is part)
    return f"{symbol_name(body)} on {mesh}" if body.name == "func.func" else f"fragment on {mesh}"


def _executed(main: ir.Operation, view: View) -> list[tuple[ir.Operation, int]]:
    """Every op of the program's function and of those it calls, and how often it runs; fragments are not entered."""
    executions: list[tuple[ir.Operation, int]] = []
    pending = [(main, 1, 0)]
    # Ends: depth is bounded by the number of functions; beyond it the program calls itself.
    while pending:
        function, runs, depth = pending.pop()
        if depth > len(view.functions):
            raise InputError("the program calls itself", location=view.source(function), hint="correct the program")
        for op in nested_ops(function):
            times = runs * _times(op)
            executions.append((op, times))
            if op.name == "mpmd.call":
                name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                if name not in view.functions:
                    raise InputError(f"the function @{name} is not in the module", location=view.source(op),
                                     hint="correct the program")
                pending.append((view.functions[name], times, depth + 1))
    return executions


def _times(op: ir.Operation) -> int:
    """How often the loops of its function run an op."""
    times = 1
    for parent in ancestors(op):
        if parent.name == "mpmd.for":
            times *= ir.IntegerAttr(parent.attributes["iterations"]).value
    return times


def _fragment(body: ir.Operation, part: Mesh, view: View) -> tuple[list[Executed], list[str]]:
    """The collectives of a fragment, with device numbers of the whole program."""
    collectives, remarks = [], []
    for op in nested_ops(body):
        if op.name not in COLLECTIVES:
            continue
        what = executed_of(op, view)
        if isinstance(what, str):
            remarks.append(f"{view.place(op)}: {op.name} is left out: {what}")
            continue
        groups = tuple(tuple(part.device_ids[device] for device in group) for group in what.groups)
        collectives.append(replace(what, groups=groups))
    return collectives, remarks


def _transfer(op: ir.Operation, view: View, parts: dict[str, Mesh]) -> list[Executed]:
    """A transfer as permutes of equal payload."""
    (source, tensor, source_boxes), (target, _, target_boxes) = (
        _shards(value, view.source(op), parts) for value in (op.operands[0], op.results[0]))
    pairs: dict[int, list[tuple[int, int]]] = {}
    sent: Counter[int] = Counter()
    for place, box in enumerate(target_boxes):
        wanted: dict[Box, list[int]] = {}
        for holder, held in enumerate(source_boxes):
            shared = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(box, held, strict=True))
            if all(start < stop for start, stop in shared):
                wanted.setdefault(shared, []).append(holder)
        for shared, holders in wanted.items():
            size = int(math.prod(stop - start for start, stop in shared) * element_bytes(tensor.element_type))
            sender = place if place in holders else min(holders, key=lambda each: (sent[each], each))
            sent[sender] += size
            pairs.setdefault(size, []).append((source.device_ids[sender], target.device_ids[place]))
    return [Executed(COLLECTIVE_PERMUTE.kind, view.source(op), tuple(each), axes=(), payload_bytes=size, trips=1,
                     trips_known=True, loop="", loop_depth=0)
            for size, each in sorted(pairs.items())]


def _shards(value: ir.Value, where: str, parts: dict[str, Mesh]) -> tuple[Mesh, ir.RankedTensorType, list[Box]]:
    """The mesh of a tensor, its global type, and the box each of the mesh's devices holds."""
    text = str(value.type)
    match = _TENSOR.match(text)
    if not match or match[1] not in parts:
        raise InputError(f"a transferred value has no mesh of the program: {text[:80]}", location=where,
                         hint="assign it to a mesh of the topology")
    part, tensor = parts[match[1]], ir.RankedTensorType(ir.Type.parse(match[2], context=value.context))
    shardings = [re.findall(r'"([^"]+)"', axes) for axes in _DIMENSION.findall(match[3] or "")]
    shardings += [[]] * (tensor.rank - len(shardings))
    sizes = dict(part.axes)
    if any(axis not in sizes for axes in shardings for axis in axes):
        raise InputError(f"a sharding names an axis that its mesh does not have: {text[:80]}", location=where,
                         hint="write whole axes of the mesh")
    places = [part.coordinates(axes) for axes in shardings]
    boxes = []
    for device in part.device_ids:
        box = []
        for length, axes, place in zip(tensor.shape, shardings, places, strict=True):
            index = 0  # the first axis of a dimension is its major one
            for axis, at in zip(axes, place[device], strict=True):
                index = index * sizes[axis] + at
            step = -(-length // math.prod(sizes[axis] for axis in axes))
            box.append((min(index * step, length), min((index + 1) * step, length)))
        boxes.append(tuple(box))
    return part, tensor, boxes

