"""N devices as one sequential program: their programs side by side, collectives as plain ops between them.

Each value of the SPMD program becomes N values, one a process; equal ones are one and the same SSA value, so what is
replicated is computed once. A collective is then ordinary data flow: an all-reduce adds the operands of its group, a
permute hands a value on. Control flow that holds collectives runs jointly:

* ``while``: iterates as long as any process does; a process that is done keeps its values by ``select``.
* ``case``/``if`` with one predicate for all: stays; with several: every branch is computed, results are selected.

A collective whose group is only partly active would hang on real devices; then the flag ``diverged`` comes out true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import remap
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.oracle.errors import CannotExecute
from hlorewrite.oracle.interpreter import RUNNABLE
from hlorewrite.oracle.lockstep.grid import Grid

Values = tuple[ir.Value, ...]
"""One value for each process of a grid."""
Environment = dict[ir.Value, Values]
"""What each value of the original program is in the new one."""

IDENTITIES = frozenset({"sdy.sharding_constraint", "sdy.propagation_barrier", "stablehlo.optimization_barrier",
                        "mhlo.copy"})
_SHARDING_CALLS = ("Sharding", "xla.sdy.FuncResultSharding", "annotate_device_placement")
_TERMINATORS = ("stablehlo.return", "func.return", "sdy.return")


@dataclass(frozen=True)
class World:
    """The processes that run a region, and which of them are active.

    Attributes:
      grid: the processes.
      masks: an ``i1`` for each process; None when all are active.
    """

    grid: Grid
    masks: Values | None = None


class Lockstep:
    """Writes functions of an SPMD module side by side into a new module.

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
        self.in_manual = False
        self.depth = 0                       # of regions of the new module
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

    def constant(self, text: str, kind: ir.Type) -> ir.Value:
        """A splat constant, ``text`` being its element, of complex types its real part."""
        tensor = ir.RankedTensorType(kind)
        if isinstance(tensor.element_type, ir.ComplexType):  # MLIR's Python face cannot hold complex constants
            part = ir.RankedTensorType.get(tensor.shape, tensor.element_type.element_type)
            return self.value("stablehlo.complex", [self.constant(text, part), self.constant("0.0", part)], kind)
        return self.value("stablehlo.constant", [], kind, value=f"dense<{text}> : {kind}")

    def true_or_false(self, value: bool) -> ir.Value:
        """A scalar truth value."""
        return self.constant(str(value).lower(), ir.Type.parse("tensor<i1>"))

    def any_of(self, values: Iterable[ir.Value]) -> ir.Value:
        """Whether one of some scalar truth values holds."""
        found = list(dict.fromkeys(values))
        if not found:
            return self.true_or_false(False)
        total = found[0]
        for value in found[1:]:
            total = self.value("stablehlo.or", [total, value], total.type)
        return total

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether two scalar truth values hold."""
        return a if a == b else self.value("stablehlo.and", [a, b], a.type)

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """One of two values of the same type, by a scalar truth value."""
        return yes if yes == no else self.value("stablehlo.select", [condition, yes, no], yes.type)

    @contextmanager
    def inside(self, block: ir.Block) -> Iterator[None]:
        """Writes into another block; divergence found there is collected apart."""
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

        Only outside of control flow: a difference inside a loop shows in what the loop computes.
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
        kind = a.type
        distance = self.value("stablehlo.abs", [self.value("stablehlo.subtract", [a, b], kind)], kind)
        size = self.value("stablehlo.maximum", [self.value("stablehlo.abs", [a], kind),
                                                self.value("stablehlo.abs", [b], kind)], kind)
        relative = "1.0e-5" if tensor.element_type.width >= 32 else "6.25e-2"
        allowed = self.value("stablehlo.multiply", [size, self.constant(relative, kind)], kind)
        self.replicas_differ.append(self.value("stablehlo.compare", [distance, allowed], truth,
                                               comparison_direction=comparison.format("GT")))

    # ---- reading the original

    def is_plain(self, op: ir.Operation) -> bool:
        """Whether the interpreter can run an op, and all it holds and calls, as it is on each device."""
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

    # ---- blocks

    def run_block(self, block: ir.Block, environment: Environment, world: World) -> list[Values]:
        """Writes the ops of a block for all processes; returns what its terminator hands on."""
        for op in block.operations:
            if op.operation.name in _TERMINATORS:
                return [environment[v] for v in op.operation.operands]
            self.run_op(op.operation, environment, world)
        raise CannotExecute("a block has no terminator", hint="check that the module verifies")

    def run_op(self, op: ir.Operation, environment: Environment, world: World) -> None:
        """Writes one op for all processes."""
        from hlorewrite.oracle.lockstep import chlo, collectives, control_flow, fourier, manual
        if self.is_plain(op):
            self._run_plain(op, environment, world.grid.size)
            return
        operands = [environment[v] for v in op.operands]
        if op.name in IDENTITIES or _is_sharding_call(op):
            results = operands
        elif op.name in collectives.HANDLERS:
            results = collectives.run(self, op, operands, world)
        elif op.name in control_flow.HANDLERS:
            results = control_flow.HANDLERS[op.name](self, op, operands, environment, world)
        elif op.name in ("func.call", "stablehlo.composite"):
            results = self._run_call(op, operands, world)
        elif op.name == "sdy.manual_computation":
            results = manual.run(self, op, operands, world)
        elif op.name in chlo.HANDLERS:
            made = {value: chlo.HANDLERS[op.name](self, value) for value in dict.fromkeys(operands[0])}
            results = [tuple(made[value] for value in operands[0])]
        elif op.name == "stablehlo.fft":
            made = {value: fourier.fft(self, op, value) for value in dict.fromkeys(operands[0])}
            results = [tuple(made[value] for value in operands[0])]
        else:
            shown = str(op.attributes["call_target_name"]) if op.name == "stablehlo.custom_call" else ""
            raise CannotExecute(f"the StableHLO interpreter cannot run {op.name}{' ' + shown if shown else ''}",
                                location=self.view.source(op), hint="use --check=none for this module")
        environment.update(zip(op.results, results, strict=True))

    def _run_plain(self, op: ir.Operation, environment: Environment, size: int) -> None:
        read = dict.fromkeys([*op.operands, *(_captures(op, environment) if len(op.regions) else ())])
        if op.name == "func.call":
            self._copy_function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        elif len(op.regions):
            self._copy_callees(op)
        made: dict[tuple[ir.Value, ...], list[ir.Value]] = {}
        copies: list[list[ir.Value]] = []
        for process in range(size):
            inputs = tuple(environment[value][process] for value in read)
            if inputs not in made:
                copy = op.clone(ir.InsertionPoint(self.block)).operation
                remap(copy, dict(zip(read, inputs, strict=True)))
                made[inputs] = list(copy.results)
            copies.append(made[inputs])
        for position, result in enumerate(op.results):
            environment[result] = tuple(results[position] for results in copies)

    def _copy_callees(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    if inner.operation.name == "func.call":
                        self._copy_function(ir.FlatSymbolRefAttr(inner.operation.attributes["callee"]).value)
                    else:
                        self._copy_callees(inner.operation)

    def _copy_function(self, name: str) -> None:
        """Copies a plain function, and those it calls, into the new module under a name that cannot be ``main``."""
        if name in self._copied:
            return
        if name == "main":
            raise CannotExecute("main calls itself", hint="the oracle runs programs without recursion")
        self._copied.add(name)
        copy = self.functions[name].clone(ir.InsertionPoint(self.target)).operation
        copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
        self._copy_callees(copy)

    def _run_call(self, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
        name = ir.FlatSymbolRefAttr(op.attributes["callee" if op.name == "func.call" else "decomposition"]).value
        function = self.functions.get(name)
        if function is None or name in self._calling:
            why = "is missing" if function is None else "is recursive"
            raise CannotExecute(f"function @{name} {why}", location=self.view.source(op), hint="inline it")
        self._calling.append(name)
        block = function.regions[0].blocks[0]
        results = self.run_block(block, dict(zip(block.arguments, operands, strict=True)), world)
        self._calling.pop()
        return results

    def within(self, world: World, masks: Values) -> World:
        """The same processes, fewer of them active."""
        if world.masks is not None:
            masks = tuple(self.both(a, b) for a, b in zip(world.masks, masks, strict=True))
        return replace(world, masks=masks)


def is_shared(values: Values) -> bool:
    """Whether all processes hold the same value."""
    return all(value == values[0] for value in values[1:])


def _is_sharding_call(op: ir.Operation) -> bool:
    return (op.name == "stablehlo.custom_call" and len(op.operands) == len(op.results)
            and ir.StringAttr(op.attributes["call_target_name"]).value in _SHARDING_CALLS)


def _captures(op: ir.Operation, environment: Environment) -> list[ir.Value]:
    """Values from outside that the regions of an op read."""
    found: dict[ir.Value, None] = {}

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for operand in inner.operands:
            if operand in environment:
                found[operand] = None
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(found)
