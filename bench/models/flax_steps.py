"""Train steps of Flax models at real size: a vision transformer, a diffusion U-Net, and PPO under ``jax.pmap``.

    hlorewrite exec --capture FILE -- python bench/models/flax_steps.py vit|unet|ppo

The step is lowered from shapes and compiled for the devices that are there; nothing is allocated. ``vit`` is ViT-L/16
(304 M parameters), data-parallel with four micro-batches; ``unet`` has the channels of Stable Diffusion's U-Net
(attention without text), its parameters sharded over the devices; ``ppo`` averages gradients in each minibatch, as
pmap trainers do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MICRO_BATCHES = 4


class VitBlock(nn.Module):
    """Attention and a multilayer perceptron, each behind a layer norm."""

    width: int
    heads: int

    @nn.compact
    def __call__(self, x: jax.Array, _: None) -> tuple[jax.Array, None]:
        normed = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=jnp.bfloat16)(normed)
        hidden = nn.Dense(4 * self.width, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x))
        return x + nn.Dense(self.width, dtype=jnp.bfloat16)(nn.gelu(hidden)), None


class VisionTransformer(nn.Module):
    """ViT-L/16 on images of 224 x 224: scanned layers under full rematerialization."""

    width: int = 1024
    heads: int = 16
    layers: int = 24
    classes: int = 1000

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        patches = nn.Conv(self.width, (16, 16), (16, 16), dtype=jnp.bfloat16)(images)
        x = patches.reshape(images.shape[0], -1, self.width)
        x = x + self.param("positions", nn.initializers.normal(0.02), (1, x.shape[1], self.width)).astype(x.dtype)
        scanned = nn.scan(nn.remat(VitBlock), variable_axes={"params": 0}, split_rngs={"params": True},
                          length=self.layers)
        x, _ = scanned(self.width, self.heads)(x, None)
        return nn.Dense(self.classes)(nn.LayerNorm(dtype=jnp.bfloat16)(x).mean(1))


class ResidualBlock(nn.Module):
    """Two convolutions behind group norms, with the time embedded between them."""

    channels: int

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        out = nn.Conv(self.channels, (3, 3), dtype=jnp.bfloat16)(nn.silu(nn.GroupNorm(dtype=jnp.bfloat16)(x)))
        out = out + nn.Dense(self.channels, dtype=jnp.bfloat16)(nn.silu(time))[:, None, None]
        out = nn.Conv(self.channels, (3, 3), dtype=jnp.bfloat16)(nn.silu(nn.GroupNorm(dtype=jnp.bfloat16)(out)))
        return out + (x if x.shape[-1] == self.channels else nn.Dense(self.channels, dtype=jnp.bfloat16)(x))


class SpatialAttention(nn.Module):
    """Self-attention over the pixels of a feature map."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        pixels = nn.GroupNorm(dtype=jnp.bfloat16)(x).reshape(x.shape[0], -1, x.shape[-1])
        out = nn.MultiHeadDotProductAttention(8, dtype=jnp.bfloat16)(pixels)
        hidden = nn.Dense(4 * x.shape[-1], dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(out))
        return x + (out + nn.Dense(x.shape[-1], dtype=jnp.bfloat16)(nn.gelu(hidden))).reshape(x.shape)


class DiffusionUNet(nn.Module):
    """Two residual blocks a level, attention on the upper three; latents of 64 x 64 x 4."""

    channels: tuple[int, ...] = (320, 640, 1280, 1280)

    @nn.compact
    def __call__(self, latents: jax.Array, time: jax.Array) -> jax.Array:
        half = self.channels[0] // 2
        angles = time[:, None] * jnp.exp(-jnp.arange(half) * (9.2 / half))[None]
        embedded = nn.Dense(4 * self.channels[0], dtype=jnp.bfloat16)(
            jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))
        x = nn.Conv(self.channels[0], (3, 3), dtype=jnp.bfloat16)(latents)
        kept = [x]
        for level, channels in enumerate(self.channels):
            for _ in range(2):
                x = ResidualBlock(channels)(x, embedded)
                x = SpatialAttention()(x) if level < 3 else x
                kept.append(x)
            if level < 3:
                x = nn.Conv(channels, (3, 3), (2, 2), dtype=jnp.bfloat16)(x)
                kept.append(x)
        x = ResidualBlock(channels)(SpatialAttention()(ResidualBlock(channels)(x, embedded)), embedded)
        for level, channels in reversed(list(enumerate(self.channels))):
            for _ in range(3):
                x = ResidualBlock(channels)(jnp.concatenate([x, kept.pop()], -1), embedded)
                x = SpatialAttention()(x) if level < 3 else x
            if level:
                x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "nearest")
                x = nn.Conv(channels, (3, 3), dtype=jnp.bfloat16)(x)
        return nn.Conv(4, (3, 3))(nn.silu(nn.GroupNorm()(x)))


class ActorCritic(nn.Module):
    """The convolutional network of Atari agents, with a policy and a value."""

    actions: int = 18

    @nn.compact
    def __call__(self, frames: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = frames.astype(jnp.float32) / 255
        for channels, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(channels, (size, size), (stride, stride))(x))
        x = nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.actions)(x), nn.Dense(1)(x)[:, 0]


def vit() -> Any:
    """The lowered step of the vision transformer: 256 images a device in four micro-batches."""
    count = jax.device_count()
    model, images = VisionTransformer(), _shape((MICRO_BATCHES, 64 * count, 224, 224, 3), jnp.bfloat16)
    labels = _shape(images.shape[:2], jnp.int32)

    def loss_of(parameters: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(parameters, images), labels).mean()
    return _lowered(loss_of, model.init, (images, labels), sharded=False)


def unet() -> Any:
    """The lowered step of the diffusion U-Net: 32 latents a device in four micro-batches."""
    count = jax.device_count()
    model, latents = DiffusionUNet(), _shape((MICRO_BATCHES, 8 * count, 64, 64, 4), jnp.bfloat16)
    noise, times = latents, _shape(latents.shape[:2], jnp.float32)

    def loss_of(parameters: Any, latents: jax.Array, times: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.mean((model.apply(parameters, latents + noise, times) - noise) ** 2)
    return _lowered(loss_of, model.init, (latents, times, noise), sharded=True)


def ppo() -> Any:
    """The lowered update of PPO: four epochs of eight minibatches of 256 frames a device, under ``jax.pmap``."""
    count, model, optimizer = jax.device_count(), ActorCritic(), optax.chain(optax.clip_by_global_norm(0.5),
                                                                           optax.adam(3e-4))

    def loss_of(parameters: Any, batch: dict[str, jax.Array]) -> jax.Array:
        logits, values = model.apply(parameters, batch["frames"])
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["actions"][:, None], 1)[:, 0]
        ratio = jnp.exp(chosen - batch["before"])
        gain = jnp.minimum(ratio * batch["advantages"], jnp.clip(ratio, 0.8, 1.2) * batch["advantages"])
        return jnp.mean((values - batch["returns"]) ** 2) - jnp.mean(gain)

    def update(state: Any, batches: dict[str, jax.Array]) -> tuple[Any, jax.Array]:
        def minibatch(state: Any, batch: dict[str, jax.Array]) -> tuple[Any, jax.Array]:
            loss, gradients = jax.value_and_grad(loss_of)(state[0], batch)
            gradients = jax.lax.pmean(gradients, "devices")
            updates, moments = optimizer.update(gradients, state[1], state[0])
            return (optax.apply_updates(state[0], updates), moments), jax.lax.pmean(loss, "devices")

        def epoch(state: Any, _: None) -> tuple[Any, jax.Array]:
            return jax.lax.scan(minibatch, state, batches)
        return jax.lax.scan(epoch, state, None, length=4)

    rows = {"frames": ((84, 84, 4), jnp.uint8), "actions": ((), jnp.int32), "before": ((), jnp.float32),
            "advantages": ((), jnp.float32), "returns": ((), jnp.float32)}
    batches = {name: _shape((count, 8, 256, *shape), kind) for name, (shape, kind) in rows.items()}
    parameters = jax.eval_shape(model.init, jax.random.key(0), _shape((1, 84, 84, 4), jnp.uint8))
    state = (parameters, jax.eval_shape(optimizer.init, parameters))
    state = jax.tree.map(lambda leaf: _shape((count, *leaf.shape), leaf.dtype), state)
    return jax.pmap(update, axis_name="devices", donate_argnums=0).lower(state, batches)


def _lowered(loss_of: Callable[..., jax.Array], init: Callable[..., Any], batches: tuple[Any, ...], *, sharded: bool
             ) -> Any:
    """A step that accumulates micro-batches in a scan and ends with AdamW; auto-sharded over one axis.

    Args:
      loss_of: of parameters and the arrays of one micro-batch.
      init: of the model.
      batches: shapes of the arrays; dimension 0 counts micro-batches, dimension 1 rows.
      sharded: whether parameters and moments are sharded over the devices, or replicated.
    """
    count, optimizer = jax.device_count(), optax.adamw(1e-4)
    mesh = jax.make_mesh((count,), ("data",), axis_types=(AxisType.Auto,))

    def placed(leaf: Any, spec: P) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    def spec_of(leaf: Any) -> P:
        even = [size if size % count == 0 and sharded else 0 for size in leaf.shape]
        return P(*("data" if each == even.index(max(even)) and max(even) else None for each in range(len(even)))
                 ) if even else P()

    parameters = jax.eval_shape(init, jax.random.key(0), *(_shape((1, *each.shape[2:]), each.dtype)
                                                           for each in batches[:2 if sharded else 1]))
    state = jax.tree.map(lambda leaf: placed(leaf, spec_of(leaf)),
                         (parameters, jax.eval_shape(optimizer.init, parameters)))
    rows = tuple(placed(each, P(None, "data")) for each in batches)

    def train_step(state: Any, batches: tuple[jax.Array, ...]) -> tuple[Any, jax.Array]:
        def micro_batch(total: Any, batch: tuple[jax.Array, ...]) -> tuple[Any, jax.Array]:
            loss, gradients = jax.value_and_grad(loss_of)(state[0], *batch)
            return jax.tree.map(jnp.add, total, gradients), loss
        total, losses = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, state[0]), batches)
        gradients = jax.tree.map(lambda each: each / MICRO_BATCHES, total)
        updates, moments = optimizer.update(gradients, state[1], state[0])
        return (optax.apply_updates(state[0], updates), moments), losses.mean()
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    return jax.jit(train_step, donate_argnums=0, out_shardings=(shardings, None)).lower(state, rows)


def _shape(shape: tuple[int, ...], kind: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, kind)


STEPS = {"vit": vit, "unet": unet, "ppo": ppo}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in STEPS:
        sys.exit(f"usage: python bench/models/flax_steps.py {'|'.join(STEPS)}")
    STEPS[sys.argv[1]]().compile()
