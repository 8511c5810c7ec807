"""N devices as one sequential program: their programs side by side, collectives as plain ops between them.

Each value of the SPMD program becomes N values, one per process; equal ones are the same SSA value, so replicated
values are computed once. A collective is then ordinary data flow: an all-reduce adds the operands of its group, a
permute forwards a value. Control flow that contains collectives runs jointly:

* ``while``: iterates as long as any process does; a process that is done keeps its values by ``select``.
* ``case``/``if`` with one predicate for all: stays; with several: every branch is computed, results are selected.

A collective whose group is only partly active would hang on real devices; then the flag ``diverged`` comes out true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlorewrite.analysis.varying_ops import captured_values
from hlorewrite.checks.reference.sequentialize import collectives, control_flow, fourier, manual
from hlorewrite.checks.reference.sequentialize.writer import Environment, LockstepWriter, Values, World
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import ir, remap
from hlorewrite.ops.table import SAME, TERMINATORS

if TYPE_CHECKING:
    from hlorewrite.checks.reference.sequentialize.writer import LockstepWriter

IDENTITIES = SAME | {"mhlo.copy"}
_SHARDING_CALLS = ("Sharding", "xla.sdy.FuncResultSharding", "annotate_device_placement")


class Lockstep(LockstepWriter):
    """Writes functions of an SPMD module side by side into a new module.

    Args:
      source: the SPMD module; it is not changed.
      target: the body block of the new module, for functions that are copied whole.
    """

    def run_block(self, block: ir.Block, environment: Environment, world: World) -> list[Values]:
        """Writes the ops of a block for all processes; returns the operands of its terminator."""
        for op in block.operations:
            if op.operation.name in TERMINATORS:
                return [environment[v] for v in op.operation.operands]
            self.run_op(op.operation, environment, world)
        raise CannotExecute("a block has no terminator", hint="check that the module verifies")

    def run_op(self, op: ir.Operation, environment: Environment, world: World) -> None:
        """Writes one op for all processes."""
        if self.is_plain(op):
            self._run_plain(op, environment, world.grid.size)
            return
        operands = [environment[v] for v in op.operands]
        if op.name in IDENTITIES or _is_sharding_call(op):
            results = operands
        elif op.name in collectives.HANDLERS:
            self.captured = {value: environment[value] for value in captured_values(op)} if len(op.regions) else {}
            results = collectives.run(self, op, operands, world)
        elif op.name in control_flow.HANDLERS:
            results = control_flow.HANDLERS[op.name](self, op, operands, environment, world)
        elif op.name in ("func.call", "stablehlo.composite"):
            results = self._run_call(op, operands, world)
        elif op.name == "sdy.manual_computation":
            results = manual.run(self, op, operands, world)
        elif op.name in HANDLERS:
            made = {value: HANDLERS[op.name](self, value) for value in dict.fromkeys(operands[0])}
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
            raise CannotExecute("main calls itself", hint="the interpreter runs no recursive functions")
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

def _is_sharding_call(op: ir.Operation) -> bool:
    return (op.name == "stablehlo.custom_call" and len(op.operands) == len(op.results)
            and ir.StringAttr(op.attributes["call_target_name"]).value in _SHARDING_CALLS)


def _captures(op: ir.Operation, environment: Environment) -> list[ir.Value]:
    """Values from outside that the regions of an op read."""
    captures: dict[ir.Value, None] = {}

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for operand in inner.operands:
            if operand in environment:
                captures[operand] = None
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(captures)


# ---- the two ``chlo`` ops train steps hold and the interpreter lacks, written in StableHLO


# erf(x) = sign(x)·(1 - (a1·t + ... + a5·t^5)·exp(-x²)), t = 1/(1 + p·|x|), off by at most 1.5e-7:
# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
_P = "0.3275911"
_COEFFICIENTS = ("1.061405429", "-1.453152027", "1.421413741", "-0.284496736", "0.254829592")


def square(lockstep: LockstepWriter, x: ir.Value) -> ir.Value:
    """x·x."""
    return lockstep.value("stablehlo.multiply", [x, x], x.type)


def erf(lockstep: LockstepWriter, x: ir.Value) -> ir.Value:
    """An approximation of the error function within 1.5e-7, the same before and after a rewrite."""
    def op(name: str, *operands: ir.Value) -> ir.Value:
        return lockstep.value(f"stablehlo.{name}", list(operands), x.type)

    one = lockstep.constant("1.0", x.type)
    t = op("divide", one, op("add", one, op("multiply", lockstep.constant(_P, x.type), op("abs", x))))
    total = lockstep.constant("0.0", x.type)
    for coefficient in _COEFFICIENTS:
        total = op("multiply", op("add", total, lockstep.constant(coefficient, x.type)), t)
    decay = op("exponential", op("negate", op("multiply", x, x)))
    return op("multiply", op("sign", x), op("subtract", one, op("multiply", total, decay)))


HANDLERS = {"chlo.square": square, "chlo.erf": erf}
