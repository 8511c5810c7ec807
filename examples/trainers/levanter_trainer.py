"""Levanter's own ``Trainer.train_step``: data-parallel, four micro-batches by ``per_device_parallelism``.

``python levanter_trainer.py [STEPS]`` prints the loss of each step. It does not refer to hlorewrite.
"""

from __future__ import annotations

import os
import sys
import tempfile

os.environ["WANDB_MODE"] = "disabled"
import equinox as eqx
import haliax as hax
import haliax.nn as hnn
import jax

jax.config.update("jax_num_cpu_devices", 8)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from levanter.tracker import NoopConfig  # noqa: E402
from levanter.trainer import Trainer, TrainerConfig  # noqa: E402

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
In, Mid, Out, Batch = (hax.Axis(name, size) for name, size in (("in", 16), ("mid", 64), ("out", 8), ("batch", 256)))


class LevanterModel(eqx.Module):
    """Two layers."""

    up: hnn.Linear
    down: hnn.Linear

    def __call__(self, x: hax.NamedArray) -> hax.NamedArray:
        return self.down(hax.nn.relu(self.up(x)))


def init(key: jax.Array) -> LevanterModel:
    """The model."""
    up, down = jax.random.split(key)
    return LevanterModel(hnn.Linear.init(In, Mid, key=up), hnn.Linear.init(Mid, Out, key=down))


def loss_of(model: LevanterModel, batch: tuple, *, key: jax.Array | None = None) -> hax.NamedArray:
    """The mean squared error."""
    return hax.mean((model(batch[0]) - batch[1]) ** 2)


config = TrainerConfig(num_train_steps=STEPS, train_batch_size=256, per_device_parallelism=8, tracker=NoopConfig(),
                       require_accelerator=False, id="t", log_jaxprs=False, log_xla_hlo=False, fsdp_axis=None,
                       log_dir=tempfile.mkdtemp(), load_checkpoint=False)
trainer = Trainer(config, optax.adamw(1e-2), loss_of, add_default_hooks=False)
rng = np.random.default_rng(0)
with trainer, trainer.device_mesh:
    state = trainer.initial_state(jax.random.key(0), model_init=lambda: init(jax.random.key(0)))
    rows, wanted = (hax.shard(hax.named(jnp.asarray(rng.standard_normal((256, axis.size), np.float32)), (Batch, axis)),
                              trainer.compute_axis_mapping) for axis in (In, Out))
    for _ in range(STEPS):
        info = trainer.train_step(state, (rows, wanted))
        state = info.state
        print(f"LOSS {float(info.loss):.7g}", flush=True)
