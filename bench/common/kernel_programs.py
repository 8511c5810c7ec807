"""Programs of one op, or of few: what kernels are measured and predicted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

VOCABULARY, WIDTH, ROWS = 50304, 4096, 512
Shape = jax.ShapeDtypeStruct
Program = tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]
"""A function, the shapes of its arguments, and which of them are donated."""


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
PROGRAMS: dict[str, Program] = {
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


def _rotary(x: Any, angles: Any) -> Any:
    left, right = jnp.split(x.astype(jnp.float32), 2, -1)
    sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1).astype(x.dtype)


def _summed_stack(rows: Any) -> Any:
    return lax.scan(lambda total, row: (total + row, None), jnp.zeros(rows.shape[1:]), rows)[0]


def _f8(*shape: int) -> Shape:
    return Shape(shape, jnp.float8_e4m3fn)


def _f8_product(a: Any, b: Any) -> Any:
    return lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)


MORE_PROGRAMS: dict[str, Program] = {
    "f8 product": (_f8_product, (_f8(H, H), _f8(H, H)), ()),
    "bf16 product, 128 x 256 x 128": (lambda a, b: a @ b, (_bf16(128, 256), _bf16(256, 128)), ()),
    "bf16 product plus residual": (lambda x, a, b: x + a @ b, (_bf16(H, H),) * 3, ()),
    "product of a transpose": (lambda a, b: a.T @ b, (_bf16(H, H),) * 2, ()),
    "two products of one input": (lambda x, a, b: jax.nn.silu(x @ a) * (x @ b), (_bf16(H, H),) * 3, ()),
    "one-hot, product": (lambda i, t: jax.nn.one_hot(i, 8192, dtype=jnp.bfloat16) @ t,
                         (_ids(2048), _bf16(8192, 1024)), ()),
    "top 8 of 64": (lambda a: lax.top_k(a, 8)[0], (_f32(2048, 64),), ()),
    "concatenate": (lambda a, b: jnp.concatenate([a, b], 1), (_bf16(H, H),) * 2, ()),
    "pad": (lambda a: jnp.pad(a, ((0, 0), (128, 128))), (_bf16(H, H),), ()),
    "reverse": (lambda a: a[:, ::-1], (_f32(H, H),), ()),
    "slice of columns": (lambda a: a[:, :1024] * 2, (_bf16(H, 4 * H),), ()),
    "swap of two dimensions": (lambda a: jnp.swapaxes(a, 1, 2) * 2, (_bf16(8, 1024, 16, 128),), ()),
    "dropout by a given mask": (lambda x, m: jnp.where(m, x / 0.9, 0), (_bf16(H, H), Shape((H, H), jnp.bool_)), ()),
    "rms norm": (lambda x, w: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * w,
                 (_f32(4 * H, H), _f32(H)), ()),
    "gradient of a bias": (lambda g: g.astype(jnp.float32).sum((0, 1)), (_bf16(8, 2048, H),), ()),
    "largest of each row": (lambda a: jnp.argmax(a, -1), (_f32(2048, VOCABULARY),), ()),
    "max pool": (lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
                 (_f32(32, 112, 112, 64),), ()),
    "rotary embedding": (_rotary, (_bf16(8, 1024, 16, 128), _f32(1024, 64)), ()),
    "causal scores": (lambda s: jnp.where(jnp.tril(jnp.ones((1024, 1024), bool)), s, -1e9),
                      (_f32(4, 16, 1024, 1024),), ()),
    "sum of two stacks in a loop": (_summed_stack, (_f32(32, H, 1024),), ()),
    "sgd update, in place": (lambda p, g: p - 0.1 * g, (_f32(H, 4 * H),) * 2, (0,)),
    "sum of micro-batches, in place": (lambda a, g: a + g.astype(jnp.float32), (_f32(H, H), _bf16(H, H)), (0,)),
}
