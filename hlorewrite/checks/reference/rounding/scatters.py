"""Scatters of one operand: which element of the operand each update goes to."""

from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.rounding import fingerprint
from hlorewrite.checks.reference.rounding.sums import body_op
from hlorewrite.ir.binding import ir
from hlorewrite.ops.attributes import scatter_numbers, shape_of


@dataclass(frozen=True)
class Scattering:
    """Where the updates of a ``scatter`` go.

    Attributes:
      by: the op that combines an element and an update; ``put`` where the update takes its place.
      target: for each update in order, the place of its element in the operand; -1 if it is outside.
      shape: the shape of the operand.
    """

    by: str
    target: np.ndarray
    shape: tuple[int, ...]

    def added(self, operand: np.ndarray, updates: np.ndarray) -> np.ndarray:
        """Updates added to an operand, in float64."""
        made, inside = operand.astype(np.result_type(operand, np.float64)).reshape(-1), self.target >= 0
        np.add.at(made, self.target[inside], updates.reshape(-1)[inside])
        return made.reshape(self.shape)

    def largest(self, operand: np.ndarray, updates: np.ndarray) -> np.ndarray:
        """The largest of an element and the updates it receives."""
        made, inside = operand.copy().reshape(-1), self.target >= 0
        np.maximum.at(made, self.target[inside], updates.reshape(-1)[inside])
        return made.reshape(self.shape)

    def places(self) -> np.ndarray:
        """For a scatter that replaces: where each element comes from, as a place in operand and updates; the last
        update wins."""
        inside = np.flatnonzero(self.target >= 0)
        count = int(np.prod(self.shape))
        made = np.arange(count)
        made[self.target[inside]] = count + inside
        return made.reshape(self.shape)

    def counts(self) -> np.ndarray:
        """How many updates each element receives."""
        return np.bincount(self.target[self.target >= 0], minlength=int(np.prod(self.shape))).reshape(self.shape)

    def prints(self, operand: np.ndarray, updates: np.ndarray, seed: np.uint64) -> np.ndarray:
        """Fingerprints of the results: those of the operand at places without an update, otherwise those of all terms
        in order."""
        inside = self.target >= 0
        target, terms = self.target[inside], updates.reshape(-1)[inside]
        order = np.argsort(target, kind="stable")
        target, terms = target[order], terms[order]
        starts = np.searchsorted(target, target)
        ranks = np.arange(len(target)) - starts
        flat = operand.reshape(-1)
        with np.errstate(over="ignore"):
            weights = fingerprint.powers(int(ranks.max(initial=0)) + 1)[ranks]
            total = np.zeros(flat.shape, np.uint64)
            np.add.at(total, target, fingerprint.mixed(terms + seed) * weights)
            made = fingerprint.mixed(total + fingerprint.mixed(flat) + seed)
        return np.where(self.counts().reshape(-1) > 0, made, flat).reshape(self.shape)


def scattering_of(op: ir.Operation, indices: np.ndarray) -> Scattering | None:
    """The targets of a ``scatter``; None when it takes several operands, or combines by more than one op."""
    by = "put" if puts(op) else body_op(op)
    if len(op.operands) != 3 or by is None:
        return None
    numbers = scatter_numbers(op)
    shape, updates = shape_of(op.operands[0]), shape_of(op.operands[2])
    window = list(numbers.update_window_dims)
    places = np.indices(updates).reshape(len(updates), -1)
    outer = [axis for axis in range(len(updates)) if axis not in window]
    rows = np.moveaxis(indices, numbers.index_vector_dim, -1) if numbers.index_vector_dim < indices.ndim \
        else indices[..., None]
    starts = rows[tuple(places[axis] for axis in outer)].astype(np.int64)
    full = np.zeros((len(shape), places.shape[1]), np.int64)
    for position, axis in enumerate(numbers.scattered_dims_to_operand_dims):
        full[axis] += starts[..., position]
    for axis, batched in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        full[axis] += places[outer[batched - (batched > numbers.index_vector_dim)]]
    absent = [*numbers.inserted_window_dims, *numbers.input_batching_dims]
    kept = [axis for axis in range(len(shape)) if axis not in absent]
    for axis, dimension in zip(kept, window, strict=True):
        full[axis] += places[dimension]
    limits = np.array(shape, np.int64).reshape(-1, 1)
    inside = ((full >= 0) & (full < limits)).all(axis=0)
    clipped = np.clip(full, 0, np.maximum(limits - 1, 0))
    flat = np.ravel_multi_index(tuple(clipped), shape) if shape else np.zeros(places.shape[1], np.int64)
    return Scattering(by, np.where(inside, flat, -1), shape)


def puts(op: ir.Operation) -> bool:
    """Whether the region of a scatter returns the update."""
    block = op.regions[0].blocks[0]
    first = block.operations[0].operation
    return first.name == "stablehlo.return" and list(first.operands) == [block.arguments[-1]]
