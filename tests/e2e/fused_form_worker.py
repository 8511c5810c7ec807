"""Fused steps in XLA's hands; started by ``test_fused_forms.py``, since XLA may end the process.

Usage: ``fused_form_worker.py TARGET PIPELINE FORM...``: for each form it prints ``FORM form``, lowers a ``shard_map``
step with two collectives of that form, runs the pipeline on it, and runs both on ``cpu:8`` and compares, or compiles
for described GPUs. Then it prints ``CALLS before after``, and ``EQUAL``, ``DIFFERS``, ``COMPILED calls`` or ``REFUSED
sentence``.
"""

from __future__ import annotations

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import COLLECTIVES, View
from hlorewrite.jaxbridge.xla.compile_for import compile_for
from hlorewrite.jaxbridge.xla.execute import verify
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

RING = [(device, (device + 1) % 8) for device in range(8)]
FORMS = {
    "all-reduce": lambda x, y, n: (lax.psum(x, "d"), lax.psum(y, "d")),
    "all-reduce-of-a-scalar": lambda x, y, n: (lax.psum(x, "d"), lax.psum(y.sum(), "d").reshape(1)),
    "maxima-of-two-types": lambda x, y, n: (lax.pmax(x, "d"), lax.pmax(y.astype(jnp.bfloat16), "d")),
    "integers-of-two-types": lambda x, y, n: (lax.psum(n, "d"), lax.psum(n.astype(jnp.int8), "d")),
    "reduce-scatter": lambda x, y, n: (lax.psum_scatter(x, "d", tiled=True),
                                       lax.psum_scatter(y, "d", scatter_dimension=1, tiled=True)),
    "all-gather": lambda x, y, n: (lax.all_gather(x, "d", tiled=True), lax.all_gather(y, "d", axis=1, tiled=True)),
    "collective-permute": lambda x, y, n: (lax.ppermute(x, "d", RING), lax.ppermute(y, "d", RING)),
}


def lowered(form: str) -> Module:
    """The step as JAX lowers it: a manual region over eight devices."""
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    step = jax.shard_map(FORMS[form], mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    arguments = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in
                 (((64, 8), jnp.float32), ((128, 16), jnp.float32), ((64, 2), jnp.int32))]
    return parse(jax.jit(step).lower(*arguments).as_text(), name=f"{form}.mlir")


def calls(module: Module) -> int:
    """How many collectives a module has."""
    return len(list(View(module).ops(*COLLECTIVES)))


def rewritten(form: str, target: str, pipeline: str) -> None:
    """Rewrites, then runs and compares, or compiles."""
    print("FORM", form, flush=True)
    before = lowered(form)
    after = before.clone()
    run_passes(after, parse_pipeline(pipeline), PassContext(topology="h200:1x8"))
    print("CALLS", calls(before), calls(after), flush=True)
    try:
        if target.startswith("cpu"):
            report = verify(before, after, parse_target(target))
            print("EQUAL" if report.equal else "DIFFERS", flush=True)
        else:
            print("COMPILED", len(compile_for(after, parse_target(target)).collectives), flush=True)
    except HlorewriteError as error:
        print("REFUSED", error, flush=True)


if __name__ == "__main__":
    for each in sys.argv[3:]:
        rewritten(each, *sys.argv[1:3])
