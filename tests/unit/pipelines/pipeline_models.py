"""Models as lists of blocks, which a hand-written cut marks between and ``stages="auto"`` cuts anywhere.

A block maps (its parameters, what the blocks before it pass on) to what it passes on: a dictionary with ``x``, and
whatever later blocks need, such as skips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import hlorewrite

Carry = dict[str, jax.Array]
Block = Callable[[Any, Carry], Carry]


@dataclass(frozen=True)
class BlockModel:
    """A model and what it is trained on.

    Attributes:
      blocks: its blocks in order.
      init: makes the parameters of each block and a batch [m * rows, ...].
      loss: of what the last block passes on.
      microbatches: m.
    """

    blocks: tuple[Block, ...]
    init: Callable[[], tuple[list[Any], jax.Array]]
    loss: Callable[[Carry], jax.Array]
    microbatches: int = 8

    def step(self, cuts: Sequence[int] = ()) -> Callable[..., Any]:
        """The train step; stages begin with the blocks in ``cuts``."""
        def loss(params: list[Any], rows: jax.Array) -> jax.Array:
            carry: Carry = {"x": rows}
            for number, (block, own) in enumerate(zip(self.blocks, params, strict=True)):
                if number in cuts:
                    carry = hlorewrite.stage(carry, list(cuts).index(number) + 1)
                carry = block(own, carry)
            return self.loss(carry)

        return _descent(loss, self.microbatches)


@dataclass(frozen=True)
class ScannedGpt:
    """A GPT whose layers are stacked and run in one ``lax.scan``.

    Attributes:
      layers: how many.
      width: of the layers.
      rows: of a micro-batch.
      seq: tokens of a row.
      vocab: size of the vocabulary.
      remat: whether layers are computed again in the backward.
      microbatches: m.
    """

    layers: int = 8
    width: int = 64
    rows: int = 4
    seq: int = 16
    vocab: int = 512
    remat: bool = False
    microbatches: int = 8

    @property
    def blocks(self) -> range:
        """The layers, between which a hand cuts."""
        return range(self.layers)

    def init(self) -> tuple[dict[str, Any], jax.Array]:
        """Parameters and a batch."""
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(_layer(self.width, 10 * i)
                                                                    for i in range(self.layers)))
        return {"embed": _normal(1, self.vocab, self.width), "layers": stacked,
                "head": _normal(2, self.width, self.vocab)}, jax.random.randint(
                    jax.random.key(0), (self.microbatches * self.rows, self.seq), 0, self.vocab)

    def step(self, cuts: Sequence[int] = ()) -> Callable[..., Any]:
        """The train step; stages begin with the layers in ``cuts``."""
        def layer(x: jax.Array, p: Any) -> tuple[jax.Array, None]:
            return _run_layer(p, hlorewrite.stage_layers(x, tuple(cuts)) if cuts else x), None

        def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
            x, _ = lax.scan(jax.checkpoint(layer) if self.remat else layer, params["embed"][tokens], params["layers"])
            log = jax.nn.log_softmax(_norm(x) @ params["head"])
            return -jnp.mean(jnp.take_along_axis(log, tokens[..., None], -1))

        return _descent(loss, self.microbatches)


def _descent(loss: Callable[..., jax.Array], microbatches: int) -> Callable[..., Any]:
    """A step of gradient descent."""
    def step(params: Any, rows: jax.Array) -> tuple[Any, jax.Array]:
        value, grads = hlorewrite.mean_over_microbatches(
            lambda part: jax.value_and_grad(loss)(params, part), rows, microbatches)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def _normal(seed: int, *shape: int) -> jax.Array:
    return 0.05 * jax.random.normal(jax.random.key(seed), shape)


def _norm(x: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def _attend(p: Any, x: jax.Array, source: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("bqc,bkc->bqk", x @ p["q"], source @ p["k"]) * 0.1)
    return scores @ (source @ p["v"]) @ p["o"]


def _attention(width: int, seed: int) -> dict[str, jax.Array]:
    return {name: _normal(seed + i, width, width) for i, name in enumerate("qkvo")}


def _layer(width: int, seed: int) -> dict[str, Any]:
    return {"own": _attention(width, seed), "up": _normal(seed + 5, width, 4 * width),
            "down": _normal(seed + 6, 4 * width, width)}


def _run_layer(p: Any, x: jax.Array) -> jax.Array:
    x = x + _attend(p["own"], _norm(x), _norm(x))
    return x + jax.nn.relu(_norm(x) @ p["up"]) @ p["down"]


def _mean_square(carry: Carry) -> jax.Array:
    return jnp.mean(carry["x"] ** 2)


def gpt(layers: int = 8, width: int = 64, rows: int = 4, seq: int = 16, microbatches: int = 8) -> BlockModel:
    """Equal layers between an embedding and a head with a large vocabulary."""
    def embed(p: Any, carry: Carry) -> Carry:
        return {"x": p[carry["x"]], "tokens": carry["x"]}

    def block(p: Any, carry: Carry) -> Carry:
        return carry | {"x": _run_layer(p, carry["x"])}

    def head(p: Any, carry: Carry) -> Carry:
        log = jax.nn.log_softmax(_norm(carry["x"]) @ p)
        return {"x": jnp.take_along_axis(log, carry["tokens"][..., None], -1)}

    def init() -> tuple[list[Any], jax.Array]:
        params = [_normal(1, 8 * width, width), *(_layer(width, 10 * i) for i in range(layers)),
                  _normal(2, width, 8 * width)]
        return params, jax.random.randint(jax.random.key(0), (microbatches * rows, seq), 0, 8 * width)

    return BlockModel((embed, *(block,) * layers, head), init, lambda carry: -jnp.mean(carry["x"]),
                      microbatches)


def moe_gpt(layers: int = 6, width: int = 64, experts: int = 4, rows: int = 4, seq: int = 16,
            microbatches: int = 8) -> BlockModel:
    """Layers of which every second one has experts and adds a balancing loss."""
    def dense(p: Any, carry: Carry) -> Carry:
        return carry | {"x": _run_layer(p, carry["x"])}

    def sparse(p: Any, carry: Carry) -> Carry:
        x = carry["x"]
        x = x + _attend(p["own"], _norm(x), _norm(x))
        gates = jax.nn.softmax(_norm(x) @ p["gate"])
        hidden = jax.nn.relu(jnp.einsum("bsd,edf->bsef", _norm(x), p["up"]))
        mixed = jnp.einsum("bsef,efd,bse->bsd", hidden, p["down"], gates)
        load = experts * jnp.sum(jnp.mean(gates, (0, 1)) ** 2)
        return {"x": x + mixed, "aux": carry.get("aux", jnp.zeros(())) + load}

    def init() -> tuple[list[Any], jax.Array]:
        params: list[Any] = []
        for i in range(layers):
            params.append(_layer(width, 10 * i) if i % 2 == 0 else {
                "own": _attention(width, 10 * i), "gate": _normal(10 * i + 4, width, experts),
                "up": _normal(10 * i + 5, experts, width, 2 * width),
                "down": _normal(10 * i + 6, experts, 2 * width, width)})
        return params, jax.random.normal(jax.random.key(0), (microbatches * rows, seq, width))

    return BlockModel(tuple(sparse if i % 2 else dense for i in range(layers)), init,
                      lambda carry: _mean_square(carry) + 0.01 * carry["aux"], microbatches)


def t5(layers: int = 4, width: int = 64, rows: int = 4, seq: int = 16, microbatches: int = 8) -> BlockModel:
    """An encoder, a decoder that reads its result in every layer, and an embedding of the decoder's tokens."""
    def encode(p: Any, carry: Carry) -> Carry:
        x = carry["x"] if "tokens" in carry else p["embed"][carry["x"]]
        return {"x": _run_layer(p["layer"], x), "tokens": carry.get("tokens", carry["x"])}

    def decode(p: Any, carry: Carry) -> Carry:
        if "encoded" not in carry:
            carry = {"encoded": carry["x"], "x": p["embed"][carry["tokens"]]}
        x = _run_layer(p["layer"], carry["x"])
        return carry | {"x": x + _attend(p["cross"], _norm(x), carry["encoded"])}

    def init() -> tuple[list[Any], jax.Array]:
        embed = {"embed": _normal(1, 8 * width, width)}
        params: list[Any] = [{"layer": _layer(width, 10 * i)} | (embed if i == 0 else {}) for i in range(layers)]
        params += [{"layer": _layer(width, 200 + 20 * i), "cross": _attention(width, 210 + 20 * i)}
                   | ({"embed": _normal(2, 8 * width, width)} if i == 0 else {}) for i in range(layers)]
        return params, jax.random.randint(jax.random.key(0), (microbatches * rows, seq), 0, 8 * width)

    return BlockModel((encode,) * layers + (decode,) * layers, init, _mean_square, microbatches)


def unet(depth: int = 3, width: int = 8, rows: int = 4, size: int = 16, microbatches: int = 8) -> BlockModel:
    """A U-Net with a skip from each level down to the same level up."""
    def conv(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def down(level: int) -> Block:
        def block(p: Any, carry: Carry) -> Carry:
            x = jax.nn.relu(conv(carry["x"], p["first"]))
            x = jax.nn.relu(conv(x, p["second"]))
            return carry | {f"skip{level}": x, "x": jax.nn.relu(conv(x, p["third"], 2))}
        return block

    def up(level: int) -> Block:
        def block(p: Any, carry: Carry) -> Carry:
            wide = jnp.repeat(jnp.repeat(carry["x"], 2, 1), 2, 2)
            x = jnp.concatenate([jax.nn.relu(conv(wide, p["first"])), carry[f"skip{level}"]], -1)
            rest = {name: value for name, value in carry.items() if name != f"skip{level}"}
            return rest | {"x": jax.nn.relu(conv(jax.nn.relu(conv(x, p["second"])), p["third"]))}
        return block

    def init() -> tuple[list[Any], jax.Array]:
        params: list[Any] = []
        for level in range(depth):
            wide = width * 2 ** level
            params.append({"first": _normal(level, 3, 3, wide, wide), "second": _normal(level + 10, 3, 3, wide, wide),
                           "third": _normal(level + 20, 3, 3, wide, 2 * wide)})
        for level in reversed(range(depth)):
            wide = width * 2 ** level
            params.append({"first": _normal(level + 30, 3, 3, 2 * wide, wide),
                           "second": _normal(level + 40, 3, 3, 2 * wide, wide),
                           "third": _normal(level + 50, 3, 3, wide, wide)})
        return params, jax.random.normal(jax.random.key(0), (microbatches * rows, size, size, width))

    return BlockModel((*(down(level) for level in range(depth)), *(up(level) for level in reversed(range(depth)))),
                      init, _mean_square, microbatches)
