"""Single kernels and a transformer layer on the GPU of this machine: measured, and simulated from the same schedule.

Usage: ``python bench/gpu/kernels.py [--json FILE] [--only TEXT]``.

Each program is compiled by XLA for the GPU that is present. *Measured* is the median, over several rounds, of the time
of calls that follow each other without a wait; *simulated* is the compute time of ``hlorewrite.timeline`` for the text
of the compiled program. A call takes some microseconds to launch, so kernels below that are measured too long. Without
an H100 or H200 it measures nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = {"H100": "h100:1x1", "H200": "h200:1x1"}
VOCABULARY, WIDTH, ROWS = 50304, 4096, 512
ROUNDS, CALLS = 7, 20
Shape = jax.ShapeDtypeStruct


@dataclass(frozen=True)
class MeasuredKernel:
    """One program.

    Attributes:
      name: what it computes.
      measured_us: median time of a call.
      launched_us: time of a call that computes next to nothing.
      simulated_us: compute time by the timeline.
      complete: whether every kernel had a time.
    """

    name: str
    measured_us: float
    launched_us: float
    simulated_us: float
    complete: bool


def _f32(*shape: int) -> Shape:
    return Shape(shape, jnp.float32)


def _bf16(*shape: int) -> Shape:
    return Shape(shape, jnp.bfloat16)


def _ids(*shape: int) -> Shape:
    return Shape(shape, jnp.int32)


def _adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def _layer_norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bthd,bshd->bhts", q, k, preferred_element_type=jnp.float32) * 0.1
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores).astype(q.dtype), v)


def _convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _x3(a: Any, b: Any) -> Any:
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3)


def _layer(x: Any, w: dict[str, Any]) -> Any:
    """A transformer layer: attention of 16 heads and a gated product, in bf16."""
    batch, tokens, width = x.shape
    q, k, v = (jnp.reshape(_layer_norm(x) @ w[name], (batch, tokens, 16, width // 16)) for name in "qkv")
    x = x + jnp.reshape(_attention(q, k, v), x.shape) @ w["o"]
    hidden = _layer_norm(x)
    return x + (jax.nn.silu(hidden @ w["gate"]) * (hidden @ w["up"])) @ w["down"]


def _layer_gradient(x: Any, w: dict[str, Any]) -> Any:
    return jax.grad(lambda w: jnp.mean(_layer(x, w).astype(jnp.float32) ** 2))(w)


_WEIGHTS = {**{name: _bf16(2048, 2048) for name in "qkvo"}, "gate": _bf16(2048, 5632), "up": _bf16(2048, 5632),
            "down": _bf16(5632, 2048)}
H = WIDTH
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = {
    "gather of 512 rows": (lambda t, i: t[i], (_f32(VOCABULARY, H), _ids(ROWS)), ()),
    "gather of 4096 bf16 rows": (lambda t, i: t[i], (_bf16(VOCABULARY, H), _ids(8 * ROWS)), ()),
    "scatter-add into a table, in place": (lambda t, i, u: t.at[i].add(u),
                                           (_f32(VOCABULARY, H), _ids(ROWS), _f32(ROWS, H)), (0,)),
    "scatter-add into zeros": (lambda i, u: jnp.zeros((VOCABULARY, H)).at[i].add(u), (_ids(ROWS), _f32(ROWS, H)), ()),
    "slice of a stack": (lambda t, i: lax.dynamic_index_in_dim(t, i, 0, False), (_f32(32, H, H), _ids()), ()),
    "update of a stack, in place": (lambda t, x, i: lax.dynamic_update_slice(t, x, (i, 0, 0)),
                                    (_f32(32, H, H), _f32(1, H, H), _ids()), (0,)),
    "f32 product": (lambda a, b: a @ b, (_f32(H, H), _f32(H, H)), ()),
    "f32 product, highest": (lambda a, b: jnp.dot(a, b, precision="highest"), (_f32(H, H), _f32(H, H)), ()),
    "f32 product, BF16_X3": (_x3, (_f32(H, H), _f32(H, H)), ()),
    "bf16 product": (lambda a, b: a @ b, (_bf16(H, H), _bf16(H, H)), ()),
    "bf16 product, 8192": (lambda a, b: a @ b, (_bf16(8192, 8192), _bf16(8192, 8192)), ()),
    "bf16 product, 3584 columns": (lambda a, b: a @ b, (_bf16(H, H), _bf16(H, 3584)), ()),
    "bf16 product, half the rows": (lambda a, b: a @ b, (_bf16(H // 2, H), _bf16(H, 3584)), ()),
    "bf16 product, 512 rows": (lambda a, b: a @ b, (_bf16(512, H), _bf16(H, H)), ()),
    "bf16 product of cast weights": (lambda a, b: a @ b.astype(jnp.bfloat16), (_bf16(H, H), _f32(H, H)), ()),
    "bf16 product, bias, gelu": (lambda a, b, c: jax.nn.gelu(a @ b + c), (_bf16(H, H), _bf16(H, 4 * H), _bf16(4 * H)),
                                 ()),
    "matrix times vector": (lambda a, b: a @ b, (_bf16(H, 4 * H), _bf16(4 * H)), ()),
    "64 products of 512": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (_bf16(64, 512, 512),) * 2, ()),
    "add": (lambda a, b: a + b, (_f32(H, 4 * H),) * 2, ()),
    "adam update, in place": (_adam, (_f32(H, 4 * H),) * 4, (0, 1, 2)),
    "cast to bf16": (lambda a: a.astype(jnp.bfloat16), (_f32(H, 4 * H),), ()),
    "transpose": (lambda a: a.T + 1, (_f32(H, 4 * H),), ()),
    "sum of rows": (lambda a: a.sum(-1), (_f32(H, 4 * H),), ()),
    "sum of columns": (lambda a: a.sum(0), (_f32(H, 4 * H),), ()),
    "norm": (lambda a: jnp.sqrt(jnp.sum(jnp.square(a.astype(jnp.float32)))), (_bf16(H, 4 * H),), ()),
    "softmax": (jax.nn.softmax, (_f32(4 * H, H),), ()),
    "layer norm": (_layer_norm, (_f32(4 * H, H),), ()),
    "attention": (_attention, (_bf16(4, 1024, 16, 128),) * 3, ()),
    "cross entropy": (lambda x, y: jnp.mean(jax.nn.logsumexp(x, -1) - jnp.take_along_axis(x, y[:, None], -1)[:, 0]),
                      (_f32(2048, VOCABULARY), _ids(2048)), ()),
    "sort": (jnp.sort, (_f32(1 << 20),), ()),
    "convolution": (_convolution, (_bf16(32, 56, 56, 64), _bf16(3, 3, 64, 64)), ()),
    "cumulative sum": (lambda a: jnp.cumsum(a, 1), (_f32(1024, 4096),), ()),
    "random normal": (lambda k: jax.random.normal(k, (H, H)), (Shape((2,), jnp.uint32),), ()),
    "transformer layer": (_layer, (_bf16(8, 1024, 2048), _WEIGHTS), ()),
    "transformer layer, gradient": (_layer_gradient, (_bf16(8, 1024, 2048), _WEIGHTS), ()),
}


def main() -> int:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--only", default="", help="programs whose names hold this text")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    kind = jax.devices()[0].device_kind
    cluster = next((name for part, name in CLUSTERS.items() if part in kind), None)
    if cluster is None:
        print(f"no H100 or H200 on this machine ({kind}): nothing is measured")
        return 0
    launched = _seconds(*_compiled(lambda a: a + 1, (_f32(8),), ())) * 1e6
    print(f"{kind}, jax {jax.__version__}; a call that computes nothing: {launched:.1f} us")
    print(f"{'program':<36}{'measured us':>12}{'simulated us':>14}{'simulated / measured':>22}")
    rows: list[MeasuredKernel] = []
    for name, program in PROGRAMS.items():
        if args.only not in name:
            continue
        try:
            rows.append(_measured(name, program, cluster, launched))
        except Exception as error:  # a program that this release does not compile leaves the others theirs
            print(f"{name:<36}failed: {type(error).__name__}: {str(error)[:60]}", flush=True)
            continue
        row = rows[-1]
        print(f"{row.name:<36}{row.measured_us:>12.1f}{row.simulated_us:>14.1f}"
              f"{row.simulated_us / row.measured_us:>22.2f}{'' if row.complete else '  incomplete'}", flush=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


def _measured(name: str, program: tuple[Any, ...], topology_name: str, launched: float) -> MeasuredKernel:
    from hlorewrite.cost import topology
    from hlorewrite.timeline import simulate

    step, arguments, donated = _compiled(*program)
    seconds = _seconds(step, arguments, donated)
    simulated = simulate(step.as_text(), topology(topology_name))
    return MeasuredKernel(name, seconds * 1e6, launched, simulated.compute_s * 1e6, simulated.complete)


def _compiled(function: Callable[..., Any], shapes: tuple[Any, ...], donated: tuple[int, ...]) -> tuple[Any, Any, Any]:
    def made(shape: Shape) -> Any:
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return jnp.asarray(jnp.arange(int(jnp.prod(jnp.array(shape.shape or (1,))))) % 31, shape.dtype).reshape(
                shape.shape)
        return jax.random.normal(jax.random.key(0), shape.shape, shape.dtype) * 0.1
    arguments = jax.tree.map(made, shapes)
    return jax.jit(function, donate_argnums=donated).lower(*shapes).compile(), list(arguments), donated


def _seconds(step: Any, arguments: list[Any], donated: tuple[int, ...]) -> float:
    """The median time of a call; what is donated is the result of the call before."""
    def call(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            results = step(*arguments)
            for place, result in zip(donated, results if isinstance(results, tuple) else (results,), strict=False):
                arguments[place] = result
        jax.block_until_ready(results)
        return (time.perf_counter() - begin) / times
    call(3)
    return statistics.median(call(CALLS) for _ in range(ROUNDS))


if __name__ == "__main__":
    sys.exit(main())
