"""Twenty-four loops whose all-reduce XLA rightly moves behind them, in other forms each.

    python bench/xla/code_motions.py FOLDER                                          # one serialized jax.export a loop
    python bench/xla/passes.py --steps FOLDER --targets h200:1x8 --pass while-loop-all-reduce-code-motion

A validator that confuses these with XLA's wrong code motions raises a false alarm.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import steps  # sets the number of CPU devices before jax is imported

# ruff: isort: split
import jax
import jax.numpy as jnp
from jax import export, lax
from jax.sharding import PartitionSpec as P

ROUNDS = 5
SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "f32": lambda total, x: total + lax.psum(jnp.tanh(x), "dp"),
    "i32": lambda total, x: total + lax.psum(jnp.round(x * 8).astype(jnp.int32), "dp"),
    "bf16_in_f32": lambda total, x: total + lax.psum(jnp.sin(x).astype(jnp.bfloat16), "dp").astype(jnp.float32),
    "pair": lambda total, x: (total[0] + lax.psum(x, "dp"), total[1] + lax.psum(jnp.cos(x), "dp")),
}
"""What an iteration adds to what the loop carries."""


def loops() -> Iterator[tuple[str, steps.Step]]:
    """Name and step: each sum, from zeros or an argument, over a whole mesh or one of its axes, scanned or not."""
    for (kind, add), zeros, (mesh, form) in itertools.product(
            SUMS.items(), (True, False), ((steps.DATA, "scan"), (steps.DATA, "fori"), (steps.GRID, "scan"))):
        where = "grid" if mesh is steps.GRID else "all"
        yield f"{kind}_{'zeros' if zeros else 'given'}_{where}_{form}", _step(kind, add, zeros, mesh, form)


def _step(kind: str, add: Callable[[Any, Any], Any], zeros: bool, mesh: Any, form: str) -> steps.Step:
    dtype = jnp.int32 if kind == "i32" else jnp.float32

    @steps.manual(mesh, (P(), P(None, "dp")), P())
    def step(start: Any, xs: Any) -> Any:
        first = jnp.zeros_like(start) if zeros else start
        total = (first, first) if kind == "pair" else first
        if form == "scan":
            total, _ = lax.scan(lambda total, x: (add(total, x), None), total, xs)
        else:
            total = lax.fori_loop(0, ROUNDS, lambda i, total: add(total, xs[i]), total)
        return jax.tree.reduce(jnp.add, total)
    return step, (steps.given(mesh, P(), 32 // mesh.shape["dp"], 16, dtype=dtype),
                  steps.given(mesh, P(None, "dp"), ROUNDS, 32, 16))


def write(folder: Path) -> None:
    """Writes each step as a serialized export."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (function, arguments) in loops():
        exported = export.export(jax.jit(function), platforms=["cuda"])(*arguments)
        (folder / f"{name}.export").write_bytes(exported.serialize())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
