"""The shardings of a step's arguments and results, and the single mesh it is traced over before it is split."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.passmanager.base import Pass
from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.schedules import Schedule

MeshLike = jax.sharding.Mesh | tuple[int, ...]


@dataclass(frozen=True)
class StageMeshes:
    """The meshes of a pipeline.

    Attributes:
      axes: names of the axes, shared by all meshes.
      shapes: sizes of each mesh.
      devices: the devices of each mesh in row-major order; None: as many of ``jax.devices()`` as are needed.
    """

    axes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    devices: tuple[tuple[Any, ...], ...] | None

    @property
    def text(self) -> str:
        """The shapes as ``split-stages`` reads them.

        Example:
          >>> StageMeshes(("data", "tensor"), ((8, 1), (4, 2)), None).text
          '(8x1),(4x2)'
        """
        return ",".join("(" + "x".join(map(str, shape)) + ")" for shape in self.shapes)

    def traced(self) -> AbstractMesh:
        """The mesh a step is traced over: each axis has its smallest size above 1, so that no cut is lost."""
        sizes = [min((size for size in column if size > 1), default=1) for column in zip(*self.shapes, strict=True)]
        return AbstractMesh(tuple(sizes), self.axes, axis_types=(AxisType.Auto,) * len(sizes))

    def by_name(self) -> dict[str, Sequence[Any]] | None:
        """The devices of each mesh under the program's names."""
        return None if self.devices is None else {f"m{i}": each for i, each in enumerate(self.devices)}

    def processes(self) -> tuple[int, ...]:
        """The processes with devices of the meshes."""
        return tuple(sorted({device.process_index for device in self.all_devices()}))

    def all_devices(self) -> list[Any]:
        """The devices of all meshes, mesh by mesh."""
        return jax.devices()[:sum(map(math.prod, self.shapes))] if self.devices is None else \
            list(dict.fromkeys(device for mesh in self.devices for device in mesh))

    @property
    def platform(self) -> str:
        """The target that the step is lowered for."""
        return (self.devices[0][0] if self.devices else jax.devices()[0]).platform


@dataclass(frozen=True)
class PipelineSettings:
    """The requested form of a pipelined step.

    Attributes:
      meshes: the meshes.
      schedule: a schedule or the name of one.
      microbatches: m; None: as many as the step's loop runs.
      passes: passes that run on the program.
      in_specs: how arguments are placed.
      out_specs: how results are placed.
      shared: what happens to sums that several stages add to, as for ``split-stages``.
      topology: the cluster, for plans of transfers.
      timeout_s: how long another process may keep this one waiting.
      stages: ``marked``, ``auto``, or cuts: what ``split-stages`` takes.
      share_fragments: whether the pass ``share-fragments`` runs before fragments are compiled; None: on CPU.
    """

    meshes: StageMeshes
    schedule: str | Schedule
    microbatches: int | None
    passes: tuple[Pass, ...]
    in_specs: Any
    out_specs: Any
    shared: str
    topology: str
    timeout_s: float
    stages: str | tuple[int, ...] = "marked"
    share_fragments: bool | None = None


def checked_stages(stages: str | Sequence[int]) -> str | tuple[int, ...]:
    """Reads the ``stages`` of a pipeline.

    Raises:
      UsageError: they are neither a name nor cuts.
    """
    if isinstance(stages, str) and stages in ("marked", "auto"):
        return stages
    if not isinstance(stages, str) and stages and all(isinstance(each, int) and each > 0 for each in stages):
        return tuple(stages)
    raise UsageError(f"stages={stages!r} is neither a name nor cuts",
                     hint='pass "marked", "auto", or the cuts that "auto" chose, such as (120, 240)')


def stage_meshes(meshes: Sequence[MeshLike], axes: Sequence[str] | None) -> StageMeshes:
    """Reads the ``meshes`` of a pipeline.

    Args:
      meshes: ``jax.sharding.Mesh`` objects, or shapes such as ``(4, 2)``, one per mesh.
      axes: names of the axes if shapes are given; ``("data", "tensor")`` by default, or ``("data",)`` for one axis.

    Returns:
      The meshes.

    Raises:
      UsageError: there are none, or their axes differ.
    """
    if not meshes:
        raise UsageError("a pipeline without meshes", hint="pass meshes=[...], one for each stage")
    if all(isinstance(mesh, jax.sharding.Mesh) for mesh in meshes):
        real: list[Any] = list(meshes)
        if len({mesh.axis_names for mesh in real}) > 1:
            raise UsageError("the meshes have different axes: " + ", ".join(str(mesh.axis_names) for mesh in real),
                             hint="give all meshes the same axes, some of size 1")
        return StageMeshes(tuple(map(str, real[0].axis_names)), tuple(mesh.devices.shape for mesh in real),
                           tuple(tuple(mesh.devices.flat) for mesh in real))
    shapes = tuple(tuple(mesh) for mesh in meshes if isinstance(mesh, tuple | list))
    if len(shapes) != len(meshes) or not all(isinstance(size, int) and size > 0 for shape in shapes for size in shape):
        raise UsageError(f"meshes={meshes!r} are neither meshes nor shapes",
                         hint="pass jax.sharding.Mesh objects, or shapes such as (4, 2)")
    names = tuple(axes) if axes is not None else ("data", "tensor")[:len(shapes[0])]
    if any(len(shape) != len(names) for shape in shapes):
        raise UsageError(f"the meshes have shapes {', '.join(map(str, shapes))} and axes {', '.join(names)}",
                         hint="pass one size per axis for every mesh, and the names as axes=(...)")
    return StageMeshes(names, shapes, None)


def argument_shardings(mesh: AbstractMesh, specs: Any, args: tuple, kwargs: dict, microbatches: int | None) -> Any:
    """The arguments as shapes with shardings.

    Args:
      mesh: the mesh to trace over.
      specs: a prefix pytree of ``PartitionSpec`` or None (replicated) for the positional arguments; None altogether:
        everything is replicated but the last positional argument, the batch, whose rows are cut over the first axis.
      args: positional arguments, arrays or shapes; static ones are None.
      kwargs: named ones, always replicated.
      microbatches: m; in the default, a leading dimension of that size is the micro-batches' and rows come next.

    Returns:
      (args, kwargs) with ``jax.ShapeDtypeStruct`` as leaves.

    Raises:
      UsageError: a spec names an unknown axis, does not fit its argument, or the mesh does not divide a dimension.
    """
    if specs is None:
        specs = (*(P() for _ in args[:-1]), *(_rows_first(mesh, each, microbatches) for each in args[-1:]))
    elif isinstance(specs, P):
        specs = tuple(specs for _ in args)
    if len(specs) != len(args):
        raise UsageError(f"in_specs has {len(specs)} entries, but the step takes {len(args)} positional arguments",
                         hint="pass one entry for each")
    laid_out = []
    for position, (spec, arg) in enumerate(zip(specs, args, strict=True)):
        full = spread(spec, arg, f"in_specs[{position}]")
        laid_out.append(jax.tree_util.tree_map_with_path(
            lambda path, leaf, each, position=position: _shaped(
                mesh, leaf, each, f"argument {position}{jax.tree_util.keystr(path)}"), arg, full))
    named = jax.tree.map(lambda leaf: _shaped(mesh, leaf, P(), "argument"), kwargs)
    return tuple(laid_out), named


def spread(specs: Any, tree: Any, what: str) -> Any:
    """A prefix of specs over a whole tree; None stands for replicated.

    Raises:
      UsageError: it is not a prefix.
    """
    def leaf(x: Any) -> bool:
        return x is None or isinstance(x, P)

    try:
        return jax.tree.map(lambda spec, part: jax.tree.map(lambda _: P() if spec is None else spec, part), specs, tree,
                            is_leaf=leaf)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{what} is not a prefix of the pytree ({str(error).splitlines()[0]})",
                         hint="pass one PartitionSpec for a whole subtree, or the same structure") from None


def _rows_first(mesh: AbstractMesh, batch: Any, microbatches: int | None) -> Any:
    def spec(leaf: Any) -> P:
        shape = jnp.shape(leaf)
        if not shape:
            return P()
        if microbatches is not None and len(shape) > 1 and shape[0] == microbatches:
            return P(None, mesh.axis_names[0])
        return P(mesh.axis_names[0])

    return jax.tree.map(spec, batch)


def _shaped(mesh: AbstractMesh, leaf: Any, spec: P, what: str) -> jax.ShapeDtypeStruct:
    type_ = leaf if isinstance(leaf, jax.ShapeDtypeStruct | StageArray) else jax.typeof(leaf)
    check_spec(mesh, spec, type_.shape, what)
    return jax.ShapeDtypeStruct(type_.shape, type_.dtype, sharding=NamedSharding(mesh, spec),
                                weak_type=getattr(type_, "weak_type", False))


def check_spec(mesh: AbstractMesh, spec: P, shape: tuple[int, ...], what: str) -> None:
    """Refuses specs that cannot be.

    Raises:
      UsageError: unknown axes, too many dimensions, or a dimension the mesh does not divide.
    """
    sizes = dict(mesh.shape)
    if len(spec) > len(shape):
        raise UsageError(f"{what} of shape {list(shape)} has fewer dimensions than {spec}", hint="shorten the spec")
    for dimension, entry in enumerate(spec):
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        for name in names:
            if name not in sizes:
                raise UsageError(f'{what}: there is no mesh axis "{name}"', hint=did_you_mean(str(name), sizes))
        parts = math.prod(sizes[name] for name in names)
        if shape[dimension] % parts:
            raise UsageError(f"{what} of shape {list(shape)} cannot be cut into {parts} along dimension {dimension} "
                             f"({spec})", hint="choose a size that the mesh divides, or another spec")


def uncut_microbatches(meshes: StageMeshes, arguments: Any, microbatches: int) -> list[str]:
    """The remark about arguments sharded by rows whose micro-batches a mesh does not divide.

    Args:
      meshes: the meshes.
      arguments: the arguments as shapes with shardings.
      microbatches: m.

    Returns:
      One sentence for each argument.
    """
    said = []
    for path, leaf in jax.tree.leaves_with_path(arguments):
        entry = leaf.sharding.spec[0] if len(leaf.sharding.spec) else None
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        if not names or leaf.shape[0] % microbatches or leaf.shape[0] == microbatches:  # or [m, rows, ...]
            continue
        rows = leaf.shape[0] // microbatches
        parts = {math.prod(dict(zip(meshes.axes, shape, strict=True))[name] for name in names)
                 for shape in meshes.shapes}
        wrong = sorted(count for count in parts if rows % count)
        if wrong:
            said.append(f"argument {path[1].idx if len(path) > 1 else 0}{jax.tree_util.keystr(path[2:])} has "
                        f"{leaf.shape[0]} rows: {wrong[0]} does not divide the {rows} rows of a micro-batch, so every "
                        f"device of such a mesh computes all of them; use a number of rows that "
                        f"{microbatches * math.lcm(*parts)} divides")
    return said


def result_shardings(mesh: AbstractMesh, specs: Any, outputs: Any, donated: Sequence[jax.ShapeDtypeStruct]) -> Any:
    """Shardings for a step's results; None if propagation is to choose.

    Args:
      mesh: the mesh to trace over.
      specs: a prefix pytree of ``PartitionSpec``; None: a result that can take the place of a donated argument of its
        shape and dtype gets that argument's sharding, and propagation chooses the rest.
      outputs: shapes of the results.
      donated: the donated arguments, in order.

    Returns:
      A pytree like ``outputs``.
    """
    if specs is not None:
        return jax.tree.map(lambda leaf, spec: _result(mesh, leaf, spec), outputs, spread(specs, outputs, "out_specs"))
    free: dict[tuple, list[Any]] = {}
    for type_ in donated:
        free.setdefault((type_.shape, type_.dtype), []).append(type_.sharding)
    flat, tree = jax.tree.flatten(outputs)
    chosen = []
    for type_ in flat:
        shardings = free.get((type_.shape, type_.dtype))
        chosen.append(shardings.pop(0) if shardings else None)
    return jax.tree.unflatten(tree, chosen)


def _result(mesh: AbstractMesh, leaf: Any, spec: P) -> NamedSharding:
    check_spec(mesh, spec, leaf.shape, "a result")
    return NamedSharding(mesh, spec)
