"""Replica groups of collectives, read, checked and compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir, stablehlo
from hlorewrite.ir.view import View
from hlorewrite.spmd.mesh import mesh_of


@dataclass(frozen=True)
class Groups:
    """Who reduces with whom.

    Attributes:
      rows: the groups in the order of the op, each in the op's member order.
      mode: how ids are meant (StableHLO specification, "Execution of collective ops"): ``flattened_ids``,
        ``cross_partition``, ``cross_replica`` or ``cross_replica_and_partition``.
    """

    rows: tuple[tuple[int, ...], ...]
    mode: str

    @property
    def key(self) -> tuple[str, frozenset[frozenset[int]]]:
        """Equal for collectives whose reductions mean the same."""
        return self.mode, frozenset(frozenset(row) for row in self.rows)

    @property
    def size(self) -> int:
        """Members of one group."""
        return len(self.rows[0]) if self.rows else 0

    def __str__(self) -> str:
        return "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in self.rows) + "}"


def device_count(view: View) -> int | None:
    """How many devices a module runs on: replicas × partitions; None when it does not say."""
    attributes = view.module.operation.attributes
    counts = [ir.IntegerAttr(attributes[name]).value for name in ("mhlo.num_replicas", "mhlo.num_partitions")
              if name in attributes]
    return int(np.prod(counts)) if counts else None


def replica_count(view: View) -> int:
    """How many replicas a module runs as; 1 when it does not say."""
    attributes = view.module.operation.attributes
    return ir.IntegerAttr(attributes["mhlo.num_replicas"]).value if "mhlo.num_replicas" in attributes else 1


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
                raise InputError("a value is placed on one device ({maximal device=...}), so this is no SPMD program",
                                 location=view.source(op),
                                 hint="hlorewrite rewrites programs that every device runs; drop the placement")


def groups_of(op: ir.Operation, view: View) -> Groups | str:
    """The replica groups of a collective.

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
    rows = _dense_rows(attribute) if isinstance(attribute, ir.DenseIntElementsAttr) else _mesh_rows(attribute, view)
    if isinstance(rows, str):
        return rows
    if not rows:
        return "its replica groups are empty"
    return _checked(Groups(rows, mode), _id_count(view, mode))


_WITH_GLOBAL_IDS = {"stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter"}


def id_mode(op: ir.Operation) -> str | None:
    """How a collective means the ids in its groups; None when its attributes contradict each other."""
    has_channel = ("channel_handle" in op.attributes
                   and stablehlo.ChannelHandle(op.attributes["channel_handle"]).handle > 0)
    if op.name not in _WITH_GLOBAL_IDS:
        return "cross_partition" if has_channel else "cross_replica"
    if "use_global_device_ids" in op.attributes:
        return "flattened_ids" if has_channel else None
    return "cross_replica_and_partition" if has_channel else "cross_replica"


def _dense_rows(attribute: ir.DenseIntElementsAttr) -> tuple[tuple[int, ...], ...]:
    table = np.array(attribute)
    if table.ndim != 2 or table.size == 0:
        return ()
    return tuple(tuple(int(member) for member in row if member >= 0) for row in table)


def _mesh_rows(attribute: ir.Attribute, view: View) -> tuple[tuple[int, ...], ...] | str:
    """Groups written as axes of a mesh (``#stablehlo.replica_group_mesh_axes``)."""
    if not stablehlo.ReplicaGroupMeshAxesAttr.isinstance(attribute):
        return f"its replica groups have an unknown form ({str(attribute)[:60]})"
    mesh_axes = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
    mesh = mesh_of(view, mesh_axes.mesh)
    if mesh is None:
        return "its replica groups name a mesh that the module does not hold"
    names = []
    for axis in list(mesh_axes.axes):  # pyright: ignore
        reference = stablehlo.AxisRefAttr(axis)
        if reference.sub_axis_info is not None:
            return "its replica groups use a part of a mesh axis"
        names.append(reference.name)
    others = [name for name, _ in mesh.axes if name not in names]
    rows: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    inside = mesh.coordinates(names)
    for device, place in mesh.coordinates(others).items():
        rows.setdefault(place, []).append((inside[device], device))
    return tuple(tuple(device for _, device in sorted(row)) for row in rows.values())


def _id_count(view: View, mode: str) -> int | None:
    """How many ids there are in a mode; None when the module does not say."""
    if mode == "flattened_ids":
        return device_count(view)
    name = "mhlo.num_partitions" if mode == "cross_partition" else "mhlo.num_replicas"
    attributes = view.module.operation.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else None


_ONE_DEVICE = ("; was it lowered without shardings? JAX takes a step over an abstract mesh for one of a single device "
               "unless its arguments name theirs: "
               "jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))")


def _checked(groups: Groups, count: int | None) -> Groups | str:
    """Groups that partition all ids evenly, or why they do not."""
    members = [member for row in groups.rows for member in row]
    if len(set(members)) != len(members):
        return "a device appears twice in its replica groups"
    if len({len(row) for row in groups.rows}) != 1:
        return "its replica groups are of uneven size"
    if count is None:
        return groups
    what = "replica" if groups.mode.startswith("cross_replica") else "device"
    if any(member >= count for member in members):
        return (f"its replica groups name {what} {max(members)}, and the module has {count}"
                + (_ONE_DEVICE if what == "device" and count == 1 else ""))
    if len(members) != count:
        return f"its replica groups cover {len(members)} of {count} {what}s"
    return groups
