"""When ops of a block run, by the cost model, if nothing ever waits for communication.

Matrix products take their FLOP over the GPU's sustained rate, other ops that XLA does not fuse into their readers their
bytes over memory bandwidth; loops count as often as they turn, calls what their function takes. Ops that XLA fuses
(elementwise, shape) take no time of their own: the kernel that reads or makes their values is counted already.
"""

from __future__ import annotations

from collections import defaultdict

from hlorewrite.cost import Topology
from hlorewrite.cost.compute import compute_constants
from hlorewrite.ir.binding import ir, op_key, stablehlo
from hlorewrite.ir.types import element_count, tensor_bytes
from hlorewrite.ir.view import View, ancestors, symbol_name
from hlorewrite.spmd.executions import ASSUMED_TRIPS
from hlorewrite.spmd.loops import trip_count

_LEAVES = ("stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce", "stablehlo.reduce_window",
           "stablehlo.select_and_scatter", "stablehlo.gather", "stablehlo.scatter", "stablehlo.sort",
           "stablehlo.custom_call", "stablehlo.fft", "stablehlo.cholesky", "stablehlo.triangular_solve",
           "stablehlo.rng_bit_generator", "stablehlo.rng")
_CONTAINERS = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "func.call", "sdy.manual_computation")
KERNELS = frozenset((*_LEAVES, *_CONTAINERS))
"""Ops that are kernels of their own, or hold some."""

_PEAK_OF = {"f8": "f8", "i8": "i8", "ui8": "i8", "tf32": "tf32", "bf16": "bf16", "f16": "f16", "f32": "f32",
            "f64": "f64"}


class ComputeClock:
    """Seconds each kernel of a module takes on one device.

    Args:
      view: the module.
      topology: the cluster, for its GPU.

    Example:
      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse("func.func @f(%a: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {"
      ...   "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
      ...   "(tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>"
      ...   "return %0 : tensor<4096x4096xf32> }"))
      >>> clock = ComputeClock(view, topology("h200"))
      >>> 1e-4 < clock.seconds(view.ops("stablehlo.dot_general")[0]) < 1e-2
      True
    """

    def __init__(self, view: View, topology: Topology) -> None:
        self.view = view
        self._memory = topology.memory_bytes_per_s * float(compute_constants()["memory_efficiency"])
        share = compute_constants()["matmul_efficiency"]
        self._share = float(share.get(topology.architecture, min(share.values())))
        self._peak = dict(topology.peak_flops)
        self._inside: dict[int, float] = defaultdict(float)
        self._functions: dict[str, float] = {}
        self._by_function: dict[str, list[ir.Operation]] = defaultdict(list)
        self._blocks: dict[ir.Block, list[ir.Operation]] = defaultdict(list)
        self._trips: dict[int, float] = {}
        self._fill()

    @property
    def memory_bytes_per_s(self) -> float:
        """Sustained memory bandwidth of one device."""
        return self._memory

    def kernels(self, block: ir.Block) -> list[ir.Operation]:
        """The kernels that stand in a block itself, in no particular order."""
        return self._blocks.get(block, [])

    def seconds(self, op: ir.Operation) -> float:
        """Seconds of one run of a kernel, with all it holds."""
        if op.name == "func.call":
            return self._function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        if op.name in _CONTAINERS:
            return self._inside[op_key(op)]
        return self._leaf(op)

    def function_seconds(self, name: str) -> float:
        """Seconds of one run of a function, by its name."""
        return self._function(name)

    # ---- filling

    def _fill(self) -> None:
        for op in self.view.ops(*_LEAVES, *_CONTAINERS):
            self._blocks[op.block].append(op)
            function = next((outer for outer in ancestors(op) if outer.name == "func.func"), None)
            if function is not None:
                self._by_function[symbol_name(function)].append(op)
        for name in list(self._by_function):
            self._function(name)

    def _function(self, name: str) -> float:
        """Seconds of a function; adds the time of what it holds to the loops and branches around it."""
        if name in self._functions:
            return self._functions[name]
        self._functions[name] = 0.0  # a recursive call counts nothing
        total = 0.0
        for op in self._by_function.get(name, ()):
            if op.name in _CONTAINERS and op.name != "func.call":
                continue
            total += self._spread(op, self.seconds(op))
        self._functions[name] = total
        return total

    def _spread(self, op: ir.Operation, seconds: float) -> float:
        for outer in ancestors(op):
            if outer.name == "func.func":
                break
            if outer.name in _CONTAINERS:
                seconds *= self._times(outer)
                self._inside[op_key(outer)] += seconds
        return seconds

    def _times(self, container: ir.Operation) -> float:
        key = op_key(container)
        if key not in self._trips:
            if container.name == "stablehlo.while":
                count = trip_count(container)
                self._trips[key] = float(ASSUMED_TRIPS if count is None else count)
            else:
                branches = len(container.regions) if container.name in ("stablehlo.case", "stablehlo.if") else 1
                self._trips[key] = 1.0 / max(branches, 1)
        return self._trips[key]

    # ---- one kernel

    def _leaf(self, op: ir.Operation) -> float:
        moved = sum(tensor_bytes(v.type) for v in op.operands) + sum(tensor_bytes(v.type) for v in op.results)
        return max(moved / self._memory, self._flops(op) / (self._rate(op) * self._share))

    def _rate(self, op: ir.Operation) -> float:
        type_ = op.operands[0].type if len(op.operands) else None
        name = str(type_.element_type) if isinstance(type_, ir.RankedTensorType) else "f32"
        known = _PEAK_OF.get("f8" if name.startswith("f8") else name, "f32")
        known = "tf32" if known == "f32" and "tf32" in self._peak and _in_tf32(op) else known
        return float(self._peak.get(known) or self._peak.get("bf16") or max(self._peak.values()))

    def _flops(self, op: ir.Operation) -> float:
        if op.name == "stablehlo.dot_general":
            dims = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
            shape = ir.RankedTensorType(op.operands[0].type).shape
            contracted = 1
            for dim in dims.lhs_contracting_dimensions:
                contracted *= shape[dim]
            return 2.0 * element_count(op.results[0].type) * contracted
        if op.name == "stablehlo.convolution":
            numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
            kernel = ir.RankedTensorType(op.operands[1].type)
            outputs = kernel.shape[numbers.kernel_output_feature_dimension]
            return 2.0 * element_count(op.results[0].type) * element_count(kernel) / max(outputs, 1)
        return 0.0


def _in_tf32(op: ir.Operation) -> bool:
    """Whether XLA:GPU multiplies f32 in TF32: unless the precision is high or highest, or an algorithm is named
    (openxla/xla, docs of ``PrecisionConfig``; JAX, ``jax.default_matmul_precision``)."""
    if op.name not in ("stablehlo.dot_general", "stablehlo.convolution") or "algorithm" in op.attributes:
        return False
    return "precision_config" not in op.attributes or "HIGH" not in str(op.attributes["precision_config"])
