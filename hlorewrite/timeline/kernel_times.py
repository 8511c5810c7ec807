"""Seconds of kernels: their bytes over memory bandwidth or their FLOP over the sustained rate, whichever is longer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlorewrite.cost import Topology
from hlorewrite.cost.compute import compute_constants, timeline_constants
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText
from hlorewrite.hlo.shapes import shape_bytes
from hlorewrite.timeline.kernel_bytes import fusion_bytes, instruction_bytes
from hlorewrite.timeline.kernel_flops import Work, fusion_flops, instruction_flops, is_known_custom_call

_RATES = (("f8", ("f8", "bf16", "f16", "f32")), ("i8", ("i8", "f8", "bf16", "f32")), ("bf16", ("bf16", "f16", "f32")),
          ("f16", ("f16", "bf16", "f32")), ("tf32", ("tf32", "f32")), ("f64", ("f64", "f32")))
_EIGHT_BITS = {"s8": "i8", "u8": "i8", "s4": "i8", "u4": "i8", "f4e2m1fn": "f8"}
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")
ASYNC_FUSION = "fusion-start"
"""A fusion that XLA may run at the same time as others; newer XLA writes copies of slices so."""


class KernelTimes:
    """Times of the kernels of one module on one GPU.

    Args:
      module: the module.
      topology: the cluster, for its GPU.
      measured: seconds of kernels by instruction name, or by the name a profiler shows, in which a point is an
        underscore; they take the place of the model's.
    """

    def __init__(self, module: HloText, topology: Topology, measured: Mapping[str, float] | None = None) -> None:
        self._module, self._topology = module, topology
        self._measured = dict(measured or {})
        self._unused = set(self._measured)
        constants = compute_constants()
        share = constants["matmul_efficiency"]
        self._share = float(share.get(topology.architecture, min(share.values())))
        self._memory = topology.memory_bytes_per_s * float(constants["memory_efficiency"])
        self._launch = float(timeline_constants()["kernel_launch_s"])

    def seconds(self, computation: Computation, instruction: HloInstruction) -> float | None:
        """Seconds of one execution of a kernel.

        Args:
          computation: what it stands in.
          instruction: the kernel.

        Returns:
          Seconds; None for a custom call whose work is not known.
        """
        measured = self.measured(instruction.name)
        if measured is not None:
            return measured
        if instruction.opcode in ("fusion", ASYNC_FUSION):
            fused = self._module.computations.get(next(iter(instruction.called("calls")), ""))
            if fused is None:
                return self._time(instruction_bytes(computation, instruction), {})
            return self._time(fusion_bytes(fused), fusion_flops(self._module, fused))
        if instruction.opcode == "custom-call" and not is_known_custom_call(instruction):
            return None
        return self._time(instruction_bytes(computation, instruction), instruction_flops(computation, instruction))

    def measured(self, name: str) -> float | None:
        """The measured time of an instruction; None when there is none."""
        if not self._measured:
            return None
        key = name if name in self._measured else _NOT_A_NAME.sub("_", name)
        self._unused.discard(key)
        return self._measured.get(key)

    @property
    def unused(self) -> tuple[str, ...]:
        """Measured names that no instruction asked for, sorted."""
        return tuple(sorted(self._unused))

    def host_copy(self, shape: str) -> float:
        """Seconds of a copy between host and device."""
        constants = timeline_constants()
        rates = constants["host_bytes_per_s"]
        rate = float(rates.get(self._topology.architecture, min(rates.values()))) * float(constants["host_efficiency"])
        return self._launch + shape_bytes(shape) / rate

    def _time(self, moved: int, work: Work) -> float:
        computing = sum(flops / (self._peak(dtype) * self._share) for dtype, flops in work.items())
        return self._launch + max(moved / self._memory, computing)

    def _peak(self, dtype: str) -> float:
        """FLOP/s of a type, or of the one it is widened to where the GPU has no rate for it."""
        peaks = self._topology.peak_flops
        name = _EIGHT_BITS.get(dtype, "f8" if dtype.startswith("f8") else dtype)
        known = next((others for kind, others in _RATES if kind == name), ("f32",))
        return float(next((peaks[other] for other in known if other in peaks), max(peaks.values())))
