"""The meshes of a program: their sizes, the stages that each runs, and the type of a value on a mesh."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.errors import InputError, PlanError, UsageError
from hlorewrite.ir import View, ir, sdy
from hlorewrite.pipelines.mpmd.types import MeshTensor, mesh_tensor
from hlorewrite.pipelines.passes.split_stages.shardings import Spec
from hlorewrite.pipelines.schedules import make_schedule

_SHAPE = re.compile(r"\(?\s*(\d+(?:\s*x\s*\d+)*)\s*\)?")
SPLIT_BACKWARD = ("zb-h1", "zb-h2", "dualpipe-v")
"""Schedules that run the backward pass in two halves."""


@dataclass(frozen=True)
class ProgramMeshes:
    """The meshes of a program.

    Attributes:
      axes: names of the axes, shared by all meshes.
      shapes: sizes of each mesh along these axes.
      mesh_of: the mesh each stage runs on, shape [stages].
      split_backward: whether backwards come in two halves.
    """

    axes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    mesh_of: tuple[int, ...]
    split_backward: bool

    def name(self, mesh: int) -> str:
        """The name of a mesh."""
        return f"m{mesh}"

    def mesh_text(self, mesh: int) -> str:
        """A mesh as ``#sdy.mesh`` writes it."""
        sizes = ", ".join(f'"{name}"={size}' for name, size in zip(self.axes, self.shapes[mesh], strict=True))
        return f"<[{sizes}]>"

    def attribute_text(self) -> str:
        """The ``topology`` attribute."""
        rows = ", ".join(f'<"{self.name(i)}" : {self.mesh_text(i)}>' for i in range(len(self.shapes)))
        return f"#mpmd.topology<{rows}>"

    def first_stage(self, mesh: int) -> int:
        """The earliest stage of a mesh."""
        return self.mesh_of.index(mesh)

    def divides(self, size: int, axes: Sequence[str], mesh: int) -> bool:
        """Whether a mesh cuts a dimension into equal parts along some axes."""
        sizes = dict(zip(self.axes, self.shapes[mesh], strict=True))
        return size % math.prod(sizes[axis] for axis in axes) == 0

    def place(self, type_: ir.Type, spec: Spec | None, mesh: int) -> MeshTensor:
        """The type of a value on a mesh; a dimension that the mesh cannot cut into equal parts is not cut there."""
        plain = mesh_tensor(type_)
        cuts = tuple(axes if self.divides(size, axes, mesh) else ()
                     for size, axes in zip(plain.shape, spec or ((),) * len(plain.shape), strict=True))
        return MeshTensor(self.name(mesh), plain.tensor, plain.shape, plain.element, plain.bytes, cuts)


def check_argument(topology: ProgramMeshes, type_: ir.Type, spec: Spec | None, mesh: int, name: str,
                   where: str) -> None:
    """Refuses an argument that a mesh cannot cut as requested.

    Raises:
      InputError: it does not divide one of its dimensions.
    """
    shape = ir.RankedTensorType(type_).shape
    for dimension, axes in enumerate(spec or ()):
        if not topology.divides(shape[dimension], axes, mesh):
            sizes = dict(zip(topology.axes, topology.shapes[mesh], strict=True))
            cut = ", ".join(f"{axis}={sizes[axis]}" for axis in axes)
            raise InputError(f"stage {topology.first_stage(mesh)} needs {name} of shape {list(shape)}, whose dimension "
                             f"{dimension} its mesh of {cut} does not divide", location=where,
                             hint="choose sizes that every mesh divides, or do not cut this dimension")


def parse_shapes(text: str, what: str = "meshes") -> tuple[tuple[int, ...], ...]:
    """Reads mesh shapes.

    Args:
      text: ``(8x1),(4x2)``: one shape a mesh, sizes in the order of the axes.
      what: what the text is, for errors.

    Returns:
      The sizes of each mesh.

    Raises:
      UsageError: the text has another form.

    Example:
      >>> parse_shapes("(8x1),(4x2)")
      ((8, 1), (4, 2))
    """
    shapes = []
    for part in text.split(","):
        match = _SHAPE.fullmatch(part.strip())
        if match is None or 0 in (sizes := tuple(int(size) for size in match[1].split("x"))):
            raise UsageError(f'{what}: "{part.strip()}" is not the shape of a mesh', hint="write (4x2),(4x2)")
        shapes.append(sizes)
    return tuple(shapes)


def make_topology(view: View, shapes: str, schedule: str, mesh_of: Sequence[int], stages: int, microbatches: int,
                  *, where: str) -> ProgramMeshes:
    """The topology a step is split for.

    Args:
      view: the view of the step's module; its mesh gives the axes' names.
      shapes: the meshes' shapes as text.
      schedule: the schedule's name.
      mesh_of: the mesh of each stage; empty: as the schedule has it.
      stages: n, how many stages the marks make.
      microbatches: m.
      where: where the last mark is.

    Returns:
      The topology.

    Raises:
      UsageError, PlanError, InputError: meshes, marks and schedule do not fit together.
    """
    sizes = parse_shapes(shapes)
    axes = mesh_axes(view)
    if not axes:
        axes = ("x",) if len(sizes[0]) == 1 else tuple(f"x{i}" for i in range(len(sizes[0])))
    for each in sizes:
        if len(each) != len(axes):
            raise UsageError(f"a mesh of shape {'x'.join(map(str, each))} has {len(each)} axes, but the step has "
                             f"{len(axes)} ({', '.join(axes)})", hint="pass one size per axis for each mesh")
    if mesh_of:
        placed = tuple(mesh_of)
        if len(placed) != stages or set(placed) != set(range(len(sizes))):
            raise UsageError(f"mesh-of places {len(placed)} stages on meshes {sorted(set(placed))}, the marks make "
                             f"{stages} stages, and there are {len(sizes)} meshes", hint="place each stage on a mesh")
    else:
        placed = _by_schedule(schedule, len(sizes), stages, microbatches, where)
    return ProgramMeshes(axes, sizes, placed, schedule in SPLIT_BACKWARD)


def stages_of(schedule: str, meshes: int) -> int:
    """How many stages a schedule runs on a number of meshes; two on each for ``interleaved-1f1b`` and ``dualpipe-v``.

    Example:
      >>> stages_of("dualpipe-v", 4)
      8
    """
    return meshes * (2 if schedule in ("interleaved-1f1b", "dualpipe-v") else 1)


def _by_schedule(schedule: str, meshes: int, stages: int, microbatches: int, where: str) -> tuple[int, ...]:
    chunks = stages // meshes if schedule == "interleaved-1f1b" else 2 if schedule == "dualpipe-v" else 1
    if chunks * meshes != stages or chunks == 0:
        wanted = meshes * max(chunks, 1)
        hint = "pass one mesh for each stage (it may be the same jax.sharding.Mesh), or remove the marks" \
            if wanted == 1 else f"mark stages 1 to {wanted - 1}, or use another number of meshes"
        raise InputError(f"the marks make {stages} stages, and {schedule} on {meshes} "
                         f"mesh{'es' if meshes > 1 else ''} runs {wanted}", location=where, hint=hint)
    try:
        return make_schedule(schedule, meshes, microbatches, chunks).mesh_of
    except PlanError as error:
        raise PlanError(error.what, location=where, hint=error.hint) from None


def mesh_axes(view: View) -> tuple[str, ...]:
    """The names of the axes of the step's mesh; empty when it has none.

    Raises:
      InputError: the step has several meshes of different axes.
    """
    sources: dict[tuple[str, ...], str] = {}
    for op in view.ops("sdy.mesh"):
        names = tuple(sdy.MeshAxisAttr(axis).name for axis in sdy.MeshAttr(op.attributes["mesh"]).axes)
        if names:
            sources.setdefault(names, view.source(op))
    if len(sources) > 1:
        raise InputError(f"the step has meshes of different axes: {', '.join('x'.join(each) for each in sources)}",
                         location=view.module.name, hint="trace the step over one mesh")
    return next(iter(sources), ())
