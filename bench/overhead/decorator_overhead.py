"""What a call through ``hlorewrite.optimize`` costs over the compiled function, and what rewriting adds to compiling.

Usage: ``python bench/overhead/decorator_overhead.py [--calls 20000]``. Prints ratios and differences of one run.
Rewriting is the clone, and the passes with report and serialized result. The digest, which several processes ask for,
and the comparison with XLA, which compiles several candidates, are not part of it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "examples"), str(Path(__file__).resolve().parents[2])]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import hlorewrite  # noqa: E402


def best(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Least wall-clock and least CPU seconds of a few runs."""
    times = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in times), min(cpu for _, cpu in times)


def microseconds(call: Callable[..., object], arguments: tuple, calls: int) -> float:
    """Mean time of a call, the best of five rounds."""
    call(*arguments)
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls // 5):
            call(*arguments)
        rounds.append((time.perf_counter() - start) / (calls // 5) * 1e6)
    return min(rounds)


def calls_table(calls: int) -> None:
    """Dispatch time of small steps with 1, 10 and 100 arguments, on one device."""
    print(f"{'arguments':>9}  {'jit us':>8}  {'compiled us':>11}  {'optimize us':>11}  {'over compiled us':>16}")
    for count in (1, 10, 100):
        plain = jax.jit(lambda tree: [leaf + 1 for leaf in tree])
        tree = [jnp.zeros(4) for _ in range(count)]
        times = [microseconds(call, (tree,), calls) for call in
                 (plain, plain.lower(tree).compile(), hlorewrite.optimize(plain, passes="canonicalize"))]
        print(f"{count:>9}  {times[0]:8.2f}  {times[1]:11.2f}  {times[2]:11.2f}  {times[2] - times[1]:16.2f}")


def compile_table(size: str, layouts: list[str], target: str) -> None:
    """CPU time of rewriting, part by part (best of five), next to XLA's compilation of the original (best of two).

    The partitioner is XLA's own, which runs so that the passes see the collectives of an automatically sharded step.
    """
    import auto_gpt
    import gpt

    from hlorewrite.jaxbridge.step.rewrite import clone_of
    from hlorewrite.jaxbridge.xla import private
    from hlorewrite.jaxbridge.xla.compile_for import compile_for
    from hlorewrite.jaxbridge.xla.target import parse_target

    print(f"\nCPU ms of rewriting, next to XLA's compilation for {target} (size {size})\n{'step':<8} {'ops':>6} "
          f"{'XLA':>8} {'clone':>7} {'partitioner':>12} {'passes':>7} {'without partitioner':>20} "
          f"{'with it':>8}")
    cfg = gpt.SIZES[size]
    for layout in ["manual", *layouts]:
        mesh = auto_gpt.make_mesh("dp" if layout == "manual" else layout)
        module = gpt if layout == "manual" else auto_gpt
        lowered = module.make_step(cfg, mesh).lower(*module.arguments(cfg, mesh))
        original = clone_of(private.module_of(lowered), layout)
        xla = best(lambda original=original: compile_for(original, parse_target(target)), 2)[1]
        runs = [rewriting_parts(private.module_of(lowered), layout) for _ in range(5)]
        clone, partitioner, passes = (min(run[part] for run in runs) for part in range(3))
        own = clone + passes
        print(f"{layout:<8} {runs[0][3]:>6.0f} {xla * 1e3:8.0f} {clone * 1e3:7.1f} {partitioner * 1e3:12.1f} "
              f"{passes * 1e3:7.1f} {own / xla:20.1%} {(own + partitioner) / xla:8.1%}",
              flush=True)


def rewriting_parts(module: object, name: str) -> tuple[float, float, float, int]:
    """CPU seconds of cloning JAX's module, of XLA's partitioner and of the passes; and how many ops there were."""
    from hlorewrite.ir.view import nested_ops
    from hlorewrite.jaxbridge.step.rewrite import clone_of, rewrite
    from hlorewrite.jaxbridge.xla.partition import hides_collectives
    from hlorewrite.passmanager.base import PassContext
    from hlorewrite.passmanager.spec import parse_pipeline
    marks = [time.process_time()]
    clone = clone_of(module, name)  # type: ignore[arg-type]
    marks.append(time.process_time())
    if hides_collectives(clone):
        parse_pipeline("expose-collectives")[0].run(clone, PassContext())
    marks.append(time.process_time())
    rewritten = rewrite(clone, parse_pipeline("comm-shift"))
    marks.append(time.process_time())
    parts = [after - before for before, after in itertools.pairwise(marks)]
    return parts[0], parts[1], parts[2], len(nested_ops(rewritten.module.operation))


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--size", default="small", choices=["tiny", "small"])
    parser.add_argument("--layouts", default="dp,dp_tp,fsdp", help="auto-sharded layouts, comma-separated")
    parser.add_argument("--target", default="h200:1x8")
    args = parser.parse_args()
    import warnings
    warnings.simplefilter("ignore")
    calls_table(args.calls)
    compile_table(args.size, [name for name in args.layouts.split(",") if name], args.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
