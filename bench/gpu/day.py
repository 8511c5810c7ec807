"""What one GPU can show about the predictions, in eight minutes: measured next to predicted, with errors.

Usage: ``python bench/gpu/day.py [--dry] [--seconds 480] [--only PART] [--json FILE] [--markdown FILE]``.

Parts, each of which stops where the time is up, and none of which stops the others:

- ``kernels``: single kernels against the timeline of their own programs;
- ``steps``: a GPT, a mixture of experts and a convolutional network against the timeline, whole and by class of kernel;
- ``schedule``: what XLA made for this GPU against what it makes for a described one;
- ``memory``: the peak that the allocator saw against ``memory_analysis``;
- ``contention``: a matrix product at the same time as a copy to the host, against each of them alone;
- ``mocked``: a data-parallel step of eight devices whose collectives are mocked, where this JAX has that.

``--dry`` runs all of it on a CPU at tiny sizes: times mean nothing there, and what needs a GPU says so.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "bench" / part) for part in ("common", "gpu"))]
CLUSTERS = {"H100": "h100:1x1", "H200": "h200:1x1", "GB200": "gb200-nvl72:1x1", "B200": "b200:1x1", "A100": "a100:1x1"}
SHARES = {"kernels": 0.45, "steps": 0.7, "schedule": 0.8, "memory": 0.88, "contention": 0.93, "mocked": 1.0}
"""Of the time there is: when each part has to be over."""
MOCKED_DEVICES = 8
CLASSES = (("attention", ("fmha", "flash")), ("product", ("gemm", "cutlass", "nvjet", "dot", "conv", "cudnn", "xmma")),
           ("copy", ("copy", "memcpy", "transpose")))


@dataclass(frozen=True)
class DayRow:
    """One comparison.

    Attributes:
      part: which part it belongs to.
      name: what was measured.
      measured: in ``unit``; None where nothing was.
      predicted: in ``unit``; None where nothing is.
      unit: of both.
      note: why something is missing.
    """

    part: str
    name: str
    measured: float | None = None
    predicted: float | None = None
    unit: str = "us"
    note: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured, minus one."""
        if not self.measured or self.predicted is None:
            return None
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Machine:
    """What this runs on.

    Attributes:
      kind: the device, by JAX.
      cluster: its topology; of a dry run that of an H200.
      dry: whether it is a CPU that only tries the script.
      ends: when all has to be over, by ``time.monotonic``.
    """

    kind: str
    cluster: str
    dry: bool
    ends: float

    def over(self) -> bool:
        """Whether the time of a part is up."""
        return time.monotonic() > self.ends


def main() -> int:
    """Runs the parts and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="tiny sizes on a CPU")
    parser.add_argument("--seconds", type=float, default=480.0, help="for all parts (default: 480)")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--markdown", type=Path, help="also write the report to this file")
    args = parser.parse_args()
    if args.dry:
        os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # peaks are those of the steps; a second process has room
    import jax
    kind = jax.devices()[0].device_kind
    cluster = "h200:1x1" if args.dry else next((name for part, name in CLUSTERS.items() if part in kind), None)
    if cluster is None:
        print(f"{kind} is described by no topology: nothing is measured")
        return 0
    begin, rows = time.monotonic(), list[DayRow]()
    for name, part in PARTS.items():
        if args.only in (None, name):
            machine = Machine(kind, cluster, args.dry, begin + args.seconds * SHARES[name])
            rows += _tried(name, part, machine)
    text = report(rows, f"{kind}, jax {jax.__version__}, {time.monotonic() - begin:.0f} s"
                        + (", a dry run: times mean nothing" if args.dry else ""))
    print(text)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) | {"error": row.error} for row in rows], indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(text + "\n")
    return 0


def _tried(name: str, part: Callable[[Machine], Iterator[DayRow]], machine: Machine) -> list[DayRow]:
    """The rows of a part; one that says what went wrong in place of the rest."""
    rows = list[DayRow]()
    try:
        for row in part(machine):
            rows.append(row)
            print(f"  {name}: {row.name}", file=sys.stderr, flush=True)
            if machine.over():
                return [*rows, DayRow(name, "the rest", note="the time of this part was up")]
    except Exception as error:  # one part that fails leaves the others theirs
        text = str(error).partition("\n")[0]
        rows.append(DayRow(name, "failed", note=f"{type(error).__name__}: {text[:90]}"))
    return rows


def report(rows: list[DayRow], head: str) -> str:
    """The rows as a table in Markdown, with the median error of each part."""
    lines = [head, "", "| part | what | measured | predicted | error |", "|---|---|---|---|---|"]
    for row in rows:
        seen, told = (f"{value:.4g} {row.unit}" if value is not None else row.note or "" for value in
                      (row.measured, row.predicted))
        error = "" if row.error is None else f"{row.error:+.0%}"
        lines.append(f"| {row.part} | {row.name} | {seen} | {told} | {error} |")
    for part in dict.fromkeys(row.part for row in rows):
        errors = [abs(row.error) for row in rows if row.part == part and row.error is not None]
        if errors:
            lines += ["", f"{part}: median error {statistics.median(errors):.0%}, largest {max(errors):.0%}, "
                          f"{len(errors)} rows"]
    return "\n".join(lines)


# ---- the parts

def kernels(machine: Machine) -> Iterator[DayRow]:
    """Single kernels."""
    import jax
    import jax.numpy as jnp
    from kernel_programs import PROGRAMS
    programs: dict[str, Any] = PROGRAMS
    if machine.dry:
        small = jax.ShapeDtypeStruct((64, 64), jnp.float32)
        programs = {"product": (jnp.matmul, (small, small), ()), "add": (jnp.add, (small, small), ())}
    for name, (function, shapes, donated) in programs.items():
        compiled = jax.jit(function, donate_argnums=donated).lower(*shapes).compile()
        seconds = _seconds(compiled, _made(shapes), donated)
        yield DayRow("kernels", name, seconds * 1e6, *_predicted(compiled, machine))


def steps(machine: Machine) -> Iterator[DayRow]:
    """Whole steps, and their kernels by class."""
    import gpu_steps
    import jax
    for step in gpu_steps.steps(dry=machine.dry):
        compiled = jax.jit(step.function, donate_argnums=0).lower(*step.shapes).compile()
        arguments = _made(step.shapes)
        seconds = _seconds(compiled, arguments, (0,))
        yield DayRow("steps", step.name, seconds * 1e6, *_predicted(compiled, machine))
        if machine.dry:
            yield DayRow("steps", f"{step.name}, by class", note="a CPU has no kernels to class")
            continue
        measured, predicted = _by_class(compiled, arguments, machine)
        for kind in sorted(measured):
            yield DayRow("steps", f"{step.name}, {kind} kernels", measured[kind] * 1e6, predicted[kind] * 1e6)


def _by_class(compiled: Any, arguments: list[Any], machine: Machine) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds by class of kernel, of a profile and by the model of each instruction it names."""
    import jax

    from hlorewrite.audit.profile.xplane import read_xplane
    from hlorewrite.cost import topology
    from hlorewrite.hlo.parse import parse_hlo
    from hlorewrite.timeline.kernel_times import KernelTimes
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            arguments[0] = jax.block_until_ready(compiled(*arguments))
        file = next(Path(folder).rglob("*.xplane.pb"))
        profile = read_xplane(file.read_bytes(), file.name)
    module = parse_hlo(compiled.as_text() or "")
    times = KernelTimes(module, topology(machine.cluster))
    model = {instruction.name: (computation, instruction) for computation in module.computations.values()
             for instruction in computation.instructions.values()}
    measured, predicted = defaultdict[str, float](float), defaultdict[str, float](float)
    for kernel in profile:
        found = model.get(kernel.op)
        seconds = times.seconds(*found) if found else None
        kind = _class_of(kernel.name) if seconds is not None else "other"
        measured[kind] += kernel.seconds
        predicted[kind] += (seconds or 0.0) * kernel.runs
    return measured, predicted


def _class_of(kernel: str) -> str:
    return next((kind for kind, parts in CLASSES if any(part in kernel.lower() for part in parts)), "memory")


def schedule(machine: Machine) -> Iterator[DayRow]:
    """The order of instructions: compiled here, and for a described GPU."""
    import gpu_steps
    import jax

    from hlorewrite.hlo.parse import parse_hlo
    for step in gpu_steps.steps(dry=machine.dry)[:1 if machine.dry else None]:
        lowered = jax.jit(step.function, donate_argnums=0).lower(*step.shapes)
        described = _opcodes(parse_hlo(_deviceless(lowered.as_text(), machine)))
        if machine.dry:
            yield DayRow("schedule", step.name, None, len(described), "instructions", "a CPU's schedule is another")
            continue
        here = _opcodes(parse_hlo(lowered.compile().as_text() or ""))
        yield DayRow("schedule", f"{step.name}, instructions", len(here), len(described), "instructions")
        alike = difflib.SequenceMatcher(None, here, described, autojunk=False).ratio()
        yield DayRow("schedule", f"{step.name}, in the same order", 1.0, alike, "of them")


def _opcodes(module: Any) -> list[str]:
    return [instruction.opcode for instruction in module.computations[module.entry].instructions.values()]


def _deviceless(text: str, machine: Machine) -> str:
    from hlorewrite.ir.load import parse
    from hlorewrite.jaxbridge.baseline.measured import scheduled
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target
    module = parse(text, name="step")
    return scheduled(module, place_of(parse_target(machine.cluster), module), {})[0].hlo


def memory(machine: Machine) -> Iterator[DayRow]:
    """The peak of the allocator."""
    import gpu_steps
    import jax
    for step in gpu_steps.steps(dry=machine.dry)[:1 if machine.dry else None]:
        compiled = jax.jit(step.function, donate_argnums=0).lower(*step.shapes).compile()
        said: Any = compiled.memory_analysis()
        needed = (said.argument_size_in_bytes + said.output_size_in_bytes + said.temp_size_in_bytes
                  - said.alias_size_in_bytes) / 2**20
        jax.block_until_ready(compiled(*_made(step.shapes)))
        seen = jax.devices()[0].memory_stats() or {}
        peak = seen.get("peak_bytes_in_use")
        yield DayRow("memory", f"{step.name}, peak so far", peak / 2**20 if peak else None, needed, "MiB",
                     "" if peak else "this device counts no bytes")


def contention(machine: Machine) -> Iterator[DayRow]:
    """A product at the same time as a copy to the host."""
    import jax
    import jax.numpy as jnp
    size, rounds = (64, 2) if machine.dry else (8192, 20)
    product = jax.jit(lambda a: a @ a).lower(jax.ShapeDtypeStruct((size, size), jnp.bfloat16)).compile()
    left, moved = jnp.ones((size, size), jnp.bfloat16), jnp.ones((size, size), jnp.float32)

    def timed(*, multiply: bool, copy: bool) -> float:
        jax.block_until_ready(product(left))
        copies = [jax.block_until_ready(moved + number) for number in range(rounds)]
        begin, out = time.perf_counter(), None
        for each in copies:
            if copy:
                each.copy_to_host_async()
            if multiply:
                out = product(left)
        jax.block_until_ready(out)
        if copy:
            _ = [jax.device_get(each) for each in copies]
        return (time.perf_counter() - begin) / rounds * 1e6

    alone, copied, both = (timed(multiply=m, copy=c) for m, c in ((True, False), (False, True), (True, True)))
    from hlorewrite.cost.compute import timeline_constants
    slowdown = 1 + float(timeline_constants()["overlap_slowdown"])
    yield DayRow("contention", "product alone", alone)
    yield DayRow("contention", "copy alone", copied)
    yield DayRow("contention", "product with the copy", both, max(alone * slowdown, copied))


def mocked(machine: Machine) -> Iterator[DayRow]:
    """A data-parallel step with mocked collectives, in a process of its own."""
    if machine.dry:
        yield DayRow("mocked", "GPT over eight devices", note="mocked collectives need a GPU")
        return
    environment = os.environ | {"JAX_MOCK_GPU_TOPOLOGY": f"1x{MOCKED_DEVICES}x1"}
    done = subprocess.run([sys.executable, __file__, "--only", "mocked_step"], env=environment, capture_output=True,
                          text=True, timeout=max(machine.ends - time.monotonic(), 10))
    if done.returncode:
        yield DayRow("mocked", "GPT over eight devices",
                     note=f"this JAX has none: {(done.stderr.strip().splitlines() or [''])[-1][:90]}")
        return
    yield DayRow("mocked", "GPT over eight devices", *json.loads(done.stdout.splitlines()[-1]))


def mocked_step() -> int:
    """What the process of ``mocked`` runs: prints measured and predicted microseconds."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlorewrite.cost import topology
    from hlorewrite.timeline import simulate
    if jax.device_count() != MOCKED_DEVICES:
        raise SystemExit(f"{jax.device_count()} devices, not {MOCKED_DEVICES}")
    import gpu_steps
    step = gpu_steps.steps(dry=False)[0]
    mesh = Mesh(jax.devices(), ("data",))
    params, batch = step.shapes
    whole, split = (NamedSharding(mesh, PartitionSpec(*part)) for part in ((), ("data",)))
    wide = jax.ShapeDtypeStruct((batch.shape[0] * MOCKED_DEVICES, *batch.shape[1:]), batch.dtype)
    jitted = jax.jit(step.function, in_shardings=(whole, split), out_shardings=whole, donate_argnums=0)
    compiled = jitted.lower(params, wide).compile()
    made = jax.jit(lambda: jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), (params, wide)),
                   out_shardings=(whole, split))()
    seconds = _seconds(compiled, list(made), (0,))
    kind = next(name for part, name in CLUSTERS.items() if part in jax.devices()[0].device_kind).partition(":")[0]
    predicted = simulate(compiled.as_text() or "", topology(f"{kind}:1x{MOCKED_DEVICES}"))
    print(json.dumps([seconds * 1e6, predicted.step_s * 1e6]))
    return 0


PARTS: dict[str, Callable[[Machine], Iterator[DayRow]]] = {
    "kernels": kernels, "steps": steps, "schedule": schedule, "memory": memory, "contention": contention,
    "mocked": mocked}


# ---- measuring and predicting

def _made(shapes: Any) -> list[Any]:
    import jax
    import jax.numpy as jnp

    def one(shape: jax.ShapeDtypeStruct) -> jax.Array:
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return jnp.zeros(shape.shape, shape.dtype)
        return (jax.random.normal(jax.random.key(0), shape.shape, jnp.float32) * 0.02).astype(shape.dtype)
    return list(jax.tree.map(one, shapes))


def _seconds(compiled: Any, arguments: list[Any], donated: tuple[int, ...]) -> float:
    """The median time of a call; what is donated is the result of the call before."""
    import jax

    def call(times: int) -> float:
        begin, results = time.perf_counter(), None
        for _ in range(times):
            results = compiled(*arguments)
            taken = results if isinstance(results, tuple) else (results,)
            for place, result in zip(donated, taken, strict=False):
                arguments[place] = result
        jax.block_until_ready(results)
        return (time.perf_counter() - begin) / times
    once = max(call(2), 1e-6)
    times = max(1, min(20, int(0.2 / once)))
    return statistics.median(call(times) for _ in range(5))


def _predicted(compiled: Any, machine: Machine) -> tuple[float | None, str, str]:
    """(microseconds, their unit, why there are none) of a compiled program by its timeline."""
    if machine.dry:
        return None, "us", "a CPU's program has no timeline"
    from hlorewrite.cost import topology
    from hlorewrite.timeline import simulate
    step = simulate(compiled.as_text(), topology(machine.cluster))
    return step.step_s * 1e6, "us", "" if step.complete else "some kernels are not known"


if __name__ == "__main__":
    sys.exit(mocked_step() if sys.argv[1:] == ["--only", "mocked_step"] else main())
