"""Fingerprints: 64 bits for each element that say by which ops on which inputs it was computed.

Elements of two programs with one fingerprint were computed by the same ops, in the same order, from the same inputs, so
they are equal bit for bit. A fingerprint belongs to an element, not to a tensor: ``slice(add(a, b))`` has those of
``add(slice(a), slice(b))``. It is value numbering (Alpern, Wegman and Zadeck 1988) by hashing. Two of n different
elements have one by chance with probability below n**2 / 2**64.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def seed_of(*parts: object) -> np.uint64:
    """A number for a text: the same in every run."""
    text = "\x00".join(map(str, parts))
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def mixed(prints: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64, element by element: a bijection in which each bit depends on all."""
    with np.errstate(over="ignore"):
        prints = (prints ^ (prints >> np.uint64(30))) * _FIRST
        prints = (prints ^ (prints >> np.uint64(27))) * _SECOND
    return prints ^ (prints >> np.uint64(31))


def of_op(seed: np.uint64, operands: Sequence[np.ndarray], *, commutes: bool = False) -> np.ndarray:
    """Fingerprints of an op that is applied element by element.

    Args:
      seed: the seed of the op and its attributes.
      operands: fingerprints of the operands.
      commutes: the order of the operands makes no difference.

    Returns:
      A fingerprint for each element.

    Example:
      >>> a, b = np.arange(2, dtype=np.uint64), np.arange(5, 7, dtype=np.uint64)
      >>> bool((of_op(seed_of("add"), [a, b], commutes=True) == of_op(seed_of("add"), [b, a], commutes=True)).all())
      True
      >>> bool((of_op(seed_of("divide"), [a, b]) == of_op(seed_of("divide"), [b, a])).any())
      False
    """
    with np.errstate(over="ignore"):
        total = np.asarray(seed)
        for position, each in enumerate(operands):
            place = np.uint64(0 if commutes else position + 1)
            total = total + mixed(each * np.uint64(3) + place * _MULTIPLIER + seed)
    return mixed(total)


def of_sum(seed: np.uint64, terms: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Fingerprints of sums along the last axis, whose terms are added one after the other.

    Args:
      seed: the seed of the op.
      terms: fingerprints of the terms.
      start: fingerprints of what is added to first.
    """
    with np.errstate(over="ignore"):
        total = (mixed(terms + seed) * powers(terms.shape[-1])).sum(axis=-1, dtype=np.uint64)
        return mixed(total + seed + (0 if start is None else mixed(start)))


def powers(count: int) -> np.ndarray:
    """The powers 1, m, m squared and so on of an odd number m, modulo 2**64."""
    with np.errstate(over="ignore"):
        return np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(max(count - 1, 0), _MULTIPLIER)]),
                          dtype=np.uint64)[:count]


def of_leaf(seed: np.uint64, shape: Sequence[int]) -> np.ndarray:
    """Fingerprints of the elements of an input."""
    with np.errstate(over="ignore"):
        count = int(np.prod(shape, dtype=np.int64))
        return mixed(np.arange(count, dtype=np.uint64) * _MULTIPLIER + seed).reshape(tuple(shape))


def of_constant(values: np.ndarray) -> np.ndarray:
    """Fingerprints of constants: by type and value, so that equal constants have one."""
    raw = np.ascontiguousarray(values)
    bits = raw.reshape(-1).view(np.uint8).reshape(values.size, -1) if values.size else np.zeros((0, 1), np.uint8)
    with np.errstate(over="ignore"):
        total = (bits.astype(np.uint64) * powers(bits.shape[1])).sum(axis=1, dtype=np.uint64)
        return mixed(total + seed_of("constant", values.dtype.name)).reshape(values.shape)


def noise(prints: np.ndarray) -> np.ndarray:
    """A number between -1 and 1 for each fingerprint."""
    return (mixed(prints ^ _MULTIPLIER) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
