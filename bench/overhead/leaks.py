"""What weeks of work keep: recompilations, signatures and dropped steps, under ``jax.jit`` and ``hlorewrite.optimize``.

``python bench/overhead/leaks.py`` runs each case under both, each in its own process. Between a warm-up and the end it
counts resident memory (MiB), open files, threads, and what the collector holds: all objects, and those of hlorewrite's
own classes. Exit code 1 if an optimized step keeps something that a jitted one does not: files, threads, objects of
hlorewrite, or more than ``MOST_OBJECTS`` objects or ``MOST_MIB`` of memory a round. With ``--json`` prints JSON.

* ``recompiled``: one decorated step whose compiled forms are dropped (``jax.clear_caches()``) before each call;
* ``signatures``: one decorated step, called with arguments of another shape each time, which both have to keep;
* ``dropped``: a new decorated step each time, which closes over an array and is dropped.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CASES = {"recompiled": 1000, "signatures": 500, "dropped": 1000}
"""How often each case runs."""
MOST_OBJECTS, MOST_MIB = 2.0, 0.02
"""What a round may keep more than one of ``jax.jit``."""
MOST_OF_A_SIGNATURE = 60.0, 0.05
"""The same of a signature, which is kept with its report."""
WARM, _SLACK_MIB = 30, 24.0
"""Rounds before the first count; what allocators take once at any moment."""


@dataclass(frozen=True)
class Kept:
    """What a process holds at a moment, or what it holds more than at another one.

    Attributes:
      mib: resident memory.
      files: open files.
      threads: of Python.
      objects: of the collector.
      own: of these, objects of hlorewrite's classes.
    """

    mib: float
    files: int
    threads: int
    objects: int
    own: int

    def since(self, before: Kept) -> Kept:
        """The difference."""
        pairs = zip(asdict(self).values(), asdict(before).values(), strict=True)
        return Kept(*(round(now - then, 2) for now, then in pairs))


def held() -> Kept:
    """What this process holds, after what is free was given back."""
    for _ in range(3):
        gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:
        mib = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
    objects = gc.get_objects()
    own = sum(str(type(each).__module__).startswith("hlorewrite") for each in objects)
    return Kept(round(mib, 2), len(os.listdir("/proc/self/fd")), threading.active_count(), len(objects), own)


def grown(case: str, optimized: bool, rounds: int) -> Kept:
    """What so many rounds of a case keep, those of the warm-up aside.

    Args:
      case: one of ``CASES``.
      optimized: with ``hlorewrite.optimize``, or ``jax.jit`` alone.
      rounds: how many.
    """
    once = _case(case, optimized)
    for number in range(WARM):
        once(number)
    before = held()
    for number in range(WARM, WARM + rounds):
        once(number)
    return held().since(before)


def _case(case: str, optimized: bool) -> Callable[[int], None]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType
    from jax.sharding import PartitionSpec as P

    import hlorewrite
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))

    def made(data: np.ndarray) -> Any:
        def step(weights: jax.Array, rows: jax.Array) -> jax.Array:
            def body(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
                return total + jax.lax.pmean(weights * x.sum() * float(data[0]), "data"), None
            return jax.lax.scan(body, jnp.zeros_like(weights), rows)[0]
        jitted = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(),
                                       check_vma=False))
        return hlorewrite.optimize(jitted) if optimized else jitted

    weights, one = jnp.ones(8), made(np.ones(4))

    def recompiled(number: int) -> None:
        jax.clear_caches()
        one(weights, jnp.ones((2, 4))).block_until_ready()

    def signatures(number: int) -> None:
        one(weights, jnp.ones((2, 2 * (number + 1)))).block_until_ready()

    def dropped(number: int) -> None:
        made(np.full(4, number, np.float32))(weights, jnp.ones((2, 4))).block_until_ready()
        jax.clear_caches()  # jax.jit keeps what it traced until then

    return {"recompiled": recompiled, "signatures": signatures, "dropped": dropped}[case]


def both(case: str, rounds: int) -> dict[str, Kept]:
    """What a case keeps under ``jax.jit`` and under ``hlorewrite.optimize``, each in a fresh process."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT),
                   "XLA_FLAGS": "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"}
    found = {}
    for name in ("jit", "optimize"):
        done = subprocess.run([sys.executable, __file__, "--one", case, name, str(rounds)], check=True,
                              capture_output=True, text=True, env=environment)
        found[name] = Kept(**json.loads(done.stdout))
    return found


def faults(case: str, rounds: int, found: dict[str, Kept]) -> list[str]:
    """What an optimized step keeps and must not; empty if it is as good as ``jax.jit``."""
    more = found["optimize"].since(found["jit"])
    objects, mib = MOST_OF_A_SIGNATURE if case == "signatures" else (MOST_OBJECTS, MOST_MIB)
    wrong = {"files": more.files > 0, "threads": more.threads > 0, "objects": more.objects > objects * rounds,
             "mib": more.mib > mib * rounds + _SLACK_MIB, "own": case != "signatures" and more.own > 0}
    return [name for name, bad in wrong.items() if bad]


def main() -> int:
    """Runs the cases; 1 if something leaks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, metavar="N", help="of each case (1000, of signatures 500)")
    parser.add_argument("--only", choices=CASES, help="this case only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(asdict(grown(args.one[0], args.one[1] == "optimize", int(args.one[2])))))
        return 0
    out, bad = {}, False
    for case, most in CASES.items():
        if args.only not in (None, case):
            continue
        rounds = args.rounds or most
        found = both(case, rounds)
        wrong = faults(case, rounds, found)
        bad |= bool(wrong)
        out[case] = {"rounds": rounds, "faults": wrong, **{name: asdict(kept) for name, kept in found.items()}}
        if not args.json:
            for name, kept in found.items():
                print(f"{case:11} {rounds:5} rounds  {name:9}" + "".join(
                    f"  {what} {value:+}" for what, value in asdict(kept).items()), flush=True)
            print(f"{'':11} leaks: {', '.join(wrong) or 'nothing'}", flush=True)
    if args.json:
        print(json.dumps(out, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
