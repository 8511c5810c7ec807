"""One host of the emulated cluster: runs every resharding it has a part in, times it, checks every byte."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from hlorewrite.jaxbridge.xla.private import distributed_client
from hlorewrite.pipelines.runtime.reshard import resharder


def _sharding(devices: list[Any], mesh: list[int], spec: str) -> NamedSharding:
    grid = Mesh(np.array(devices).reshape(mesh), ("host", "gpu"))
    names = {"-": None, "host": "host", "gpu": "gpu", "all": ("host", "gpu")}
    return NamedSharding(grid, PartitionSpec(*(names[entry] for entry in spec.split(","))))


def _devices(per_host: dict[int, list[Any]], first: int, mesh: list[int]) -> list[Any]:
    return [device for host in range(first, first + mesh[0]) for device in per_host[host][:mesh[1]]]


def main() -> None:
    """Reads the work from a file, joins the cluster, and writes its times to another."""
    work = json.loads(Path(sys.argv[1]).read_text())
    process = int(sys.argv[2])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(work["coordinator"], work["hosts"], process)
    per_host: dict[int, list[Any]] = {}
    for device in jax.devices():
        per_host.setdefault(device.process_index, []).append(device)
    barrier = distributed_client()
    with Path(sys.argv[3]).open("w") as out:
        for number, job in enumerate(work["jobs"]):
            _one(job, number, process, per_host, barrier, work, out)
    barrier.wait_at_barrier("end", 120_000)


def _one(job: dict[str, Any], number: int, process: int, per_host: dict[int, list[Any]], barrier: Any,
         work: dict[str, Any], out: Any) -> None:
    shape = tuple(job["shape"])
    source = _sharding(_devices(per_host, 0, job["source"]), job["source"], job["source_spec"])
    destination = _sharding(_devices(per_host, job["source"][0], job["destination"]), job["destination"],
                            job["destination_spec"])
    takes_part = any(d.process_index == process for d in (*source.device_set, *destination.device_set))
    call = None
    rng = np.random.default_rng(number)
    values = rng.integers(-2**31, 2**31, shape, np.int32)
    if takes_part:
        program = resharder(shape, np.int32, source, destination, job["strategy"], order=job["order"],
                            topology=work["topology"], chunk_bytes=job["chunk_bytes"])
        local = list(source.addressable_devices)
        index = source.addressable_devices_indices_map(shape)
        array = jax.make_array_from_single_device_arrays(
            shape, source, [jax.device_put(values[index[d]], d) for d in local], dtype=np.int32)
        assert program is not None, "the cases are not empty"
        stacked = program.stack(array)
        call = program, stacked
    for turn in range(job["repeats"] + 1):  # the first opens connections
        barrier.wait_at_barrier(f"{number}-{turn}", 300_000)
        begin = time.monotonic()
        if call is None:
            continue
        program, stacked = call
        result = jax.block_until_ready(program.call(stacked))
        end = time.monotonic()
        moved = program.unstack(result)
        right = all(np.array_equal(np.asarray(s.data), values[s.index]) for s in moved.addressable_shards)
        checked = sum(s.data.nbytes for s in moved.addressable_shards)
        record = {"job": number, "turn": turn, "begin": begin, "end": end, "right": bool(right), "bytes": checked,
                  "temporary": program.memory.temp_size_in_bytes, "chunk_bytes": program.lowered.chunk_bytes,
                  "strategy": program.plan.strategy, "rounds": program.lowered.rounds}
        out.write(json.dumps(record) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
