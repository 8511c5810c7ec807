"""One process of a distributed program of ``peers.py`` and ``evidence/faults.py``; one of them misbehaves.

Usage: ``peers_worker.py PORT PROCESS PROCESSES PROGRAM KIND ODD``. PROGRAM is ``step`` (decorated), ``jit`` (under
``patch_jit``) or ``pipeline``. KIND is what the odd process does: ``killed``, ``stopped`` or ``sleeping`` after five
steps; ``raises``, ``delayed``, ``memory`` or ``dies`` in its rewriter, ``none`` for nothing.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.jaxbridge.step.options import as_passes
from hlorewrite.passmanager.base import Pass

WRONG_AFTER = 5
DELAY_S = 30.0
_ROOM = 256 << 20


@dataclass(frozen=True)
class FaultyPass(Pass):
    """Does nothing, but on one process it misbehaves."""

    name: ClassVar[str] = "faulty"
    kind: str = "none"
    odd: int = 0

    def run(self, module: Any, ctx: Any) -> bool:
        """Misbehaves; returns that nothing was changed."""
        if jax.process_index() != self.odd or self.kind == "none":
            return False
        print("MISBEHAVES", time.time(), flush=True)
        if self.kind == "raises":
            raise ValueError("a bug of this pass")
        if self.kind == "delayed":
            time.sleep(DELAY_S)
        if self.kind == "memory":
            exhaust_memory()
        if self.kind == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return False


def exhaust_memory() -> None:
    """Allocates until the address space of this process is used up; raises ``MemoryError``."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, before[1]))
    kept = []
    try:
        while True:  # Ends: the address space is limited.
            kept.append(bytearray(_ROOM // 8))
    finally:
        kept.clear()
        resource.setrlimit(resource.RLIMIT_AS, before)


def local(batches: jax.Array) -> jax.Array:
    """Sums over micro-batches and devices."""
    def body(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.lax.pmean(batch.sum(), "data"), None

    return jax.lax.scan(body, jnp.zeros(()), batches)[0]


def step_program(processes: int, decorated: bool, faulty: list[Pass]) -> Callable[[], Any]:
    """A step over all processes, decorated or compiled under ``patch_jit``."""
    mesh = jax.make_mesh((processes,), ("data",), axis_types=(AxisType.Auto,))
    step: Any = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P(None, "data"), out_specs=P(), check_vma=False))
    passes = [*as_passes("comm-shift"), *faulty]
    if decorated:
        step = hlorewrite.optimize(step, passes=passes)
    else:
        hlorewrite.patch_jit(passes)
    rows = np.arange(4 * processes, dtype=np.float32).reshape(4, processes)
    batches = jax.make_array_from_callback(rows.shape, NamedSharding(mesh, P(None, "data")), lambda index: rows[index])
    return lambda: float(step(batches))


def pipeline_program(stages: int, faulty: list[Pass]) -> Callable[[], Any]:
    """A pipelined step, a stage on each process."""
    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for number, weights in enumerate(params):
            x = jnp.tanh(x @ weights)
            x = hlorewrite.stage(x, number + 1) if number + 1 < len(params) else x
        return jnp.mean(x ** 2)

    def step(params: list[jax.Array], x: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        value, grads = hlorewrite.mean_over_microbatches(lambda rows: jax.value_and_grad(loss)(params, rows), x, 2)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    passes = [*as_passes("expose-collectives,comm-shift"), *faulty]
    pipelined = hlorewrite.pipeline(step, meshes=[(1,)] * stages, passes=passes)
    state: list[Any] = [[jnp.ones((4, 4))] * stages]

    def run() -> None:
        state[0], _ = pipelined(state[0], np.ones((8, 4), np.float32))
        jax.block_until_ready(state[0])
    return run


def first_step(run: Callable[[], Any]) -> None:
    """Runs a step, and prints ``RAN``, when it was decided what runs, what that is, and why it is the original."""
    said: list[str] = []

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        if "unrewritten: " in str(message):
            said.append(str(message))
            print("RAN", time.time(), "original", str(message).partition("unrewritten: ")[2], flush=True)

    warnings.showwarning = note
    value = run()
    if not said:
        print("RAN", time.time(), "rewritten", flush=True)
    print("VALUE", value, flush=True)


def main() -> None:
    """Runs steps until it is ended."""
    port, process, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    program, kind, odd = sys.argv[4], sys.argv[5], int(sys.argv[6])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
    faulty: list[Pass] = [FaultyPass(kind, odd)] if kind in ("raises", "delayed", "memory", "dies", "none") else []
    run = pipeline_program(processes, faulty) if program == "pipeline" else \
        step_program(processes, program == "step", faulty)
    if faulty:
        first_step(run)
    number = 1 if faulty else 0
    # Ends: when the process is ended from outside.
    while True:
        run()
        number += 1
        if process == odd and number == WRONG_AFTER and not faulty:
            print("MISBEHAVES", time.time(), flush=True)
            if kind == "sleeping":
                time.sleep(1000)
            os.kill(os.getpid(), signal.SIGKILL if kind == "killed" else signal.SIGSTOP)


if __name__ == "__main__":
    main()
