"""What rewriting costs in computation, measured on one GPU next to the timeline's prediction, and whether values hold.

    python bench/gpu/rewritten_steps.py write FOLDER [--gpu h200] [--dry] [--only TEXT | --modules FILE...]
    python bench/gpu/rewritten_steps.py measure FOLDER [--json FILE]

``write`` needs no GPU: it rewrites steps for eight described GPUs with ``auto`` and writes the program of one device
before and after (``one_device.py``). ``--modules`` takes captured steps instead (``bench/models/capture.py``).
``measure`` compiles these for the GPU that is here and times them. One GPU cannot time the communication that a
rewriting hides, but it can time what hiding costs: smaller products, copies of what loops carry, buffers written
twice. The stand-ins of collectives are linear and the same before and after, so the outputs of both programs are
compared as well.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / part) for part in ("bench/common", "bench/gpu", "bench/passes", "examples"))]

ROWS = ("megatron tp8 remat", "megatron tp8 sequence", "llama fsdp8 acc1", "gpt A scanned 1x8", "moe ep8")
"""Steps of ``bench/passes/decisions.py``: two halves of the batch, the same with gathers, rotated gathers, gradients
reduced behind an accumulation loop, tokens that move to their experts."""
ROUNDS, CALLS, LONGEST = 5, 4, 2.0
"""How often both programs are timed in turn, by how many calls at most, and by how many seconds of them."""


@dataclass(frozen=True)
class RewrittenStep:
    """One step on one device, before and after, without communication; times in milliseconds.

    Attributes:
      name: of the step.
      way: how it was rewritten.
      before: measured.
      after: measured.
      predicted_before: by the timeline of the same compilation.
      predicted_after: by the timeline of the same compilation.
      difference: largest difference of an output over its largest element; None if random arguments make all of
        them infinite or not a number.
      classes: of each class of kernel, milliseconds before and after: measured, measured, predicted, predicted; empty
        where nothing was profiled.
    """

    name: str
    way: str
    before: float
    after: float
    predicted_before: float | None
    predicted_after: float | None
    difference: float | None
    classes: dict[str, tuple[float, float, float, float]]

    def text(self) -> str:
        """A row of the table."""
        told = "" if not self.predicted_before or not self.predicted_after else (
            f"{self.predicted_before:.2f} -> {self.predicted_after:.2f} ms "
            f"({self.predicted_after / self.predicted_before:.3f})")
        seen = f"{self.before:.2f} -> {self.after:.2f} ms ({self.after / self.before:.3f})"
        alike = "not finite" if self.difference is None else f"{self.difference:.1e}"
        return f"| {self.name} | {self.way} | {seen} | {told} | {alike} |"


# ---- writing


def write(folder: Path, gpu: str, steps: dict[str, Any]) -> None:
    """Writes each step's programs, and how it was rewritten."""
    from one_device import one_device

    from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
    from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target
    folder.mkdir(parents=True, exist_ok=True)
    for name, lower in steps.items():
        module = lower()
        place = place_of(parse_target(f"{gpu}:1x8"), module)
        made, _ = rewrite_step(module.clone(), StepOptions.of(OPTIMIZE, {"passes": "auto"}), place)
        found = made.report.comparison
        stem = folder / name.replace(" ", "-")
        for part, each in (("before", module), ("after", made.module)):
            stem.with_suffix(f".{part}.mlir").write_text(one_device(each).text())
        stem.with_suffix(".json").write_text(json.dumps({"name": name, "way": found.chosen if found else "XLA alone",
                                                         "options": dict(made.report.compiler_options)}))
        print(f"{name}: {found.sentence if found else 'as it is'}", file=sys.stderr, flush=True)


def _steps(modules: list[Path], only: str, *, dry: bool) -> dict[str, Any]:
    """Name -> what lowers the step: of files, of the rows of the table, or in a dry run of one small step."""
    import functools

    import decisions
    import jax
    import megatron_steps

    from hlorewrite.ir.load import parse
    jax.config.update("jax_num_cpu_devices", 8)  # steps that are lowered for the devices that are here
    if modules:
        return {file.name.partition(".")[0]: functools.partial(lambda file: parse(file.read_bytes(), name=file.name),
                                                               file) for file in modules}
    if not dry:
        return {name: lower for name, (_, lower) in decisions.steps().items() if name in ROWS and only in name}
    small = megatron_steps.MegatronModel(layers=2, width=1024, heads=8, rows=4, length=256, vocab=1024, model=8, data=1,
                                         remat=True, compute="float32")
    return {"small": functools.partial(lambda: parse(megatron_steps.exported(small), name="step"))}


# ---- measuring


def measure(folder: Path) -> list[RewrittenStep]:
    """Times what ``write`` wrote, on the first device that is here."""
    rows = []
    for file in sorted(folder.glob("*.json")):
        said = json.loads(file.read_text())
        programs = [_DeviceProgram(file.with_suffix(f".{part}.mlir"), options)
                    for part, options in (("before", {}), ("after", said["options"]))]
        arguments = programs[0].arguments()
        outputs = [program(*arguments) for program in programs]
        difference = _largest(_difference(a, b) for a, b in zip(*outputs, strict=True))
        del outputs
        times = [[program.seconds(arguments) for program in programs] for _ in range(ROUNDS)]  # in turn: clocks drift
        before, after = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        rows.append(RewrittenStep(said["name"], said["way"], before, after, programs[0].predicted(),
                                  programs[1].predicted(), difference,
                                  _classes([program.profiled(arguments) for program in programs])))
        print(rows[-1].text(), file=sys.stderr, flush=True)
    return rows


def _classes(profiles: list[list[Any]]) -> dict[str, tuple[float, float, float, float]]:
    """By class of kernel: milliseconds measured before and after, and predicted before and after."""
    def total(profile: list[Any], kind: str, side: str) -> float:
        return sum(getattr(each, side) for each in profile if each.kind == kind) * 1e3
    kinds = sorted({each.kind for profile in profiles for each in profile})
    return {kind: (total(profiles[0], kind, "measured"), total(profiles[1], kind, "measured"),
                   total(profiles[0], kind, "predicted"), total(profiles[1], kind, "predicted")) for kind in kinds}


class _DeviceProgram:
    """A program of one device, compiled for the device that is here; called with arrays, it returns arrays."""

    def __init__(self, file: Path, options: dict[str, Any]) -> None:
        import jax

        from hlorewrite.ir.load import parse
        from hlorewrite.jaxbridge.xla.execute import signature
        self._module, self._options = parse(file.read_bytes(), name=file.name), options
        self._where = "cpu:1" if jax.default_backend() == "cpu" else "gpu"
        self._taken = signature(self._module)[0]
        self._made = self._compiled({})

    def _compiled(self, more: dict[str, Any]) -> Any:
        from hlorewrite.jaxbridge.xla.compile_for import compile_for
        from hlorewrite.jaxbridge.xla.target import parse_target
        return compile_for(self._module, parse_target(self._where), load=True, xla_flags=self._options | more)

    def __call__(self, *arguments: Any) -> list[Any]:
        parts = self._made.executable.execute_sharded(list(arguments)).disassemble_into_single_device_arrays()
        return [part[0] for part in parts]

    def arguments(self) -> list[Any]:
        """Random arguments on the device of the program."""
        import jax
        import measuring
        made = measuring.arguments_for([jax.ShapeDtypeStruct(each.shape, each.dtype) for each in self._taken])
        return jax.device_put(made, self._made.executable.local_devices()[0])

    def seconds(self, arguments: list[Any]) -> float:
        """The time of a call among a few that follow each other, after one that is not timed."""
        import measuring
        once = measuring.seconds_a_call(self, arguments, (), 1)
        return measuring.seconds_a_call(self, arguments, (), max(1, min(CALLS, int(LONGEST / once))))

    def predicted(self) -> float | None:
        """Milliseconds by the timeline of this compilation; None on a CPU, which has none."""
        import measuring

        from hlorewrite.cost import topology
        from hlorewrite.timeline import simulate
        cluster = measuring.described_cluster()
        return simulate(self._made.hlo, topology(cluster)).step_s * 1e3 if cluster else None

    def profiled(self, arguments: list[Any]) -> list[Any]:
        """Its kernels beside the model's; nothing on a CPU. Kernels inside of command buffers would have no names."""
        import measuring
        cluster = measuring.described_cluster()
        if not cluster:
            return []
        self._made = self._compiled({"xla_gpu_enable_command_buffer": ""})
        return measuring.beside_the_model(measuring.profiled(self, arguments, ()), self._made.hlo, cluster)


def _largest(differences: Iterable[float]) -> float | None:
    """The largest of the finite differences; None if there is none."""
    return max((each for each in differences if math.isfinite(each)), default=None)


def _difference(before: Any, after: Any) -> float:
    import jax.numpy as jnp
    wide = before.astype(jnp.float32), after.astype(jnp.float32)
    largest = float(jnp.max(jnp.abs(wide[0]), initial=0.0))
    return float(jnp.max(jnp.abs(wide[0] - wide[1]), initial=0.0)) / (largest or 1.0)


def main() -> int:
    """Writes or measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "measure"))
    parser.add_argument("folder", type=Path, help="where the programs stand")
    parser.add_argument("--gpu", default="h200", help="the GPUs that steps are rewritten for (default: h200)")
    parser.add_argument("--dry", action="store_true", help="one small step, for a CPU")
    parser.add_argument("--only", default="", metavar="TEXT", help="steps whose name contains this")
    parser.add_argument("--modules", type=Path, nargs="+", default=[], metavar="FILE", help="write these steps instead")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    args = parser.parse_args()
    if args.what == "write":
        write(args.folder, args.gpu, _steps(args.modules, args.only, dry=args.dry))
        return 0
    rows = measure(args.folder)
    print("\n".join(["| step | way | measured | predicted | difference |", "|---|---|---|---|---|",
                     *(row.text() for row in rows)]))
    for row in rows:
        for kind, numbers in row.classes.items():
            print("{}, {} kernels: {:.2f} -> {:.2f} ms, predicted {:.2f} -> {:.2f} ms".format(row.name, kind, *numbers))
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
