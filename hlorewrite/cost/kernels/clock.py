"""Times the kernels of a module before it is compiled: the StableHLO reader of :mod:`hlorewrite.cost.kernels`.

Loops count once for each iteration, and calls take the time of their function. A function of nothing but ops that fuse
is read as part of the block that calls it, since XLA inlines it.
"""

import math
from collections.abc import Mapping, Sequence

from hlorewrite.analysis.block_frequency import times_of_block
from hlorewrite.cost import Topology
from hlorewrite.cost.kernels.fusion import FREE, HELD, KernelGraph, KernelOp, kernel_seconds
from hlorewrite.cost.kernels.rates import KernelRates
from hlorewrite.cost.kernels.work import REDUCES, SCATTER, WHOLE, Product, convolution_of, kind_of_op, product_of
from hlorewrite.ir import BARRIER, COLLECTIVES, element_count, ir, op_key, tensor_bytes
from hlorewrite.ir.view import View, callee_name, nested_ops, terminator
from hlorewrite.ops.attributes import convolution_numbers, dot_algorithm, dot_dims, ints, is_precise
from hlorewrite.ops.table import TERMINATORS, OpClass, ops_of

CONTAINERS = ops_of(OpClass.CONTROL)
"""Ops that contain kernels."""
KERNELS = frozenset((*CONTAINERS, *(f"stablehlo.{kind.replace('-', '_')}" for kind in (
    *WHOLE - {"dot", "fusion", "call"}, "dot_general", *REDUCES, SCATTER))))
"""Ops that are separate kernels or contain some, whatever reads their results."""
_FREE_CALLS = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "PinToDevice",
                         "annotate_device_placement", "LayoutConstraint", "xla.sdy.FuncResultSharding"))
_ALIASED = ("tf.aliasing_output", "jax.buffer_donor")
_MOST_INLINED = 256
"""Ops of a function that is read as part of the block that calls it."""
_SMALL_CONSTANT = 1024


class KernelClock:
    """Seconds of the kernels of a module on one device, if none waits for communication.

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
      >>> clock = KernelClock(view, topology("h200"))
      >>> 1e-4 < clock.seconds(view.ops("stablehlo.dot_general")[0]) < 1e-2
      True
    """

    def __init__(self, view: View, topology: Topology) -> None:
        self.view, self.rates = view, KernelRates(topology)
        self._blocks: dict[ir.Block, dict[int, tuple[ir.Operation, float]]] = {}
        self._containers: dict[int, float] = {}
        self._functions: dict[str, float] = {}
        self._fuses: dict[str, bool] = {}
        self._sizes: dict[ir.Type, tuple[int, int]] = {}

    @property
    def memory_bytes_per_s(self) -> float:
        """Sustained memory bandwidth of one device."""
        return self.rates.memory_bytes_per_s

    def kernels(self, block: ir.Block) -> list[ir.Operation]:
        """The ops directly in a block that end kernels or contain some, in program order."""
        return [op for op, seconds in self._of_block(block).values() if seconds]

    def seconds(self, op: ir.Operation) -> float:
        """Seconds of one run of the kernel that an op ends, with all that it contains; 0 if it ends none."""
        found = self._of_block(op.block).get(op_key(op))
        return found[1] if found is not None else self._alone(op)

    def block_seconds(self, block: ir.Block) -> float:
        """Seconds of one run of a block."""
        return sum(seconds for _, seconds in self._of_block(block).values())

    def function_seconds(self, name: str) -> float:
        """Seconds of one run of a function, by its name."""
        if name not in self._functions:
            self._functions[name] = 0.0  # a recursive call takes no time
            function = self.view.functions.get(name)
            blocks = function.regions[0].blocks if function is not None else ()
            self._functions[name] = sum(self.block_seconds(block) for block in blocks)
        return self._functions[name]

    # ---- blocks

    def _of_block(self, block: ir.Block) -> Mapping[int, tuple[ir.Operation, float]]:
        """Seconds of each op of a block that takes time, by its key."""
        if block not in self._blocks:
            self._blocks[block] = {}
            graph = _BlockReader(self, block)
            seconds: dict[int, tuple[ir.Operation, float]] = {}
            for op, taken in zip(graph.owners, kernel_seconds(graph.graph, self.rates), strict=True):
                if op.name in CONTAINERS and op_key(op) not in graph.read_through:
                    taken = self._container(op)
                key = op_key(op)
                seconds[key] = (op, taken + (seconds[key][1] if key in seconds else 0.0))
            self._blocks[block] = seconds
        return self._blocks[block]

    def _alone(self, op: ir.Operation) -> float:
        """Seconds of an op that was inserted after its block was read."""
        if op.name in CONTAINERS:
            return self._container(op)
        if op.name in COLLECTIVES or op.name in TERMINATORS:
            return 0.0
        graph = KernelGraph()
        reads = tuple(graph.value(*self.size(value.type)) for value in op.operands)
        makes = tuple(graph.value(*self.size(value.type)) for value in op.results)
        graph.add(kernel_op(op, reads, makes))
        graph.read_outside |= set(makes)
        return kernel_seconds(graph, self.rates)[0]

    def _container(self, op: ir.Operation) -> float:
        if op.name == "func.call":
            return self.function_seconds(callee_name(op))
        key = op_key(op)
        if key not in self._containers:
            total = 0.0
            for region in list(op.regions)[1:] if op.name == "stablehlo.while" else op.regions:
                for block in region.blocks:
                    total += times_of_block(block)[0] * self.block_seconds(block)
            self._containers[key] = total
        return self._containers[key]

    # ---- for readers of blocks

    def size(self, type_: ir.Type) -> tuple[int, int]:
        """Elements and bytes of a type."""
        found = self._sizes.get(type_)
        if found is None:
            found = self._sizes[type_] = (element_count(type_), tensor_bytes(type_))
        return found

    def fuses(self, name: str) -> bool:
        """Whether a function contains nothing but ops that fuse with its caller."""
        if name not in self._fuses:
            self._fuses[name] = False  # what calls itself
            function = self.view.functions.get(name)
            inner = nested_ops(function)[1:] if function is not None else []
            self._fuses[name] = 0 < len(inner) <= _MOST_INLINED and all(self._fits(op) for op in inner)
        return self._fuses[name]

    def _fits(self, op: ir.Operation) -> bool:
        if op.name == "func.call":
            return self.fuses(callee_name(op))
        return not (op.name in CONTAINERS or op.name in COLLECTIVES or kind_of_op(op.name) in WHOLE)


class _BlockReader:
    """The graph of a block.

    Args:
      clock: the clock of the module.
      block: the block.

    Attributes:
      graph: the graph.
      owners: for each op of the graph, the op of the block that it belongs to: itself, or a call.
      read_through: keys of the calls that are read as part of the block.
    """

    def __init__(self, clock: KernelClock, block: ir.Block) -> None:
        self.clock, self.graph = clock, KernelGraph()
        self.owners: list[ir.Operation] = []
        self.read_through: set[int] = set()
        values: dict[ir.Value, int] = {}
        self._arguments(block, values)
        for each in block.operations:
            self._op(each.operation, values, each.operation)

    def _arguments(self, block: ir.Block, values: dict[ir.Value, int]) -> None:
        function = block.owner.operation
        attributes = ir.ArrayAttr(function.attributes["arg_attrs"]) if function.name == "func.func" and (
            "arg_attrs" in function.attributes) else None
        public = function.name == "func.func" and "sym_visibility" not in function.attributes
        for argument in block.arguments:
            number = values[argument] = self.graph.value(*self.clock.size(argument.type))
            given = str(attributes[argument.arg_number]) if attributes is not None else ""
            if public and not any(name in given for name in _ALIASED):
                self.graph.kept.add(number)

    def _number(self, value: ir.Value, values: dict[ir.Value, int]) -> int:
        number = values.get(value)
        if number is None:
            number = values[value] = self.graph.value(*self.clock.size(value.type))
        return number

    def _op(self, op: ir.Operation, values: dict[ir.Value, int], owner: ir.Operation) -> None:
        name = op.name
        reads = tuple(self._number(value, values) for value in op.operands)
        if name in TERMINATORS:
            self.graph.read_outside |= set(reads)
            return
        if name == BARRIER:  # each result is the operand at its place, and no kernel fuses what is on both sides
            values.update(zip(op.results, reads, strict=True))
            self.graph.read_outside |= set(reads)
            return
        if name == "func.call" and self.clock.fuses(callee_name(op)):
            self._inlined(op, reads, values, owner)
            return
        if len(op.regions) and name in CONTAINERS:
            reads += tuple(number for number in self._captured(op, values) if number not in reads)
        makes = tuple(self._number(value, values) for value in op.results)
        self.graph.add(kernel_op(op, reads, makes))
        self.owners.append(owner)

    def _inlined(self, call: ir.Operation, reads: Sequence[int], values: dict[ir.Value, int],
                 owner: ir.Operation) -> None:
        """Adds the ops of a function in place of its call."""
        self.read_through.add(op_key(owner))
        block = self.clock.view.functions[callee_name(call)].regions[0].blocks[0]
        inner: dict[ir.Value, int] = dict(zip(block.arguments, reads, strict=True))
        for each in list(block.operations)[:-1]:
            self._op(each.operation, inner, owner)
        for result, value in zip(call.results, terminator(block).operands, strict=True):
            values[result] = self._number(value, inner)

    def _captured(self, op: ir.Operation, values: dict[ir.Value, int]) -> list[int]:
        """Values of this block that the regions of an op capture."""
        return list(dict.fromkeys(values[value] for inner in nested_ops(op)[1:] for value in inner.operands
                                  if value in values))


def kernel_op(op: ir.Operation, reads: tuple[int, ...], makes: tuple[int, ...]) -> KernelOp:
    """An op in the form that the fusion model reads.

    Args:
      op: an op of StableHLO.
      reads: numbers of the values it reads.
      makes: numbers of the values it makes.
    """
    name = op.name
    if name in CONTAINERS or name in COLLECTIVES:
        return KernelOp(HELD, reads, makes)
    kind = kind_of_op(name)
    if kind == "dot":
        return KernelOp(kind, reads, makes, (_dot(op),))
    if kind == "convolution":
        return KernelOp(kind, reads, makes, (_convolution(op),))
    if kind == "reduce":
        rank = ir.RankedTensorType(op.operands[0].type).rank
        return KernelOp(kind, reads, makes, rows=ints(op, "dimensions") == [rank - 1])
    if kind == "constant" and element_count(op.results[0].type) > _SMALL_CONSTANT and (
            ir.DenseElementsAttr(op.attributes["value"]).is_splat):
        return KernelOp("broadcast", (), makes)
    if kind == "custom-call" and ir.StringAttr(op.attributes["call_target_name"]).value in _FREE_CALLS:
        return KernelOp("reshape", reads, makes)
    if not name.startswith("stablehlo.") and kind not in FREE:
        return KernelOp("reshape" if name.startswith("sdy.") else kind, reads, makes)
    return KernelOp(kind, reads, makes)


def _dot(op: ir.Operation) -> Product:
    operand = ir.RankedTensorType(op.operands[0].type)
    contracted = math.prod(operand.shape[left] for left, _ in dot_dims(op).summed)
    return product_of(str(operand.element_type), element_count(op.results[0].type), contracted,
                      precise=is_precise(op), algorithm=dot_algorithm(op))


def _convolution(op: ir.Operation) -> Product:
    numbers = convolution_numbers(op)
    kernel = ir.RankedTensorType(op.operands[1].type)
    return convolution_of(str(kernel.element_type), element_count(op.results[0].type), element_count(kernel),
                          kernel.shape[numbers.kernel_output_feature_dimension], precise=is_precise(op))
