"""A ResNet-50 train step on images of 224 x 224, data-parallel, with batch norms over the whole batch.

A batch norm computes the variance from the mean (``jnp.var``), or from the mean of squares, as Flax does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import export
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Weights = dict[str, Any]


@dataclass(frozen=True)
class ResNetStep:
    """The step to lower.

    Attributes:
      blocks: bottleneck blocks of each stage.
      width: channels of the first stage.
      rows: images of one device.
      size: height and width of an image.
      classes: labels.
      devices: how many.
      fast: take the variance from the mean of squares.
      dtype: of activations; statistics are ``float32``.
    """

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    rows: int = 128
    size: int = 224
    classes: int = 1000
    devices: int = 8
    fast: bool = False
    dtype: Any = jnp.bfloat16


def weights(step: ResNetStep, key: jax.Array) -> Weights:
    """Random weights of a step's model."""
    made: Weights = {"stem": _convolution(key, 7, 3, step.width), "stages": []}
    channels = step.width
    for stage, count in enumerate(step.blocks):
        inner, outer, blocks = step.width << stage, 4 * step.width << stage, []
        for number in range(count):
            keys = jax.random.split(jax.random.fold_in(key, 100 * stage + number), 4)
            block = {"a": _convolution(keys[0], 1, channels, inner), "b": _convolution(keys[1], 3, inner, inner),
                     "c": _convolution(keys[2], 1, inner, outer)}
            if number == 0:
                block["skip"] = _convolution(keys[3], 1, channels, outer)
            blocks.append(block)
            channels = outer
        made["stages"].append(blocks)
    made["head"] = jax.random.normal(key, (channels, step.classes)) * channels ** -0.5
    return made


def _convolution(key: jax.Array, size: int, inner: int, outer: int) -> Weights:
    kernel = jax.random.normal(key, (size, size, inner, outer)) * (2 / (size * size * inner)) ** 0.5
    return {"kernel": kernel, "scale": jnp.ones(outer), "shift": jnp.zeros(outer)}


def _normed(step: ResNetStep, x: jax.Array, layer: Weights, stride: int = 1) -> jax.Array:
    """A convolution and its batch norm."""
    x = jax.lax.conv_general_dilated(x, layer["kernel"].astype(x.dtype), (stride, stride), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    variance = (wide ** 2).mean((0, 1, 2)) - mean ** 2 if step.fast else wide.var((0, 1, 2))
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["shift"]).astype(x.dtype)


def loss(step: ResNetStep, model: Weights, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean cross-entropy of a batch."""
    x = jax.nn.relu(_normed(step, images.astype(step.dtype), model["stem"], 2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for stage, blocks in enumerate(model["stages"]):
        for number, block in enumerate(blocks):
            stride = 2 if number == 0 and stage > 0 else 1
            out = jax.nn.relu(_normed(step, x, block["a"]))
            out = jax.nn.relu(_normed(step, out, block["b"], stride))
            out = _normed(step, out, block["c"])
            x = jax.nn.relu(out + (_normed(step, x, block["skip"], stride) if "skip" in block else x))
    logits = x.mean((1, 2), dtype=jnp.float32) @ model["head"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def lowerable(step: ResNetStep, mesh: Mesh | AbstractMesh) -> tuple[Any, tuple[Any, ...]]:
    """The jitted step and the shapes of its arguments: weights and momenta, images, labels.

    Args:
      step: the step; its weights are replicated and updated by SGD with momentum.
      mesh: of one axis, ``data``.
    """
    def placed(leaf: Any, spec: P) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    def train_step(state: tuple[Weights, Weights], images: jax.Array, labels: jax.Array) -> Any:
        model, momenta = state
        value, gradients = jax.value_and_grad(lambda model: loss(step, model, images, labels))(model)
        momenta = jax.tree.map(lambda old, new: 0.9 * old + new, momenta, gradients)
        return (jax.tree.map(lambda old, new: old - 0.1 * new, model, momenta), momenta), value

    model = jax.eval_shape(lambda key: weights(step, key), jax.random.key(0))
    model = jax.tree.map(lambda leaf: placed(leaf, P()), model)
    rows = step.rows * step.devices
    images = placed(jax.ShapeDtypeStruct((rows, step.size, step.size, 3), step.dtype), P("data"))
    labels = placed(jax.ShapeDtypeStruct((rows,), jnp.int32), P("data"))
    return jax.jit(train_step, donate_argnums=0), ((model, model), images, labels)


def exported(step: ResNetStep) -> bytes:
    """The step as a serialized ``jax.export`` for GPUs."""
    jitted, shapes = lowerable(step, AbstractMesh((step.devices,), ("data",), axis_types=(AxisType.Auto,)))
    return bytes(export.export(jitted, platforms=("cuda",))(*shapes).serialize())
