"""How many programs over several processes may be in flight at once.

On CPU a device that waits in a collective of gloo holds a thread of XLA's pool until the other process comes. The pool
has as many threads as the process has cores or devices, whichever is more; with as many waiting there is none left to
compute what the others wait for, and everything stands still. So only so many are handed over that a thread for each
device remains. On GPU a waiting collective holds a stream, not a thread, and there is no limit.
"""

from __future__ import annotations

import os

import jax

from hlorewrite.jaxbridge.pipeline_meshes import PlacedMeshes


def window(meshes: PlacedMeshes) -> int:
    """The number of programs over several processes that may be in flight in this process; 0 means any."""
    processes = {device.process_index for device in meshes.devices.values()}
    if meshes.platform != "cpu" or len(processes) < 2:
        return 0
    return window_of(pool_threads(os.environ, jax.local_device_count()), jax.local_device_count())


def window_of(threads: int, devices: int) -> int:
    """Programs that fit beside a thread for each device.

    Example:
      >>> window_of(4, 4), window_of(16, 4)
      (1, 3)
    """
    return max(1, threads // devices - 1)


def pool_threads(environment: os._Environ[str] | dict[str, str], devices: int) -> int:
    """Threads of XLA's pool on CPU: PJRT_NPROC or the cores this process may use, and one a device at least."""
    for name in ("PJRT_NPROC", "NPROC"):
        if environment.get(name, "").isdecimal():
            return max(int(environment[name]), devices)
    return max(len(os.sched_getaffinity(0)), devices)
