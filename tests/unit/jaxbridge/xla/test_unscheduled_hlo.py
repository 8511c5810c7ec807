"""HLO before optimisations: it is compiled as the StableHLO that it was, for the devices that it names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import InputError
from hlorewrite.ir import Module, parse
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.hlo_text import import_hlo
from hlorewrite.jaxbridge.xla.target import parse_target

MESH = AbstractMesh((8,), ("d",), axis_types=(AxisType.Auto,))
OF_EACH_DEVICE = """\
HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e (x: f32[1024,1024]) -> f32[1024,1024] {
  %x = f32[1024,1024]{1,0} parameter(0)
  %y = f32[1024,1024]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %r = f32[1024,1024]{1,0} all-reduce(%y), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%sum, \
use_global_device_ids=true
}
"""


def lowered() -> jax.stages.Lowered:
    """A step that XLA partitions: data parallel, its weights donated."""
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x @ w))

    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        return w - 0.1 * jax.grad(loss)(w, x)

    whole, rows = NamedSharding(MESH, P()), NamedSharding(MESH, P("d"))
    arguments = (jax.ShapeDtypeStruct((512, 512), jnp.float32, sharding=whole),
                 jax.ShapeDtypeStruct((4096, 512), jnp.float32, sharding=rows))
    return jax.jit(step, out_shardings=whole, donate_argnums=0).trace(*arguments).lower(
        lowering_platforms=("cuda",))


def text_of(step: jax.stages.Lowered) -> str:
    """The HLO of a step before any pass of XLA."""
    return step.compiler_ir("hlo").as_hlo_text()


def compiled(module: Module, target: str = "h200:1x8") -> Compilation:
    """The module compiled for described GPUs."""
    return compile_for(module, parse_target(target))


def test_it_compiles_to_what_its_stablehlo_compiles_to() -> None:
    step = lowered()
    ours = compiled(import_hlo(text_of(step), "step.hlo"))
    theirs = compiled(parse(step.as_text(), name="step.mlir"))
    assert [(each.kind, each.bytes) for each in ours.collectives] == [
        (each.kind, each.bytes) for each in theirs.collectives] != []
    assert ours.memory.total == theirs.memory.total and ours.memory.alias == theirs.memory.alias > 0


def test_a_program_of_each_device_is_for_those_that_its_groups_name() -> None:
    module = import_hlo(OF_EACH_DEVICE, "e.hlo")
    assert "mhlo.num_partitions = 4 : i32" in module.text() and "dot_general" in module.text()
    made, = compiled(module, "h200:1x4").collectives
    assert made.kind == "all-reduce" and made.bytes == 4 << 20


def test_what_jaxlib_cannot_write_is_refused_with_the_file() -> None:
    with pytest.raises(InputError, match="jaxlib cannot write this program as StableHLO"):
        import_hlo(OF_EACH_DEVICE.replace("lhs_contracting_dims={1}", "lhs_contracting_dims={3}"), "e.hlo")


def run(command: str, path: Path, target: str) -> subprocess.CompletedProcess[str]:
    """A subcommand on a file."""
    return subprocess.run([sys.executable, "-m", "hlorewrite", command, str(path), "--target", target],
                          env=dict(os.environ, JAX_PLATFORMS="cpu"), capture_output=True, text=True, check=False)


@pytest.fixture
def hlo_file(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(text_of(lowered()))
    return path


@pytest.mark.parametrize("command", ["compile", "timeline", "audit"])
def test_commands_that_compile_take_it(command: str, hlo_file: Path) -> None:
    done = run(command, hlo_file, "h200:1x8")
    assert done.returncode == 0 and "all-reduce" in done.stdout, done.stderr


def test_compile_refuses_what_is_compiled_already(tmp_path: Path) -> None:
    path = tmp_path / "done.hlo"
    path.write_text("// a comment\n" + compiled(import_hlo(OF_EACH_DEVICE, "e.hlo"), "h200:1x4").hlo)
    done = run("compile", path, "h200:1x4")
    assert done.returncode == 2 and "this HLO is the result of a compilation" in done.stderr
