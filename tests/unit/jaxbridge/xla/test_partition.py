"""Auto-sharded programs: the partitioner's collectives come out, values, signature, donation and memory stay."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.context import new_context
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.decorator.optimize import optimize
from hlorewrite.jaxbridge.step.report import collectives_of
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import partition, private
from hlorewrite.jaxbridge.xla.compile_for import compile_for
from hlorewrite.jaxbridge.xla.execute import verify
from hlorewrite.jaxbridge.xla.mesh_sharding import MeshAxes, axes_of_grid, sharding_text
from hlorewrite.jaxbridge.xla.partition import expose_collectives, hides_collectives
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.signature import changes, signature_of
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder


def make_mesh(**axes: int) -> jax.sharding.Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def step(params, batches):
    """Two layers, gradients accumulated over micro-batches, one update."""
    def micro_batch(total, batch):
        grads = jax.grad(lambda p: jnp.mean((jnp.tanh(batch @ p["up"]) @ p["down"]) ** 2))(params)
        return jax.tree.map(jnp.add, total, grads), None

    grads, _ = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), batches)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def lowered(mesh: jax.sharding.Mesh, up: P, down: P, batch: P, outputs: bool = True, rows: int = 8):
    """The step over a mesh, with its state donated."""
    state = {"up": NamedSharding(mesh, up), "down": NamedSharding(mesh, down)}
    jitted = jax.jit(step, in_shardings=(state, NamedSharding(mesh, batch)), donate_argnums=0,
                     **({"out_shardings": state} if outputs else {}))
    return jitted.lower({"up": jax.ShapeDtypeStruct((16, 32), jnp.float32),
                         "down": jax.ShapeDtypeStruct((32, 16), jnp.float32)},
                        jax.ShapeDtypeStruct((4, rows, 16), jnp.float32))


def cloned(low: jax.stages.Lowered) -> Module:
    return clone_of(private.module_of(low), "step")


CASES = {
    "dp": ({"data": 8}, P(), P(), P(None, "data")),
    "dp_tp": ({"data": 4, "model": 2}, P(None, "model"), P("model", None), P(None, "data")),
    "fsdp": ({"fsdp": 8}, P("fsdp"), P(None, "fsdp"), P(None, "fsdp")),
    "dp_fsdp_tp": ({"data": 2, "fsdp": 2, "model": 2}, P("fsdp", "model"), P("model", "fsdp"),
                   P(None, ("data", "fsdp"))),
}


@pytest.mark.parametrize("case", CASES)
def test_values_signature_and_memory_stay_and_collectives_come_out(case: str):
    axes, up, down, batch = CASES[case]
    module = cloned(lowered(make_mesh(**axes), up, down, batch))
    text = module.text()
    assert collectives_of(View(module)) == ()
    assert hides_collectives(module)
    exposed = expose_collectives(module)
    assert module.text() == text
    assert collectives_of(View(exposed))
    assert any(".py:" in c.source for c in collectives_of(View(exposed)))  # jaxlib 0.11 gives some of them no line
    assert changes(signature_of(module), signature_of(exposed)) == []
    assert not hides_collectives(exposed)
    made = verify(module, exposed, parse_target("cpu:8"))
    assert made.equal
    before, after = made.before.compilation.memory, made.after.compilation.memory
    assert after.total <= 1.02 * before.total
    assert after.alias == before.alias > 0


def test_groups_along_a_permuted_mesh_keep_their_device_order():
    """jaxlib's importer drops the order of the devices; a gather over the middle axis then mixes up its groups."""
    mesh = make_mesh(data=2, fsdp=2, model=2)
    row = NamedSharding(mesh, P(("fsdp", "data")))
    low = jax.jit(lambda x: x * jnp.arange(8.0), in_shardings=row, out_shardings=NamedSharding(mesh, P())).lower(
        jax.ShapeDtypeStruct((8,), jnp.float32))
    module = cloned(low)
    assert verify(module, expose_collectives(module), parse_target("cpu:8")).equal


def test_unstated_output_shardings_are_those_xla_chooses():
    axes, up, down, batch = CASES["dp_tp"]
    module = cloned(lowered(make_mesh(**axes), up, down, batch, outputs=False))
    exposed = expose_collectives(module)
    plain, again = (compile_for(m, parse_target("cpu:8")) for m in (module, exposed))
    assert plain.memory.output == again.memory.output
    assert verify(module, exposed, parse_target("cpu:8")).equal


def test_what_hides_collectives():
    mesh = make_mesh(data=4, model=2)
    spec = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(mesh, P("data")))

    def local(x):
        rows = jax.lax.scan(lambda c, r: (jnp.where(r.sum() > 0, c + r, c), None), x[0], x)[0]  # calls within calls
        return jax.lax.psum(x @ x.T + rows.sum(), "data")

    full = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False))
    partial = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False,
                                    axis_names={"data"}))
    mixed = jax.jit(lambda x: full(x) @ x[:2])
    assert not hides_collectives(cloned(full.lower(spec)))
    assert hides_collectives(cloned(partial.lower(spec)))
    assert hides_collectives(cloned(mixed.lower(spec)))
    assert not hides_collectives(cloned(jax.jit(jnp.sin).lower(jnp.zeros(4))))
    for each in (partial, mixed):
        module = cloned(each.lower(spec))
        assert verify(module, expose_collectives(module), parse_target("cpu:8")).equal


def test_the_pass_leaves_manual_modules_byte_for_byte_and_says_so():
    module = cloned(jax.jit(jnp.sin).lower(jnp.zeros(4)))
    text = module.text()
    assert not run_passes(module, parse_pipeline("expose-collectives"), PassContext())
    assert module.text() == text


def nested():
    """A computation manual over one axis inside another: JAX writes the same channel on both sums."""
    mesh = make_mesh(d=4, m=2)

    def outer(x):
        def inner(v):
            return jax.lax.psum(jax.lax.psum(v, "m"), "d")
        return jax.shard_map(inner, in_specs=P("m"), out_specs=P(), axis_names={"m"}, check_vma=False)(x)

    def looped(x):
        return jax.lax.fori_loop(0, 3, lambda i, acc: acc + outer(x * (i + 1.0)), jnp.zeros((1, 4)))
    return jax.jit(jax.shard_map(looped, mesh=mesh, in_specs=P("d"), out_specs=P(), axis_names={"d"},
                                 check_vma=False))


def test_nested_manual_computations_are_exposed_and_rewritten():
    step, x = nested(), jnp.arange(32.0).reshape(8, 4)
    module = cloned(step.lower(x))
    assert hides_collectives(module)
    assert verify(module, expose_collectives(module), parse_target("cpu:8")).equal
    better = optimize(step)
    report = better.lower(x).report
    assert report.exposed and report.changed
    np.testing.assert_allclose(step(x), better(x), rtol=1e-5)


def test_groups_that_cannot_be_read_leave_the_step_alone(monkeypatch: pytest.MonkeyPatch):
    step, x = nested(), jnp.arange(32.0).reshape(8, 4)
    monkeypatch.setattr(partition, "_number_channels", lambda view: None)
    module = cloned(step.lower(x))
    text, recorder = module.text(), Recorder()
    assert not run_passes(module, parse_pipeline("expose-collectives"), PassContext((recorder,)))
    assert module.text() == text
    sentence = "the module stays as it is: the groups of a collective of XLA's partitioner cannot be read"
    assert [(r.kind, r.sentence) for r in recorder.remarks] == [("blocked", sentence)]
    with pytest.warns(UserWarning, match="cannot be read"):
        np.testing.assert_allclose(step(x), optimize(step)(x), rtol=1e-5)


def test_uneven_shards_are_refused():
    split = NamedSharding(jax.make_mesh((4,), ("a",), devices=jax.devices()[:4], axis_types=(AxisType.Auto,)), P("a"))
    uneven = split._to_xla_hlo_sharding(2)
    with new_context():
        shape = ir.Type.parse("tensor<6x2xf32>")
        with pytest.raises(InputError, match="argument 0 of size 6 does not divide over 4 devices"):
            sharding_text(uneven, shape, MeshAxes("mesh", (("a", 4),), (0, 1, 2, 3)), "argument 0", "step")


def test_the_decorator_exposes_and_leaves_the_step_alone_if_no_pass_changes_it():
    axes, up, down, batch = CASES["dp_tp"]
    mesh = make_mesh(**axes)
    state = {"up": NamedSharding(mesh, up), "down": NamedSharding(mesh, down)}
    plain = jax.jit(step, in_shardings=(state, NamedSharding(mesh, batch)), out_shardings=state)
    arguments = ({"up": jnp.ones((16, 32)), "down": jnp.ones((32, 16))}, jnp.ones((4, 8, 16)))
    low = optimize(plain, passes="inline").lower(*arguments)
    assert low.report.exposed
    assert low.report.before
    explicit = optimize(plain, passes="expose-collectives", keep="always")
    assert "manual_computation" in explicit.lower(*arguments).as_text()
    for old, new in zip(jax.tree.leaves(plain(*arguments)), jax.tree.leaves(explicit(*arguments)), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-5)
        assert new.sharding.is_equivalent_to(old.sharding, new.ndim)


@pytest.mark.parametrize(("grid", "split"), [
    (np.arange(8).reshape(2, 2, 2, 1), [("a",), ("b",), ("c",)]),
    (np.arange(8).reshape(4, 2), [("a", "b")]),
    (np.arange(8).reshape(2, 2, 2).transpose(1, 0, 2).reshape(4, 2), [("b", "a")]),
    (np.arange(8).reshape(2, 2, 2).transpose(2, 0, 1).reshape(2, 1, 4), [("c",), ()]),
    (np.array([0, 3, 5, 6, 1, 2, 4, 7]).reshape(2, 4), None),
])
def test_tile_assignments_as_mesh_axes(grid: np.ndarray, split: list | None):
    assert axes_of_grid(grid, MeshAxes("m", (("a", 2), ("b", 2), ("c", 2)), tuple(range(8)))) == split
