"""The pipeline ``time`` where no cluster is known, in every way to ask for it, and on CPU, where it is ``comm``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.decorator.specialize import optimized_lowering
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.report import collectives_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline

NAMES_A_CLUSTER = r"decides by predicted time, and no cluster is named; add --topology=h200:1x8"


def step_on(mesh: Mesh | AbstractMesh) -> tuple[Any, list[jax.ShapeDtypeStruct]]:
    """Two gradients averaged in a loop; and an all-gather, which ``comm`` might merge and ``time`` might not."""
    def step(w: jax.Array, v: jax.Array, batches: jax.Array) -> tuple[jax.Array, jax.Array]:
        def turn(total: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
            whole = lax.all_gather(v, "data", tiled=True)
            out = jnp.tanh(x @ w)
            sums = lax.pmean((x.T @ out, out.T @ out + whole), "data")
            return jax.tree.map(jnp.add, total, sums), None
        return lax.scan(turn, (jnp.zeros_like(w), jnp.zeros((64, 64))), batches)[0]

    made = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data"), P(None, "data")), out_specs=P(),
                                 check_vma=False))
    shapes = (((64, 64), P()), ((64, 64), P("data")), ((4, 128, 64), P(None, "data")))
    return made, [jax.ShapeDtypeStruct(s, jnp.float32, sharding=NamedSharding(mesh, spec)) for s, spec in shapes]


class LoweredForGpus:
    """What ``jax.jit(f).trace`` returns, for GPUs that are not known."""

    fun_name = "step"

    def lower(self) -> jax.stages.Lowered:
        step, arguments = step_on(AbstractMesh((8,), ("data",)))
        return step.trace(*arguments).lower(lowering_platforms=("cuda",))


def lowered(keep: Any, topology: str) -> Any:
    traced: Any = LoweredForGpus()
    return optimized_lowering(traced, StepOptions(as_passes("time"), keep=keep, topology=topology), False)[0]


@pytest.mark.parametrize("keep", ["always", "better"])
def test_the_decorator_without_devices_and_topology(keep: str) -> None:
    with pytest.raises(UsageError, match=NAMES_A_CLUSTER):
        lowered(keep, "")
    assert lowered(keep, "h200:1x8").report.changed


@pytest.mark.parametrize("words", [["-O", "time"], ["--pass-pipeline=time"], ["--pass=rotate-collectives"]])
def test_opt_without_topology(tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "a.mlir"
    module.write_text(LoweredForGpus().lower().as_text())
    assert guarded(["opt", str(module), *words, f"--output={tmp_path / 'out.mlir'}"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "add --topology=h200:1x8, or --target" in said
    assert not (tmp_path / "out.mlir").exists()
    assert guarded(["opt", str(module), *words, "--topology=h200:1x8", f"--output={tmp_path / 'out.mlir'}"]) == 0


def cpu_mesh() -> Mesh:
    return Mesh(np.array(jax.devices("cpu")[:8]), ("data",))


@pytest.mark.parametrize("keep", ["always", "better"])
def test_on_cpu_the_decorator_makes_what_comm_makes(keep: Any) -> None:
    step, arguments = step_on(cpu_mesh())
    made: list[Any] = [hlorewrite.optimize(step, passes=passes, keep=keep) for passes in ("comm", "time")]
    comm, time = (each.lower(*arguments) for each in made)
    assert comm.report.changed and time.as_text() == comm.as_text()
    assert not time.report.compiler_options


def test_on_cpu_the_hook_makes_what_comm_makes() -> None:
    step, arguments = step_on(cpu_mesh())
    module, texts = private.module_of(step.lower(*arguments)), []
    for passes in ("comm", "time"):
        options = private.compile_options(8, shardy=True, outputs=[], inputs=[], overrides={})
        with hlorewrite.patch_jit(passes, keep="always") as patch:
            texts.append(str(patch.before_compilation("step", module, "cpu", jax.devices("cpu")[:8], options)))
        assert patch.records[0].outcome == "rewritten" and not private.xla_flags(options)
    assert texts[0] == texts[1] != str(module)


def test_the_hook_without_a_cluster() -> None:
    module = private.module_of(LoweredForGpus().lower())
    options = private.compile_options(8, shardy=True, outputs=[], inputs=[], overrides={})
    with hlorewrite.patch_jit("time", keep="always", on_error="raise") as patch, \
            pytest.raises(HlorewriteError, match=NAMES_A_CLUSTER):
        patch.before_compilation("step", module, "cuda", [UnknownGpu(number) for number in range(8)], options)


class UnknownGpu:
    """A GPU of which no topology is known."""

    device_kind = "a GPU of tomorrow"
    process_index = 0
    platform = "cuda"

    def __init__(self, number: int) -> None:
        self.id = number


def sharded_layers() -> Module:
    """Eight micro-batches through four scanned layers, each of whose weights is gathered."""
    def step(weights: jax.Array, batches: jax.Array) -> jax.Array:
        def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
            return jnp.tanh(x @ lax.all_gather(w, "data", tiled=True)), None

        def micro_batch(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            return total + lax.scan(layer, x, weights)[0], None
        return lax.scan(micro_batch, jnp.zeros_like(batches[0]), batches)[0]

    mesh = AbstractMesh((8,), ("data",))
    made = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(None, "data"), P(None, "data")), out_specs=P("data"),
                                 check_vma=False))
    shapes = ((4, 64, 64), P(None, "data")), ((8, 128, 64), P(None, "data"))
    arguments = [jax.ShapeDtypeStruct(s, jnp.float32, sharding=NamedSharding(mesh, spec)) for s, spec in shapes]
    return parse(made.trace(*arguments).lower(lowering_platforms=("cuda",)).as_text())


def test_weights_that_a_rotated_loop_begins_with_are_gathered_once_a_step() -> None:
    names = named_pipeline("time").split(",")
    tail = names[names.index("rotate-collectives"):][:2]
    gathers = []
    for passes in (tail[:1], tail):
        module = sharded_layers()
        run_passes(module, parse_pipeline(",".join(["inline", *passes])),
                   PassContext(ignore_cost=True, topology="h200:1x8"))
        gathers.append(sum(each.trips for each in collectives_of(View(module))))
    assert gathers == [8 * 4, 8 * 3 + 1]
