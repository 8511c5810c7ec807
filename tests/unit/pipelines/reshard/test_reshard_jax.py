"""Resharding of JAX arrays: bit-exact, in one chunk of memory, in one process and in several.

JAX takes its number of devices once per process, so each test is a program of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from warm_process import warm_python

ROOT = Path(__file__).resolve().parents[4]


def _environment(devices: int) -> dict[str, str]:
    return {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} --xla_backend_optimization_level=0"}


def _python(program: str, devices: int = 12) -> str:
    done = subprocess.run([warm_python(), "-c", program], env=_environment(devices), capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


HEAD = """
import itertools, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import hlorewrite
from hlorewrite.pipelines.runtime.reshard import resharder
devices = jax.devices()
have = Mesh(np.array(devices[:4]).reshape(2, 2), ("host", "gpu"))
want = Mesh(np.array(devices[4:10]).reshape(3, 2), ("host", "gpu"))
def check(found, values, sharding):
    assert found.sharding == sharding and found.dtype == values.dtype and found.shape == values.shape
    for shard in found.addressable_shards:
        assert np.asarray(shard.data).tobytes() == np.ascontiguousarray(values[shard.index]).tobytes()
"""


def test_all_strategies_are_bit_exact_on_disjoint_and_overlapping_meshes() -> None:
    _python(HEAD + """
values = np.random.default_rng(0).integers(-2**31, 2**31, (12, 6, 4), np.int32)
for source, destination in itertools.product([P("host"), P(None, "gpu"), P(), P(("host", "gpu"))],
                                             [P("host"), P("gpu", "host"), P()]):
    array = jax.device_put(values, NamedSharding(have, source))
    for mesh in (want, have):
        there = NamedSharding(mesh, destination)
        for strategy in ("auto", "send-recv", "all-gather", "global-all-gather"):
            check(hlorewrite.reshard(array, there, strategy, chunk_bytes=256), values, there)
""")


def test_trees_are_bit_exact() -> None:
    """One host to three, of two devices each."""
    _python(HEAD + """
from hlorewrite.cost import topology
from hlorewrite.pipelines.runtime.reshard import Resharder, compile_lowered, layout_of
from hlorewrite.pipelines.reshard import network_of, plan_reshard
from hlorewrite.pipelines.reshard.lower import lower
one = Mesh(np.array(devices[:2]), ("gpu",))
both = [*devices[:2], *devices[4:10]]
network = network_of(topology("h200"), {device.id: device.id // 2 for device in both})
values = np.random.default_rng(0).integers(-2**31, 2**31, (12, 6, 4), np.int32)
for source, destination in itertools.product([P("gpu"), P()], [P(), P("gpu"), P(None, "gpu")]):
    have, there = NamedSharding(one, source), NamedSharding(want, destination)
    plan = plan_reshard(layout_of(values.shape, have), layout_of(values.shape, there), 4, network, "trees")
    lowered = lower(plan, "i32", "cpu", 96)
    program = Resharder(plan, lowered, have, there, compile_lowered(lowered, values.dtype, both), None)
    check(program(jax.device_put(values, have)), values, there)
""")


def test_dtypes_scalars_empty_arrays_and_other_shardings() -> None:
    _python(HEAD + """
there = NamedSharding(want, P("host"))
rng = np.random.default_rng(1)
for dtype in (jnp.bfloat16, jnp.float32, jnp.int8, jnp.uint16, jnp.bool_, jnp.complex64, jnp.float8_e4m3fn):
    bits = rng.integers(0, 256, (6, 4 * np.dtype(dtype).itemsize), np.uint8)
    values = (bits % 2).astype(bool) if dtype == jnp.bool_ else bits.view(dtype)  # all bit patterns, NaNs too
    check(hlorewrite.reshard(jax.device_put(values, NamedSharding(have, P("gpu"))), there), values, there)
scalar = jax.device_put(np.float32(3.5), NamedSharding(have, P()))
check(hlorewrite.reshard(scalar, NamedSharding(want, P())), np.asarray(scalar), NamedSharding(want, P()))
empty = jax.device_put(np.zeros((0, 6), np.float32), NamedSharding(have, P()))
check(hlorewrite.reshard(empty, there), np.asarray(empty), there)
same = jax.device_put(np.arange(6.0), devices[0])
alone = NamedSharding(Mesh(np.array(devices[:1]), ("x",)), P("x"))
check(hlorewrite.reshard(same, alone), np.asarray(same), alone)
one = jax.device_put(np.arange(6.0), devices[0])
check(hlorewrite.reshard(one, there), np.asarray(one), there)
""")


def test_memory_is_source_and_destination_and_one_chunk() -> None:
    _python(HEAD + """
shape = (240, 96, 64)
specs = [P("host"), P(None, ("host", "gpu"))], [P("host"), P()]
for source, destination, mesh in itertools.product(*specs, (want, have)):
    program = resharder(shape, np.float32, NamedSharding(have, source), NamedSharding(mesh, destination), "broadcast",
                        chunk_bytes=1 << 17)
    loops = program.lowered.text.count("stablehlo.while")
    assert program.lowered.chunk_bytes <= 1 << 17
    tables = 4096 + 512 * loops  # indices and loop counters
    assert program.memory.temp_size_in_bytes <= program.lowered.chunk_bytes + tables, (source, destination)
    assert program.memory.argument_size_in_bytes == 4 * np.prod(program.lowered.source_tile)
    assert program.memory.output_size_in_bytes == 4 * np.prod(program.lowered.destination_tile)
""")


def test_gathers_of_a_gpu_module_are_bit_exact_and_hold_one_chunk() -> None:
    """The module for GPUs of two hosts to two others, by four ports each; it has no op that XLA:CPU lacks."""
    _python(HEAD + """
from hlorewrite.cost import topology
from hlorewrite.pipelines.runtime.reshard import compile_lowered, layout_of, stacked_sharding
from hlorewrite.pipelines.reshard import network_of, plan_reshard
from hlorewrite.pipelines.reshard.lower import lower
there = Mesh(np.array(devices[8:16]).reshape(2, 4), ("host", "gpu"))
here = Mesh(np.array(devices[:8]).reshape(2, 4), ("host", "gpu"))
network = network_of(topology("h200"), {d.id: d.id // 4 for d in devices[:16]})
values = np.random.default_rng(0).integers(-2**31, 2**31, (1024, 512), np.int32)
for have, want in ((P("host"), P("host")), (P(None, "gpu"), P("host"))):
    source, destination = NamedSharding(here, have), NamedSharding(there, want)
    plan = plan_reshard(*(layout_of(values.shape, each) for each in (source, destination)), 4, network, "broadcast")
    lowered = lower(plan, "i32", "gpu")
    assert "all_gather" in lowered.text and "collective_broadcast" not in lowered.text
    compiled = compile_lowered(lowered, np.int32, devices[:16])
    held = {s.device: np.asarray(s.data) for s in jax.device_put(values, source).addressable_shards}
    stacked = np.concatenate([held.get(d, np.zeros(lowered.source_tile, np.int32)) for d in devices[:16]])
    moved = np.asarray(compiled(jax.device_put(stacked, stacked_sharding(devices[:16]))))
    for device, index in destination.devices_indices_map(values.shape).items():
        assert (moved.reshape(16, *lowered.destination_tile)[device.id] == values[index]).all()
    tables = 4096 + 512 * lowered.text.count("stablehlo.while")
    assert compiled.memory_analysis().temp_size_in_bytes <= lowered.chunk_bytes + tables
""", 16)


def test_mistakes_are_told() -> None:
    out = _python(HEAD + """
from hlorewrite.errors import HlorewriteError
array = jax.device_put(np.zeros((4, 6), np.float32), NamedSharding(have, P("host")))
key = jax.device_put(jax.random.key(0), NamedSharding(have, P()))
for call in (lambda: hlorewrite.reshard(array, NamedSharding(want, P("host"))),
             lambda: hlorewrite.reshard(array, NamedSharding(want, P(None, None, "host"))),
             lambda: hlorewrite.reshard(array, NamedSharding(have, P()), "best"),
             lambda: hlorewrite.reshard(array, NamedSharding(have, P()), topology="h20"),
             lambda: hlorewrite.reshard(key, NamedSharding(want, P()))):
    try:
        call()
        print("no error")
    except HlorewriteError as error:
        print(error)
""")
    lines = out.splitlines()
    assert len(lines) == 5 and "no error" not in lines
    assert "does not fit shape [4, 6]" in lines[0] and "does not fit shape [4, 6]" in lines[1]
    assert 'there is no strategy "best"' in lines[2] and 'did you mean "h200"' in lines[3]
    assert "cannot be resharded" in lines[4]


WORKER = """
import sys, jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
port, process, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", 3, process)
import hlorewrite
from hlorewrite.errors import PlanError
devices = sorted(jax.devices(), key=lambda d: d.id)
have = NamedSharding(Mesh(np.array([d for d in devices if d.process_index == 0]), ("x",)), P("x"))
want = NamedSharding(Mesh(np.array([d for d in devices if d.process_index > 0]).reshape(2, 2), ("host", "gpu")),
                     P(None, "host"))
values = np.random.default_rng(5).integers(0, 255, (64, 32), np.uint8)
parts = [jax.device_put(values[have.devices_indices_map(values.shape)[d]], d) for d in have.addressable_devices]
array = jax.make_array_from_single_device_arrays(values.shape, have, parts, dtype=np.uint8)
strategy = "send-recv" if mode == "unequal" and process == 2 else "broadcast"
try:
    if mode == "missing" and process == 1:
        raise PlanError("stayed away")
    for _ in range(3 if mode == "equal" else 1):
        found = hlorewrite.reshard(array, want, strategy, timeout_s=4.0 if mode == "missing" else 60.0)
    assert all((np.asarray(s.data) == values[s.index]).all() for s in found.addressable_shards)
    print("said:", "received", sum(s.data.nbytes for s in found.addressable_shards))
except PlanError as error:
    print("said:", error)
sys.stdout.flush()
from jax._src import distributed
distributed.global_state.client.wait_at_barrier("end", 60000)
"""


def _processes(mode: str) -> list[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [subprocess.Popen([warm_python(), "-c", WORKER, str(port), str(process), mode], env=_environment(2),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for process in range(3)]
    try:
        results = [process.communicate(timeout=300) for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
    assert all(process.returncode == 0 for process in started), [error[-1500:] for _, error in results]
    # Gloo prints as well, a line in several pieces.
    said = [[line.partition("said: ")[2] for line in out.splitlines() if "said: " in line] for out, _ in results]
    assert all(len(lines) == 1 for lines in said), said
    return [lines[0] for lines in said]


def test_three_processes_reshard_with_gloo() -> None:
    assert _processes("equal") == ["received 0", "received 2048", "received 2048"]


def test_unequal_views_are_told_and_do_not_hang() -> None:
    said = _processes("unequal")
    assert "process 2 (comparing): its module differs from that of process 0: its plan is " in said[0]
    assert all(line == said[0] for line in said)


def test_a_missing_process_is_named() -> None:
    said = _processes("missing")
    assert said[1] == "stayed away"
    assert "process 1 (not seen yet): it did not reach this module within 4 s" in said[0]
    assert said[2] == said[0]


@pytest.mark.slow
def test_emulated_cluster_checks_every_byte() -> None:
    from emulated_cluster import missing  # pyright: ignore[reportMissingImports]
    if reason := missing():
        pytest.skip(f"the emulated cluster {reason}")
    bench = ROOT / "bench" / "reshard" / "reshard.py"
    done = subprocess.run([warm_python(), str(bench), "emulate", "--cases", "case3,1-to-4", "--mib", "2", "--rate",
                           "200mbit", "--repeats", "1"],
                          env=_environment(4), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "False" not in done.stdout and done.stdout.count("True") == 15
