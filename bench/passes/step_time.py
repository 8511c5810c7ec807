"""Step time before against after rewriting, in one run: eight CPU devices, or an emulated cluster of four hosts.

Usage: ``python bench/passes/step_time.py [--size tiny] [--steps 20] [--cluster]``.

``--cluster`` (root on Linux, with iproute2): one network namespace a host on a bridge, each held to 1 Gbit/s both ways
by ``tc tbf``, one process a host with one device, collectives by gloo. Without the rights it says so and exits 0.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from emulated_cluster import EmulatedCluster, missing

ROOT = Path(__file__).resolve().parents[2]
HOSTS = 4


def measure(devices: int, size: str, steps: int) -> dict[str, float]:
    """Median seconds of a step, original and rewritten in turn, so that both see the same machine."""
    import gpt
    import jax
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    import hlorewrite

    cfg = gpt.SIZES[size]
    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    plain = gpt.make_step(cfg, mesh)
    shifted = hlorewrite.optimize(gpt.make_step(cfg, mesh), passes="comm-shift")
    replicated, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))
    tokens = np.random.default_rng(0).integers(0, cfg.vocab, (cfg.micro_batches, cfg.batch, cfg.seq + 1), np.int32)
    batch = jax.make_array_from_callback(tokens.shape, rows, lambda index: tokens[index])
    start = jax.tree.map(np.asarray, gpt.init_state(cfg))
    states = [jax.tree.map(lambda x: jax.make_array_from_callback(x.shape, replicated, lambda i, x=x: x[i]), start)
              for _ in range(2)]
    times: tuple[list[float], list[float]] = ([], [])
    losses = [0.0, 0.0]
    for number in range(steps + 2):
        for which, step in enumerate((plain, shifted)):
            begin = time.perf_counter()
            states[which], loss = step(states[which], batch)
            losses[which] = float(jax.block_until_ready(loss))
            if number >= 2:
                times[which].append(time.perf_counter() - begin)
    return {"before": float(np.median(times[0])), "after": float(np.median(times[1])),
            "loss_difference": abs(losses[0] - losses[1])}


def show(title: str, measured: dict[str, float]) -> None:
    """One line of the table."""
    print(f"{title:<44} before {measured['before'] * 1e3:9.2f} ms   after {measured['after'] * 1e3:9.2f} ms   "
          f"{measured['before'] / measured['after']:.2f}x   loss differs by {measured['loss_difference']:.1e}",
          flush=True)


def single(args: argparse.Namespace) -> None:
    """Eight devices of this process."""
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
    show(f"8 CPU devices, one process, {args.size}", measure(8, args.size, args.steps))


def worker(args: argparse.Namespace) -> None:
    """One host of the emulated cluster; the first prints."""
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(args.coordinator, HOSTS, args.worker)
    measured = measure(HOSTS, args.size, args.steps)
    if args.worker == 0:
        show(f"{HOSTS} hosts at {args.rate}, one device each, {args.size}", measured)
    jax.distributed.shutdown()


def cluster(args: argparse.Namespace) -> None:
    """Four hosts in namespaces of their own; the first one prints."""
    if reason := missing():
        print(f"cluster: skipped, it {reason}")
        return
    with tempfile.TemporaryDirectory() as folder, EmulatedCluster(HOSTS, args.rate) as hosts:
        logs = [Path(folder) / f"host{i}.log" for i in range(HOSTS)]
        for i, log in enumerate(logs):
            hosts.start(i, [sys.executable, str(Path(__file__).resolve()), "--worker", str(i), "--coordinator",
                            f"{hosts.addresses[0]}:9917", "--size", args.size, "--steps", str(args.steps),
                            "--rate", args.rate], dict(os.environ, XLA_FLAGS=""), log)
        codes = hosts.wait(900)
        if any(codes) or None in codes:
            failed = next(i for i, code in enumerate(codes) if code != 0)
            raise SystemExit(f"host {failed} failed: {logs[failed].read_text()[-2000:]}")
        print("".join(line for line in logs[0].read_text().splitlines(keepends=True) if not line.startswith("[Gloo]")),
              end="")


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="tiny", choices=["tiny", "small"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--cluster", action="store_true", help="also the emulated cluster")
    parser.add_argument("--rate", default="1gbit", help="of each host's link, as tc writes it")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--coordinator", help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT)]
    if args.worker is not None:
        worker(args)
        return 0
    single(args)
    if args.cluster:
        cluster(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
