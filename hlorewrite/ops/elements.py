"""Ops that move elements, on numpy arrays: one mover per op says which element comes from where.

The arrays hold numbers, or the places that elements come from. Applied to places, an op yields its index map. A mover
serves index expressions per device, the validator's tables, and the bounds of rounding; a test compares each with
jaxlib's interpreter. ``dims.py`` says the same about whole dimensions and does not use these.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hlorewrite.ops.attributes import PADDING, SLICED, Ints, Shape

Elements = np.ndarray
Mover = Callable[[Ints, Shape, Sequence[Elements], int], Elements]


def moved(name: str, ints: Ints, shape: Sequence[int], operands: Sequence[Elements], copies: int = 0) -> Elements:
    """The elements of the result of an op that moves elements.

    Args:
      name: the op, one of ``MOVERS``, without ``stablehlo.``.
      ints: reads an attribute of the op.
      shape: the shape of its result.
      operands: the elements of its operands; the mask of a ``select`` and the starts of slices as numbers.
      copies: number of leading dimensions that index copies of the tensors, such as one for each device.

    Returns:
      An array of the shape of the copies and of the result; it may be a view.

    Example:
      >>> moved("transpose", {"permutation": [1, 0]}.__getitem__, [2, 1], [np.array([[1, 2]])]).tolist()
      [[1], [2]]
      >>> starts = [np.array([0, 9])]  # on two devices; clamped
      >>> moved("dynamic_slice", {}.__getitem__, [2], [np.array([[1, 2, 3], [4, 5, 6]]), *starts], copies=1).tolist()
      [[1, 2], [5, 6]]
    """
    return MOVERS[name](ints, tuple(shape), operands, copies)


def iota(shape: Sequence[int], dimension: int, dtype: np.dtype) -> Elements:
    """The elements of an ``iota``, as a read-only view.

    Example:
      >>> iota([2, 3], 1, np.dtype("int32")).tolist()
      [[0, 1, 2], [0, 1, 2]]
    """
    index = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(index.reshape([-1 if d == dimension else 1 for d in range(len(shape))]), tuple(shape))


def _reshape(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    return operands[0].reshape((*operands[0].shape[:copies], *shape))


def _transpose(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    return operands[0].transpose([*range(copies), *(copies + d for d in ints("permutation"))])


def _reverse(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    return np.flip(operands[0], tuple(copies + d for d in ints("dimensions")))


def _broadcast(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    """Dimensions of the operand may be in any order in the result: one that does not ascend also transposes."""
    [x] = operands
    dimensions = [*range(copies), *(copies + d for d in ints("broadcast_dimensions"))]
    whole = (*x.shape[:copies], *shape)
    held = [1] * len(whole)
    for axis, target in enumerate(dimensions):
        held[target] = x.shape[axis]
    return np.broadcast_to(x.transpose(np.argsort(dimensions)).reshape(held), whole)


def _slice(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    bounds = zip(*(ints(name) for name in SLICED), strict=True)
    return operands[0][(slice(None),) * copies + tuple(slice(*each) for each in bounds)]


def _concatenate(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    return np.concatenate(list(operands), axis=copies + ints("dimension")[0])


def _pad(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    """Padding may be negative, and then cuts elements off."""
    x, filling = operands
    made = np.broadcast_to(filling.reshape(filling.shape + (1,) * len(shape)), (*x.shape[:copies], *shape)).copy()
    taken, put = [], []
    for low, _, gap, size, full in zip(*(ints(name) for name in PADDING), x.shape[copies:], shape, strict=True):
        places = low + np.arange(size) * (gap + 1)
        inside = (places >= 0) & (places < full)
        taken.append(np.flatnonzero(inside))
        put.append(places[inside])
    for copy in np.ndindex(*x.shape[:copies]):
        made[(*copy, *np.ix_(*put))] = x[(*copy, *np.ix_(*taken))]
    return made


def _select(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    return np.where(*spread(operands))


def _dynamic_slice(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    x, *starts = operands
    made = np.empty((*x.shape[:copies], *shape), x.dtype)
    for copy in np.ndindex(*x.shape[:copies]):
        made[copy] = x[(*copy, *_box(x.shape[copies:], shape, [each[copy] for each in starts]))]
    return made


def _update_slice(ints: Ints, shape: Shape, operands: Sequence[Elements], copies: int) -> Elements:
    x, update, *starts = operands
    made = x.copy()
    for copy in np.ndindex(*x.shape[:copies]):
        box = _box(x.shape[copies:], update.shape[copies:], [each[copy] for each in starts])
        made[(*copy, *box)] = update[copy]
    return made


def _box(full: Shape, sizes: Shape, starts: Sequence[Elements]) -> tuple[slice, ...]:
    """Starts are clamped, as the specification says."""
    clamped = [min(max(int(start), 0), have - size) for start, have, size in zip(starts, full, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(clamped, sizes, strict=True))


def spread(operands: Sequence[Elements]) -> list[Elements]:
    """Elementwise operands; a single number gets one dimension of size one for each dimension of the others."""
    rank = max(each.ndim for each in operands)
    return [each.reshape(each.shape + (1,) * (rank - each.ndim)) for each in operands]


MOVERS: dict[str, Mover] = {
    "reshape": _reshape, "transpose": _transpose, "reverse": _reverse, "broadcast_in_dim": _broadcast, "slice": _slice,
    "concatenate": _concatenate, "pad": _pad, "select": _select, "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _update_slice}
BY_ATTRIBUTES = frozenset(MOVERS) - {"select", "dynamic_slice", "dynamic_update_slice"}
"""Movers that read nothing but elements and attributes."""
