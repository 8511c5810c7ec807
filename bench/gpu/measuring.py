"""Times of compiled programs on a device: by the clock around a call, and by its kernels in a profile of JAX."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from hlorewrite.audit.profile import ProfiledKernel, read_xplane
from hlorewrite.cost import topology
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.timeline.kernel_times import KernelTimes

PROFILED_CALLS = 3
PRODUCTS = ("gemm", "cutlass", "nvjet", "dot", "conv", "cudnn", "xmma", "implicit")
"""Parts of the names of kernels that multiply matrices or convolve."""


CLUSTERS = {"H100": "h100:1x1", "H200": "h200:1x1", "GB200": "gb200-nvl72:1x1", "B200": "b200:1x1", "A100": "a100:1x1"}


def described_cluster() -> str | None:
    """The topology of one GPU of this machine; None if its first device is described by none."""
    kind = jax.devices()[0].device_kind
    return next((name for part, name in CLUSTERS.items() if part in kind), None)


@dataclass(frozen=True)
class ProfiledInstruction:
    """What an instruction of a compiled program took in one call.

    Attributes:
      name: of the instruction; empty if the profile does not say.
      seconds: of all its kernels.
      runs: how often it ran.
      kernel: the name of its longest kernel.
    """

    name: str
    seconds: float
    runs: float
    kernel: str

    @property
    def kind(self) -> str:
        """Whether it multiplies, or moves memory."""
        name = self.kernel.lower().replace("convert", "")
        return "product" if any(part in name for part in PRODUCTS) else "memory"


def arguments_for(shapes: Any) -> list[Any]:
    """Random arguments: small normal numbers, and rows of the tallest array for integers.

    Equal indices would make a scatter wait for itself, and products of zeros take less power than those of data.

    Args:
      shapes: of the arguments, as a tree.
    """
    leaves = jax.tree.leaves(shapes)
    tallest = max((leaf.shape[0] for leaf in leaves if leaf.shape and jnp.issubdtype(leaf.dtype, jnp.floating)),
                  default=31)
    keys = iter(jax.random.split(jax.random.key(0), len(leaves)))

    def one(shape: jax.ShapeDtypeStruct) -> jax.Array:
        key = next(keys)
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return jax.random.randint(key, shape.shape, 0, tallest).astype(shape.dtype)
        return (jax.random.normal(key, shape.shape, jnp.float32) * 0.02).astype(shape.dtype)
    return list(jax.tree.map(one, shapes))


def call_seconds(compiled: Any, arguments: list[Any], donated: tuple[int, ...]) -> float:
    """The median time of calls that follow each other without a wait.

    Args:
      compiled: the program.
      arguments: of it; what is donated becomes the result of the last call.
      donated: places of the arguments that the program donates.
    """
    once = max(seconds_a_call(compiled, arguments, donated, 2), 1e-6)
    calls = max(1, min(20, int(0.2 / once)))
    return statistics.median(seconds_a_call(compiled, arguments, donated, calls) for _ in range(5))


@dataclass(frozen=True)
class ModeledInstruction:
    """What an instruction took in one call, beside the model of kernels.

    Attributes:
      name: of the instruction.
      kind: ``product``, ``memory``, or ``unknown`` where the model gives it no time.
      measured: seconds of all its runs.
      predicted: seconds of all its runs; 0 if the model gives it no time.
    """

    name: str
    kind: str
    measured: float
    predicted: float


def beside_the_model(found: list[ProfiledInstruction], hlo: str, cluster: str) -> list[ModeledInstruction]:
    """What a profile saw, beside what the timeline takes each instruction for.

    Args:
      found: by `profiled`.
      hlo: the scheduled module that ran.
      cluster: the topology of this machine.
    """
    module = parse_hlo(hlo)
    times = KernelTimes(module, topology(cluster))
    model = {instruction.name: (computation, instruction) for computation in module.computations.values()
             for instruction in computation.instructions.values()}
    rows = []
    for each in found:
        seconds = times.seconds(*model[each.name]) if each.name in model else None
        rows.append(ModeledInstruction(each.name, "unknown" if seconds is None else each.kind, each.seconds,
                                       (seconds or 0.0) * each.runs))
    return rows


def seconds_a_call(compiled: Any, arguments: list[Any], donated: tuple[int, ...], calls: int) -> float:
    """The mean time of some calls that follow each other without a wait. Other arguments as of `call_seconds`."""
    begin, results = time.perf_counter(), None
    for _ in range(calls):
        results = compiled(*arguments)
        taken = results if isinstance(results, tuple) else (results,)
        for place, result in zip(donated, taken, strict=False):
            arguments[place] = result
    jax.block_until_ready(results)
    return (time.perf_counter() - begin) / calls


def profiled(compiled: Any, arguments: list[Any], donated: tuple[int, ...]) -> list[ProfiledInstruction]:
    """What the instructions of a program take in one call, from a profile of a few.

    Args:
      compiled: the program.
      arguments: of it; what is donated becomes the result of the last call.
      donated: places of the arguments that the program donates.
    """
    seconds_a_call(compiled, arguments, donated, 1)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            seconds_a_call(compiled, arguments, donated, PROFILED_CALLS)
        file = next(Path(folder).rglob("*.xplane.pb"))
        kernels = read_xplane(file.read_bytes(), file.name)
    by_name = defaultdict[str, dict[str, list[ProfiledKernel]]](lambda: defaultdict(list))
    for kernel in kernels:
        by_name[kernel.op][kernel.name].append(kernel)
    return [_instruction(name, list(found.values())) for name, found in sorted(by_name.items())]


def _instruction(name: str, kernels: list[list[ProfiledKernel]]) -> ProfiledInstruction:
    """An instruction from its kernels, each with all its runs: a convolution has several."""
    longest = max(kernels, key=lambda runs: sum(run.seconds for run in runs))
    seconds = sum(run.seconds for runs in kernels for run in runs) / PROFILED_CALLS
    return ProfiledInstruction(name, seconds, len(longest) / PROFILED_CALLS, longest[0].name)
