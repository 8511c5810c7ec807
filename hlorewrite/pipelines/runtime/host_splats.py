"""Results of a fragment that are filled with one number: the host makes them, and XLA generates no kernel for each.

Accumulators begin as zeros, in many shapes on every mesh. XLA:CPU spends some twenty milliseconds on a kernel that
writes zeros, as on any other.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from hlorewrite.ir import Module, View, defining_op, ir, op_key, sdy, terminator
from hlorewrite.jaxbridge.xla import private
from hlorewrite.ops.attributes import splat_number
from hlorewrite.pipelines.mpmd.mesh_view import manual_body

Number = float | int | bool
_REPEATS = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "transpose", "slice"))
"""Ops whose result has the same elements as their operand."""
_ELEMENTS = frozenset(("i1", "i8", "i16", "i32", "ui8", "ui16", "ui32", "f16", "bf16", "f32"))
_WIDE_ELEMENTS = frozenset(("i64", "ui64", "f64"))
"""JAX makes 32 bits of them by default."""


def take_filled(module: Module) -> dict[int, Number]:
    """Takes results that are filled with one number out of ``@main``.

    Not taken are NaNs, whose bits a Python number does not keep, and element types that NumPy does not hold as XLA
    does.

    Args:
      module: a fragment as a separate module; it is changed.

    Returns:
      The number for each result that was taken, by its position. Ops that nothing reads then are erased.
    """
    main = View(module).functions["main"]
    manual = manual_body(main)
    values = list(terminator(main.regions[0].blocks[0] if manual is None else manual).operands)
    found = {place: number for place, value in enumerate(values) if (number := _number(value)) is not None}
    if found:
        kept = [place for place in range(len(values)) if place not in found]
        with module.context:
            _keep(main, manual, kept)
        _erase_unread([values[place] for place in found])
    return found


def _number(value: ir.Value) -> Number | None:
    """What a value is filled with; None if that is not one number, or the host cannot make it."""
    element = str(ir.RankedTensorType(value.type).element_type)
    wide = jnp.result_type(int) == np.int64
    if element not in _ELEMENTS and not (wide and element in _WIDE_ELEMENTS):
        return None
    op = defining_op(value)
    # Ends: each round goes on to an op that is before it.
    while op is not None and op.name in _REPEATS:
        op = defining_op(op.operands[0])
    number = None if op is None else splat_number(op)
    return None if number is None or number != number else number


def _keep(main: ir.Operation, manual: ir.Block | None, kept: Sequence[int]) -> None:
    """Leaves a function some of its results."""
    end, old = terminator(main.regions[0].blocks[0]), None if manual is None else manual.owner.operation
    if manual is None:
        values: list[ir.Value] = [end.operands[place] for place in kept]
    else:
        values = list(_kept_of_manual(manual, kept).results)
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("func.return", [], values)
    end.erase()
    if old is not None:
        old.erase()
    inputs = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [each.type for each in values]))
    if "res_attrs" in main.attributes:
        rows = list(ir.ArrayAttr(main.attributes["res_attrs"]))
        main.attributes["res_attrs"] = ir.ArrayAttr.get([rows[place] for place in kept])


def _kept_of_manual(body: ir.Block, kept: Sequence[int]) -> ir.Operation:
    """A manual computation before the one that a block is of, with the same block and some of the results."""
    old, end = body.owner.operation, terminator(body)
    values = [end.operands[place] for place in kept]
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("sdy.return", [], values)
    end.erase()
    attributes = {name: old.attributes[name] for name in old.attributes}
    shardings = list(sdy.TensorShardingPerValueAttr(attributes["out_shardings"]).shardings)
    attributes["out_shardings"] = sdy.TensorShardingPerValueAttr.get([shardings[place] for place in kept])
    with ir.InsertionPoint(old), old.location:
        new = ir.Operation.create("sdy.manual_computation", [old.results[place].type for place in kept],
                                  list(old.operands), attributes=attributes, regions=1)
    body.append_to(new.regions[0])
    return new


def _erase_unread(values: Sequence[ir.Value]) -> None:
    """Erases constants, and what repeats them, as far as nothing reads them."""
    chains: dict[int, ir.Operation] = {}
    for value in values:
        op = defining_op(value)
        # Ends: each round goes on to an op that is before it.
        while op is not None:
            chains[op_key(op)] = op
            op = defining_op(op.operands[0]) if op.operands else None
    # Ends: each round erases an op.
    while unread := [key for key, op in chains.items() if not any(True for each in op.results for _ in each.uses)]:
        for key in unread:
            chains.pop(key).erase()


class FilledCall:
    """Calls a fragment, and inserts the results that it does not make among those that it makes.

    Args:
      rest: what makes the other results; None if there are none.
      filled: shape, element type, sharding and number of each result that the host makes, by position.
    """

    def __init__(self, rest: Callable[..., Sequence[Any]] | None,
                 filled: Mapping[int, tuple[tuple[int, ...], np.dtype, NamedSharding, Number]]) -> None:
        self._rest = rest
        self._makers = [(place, filled_maker(*filled[place])) for place in sorted(filled)]

    def __call__(self, *arguments: Any) -> list[Any]:
        made = [] if self._rest is None else list(self._rest(*arguments))
        for place, make in self._makers:
            made.insert(place, make())
        return made


def filled_maker(shape: tuple[int, ...], dtype: np.dtype, sharding: NamedSharding, number: Number
                 ) -> Callable[[], jax.Array]:
    """A function that makes an array filled with one number; each call makes a new one."""
    tile, place = sharding.shard_shape(shape), private.host_placer(shape, dtype, sharding)
    count = len(sharding.addressable_devices)
    if number == 0 and math.copysign(1, number) > 0:  # pages of zeros come from the system when they are written
        return lambda: place([np.zeros(tile, dtype) for _ in range(count)])
    return lambda: place([np.full(tile, number, dtype) for _ in range(count)])
