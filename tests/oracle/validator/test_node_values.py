"""Every node that the validator gives an op under views has the op's values, on random programs of one device.

The equations of ``value_graph/views`` are the trusted base of proofs about XLA's passes. Pairs of programs show that
they prove what they should (``test_views.py``); here each is computed with numpy, and compared with the interpreter of
StableHLO. XLA's own CPU backend is no reference: it gets some of these programs wrong (openxla/xla#49176).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generators.code_mutation import replace_source
from jax import lax
from oracle.validator.node_values import NodeValues, outputs_of

from hlorewrite.checks.reference.program import execute
from hlorewrite.ir.load import parse

Pool = list[Any]
Draw = random.Random
OPS = 14


def floats(draw: Draw, pool: Pool, rank: int = 0) -> Any:
    """A tensor of floats of at least a rank."""
    return draw.choice([x for x in pool if x.dtype == np.float64 and x.ndim >= rank])


def index(draw: Draw, pool: Pool) -> Any:
    """A number of an integer tensor; it may lie past a border."""
    whole = draw.choice([x for x in pool if x.dtype == np.int32])
    return whole.reshape(-1)[draw.randrange(whole.size)]


def like(draw: Draw, pool: Pool, x: Any) -> Any:
    """Another tensor in the shape of one."""
    same = [each for each in pool if each.shape == x.shape and each.dtype == x.dtype]
    return draw.choice(same) if draw.random() < 0.7 else sized(floats(draw, pool), x.shape).astype(x.dtype)


def sized(x: Any, shape: Sequence[int]) -> Any:
    """Elements of a tensor in a shape."""
    return jnp.resize(x, tuple(shape))


def dims_of(draw: Draw, x: Any, most: int | None = None) -> list[int]:
    """Some dimensions, at least one."""
    return sorted(draw.sample(range(x.ndim), draw.randint(1, most or x.ndim)))


def transposed(draw: Draw, pool: Pool) -> Any:
    x = draw.choice(pool)
    return lax.transpose(x, draw.sample(range(x.ndim), x.ndim))


def reshaped(draw: Draw, pool: Pool) -> Any:
    x, left, shape = draw.choice(pool), 0, list[int]()
    left = x.size
    # Ends: each round divides what is left by more than 1.
    while left > 1 and len(shape) < 3:
        n = draw.choice([n for n in range(2, left + 1) if left % n == 0])
        shape.append(n)
        left //= n
    shape += [left] if left > 1 else []
    shape.insert(draw.randint(0, len(shape)), 1)
    return x.reshape(shape)


def merged(draw: Draw, pool: Pool) -> Any:
    """Two dimensions of a transposed tensor as one."""
    x = floats(draw, pool, 2)
    x = lax.transpose(x, draw.sample(range(x.ndim), x.ndim))
    at = draw.randrange(x.ndim - 1)
    return x.reshape(*x.shape[:at], -1, *x.shape[at + 2:])


def sliced(draw: Draw, pool: Pool) -> Any:
    x = draw.choice(pool)
    ends = [draw.randint(1, n) for n in x.shape]
    starts = [draw.randrange(end) for end in ends]
    return lax.slice(x, starts, ends, [draw.randint(1, 2) for _ in ends])


def reversed_(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 1)
    return lax.rev(x, dims_of(draw, x))


def spread(draw: Draw, pool: Pool) -> Any:
    x = draw.choice([x for x in pool if x.ndim < 4 and x.size < 64])
    shape = list(x.shape)
    at = draw.randint(0, x.ndim)
    shape.insert(at, draw.randint(1, 3))
    return lax.broadcast_in_dim(x, shape, [d for d in range(len(shape)) if d != at])


def joined(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 1)
    parts = [x, *(like(draw, pool, x) for _ in range(draw.randint(1, 2)))]
    return lax.concatenate(draw.sample(parts, len(parts)), draw.randrange(x.ndim))


def part(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 1)
    sizes = [draw.choice((n, draw.randint(1, n))) for n in x.shape]
    return lax.dynamic_slice(x, [index(draw, pool) for _ in sizes], sizes)


def updated(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 1)
    u = sized(floats(draw, pool), [draw.choice((n, draw.randint(1, n))) for n in x.shape])
    return lax.dynamic_update_slice(x, u, [index(draw, pool) for _ in x.shape])


def gathered(draw: Draw, pool: Pool) -> Any:
    x, count = floats(draw, pool, 2), draw.randint(1, 4)
    along = draw.sample(range(x.ndim), draw.randint(1, 2))
    rows = {dim: jnp.stack([index(draw, pool) for _ in range(count)]) for dim in along}
    return x.at[tuple(rows.get(dim, slice(None)) for dim in range(x.ndim))].get(mode="clip")


def scattered(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 2)
    rows = jnp.stack([index(draw, pool) for _ in range(draw.randint(1, 4))])
    along = draw.randrange(x.ndim)
    at = x.at[tuple(rows if d == along else slice(None) for d in range(x.ndim))]
    shape = [len(rows) if d == along else n for d, n in enumerate(x.shape)]
    return getattr(at, draw.choice(("add", "add", "max")))(sized(floats(draw, pool), shape), mode="drop")


def product(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 2)
    over = draw.randrange(x.ndim)
    batch = draw.choice([None, *(d for d in range(x.ndim) if d != over)])
    own = () if batch is None else (x.shape[batch],)
    y = sized(floats(draw, pool), (x.shape[over], draw.randint(1, 3), *own))
    shared = ([], []) if batch is None else ([batch], [2])
    return lax.dot_general(x, y, (([over], [0]), shared))


def reduced(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool, 1)
    return draw.choice((jnp.sum, jnp.sum, jnp.max, jnp.min))(x, axis=tuple(dims_of(draw, x)))


def elementwise(draw: Draw, pool: Pool) -> Any:
    x = floats(draw, pool)
    y = like(draw, pool, x)
    return draw.choice((
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: jnp.tanh(x), lambda: x / (1 + y * y),
        lambda: lax.rsqrt(1 + x * x), lambda: jnp.maximum(x, y), lambda: jnp.minimum(x, x),
        lambda: jnp.where(x > y, x, y), lambda: jnp.where(~(x >= y), x, 2.0 * y),
        lambda: lax.clamp(jnp.full_like(x, -0.5), x, jnp.full_like(x, 0.5)),
        lambda: lax.pow(1 + y * y, jnp.full_like(y, draw.choice((0.5, -0.5, 2.0, -1.0)))),
        lambda: -(x - 3.0 * y) / 4.0, lambda: jnp.where(x != x, y, x)))()


def counted(draw: Draw, pool: Pool) -> Any:
    x = draw.choice([x for x in pool if x.dtype == np.int32])
    u = x.astype(np.uint32)
    return draw.choice((lambda: x * 3 - 7, lambda: -x + x * x, lambda: (u % 8).astype(np.int32),
                        lambda: (u // 4).astype(np.int32), lambda: jnp.where(x <= 2, x, 2 - x),
                        lambda: lax.broadcasted_iota(np.int32, (2, 3), draw.randrange(2)), lambda: jnp.maximum(x, x)))()


MAKERS: tuple[Callable[[Draw, Pool], Any], ...] = (
    transposed, reshaped, reshaped, merged, sliced, reversed_, spread, joined, part, updated, gathered, scattered,
    product, reduced, elementwise, elementwise, elementwise, counted)


def program(seed: int) -> Callable[..., tuple[Any, ...]]:
    """A random program: all values it makes."""
    def run(*arguments: Any) -> tuple[Any, ...]:
        draw, pool = Draw(seed), list(arguments)
        for _ in range(OPS):
            made = draw.choice(MAKERS)(draw, pool)
            if 0 < made.size <= 256 and made.ndim <= 4:
                pool.append(made)
        return tuple(pool[len(arguments):])

    return run


def arguments_of(seed: int) -> Sequence[np.ndarray[Any, Any]]:
    """Inputs of a program."""
    numbers = np.random.default_rng(seed)
    shapes = [(4, 3), (2, 3, 4), (6,), (3, 4)]
    assert all(prod(shape) for shape in shapes)
    return [*(numbers.standard_normal(shape) for shape in shapes), numbers.integers(-3, 6, (3, 2)).astype(np.int32)]


@pytest.mark.parametrize("seed", range(60))
def test_nodes_have_the_values_of_their_ops(seed: int):
    with jax.enable_x64(True):
        given = arguments_of(seed)
        text = jax.jit(program(seed), keep_unused=True).lower(*given).as_text()
    module = parse(text.replace("stablehlo.tanh", "stablehlo.logistic") if seed % 2 else text)  # JAX writes it as a sum
    expected, = execute(module, [given])
    graph, nodes = outputs_of(module)
    values = NodeValues(graph, given)
    for node, value in zip(nodes, expected, strict=True):
        np.testing.assert_allclose(values.of(node), value, rtol=1e-9, atol=1e-9)


VIEWS = "hlorewrite.checks.value_graph.views."
WRONG_EQUATIONS = {
    "an update is read in the order of the tensor": (
        "indexed", "sorted(each, reverse=True)", "sorted(each)"),
    "a part is smaller along whole dimensions only": (
        "indexed", "view.dims[dim] == ((shape[d], step),)", "view.dims[dim][-1:] == ((shape[d], step),)"),
    "starts follow their dimensions": (
        "indexed", "zero if of is None else starts[of]", "zero if of is None else starts[-1]"),
    "parts are joined in their order": (
        "indexed", "rows += self._rows(", "rows[:0] = self._rows("),
    "a dimension that is joined keeps its elements": (
        "structure", "digits[part.dim].append((part.place, part.size, place))",
        "digits[part.dim].append((place, part.size, part.place))"),
    "a maximum is no sum": ("indexed", 'adds = made[3][1] == "sum" and', "adds = bool(made[3][1]) and"),
    "what a scatter adds to stays": (
        "indexed", "if zeros is None or self.graph.is_identity(operand, \"sum\"):", "if True:"),
    "starts of a gather are those of its rows": (
        "indexed", "strided(place * steps[vector],", "strided(0 * steps[vector],"),
    "an offset counts in the viewed tensor": (
        "strided", "offset = inner.offset + sum(", "offset = sum("),
    "a logistic is one over a sum": (
        "forms", "self.polynomials.scaled(args[0], Fraction(-1), type_),))",
        "self.polynomials.scaled(args[0], Fraction(1), type_),))"),
    "a greater number is less the other way round": (
        "arithmetic", 'direction, args = _SWAPPED[direction], args[::-1]', "direction = _SWAPPED[direction]"),
    "a difference is no sum": (
        "forms", "self.polynomials.add((args[0], self.polynomials.scaled(args[1], Fraction(-1), type_)), type_)",
        "self.polynomials.add((args[0], args[1]), type_)"),
}


@pytest.mark.parametrize("name", WRONG_EQUATIONS)
def test_a_wrong_equation_shows(name: str, monkeypatch: pytest.MonkeyPatch):
    module, old, new = WRONG_EQUATIONS[name]
    replace_source(f"{VIEWS}{module}", old, new, monkeypatch)
    for seed in range(200):
        try:
            test_nodes_have_the_values_of_their_ops(seed)
        except (AssertionError, IndexError, ValueError):
            return
    pytest.fail("all values are right without it")
