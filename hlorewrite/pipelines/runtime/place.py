"""Puts values onto the mesh they belong to, and checks that arguments are there."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from hlorewrite.errors import UsageError
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.pipelines.runtime.meshes import numpy_type


def place_value(position: int, value: Any, type_: MeshTensor, sharding: NamedSharding, here: bool) -> jax.Array | None:
    """Puts one value onto its mesh.

    Args:
      position: the position of the argument, for errors.
      value: an array of the whole value; on every process the same.
      type_: the type it is to have.
      sharding: its sharding.
      here: whether this process has devices of the mesh.

    Returns:
      The array, with separate buffers unless it is already there; None when it lives elsewhere.

    Raises:
      UsageError: its shape or dtype differ, or it is spread over processes that do not hold all of it.
    """
    if not here:
        return None
    if isinstance(value, jax.Array):
        _check_kind(position, value, type_)
        if value.sharding is sharding or value.sharding.is_equivalent_to(sharding, value.ndim):
            return value
        local = value.sharding.addressable_devices
        if not value.is_fully_addressable and not (value.is_fully_replicated and local):
            raise UsageError(f"argument {position} is " + ("spread over other processes" if local else
                             "on devices of other processes alone"), hint="bring it to all of them with to_global or "
                             "hlorewrite.reshard, or pass its host values on every process")
        value = value.addressable_data(0) if not value.is_fully_addressable else value
    host = np.array(value, copy=True)  # the devices may keep the buffer and write over it
    _check_kind(position, host, type_)
    return jax.make_array_from_callback(type_.shape, sharding, lambda index: host[index], dtype=numpy_type(type_))


def check_arguments(arguments: Sequence[Any], kinds: Sequence[MeshTensor], shardings: Sequence[NamedSharding],
                    here: Sequence[bool], name: str) -> None:
    """Refuses arguments that are not where the program expects them.

    Raises:
      UsageError: the number of values, or the shape, dtype or placement of one, differs.
    """
    if len(arguments) != len(kinds):
        raise UsageError(f"the program has {len(kinds)} arguments but got {len(arguments)}", location=name,
                         hint="pass one array for each argument")
    for position, (value, sharding) in enumerate(zip(arguments, shardings, strict=True)):
        if not here[position]:
            continue
        if not isinstance(value, jax.Array):
            raise UsageError(f"argument {position} is not an array on devices", location=name,
                             hint="put host values onto their mesh with place(...)")
        type_ = kinds[position]
        if value.shape != type_.shape or value.sharding is not sharding:
            _check_kind(position, value, type_)
            if not value.sharding.is_equivalent_to(sharding, value.ndim):
                where = f"mesh {type_.mesh} with sharding {type_.sharding}"
                raise UsageError(f"argument {position} is not on {where}", location=name,
                                 hint="put it there with place(...)")


def _check_kind(position: int, value: Any, type_: MeshTensor) -> None:
    if tuple(value.shape) != type_.shape:
        raise UsageError(f"argument {position} has shape {list(value.shape)}, but the program needs "
                         f"{list(type_.shape)}", hint="pass an array of the program's shape")
    if value.dtype != numpy_type(type_):
        raise UsageError(f"argument {position} is {value.dtype}, but the program needs {numpy_type(type_)}",
                         hint="convert it first")
