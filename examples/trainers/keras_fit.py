"""Keras ``fit`` on eight devices, with gradients accumulated over four calls.

``python keras_fit.py [STEPS] [data|model]`` prints the loss of each step. It does not refer to hlorewrite.
"""

from __future__ import annotations

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
import jax

jax.config.update("jax_num_cpu_devices", 8)
import keras  # noqa: E402
import numpy as np  # noqa: E402

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
keras.utils.set_random_seed(0)
devices = keras.distribution.list_devices()
if sys.argv[2:] == ["model"]:
    layout = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((2, 4), ["batch", "model"], devices))
    layout[".*dense.*kernel"], layout[".*dense.*bias"] = (None, "model"), ("model",)
    chosen = keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch", auto_shard_dataset=False)
else:
    chosen = keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
keras.distribution.set_distribution(chosen)
model = keras.Sequential([keras.layers.Dense(64, activation="relu", name="dense_up"),
                          keras.layers.Dense(8, name="dense_down")])
model.compile(optimizer=keras.optimizers.AdamW(1e-2, gradient_accumulation_steps=4), loss="mse")
rng = np.random.default_rng(0)
rows = rng.standard_normal((64 * STEPS, 16)).astype(np.float32)
wanted = rng.standard_normal((64 * STEPS, 8)).astype(np.float32)
printed = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: print(f"LOSS {logs['loss']:.7g}"))
model.fit(rows, wanted, batch_size=64, epochs=1, shuffle=False, verbose=0, callbacks=[printed])
