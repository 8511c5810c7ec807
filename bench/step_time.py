"""Step time before against after rewriting, in one run: eight CPU devices, or an emulated cluster of four hosts.

Usage: ``python bench/step_time.py [--size tiny] [--steps 20] [--cluster]``.

``--cluster`` (root on Linux, with iproute2): one network namespace a host on a bridge, each held to 1 Gbit/s both ways
by ``tc tbf``, one process a host with one device, collectives by gloo. Without the rights it says so and exits 0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOSTS = 4
BRIDGE = "hlrbench0"


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


def show(title: str, found: dict[str, float]) -> None:
    """One line of the table."""
    print(f"{title:<44} before {found['before'] * 1e3:9.2f} ms   after {found['after'] * 1e3:9.2f} ms   "
          f"{found['before'] / found['after']:.2f}x   loss differs by {found['loss_difference']:.1e}", flush=True)


def single(args: argparse.Namespace) -> None:
    """Eight devices of this process."""
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
    show(f"8 CPU devices, one process, {args.size}", measure(8, args.size, args.steps))


def worker(args: argparse.Namespace) -> None:
    """One host of the emulated cluster; the first prints."""
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(args.coordinator, HOSTS, args.worker)
    found = measure(HOSTS, args.size, args.steps)
    if args.worker == 0:
        show(f"{HOSTS} hosts at {args.rate}, one device each, {args.size}", found)
    jax.distributed.shutdown()


# ---- the emulated cluster


def ip(*words: str, check: bool = True) -> bool:
    """Runs ``ip``; tells whether it went well."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.returncode == 0


def build(rate: str, files: Path) -> list[str]:
    """Makes the bridge and the hosts; returns the names of the namespaces."""
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("link", "set", BRIDGE, "up")
    names = [f"hlrbench-h{i}" for i in range(HOSTS)]
    table = "127.0.0.1 localhost\n" + "".join(f"10.97.0.{i + 1} {name}\n" for i, name in enumerate(names))
    for i, name in enumerate(names):
        ip("netns", "add", name)
        ip("link", "add", f"hlrv{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"hlrv{i}", "master", BRIDGE, "up")
        ip("-n", name, "addr", "add", f"10.97.0.{i + 1}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")
        shaped = ["root", "tbf", "rate", rate, "burst", "128kb", "latency", "100ms"]
        subprocess.run(["tc", "qdisc", "add", "dev", f"hlrv{i}", *shaped], check=True)
        subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", *shaped], check=True)
        folder = Path("/etc/netns") / name  # gloo resolves the host's own name: each host needs its hosts file
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hosts").write_text(table)
    (files / "hosts").write_text(table)
    return names


def tear_down() -> None:
    """Removes whatever ``build`` made, also after a failure."""
    for i in range(HOSTS):
        ip("netns", "del", f"hlrbench-h{i}", check=False)
        ip("link", "del", f"hlrv{i}", check=False)
        shutil.rmtree(Path("/etc/netns") / f"hlrbench-h{i}", ignore_errors=True)
    ip("link", "del", BRIDGE, check=False)


def cluster(args: argparse.Namespace) -> None:
    """Four hosts in namespaces of their own."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
        print("cluster: skipped, it needs root and iproute2 (ip, tc)")
        return
    tear_down()
    running: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            names = build(args.rate, Path(folder))
            environment = dict(os.environ, XLA_FLAGS="")
            for i, name in enumerate(names):
                command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(i), "--coordinator",
                           "10.97.0.1:9917", "--size", args.size, "--steps", str(args.steps), "--rate", args.rate]
                running.append(subprocess.Popen(["ip", "netns", "exec", name, "unshare", "-u", "sh", "-c",
                                                 f'hostname {name}; exec "$@"', "sh", *command], env=environment))
            for process in running:
                process.wait(timeout=900)
        except (RuntimeError, subprocess.SubprocessError) as error:
            print(f"cluster: skipped, this machine does not allow it ({error})")
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
            tear_down()


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
