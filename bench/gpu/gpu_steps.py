"""Train steps of one device for ``bench/gpu/day.py``: a GPT, a mixture of experts and a convolutional network.

Each is a function of (parameters, batch) that returns new parameters, with shapes to lower it from. Layers are written
out, so that a kernel runs as often as it stands in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@dataclass(frozen=True)
class DeviceStep:
    """One step.

    Attributes:
      name: what it trains.
      function: (parameters, batch) to new parameters.
      shapes: of both.
    """

    name: str
    function: Callable[[Any, Any], Any]
    shapes: tuple[Any, Any]


def steps(*, dry: bool) -> list[DeviceStep]:
    """The three steps, at sizes for a GPU, or for a CPU that only tries them."""
    width, layers, tokens, batch = (64, 1, 32, 2) if dry else (2048, 4, 2048, 4)
    return [_gpt(width, layers, tokens, batch), _experts(width, layers, tokens, batch),
            _convolutions(*((8, 2, 16, 2) if dry else (128, 8, 112, 64)))]


def _step(loss: Callable[[Any, Any], jax.Array]) -> Callable[[Any, Any], Any]:
    def step(params: Any, batch: Any) -> Any:
        grads = jax.grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads)
    return step


def _shape(*sizes: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def _norm(x: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def _attend(x: jax.Array, layer: dict[str, jax.Array], heads: int) -> jax.Array:
    rows, tokens, width = x.shape
    q, k, v = (jnp.reshape(x @ layer[name].astype(x.dtype), (rows, tokens, heads, -1)) for name in "qkv")
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
    return mixed.reshape(rows, tokens, width) @ layer["o"].astype(x.dtype)


def _attention_shapes(width: int) -> dict[str, jax.ShapeDtypeStruct]:
    return {name: _shape(width, width) for name in "qkvo"}


def _language_model(name: str, width: int, layers: int, tokens: int, batch: int, mix: Callable[..., jax.Array],
                    mixed: dict[str, Any]) -> DeviceStep:
    vocab = 32 * width // 2

    def loss(params: Any, ids: jax.Array) -> jax.Array:
        x = params["embed"].astype(jnp.bfloat16)[ids[:, :-1]]
        for layer in params["layers"]:
            x = x + _attend(_norm(x), layer, max(width // 128, 2))
            x = x + mix(_norm(x), layer)
        logits = (_norm(x) @ params["embed"].T.astype(jnp.bfloat16)).astype(jnp.float32)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), ids[:, 1:, None], -1)
        return -jnp.mean(picked)

    params = {"embed": _shape(vocab, width), "layers": [{**_attention_shapes(width), **mixed} for _ in range(layers)]}
    return DeviceStep(name, _step(loss), (params, _shape(batch, tokens + 1, dtype=jnp.int32)))


def _gpt(width: int, layers: int, tokens: int, batch: int) -> DeviceStep:
    def mix(x: jax.Array, layer: dict[str, jax.Array]) -> jax.Array:
        return jax.nn.gelu(x @ layer["up"].astype(x.dtype)) @ layer["down"].astype(x.dtype)
    return _language_model("GPT", width, layers, tokens, batch, mix,
                           {"up": _shape(width, 4 * width), "down": _shape(4 * width, width)})


def _experts(width: int, layers: int, tokens: int, batch: int, experts: int = 8) -> DeviceStep:
    """Each token goes to its best expert, if that has room for it: as many tokens as the mean."""
    def mix(x: jax.Array, layer: dict[str, jax.Array]) -> jax.Array:
        flat = x.reshape(-1, width)
        room = flat.shape[0] // experts
        gates = jax.nn.softmax((flat @ layer["router"].astype(x.dtype)).astype(jnp.float32))
        chosen = jax.nn.one_hot(jnp.argmax(gates, -1), experts, dtype=jnp.int32)
        place = jnp.sum((jnp.cumsum(chosen, 0) - 1) * chosen, -1)
        expert = jnp.argmax(gates, -1)
        slots = jnp.zeros((experts, room, width), x.dtype).at[expert, place].set(flat, mode="drop")
        hidden = jax.nn.gelu(jnp.einsum("erw,ewf->erf", slots, layer["up"].astype(x.dtype)))
        out = jnp.einsum("erf,efw->erw", hidden, layer["down"].astype(x.dtype))
        back = out.at[expert, place].get(mode="fill", fill_value=0) * jnp.max(gates, -1)[:, None].astype(x.dtype)
        return back.reshape(x.shape)
    return _language_model("mixture of experts", width, layers, tokens, batch, mix,
                           {"router": _shape(width, experts), "up": _shape(experts, width, 2 * width),
                            "down": _shape(experts, 2 * width, width)})


def _convolutions(channels: int, layers: int, side: int, batch: int) -> DeviceStep:
    def loss(params: Any, images: jax.Array) -> jax.Array:
        x = images.astype(jnp.bfloat16)
        for kernel in params["kernels"]:
            x = x + jax.nn.relu(lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), "SAME",
                                                         dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return jnp.mean(jnp.square(x.astype(jnp.float32)))
    params = {"kernels": [_shape(3, 3, channels, channels) for _ in range(layers)]}
    return DeviceStep("convolutions", _step(loss), (params, _shape(batch, side, side, channels)))
