"""The kernels that XLA:GPU makes of the ops of a block, and their seconds: a model of its fusion.

A kernel ends

* at a matrix product, convolution, sort, scatter and so on, which is a separate kernel;
* at a reduction, in whose kernel its operand is computed;
* at any other op whose result has to be in memory: a separate kernel, a collective, a loop or the end of the block
  reads it. Other kernels that read it compute it again.

A kernel reads only what its ops need: the rows of a gather, the elements of a slice, nothing of a buffer that is
updated in place. Three fusions of XLA save more than that:

* Normalisations (openxla/xla, ``softmax_rewriter_triton``): an op that reads rows, and a reduction of the same rows
  that is broadcast to them again, are one kernel.
* Multi-output fusion: independent kernels that read the same value read it once.
* Products compute transposes, broadcasts and conversions of their operands themselves.
"""

import heapq
from dataclasses import dataclass, field

from hlorewrite.cost.kernels import work
from hlorewrite.cost.kernels.rates import KernelRates
from hlorewrite.cost.kernels.work import OpSizes, Product, WrittenElements

FREE = frozenset(("reshape", "bitcast-convert", "optimization-barrier", "tuple", "get-tuple-element"))
"""Ops that change nothing in memory: readers of their result read their operand."""
GIVEN = frozenset(("constant", "after-all", "create-token", "partition-id", "replica-id"))
"""Ops that take no time, and whose results every kernel can use."""
HELD = "held"
"""The kind of ops that are not kernels of this block: collectives, loops, branches, calls."""
_MOST_FUSED = 1000
"""The most ops of one kernel."""
_MOST_REDUCTIONS = 8
"""The most reductions of one normalisation."""
_INTO_PRODUCTS = frozenset(("transpose", "broadcast", "convert"))


@dataclass(frozen=True, slots=True)
class KernelOp:
    """One op of a block.

    Attributes:
      kind: HLO's opcode, or ``HELD``.
      reads: numbers of the values it reads.
      makes: numbers of the values it makes.
      products: its matrix products.
      rows: whether it is a reduction over the last dimension alone.
    """

    kind: str
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    products: tuple[Product, ...] = ()
    rows: bool = False


@dataclass
class KernelGraph:
    """The ops of a block and the values between them, by number.

    Attributes:
      ops: the ops, in program order.
      elements: the elements of each value.
      bytes: the bytes of each value.
      maker: the op that makes each value; -1 for arguments of the block.
      read_outside: values that are read outside of these ops: by the block's terminator or a region.
      kept: values that are still read after they are updated.
    """

    ops: list[KernelOp] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    maker: list[int] = field(default_factory=list)
    read_outside: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)

    def value(self, elements: int, size: int) -> int:
        """Adds a value; returns its number."""
        self.elements.append(elements)
        self.bytes.append(size)
        self.maker.append(-1)
        return len(self.maker) - 1

    def add(self, op: KernelOp) -> None:
        """Appends an op."""
        for value in op.makes:
            self.maker[value] = len(self.ops)
        self.ops.append(op)


def kernel_seconds(graph: KernelGraph, rates: KernelRates) -> list[float]:
    """Seconds of the kernel that each op ends; 0 if it ends none.

    Args:
      graph: the ops of a block.
      rates: the GPU.

    Example:
      >>> from hlorewrite.cost import topology
      >>> graph = KernelGraph()
      >>> x, y, z = (graph.value(1 << 20, 4 << 20) for _ in range(3))
      >>> graph.add(KernelOp("exponential", (x,), (y,)))
      >>> graph.add(KernelOp("negate", (y,), (z,)))
      >>> graph.read_outside.add(z)
      >>> inner, last = kernel_seconds(graph, KernelRates(topology("h200")))
      >>> inner, 2e-6 < last < 4e-6
      (0.0, True)
    """
    return _Kernels(graph, rates).seconds()


class _Kernels:
    """The kernels of one block."""

    def __init__(self, graph: KernelGraph, rates: KernelRates) -> None:
        self.graph, self.rates = graph, rates
        self.space = [max((graph.elements[value] for value in (*op.reads, *op.makes)), default=0)
                      if op.kind in work.REDUCES or op.kind == work.SCATTER else
                      max((graph.elements[value] for value in op.makes), default=0) for op in graph.ops]
        self.ends = self._ends()
        self.inner = self._normalisations()
        self.level = self._levels()
        self.shared: set[tuple[int, int, int]] = set()

    def seconds(self) -> list[float]:
        """Seconds by op."""
        return [self._kernel(number) if self.ends[number] and number not in self.inner else 0.0
                for number in range(len(self.graph.ops))]

    # ---- which ops end a kernel

    def _ends(self) -> list[bool]:
        """Whether each op ends a kernel."""
        graph = self.graph
        in_memory = [value in graph.read_outside for value in range(len(graph.maker))]
        into_product = [False] * len(graph.maker)
        ends = [False] * len(graph.ops)
        for number in range(len(graph.ops) - 1, -1, -1):
            op = graph.ops[number]
            kept = any(in_memory[value] for value in op.makes)
            fed = any(into_product[value] for value in op.makes)
            if op.kind in FREE:
                for value in op.reads:
                    in_memory[value] |= kept
                    into_product[value] |= fed
            elif op.kind in GIVEN:
                continue
            elif op.kind == HELD or op.kind in work.WHOLE or op.kind == work.SCATTER:
                ends[number] = op.kind != HELD
                for value in op.reads:
                    if op.kind in work.PRODUCTS:
                        into_product[value] = True
                    else:
                        in_memory[value] = True
            elif op.kind in work.REDUCES or kept or (fed and op.kind not in _INTO_PRODUCTS):
                ends[number] = True
            elif fed:  # computed in the product, which reads its operands
                for value in op.reads:
                    into_product[value] = True
        return ends

    def _normalisations(self) -> set[int]:
        """Row reductions that are merged into the kernel that reads both them and the rows."""
        graph, found = self.graph, set[int]()
        below: dict[int, frozenset[int]] = {}
        for number, op in enumerate(graph.ops):
            reductions: frozenset[int] = frozenset()
            for value in op.reads:
                maker = graph.maker[value]
                if maker >= 0:
                    reductions |= below.get(maker, frozenset())
            if op.kind in work.REDUCES:
                below[number] = frozenset((number,)) if op.rows else frozenset()
                if op.rows and reductions and all(self.space[each] == self.space[number] for each in reductions):
                    below[number] |= reductions
                continue
            if op.kind in work.WHOLE or op.kind in (HELD, work.SCATTER):
                continue
            if reductions and len(reductions) <= _MOST_REDUCTIONS:
                below[number] = reductions
            if self.ends[number]:
                found |= {each for each in reductions if self.space[each] == self.space[number]}
                below[number] = frozenset()
        return found

    def _levels(self) -> list[int]:
        """For each op, how many kernels that cannot be merged lie on the longest chain that ends at it."""
        levels: list[int] = []
        for number, op in enumerate(self.graph.ops):
            makers = map(self.graph.maker.__getitem__, op.reads)
            before = max((levels[maker] for maker in makers if maker >= 0), default=0)
            alone = op.kind == HELD or op.kind in work.WHOLE or op.kind == work.SCATTER or (
                op.kind in work.REDUCES and number not in self.inner)
            levels.append(before + alone)
        return levels

    # ---- bytes of a kernel

    def _kernel(self, number: int) -> float:
        op, graph = self.graph.ops[number], self.graph
        results = op.makes
        if op.kind in work.IN_PLACE:
            results = op.reads[1:2] if op.kind == work.UPDATE else op.reads[len(op.makes) + 1:]
        written = sum(graph.bytes[value] for value in results)
        copied = 2 * sum(graph.bytes[value] for value in op.reads[:len(op.makes)] if value in graph.kept) if (
            op.kind in work.IN_PLACE) else 0
        read, merged = self._read(number)
        elements = work.NOTHING_WRITTEN if merged else self._elements(op, results)
        return self.rates.seconds(read + written + copied, op.products, elements)

    def _elements(self, op: KernelOp, results: tuple[int, ...]) -> WrittenElements:
        """The elements that a kernel writes; none if it is not one of XLA's own."""
        if op.kind in work.WHOLE or not results:
            return work.NOTHING_WRITTEN
        largest = max(results, key=lambda value: self.graph.elements[value])
        elements = self.graph.elements[largest]
        scatters = op.kind == work.SCATTER
        return work.scattered(elements, self.graph.bytes[largest]) if scatters else WrittenElements(elements)

    def _read(self, root: int) -> tuple[float, bool]:
        """Bytes that a kernel reads through the ops computed in it, and whether it is merged into a kernel beside it.

        If it is merged, the threads of that kernel also write its elements.
        """
        graph, needed = self.graph, dict[int, float]()
        op = graph.ops[root]
        todo = [-root]
        inside = {root}
        while todo:  # Ends: an op is added once, and visited after all of its readers.
            number = -heapq.heappop(todo)
            for maker in self._ask(number, needed, in_place=number == root):
                if maker not in inside and len(inside) < _MOST_FUSED and self._inside(maker, op):
                    inside.add(maker)
                    heapq.heappush(todo, -maker)
        fused = op.kind not in work.WHOLE and op.kind != work.SCATTER
        level = self.level[root] - (op.kind in work.REDUCES and root not in self.inner)
        read, merged = 0.0, False
        for value, count in needed.items():
            maker = graph.maker[value]
            if maker >= 0 and (maker in inside or graph.ops[maker].kind in GIVEN):
                continue
            key = (level, self.space[root], value)
            if fused and key in self.shared:
                merged = True
                continue
            self.shared.add(key)
            read += count / max(graph.elements[value], 1) * graph.bytes[value]
        if fused:
            self.shared |= {(level, self.space[root], value) for value in op.makes}
        return read, merged

    def _made(self, number: int) -> int:
        return max((self.graph.elements[value] for value in self.graph.ops[number].makes), default=0)

    def _ask(self, number: int, needed: dict[int, float], *, in_place: bool) -> list[int]:
        """Adds the elements that an op needs of its operands for those needed of its results; returns the ops that make
        them."""
        graph, op = self.graph, self.graph.ops[number]
        count = self._made(number) if in_place else max(map(needed.__getitem__, filter(needed.__contains__, op.makes)))
        asked = self._asked(number, count, in_place=in_place)
        makers = []
        for value, elements in zip(op.reads, asked, strict=True):
            if elements > needed.get(value, -1.0):
                needed[value] = elements
            if graph.maker[value] >= 0:
                makers.append(graph.maker[value])
        return makers

    def _asked(self, number: int, count: float, *, in_place: bool) -> list[float]:
        """The elements that an op needs of each operand for some elements of its result."""
        graph, op = self.graph, self.graph.ops[number]
        sizes = list(map(graph.elements.__getitem__, op.reads))
        if work.element_by_element(op.kind):  # nearly all ops, and large blocks are asked millions of times
            return [count if count < size else size for size in sizes]
        place = work.update_place(op.kind, len(op.reads))
        written = sizes[place] if op.kind in work.IN_PLACE and place < len(sizes) else 0
        reader = OpSizes(op.kind, self._made(number), written)
        return [min(size, work.needed_elements(reader, place, count, size, in_place=in_place))
                for place, size in enumerate(sizes)]

    def _inside(self, maker: int, root: KernelOp) -> bool:
        """Whether an op is computed in the kernel of an op that reads it."""
        kind = self.graph.ops[maker].kind
        if kind in FREE:
            return True
        if root.kind in work.PRODUCTS:
            return kind in _INTO_PRODUCTS and not self.ends[maker]
        if kind in GIVEN or kind == HELD or root.kind in work.WHOLE or root.kind == work.SCATTER:
            return False
        return maker in self.inner or not self.ends[maker]
