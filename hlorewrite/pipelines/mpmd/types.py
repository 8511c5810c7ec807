"""Types of the ``mpmd`` dialect. jaxlib has no Python bindings for them, so their text is parsed, here and nowhere
else.
"""

import functools
import math
import re
from dataclasses import dataclass

from hlorewrite.analysis.mesh import Mesh, check_device_count
from hlorewrite.errors import InputError
from hlorewrite.ir import element_bytes, ir, new_context, sdy

_NAMED_MESH = re.compile(r'<"([^"]+)"\s*:\s*(<\[[^\]]*\](?:,\s*device_ids=\[[^\]]*\])?>)>')
_TENSOR = re.compile(r'!mpmd\.mesh_tensor<"([^"]+)",\s*(tensor<(?:[^<>]|<[^<>]*>)*>)')
_SHARDING = re.compile(r"sharding=(<.*>)(?:,\s*memory_kind=\"[^\"]*\")?>$")

Spec = tuple[tuple[str, ...], ...]
"""Per dimension, the mesh axes it is cut over, major first; a part of an axis is written ``name:(before)size``."""


@dataclass(frozen=True)
class MeshTensor:
    """The type of a value of a program.

    Attributes:
      mesh: name of the mesh its tiles are on; empty for a value that is on none, as a loop's index.
      tensor: the global tensor type, as MLIR writes it.
      shape: its shape.
      element: its element type, as MLIR writes it.
      bytes: bytes of the whole tensor; 0 when its element type has no size.
      spec: how it is cut.
      unreduced: axes along which every device holds a part of a sum.
    """

    mesh: str
    tensor: str
    shape: tuple[int, ...]
    element: str
    bytes: int
    spec: Spec
    unreduced: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The type as MLIR writes it.

        Example:
          >>> MeshTensor("m0", "tensor<8xf32>", (8,), "f32", 32, (("data",),)).text
          '!mpmd.mesh_tensor<"m0", tensor<8xf32>, sharding=<@m0, [{"data"}]>>'
        """
        return f'!mpmd.mesh_tensor<"{self.mesh}", {self.tensor}, sharding={self.sharding}>'

    @property
    def sharding(self) -> str:
        """The sharding as ``#sdy.sharding`` writes it, over a mesh with the name of the program's."""
        cuts = ", ".join("{" + ", ".join(_axis_text(axis) for axis in axes) + "}" for axes in self.spec)
        rest = ", unreduced={" + ", ".join(map(_axis_text, self.unreduced)) + "}" if self.unreduced else ""
        return f"<@{self.mesh}, [{cuts}]{rest}>"


def meshes_in_topology(topology: ir.Attribute, where: str) -> dict[str, Mesh]:
    """The meshes of a program by name, devices numbered mesh by mesh.

    Args:
      topology: the ``topology`` attribute of the program's function.
      where: what errors name.

    Returns:
      Meshes by name. A mesh without device ids of its own takes the numbers after those of the meshes before it; one
      that has them keeps them.

    Raises:
      InputError: the text contains no mesh.
    """
    by_name: dict[str, Mesh] = {}
    first = 0
    for name, text in _NAMED_MESH.findall(str(topology)):
        attribute = sdy.MeshAttr(ir.Attribute.parse(f"#sdy.mesh{text}", context=topology.context))
        axes = tuple((sdy.MeshAxisAttr(axis).name, sdy.MeshAxisAttr(axis).size) for axis in attribute.axes)
        size = math.prod(size for _, size in axes)
        check_device_count(first + size)
        ids = tuple(attribute.device_ids)
        by_name[name] = Mesh(axes, ids or tuple(range(first, first + size)))
        first += size
    if not by_name:
        raise InputError(f"the topology cannot be read: {str(topology)[:80]}", location=where,
                         hint="name its meshes and axes")
    return by_name


def mesh_tensor(type_: ir.Type) -> MeshTensor:
    """Reads a type.

    Args:
      type_: an ``!mpmd.mesh_tensor``, or a tensor that is on no mesh.

    Returns:
      The type as data.

    Raises:
      InputError: it is not a tensor of a static shape.
    """
    return _mesh_tensor(str(type_))


@functools.lru_cache(maxsize=1 << 12)
def _mesh_tensor(text: str) -> MeshTensor:
    """The same, of its text: a program has few types and is read several times."""
    head, context = _TENSOR.match(text), _scratch_context()
    tensor = ir.Type.parse(head[2] if head else text, context=context)
    if not isinstance(tensor, ir.RankedTensorType) or not tensor.has_static_shape:
        raise InputError(f"a value of type {text[:80]} has no static shape", hint="use tensors of fixed shape")
    size = element_bytes(tensor.element_type)
    spec, unreduced = _sharding(text, context) if head else ((), ())
    spec = spec or ((),) * tensor.rank
    return MeshTensor(head[1] if head else "", str(tensor), tuple(tensor.shape), element=str(tensor.element_type),
                      bytes=int(math.prod(tensor.shape) * size), spec=spec, unreduced=unreduced)


@functools.cache
def _scratch_context() -> ir.Context:
    """Where types are parsed again, whatever context they are from."""
    return new_context(load=False)


def _sharding(text: str, context: ir.Context) -> tuple[Spec, tuple[str, ...]]:
    written = _SHARDING.search(text)
    if written is None:
        return (), ()
    sharding = sdy.TensorShardingAttr(ir.Attribute.parse(f"#sdy.sharding{written[1]}", context=context))
    spec = tuple(tuple(_axis(axis) for axis in sdy.DimensionShardingAttr(dim).axes)
                 for dim in sharding.dimension_shardings)
    return spec, tuple(_axis(axis) for axis in sharding.unreduced_axes)


def _axis(axis: ir.Attribute) -> str:
    """An axis, a part of one as ``name:(before)size``."""
    reference = sdy.AxisRefAttr(axis)
    part = reference.sub_axis_info
    if part is None:
        return reference.name
    info = sdy.SubAxisInfoAttr(part)
    return f"{reference.name}:({info.pre_size}){info.size}"


def _axis_text(axis: str) -> str:
    name, colon, part = axis.partition(":")
    return f'"{name}"{colon}{part}'


def device_bytes(type_: MeshTensor, mesh: Mesh) -> float:
    """Bytes of a value on one device.

    Example:
      >>> device_bytes(MeshTensor("m0", "tensor<8xf32>", (8,), "f32", 32, (("data",),)), Mesh((("data", 4),), (0,) * 4))
      8.0
    """
    sizes = dict(mesh.axes)
    parts = math.prod(int(axis.rpartition(")")[2]) if ":" in axis else sizes[axis]
                      for axes in type_.spec for axis in axes)
    return type_.bytes / parts
