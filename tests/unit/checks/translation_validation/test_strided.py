"""Affine views: every composition that is claimed reads the elements that the two views read one after the other."""

from __future__ import annotations

import random

import numpy as np

from hlorewrite.checks.value_graph.views.strided import (
    Strided,
    composed,
    covers,
    of_kept,
    places,
    regrouped,
    strided,
    whole,
    within,
)

TRIALS = 4000


def elements(view: Strided) -> np.ndarray:
    """The elements that a view reads, in order."""
    found = np.array(view.offset)
    for size, stride in (digit for dim in view.dims for digit in dim):
        found = found[..., None] + np.arange(size) * stride
    return found.reshape(-1)


def shape_of(count: int, rnd: random.Random) -> list[int]:
    """A shape of so many elements."""
    shape = []
    while count > 1:
        shape.append(rnd.choice([size for size in range(2, count + 1) if count % size == 0]))
        count //= shape[-1]
    return shape


def cut(shape: list[int], rnd: random.Random, *, turned: bool) -> Strided:
    """A slice of each dimension, with strides, backwards too, the dimensions in any order."""
    offset, dims = 0, []
    for size, place in zip(shape, places(shape), strict=True):
        begin, step = rnd.randrange(size), rnd.choice([1, 1, 2, -1] if turned else [1])
        count = begin + 1 if step < 0 else rnd.randrange(1, (size - begin + step - 1) // step + 1)
        offset += begin * place
        dims.append([(count, step * place)])
    if turned:
        rnd.shuffle(dims)
    return strided(offset, dims)


def test_compositions_read_the_same_elements():
    rnd, found = random.Random(7), 0
    for _ in range(TRIALS):
        inner = whole(shape_of(rnd.choice([12, 16, 24, 36, 60]), rnd))
        dims = list(inner.dims)
        rnd.shuffle(dims)
        inner = Strided(0, tuple(dims) + ((((3, 0),),) if rnd.random() < 0.3 else ()))
        count = len(elements(inner))
        outer = cut(shape_of(count, rnd), rnd, turned=True)
        both = composed(outer, inner)
        if both is not None:
            found += 1
            assert (elements(both) == elements(inner)[elements(outer)]).all(), (outer, inner)
        other = regrouped(inner, shape_of(count, rnd))
        assert other is None or (elements(other) == elements(inner)).all()
        if covers(outer, count):
            assert set(elements(outer)) == set(range(count))
    assert found > TRIALS / 4


def test_parts_of_a_joined_tensor():
    rnd, found = random.Random(8), 0
    for _ in range(TRIALS):
        shape = (rnd.choice([1, 2, 3]), rnd.choice([2, 3, 5]), rnd.choice([1, 2, 4]))
        count = shape[0] * shape[1] * shape[2]
        view, begin = cut(shape_of(count, rnd), rnd, turned=False), rnd.randrange(shape[1])
        end = rnd.randrange(begin + 1, shape[1] + 1)
        inside = within(view, shape, begin, end)
        if inside is not None:
            found += 1
            part = np.arange(count).reshape(shape)[:, begin:end].reshape(-1)
            assert (part[elements(inside)] == elements(view)).all()
    assert found > TRIALS / 20


def test_rows():
    view = strided(3, [[(2, 4)], [(3, 0)]])
    rows = elements(of_kept(view, 5)).reshape(-1, 5)
    assert [row.tolist() for row in rows] == [list(range(5 * n, 5 * n + 5)) for n in elements(view)]
