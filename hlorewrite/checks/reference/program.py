"""Programs ready to be executed: prepared once, run on many inputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hlorewrite.checks.reference import interpreter
from hlorewrite.checks.reference.control import ControlArguments, control_arguments
from hlorewrite.checks.reference.sequentialize.collectives import HANDLERS
from hlorewrite.checks.reference.sequentialize.grid import Grid, highest_id
from hlorewrite.checks.reference.sequentialize.lockstep import Lockstep
from hlorewrite.checks.reference.sequentialize.manual import devices_of
from hlorewrite.checks.reference.sequentialize.substitutes import leave_out_partial_windows
from hlorewrite.checks.reference.sequentialize.writer import Environment, World
from hlorewrite.errors import CannotExecute, did_you_mean
from hlorewrite.ir import Editor, Module, called_functions, has_async_pairs, ir, run_at_once
from hlorewrite.ir.view import View, defining_op, nested_ops, terminator

Array = np.ndarray[Any, Any]
_SHARDINGS = ("sdy.sharding", "mhlo.sharding", "arg_attrs", "res_attrs")


@dataclass(frozen=True)
class Outcome:
    """What a program computed.

    Attributes:
      outputs: for each process, its results; a global program has one process.
      diverged: some, but not all, members of a group reached a collective: real devices would wait forever.
      replicas_differ: values that should be replicas of one another differ beyond rounding.
    """

    outputs: tuple[tuple[Array, ...], ...]
    diverged: bool
    replicas_differ: bool


@dataclass(frozen=True)
class LockstepProgram:
    """A function of a module, written for the interpreter.

    Attributes:
      grid: the processes that take inputs: one when global, else the devices.
      kind: ``global`` takes and returns global values; ``per-device`` takes and returns the values of each device.
      devices: how many devices participate.
      input_types: types of the inputs of one process.
      output_types: types of the results of one process.
      lowered: the sequential module.
      differences: how many results at its end say where replicas differ.
    """

    grid: Grid
    kind: Literal["global", "per-device"]
    devices: int
    input_types: tuple[ir.Type, ...]
    output_types: tuple[ir.Type, ...]
    lowered: ir.Module
    differences: int

    @property
    def processes(self) -> int:
        """The number of processes for which it takes inputs."""
        return self.grid.size

    def control_inputs(self) -> ControlArguments:
        """Inputs that may decide a trip count, a branch or an index, as ``process * inputs + position``."""
        return control_arguments(self.lowered.body.operations[0].operation)

    def divergence_reads_inputs(self) -> bool:
        """Whether the inputs may decide if some devices skip a collective that others reach.

        Everything that regions read counts whole, so the answer may be yes too often.
        """
        main = self.lowered.body.operations[0].operation
        pending = [list(terminator(main.regions[0].blocks[0]).operands)[-1 - self.differences]]
        seen = set(pending)
        for value in pending:  # Ends: a value is added once.
            op = defining_op(value)
            if op is None:
                return True
            read = {operand for inner in nested_ops(op) for operand in inner.operands
                    if not isinstance(operand.owner, ir.Block) or operand.owner.owner.operation == main}
            pending += read - seen
            seen |= read
        return False

    def run(self, inputs: Sequence[Sequence[Array]]) -> Outcome:
        """Executes the program.

        Args:
          inputs: for each process, its inputs, of exactly the shapes and dtypes of ``input_types``.

        Returns:
          The results and whether the run was sound.

        Raises:
          CannotExecute: the inputs do not fit, or the interpreter fails.
        """
        if len(inputs) != self.processes or any(len(row) != len(self.input_types) for row in inputs):
            raise CannotExecute(f"the program takes {len(self.input_types)} inputs for each of {self.processes} "
                                f"processes", hint="pass a list of inputs for each process")
        with self.lowered.context, ir.Location.unknown():
            given = [interpreter.to_attribute(array, kind)
                     for row in inputs for array, kind in zip(row, self.input_types, strict=True)]
            results = iter(interpreter.evaluate(self.lowered, given))
        outputs = []
        for _ in range(self.processes):
            row = []
            for kind in self.output_types:
                parts = 2 if isinstance(ir.RankedTensorType(kind).element_type, ir.ComplexType) else 1
                row.append(interpreter.from_attributes([next(results) for _ in range(parts)], kind))
            outputs.append(tuple(row))
        diverged = bool(np.array(next(results)).any())
        differ = any(bool(np.array(value).any()) for value in results)
        return Outcome(tuple(outputs), diverged, differ)


def entries(module: Module) -> list[str]:
    """The functions of a module that can be executed: ``main``, or every public function with a body."""
    names = [ir.StringAttr(op.operation.attributes["sym_name"]).value for op in module.mlir.body.operations
             if op.operation.name == "func.func" and is_public(op.operation) and len(op.operation.regions[0].blocks)]
    return ["main"] if "main" in names else names


def prepare(module: Module, function: str | None = None, *, per_device: bool = False,
            like: LockstepProgram | None = None) -> LockstepProgram:
    """Writes a function of an SPMD module as a sequential program.

    Args:
      module: the module; it is not changed.
      function: the function's name; by default ``main`` or the only public function.
      per_device: for a global function that contains one manual computation: execute what a device does, on inputs for
        each device.
      like: the program of the module before it was rewritten: what has lost its last collective still runs on as many
        devices.

    Returns:
      The program. A function that contains manual computations, or no collective at all, is global; one that holds
      collectives itself is per-device.

    Raises:
      CannotExecute: something in it cannot be run; the sentence says what.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse('''func.func @f(%x: tensor<f32>) -> tensor<f32> {
      ...   %y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> ({
      ...     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ...       %s = stablehlo.add %a, %b : tensor<f32>
      ...       stablehlo.return %s : tensor<f32> }) : (tensor<f32>) -> tensor<f32>
      ...   return %y : tensor<f32> }''')
      >>> program = prepare(module)
      >>> program.kind, program.devices
      ('per-device', 3)
      >>> outcome = program.run([[np.float32(1)], [np.float32(2)], [np.float32(4)]])
      >>> [float(row[0]) for row in outcome.outputs]
      [7.0, 7.0, 7.0]
    """
    with module.context, ir.Location.unknown():
        return _Preparation(module, function).program(per_device, like.grid if like else None)


def execute(module: Module, inputs_per_device: Sequence[Sequence[Array]]) -> list[tuple[Array, ...]]:
    """Executes what each device does on its own inputs.

    Args:
      module: a per-device module, or a global one that holds one manual computation over all mesh axes.
      inputs_per_device: for each device, its inputs (of a manual computation: the shards it sees).

    Returns:
      For each device, its outputs.

    Raises:
      CannotExecute: something cannot be run, or devices would wait for each other forever.
    """
    outcome = prepare(module, per_device=True).run(inputs_per_device)
    if outcome.diverged:
        raise CannotExecute("some devices of a group reach a collective that others skip", location=module.name,
                            hint="make the predicate around it equal on all devices of the group")
    return list(outcome.outputs)


class _Preparation:
    """The steps of ``prepare``."""

    def __init__(self, module: Module, function: str | None) -> None:
        self.view = View(module)
        if has_async_pairs(self.view):
            self.view = View(module.clone())
            run_at_once(Editor(self.view))
        self.module = self.view.module
        name = function or self._only_entry()
        if name not in self.view.functions:
            raise CannotExecute(f"the module contains no function @{name}", location=module.name,
                                hint=did_you_mean(name, self.view.functions))
        self.function = self.view.functions[name]
        if len(self.function.regions[0].blocks) != 1:
            raise CannotExecute(f"function @{name} has no body of one block", location=module.name,
                                hint="name another function")
        self.reached = self._reached()
        self.lowered = ir.Module.create()

    def _only_entry(self) -> str:
        names = entries(self.module)
        if len(names) != 1:
            what = "no public function with a body" if not names else "several public functions"
            raise CannotExecute(f"the module contains {what}", location=self.module.name, hint="name one main")
        return names[0]

    def _reached(self) -> list[ir.Operation]:
        """Every op of the function and of those it calls."""
        return [op for function in called_functions(self.function, self.view) for op in nested_ops(function)]

    def program(self, per_device: bool, before: Grid | None) -> LockstepProgram:
        """Chooses the kind of program, and writes it."""
        manual = [op for op in self.reached if op.name == "sdy.manual_computation"]
        block = self.function.regions[0].blocks[0]
        if not manual:
            grid = before if before and before.size > 1 else self._grid()
            per = grid is not None or per_device
            return self._written("per-device" if per else "global", block, grid or Grid(1, 1))
        if not per_device:
            devices = max(devices_of(Lockstep(self.module, self.lowered.body), op).size for op in manual)
            return self._written("global", block, Grid(1, 1), devices)
        if len(manual) != 1:
            raise CannotExecute(f"{len(manual)} manual computations cannot be executed on inputs for each device",
                                location=self.module.name, hint="execute the global function")
        mesh = devices_of(Lockstep(self.module, self.lowered.body), manual[0])
        return self._written("per-device", manual[0].regions[0].blocks[0], Grid(1, mesh.size))

    def _grid(self) -> Grid | None:
        """The processes of a per-device module; None when it contains no collective."""
        collectives = [op for op in self.reached if op.name in HANDLERS]
        if not collectives:
            return None
        attributes = self.module.operation.attributes
        replicas, partitions = (ir.IntegerAttr(attributes[name]).value if name in attributes else None
                                for name in ("mhlo.num_replicas", "mhlo.num_partitions"))
        if replicas is None and partitions is None:
            count = 1 + max(highest_id(op, self.view) for op in collectives)
            across = any("channel_handle" in op.attributes or "use_global_device_ids" in op.attributes
                         for op in collectives) or all(op.name == "stablehlo.partition_id" for op in collectives)
            return Grid(1, max(count, 1)) if across else Grid(max(count, 1), 1)
        return Grid(replicas or 1, partitions or 1)

    def _written(self, kind: Literal["global", "per-device"], block: ir.Block, grid: Grid,
                 devices: int | None = None) -> LockstepProgram:
        inputs = tuple(argument.type for argument in block.arguments)
        for type_ in inputs:
            interpreter.dtype_of(type_)
        main = ir.Operation.create("func.func", regions=1, ip=ir.InsertionPoint(self.lowered.body), attributes={
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(inputs) * grid.size, []))})
        types = list(inputs) * grid.size
        target = main.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        lockstep = Lockstep(self.module, self.lowered.body)
        lockstep.block = target
        arguments = list(target.arguments)
        environment: Environment = {argument: tuple(arguments[p * len(inputs) + k] for p in range(grid.size))
                                    for k, argument in enumerate(block.arguments)}
        results = lockstep.run_block(block, environment, World(grid))
        outputs = tuple(values[0].type for values in results)
        made = [values[process] for process in range(grid.size) for values in results]
        returned = [*interpreter.readable_parts(made, ir.InsertionPoint(target)), lockstep.any_of(lockstep.diverged),
                    *lockstep.replicas_differ]
        lockstep.emit("func.return", returned, [])
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [v.type for v in returned]))
        drop_shardings(self.lowered.operation)
        interpreter.keep_scatter_operands(self.lowered)
        widen_operands(self.lowered.operation)
        widen_unsigned_indices(self.lowered.operation)
        leave_out_partial_windows(self.lowered.operation)
        if not self.lowered.operation.verify():
            raise CannotExecute("the program written for the interpreter does not verify", location=self.module.name)
        return LockstepProgram(grid, kind, devices or grid.size, input_types=inputs, output_types=outputs,
                               lowered=self.lowered, differences=len(lockstep.replicas_differ))


def drop_shardings(module: ir.Operation) -> None:
    """Removes shardings: they name meshes of the original module, and mean nothing to the interpreter.

    Args:
      module: what is about to be evaluated; changed in place.
    """
    for op in nested_ops(module):
        for name in _SHARDINGS:
            if name in op.attributes:
                del op.attributes[name]


def element_count(program: LockstepProgram) -> int:
    """How many elements the inputs of one process have, to find a program the interpreter is too slow for."""
    return sum(math.prod(ir.RankedTensorType(kind).shape) for kind in program.input_types)


def is_public(function: ir.Operation) -> bool:
    """Whether a function is called from outside."""
    name = "sym_visibility"
    return name not in function.attributes or ir.StringAttr(function.attributes[name]).value == "public"


# ---- unsigned indices for the interpreter, which reads them as signed numbers: 200 of 8 bits as -56


_FIRST_INDEX = {"stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2, "stablehlo.gather": 1}


def widen_unsigned_indices(module: ir.Operation) -> None:
    """Converts unsigned indices of ops to signed ones of 64 bits, which can hold all unsigned numbers up to 2^63 - 1.

    Args:
      module: the module, which is changed.
    """
    for op in nested_ops(module):
        first = _FIRST_INDEX.get(op.name)
        if op.name == "stablehlo.scatter":
            first = len(op.results)
        if first is None:
            continue
        last = len(op.operands) if op.name.startswith("stablehlo.dynamic") else first + 1
        for position in range(first, last):
            index = op.operands[position]
            tensor = ir.RankedTensorType(index.type)
            if isinstance(tensor.element_type, ir.IntegerType) and tensor.element_type.is_unsigned:
                wide = ir.RankedTensorType.get(tensor.shape, ir.IntegerType.get_signless(64))
                op.operands[position] = ir.Operation.create(
                    "stablehlo.convert", [wide], [index], ip=ir.InsertionPoint(op)).results[0]


# ---- operands in the type of the result, for ops of the interpreter that would calculate in the operands' own type


_REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter"})


def widen_operands(module: ir.Operation) -> None:
    """Converts the operands of convolutions and reductions to the type that they are to be added up in.

    Args:
      module: the module, which is changed.
    """
    for op in nested_ops(module):
        if op.name == "stablehlo.convolution":
            _widen_convolution(op)
        elif op.name in _REDUCTIONS:
            _widen_reduction(op)


def _widen_convolution(op: ir.Operation) -> None:
    result = ir.RankedTensorType(op.results[0].type)
    read = [_element(value) for value in op.operands]
    if all(element == result.element_type for element in read):
        return
    if read[0] == read[1] and _is_narrower_float(result.element_type, read[0]):
        with op.location:
            wide = ir.Operation.create(op.name, [ir.RankedTensorType.get(result.shape, read[0])], list(op.operands),
                                       _attributes(op), ip=ir.InsertionPoint(op)).results[0]
            narrow = ir.Operation.create("stablehlo.convert", [result], [wide], ip=ir.InsertionPoint(op)).results[0]
        op.results[0].replace_all_uses_with(narrow)
        op.erase()
        return
    for position in range(len(op.operands)):
        _convert(op, position, result.element_type)


def _widen_reduction(op: ir.Operation) -> None:
    """Converts inputs, initial values and updates to the types of the region's arguments; a scatter's indices stay."""
    arguments, count = list(op.regions[0].blocks[0].arguments), len(op.results)
    held = [k for k in range(len(op.operands)) if op.name != "stablehlo.scatter" or k != count]
    for position, argument in zip(held, arguments, strict=True):
        _convert(op, position, _element(argument))


def _convert(op: ir.Operation, position: int, element: ir.Type) -> None:
    value = op.operands[position]
    if _element(value) != element:
        with op.location:
            op.operands[position] = ir.Operation.create(
                "stablehlo.convert", [ir.RankedTensorType.get(ir.RankedTensorType(value.type).shape, element)], [value],
                ip=ir.InsertionPoint(op)).results[0]


def _is_narrower_float(element: ir.Type, other: ir.Type) -> bool:
    return isinstance(element, ir.FloatType) and isinstance(other, ir.FloatType) and element.width < other.width


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    names = [name if isinstance(name, str) else name.name for name in op.attributes]
    return {name: op.attributes[name] for name in names}


def _element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type
