"""A sequence that eight GPUs share, through four layers: its gathers and scatters as they are, in halves, and in rings.

    JAX_PLATFORMS=cpu python bench/predictions/collective_matmul.py [--length N] [--json]

The layers are those of a 70B model with Megatron's tensor and sequence parallelism, forward alone. A ring (Wang et al.
2023) permutes the rows of a device from one to the next, and each multiplies what it has. XLA compiles each form at its
defaults and with each published set of flags; the shortest predicted step counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

import megatron_steps
from jax import Array, lax
from jax import numpy as jnp
from megatron_steps import MegatronModel, Params, norm

from hlorewrite.hlo.published_flags import FLAG_SETS
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.measured import scheduled, timed
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passes.interleave_halves.interleave_halves import InterleaveHalves
from hlorewrite.passmanager.base import PassContext
from hlorewrite.util.tables import numbers_right, table

TARGET = "h200:1x8"
FORMS = ("as it is", "halves", "rings of gathers", "rings of scatters")


@dataclass(frozen=True)
class RingModel(MegatronModel):
    """Layers forward, with a ring in place of some collectives.

    Attributes:
      ring: ``rings of gathers``, ``rings of scatters``, or neither.
    """

    ring: str = ""

    def _step(self, params: Params, tokens: Array, targets: Array, seed: Array) -> tuple[Any, Params]:
        return lax.pmean(self._loss(params, tokens, targets, seed), "data"), params

    def _block(self, x: Array, layer: Params, key: Array) -> Array:
        weights = {name: w.astype(self.compute) for name, w in layer.items()}
        width = x.shape[-1]
        qkv = self._gathered_product(norm(x) * weights["norm1"], weights["qkv"].reshape(width, -1))
        x = x + self._scattered_product(self._attended(qkv), weights["out"])
        up = self._gathered_product(norm(x) * weights["norm2"], weights["up"])
        return x + self._scattered_product(jnp.maximum(up, 0), weights["down"])

    def _attended(self, qkv: Array) -> Array:
        rows, length, _ = qkv.shape
        q, k, v = jnp.moveaxis(qkv.reshape(rows, length, 3, self.heads // self.model, -1), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jnp.exp(scores - scores.max(axis=-1, keepdims=True)), v)
        return mixed.reshape(rows, length, -1)

    def _gathered_product(self, x: Array, weight: Array) -> Array:
        if self.ring != "rings of gathers":
            return self._whole(x) @ weight
        size, place = x.shape[1], lax.axis_index("model")
        zeros = jnp.zeros((x.shape[0], size * self.model, weight.shape[1]), x.dtype)
        made = lax.pcast(zeros, ("data", "model"), to="varying")
        for step in range(self.model):
            at = (place + step) % self.model * size
            made = lax.dynamic_update_slice_in_dim(made, x @ weight, at, 1)
            if step < self.model - 1:
                x = lax.ppermute(x, "model", [(k, (k - 1) % self.model) for k in range(self.model)])
        return made

    def _scattered_product(self, x: Array, weight: Array) -> Array:
        if self.ring != "rings of scatters":
            return self._summed(x @ weight)
        size, place, total = x.shape[1] // self.model, lax.axis_index("model"), None
        for step in range(self.model):
            at = (place + self.model - 1 - step) % self.model * size
            part = lax.dynamic_slice_in_dim(x, at, size, 1) @ weight
            total = part if total is None else total + part
            if step < self.model - 1:
                total = lax.ppermute(total, "model", [(k, (k + 1) % self.model) for k in range(self.model)])
        assert total is not None
        return total


def predicted_steps(length: int) -> dict[str, float]:
    """Form -> milliseconds of the step; the shortest of XLA's default and published flags."""
    found = {}
    for form in FORMS:
        model = RingModel(layers=4, width=8192, heads=64, rows=1, length=length, vocab=32768, data=1, model=8,
                          sequence=True, ring=form)
        module = parse(megatron_steps.exported(model), name="step")
        if form == "halves":
            InterleaveHalves().run(module, PassContext(topology=TARGET))
        place = place_of(parse_target(TARGET), module)
        steps = [timed(scheduled(module, place, flags)[0], TARGET).counted_s
                 for flags in ({}, *(each.flags for each in FLAG_SETS))]
        found[form] = min(each for each in steps if each is not None) * 1e3
    return found


def text(steps: dict[str, float]) -> str:
    """The table."""
    rows: list[Sequence[str]] = [["form", "step ms", "of the step as it is"]]
    rows += [[form, f"{step:.2f}", f"{step / steps[FORMS[0]]:.3f}"] for form, step in steps.items()]
    return "\n".join(table(rows, numbers_right(rows)))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--length", type=int, default=4096, help="tokens of the sequence (default: 4096)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    steps = predicted_steps(args.length)
    print(json.dumps(steps, indent=2) if args.json else text(steps))


if __name__ == "__main__":
    main()
