"""Single kernels and a transformer layer on the GPU of this machine: measured, and simulated from the same schedule.

Usage: ``python bench/gpu/kernels.py [--json FILE] [--only TEXT]``.

Each program is compiled by XLA for the GPU that is present. *Measured* is the median, over several rounds, of the time
of calls that follow each other without a wait; *simulated* is the compute time of ``hlorewrite.timeline`` for the text
of the compiled program. A call takes some microseconds to launch, so kernels below that are measured too long. Without
an H100 or H200 it measures nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = {"H100": "h100:1x1", "H200": "h200:1x1"}
ROUNDS, CALLS = 7, 20


@dataclass(frozen=True)
class MeasuredKernel:
    """One program.

    Attributes:
      name: what it computes.
      measured_us: median time of a call.
      launched_us: time of a call that computes next to nothing.
      simulated_us: compute time by the timeline.
      complete: whether every kernel had a time.
    """

    name: str
    measured_us: float
    launched_us: float
    simulated_us: float
    complete: bool


def main() -> int:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--only", default="", help="programs whose names hold this text")
    args = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "bench" / "common")]
    from kernel_programs import PROGRAMS
    kind = jax.devices()[0].device_kind
    cluster = next((name for part, name in CLUSTERS.items() if part in kind), None)
    if cluster is None:
        print(f"no H100 or H200 on this machine ({kind}): nothing is measured")
        return 0
    launched = _seconds(*_compiled(lambda a: a + 1, (jax.ShapeDtypeStruct((8,), jnp.float32),), ())) * 1e6
    print(f"{kind}, jax {jax.__version__}; a call that computes nothing: {launched:.1f} us")
    print(f"{'program':<36}{'measured us':>12}{'simulated us':>14}{'simulated / measured':>22}")
    rows: list[MeasuredKernel] = []
    for name, program in PROGRAMS.items():
        if args.only not in name:
            continue
        try:
            rows.append(_measured(name, program, cluster, launched))
        except Exception as error:  # a program that this release does not compile leaves the others theirs
            print(f"{name:<36}failed: {type(error).__name__}: {str(error)[:60]}", flush=True)
            continue
        row = rows[-1]
        print(f"{row.name:<36}{row.measured_us:>12.1f}{row.simulated_us:>14.1f}"
              f"{row.simulated_us / row.measured_us:>22.2f}{'' if row.complete else '  incomplete'}", flush=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


def _measured(name: str, program: tuple[Any, ...], topology_name: str, launched: float) -> MeasuredKernel:
    from hlorewrite.cost import topology
    from hlorewrite.timeline import simulate

    step, arguments, donated = _compiled(*program)
    seconds = _seconds(step, arguments, donated)
    simulated = simulate(step.as_text(), topology(topology_name))
    return MeasuredKernel(name, seconds * 1e6, launched, simulated.compute_s * 1e6, simulated.complete)


def _compiled(function: Callable[..., Any], shapes: tuple[Any, ...], donated: tuple[int, ...]) -> tuple[Any, Any, Any]:
    def made(shape: jax.ShapeDtypeStruct) -> Any:
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return jnp.asarray(jnp.arange(int(jnp.prod(jnp.array(shape.shape or (1,))))) % 31, shape.dtype).reshape(
                shape.shape)
        return jax.random.normal(jax.random.key(0), shape.shape, shape.dtype) * 0.1
    arguments = jax.tree.map(made, shapes)
    return jax.jit(function, donate_argnums=donated).lower(*shapes).compile(), list(arguments), donated


def _seconds(step: Any, arguments: list[Any], donated: tuple[int, ...]) -> float:
    """The median time of a call; what is donated is the result of the call before."""
    def call(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            results = step(*arguments)
            for place, result in zip(donated, results if isinstance(results, tuple) else (results,), strict=False):
                arguments[place] = result
        jax.block_until_ready(results)
        return (time.perf_counter() - begin) / times
    call(3)
    return statistics.median(call(CALLS) for _ in range(ROUNDS))


if __name__ == "__main__":
    sys.exit(main())
