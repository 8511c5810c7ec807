"""Writes a program of several meshes: its steps as plain data, and the functions they call, as one module."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.ir import Module, ir, symbol_name
from hlorewrite.pipelines.mpmd.program import STAGE, SUMS, TASK, FragmentCall, Program, ProgramOps, Step


@dataclass(frozen=True)
class WrittenStep:
    """A step to be written.

    Attributes:
      step: the step.
      like: the op whose attributes and location it takes.
      function: the function a fragment call calls, when it is a new one; it is moved out of the block it is in.
    """

    step: Step
    like: ir.Operation
    function: ir.Operation | None = None


@dataclass(frozen=True)
class ProgramDraft:
    """A program to be written: what ``Program`` holds, with new steps.

    Attributes:
      program: carries, indices, results and types as they are to be; its own steps are not read.
      ops: the handles of the program it was made of.
      kinds: MLIR type of each value, by number.
      before: steps before the loop.
      body: steps of a micro-batch.
      after: steps after the loop.
    """

    program: Program
    ops: ProgramOps
    kinds: Sequence[ir.Type]
    before: Sequence[WrittenStep]
    body: Sequence[WrittenStep]
    after: Sequence[WrittenStep]


def write_program(module: Module, draft: ProgramDraft) -> ir.Module:
    """Writes a program.

    Args:
      module: the module it was read from; it is not changed.
      draft: the program.

    Returns:
      A module of the same context: meshes and attributes as they were, the functions the program calls, and those these
      call.
    """
    with module.context, module.operation.location:
        return _ProgramWriter(module, draft).write()


class _ProgramWriter:
    def __init__(self, module: Module, draft: ProgramDraft) -> None:
        self.module = module
        self.draft = draft
        self.program = draft.program
        self.values: dict[int, ir.Value] = {}
        self.made = ir.Module.create(module.operation.location)
        self.names: dict[int, str] = {}

    def write(self) -> ir.Module:
        for name in list(self.module.operation.attributes):
            self.made.operation.attributes[name] = self.module.operation.attributes[name]
        functions = self._functions()
        written = {symbol_name(self.draft.ops.main)}
        if self.draft.ops.microbatch is not None:
            written.add(symbol_name(self.draft.ops.microbatch))
        for op in self.module.mlir.body.operations:
            if op.operation.name != "func.func":
                self.made.body.append(op.operation.clone().operation)
            elif op.operation == self.draft.ops.main:
                self._write_main()
            elif symbol_name(op.operation) not in written:
                for function in functions.pop(symbol_name(op.operation), []):
                    self.made.body.append(function)
        for rest in functions.values():
            for function in rest:
                self.made.body.append(function)
        return self.made

    # ---- functions

    def _functions(self) -> dict[str, list[ir.Operation]]:
        """Functions to write, by the name of the one whose place they take; names are given to new ones."""
        originals = {symbol_name(op.operation): op.operation for op in self.module.mlir.body.operations
                     if op.operation.name == "func.func"}
        steps = [*self.draft.before, *self.draft.body, *self.draft.after]
        calls = [(each, each.step) for each in steps if isinstance(each.step, FragmentCall)]
        kept = {step.callee for each, step in calls if each.function is None}
        own = {symbol_name(self.draft.ops.main)}
        if self.draft.ops.microbatch is not None:
            own.add(symbol_name(self.draft.ops.microbatch))
        callees = {step.callee for _, step in calls}
        fragments = {symbol for symbol in originals if symbol in callees | self._called_before()}
        functions: dict[str, list[ir.Operation]] = {
            name: [op.clone().operation] for name, op in originals.items()
            if name not in own and (name in kept or name not in fragments)}
        taken = {*originals, *own} - (fragments - kept)
        texts: dict[str, str] = {}
        for each, step in calls:
            if each.function is None:
                continue
            text = str(each.function.get_asm(use_local_scope=True))  # otherwise all of the module is walked
            if text not in texts:
                texts[text] = _free(step.callee, taken)
                taken.add(texts[text])
                each.function.attributes["sym_name"] = ir.StringAttr.get(texts[text])
                functions.setdefault(step.callee, []).append(each.function)
                each.function.detach_from_parent()
            self.names[id(each)] = texts[text]
        return functions

    def _called_before(self) -> set[str]:
        ops = self.draft.ops
        return {ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in (*ops.before, *ops.body, *ops.after)
                if op.name == "mpmd.fragment_call"}

    # ---- the program's own functions

    def _write_main(self) -> None:
        old = self.draft.ops.main
        inputs = [each.type for each in old.regions[0].blocks[0].arguments]
        with old.location:
            main = ir.Operation.create("func.func", regions=1, ip=ir.InsertionPoint(self.made.body),
                                       attributes={name: old.attributes[name] for name in old.attributes})
        block = main.regions[0].blocks.append(*inputs)
        self.values.update(zip(self.program.arguments, block.arguments, strict=True))
        self._write_steps(self.draft.before, block)
        if self.draft.ops.loop is not None:
            self._write_loop(block)
        self._write_steps(self.draft.after, block)
        with old.location:
            ir.Operation.create("func.return", operands=[self.values[n] for n in self.program.results],
                                ip=ir.InsertionPoint(block))

    def _write_steps(self, steps: Sequence[WrittenStep], block: ir.Block) -> None:
        for each in steps:
            step = each.step
            attributes = {name: each.like.attributes[name] for name in each.like.attributes}
            if isinstance(step, FragmentCall):
                name, operands, results = "mpmd.fragment_call", step.operands, step.results
                attributes["callee"] = ir.FlatSymbolRefAttr.get(self.names.get(id(each), step.callee))
                attributes[TASK] = ir.StringAttr.get(step.task)
                attributes[STAGE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), step.stage)
            else:
                name, operands, results = "mpmd.transfer", (step.operand,), (step.result,)
            with each.like.location:
                made = ir.Operation.create(name, results=[self.draft.kinds[n] for n in results],
                                           operands=[self.values[n] for n in operands], attributes=attributes,
                                           ip=ir.InsertionPoint(block))
            self.values.update(zip(results, made.results, strict=True))

    def _write_loop(self, block: ir.Block) -> None:
        loop, call, function = self.draft.ops.loop, self.draft.ops.call, self.draft.ops.microbatch
        assert loop is not None and call is not None and function is not None
        program, kinds = self.program, self.draft.kinds
        carries = program.carries
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        attributes[SUMS] = ir.DenseBoolArrayAttr.get([carry.is_sum for carry in carries])
        types = [kinds[carry.after] for carry in carries]
        invariants = self._invariants()
        inner_types = [*types, *(kinds[n] for n in (*invariants, *program.indices))]
        with loop.location:
            made = ir.Operation.create("mpmd.for", results=types, operands=[self.values[c.first] for c in carries],
                                       attributes=attributes, regions=1, ip=ir.InsertionPoint(block))
            body = made.regions[0].blocks.append(*types, loop.regions[0].blocks[0].arguments[-1].type)
            indices = []
            for number, op in zip(program.indices, self.draft.ops.indices, strict=True):
                indices.append(ir.Operation.create(
                    "mpmd.assign", results=[kinds[number]], operands=[list(body.arguments)[-1]],
                    attributes={name: op.attributes[name] for name in op.attributes},
                    ip=ir.InsertionPoint(body)).results[0])
            given = [*list(body.arguments)[:-1], *(self.values[n] for n in invariants), *indices]
            called = ir.Operation.create("mpmd.call", results=types, operands=given, ip=ir.InsertionPoint(body),
                                         attributes={name: call.attributes[name] for name in call.attributes})
            ir.Operation.create("mpmd.return", operands=list(called.results), ip=ir.InsertionPoint(body))
        outside = dict(self.values)
        self._write_microbatch(function, inner_types, types, [c.inside for c in carries], invariants)
        self.values = outside
        self.values.update(zip((carry.after for carry in carries), made.results, strict=True))

    def _write_microbatch(self, old: ir.Operation, inputs: list[ir.Type], results: list[ir.Type],
                          inside: list[int], invariants: list[int]) -> None:
        attributes = {name: old.attributes[name] for name in old.attributes if name not in ("arg_attrs", "res_attrs")}
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        with old.location:
            function = ir.Operation.create("func.func", regions=1, attributes=attributes,
                                           ip=ir.InsertionPoint(self.made.body))
            block = function.regions[0].blocks.append(*inputs)
            numbers = [*inside, *invariants, *self.program.indices]
            self.values = dict(zip(numbers, block.arguments, strict=True))
            self._write_steps(self.draft.body, block)
            ir.Operation.create("func.return", operands=[self.values[c.next] for c in self.program.carries],
                                ip=ir.InsertionPoint(block))

    def _invariants(self) -> list[int]:
        """Values from before the loop that a micro-batch reads as they are, in the order it does."""
        made = {carry.inside for carry in self.program.carries} | set(self.program.indices)
        invariants: dict[int, None] = {}
        for each in self.draft.body:
            step = each.step
            reads = step.operands if isinstance(step, FragmentCall) else (step.operand,)
            invariants.update((number, None) for number in reads if number not in made)
            made.update(step.results if isinstance(step, FragmentCall) else (step.result,))
        invariants.update((carry.next, None) for carry in self.program.carries if carry.next not in made)
        return list(invariants)


def _free(name: str, taken: set[str]) -> str:
    """The name itself, or the first of its numbered forms that is free."""
    if name not in taken:
        return name
    return next(f"{name}_{i}" for i in range(1, 1 << 30) if f"{name}_{i}" not in taken)


__all__ = ["ProgramDraft", "WrittenStep", "write_program"]
