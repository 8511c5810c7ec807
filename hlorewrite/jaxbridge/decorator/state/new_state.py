"""State in another form: shapes and shardings that a pass has changed, and sums of what each device holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.ir.binding import ir, sdy
from hlorewrite.jaxbridge.xla import private

# ---- shapes and shardings that a pass has changed, in the form by which JAX takes and places arrays


_SHARDING = "sdy.sharding"


@dataclass(frozen=True)
class NewState:
    """A lowering, and what it takes and returns differently from the user's function.

    Attributes:
      lowering: the lowering.
      placed: the new shardings, by leaf of the arguments.
      local_sums: leaves of the arguments that have one more dimension, the first: a row for each device along an axis.
      returned_sums: leaves of the results that do.
    """

    lowering: Any
    placed: Mapping[int, NamedSharding] = field(default_factory=dict)
    local_sums: frozenset[int] = frozenset()
    returned_sums: frozenset[int] = frozenset()


def with_new_state(original: jax.stages.Lowered, lowering: Any) -> NewState:
    """A lowering whose arguments and results have the shapes and shardings that its rewritten module states.

    Args:
      original: the lowering of the user's own function.
      lowering: the same with the rewritten module.
    """
    before, after = (_main(module) for module in (private.module_of(original), lowering.stablehlo()))
    changed = [_changed(_shardings(before, name), _shardings(after, name)) for name in ("arg_attrs", "res_attrs")]
    if not any(changed):
        return NewState(lowering)
    meshes = {op.operation.attributes["sym_name"].value: sdy.MeshAttr(op.operation.attributes["mesh"])
              for op in lowering.stablehlo().body.operations if op.operation.name == "sdy.mesh"}
    inputs, outputs = ({position: _named(sharding, meshes, original) for position, sharding in side.items()}
                       for side in changed)
    leaves, tokens = private.leaves_of_arguments(original), private.tokens_of(original)
    made = private.with_shardings(lowering, inputs, outputs)
    shapes = [_changed_shapes(old, new) for old, new in zip(_types(before), _types(after), strict=True)]
    if any(shapes):
        made = private.with_shapes(made, *shapes)
    return NewState(made, {leaves[place]: new for place, new in inputs.items()},
                    frozenset(leaves[place] for place in shapes[0]), frozenset(place - tokens for place in shapes[1]))


def _types(function: ir.Operation) -> tuple[list[ir.Type], list[ir.Type]]:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return list(type_.inputs), list(type_.results)


def _changed_shapes(before: Sequence[ir.Type], after: Sequence[ir.Type]) -> dict[int, tuple[int, ...]]:
    return {place: tuple(ir.RankedTensorType(new).shape) for place, (old, new) in
            enumerate(zip(before, after, strict=True)) if str(old) != str(new)}


def _changed(before: Sequence[Any], after: Sequence[Any]) -> dict[int, Any]:
    return {place: new for place, (old, new) in enumerate(zip(before, after, strict=True))
            if new is not None and str(old) != str(new)}


def _main(module: ir.Module) -> ir.Operation:
    return next(op.operation for op in module.body.operations if op.operation.name == "func.func"
                and ir.StringAttr(op.operation.attributes["sym_name"]).value == "main")


def _shardings(function: ir.Operation, name: str) -> list[Any]:
    """The sharding of each argument or result; None if there is none."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    count = len(type_.inputs if name == "arg_attrs" else type_.results)
    if name not in function.attributes:
        return [None] * count
    rows = [{each.name: each.attr for each in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[name])]
    return [row.get(_SHARDING) for row in rows]


def _named(attribute: Any, meshes: dict[str, Any], lowered: jax.stages.Lowered) -> NamedSharding:
    sharding = sdy.TensorShardingAttr(attribute)
    mesh = meshes[ir.FlatSymbolRefAttr(sharding.mesh_or_ref).value]
    axes = [(axis.name, axis.size) for axis in (sdy.MeshAxisAttr(each) for each in mesh.axes)]
    spec = [tuple(sdy.AxisRefAttr(axis).name for axis in sdy.DimensionShardingAttr(dimension).axes) or None
            for dimension in sharding.dimension_shardings]
    return NamedSharding(_mesh(axes, lowered), PartitionSpec(*(each[0] if each and len(each) == 1 else each
                                                                for each in spec)))


def _mesh(axes: list[tuple[str, int]], lowered: jax.stages.Lowered) -> Any:
    """The user's own mesh with these axes; one over the step's devices where its shardings name none."""
    for sharding in private.shardings_of(lowered):
        if isinstance(sharding, NamedSharding) and list(sharding.mesh.shape.items()) == axes:
            return sharding.mesh
    devices = np.array(private.devices_of(lowered)[:prod(size for _, size in axes)], dtype=object)
    return jax.sharding.Mesh(devices.reshape([size for _, size in axes]), [name for name, _ in axes])


# ---- state of a step that is the sum of what each device along a mesh axis holds


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PartialSum:
    """A sum that is not reduced yet: each device along a mesh axis holds its own part.

    Steps with ``partial_state`` take and return it in place of accumulated gradients. It is a pytree of one array, so
    checkpoints keep it as it is; ``jax.numpy`` functions compute with the sum.

    Attributes:
      parts: the local sums, an array with a row for each device along the axis.

    Example:
      >>> import jax.numpy as jnp
      >>> value = PartialSum(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
      >>> value.shape, value.whole().tolist(), jnp.sum(value).item()
      ((2,), [4.0, 6.0], 10.0)
    """

    parts: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the sum."""
        return self.parts.shape[1:]

    @property
    def ndim(self) -> int:
        """The rank of the sum."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.parts.dtype

    @property
    def sharding(self) -> Any:
        """The sharding of the sum: the local sums' sharding without their axis; None if they have none."""
        sharding = getattr(self.parts, "sharding", None)
        return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[1:])) if isinstance(sharding, NamedSharding) \
            else None

    def whole(self) -> jax.Array:
        """The reduced sum, as ``jax.jit`` without ``partial_state`` returns it."""
        if isinstance(self.parts, Tracer):
            return _added(self.parts)
        return jax.jit(_added, out_shardings=self.sharding)(self.parts)

    def __jax_array__(self) -> jax.Array:
        """The sum, for functions of ``jax.numpy``."""
        return _added(self.parts)


def parts_of(value: Any, sharding: NamedSharding) -> jax.Array:
    """Local sums that add up to an array: the array itself on the first device, zeros on the others.

    Args:
      value: the array.
      sharding: the sharding of the local sums; its first dimension has a row for each device.
    """
    axis = sharding.spec[0]
    return jax.jit(_first_of, static_argnums=1, out_shardings=sharding)(value, sharding.mesh.shape[axis])


def is_partial(value: Any) -> bool:
    """Whether a value of a tree is a sum of local ones."""
    return isinstance(value, PartialSum)


def flat_with_sums(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, with each sum as one leaf, and the structure of the tree with one array in place of each
    sum."""
    return jax.tree.leaves(tree, is_leaf=is_partial), jax.tree.structure(as_the_user_sees(tree))


def as_the_user_sees(tree: Any) -> Any:
    """A tree with a ``jax.ShapeDtypeStruct`` of the sum in place of each; the tree itself if it contains none."""
    return _replaced(tree, lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=each.sharding))


def whole_sums(tree: Any) -> Any:
    """A tree with each sum added up; the tree itself if it contains none."""
    return _replaced(tree, PartialSum.whole)


def _replaced(tree: Any, new: Any) -> Any:
    if not any(map(is_partial, jax.tree.leaves(tree, is_leaf=is_partial))):
        return tree
    return jax.tree.map(lambda leaf: new(leaf) if is_partial(leaf) else leaf, tree, is_leaf=is_partial)


def _added(parts: Any) -> jax.Array:
    return jnp.sum(parts, axis=0)


def _first_of(value: Any, devices: int) -> jax.Array:
    value = jnp.asarray(value)
    return jnp.zeros((devices, *value.shape), value.dtype).at[0].set(value)
