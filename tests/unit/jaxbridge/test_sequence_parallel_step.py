"""Steps of bench/common/megatron_steps.py on eight devices, two replicas of four, with and without."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from megatron_steps import SPECS, MegatronModel

import hlorewrite
from hlorewrite.errors import UsageError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.sequence_parallel.sequence_parallel import SequenceParallel
from hlorewrite.passmanager.base import PassContext

SMALL = {"layers": 2, "width": 16, "heads": 4, "rows": 4, "length": 8, "vocab": 16, "compute": "float32"}
FORMS = {"scan": {}, "scan, remat": {"remat": True}, "unrolled, dropout": {"scan": False, "dropout": 0.2},
         "scan, remat, dropout": {"remat": True, "dropout": 0.2}}


def arguments(model: MegatronModel, mesh: jax.sharding.Mesh) -> tuple[Any, ...]:
    """Values of the arguments of a step."""
    random = np.random.default_rng(0)
    shapes, tokens, targets, seed = model.arguments(mesh)
    params = jax.tree.map(lambda each, spec: jax.device_put(random.normal(size=each.shape).astype(np.float32) * 0.3,
                                                            NamedSharding(mesh, spec)), shapes, SPECS)
    drawn = [jax.device_put(random.integers(0, model.vocab, each.shape).astype(np.int32), each.sharding)
             for each in (tokens, targets)]
    return params, *drawn, jax.device_put(jnp.uint32(7), seed.sharding)


@pytest.mark.parametrize("name", FORMS)
def test_loss_and_parameters_stay(name: str) -> None:
    model = MegatronModel(**{**SMALL, **FORMS[name]})
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    step = model.step(mesh)
    optimized = hlorewrite.optimize(step, passes=SequenceParallel(axis="model", extra=0.5), keep="always")
    assert "reduce_scatter" in optimized.lower(*arguments(model, mesh)).as_text()
    plain, other = step(*arguments(model, mesh)), optimized(*arguments(model, mesh))
    assert float(plain[0]) > 0
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6), plain, other)


def lowered(model: MegatronModel) -> Module:
    """The step as StableHLO text."""
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    return parse(model.step(mesh).lower(*model.arguments(mesh)).as_text())


def test_dropout_draws_what_it_drew() -> None:
    """The bits of all rows are computed from the same counters; a device keeps those of its rows."""
    module = lowered(MegatronModel(**{**SMALL, "dropout": 0.2}))
    before = module.text()
    assert SequenceParallel(axis="model", extra=0.5).run(module, PassContext())
    assert module.text().count("rng_bit_generator") == before.count("rng_bit_generator")


def test_another_axis_has_nothing() -> None:
    module = lowered(MegatronModel(**SMALL))
    before = module.text()
    assert not SequenceParallel(axis="data").run(module, PassContext())
    assert module.text() == before
    with pytest.raises(UsageError, match='no mesh of the module has an axis "modle"'):
        SequenceParallel(axis="modle").run(module, PassContext())
