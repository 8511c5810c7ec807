"""Seconds of a kernel of one GPU from the bytes it moves and the products it computes.

Every prediction of a kernel's time is made here: passes ask by way of :mod:`hlorewrite.cost.kernels.clock`, simulated
schedules by way of :mod:`hlorewrite.timeline.kernel_times`.
"""

from collections.abc import Iterable

from hlorewrite.cost import Topology
from hlorewrite.cost.compute import compute_constants, timeline_constants
from hlorewrite.cost.kernels.work import Product

_WIDER = (("f8", ("f8", "bf16", "f16", "f32")), ("i8", ("i8", "f8", "bf16", "f32")), ("bf16", ("bf16", "f16", "f32")),
          ("f16", ("f16", "bf16", "f32")), ("tf32", ("tf32", "f32")), ("f64", ("f64", "f32")))
_EIGHT_BITS = {"s8": "i8", "u8": "i8", "s4": "i8", "u4": "i8", "ui8": "i8", "i4": "i8", "ui4": "i8", "f4e2m1fn": "f8",
               "f4E2M1FN": "f8"}


class KernelRates:
    """What one GPU sustains.

    Args:
      topology: the cluster, for its GPU.

    Attributes:
      memory_bytes_per_s: sustained memory bandwidth.
      launch_s: what each kernel takes on top of its work.

    Example:
      >>> from hlorewrite.cost import topology
      >>> rates = KernelRates(topology("h200"))
      >>> rates.seconds(4e9, ()) > 9e-4, rates.seconds(0, ()) == rates.launch_s
      (True, True)
    """

    def __init__(self, topology: Topology) -> None:
        constants = compute_constants()
        share = constants["matmul_efficiency"]
        self._share = float(share.get(topology.architecture, min(share.values())))
        self._peaks = dict(topology.peak_flops)
        self.memory_bytes_per_s = topology.memory_bytes_per_s * float(constants["memory_efficiency"])
        self.launch_s = float(timeline_constants()["kernel_launch_s"])

    def seconds(self, moved: float, products: Iterable[Product]) -> float:
        """Seconds of one kernel: a launch, and its bytes or its products, whichever takes longer.

        Args:
          moved: bytes it reads and writes.
          products: what it multiplies.
        """
        computing = sum(each.flops / (self.peak(each.dtype) * self._share) for each in products)
        return self.launch_s + max(moved / self.memory_bytes_per_s, computing)

    def peak(self, dtype: str) -> float:
        """FLOP/s of an element type, or of the one it is widened to where the GPU has no rate for it."""
        name = _EIGHT_BITS.get(dtype, "f8" if dtype.startswith("f8") else dtype)
        known = next((others for kind, others in _WIDER if kind == name), ("f32",))
        return float(next((self._peaks[other] for other in known if other in self._peaks), max(self._peaks.values())))
