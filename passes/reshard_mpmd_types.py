"""Layouts of mesh tensors of the ``mpmd`` dialect; jaxlib has no Python face for its types, so their text is read."""

from __future__ import annotations

import math
import re

import numpy as np

from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir, sdy
from hlorewrite.plan.reshard import Layout, sharded
from hlorewrite.plan.reshard.mesh import Mesh

_NAMED_MESH = re.compile(r'<"([^"]+)"\s*:\s*(<\[[^\]]*\](?:,\s*device_ids=\[[^\]]*\])?>)>')
_TENSOR = re.compile(r'!mpmd\.mesh_tensor<"([^"]+)",\s*(tensor<[^>]*>+)')
_SHARDING = re.compile(r"sharding=(<.*>)(?:,\s*memory_kind=\"[^\"]*\")?>$")


def meshes_of_topology(topology: ir.Attribute, where: str) -> dict[str, Mesh]:
    """The meshes of a program by name, devices numbered mesh by mesh.

    Args:
      topology: the ``topology`` attribute of the program's function.
      where: what errors name.

    Returns:
      Meshes by name. A mesh without device ids of its own takes the numbers after those of the meshes before it; one
      that has them keeps them.

    Raises:
      InputError: the text holds no mesh.
    """
    found: dict[str, Mesh] = {}
    first = 0
    for name, text in _NAMED_MESH.findall(str(topology)):
        attribute = sdy.MeshAttr(ir.Attribute.parse(f"#sdy.mesh{text}", context=topology.context))
        axes = tuple((sdy.MeshAxisAttr(axis).name, sdy.MeshAxisAttr(axis).size) for axis in attribute.axes)
        size = math.prod(size for _, size in axes)
        ids = list(attribute.device_ids)
        found[name] = Mesh(axes, np.array(ids) if ids else np.arange(first, first + size))
        first += size
    if not found:
        raise InputError(f"the topology cannot be read: {str(topology)[:80]}", location=where,
                         hint="name its meshes and axes")
    return found


def layout_of_type(kind: ir.Type, meshes: dict[str, Mesh]) -> tuple[str, Layout, ir.Type] | str:
    """Where the tiles of a mesh tensor lie.

    Args:
      kind: an ``!mpmd.mesh_tensor`` type.
      meshes: the meshes of the program.

    Returns:
      (mesh name, layout, element type); or why it is not known.
    """
    text = str(kind)
    head = _TENSOR.match(text)
    if head is None or head[1] not in meshes:
        return "its type names no mesh of the program"
    tensor = ir.Type.parse(head[2], context=kind.context)
    if not isinstance(tensor, ir.RankedTensorType) or not tensor.has_static_shape:
        return "its shape is not static"
    written = _SHARDING.search(text)
    spec: list[tuple[str, ...]] = []
    if written is not None:
        sharding = sdy.TensorShardingAttr(ir.Attribute.parse(f"#sdy.sharding{written[1]}", context=kind.context))
        if list(sharding.unreduced_axes):
            return "it holds parts of a sum that is still to be made"
        spec = [tuple(_axis(axis) for axis in sdy.DimensionShardingAttr(dim).axes)
                for dim in sharding.dimension_shardings]
    return head[1], sharded(tensor.shape, meshes[head[1]], spec), tensor.element_type


def _axis(axis: ir.Attribute) -> str:
    """An axis as the planner writes it, a part of one as ``name:(before)size``."""
    reference = sdy.AxisRefAttr(axis)
    part = reference.sub_axis_info
    if part is None:
        return reference.name
    info = sdy.SubAxisInfoAttr(part)
    return f"{reference.name}:({info.pre_size}){info.size}"
