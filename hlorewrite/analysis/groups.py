"""Replica groups of collectives, read, checked and compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hlorewrite.analysis.mesh import Mesh, mesh_of
from hlorewrite.errors import InputError
from hlorewrite.ir import Editor, View, collectives, ir, stablehlo
from hlorewrite.util.sizes import MOST_DEVICES

CHANNEL_ID = "channel_id"
Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class AxisPart:
    """A mesh axis, or a part of one: ``"x":(2)4`` is the part of size 4 below one of size 2 (Shardy, "Sub-axes").

    Attributes:
      name: the name of the axis.
      before: the size of the part that varies more slowly.
      size: its own size; 0 for the whole axis.
    """

    name: str
    before: int = 1
    size: int = 0


@dataclass(frozen=True)
class Groups:
    """The device groups of a collective.

    Attributes:
      rows: the groups in the order of the op, each in the op's member order.
      mode: how ids are interpreted (StableHLO specification, "Execution of collective ops"): ``flattened_ids``,
        ``cross_partition``, ``cross_replica`` or ``cross_replica_and_partition``.
    """

    rows: Rows
    mode: str

    @cached_property
    def key(self) -> tuple[str, frozenset[frozenset[int]]]:
        """A key, equal for collectives that reduce over the same groups."""
        return self.mode, frozenset(frozenset(row) for row in self.rows)

    @property
    def size(self) -> int:
        """Members of one group."""
        return len(self.rows[0]) if self.rows else 0

    def __str__(self) -> str:
        return "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in self.rows) + "}"


def device_count(view: View) -> int | None:
    """How many devices a module runs on: replicas × partitions; None when it does not say."""
    counts = [count for name in ("mhlo.num_replicas", "mhlo.num_partitions")
              if (count := _stated(view, name)) is not None]
    return math.prod(counts) if counts else None


def replica_count(view: View) -> int:
    """How many replicas a module runs as; 1 when it does not say."""
    replicas = _stated(view, "mhlo.num_replicas")
    return 1 if replicas is None else replicas


def partition_count(view: View) -> int | None:
    """How many partitions a module runs as; None when it does not say."""
    return _stated(view, "mhlo.num_partitions")


def process_groups(rows: Rows, mode: str | None, replicas: int, partitions: int) -> Rows:
    """StableHLO's flattened process groups, in which process (r, p) has the id r * partitions + p.

    Args:
      rows: the groups that a collective lists; for a permute, the (source, target) pairs.
      mode: how it interprets the ids (``id_mode``).
      replicas: number of replicas.
      partitions: number of partitions.

    Returns:
      Groups of process ids.

    Example:
      >>> process_groups(((0, 1),), "cross_replica", 2, 2)
      ((0, 2), (1, 3))
      >>> process_groups(((0,),), "cross_replica_and_partition", 1, 4)
      ((0, 1, 2, 3),)
    """
    if mode == "flattened_ids" or (mode == "cross_partition" and replicas == 1):
        return rows
    if mode == "cross_partition":
        return tuple(tuple(r * partitions + p for p in row) for r in range(replicas) for row in rows)
    if mode == "cross_replica":
        return tuple(tuple(r * partitions + p for r in row) for p in range(partitions) for row in rows)
    if mode == "cross_replica_and_partition":
        return tuple(tuple(r * partitions + p for p in range(partitions) for r in row) for row in rows)
    return tuple(tuple(row) for row in rows)


def refuse_placed_ops(view: View) -> None:
    """Refuses programs that are not SPMD: those that place values on single devices.

    Args:
      view: the module.

    Raises:
      InputError: an argument or result of a function says ``{maximal device=N}``. (Callbacks of SPMD programs say so
        too, and are left alone.)
    """
    for op in view.ops("func.func"):
        for name in ("arg_attrs", "res_attrs"):
            text = str(op.attributes[name]) if name in op.attributes else ""
            if "{maximal device=" in text:
                raise InputError("a value is placed on one device ({maximal device=...}), so it is not SPMD",
                                 location=view.source(op),
                                 hint="hlorewrite rewrites programs that every device runs; drop the placement")


def groups_of(op: ir.Operation, view: View) -> Groups | str:
    """The replica groups of a collective, for analyses and rewrites: each row contains all members of its group.

    Args:
      op: a collective with ``replica_groups``.
      view: the module it is in, for meshes and the device count.

    Returns:
      The groups, or a sentence saying why they are ill-formed or not rewritten.
    """
    if collectives.DYNAMIC_ROOT in op.attributes:
        return "an operand decides which member of a group it sends from"
    groups = written_groups(op, view)
    if isinstance(groups, str):
        return groups
    if groups.mode != "cross_replica_and_partition" or partition_count(view) == 1:
        return _misfit(op, groups.size) or groups
    return ("its replica groups join all partitions of their replicas (it has a channel and no use_global_device_ids), "
            "a form that is reported and not rewritten")


def _misfit(op: ir.Operation, size: int) -> str:
    """Why shapes contradict the size of a group (StableHLO: "all_gather", C6; "reduce_scatter", C8; "all_to_all", C9).

    MLIR's verifier lets such ops pass. Dynamic sizes are unknown, so no memory budget could bound what is kept.
    """
    if any(isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape
           for value in (*op.operands, *op.results)):
        return "its size is known only at run time"
    row = collectives.BY_OP[op.name]
    if not row.larger and collectives.SPLIT_COUNT not in row.dimensions:
        return ""
    if not row.larger:
        count = ir.IntegerAttr(op.attributes[collectives.SPLIT_COUNT]).value
        return "" if count == size else f"it splits {count} ways, but its groups have {size} members"
    dimension = ir.IntegerAttr(op.attributes[row.dimensions[0]]).value
    pairs = list(zip(op.operands, op.results, strict=False))
    for small, large in pairs if row.larger == "result" else [(after, before) for before, after in pairs]:
        before, after = (ir.RankedTensorType(value.type).shape[dimension] for value in (small, large))
        if after != before * size:
            return f"it splits {before} rows into {after} or joins them, but its groups have {size} members"
    return ""


def written_groups(op: ir.Operation, view: View) -> Groups | str:
    """The replica groups of a collective as its attributes list them, in any mode.

    In mode ``cross_replica_and_partition`` the ids name replicas, and a group is larger than its row: ask
    ``process_groups`` who participates.

    Args:
      op: a collective with ``replica_groups``.
      view: the module it is in, for meshes and the device count.

    Returns:
      The groups, or a sentence why they are ill-formed.
    """
    attribute = op.attributes.get("replica_groups", None)
    mode = id_mode(op)
    if mode is None:
        return "it uses global device ids without a channel id"
    if attribute is None:
        return "it has no replica groups"
    count = _id_count(view, mode)
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return view.memoize(("groups", attribute, mode, count),
                            lambda: _checked(_dense_rows(attribute, count), mode, count))
    rows = _mesh_rows(attribute, view)
    return rows if isinstance(rows, str) else _checked(rows, mode, count)


def ragged_groups(op: ir.Operation, view: View) -> Groups | str:
    """The groups of the custom call that JAX emits for a ``ragged-all-to-all``; they are in its ``backend_config``.

    Args:
      op: a ``stablehlo.custom_call`` of the target ``ragged_all_to_all``.
      view: the module it is in, for the device count.

    Returns:
      The groups, or a sentence why they cannot be read.
    """
    config = op.attributes.get("backend_config", None)
    if not isinstance(config, ir.DictAttr) or collectives.REPLICA_GROUPS not in config:
        return "its backend_config does not name its replica groups"
    attribute = config[collectives.REPLICA_GROUPS]
    if not isinstance(attribute, ir.DenseIntElementsAttr):
        return "its replica groups have an unknown form"
    has_channel = CHANNEL_ID in config and ir.IntegerAttr(config[CHANNEL_ID]).value > 0
    mode = "cross_partition" if has_channel else "cross_replica"
    count = _id_count(view, mode)
    return _checked(_dense_rows(attribute, count), mode, count)


def device_groups(op: ir.Operation, view: View) -> Rows | str:
    """The groups of a collective as device numbers, in all four modes; for a permute, the (source, target) pairs.

    Args:
      op: a collective, or the custom call of a ``ragged-all-to-all``.
      view: the module it is in.

    Returns:
      The groups, or a sentence why they cannot be read.
    """
    replicas = replica_count(view)
    partitions = max((device_count(view) or 1) // replicas, 1)
    if op.name == collectives.COLLECTIVE_PERMUTE.op:
        pairs = written_pairs(op, view)
        return pairs if isinstance(pairs, str) else process_groups(pairs, id_mode(op), replicas, partitions)
    groups = ragged_groups(op, view) if op.name == "stablehlo.custom_call" else written_groups(op, view)
    return groups if isinstance(groups, str) else process_groups(groups.rows, groups.mode, replicas, partitions)


def group_members(op: ir.Operation, view: View) -> int:
    """The number of devices in the largest group of a collective; 0 if it is not known.

    Args:
      op: a collective.
      view: the module it is in.
    """
    groups = written_groups(op, view) if collectives.SOURCE_TARGET_PAIRS not in op.attributes else "it has pairs"
    if isinstance(groups, str):
        return 0
    whole = groups.mode == "cross_replica_and_partition"
    return max(map(len, groups.rows)) * ((partition_count(view) or 1) if whole else 1)


def written_pairs(op: ir.Operation, view: View) -> Rows | str:
    """The (source, target) pairs of a permute, in the ids of its mode.

    Args:
      op: a ``collective_permute``.
      view: the module it is in, for the device count.

    Returns:
      The pairs, or a sentence why the specification forbids them ("collective_permute", C4; MLIR's verifier checks
      the other constraints).
    """
    attribute, mode = op.attributes[collectives.SOURCE_TARGET_PAIRS], id_mode(op)
    count = None if mode is None else _id_count(view, mode)
    return view.memoize(("pairs", attribute, mode, count),  # groups may be the same attribute
                        lambda: _checked_pairs(ir.DenseIntElementsAttr(attribute), mode, count))


def _checked_pairs(attribute: ir.DenseIntElementsAttr, mode: str | None, count: int | None) -> Rows | str:
    pairs = tuple((source, target) for source, target in id_table(attribute).reshape(-1, 2).tolist())
    named = [member for pair in pairs for member in pair]
    if named and (min(named) < 0 or (count is not None and max(named) >= count)):
        what = "replica" if mode == "cross_replica" else "device"
        worst = min(named) if min(named) < 0 else max(named)
        return f"its source-target pairs name {what} {worst}" + (f", but the module has {count}" if count else "")
    return pairs


def id_mode(op: ir.Operation) -> str | None:
    """How a collective interprets the ids in its groups; None when its attributes contradict each other."""
    has_channel = ("channel_handle" in op.attributes
                   and stablehlo.ChannelHandle(op.attributes["channel_handle"]).handle > 0)
    return mode_of(op.name in collectives.WITH_GLOBAL_IDS, has_channel, "use_global_device_ids" in op.attributes)


def mode_of(takes_global_ids: bool, has_channel: bool, global_ids: bool) -> str | None:
    """How a collective interprets its ids, from its attributes; the same in StableHLO and HLO text.

    Args:
      takes_global_ids: whether the op has an attribute ``use_global_device_ids``.
      has_channel: whether it has a channel.
      global_ids: whether ``use_global_device_ids`` is set.

    Returns:
      The mode; None when global ids are set without a channel.

    Example:
      >>> mode_of(True, True, True), mode_of(True, True, False), mode_of(False, True, False)
      ('flattened_ids', 'cross_replica_and_partition', 'cross_partition')
    """
    if not takes_global_ids:
        return "cross_partition" if has_channel else "cross_replica"
    if global_ids:
        return "flattened_ids" if has_channel else None
    return "cross_replica_and_partition" if has_channel else "cross_replica"


def id_table(attribute: ir.DenseIntElementsAttr) -> np.ndarray:
    """The ids that groups or pairs list, in the shape of the attribute.

    Args:
      attribute: the groups or pairs; a splat, one number for all, may make a large table of a short text.

    Raises:
      InputError: there are more than two for each of ``MOST_DEVICES``.
    """
    if math.prod(ir.RankedTensorType(attribute.type).shape) > 2 * MOST_DEVICES:
        raise InputError(f"the groups of a collective are a table of type {attribute.type}",
                         hint=f"at most {MOST_DEVICES} devices are read")
    return np.array(attribute)


def _dense_rows(attribute: ir.DenseIntElementsAttr, count: int | None) -> Rows:
    """Groups written as lists; an empty list means one group of all (XLA, "AllReduce", ``replica_groups``)."""
    table = id_table(attribute)
    if table.size == 0 and table.shape[:1] == (0,) and count:
        return (tuple(range(count)),)
    if table.ndim != 2 or table.size == 0:
        return ()
    return tuple(tuple(member for member in row if member >= 0) for row in table.tolist())


def _mesh_rows(attribute: ir.Attribute, view: View) -> Rows | str:
    """Groups written as axes of a mesh (``#stablehlo.replica_group_mesh_axes``)."""
    if not stablehlo.ReplicaGroupMeshAxesAttr.isinstance(attribute):
        return f"its replica groups have an unknown form ({str(attribute)[:60]})"
    mesh_axes = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
    mesh = mesh_of(view, mesh_axes.mesh)
    if mesh is None:
        return "its replica groups name a mesh that the module does not contain"
    parts: list[AxisPart] = []
    for axis in list(mesh_axes.axes):  # pyright: ignore
        if isinstance(axis, ir.StringAttr):  # as XLA's export of Shardy writes a whole axis
            part = AxisPart(axis.value)
        elif stablehlo.AxisRefAttr.isinstance(axis):
            reference = stablehlo.AxisRefAttr(axis)
            written: Any = reference.sub_axis_info
            info = None if written is None else stablehlo.SubAxisInfoAttr(written)
            part = AxisPart(reference.name, info.pre_size, info.size) if info else AxisPart(reference.name)
        else:
            return f"its replica groups name mesh axes in an unknown form ({str(axis)[:60]})"
        if part.name not in dict(mesh.axes):
            return f'its replica groups name the axis "{part.name}", which the mesh does not have'
        parts.append(part)
    return _rows_along(mesh, parts)


def _rows_along(mesh: Mesh, parts: Sequence[AxisPart]) -> Rows | str:
    """The groups of devices that differ only along parts of axes, each in the order of the parts."""
    strides, sizes = [], dict(mesh.axes)
    for part in parts:
        size = part.size or sizes[part.name]
        if part.before < 1 or size < 1 or sizes[part.name] % (part.before * size):
            return f'its replica groups use a part of the axis "{part.name}" that does not divide it'
        strides.append((part.name, sizes[part.name] // (part.before * size), size))
    spans = sorted((name, stride, stride * size) for name, stride, size in strides)
    if any(one[0] == next_[0] and (one[2] > next_[1] or next_[1] % one[2]) for one, next_ in pairwise(spans)):
        return "its replica groups use parts of an axis that overlap"
    names = [name for name, _ in mesh.axes]
    rows: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for device, place in mesh.coordinates(names).items():
        at = dict(zip(names, place, strict=True))
        inside = tuple(at[name] // stride % size for name, stride, size in strides)
        for digit, (name, stride, _) in zip(inside, strides, strict=True):
            at[name] -= digit * stride
        rows.setdefault(tuple(at.values()), []).append((inside, device))
    return tuple(tuple(device for _, device in sorted(row)) for row in rows.values())


def _id_count(view: View, mode: str) -> int | None:
    """The number of ids in a mode; None when the module does not say."""
    if mode == "flattened_ids":
        return device_count(view)
    return _stated(view, "mhlo.num_partitions" if mode == "cross_partition" else "mhlo.num_replicas")


def _stated(view: View, name: str) -> int | None:
    attributes = view.module.operation.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else None


_ONE_DEVICE = ("; was it lowered without shardings? JAX assumes a single device for a step over an abstract mesh "
               "unless its arguments name theirs: "
               "jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))")


def _checked(rows: Rows, mode: str, count: int | None) -> Groups | str:
    """The groups if they partition all ids evenly, or why they do not."""
    if not rows:
        return ("its replica groups are empty, which means all devices, and the module does not say how many there are "
                "(mhlo.num_replicas, mhlo.num_partitions)" if count is None else "its replica groups are empty")
    groups = Groups(rows, mode)
    members = [member for row in groups.rows for member in row]
    if len(set(members)) != len(members):
        return "a device appears twice in its replica groups"
    if len({len(row) for row in groups.rows}) != 1:
        return "its replica groups are of uneven size"
    if count is None:
        return groups
    what = "replica" if groups.mode.startswith("cross_replica") else "device"
    if any(member >= count for member in members):
        return (f"its replica groups name {what} {max(members)}, but the module has {count}"
                + (_ONE_DEVICE if what == "device" and count == 1 else ""))
    if len(members) != count:
        return f"its replica groups cover {len(members)} of {count} {what}s"
    return groups


# ---- replica groups and pairs written as lists, including groups that name mesh axes


def list_groups(editor: Editor) -> int:
    """Writes the groups of every collective of a module as lists.

    Args:
      editor: the editor of the module. Groups that cannot be read stay as they are.

    Returns:
      How many collectives changed.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> list_groups(Editor(View(parse("func.func @main() { return }"))))
      0
    """
    changed = 0
    for op in editor.view.ops(*collectives.COLLECTIVES):
        attribute = op.attributes.get(collectives.REPLICA_GROUPS, None)
        if attribute is None or isinstance(attribute, ir.DenseIntElementsAttr):
            continue
        groups = written_groups(op, editor.view)
        if isinstance(groups, str):
            continue
        editor.set_attribute(op, collectives.REPLICA_GROUPS, rows_attribute(op.context, groups.rows))
        changed += 1
    return changed


def rows_attribute(context: ir.Context, rows: Sequence[Sequence[int]]) -> ir.Attribute:
    """Groups or pairs as StableHLO writes them.

    Args:
      context: the context of the module they are for.
      rows: the groups, of one size, or the (source, target) pairs.
    """
    with context, ir.Location.unknown():
        return ir.DenseElementsAttr.get(np.array(rows, dtype=np.int64).data)
