"""The values of global arrays on the host, sent between processes through the key-value store of
``jax.distributed``."""

from typing import Any

import jax
import numpy as np

from hlorewrite.errors import PlanError, UsageError
from hlorewrite.jaxbridge.processes.consensus import ROOMS
from hlorewrite.jaxbridge.processes.liveness import Watch

_CHUNK_BYTES = 1 << 20  # the store takes messages of 4 MiB


def fetch_value(name: str, value: jax.Array, watch: Watch | None, timeout_s: float, to: int | None = None
                ) -> np.ndarray | None:
    """The whole value of an array; each process may have a part of it or nothing. All processes call it.

    Args:
      name: the name of the value, for errors and keys; the same on all processes.
      value: the array; where a process has no part of it, one without shards.
      watch: the watch of the processes; None when there is one.
      timeout_s: how long to wait for each other process, seconds.
      to: the process that gets the value; None for all.

    Returns:
      The value, copied to the host; None on processes that do not get it.

    Raises:
      UsageError: no process of that number participates.
      PlanError: a process does not send its part in time.
    """
    if watch is None:
        return np.array(value)
    members = sorted(watch.stages)
    if to is not None and to not in members:
        raise UsageError(f"{name} is to be fetched to process {to}, which has no part in this pipeline",
                         hint=f"name one of {', '.join(map(str, members))}")
    room = f"{watch.room.replace('/watch/', '/values/')}/{name}/{ROOMS.next(watch.room + name)}"
    held = {shard.device: shard.data for shard in value.addressable_shards}
    pieces = _pieces(value)
    keys: list[str] = []
    for number, (device, _) in enumerate(pieces):
        if device in held:
            keys += _send(watch.store, f"{room}/{number}", np.asarray(held[device]).tobytes())
    whole: np.ndarray | None = None
    if to in (None, jax.process_index()):
        whole = np.empty(value.shape, value.dtype)
        for number, (device, index) in enumerate(pieces):
            own = whole[index]
            data = np.asarray(held[device]).tobytes() if device in held else \
                _receive(watch.store, f"{room}/{number}", own.nbytes, name, device.process_index, timeout_s)
            whole[index] = np.frombuffer(data, value.dtype).reshape(own.shape)
    _meet(watch.store, f"{room}/read", members, name, timeout_s)
    for key in keys:
        watch.store.key_value_delete(key)
    return whole


def _pieces(value: jax.Array) -> list[tuple[Any, tuple[slice, ...]]]:
    """The different parts of an array, each with the device of the lowest number that has it."""
    found: dict[tuple, tuple[Any, tuple[slice, ...]]] = {}
    placed = value.sharding.devices_indices_map(value.shape)
    for device in sorted(placed, key=lambda device: device.id):
        index = tuple(placed[device] or ())
        found.setdefault(tuple((part.start, part.stop) for part in index), (device, index))
    return list(found.values())


def _send(store: Any, key: str, data: bytes) -> list[str]:
    keys = [f"{key}/{place}" for place in range(0, max(len(data), 1), _CHUNK_BYTES)]
    for number, each in enumerate(keys):
        store.key_value_set_bytes(each, data[number * _CHUNK_BYTES:(number + 1) * _CHUNK_BYTES])
    return keys


def _receive(store: Any, key: str, size: int, name: str, owner: int, timeout_s: float) -> bytes:
    try:
        return b"".join(store.blocking_key_value_get_bytes(f"{key}/{place}", round(timeout_s * 1000))
                        for place in range(0, max(size, 1), _CHUNK_BYTES))
    except jax.errors.JaxRuntimeError as error:
        raise PlanError(f"{name} did not come from process {owner} within {timeout_s:g} s",
                        hint="fetch it on every process, and allow for the time of a step") from error


def _meet(store: Any, key: str, members: list[int], name: str, timeout_s: float) -> None:
    """Waits until all have read: then what was sent can be deleted."""
    try:
        store.wait_at_barrier(key, round(timeout_s * 1000), members)
    except jax.errors.JaxRuntimeError as error:
        raise PlanError(f"not every process has fetched {name} within {timeout_s:g} s",
                        hint="fetch it on every process, and allow for the time of a step") from error
