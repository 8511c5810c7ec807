"""Layouts of mesh tensors of the ``mpmd`` dialect, as the planner of transfers asks for them."""

import numpy as np

from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir
from hlorewrite.pipelines.mpmd.types import MeshTensor, mesh_tensor, meshes_in_topology
from hlorewrite.pipelines.reshard import Layout, sharded
from hlorewrite.pipelines.reshard.mesh import ReshardMesh


def meshes_of_topology(topology: ir.Attribute, where: str) -> dict[str, ReshardMesh]:
    """The meshes of a program by name, devices numbered mesh by mesh.

    Args:
      topology: the ``topology`` attribute of the program's function.
      where: what errors name.

    Returns:
      Meshes by name.

    Raises:
      InputError: the text holds no mesh.
    """
    return {name: ReshardMesh(mesh.axes, np.array(mesh.device_ids))
            for name, mesh in meshes_in_topology(topology, where).items()}


def layout_of_type(type_: ir.Type, meshes: dict[str, ReshardMesh]) -> tuple[str, Layout, ir.Type] | str:
    """Where the tiles of a mesh tensor lie.

    Args:
      type_: an ``!mpmd.mesh_tensor`` type.
      meshes: the meshes of the program.

    Returns:
      (mesh name, layout, element type); or why it is not known.
    """
    try:
        tensor = mesh_tensor(type_)
    except InputError:
        return "its shape is not static"
    if tensor.mesh not in meshes:
        return "its type names no mesh of the program"
    if tensor.unreduced:
        return "it holds parts of a sum that is still to be made"
    return tensor.mesh, layout_of(tensor, meshes), ir.Type.parse(tensor.element, context=type_.context)


def layout_of(tensor: MeshTensor, meshes: dict[str, ReshardMesh]) -> Layout:
    """Where the tiles of a value lie.

    Args:
      tensor: its type; it names a mesh and holds no parts of a sum.
      meshes: the meshes of the program.

    Returns:
      The layout.
    """
    return sharded(tensor.shape, meshes[tensor.mesh], tensor.spec)
