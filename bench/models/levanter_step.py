"""The train step of Levanter's own ``Trainer`` at real size: Llama 3 8B, its parameters sharded over the devices.

    hlorewrite exec --capture FILE -- python bench/models/levanter_step.py

``Trainer`` jits the step, which is lowered from shapes, so nothing is allocated. Sequence 4096, full rematerialization,
bf16 compute on f32 parameters, four accumulated micro-batches of four rows a device.
"""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any

os.environ["WANDB_MODE"] = "disabled"
import equinox as eqx
import haliax as hax
import haliax.partitioning
import jax
import jax.numpy as jnp
import jmp
from levanter.layers.attention import AttentionBackend
from levanter.models.llama import LlamaConfig
from levanter.models.lm_model import LmExample, compute_next_token_loss
from levanter.optim import AdamConfig
from levanter.tracker import NoopConfig
from levanter.trainer import Trainer, TrainerConfig
from levanter.trainer_state import TrainerState

ROWS, MICRO_BATCHES = 4, 4
LLAMA = LlamaConfig(seq_len=4096, hidden_dim=4096, intermediate_dim=14336, num_layers=32, num_heads=32, num_kv_heads=8,
                    attn_backend=AttentionBackend.VANILLA)
VOCABULARY = hax.Axis("vocab", 128256)


def train_step() -> Any:
    """The lowered step, with as many devices as there are."""
    config = TrainerConfig(
        mp=jmp.get_policy("p=f32,c=bf16"), train_batch_size=ROWS * MICRO_BATCHES * jax.device_count(),
        per_device_parallelism=ROWS, tracker=NoopConfig(), require_accelerator=False, id="captured", log_jaxprs=False,
        log_xla_hlo=False, log_dir=tempfile.mkdtemp(), load_checkpoint=False)
    loss_of = functools.partial(compute_next_token_loss, reduction=None)  # jnp.mean takes no mask of floats any more
    trainer = Trainer(config, AdamConfig().build(1000), loss_of, add_default_hooks=False)
    with trainer:
        state = placed(eqx.filter_eval_shape(initial_state, trainer), trainer.parameter_axis_mapping)
        examples = placed(eqx.filter_eval_shape(batch, trainer), trainer.compute_axis_mapping)
        return trainer._jit_train_step_fn_no_hook.lower(state, (examples,), {})


def initial_state(trainer: Trainer) -> TrainerState:
    """What ``Trainer.initial_state`` starts with.

    Args:
      trainer: whose optimizer and precision it uses.
    """
    key = jax.random.key(0)
    return TrainerState.init(trainer.optimizer, LLAMA.build(VOCABULARY, key=key), key=key, is_trainable=True,
                             mp=trainer.mp)


def batch(trainer: Trainer) -> LmExample:
    """The rows of one step.

    Args:
      trainer: whose batch size it has.
    """
    axes = (trainer.TrainBatch, LLAMA.Pos)
    return LmExample(hax.zeros(axes, jnp.int32), hax.ones(axes, jnp.int32))


def placed(tree: Any, mapping: Any) -> Any:
    """Shapes with the shardings that Levanter gives their axes.

    Args:
      tree: of shapes.
      mapping: axes of Haliax to axes of the mesh.
    """
    shardings = haliax.partitioning.infer_resource_partitions(tree, mapping, preserve_existing_shardings=False)

    def shape(leaf: Any, sharding: Any) -> Any:
        if isinstance(leaf, hax.NamedArray):
            return hax.NamedArray(shape(leaf.array, sharding), leaf.axes)
        is_shape = isinstance(leaf, jax.ShapeDtypeStruct)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) if is_shape else leaf
    return jax.tree.map(shape, tree, shardings, is_leaf=lambda leaf: isinstance(leaf, hax.NamedArray))


if __name__ == "__main__":
    jax.core.is_constant_dim = lambda size: isinstance(size, int)  # Haliax 1.4.dev453 reads it; JAX 0.12 has dropped it
    haliax.partitioning.is_array = lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
    train_step().compile()
