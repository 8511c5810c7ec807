"""One of several processes that train a small GPT; ``resume.py`` starts them.

Usage: ``resume_worker.py PORT PROCESS PROCESSES FOLDER STEPS [KILL_AT]``. A checkpoint is written after every second
step; an existing one is resumed. With KILL_AT the process ends itself by SIGKILL before that step.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from cpu_devices import use_cpu_devices

use_cpu_devices(1)

import jax  # noqa: E402

port, process, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
folder, steps, kill_at = Path(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]) if len(sys.argv) > 6 else -1
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)

from checkpoint import read_checkpoint, write_checkpoint  # noqa: E402
from dropout_gpt import DropoutGpt, data_mesh, initial_state, rewritten_step  # noqa: E402

EVERY = 2
cfg, mesh = DropoutGpt(layers=1, batch=8), data_mesh()
state = initial_state(cfg, 0, mesh)
step = rewritten_step(cfg, mesh, plan=folder / "step.plan")
saved = folder / f"state-{process}.npz"
if saved.exists():
    state = read_checkpoint(saved, state)
report = step.lower(state).report
print("PLAN", report.changed, report.plan.split(" ")[0], flush=True)
for number in range(int(state["count"]), steps):
    if number == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    state, loss, _ = step(state)
    jax.block_until_ready(loss)
    if (number + 1) % EVERY == 0:
        write_checkpoint(saved, state)
write_checkpoint(folder / f"final-{process}.npz", state)
print("DONE", int(state["count"]), flush=True)
