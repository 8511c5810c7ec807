"""A step as a graph of nodes and numbered values, so that ``split-stages`` can place ops before it writes any."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hlorewrite.ir import element_count, ir, nested_ops, tensor_bytes, terminator
from hlorewrite.pipelines.mpmd.program import MOVES

SMALL = 1024
"""Integer tensors of at most this many elements, such as random keys, cost next to nothing to make again."""

_NEVER_AGAIN = frozenset(f"stablehlo.{name}" for name in (
    "custom_call", "dot_general", "convolution", "rng", "infeed", "outfeed", "send", "recv"))


@dataclass(eq=False)
class StepNode:
    """An op, or something that becomes one.

    Attributes:
      op: the op to copy; for a node without a counterpart in the step, None.
      operands: numbers of its operands, in order.
      captured: numbers of the values its regions read from outside.
      results: numbers of its results.
      make: what to write when there is no op: ``zero``, ``add``.
      place: the fragment or position that holds it; None while it floats.
    """

    op: ir.Operation | None
    operands: tuple[int, ...]
    captured: tuple[int, ...]
    results: tuple[int, ...]
    make: str = ""
    place: int | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        """All values it depends on."""
        return self.operands + self.captured

    @property
    def name(self) -> str:
        """The name of its op."""
        return self.op.name if self.op is not None else self.make


@dataclass
class Values:
    """The values of a step by number.

    Attributes:
      types: the type of each.
      specs: for each value, the mesh axes that each dimension is cut over; None if nothing is known.
      locations: where each was made.
      producer: the node that makes each; None for arguments and what a loop carries.
    """

    numbers: dict[ir.Value, int] = field(default_factory=dict)
    types: list[ir.Type] = field(default_factory=list)
    specs: list[tuple[tuple[str, ...], ...] | None] = field(default_factory=list)
    locations: list[ir.Location] = field(default_factory=list)
    producer: list[StepNode | None] = field(default_factory=list)
    same: dict[int, int] = field(default_factory=dict)

    def number(self, value: ir.Value) -> int:
        """The number of a value of the step."""
        if value not in self.numbers:
            self.numbers[value] = self.new(value.type, value.location)
        return self.find(self.numbers[value])

    def new(self, type_: ir.Type, location: ir.Location, spec: tuple[tuple[str, ...], ...] | None = None) -> int:
        """A further value."""
        self.types.append(type_)
        self.specs.append(spec)
        self.locations.append(location)
        self.producer.append(None)
        return len(self.types) - 1

    def find(self, number: int) -> int:
        """The value of a number, after equal ones were merged."""
        # Ends: values are joined at their ends (``unite``), so the chain has no circle.
        while number in self.same:
            number = self.same[number]
        return number

    def unite(self, number: int, with_: int) -> None:
        """Records that two values are the same."""
        target = self.find(with_)
        if self.find(number) != target:
            self.same[self.find(number)] = target

    def nodes_of(self, ops: Iterable[ir.Operation]) -> list[StepNode]:
        """Nodes of ops, in their order."""
        nodes = []
        for op in ops:
            node = StepNode(op, tuple(map(self.number, op.operands)), tuple(map(self.number, captured(op))),
                            tuple(map(self.number, op.results)))
            for result in node.results:
                self.producer[result] = node
            nodes.append(node)
        return nodes

    def makers(self, node: StepNode) -> list[StepNode]:
        """The nodes that make what a node reads."""
        producers = (self.producer[self.find(each)] for each in node.reads)
        return [made for made in producers if made is not None]

    def make(self, what: str, operands: Sequence[int], type_: ir.Type, like: int) -> StepNode:
        """A node without a counterpart in the step; its result has the sharding of an existing value."""
        result = self.new(type_, self.locations[like], self.specs[like])
        node = StepNode(None, tuple(operands), (), (result,), what)
        self.producer[result] = node
        return node

    def elements(self, number: int) -> int:
        """Elements of a value."""
        return element_count(self.types[number]) or 0

    def bytes(self, number: int) -> int:
        """Bytes of a value."""
        return tensor_bytes(self.types[number])

    def is_cheap(self, node: StepNode) -> bool:
        """Whether computing a node's results again where they are needed costs less than keeping or sending them."""
        if node.op is None:
            return node.make == "zero"
        if node.name in MOVES:
            return True
        if node.name in _NEVER_AGAIN:
            return False
        values = (*node.results, *node.reads) if len(node.op.regions) else node.results
        return all(self.is_small(value) for value in values)

    def is_small(self, number: int) -> bool:
        """A single number, or a few integers."""
        count = self.elements(number)
        return count <= 1 or (count <= SMALL and
                              isinstance(ir.RankedTensorType(self.types[number]).element_type, ir.IntegerType))


def captured(op: ir.Operation) -> list[ir.Value]:
    """The values from outside that the regions of an op read, each once, in order."""
    if len(op.regions) == 0:
        return []
    own: set[ir.Value] = set()
    read: dict[ir.Value, None] = {}
    for each in nested_ops(op):
        if each != op:
            own.update(each.results)
            read.update(dict.fromkeys(each.operands))
        for region in each.regions:
            for block in region.blocks:
                own.update(block.arguments)
    return [value for value in read if value not in own]


def ops_of(block: ir.Block) -> list[ir.Operation]:
    """The ops of a block without its terminator."""
    end = terminator(block)
    return [each.operation for each in block.operations if each.operation != end]


def closure(values: Values, wanted: Iterable[int], inside: Callable[[StepNode], bool]
            ) -> tuple[list[StepNode], list[int]]:
    """The nodes that some values need.

    Args:
      values: the values of the step.
      wanted: numbers of the values.
      inside: whether a node is to be made here; what other nodes make is read.

    Returns:
      (the nodes, each after those it reads; the numbers read from outside, each once, in order).
    """
    nodes: dict[int, StepNode] = {}
    inputs: dict[int, None] = {}
    stack: list[tuple[StepNode, bool]] = []

    def push(number: int) -> None:
        number = values.find(number)
        node = values.producer[number]
        if node is None or not inside(node):
            inputs[number] = None
        elif id(node) not in nodes:
            stack.append((node, False))

    for number in wanted:
        push(number)
        # Ends: a node reads only nodes before it, and is listed once.
        while stack:
            node, ready = stack.pop()
            if id(node) in nodes:
                continue
            if ready:
                nodes[id(node)] = node
                continue
            stack.append((node, True))
            for each in reversed(node.reads):
                push(each)
    return list(nodes.values()), list(inputs)
