"""Seconds of the kernels of a scheduled module: the reader of HLO of :mod:`hlorewrite.cost.kernels`."""

import re
from collections.abc import Mapping

from hlorewrite.cost import Topology
from hlorewrite.cost.compute import timeline_constants
from hlorewrite.cost.kernels.rates import KernelRates
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText
from hlorewrite.hlo.shapes import shape_bytes
from hlorewrite.timeline.kernel_bytes import fusion_bytes, fusion_elements, instruction_bytes, instruction_elements
from hlorewrite.timeline.kernel_products import fusion_products, instruction_products, is_known_custom_call

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")
ASYNC_FUSION = "fusion-start"
"""A fusion that XLA may run concurrently with others; newer XLA emits copies of slices in this form."""


class KernelTimes:
    """Times of the kernels of one module on one GPU.

    Args:
      module: the module.
      topology: the cluster, for its GPU.
      measured: seconds of kernels by instruction name, or by a profiler's name for it, with underscores for dots; they
        override the model's.
    """

    def __init__(self, module: HloText, topology: Topology, measured: Mapping[str, float] | None = None) -> None:
        self._module, self._topology = module, topology
        self._measured = dict(measured or {})
        self._unused = set(self._measured)
        self._rates = KernelRates(topology)

    def seconds(self, computation: Computation, instruction: HloInstruction) -> float | None:
        """Seconds of one execution of a kernel.

        Args:
          computation: the computation that it is in.
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
                return self._rates.seconds(instruction_bytes(computation, instruction), ())
            return self._rates.seconds(fusion_bytes(fused), fusion_products(self._module, fused),
                                       fusion_elements(fused))
        if instruction.opcode == "custom-call" and not is_known_custom_call(instruction):
            return None
        return self._rates.seconds(instruction_bytes(computation, instruction),
                                   instruction_products(computation, instruction),
                                   instruction_elements(computation, instruction))

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
        return self._rates.launch_s + shape_bytes(shape) / rate
