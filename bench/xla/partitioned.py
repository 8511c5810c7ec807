"""How XLA's partitioner fares on steps with sharded arguments: ``python bench/xla/partitioned.py [--targets T,...]``.

Each step is compiled for each target with a dump of every pass. What each device computes before the partitioner and
after it is compared, as ``hlorewrite validate-xla`` does. Exit code 1 when it is said to differ: XLA's partitioner is
right on these steps, so a difference is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.checks.translation_validation.equivalence import Certainty
from hlorewrite.errors import InputError
from hlorewrite.ir.load import load
from hlorewrite.jaxbridge.validate_xla.chain import validate_dump
from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump

Spec = tuple[Any, ...]
AXES = {"d": 4, "t": 2}
D, DT = "d", ("d", "t")


class ShardedStep(NamedTuple):
    """A step.

    Attributes:
      run: the function.
      arguments: what it is called with.
      given: how they are sharded.
      returned: how its results are; None leaves that to Shardy.
    """

    run: Callable[..., Any]
    arguments: Sequence[jax.ShapeDtypeStruct]
    given: Sequence[Spec]
    returned: Any = None


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    """An argument of floats."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    """An argument of integers."""
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def mlp(w: jax.Array, v: jax.Array, x: jax.Array) -> Any:
    """A gradient step of two layers."""
    def loss(w: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ w) @ v) ** 2)

    value, (a, b) = jax.value_and_grad(loss, (0, 1))(w, v)
    return w - a, v - b, value


def table(t: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """A gradient step of an embedding."""
    return t - jax.grad(lambda t: jnp.mean((t[x].sum(1) - y) ** 2))(t)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention."""
    scores = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), jnp.einsum("bhqd,bhkd->bhqk", q, k), -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


def convolved(x: jax.Array, k: jax.Array) -> jax.Array:
    """A convolution that keeps the shape."""
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def experts(w: jax.Array, x: jax.Array, router: jax.Array) -> jax.Array:
    """Tokens to the experts of the largest score."""
    chosen = jax.nn.one_hot(jnp.argmax(x @ router, -1), 8)[:, :, None] * jax.nn.one_hot(jnp.arange(32) % 4, 4)[:, None]
    return jnp.einsum("ecd,edf->ecf", jnp.einsum("bd,bec->ecd", x, chosen), w)


HEADS = [f32(4, 2, 8, 4)] * 3
STEPS: dict[str, ShardedStep] = {
    "tensor parallel": ShardedStep(mlp, [f32(16, 32), f32(32, 16), f32(32, 16)], [(None, "t"), ("t",), (D,)]),
    "fsdp and tensor parallel": ShardedStep(mlp, [f32(16, 32), f32(32, 16), f32(32, 16)], [(D, "t"), ("t", D), (D,)],
                                            [(D, "t"), ("t", D), ()]),
    "fsdp": ShardedStep(mlp, [f32(16, 32), f32(32, 16), f32(32, 16)], [(DT,), (DT,), (DT,)], [(DT,), (DT,), ()]),
    "rows of a table": ShardedStep(table, [f32(32, 8), i32(16, 4), f32(16, 8)], [(DT,), (), ()], (DT,)),
    "columns of a table": ShardedStep(table, [f32(32, 16), i32(16, 4), f32(16, 16)], [(None, "t"), (D,), (D,)],
                                      (None, "t")),
    "attention heads": ShardedStep(lambda q, k, v: jax.grad(lambda q: attention(q, k, v).sum())(q), HEADS,
                                   [(D, "t")] * 3),
    "attention sequence": ShardedStep(attention, HEADS, [(None, None, D), (None, "t"), (D,)], (D,)),
    "sort": ShardedStep(lambda x: jnp.sort(x, axis=0), [f32(16, 16)], [(DT,)]),
    "cumulative sum": ShardedStep(lambda x: jnp.cumsum(x, 0), [f32(16, 8)], [(DT,)], (DT,)),
    "roll": ShardedStep(lambda x: jnp.roll(x, 3, 0) + x[::-1], [f32(16, 8)], [(DT,)], (DT,)),
    "scan": ShardedStep(lambda w, x: lax.scan(lambda x, w: (jnp.tanh(x @ w), x.sum()), x, w),
                        [f32(3, 16, 16), f32(16, 16)], [(None, None, "t"), (D,)]),
    "convolution gradient": ShardedStep(lambda x, k: jax.grad(lambda k: (convolved(x, k) ** 2).sum())(k),
                                        [f32(8, 6, 6, 4), f32(3, 3, 4, 4)], [(DT,), ()]),
    "spatial convolution": ShardedStep(convolved, [f32(2, 16, 6, 4), f32(3, 3, 4, 4)], [(None, DT), ()], (None, DT)),
    "pooling": ShardedStep(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
                           [f32(8, 8, 8, 2)], [("t", D)], ("t", D)),
    "dropout": ShardedStep(lambda x, s: x * jax.random.bernoulli(jax.random.key(s), 0.5, x.shape),
                           [f32(16, 8), jax.ShapeDtypeStruct((), jnp.uint32)], [(DT,), ()]),
    "experts": ShardedStep(experts, [f32(8, 16, 16), f32(32, 16), f32(16, 8)], [(DT,), (DT,), ()])}


def exported(step: ShardedStep) -> bytes:
    """A step as a serialized export."""
    mesh = jax.make_mesh(tuple(AXES.values()), tuple(AXES), axis_types=(jax.sharding.AxisType.Auto,) * len(AXES))
    named: dict[str, Any] = {"in_shardings": tuple(NamedSharding(mesh, P(*each)) for each in step.given)}
    if isinstance(step.returned, list):
        named["out_shardings"] = tuple(NamedSharding(mesh, P(*each)) for each in step.returned)
    elif step.returned is not None:
        named["out_shardings"] = NamedSharding(mesh, P(*step.returned))
    return jax.export.export(jax.jit(step.run, **named))(*step.arguments).serialize()


def main() -> int:
    """Compares all steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="cpu:8,h200:1x8")
    wanted, wrong = parser.parse_args().targets.split(","), False
    for target in wanted:
        counts: Counter[str] = Counter()
        for name, step in STEPS.items():
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "step.export"
                file.write_bytes(exported(step))
                try:
                    found = validate_dump(compile_with_dump(load(str(file)), target, Path(folder))).partitioning
                except InputError as error:
                    print(f"{target} {name}: {error.what}", flush=True)
                    continue
            verdict = found.answer.verdict.value if found else "not compared"
            counts[verdict] += 1
            wrong |= verdict == Certainty.DIFFERS.value
            print(f"{target} {name}: {verdict}{f': {found.answer.reason}' if found else ''}", flush=True)
        print(f"{target}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
