"""Shapes and shardings of arguments and results that a pass has changed, in the form by which JAX takes and places
arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.ir.binding import ir, sdy
from hlorewrite.jaxbridge.xla import private

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
