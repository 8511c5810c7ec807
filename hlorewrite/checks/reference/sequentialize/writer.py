"""The writer that handlers of ops use: ops of the new module, masks of active processes, divergence."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hlorewrite.checks.reference.interpreter import RUNNABLE
from hlorewrite.checks.reference.sequentialize.grid import Grid
from hlorewrite.ir import Module, View, ir
from hlorewrite.util.tolerances import replica_tolerance

Values = tuple[ir.Value, ...]
"""One value for each process of a grid."""
Environment = dict[ir.Value, Values]
"""Maps each value of the original program to the new one."""


@dataclass(frozen=True)
class World:
    """The processes that run a region, and which of them are active.

    Attributes:
      grid: the processes.
      masks: an ``i1`` for each process; None when all are active.
    """

    grid: Grid
    masks: Values | None = None


class LockstepWriter(ABC):
    """Writes single ops for all processes; ``Lockstep`` adds the ops of the original program.

    Args:
      source: the SPMD module; it is not changed.
      target: the body block of the new module, for functions that are copied whole.
    """

    def __init__(self, source: Module, target: ir.Block) -> None:
        self.view = View(source)
        self.functions = self.view.functions
        self.target = target
        self.block = target
        self.diverged: list[ir.Value] = []   # of the region that is being written
        self.replicas_differ: list[ir.Value] = []
        self.manual_axes: tuple[str, ...] = ()  # of the manual computations around what is written
        self.depth = 0                       # of regions of the new module
        self.captured: Environment = {}      # what the reducer that is being written reads from outside
        self._plain: dict[str, bool] = {}
        self._copied: set[str] = set()
        self._calling: list[str] = []

    # ---- writing ops

    def emit(self, name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type],
             attributes: Mapping[str, ir.Attribute] | None = None, regions: int = 0) -> ir.Operation:
        """Appends an op to the block that is being written."""
        return ir.Operation.create(name, results=list(results), operands=list(operands),
                                   attributes=dict(attributes or {}), regions=regions,
                                   ip=ir.InsertionPoint(self.block))

    def value(self, name: str, operands: Sequence[ir.Value], result: ir.Type, **attributes: str | ir.Attribute
              ) -> ir.Value:
        """Appends an op with one result; attributes may be given as MLIR text."""
        parsed = {key: ir.Attribute.parse(a) if isinstance(a, str) else a for key, a in attributes.items()}
        return self.emit(name, operands, [result], parsed).results[0]

    def constant(self, text: str, type_: ir.Type) -> ir.Value:
        """A splat constant whose element is ``text`` (for complex types, its real part)."""
        tensor = ir.RankedTensorType(type_)
        if isinstance(tensor.element_type, ir.ComplexType):  # MLIR's Python face cannot hold complex constants
            part = ir.RankedTensorType.get(tensor.shape, tensor.element_type.element_type)
            return self.value("stablehlo.complex", [self.constant(text, part), self.constant("0.0", part)], type_)
        return self.value("stablehlo.constant", [], type_, value=f"dense<{text}> : {type_}")

    def true_or_false(self, value: bool) -> ir.Value:
        """A scalar truth value."""
        return self.constant(str(value).lower(), ir.Type.parse("tensor<i1>"))

    def any_of(self, values: Iterable[ir.Value]) -> ir.Value:
        """Whether any of some scalar truth values is true."""
        distinct = list(dict.fromkeys(values))
        if not distinct:
            return self.true_or_false(False)
        total = distinct[0]
        for value in distinct[1:]:
            total = self.value("stablehlo.or", [total, value], total.type)
        return total

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether two scalar truth values are both true."""
        return a if a == b else self.value("stablehlo.and", [a, b], a.type)

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """Selects one of two values of the same type by a scalar truth value."""
        return yes if yes == no else self.value("stablehlo.select", [condition, yes, no], yes.type)

    @contextmanager
    def inside(self, block: ir.Block) -> Iterator[None]:
        """Writes into another block; divergence found there is collected separately."""
        saved = self.block, self.diverged
        self.block, self.diverged = block, []
        self.depth += 1
        try:
            yield
        finally:
            self.block, self.diverged = saved
            self.depth -= 1

    def note_difference(self, a: ir.Value, b: ir.Value) -> None:
        """Notes at run time where two values that should be replicas of one another differ beyond rounding.

        Only outside control flow: a difference inside a loop shows in the loop's results.
        """
        if self.depth:
            return
        tensor = ir.RankedTensorType(a.type)
        truth = ir.RankedTensorType.get(tensor.shape, ir.IntegerType.get_signless(1))
        comparison = "#stablehlo<comparison_direction {}>"
        if not isinstance(tensor.element_type, ir.FloatType):
            self.replicas_differ.append(self.value("stablehlo.compare", [a, b], truth,
                                                   comparison_direction=comparison.format("NE")))
            return
        type_ = a.type
        distance = self.value("stablehlo.abs", [self.value("stablehlo.subtract", [a, b], type_)], type_)
        size = self.value("stablehlo.maximum", [self.value("stablehlo.abs", [a], type_),
                                                self.value("stablehlo.abs", [b], type_)], type_)
        relative = f"{replica_tolerance(tensor.element_type.width):.8e}"
        allowed = self.value("stablehlo.multiply", [size, self.constant(relative, type_)], type_)
        self.replicas_differ.append(self.value("stablehlo.compare", [distance, allowed], truth,
                                               comparison_direction=comparison.format("GT")))

    # ---- reading the original

    def is_plain(self, op: ir.Operation) -> bool:
        """Whether the interpreter can run an op, and all it contains and calls, unchanged on each device."""
        if op.name == "func.call":
            return self._plain_function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        if op.name not in RUNNABLE:
            return False
        return all(self.is_plain(inner.operation) for region in op.regions for block in region.blocks
                   for inner in block.operations)

    def _plain_function(self, name: str) -> bool:
        if name not in self._plain:
            self._plain[name] = False  # a recursive function is not plain
            function = self.functions.get(name)
            self._plain[name] = function is not None and all(
                self.is_plain(op.operation) for block in function.regions[0].blocks for op in block.operations)
        return self._plain[name]

    # ---- regions

    @abstractmethod
    def run_block(self, block: ir.Block, environment: Environment, world: World) -> list[Values]:
        """Writes the ops of a block for all processes; returns the operands of its terminator."""

    def within(self, world: World, masks: Values) -> World:
        """The same processes, with fewer of them active."""
        if world.masks is not None:
            masks = tuple(self.both(a, b) for a, b in zip(world.masks, masks, strict=True))
        return replace(world, masks=masks)


def is_shared(values: Values) -> bool:
    """Whether all processes hold the same value."""
    return all(value == values[0] for value in values[1:])
