"""One process of a distributed step; started several times by ``test_processes.py``.

Usage: ``process_worker.py PORT PROCESS PROCESSES BEHAVIOUR [ON_ERROR [PLANS ON_MISMATCH]]``; BEHAVIOUR is ``same``,
``pipeline``, ``off``, ``other``, ``fails``, ``killed``, ``stopped`` or ``sleeps``, and concerns process 2 alone. Prints
``OK value`` or ``STOPPED sentence``; with the last three the others run steps until they are stopped. With
``killed-WAIT`` each has two devices, so that a step is still to come when its call has returned, and they wait by
``method`` or in an ``array`` of NumPy. PLANS is a folder in which each process has its own plan file; ON_MISMATCH is
the policy of process 0, the others have ``replan``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass

port, process, processes, behaviour = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
odd = process == 2
on_error = sys.argv[5] if len(sys.argv) > 5 else None
os.environ["JAX_PLATFORMS"] = "cpu"
behaviour, _, wait = behaviour.partition("-")
if wait:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
if odd and behaviour == "off":
    os.environ["HLOREWRITE"] = "0"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import hlorewrite  # noqa: E402
from hlorewrite.errors import HlorewriteError, PassFailed  # noqa: E402
from hlorewrite.passmanager.base import Pass  # noqa: E402


@dataclass(frozen=True)
class Fails(Pass):
    """Fails."""

    name = "fails"

    def run(self, module, ctx):
        """Raises."""
        raise PassFailed("this pass fails")


jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
passes = {"pipeline": "comm-shift,canonicalize", "fails": Fails()}.get(behaviour, "comm-shift") if odd else "comm-shift"


def local(batches):
    """Sums over micro-batches and devices."""
    def body(total, batch):
        return total + jax.lax.pmean(batch.sum() * (2 if odd and behaviour == "other" else 1), "data"), None

    return jax.lax.scan(body, jnp.zeros(()), batches)[0]


plan = {"plan": os.path.join(sys.argv[6], f"{process}.plan")} if len(sys.argv) > 6 else {}
if plan:
    plan["on_mismatch"] = ("replan" if process else sys.argv[7])
step = hlorewrite.optimize(jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P(None, "data"), out_specs=P(),
                                                 check_vma=False)), passes=passes, timeout_s=12.0,
                           on_error=on_error, **plan)
rows = np.arange(4 * jax.device_count(), dtype=np.float32).reshape(4, -1)
sharding = NamedSharding(mesh, P(None, "data"))
batches = jax.make_array_from_callback(rows.shape, sharding, lambda index: rows[index])
try:
    report = step.lower(batches).report
    print("OK", float(step(batches)), float(step(batches)), report.changed,
          *([report.plan] if report.plan else []), flush=True)
except HlorewriteError as error:
    print("STOPPED", error, flush=True)
waits = {"method": lambda result: result.block_until_ready(),
         "array": lambda result: np.array([result.addressable_data(0)])}
if behaviour in ("killed", "stopped", "sleeps"):
    for number in range(100_000):
        result = step(batches)
        waits.get(wait, float)(result)
        if odd and number == 5:
            print("MISBEHAVES", time.time(), flush=True)
            if behaviour == "sleeps":
                time.sleep(1000)
            os.kill(os.getpid(), signal.SIGKILL if behaviour == "killed" else signal.SIGSTOP)
if process == 0:
    sys.stdin.read()  # the store lives in process 0: it leaves last
os._exit(0)  # a process that stopped early must not wait for the others in jax's shutdown barrier
