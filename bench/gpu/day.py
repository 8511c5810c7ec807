"""What one GPU can show about the predictions, in eight minutes: measured next to predicted, with errors.

Usage: ``python bench/gpu/day.py [--dry] [--seconds 480] [--only PART] [--json FILE] [--markdown FILE]``.

Parts, each of which stops where the time is up, and none of which stops the others:

- ``memory``: the peak that the allocator saw against ``memory_analysis``;
- ``kernels``: the kernels of small programs, by a profile, against the timeline of these programs;
- ``steps``: a GPT, a mixture of experts and a convolutional network against the timeline, whole and by class of kernel,
  with the instructions that the model is furthest from;
- ``schedule``: the kernels of XLA's schedule for this GPU against those for a described one;
- ``contention``: a matrix product at the same time as a copy to pinned memory of the host;
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
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "bench" / part) for part in ("common", "gpu"))]
import gpu_steps  # noqa: E402
import measuring  # noqa: E402

SHARES = {"memory": 0.15, "kernels": 0.5, "steps": 0.78, "schedule": 0.9, "contention": 0.95, "mocked": 1.0}
"""Of the time there is: when each part has to be over."""
MOCKED_DEVICES = 8
FURTHEST = 3
"""Instructions of a step whose difference from the model is shown."""


@dataclass(frozen=True)
class DayRow:
    """One comparison.

    Attributes:
      part: which part it belongs to.
      name: what was measured.
      measured: in ``unit``; None if nothing was.
      predicted: in ``unit``; None if nothing is.
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
        jax.config.update("jax_platforms", "cpu")
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # peaks are those of the steps; a second process has room
    kind = jax.devices()[0].device_kind
    cluster = "h200:1x1" if args.dry else measuring.described_cluster()
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

def memory(machine: Machine) -> Iterator[DayRow]:
    """The peak of the allocator. It never falls, so the smallest step is the first, before any other part."""
    needed = []
    for step in gpu_steps.steps(dry=machine.dry)[:1 if machine.dry else None]:
        compiled = jax.jit(step.function, donate_argnums=0).lower(*step.shapes).compile()
        said: Any = compiled.memory_analysis()
        needed.append((said.argument_size_in_bytes + said.output_size_in_bytes + said.temp_size_in_bytes
                       - said.alias_size_in_bytes, step, compiled))
    for size, step, compiled in sorted(needed, key=lambda each: each[0]):
        jax.block_until_ready(compiled(*measuring.arguments_for(step.shapes)))
        seen = jax.devices()[0].memory_stats() or {}
        peak = seen.get("peak_bytes_in_use")
        yield DayRow("memory", f"{step.name}, peak", peak / 2**20 if peak else None, size / 2**20, "MiB",
                     "" if peak else "this device counts no bytes")


def kernels(machine: Machine) -> Iterator[DayRow]:
    """Programs of one or a few kernels: the time of their kernels."""
    from kernel_programs import PROGRAMS
    programs: dict[str, Any] = PROGRAMS
    if machine.dry:
        small = jax.ShapeDtypeStruct((64, 64), jnp.float32)
        programs = {"product": (jnp.matmul, (small, small), ()), "add": (jnp.add, (small, small), ())}
    else:
        tiny = jax.jit(lambda a: a + 1).lower(jax.ShapeDtypeStruct((8,), jnp.float32)).compile()
        yield DayRow("kernels", "a call that computes next to nothing, by the clock",
                     measuring.call_seconds(tiny, [jnp.ones(8)], ()) * 1e6, note="time of the host")
    for name, (function, shapes, donated) in programs.items():
        compiled = jax.jit(function, donate_argnums=donated).lower(*shapes).compile()
        arguments = measuring.arguments_for(shapes)
        seconds = (measuring.call_seconds(compiled, arguments, donated) if machine.dry else
                   sum(each.seconds for each in measuring.profiled(compiled, arguments, donated)))
        yield DayRow("kernels", name, seconds * 1e6, *_predicted(compiled, machine))


def steps(machine: Machine) -> Iterator[DayRow]:
    """Whole steps by the clock, and their kernels by class."""
    for step in gpu_steps.steps(dry=machine.dry):
        lowered = jax.jit(step.function, donate_argnums=0).lower(*step.shapes)
        compiled, arguments = lowered.compile(), measuring.arguments_for(step.shapes)
        seconds = measuring.call_seconds(compiled, arguments, (0,))
        yield DayRow("steps", step.name, seconds * 1e6, *_predicted(compiled, machine))
        if machine.dry:
            yield DayRow("steps", f"{step.name}, by class", note="a CPU has no kernels to class")
            continue
        # Kernels inside of command buffers carry no name of an instruction.
        named = lowered.compile(compiler_options={"xla_gpu_enable_command_buffer": ""})
        yield from _by_class(step.name, named, arguments, machine)


def _by_class(step: str, compiled: Any, arguments: list[Any], machine: Machine) -> Iterator[DayRow]:
    """Times by class of kernel, and of the instructions that the model is furthest from."""
    found = measuring.beside_the_model(measuring.profiled(compiled, arguments, (0,)), compiled.as_text() or "",
                                       machine.cluster)
    for kind in sorted({each.kind for each in found}):
        seen, told = (sum(getattr(each, side) for each in found if each.kind == kind) * 1e6
                      for side in ("measured", "predicted"))
        yield DayRow("classes", f"{step}, {kind} kernels", seen, told)
    for each in sorted(found, key=lambda each: -abs(each.measured - each.predicted))[:FURTHEST]:
        yield DayRow("furthest", f"{step}, {each.name}", each.measured * 1e6, each.predicted * 1e6)


def schedule(machine: Machine) -> Iterator[DayRow]:
    """The order of kernels: compiled here, and for a described GPU."""
    for step in gpu_steps.steps(dry=machine.dry)[:1 if machine.dry else None]:
        lowered = jax.jit(step.function, donate_argnums=0).lower(*step.shapes)
        described = _kernel_order(_deviceless(lowered.as_text(), machine))
        if machine.dry:
            yield DayRow("schedule", step.name, None, len(described), "kernels", "a CPU's schedule is another")
            continue
        here = _kernel_order(lowered.compile().as_text() or "")
        yield DayRow("schedule", f"{step.name}, kernels", len(here), len(described), "kernels")
        alike = difflib.SequenceMatcher(None, here, described, autojunk=False).ratio()
        yield DayRow("schedule", f"{step.name}, in the same order", 1.0, alike, "of them")


def _kernel_order(text: str) -> list[str]:
    """What each kernel of the entry computes and makes, in order.

    Without a GPU nothing is tuned, so a product may be a fusion there and a call of cuBLAS here: both are "product".
    """
    from hlorewrite.hlo.parse import parse_hlo
    from hlorewrite.timeline.kernel_times import fusion_products
    module, order = parse_hlo(text), list[str]()
    for instruction in module.computations[module.entry].instructions.values():
        if instruction.opcode in ("parameter", "bitcast", "get-tuple-element", "tuple", "constant"):
            continue
        fused = module.computations.get(next(iter(instruction.called("calls")), ""))
        product = instruction.opcode == "custom-call" or (fused and fusion_products(module, fused))
        made = instruction.shape.lstrip("(").partition("]")[0]
        order.append(f"{'product' if product else instruction.opcode} {made}]")
    return order


def _deviceless(text: str, machine: Machine) -> str:
    from hlorewrite.ir.load import parse
    from hlorewrite.jaxbridge.baseline.measured import scheduled
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target
    module = parse(text, name="step")
    return scheduled(module, place_of(parse_target(machine.cluster), module), {})[0].hlo


def contention(machine: Machine) -> Iterator[DayRow]:
    """A product at the same time as a copy to the host, by a copy engine."""
    size, rounds = (64, 4) if machine.dry else (8192, 40)
    product = jax.jit(lambda a: a @ a).lower(jax.ShapeDtypeStruct((size, size), jnp.bfloat16)).compile()
    left = (jax.random.normal(jax.random.key(0), (size, size)) * 0.02).astype(jnp.bfloat16)
    moved, host = jnp.ones((size, size), jnp.float32), _pinned_host()

    def timed(*, multiply: bool, copy: bool) -> float:
        begin, out, copies = time.perf_counter(), None, []
        for number in range(rounds):
            if copy and number % 4 == 0:  # a copy takes about as long as four products
                copies.append(jax.device_put(moved, host))
            if multiply:
                out = product(left)
        jax.block_until_ready((out, copies))
        return (time.perf_counter() - begin) / rounds * 1e6

    def median(*, multiply: bool, copy: bool) -> float:
        return statistics.median(timed(multiply=multiply, copy=copy) for _ in range(4))

    alone, copied, both = (median(multiply=m, copy=c) for m, c in ((True, False), (False, True), (True, True)))
    from hlorewrite.cost.kernels.rates import timeline_constants
    slowdown = 1 + float(timeline_constants()["overlap_slowdown"])
    yield DayRow("contention", "product alone", alone)
    yield DayRow("contention", "quarter of a copy alone", copied)
    yield DayRow("contention", "product with the copy", both, max(alone * slowdown, copied))


def _pinned_host() -> Any:
    """Where a copy to the host goes without stopping the device."""
    device = jax.devices()[0]
    kinds = {memory.kind for memory in device.addressable_memories()}
    return jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host" if "pinned_host" in kinds else None)


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
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlorewrite.cost import topology
    from hlorewrite.timeline import simulate
    if jax.device_count() != MOCKED_DEVICES:
        raise SystemExit(f"{jax.device_count()} devices, not {MOCKED_DEVICES}")
    step = gpu_steps.steps(dry=False)[0]
    mesh = Mesh(jax.devices(), ("data",))
    params, batch = step.shapes
    whole, split = (NamedSharding(mesh, PartitionSpec(*part)) for part in ((), ("data",)))
    wide = jax.ShapeDtypeStruct((batch.shape[0] * MOCKED_DEVICES, *batch.shape[1:]), batch.dtype)
    jitted = jax.jit(step.function, in_shardings=(whole, split), out_shardings=whole, donate_argnums=0)
    compiled = jitted.lower(params, wide).compile()
    made = jax.jit(lambda: jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), (params, wide)),
                   out_shardings=(whole, split))()
    seconds = measuring.call_seconds(compiled, list(made), (0,))
    kind = (measuring.described_cluster() or "").partition(":")[0]
    predicted = simulate(compiled.as_text() or "", topology(f"{kind}:1x{MOCKED_DEVICES}"))
    print(json.dumps([seconds * 1e6, predicted.step_s * 1e6]))
    return 0


PARTS: dict[str, Callable[[Machine], Iterator[DayRow]]] = {
    "memory": memory, "kernels": kernels, "steps": steps, "schedule": schedule, "contention": contention,
    "mocked": mocked}


# ---- predicting

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
