"""A real four-stage GPT, 1F1B against eager-1F1B, with and without Comm-Shift, in one run.

Usage: ``python bench/pipelines/pipeline_steps.py [--steps 7] [--cluster] [--rate 100mbit]``.

On eight CPU devices of one process, two for each stage. ``--cluster`` (root on Linux, with iproute2): four hosts
as network namespaces, each with two devices and a NIC held to a rate both ways, in two layouts: a host for each stage,
so that all activations cross the network and no gradient; and replicas apart, stages 0 and 1 on hosts 0 and 1, stages 2
and 3 on hosts 2 and 3, a stage's two replicas on different hosts, so that gradients do, and activations between stages
1 and 2. The four variants alternate, step by step, and see the same machine. Losses are compared with the unsplit step
on one device. ``simulated`` is the simulator's iteration time from each fragment and transfer measured alone.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from emulated_cluster import EmulatedCluster, missing, topology_file

ROOT = Path(__file__).resolve().parents[2]
HOSTS = 4
SCHEDULES = ("1f1b", "eager-1f1b")
LAYOUTS = {"hosts": "a host for each stage", "replicas": "replicas apart"}
PASSES = {"off": "expose-collectives", "on": "expose-collectives,comm-shift"}


def config(args: argparse.Namespace):
    """The model."""
    import pipeline_gpt as gpt
    return gpt.PipelinedGptConfig(vocab=256, width=args.width, seq=64, batch=8, heads=4, micro_batches=8)


def synchronize() -> None:
    """Waits for all processes."""
    import jax
    from jax.experimental import multihost_utils
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("step")


def unsplit_losses(step: Callable[..., Any], state: Any, tokens: Any, steps: int) -> list[float]:
    """The losses of the step on one mesh."""
    import jax

    losses, plain = [], jax.jit(step)
    for _ in range(steps):
        state, loss = plain(state, tokens)
        losses.append(float(loss))
    return losses


def measure(args: argparse.Namespace, meshes: list) -> dict:
    """Median seconds of a step for each variant, and how far its losses are from the unsplit step's."""
    import jax
    import numpy as np
    import pipeline_gpt as gpt
    from jax.sharding import PartitionSpec as P

    from hlorewrite.pipelines.decorator.api import pipeline
    from hlorewrite.pipelines.runtime.timeline import measured_times

    cfg = config(args)
    tokens = np.random.default_rng(0).integers(0, cfg.vocab, (cfg.micro_batches, cfg.batch, cfg.seq + 1), np.int32)
    step = functools.partial(gpt.step, cfg)
    start = jax.tree.map(np.asarray, gpt.init_state(cfg))
    wanted = unsplit_losses(step, start, tokens, args.steps + 2)
    variants = {}
    for schedule in SCHEDULES:
        for shift, passes in PASSES.items():
            made = pipeline(step, meshes=meshes, schedule=schedule, passes=passes, donate_argnums=0,
                            in_specs=(P(), P(None, "data")))
            lowered = made.lower(start, tokens)
            variants[schedule, shift] = (lowered, lowered.compile(), start, [], [])
    for number in range(args.steps + 2):
        for name, (lowered, run, state, seconds, losses) in variants.items():
            synchronize()
            begin = time.perf_counter()
            state, loss = run(state, tokens)
            run.driver.wait([each for each in jax.tree.leaves((state, loss)) if each.addressable_shards])
            synchronize()
            if number >= 2:
                seconds.append(time.perf_counter() - begin)
            losses.append(loss)
            variants[name] = (lowered, run, state, seconds, losses)
    measured = {}
    for (schedule, shift), (lowered, run, state, seconds, losses) in variants.items():
        times = measured_times(run.driver, run.driver.place(jax.tree.leaves((state, tokens))))
        mine = [float(loss) for loss in losses if loss.addressable_shards]
        error = max((abs(a - b) / abs(b) for a, b in zip(mine, wanted, strict=False)), default=0.0)
        measured[f"{schedule} {shift}"] = {"seconds": float(np.median(seconds)), "loss_error": error,
                                           "simulated": simulated(lowered, schedule, times, args)}
        run.driver.close()
    return measured


def simulated(lowered, schedule: str, times: dict, args: argparse.Namespace) -> float:
    """The simulator's iteration time, of fragments and transfers that take measured times.

    How much of a fragment's time its collectives take follows from the rate, where replicas stand apart.
    """
    from hlorewrite.cost import topology
    from hlorewrite.pipelines.mpmd.program import Transfer
    from hlorewrite.pipelines.schedules import make_schedule
    from hlorewrite.pipelines.simulate.program import FragmentTime, ProgramCost, simulate_program
    from hlorewrite.pipelines.simulate.program_times import fragment_times

    program = lowered.data()
    positions = [position for position, step in enumerate(program.steps) if isinstance(step, Transfer)]
    transfers = {position: times["transfers"].get(f"transfer {number}", 0.0) for number, position in
                 enumerate(positions)}
    fragments = {name: FragmentTime(seconds) for name, seconds in times["fragments"].items()}
    cards = {}
    if args.layout:
        hosts = {"hosts": [(0,), (1,), (2,), (3,)], "replicas": [(0, 1), (0, 1), (2, 3), (2, 3)]}[args.layout]
        cards = {name: frozenset((host, host) for host in at) for name, at in zip(program.meshes, hosts, strict=True)}
    if args.layout == "replicas":
        with tempfile.TemporaryDirectory() as folder:
            model = topology_file(Path(folder), args.rate)
            modelled = fragment_times(lowered.module, program, topology(f"{model}:8x1"))
        fragments = {name: FragmentTime.split(time.compute_s, modelled[name].collective_s)
                     for name, time in fragments.items()}
    schedule_of = make_schedule(schedule, program.stages, program.iterations)
    cost = ProgramCost(fragments, transfers, cards)
    return simulate_program(program, schedule_of, cost, duplex=args.layout is None).iteration_time_s


def alone(args: argparse.Namespace) -> None:
    """Eight devices of one process."""
    show("8 CPU devices, one process", measure(args, [(2, 1)] * 4))


def worker(args: argparse.Namespace) -> None:
    """One host of the emulated cluster; it writes what it measured."""
    import jax
    import numpy as np
    from jax.sharding import Mesh

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(args.coordinator, HOSTS, args.worker)
    devices = np.array(sorted(jax.devices(), key=lambda device: device.id)).reshape(HOSTS, 2)
    pairs = list(devices) if args.layout == "hosts" else [
        (devices[host, place], devices[host + 1, place]) for host in (0, 2) for place in range(2)]
    meshes = [Mesh(np.array(pair).reshape(2, 1), ("data", "tensor")) for pair in pairs]
    Path(args.out).write_text(json.dumps(measure(args, meshes)))
    jax.distributed.shutdown()


def cluster(args: argparse.Namespace, layout: str) -> None:
    """Four hosts in namespaces of their own."""
    if reason := missing():
        print(f"cluster: skipped, it {reason}")
        return
    with tempfile.TemporaryDirectory() as folder, EmulatedCluster(HOSTS, args.rate) as hosts:
        logs, outs = ([Path(folder) / f"host{i}.{kind}" for i in range(HOSTS)] for kind in ("log", "json"))
        environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=2", PJRT_NPROC="64")
        for i in range(HOSTS):
            hosts.start(i, [sys.executable, str(Path(__file__).resolve()), "--worker", str(i), "--coordinator",
                            f"{hosts.addresses[0]}:9923", "--steps", str(args.steps), "--width", str(args.width),
                            "--rate", args.rate,
                            "--layout", layout, "--out", str(outs[i])], environment, logs[i])
        codes = hosts.wait(1500)
        if any(codes) or None in codes:
            failed = next(i for i, code in enumerate(codes) if code != 0)
            raise SystemExit(f"host {failed} failed: {logs[failed].read_text()[-3000:]}")
        every = [json.loads(out.read_text()) for out in outs]
    show(f"4 hosts at {args.rate}, two devices each, {LAYOUTS[layout]}",
         {name: {key: max(each[name][key] for each in every) for key in every[0][name]} for name in every[0]})


def show(title: str, measured: dict) -> None:
    """A table."""
    print(f"{title}\n  {'schedule':<14}{'Comm-Shift':<12}{'step':>10}{'gain':>8}{'simulated':>12}   loss differs by")
    for schedule in SCHEDULES:
        for shift in PASSES:
            row = measured[f"{schedule} {shift}"]
            gain = measured[f"{schedule} off"]["seconds"] / row["seconds"]
            print(f"  {schedule:<14}{shift:<12}{row['seconds'] * 1e3:>7.1f} ms{gain:>7.2f}x"
                  f"{row['simulated'] / row['seconds']:>12.2f}   {row['loss_error']:.1e}",
                  flush=True)


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--cluster", action="store_true", help="also the emulated cluster")
    parser.add_argument("--rate", default="100mbit", help="of each host's NIC, as tc writes it")
    parser.add_argument("--layout", choices=LAYOUTS, help="one layout of the cluster instead of both")
    for hidden in ("--coordinator", "--out"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT)]
    if args.worker is not None:
        worker(args)
        return 0
    if args.cluster:
        for layout in LAYOUTS if args.layout is None else (args.layout,):
            cluster(args, layout)
        return 0
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
    alone(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
