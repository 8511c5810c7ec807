"""Replays a sequential program in numpy: the same values as the interpreter's, op by op, on a tape."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.rounding import fingerprint, sums
from hlorewrite.checks.reference.rounding.eval_op import attribute_names, eval_op, region_texts
from hlorewrite.checks.reference.rounding.scatters import scattering_of
from hlorewrite.checks.reference.rounding.trace import USUAL_LIMITS, ExecutionTrace, NoBound, TracedTensor, TraceLimits
from hlorewrite.checks.reference.rounding.units import carry
from hlorewrite.ir import ir, op_key, source_line, symbol_name
from hlorewrite.ops.attributes import comparison_direction, ints, shape_of
from hlorewrite.ops.elements import BY_ATTRIBUTES, moved
from hlorewrite.ops.elementwise import COMPARISONS, FUNCTIONS, applied, converted
from hlorewrite.ops.table import COMMUTATIVE

_SAME = frozenset({"optimization_barrier"})
Environment = dict[ir.Value, int]
"""The slot of each value."""
Form = TypeVar("Form")


def replay(lowered: ir.Module, inputs: Sequence[np.ndarray], outputs: Sequence[ir.Value], *, in_order: bool = True,
           limits: TraceLimits = USUAL_LIMITS) -> tuple[ExecutionTrace, list[int]]:
    """Runs ``main`` of a module of runnable ops.

    Args:
      lowered: the module; what ``reference.program.prepare`` wrote.
      inputs: arrays of the types of its arguments.
      outputs: values of the block of ``main``.
      in_order: add the terms of matrix products as the interpreter does, for fingerprints that say what is equal bit
        for bit; otherwise there are none, and ops that only the interpreter computes are refused.
      limits: how much fits on the tape.

    Returns:
      The tape, and the slots of the outputs.

    Raises:
      NoBound: the tape is full, or an op cannot be replayed.
    """
    functions = {symbol_name(op.operation): op.operation for op in lowered.body.operations}
    made = Replay(functions, in_order, limits)
    with lowered.context, ir.Location.unknown():
        block = functions["main"].regions[0].blocks[0]
        environment = {argument: made.leaf(array, position)
                       for position, (argument, array) in enumerate(zip(block.arguments, inputs, strict=True))}
        made.block(block, environment)
        return made.tape, [environment[value] for value in outputs]


class Replay:
    """The state of one replay.

    Args:
      functions: the functions of the module, by name.
      in_order: as `replay` takes it.
      limits: the same.
    """

    def __init__(self, functions: dict[str, ir.Operation], in_order: bool, limits: TraceLimits) -> None:
        self.functions = functions
        self.in_order = in_order
        self.tape = ExecutionTrace(limits=limits)
        self._seeds: dict[int, np.uint64] = {}
        self._places: dict[int, str] = {}
        self._maps: dict[int, np.ndarray] = {}
        self._forms: dict[int, Any] = {}
        self._constants: dict[int, int] = {}

    def leaf(self, array: np.ndarray, position: int) -> int:
        """The slot of an input."""
        prints = fingerprint.of_leaf(fingerprint.seed_of("input", position), array.shape)
        return self.tape.add(TracedTensor(array, prints, True, array.dtype.kind in "iub" or "int" in array.dtype.name))

    def block(self, block: ir.Block, environment: Environment) -> list[int]:
        """Runs a block; returns the slots of the operands of its terminator."""
        for each in block.operations:
            op = each.operation
            if op.name in ("func.return", "stablehlo.return"):
                return [environment[value] for value in op.operands]
            slots = self._run(op, [environment[value] for value in op.operands], environment)
            environment.update(zip(op.results, slots, strict=True))
        raise NoBound("a block has no terminator")

    def _run(self, op: ir.Operation, operands: list[int], environment: Environment) -> Sequence[int]:
        name = op.name.removeprefix("stablehlo.")
        if name in _SAME or (name == "convert" and op.operands[0].type == op.results[0].type):
            return operands
        if name in _CONTROL:
            return _CONTROL[name](self, op, operands, environment)
        handler = _HANDLERS.get(name)
        if handler is None:
            handler = Replay._elementwise if name in FUNCTIONS else Replay._opaque
        return handler(self, op, operands)

    # ---- what is read of an op once

    def _seed(self, op: ir.Operation) -> np.uint64:
        key = op_key(op)
        if key not in self._seeds:
            names = [name for name in attribute_names(op) if "." not in name]  # shardings and frontend attributes
            attributes = [f"{name}={op.attributes[name]}" for name in names]
            regions = region_texts(op)
            self._seeds[key] = fingerprint.seed_of(op.name, *attributes, *[v.type for v in op.operands], *regions
                                                   ) if op.regions or names else fingerprint.seed_of(
                op.name, *[ir.RankedTensorType(v.type).element_type for v in (*op.operands, *op.results)])
        return self._seeds[key]

    def _windows(self, op: ir.Operation, form_of: Callable[[ir.Operation], Form]) -> Form:
        key = op_key(op)
        if key not in self._forms:
            self._forms[key] = form_of(op)
        return self._forms[key]

    def _where(self, op: ir.Operation) -> str:
        key = op_key(op)
        if key not in self._places:
            self._places[key] = source_line(op.location)
        return self._places[key]

    def _read(self, slots: Sequence[int]) -> list[TracedTensor]:
        return [self.tape.cells[slot] for slot in slots]

    # ---- ops

    def _constant(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        key = op_key(op)
        if key not in self._constants:
            [value] = eval_op(op, [])
            self._constants[key] = self.tape.add(TracedTensor(value, fingerprint.of_constant(value), True, True))
        return [self._constants[key]]

    def _elementwise(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        name = op.name.removeprefix("stablehlo.")
        read = self._read(operands)
        value = applied(name, *[cells.value for cells in read])
        prints = fingerprint.of_op(self._seed(op), [cells.prints for cells in read], commutes=op.name in COMMUTATIVE)
        if name == "add":
            prints = _plus_zero(prints, *read)
        return self.tape.record(name, operands, [(value, prints)], self._where(op))

    def _compare(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        left, right = self._read(operands)
        direction = comparison_direction(op)
        value = COMPARISONS[direction](left.value, right.value)
        prints = fingerprint.of_op(self._seed(op), [left.prints, right.prints])
        return self.tape.record("compare", operands, [(np.asarray(value), prints)], self._where(op), direction)

    def _convert(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        [x] = self._read(operands)
        value = converted(x.value, dtype_of(op.results[0].type))
        return self.tape.record("convert", operands, [(value, fingerprint.of_op(self._seed(op), [x.prints]))],
                                self._where(op))

    def _static_move(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        key = op_key(op)
        if key not in self._maps:
            name = op.name.removeprefix("stablehlo.")
            self._maps[key] = np.array(_by_op(op, name, sums.places([shape_of(value) for value in op.operands])))
        return self._moved(op, operands, [], self._maps[key])

    def _moved(self, op: ir.Operation, elements: list[int], indices: list[int], places: np.ndarray) -> Sequence[int]:
        """Records a move of elements that indices decide."""
        read = self._read(elements)
        flat = [np.concatenate([getattr(cells, part).reshape(-1) for cells in read]) for part in ("value", "prints")]
        prints = flat[1][places]
        deciding = [cells for cells in self._read(indices) if not cells.exact]
        if deciding:
            mark = fingerprint.of_sum(self._seed(op), np.concatenate([cells.prints.reshape(-1) for cells in deciding]))
            prints = fingerprint.of_op(self._seed(op), [prints, mark])
        return self.tape.record("move", [*indices, *elements], [(flat[0][places], prints)], self._where(op), places,
                                picked=len(indices))

    def _dynamic_slice(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        [whole] = sums.places([self.tape.cells[operands[0]].value.shape])
        starts = [cells.value for cells in self._read(operands[1:])]
        return self._moved(op, operands[:1], operands[1:], _by_op(op, "dynamic_slice", [whole, *starts]))

    def _dynamic_update_slice(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        x, update = sums.places([cells.value.shape for cells in self._read(operands[:2])])
        starts = [cells.value for cells in self._read(operands[2:])]
        return self._moved(op, operands[:2], operands[2:], _by_op(op, "dynamic_update_slice", [x, update, *starts]))

    def _select(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        predicate, yes, no = self._read(operands)
        if predicate.exact:
            a, b = sums.places([yes.value.shape, no.value.shape])
            return self._moved(op, operands[1:], operands[:1], np.where(predicate.value, a, b))
        value = np.where(predicate.value, yes.value, no.value)
        shape = np.broadcast_shapes(predicate.prints.shape, yes.prints.shape)
        prints = fingerprint.of_op(self._seed(op), [np.broadcast_to(cells.prints, shape)
                                                    for cells in (predicate, yes, no)])
        return self.tape.record("select", operands, [(value, prints)], self._where(op))

    def _interpreted_move(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        held = sums.INTERPRETED[op.name.removeprefix("stablehlo.")]
        elements, indices = [operands[k] for k in held], operands[len(held):]
        given = [(self.tape.cells[slot].value, op.operands[len(held) + k].type) for k, slot in enumerate(indices)]
        shapes = [cells.value.shape for cells in self._read(elements)]
        return self._moved(op, elements, indices, sums.interpreted(op, sums.places(shapes), given))

    def _dot(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        return self._product(op, "dot_general", sums.product_of(op), operands)

    def _convolution(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        form = self._windows(op, sums.convolution_of)
        zero = np.zeros((), self._read(operands)[0].value.dtype)
        padding = self.tape.add(TracedTensor(zero, fingerprint.of_constant(zero), True, True))
        [left] = self._moved(op, [operands[0], padding], [], form.left)
        [right] = self._moved(op, [operands[1]], [], form.right)
        made = self._product(op, "convolution", form.product, [left, right])
        return self._moved(op, list(made), [], form.result)

    def _product(self, op: ir.Operation, kind: str, form: sums.ProductForm, operands: list[int]) -> Sequence[int]:
        a, b = self._read(operands)
        dtype = dtype_of(op.results[0].type)
        self.tape.multiply(form.batch * form.free[0] * form.free[1] * form.terms)
        if self.in_order:
            made = form.in_order(a.value, b.value, dtype), form.prints(a.prints, b.prints, self._seed(op))
        else:
            value = converted(np.asarray(form.apply(carry(a.value), carry(b.value))), dtype)
            made = value, np.zeros(value.shape, np.uint64)
        return self.tape.record(kind, operands, [made], self._where(op), form)

    def _reduce(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        form = sums.reduction_of(op)
        return self._opaque(op, operands) if form is None else self._reduced(op, form, operands)

    def _reduce_window(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        found = self._windows(op, sums.window_sums_of)
        if found is None:
            return self._opaque(op, operands)
        [side_by_side] = self._moved(op, operands, [], found[0])
        return self._reduced(op, found[1], [side_by_side, operands[1]])

    def _reduced(self, op: ir.Operation, form: sums.ReductionForm, operands: list[int]) -> Sequence[int]:
        x, start = self._read(operands)
        made = form.in_order(x.value, start.value), form.prints(x.prints, start.prints, self._seed(op))
        return self.tape.record("reduce", operands, [made], self._where(op), form)

    def _scatter(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        x, indices, updates = self._read(operands)[:3]
        form = scattering_of(op, indices.value)
        if form is None:
            return self._opaque(op, operands)
        if form.by == "put":
            return self._moved(op, [operands[0], operands[2]], [operands[1]], form.places())
        [value] = eval_op(op, [(cells.value, each.type) for cells, each in zip((x, indices, updates), op.operands,
                                                                                 strict=True)])
        prints = form.prints(x.prints, updates.prints, self._seed(op))
        if not indices.exact:
            mark = fingerprint.of_sum(self._seed(op), indices.prints.reshape(-1))
            prints = fingerprint.of_op(self._seed(op), [prints, mark])
        return self.tape.record("scatter", operands, [(value, prints)], self._where(op), form)

    def _bits(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        """The same bits as another type: back and forth gives the fingerprints there were."""
        [x], dtype = self._read(operands), dtype_of(op.results[0].type)
        if x.value.dtype.itemsize != dtype.itemsize or x.value.dtype.kind == "c":
            return self._opaque(op, operands)
        value = np.array(x.value).view(dtype).reshape(x.value.shape)
        pair = fingerprint.seed_of("bits", *sorted((x.value.dtype.name, dtype.name)))
        prints = np.where(x.prints == fingerprint.of_constant(x.value), fingerprint.of_constant(value),
                          x.prints ^ pair)
        return self.tape.record("bits", operands, [(value, prints)], self._where(op))

    def _opaque(self, op: ir.Operation, operands: list[int]) -> Sequence[int]:
        """An op whose values the interpreter computes; nothing is said about its errors."""
        if not self.in_order:
            raise NoBound(f"no rule for {op.name.removeprefix('stablehlo.')}", location=self._where(op) or None)
        read = self._read(operands)
        values = eval_op(op, [(cells.value, value.type) for cells, value in zip(read, op.operands, strict=True)])
        whole = fingerprint.of_sum(self._seed(op), np.concatenate(
            [cells.prints.reshape(-1) for cells in read] or [np.zeros(1, np.uint64)]))
        made = [(value, fingerprint.of_op(self._seed(op), [
            fingerprint.of_leaf(fingerprint.seed_of(position), value.shape), whole]))
            for position, value in enumerate(values)]
        return self.tape.record("opaque", operands, made, self._where(op), op.name)

    # ---- control flow

    def _decided(self, op: ir.Operation, slot: int) -> int:
        self.tape.record("decision", [slot], [], self._where(op), op.name)
        return int(self.tape.cells[slot].value)

    def _while(self, op: ir.Operation, operands: list[int], environment: Environment) -> Sequence[int]:
        condition, body = (region.blocks[0] for region in op.regions)
        state = list(operands)
        # Ends: with the loop itself, which the interpreter has run; a tape that is full raises.
        while True:
            environment.update(zip(condition.arguments, state, strict=True))
            [more] = self.block(condition, environment)
            if not self._decided(op, more):
                return state
            environment.update(zip(body.arguments, state, strict=True))
            state = self.block(body, environment)

    def _case(self, op: ir.Operation, operands: list[int], environment: Environment) -> Sequence[int]:
        choice = self._decided(op, operands[0])
        if op.name == "stablehlo.if":
            choice = 0 if choice else 1
        regions = list(op.regions)
        chosen = choice if 0 <= choice < len(regions) else len(regions) - 1
        return self.block(regions[chosen].blocks[0], environment)

    def _call(self, op: ir.Operation, operands: list[int], environment: Environment) -> Sequence[int]:
        function = self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
        block = function.regions[0].blocks[0]
        return self.block(block, dict(zip(block.arguments, operands, strict=True)))

    def _map(self, op: ir.Operation, operands: list[int], environment: Environment) -> Sequence[int]:
        block = op.regions[0].blocks[0]
        return self.block(block, {**environment, **dict(zip(block.arguments, operands, strict=True))})


def _by_op(op: ir.Operation, name: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    return moved(name, partial(ints, op), shape_of(op.results[0]), operands)


def _plus_zero(prints: np.ndarray, a: TracedTensor, b: TracedTensor) -> np.ndarray:
    """Fingerprints of a sum; where one term is the constant zero, it is the other term."""
    zero = fingerprint.of_constant(np.zeros((), a.value.dtype))
    return np.where(a.prints == zero, b.prints, np.where(b.prints == zero, a.prints, prints))


_CONTROL = {"while": Replay._while, "if": Replay._case, "case": Replay._case, "func.call": Replay._call,
            "map": Replay._map}
_HANDLERS = {
    "constant": Replay._constant, "iota": Replay._constant, "compare": Replay._compare, "convert": Replay._convert,
    "select": Replay._select, "scatter": Replay._scatter, "bitcast_convert": Replay._bits,
    "dot_general": Replay._dot, "reduce": Replay._reduce, "convolution": Replay._convolution,
    "reduce_window": Replay._reduce_window,
    "dynamic_slice": Replay._dynamic_slice, "dynamic_update_slice": Replay._dynamic_update_slice,
    **dict.fromkeys(BY_ATTRIBUTES, Replay._static_move), **dict.fromkeys(sums.INTERPRETED, Replay._interpreted_move),
}
