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
from hlorewrite.checks.reference.sequentialize import collectives, manual, substitutes
from hlorewrite.checks.reference.sequentialize.writer import Environment, LockstepWriter, Values, World, is_shared
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import ir, remap
from hlorewrite.ops.table import SAME, TERMINATORS

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        elif op.name in _CONTROL_FLOW:
            results = _CONTROL_FLOW[op.name](self, op, operands, environment, world)
        elif op.name in ("func.call", "stablehlo.composite"):
            results = self._run_call(op, operands, world)
        elif op.name == "sdy.manual_computation":
            results = manual.run(self, op, operands, world)
        elif op.name in HANDLERS:
            made = {value: HANDLERS[op.name](self, value) for value in dict.fromkeys(operands[0])}
            results = [tuple(made[value] for value in operands[0])]
        elif op.name == "stablehlo.fft":
            made = {value: substitutes.fft(self, op, value) for value in dict.fromkeys(operands[0])}
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


# ---- control flow that contains collectives, run jointly by all processes


def _while(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], environment: Environment, world: World
           ) -> list[Values]:
    """Starts from the guess that what is shared before the loop stays so, and gives the guess up where it fails."""
    shared = [is_shared(values) for values in operands]
    # Ends: each round gives up a value that was taken for shared.
    while True:
        joint = _JointLoop(lockstep, op, operands, shared, environment, world)
        broken = joint.write()
        if not broken:
            return joint.results()
        joint.loop.erase()
        shared = [flag and position not in broken for position, flag in enumerate(shared)]


class _JointLoop:
    """One try at a joint loop; carried values are one value where shared, else one a process, then the flag."""

    def __init__(self, lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], shared: list[bool],
                 environment: Environment, world: World) -> None:
        self.lockstep, self.op, self.shared = lockstep, op, shared
        self.environment, self.world = environment, world
        self.size = world.grid.size
        initial = [v for values, one in zip(operands, shared, strict=True) for v in (values[:1] if one else values)]
        initial.append(lockstep.true_or_false(False))
        self.types = [value.type for value in initial]
        self.loop = lockstep.emit("stablehlo.while", initial, self.types, regions=2)
        self.location = ir.Location.unknown(op.context)

    def write(self) -> set[int]:
        """Writes both regions; returns the positions of values that were assumed to be shared and are not."""
        lockstep = self.lockstep
        condition_block, body_block = (region.blocks.append(*self.types, arg_locs=[self.location] * len(self.types))
                                       for region in self.loop.regions)
        with lockstep.inside(condition_block):
            conditions, world = self._conditions(condition_block)
            lockstep.emit("stablehlo.return", [lockstep.any_of(world.masks or conditions)], [])
        with lockstep.inside(body_block):
            conditions, world = self._conditions(body_block)
            source = self.op.regions[1].blocks[0]
            old = self._spread(list(body_block.arguments))
            inner = {**self.environment, **dict(zip(source.arguments, old, strict=True))}
            new = lockstep.run_block(source, inner, world)
            if not is_shared(conditions):  # who is done keeps what it has
                new = [tuple(lockstep.select(c, a, b) for c, a, b in zip(conditions, news, olds, strict=True))
                       for news, olds in zip(new, old, strict=True)]
            broken = {position for position, values in enumerate(new)
                      if self.shared[position] and not is_shared(values)}
            flag = lockstep.any_of([body_block.arguments[len(self.types) - 1], *lockstep.diverged])
            carried = [v for values, one in zip(new, self.shared, strict=True) for v in (values[:1] if one else values)]
            lockstep.emit("stablehlo.return", [*carried, flag], [])
        return broken

    def results(self) -> list[Values]:
        """The values that the loop passes to each process."""
        results = list(self.loop.results)
        self.lockstep.diverged.append(results[-1])
        return self._spread(results)

    def _conditions(self, block: ir.Block) -> tuple[Values, World]:
        """Writes the loop's condition; returns it and the processes active in the next iteration."""
        source = self.op.regions[0].blocks[0]
        arguments = self._spread(list(block.arguments))
        inner = {**self.environment, **dict(zip(source.arguments, arguments, strict=True))}
        conditions = self.lockstep.run_block(source, inner, self.world)[0]
        if is_shared(conditions) and self.world.masks is None:
            return conditions, self.world
        return conditions, self.lockstep.within(self.world, conditions)

    def _spread(self, flat: Sequence[ir.Value]) -> list[Values]:
        out, at = [], 0
        for one in self.shared:
            out.append((flat[at],) * self.size if one else tuple(flat[at:at + self.size]))
            at += 1 if one else self.size
        return out


def _case(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], environment: Environment, world: World
          ) -> list[Values]:
    index = operands[0]
    if is_shared(index):
        return _joint_branches(lockstep, op, index[0], environment, world)
    last = len(op.regions) - 1
    chosen = [_equals(lockstep, index, branch) for branch in range(last)]
    out_of_range = tuple(lockstep.value("stablehlo.not", [lockstep.any_of(flags)], flags[0].type)
                         for flags in zip(*chosen, strict=True)) if chosen else ()
    masks = [*chosen, out_of_range] if chosen else []
    return _all_branches(lockstep, op, masks, environment, world)


def _if(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], environment: Environment, world: World
        ) -> list[Values]:
    predicate = operands[0]
    if is_shared(predicate):
        return _joint_branches(lockstep, op, predicate[0], environment, world)
    otherwise = tuple(lockstep.value("stablehlo.not", [p], p.type) for p in predicate)
    return _all_branches(lockstep, op, [predicate, otherwise], environment, world)


def _equals(lockstep: LockstepWriter, index: Values, branch: int) -> Values:
    truth = ir.Type.parse("tensor<i1>")
    return tuple(lockstep.value("stablehlo.compare", [i, lockstep.constant(str(branch), i.type)], truth,
                                comparison_direction="#stablehlo<comparison_direction EQ>") for i in index)


def _all_branches(lockstep: LockstepWriter, op: ir.Operation, masks: list[Values], environment: Environment,
                  world: World) -> list[Values]:
    """Computes every branch, each with the processes that take it active, and selects."""
    total: list[Values] | None = None
    for region, mask in zip(op.regions, masks, strict=True):
        results = lockstep.run_block(region.blocks[0], dict(environment), lockstep.within(world, mask))
        total = results if total is None else [
            tuple(lockstep.select(m, a, b) for m, a, b in zip(mask, new, old, strict=True))
            for new, old in zip(results, total, strict=True)]
    return total or []


def _joint_branches(lockstep: LockstepWriter, op: ir.Operation, index: ir.Value, environment: Environment, world: World
                    ) -> list[Values]:
    """The op stays; each branch yields the values of all processes, then the flag."""
    size = world.grid.size
    types = [result.type for result in op.results for _ in range(size)] + [ir.Type.parse("tensor<i1>")]
    made = lockstep.emit(op.name, [index], types, regions=len(op.regions))
    for source, target in zip(op.regions, made.regions, strict=True):
        with lockstep.inside(target.blocks.append()):
            results = lockstep.run_block(source.blocks[0], dict(environment), world)
            flat = [value for values in results for value in values]
            lockstep.emit("stablehlo.return", [*flat, lockstep.any_of(lockstep.diverged)], [])
    values = list(made.results)
    lockstep.diverged.append(values[-1])
    return [tuple(values[k * size:(k + 1) * size]) for k in range(len(op.results))]


_CONTROL_FLOW = {"stablehlo.while": _while, "stablehlo.case": _case, "stablehlo.if": _if}
