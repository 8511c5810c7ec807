"""Steps as the installed XLA schedules them for GPUs: the simulated schedule holds each collective of the HLO."""

from __future__ import annotations

import importlib.util

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.cost import topology
from hlorewrite.hlo.collectives import collectives
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.measured import scheduled, timed
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.timeline import simulate

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                reason="jax-cuda13-plugin is not installed")

SENDS = {
    "all-reduce": lambda x: lax.psum(x, "data"),
    "reduce-scatter": lambda x: jnp.tile(lax.psum_scatter(x, "data", tiled=True), (8, 1)),
    "all-gather": lambda x: lax.all_gather(x, "data", tiled=True)[:256],
    "all-to-all": lambda x: lax.all_to_all(x, "data", 0, 0, tiled=True),
    "collective-permute": lambda x: lax.ppermute(x, "data", [(i, (i + 1) % 8) for i in range(8)]),
}


def step_that(kind: str, in_loop: bool) -> str:
    """A step that sends a value, alone or in each of four iterations, next to products that do not need it."""
    def turn(x: jax.Array) -> jax.Array:
        return jnp.tanh(SENDS[kind](x) + x @ (x.T @ x))

    def step(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 4, lambda _, y: turn(y), x) if in_loop else turn(x)

    mesh = AbstractMesh((8,), ("data",))
    made = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False))
    argument = jax.ShapeDtypeStruct((2048, 2048), jnp.float32, sharding=NamedSharding(mesh, P("data")))
    return made.trace(argument).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("kind", SENDS)
def test_every_collective_of_a_compiled_step_is_in_its_simulated_schedule(kind: str, in_loop: bool) -> None:
    module = parse(step_that(kind, in_loop))
    place = place_of(parse_target("h200:1x8"), module)
    made = timed(scheduled(module, place, {})[0], place.topology)
    listed, timeline = collectives(made.hlo), simulate(made.hlo, topology("h200:1x8"))
    assert {one.kind for one in listed} == {kind} and made.calls == (4 if in_loop else 1)
    assert sorted((one.kind, one.trips) for one in timeline.collectives) == sorted((one.kind, one.trips)
                                                                                   for one in listed)
    assert made.exposed_s is not None and made.exposed_s > 0 and not made.untimed
