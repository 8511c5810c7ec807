"""Sound inputs of each form, which mutations start from."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from generators.hostile.command_grammar import GRAMMAR_FORMS, PROGRAM_COMMANDS, program_files
from generators.hostile.made_files import MADE_FORMS, NCCL, ROOT, made_files

FORMS = ("text", "bytecode", "portable", "export", "rules", "topology", "hlo", "trace", "arguments", *MADE_FORMS,
         *GRAMMAR_FORMS)

_EXPORT = """
import sys, jax, jax.numpy as jnp
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(jax.devices(), ("x",))
step = jax.jit(jax.shard_map(lambda w, a: jax.lax.psum(jnp.tanh(a @ w), "x") + jax.lax.psum(a @ w, "x"), mesh=mesh,
                             in_specs=(P("x"), P(None, "x")), out_specs=P()))
shapes = [jax.ShapeDtypeStruct((8, 8), jnp.float32)] * 2
open(sys.argv[1], "wb").write(export.export(step)(*shapes).serialize())
compiled = step.lower(*shapes).compile()
open(sys.argv[2], "w").write(compiled.as_text())
"""


@dataclass(frozen=True)
class Seed:
    """A sound input.

    Attributes:
      form: one of ``FORMS``.
      content: by file name, relative to the folder of a trial; one file but for traces.
      commands: command lines that read it; ``{in}`` stands for the input, ``{out}`` for an output file.
    """

    form: str
    content: tuple[tuple[str, bytes], ...]
    commands: tuple[tuple[str, ...], ...]


_OPT = (("opt", "{in}", "-O", "comm", "-o", "{out}"), ("opt", "{in}", "--pass=comm-shift,cse", "-o", "{out}"),
        ("report", "{in}"), ("lint", "{in}"),
        ("opt", "{in}", "--emit=bytecode", "-o", "{out}"), ("opt", "{in}", "--emit=portable", "-o", "{out}"),
        ("opt", "{in}", "--remarks=all", "--stats", "--rules=collectives", "-o", "{out}"),
        ("opt", "{in}", "--check=proof", "--pass=all-reduce-fusion", "-o", "{out}"),
        ("opt", "{in}", "--pass=reshard-to-broadcast,split-stages", "--trace={out}.trace", "-o", "{out}"))
_STEP_COMMANDS = (("report", "{in}"), ("lint", "{in}"), ("report", "{in}", "--json"),
                  ("report", "{in}", "--topology=h200:1x4"), ("timeline", "{in}", "--target=h200:1x4"),
                  ("timeline", "{in}", "--target=h200:1x4", "--json"), ("audit", "{in}", "--target=h200:1x4"),
                  ("audit", "{in}", "--target=h200:1x4", "--json"))
_STEP = """func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.negate %a : tensor<4x4xf32>
  %1 = stablehlo.negate %0 : tensor<4x4xf32>
  %2 = stablehlo.add %1, %0 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
"""


def seeds(form: str, folder: Path) -> list[Seed]:
    """The sound inputs of a form.

    Args:
      form: one of ``FORMS``.
      folder: where files that take time to make are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if form in ("text", "bytecode", "portable"):
        return [Seed(form, ((f"in.{form}", content),), _OPT) for content in _modules(form)]
    if form == "export":
        return [Seed(form, (("in.export", _jax_files(folder)[0].read_bytes()),), _OPT)]
    if form == "hlo":
        return [Seed(form, (("in.hlo", text),), _STEP_COMMANDS) for text in _hlo_texts(folder)]
    if form == "program":
        return [Seed(form, program_files(), PROGRAM_COMMANDS)]
    if form == "rules":
        files = [*sorted((ROOT / "patterns").glob("*.hlopat")), *sorted((ROOT / "tests" / "lit").rglob("*.hlopat"))]
        commands = (("opt", "step.mlir", "--rules={in}", "-o", "{out}"), ("fmt", "{in}"), ("fmt", "--diff", "{in}"),
                    ("rules", "list", "{in}"), ("rules", "check", "--static", "{in}"), ("rules", "docs", "{in}"))
        return [Seed(form, (("in.hlopat", path.read_bytes()), ("step.mlir", _STEP.encode())), commands)
                for path in files]
    if form == "topology":
        files = sorted((ROOT / "hlorewrite" / "cost" / "data" / "topologies").glob("*.toml"))
        commands = (("collective", "all-reduce", "--bytes=1MiB", "--topology={in}"),
                    ("estimate", "--model=gpt3-175b", "--tp=8", "--global-batch=64", "--topology={in}:4x8"),
                    ("report", "step.mlir", "--topology={in}:1x4"),
                    ("pipeline", "simulate", "--stages=4", "--microbatches=8", "--fwd=1ms", "--topology={in}"))
        return [Seed(form, (("in.toml", path.read_bytes()), ("step.mlir", _STEP.encode())), commands)
                for path in files]
    if form == "trace":
        return [_trace(folder)]
    if form in MADE_FORMS:
        return [Seed(form, files, commands)
                for files, commands in made_files(form, folder, lambda: _jax_files(folder)[1].read_bytes())]
    if form in GRAMMAR_FORMS:
        return [Seed(form, (("table.txt", b""),), ())]
    return [Seed("arguments", (("step.mlir", _STEP.encode()), ("nccl.txt", NCCL.encode())), ())]


def _modules(form: str) -> list[bytes]:
    from hlorewrite.errors import HlorewriteError
    from hlorewrite.ir.load import parse
    from hlorewrite.ir.module import Format
    from hlorewrite.ir.save import emit
    files = [*sorted((ROOT / "tests" / "lit" / "passes").rglob("*.mlir")),
             *sorted((ROOT / "tests" / "programs" / "foreign").glob("*.mlir")),
             ROOT / "tests" / "programs" / "nested_regions.mlir", ROOT / "tests" / "programs" / "two_stages.mlir"]
    found = []
    for path in files:
        text = path.read_bytes()
        if b"// -----" in text or len(text) > 30_000:
            continue
        try:
            found.append(text if form == "text" else emit(parse(text), Format(form)))
        except HlorewriteError:
            continue
    return found


def _jax_files(folder: Path) -> tuple[Path, Path]:
    """A serialized export and the HLO of a step on four devices."""
    paths = folder / "step.export", folder / "step.hlo"
    if not all(path.exists() for path in paths):
        flags = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, "-c", _EXPORT, *map(str, paths)], check=True, env=environment)
    return paths


def _hlo_texts(folder: Path) -> list[bytes]:
    """HLO of a step as XLA compiles it for CPU and for described GPUs, and what others write."""
    compiled = folder / "step.gpu.hlo"
    export = _jax_files(folder)[0]
    if not compiled.exists():
        subprocess.run([sys.executable, "-m", "hlorewrite", "compile", str(export), "--target=h200:1x4", "--emit-hlo",
                        "-o", str(compiled)], check=True, capture_output=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"})
    others = [ROOT / "tests" / "lit" / "cli" / "Inputs" / "accumulates.hlo",
              Path(__file__).parent / "library_calls.hlo",
              *sorted((ROOT / "tests" / "programs" / "foreign").glob("*.hlo"))]
    return [path.read_bytes() for path in (_jax_files(folder)[1], compiled, compiled, *others)]


def _trace(folder: Path) -> Seed:
    """A trace of opt, with the timeline of a simulated pipeline next to it."""
    run = folder / "run"
    if not (run / "timeline.json").exists():
        from hlorewrite.cli.main import main
        source = ROOT / "tests" / "lit" / "passes" / "comm-shift"
        name = str(next(path for path in sorted(source.rglob("*.mlir")) if b"// -----" not in path.read_bytes()))
        main(["opt", name, "--pass=comm-shift", f"--trace={run}", "-o", str(folder / "traced.mlir"),
              "--topology=h200:1x4"])
        main(["pipeline", "simulate", "--stages=2", "--microbatches=4", "--fwd=1ms", f"--trace={run}"])
    files = tuple((f"run/{path.name}", path.read_bytes()) for path in sorted(run.iterdir()))
    return Seed("trace", files, (("view", "run", "-o", "{out}"), ("view", "run", "--json"),
                                 ("view", "run", "--topology=h200:1x4", "-o", "{out}")))
