"""Seconds of a kernel of one GPU from the bytes it moves and the products it computes.

Every prediction of a kernel's time is made here. Passes use it through :mod:`hlorewrite.cost.kernels.clock`, simulated
schedules through :mod:`hlorewrite.timeline.kernel_times`, and estimates of whole iterations through
:mod:`hlorewrite.cost.training.compute_time`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.compute import compute_constants, timeline_constants
from hlorewrite.cost.kernels.stacks import StackProfile, by_generation, stack
from hlorewrite.cost.kernels.work import NOTHING_WRITTEN, Product, WrittenElements

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

_WIDER = (("f4", ("f4", "f8", "bf16", "f16", "f32")), ("f8", ("f8", "bf16", "f16", "f32")),
          ("i8", ("i8", "f8", "bf16", "f32")), ("bf16", ("bf16", "f16", "f32")),
          ("f16", ("f16", "bf16", "f32")), ("tf32", ("tf32", "f32")), ("f64", ("f64", "f32")))
_EIGHT_BITS = {"s8": "i8", "u8": "i8", "s4": "i8", "u4": "i8", "ui8": "i8", "i4": "i8", "ui4": "i8", "f4e2m1fn": "f8",
               "f4E2M1FN": "f8", "mxf8": "f8"}


class KernelRates:
    """The rates that one GPU sustains.

    Args:
      topology: the cluster, for its GPU.
      profile: the training stack's profile; None is XLA's.

    Attributes:
      memory_bytes_per_s: sustained memory bandwidth.
      launch_s: seconds that each kernel takes on top of its work.
      elements_per_s: elements that a kernel writes per second, however narrow they are.

    Example:
      >>> from hlorewrite.cost import topology
      >>> rates = KernelRates(topology("h200"))
      >>> rates.seconds(4e9, ()) > 9e-4, rates.seconds(0, ()) == rates.launch_s
      (True, True)
    """

    def __init__(self, topology: Topology, profile: StackProfile | None = None) -> None:
        constants = compute_constants()
        self.stack = stack("xla") if profile is None else profile
        self.generation = topology.architecture
        self._share = by_generation(constants["matmul_efficiency"], topology.architecture)
        self._board = next((factor for name, factor in self.stack.board.items() if topology.gpu.startswith(name)), 1.0)
        self._peaks = dict(topology.peak_flops)
        self.memory_bytes_per_s = topology.memory_bytes_per_s * float(constants["memory_efficiency"])
        self.launch_s = float(timeline_constants()["kernel_launch_s"])
        self.elements_per_s = by_generation(constants["elements_per_s"], topology.architecture)
        self._scattered_per_s = by_generation(constants["scattered_16_bit_elements_per_s"], topology.architecture)

    def seconds(self, moved: float, products: Sequence[Product], written: WrittenElements = NOTHING_WRITTEN) -> float:
        """Seconds of one kernel: a launch, and its bytes, its products or its elements, whichever takes longest.

        Args:
          moved: bytes it reads and writes.
          products: its matrix products.
          written: the elements of its results; a product writes them in tiles, at no extra cost.
        """
        computing = sum(each.flops / self._wide_rate(each.dtype) for each in products)
        if not products:
            computing = max(written.elements / self.elements_per_s, written.scattered_16_bit / self._scattered_per_s)
        return self.launch_s + max(moved / self.memory_bytes_per_s, computing)

    def product_rate(self, dtype: str, width: Array | float | None = None, *, experts: bool = False) -> Array | float:
        """FLOP/s of matrix products.

        Args:
          dtype: element type of the operands.
          width: the narrower of their inner sizes on one GPU; None is wide.
          experts: whether the products are an expert's.

        Example:
          >>> from hlorewrite.cost import topology
          >>> rates = KernelRates(topology("h100"), stack("megatron"))
          >>> rates.product_rate("bf16", 1024) < rates.product_rate("bf16", 8192) < rates.product_rate("bf16")
          True
        """
        rate = self._wide_rate(dtype, experts=experts)
        return rate if width is None else rate / (1 + self.stack.half_width.get(_class_of(dtype), 0.0) / width)

    def _wide_rate(self, dtype: str, *, experts: bool = False) -> float:
        """FLOP/s of wide matrix products."""
        kind = _class_of(dtype)
        table = self.stack.expert_share if experts and self.stack.expert_share else self.stack.product_share
        share = by_generation(table[kind], self.generation) if kind in table else self._share
        return self.peak(dtype) * self._board * share

    @property
    def attention_rate(self) -> float:
        """FLOP/s of fused attention's forward pass, counting the causal half."""
        table = self.stack.attention_share or stack("xla-flash").attention_share
        return self.peak("bf16") * self._board * by_generation(table, self.generation)

    def peak(self, dtype: str) -> float:
        """FLOP/s of an element type, or of the type it is widened to if the GPU has no rate for it."""
        name = _EIGHT_BITS.get(dtype, "f8" if dtype.startswith("f8") else dtype)
        known = next((others for kind, others in _WIDER if kind == name), ("f32",))
        return float(next((self._peaks[other] for other in known if other in self._peaks), max(self._peaks.values())))


def _class_of(dtype: str) -> str:
    """The class of element types whose share of the peak is known."""
    if dtype in ("f4", "i8", "mxf8") or dtype in _EIGHT_BITS:
        return "f4" if dtype == "f4" else "f8"
    return "f8" if dtype.startswith("f8") else "f16"
