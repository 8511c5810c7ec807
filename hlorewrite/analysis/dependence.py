"""Dependences that a compiler must keep: neither simplification nor loop-invariant code motion removes them.

A program that relies on its own collectives, as ``equal_trips`` does, needs to know which of them survive compilation.
XLA:CPU moves a collective out of a loop when its operand is invariant there, even if only simplification shows it
(``psum(x * (i * 0))``), and XLA drops a collective that nothing depends on (``while_loop_invariant_code_motion.cc``,
``algebraic_simplifier.cc``, ``hlo_dce.cc`` in openxla/xla).

So the question is not whether a value *reads* another one, but whether it depends on it under every compiler. The table
below claims this for a few operands of a few ops only. A value that no such dependence reaches may be constant,
invariant or dead, and counts as such.
"""

from collections.abc import Callable, Iterable, Sequence

from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.loops import counter_step, trip_count
from hlorewrite.ir import REDUCING, WITH_REPLICA_GROUPS, element_count, ir, is_private, op_key
from hlorewrite.ir.regions import BARRIER, BRANCHES, CALL, FUNCTION, MANUAL, WHILE, Loop, decision, region_op, returned
from hlorewrite.ir.view import View, defining_op, terminator
from hlorewrite.ops.attributes import splat_number
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.ops.table import DEVICE_IDS
from hlorewrite.util.reachability import postorder, reachable

_OF_ONE = frozenset(f"stablehlo.{name}" for name in (
    "negate", "convert", "reshape", "transpose", "broadcast_in_dim", "reverse", "slice", "abs", "sqrt", "rsqrt", "cbrt",
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "sine", "cosine", "floor",
    "ceil", "round_nearest_even", "round_nearest_afz", "reduce_precision"))
"""Ops that are functions of each element of their one operand, or move all or some of its elements."""
_CHOOSING = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.power")
_ARITHMETIC = ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.divide")
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")

Known = Callable[[ir.Value], bool]


class Dependence:
    """Answers which ops survive compilation; valid until the module changes.

    Args:
      view: the module.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._opaque: dict[ir.Value, bool] = {}
        self._live: set[ir.Value] | None = None
        self._changing: dict[int, set[int]] = {}

    def survives(self, op: ir.Operation, loop: Loop) -> bool:
        """Whether every compiler executes a collective in each iteration of a loop.

        Args:
          op: the collective, in the loop's body or condition.
          loop: the loop.

        Returns:
          True if one of its operands is known to change in the loop and a result of the program depends on it.
        """
        if self._live is None:
            self._live = self._needed()
        if not any(result in self._live and element_count(result.type) for result in op.results):
            return False  # XLA drops collectives of no elements too
        key = op_key(loop.op)
        if key not in self._changing:
            self._changing[key] = self._changing_slots(loop)
        return any(self._changes(operand, loop, self._changing[key]) for operand in op.operands)

    # ---- opaque values

    def opaque(self, root: ir.Value) -> bool:
        """Whether a value depends on an argument of the program or on a value that a loop changes, so it is not a
        constant.
        """
        if root not in self._opaque:
            values = _postorder(root, lambda value: [each for each in self._below(value) if each not in self._opaque])
            self._opaque.update(dict.fromkeys(values, False))
            grown = True
            # Ends: each round but the last finds an opaque value; what loops carry takes a second one.
            while grown:
                found = [value for value in values if not self._opaque[value] and self._found_opaque(value)]
                grown = bool(found)
        return self._opaque[root]

    def _found_opaque(self, value: ir.Value) -> bool:
        self._opaque[value] = self._is_opaque(value)
        return self._opaque[value]

    def _below(self, value: ir.Value) -> Sequence[ir.Value]:
        op = defining_op(value)
        if op is not None:
            if op.name == WHILE:
                return Loop(op).carried(ir.OpResult(value).result_number)
            return self._through(op, value) or [*op.operands, *self._of_branches(op, value)]
        argument, parent = ir.BlockArgument(value), region_op(value)
        if parent.name == WHILE:
            return Loop(parent).carried(argument.arg_number)
        return self._given(argument, parent)

    def _through(self, op: ir.Operation, value: ir.Value) -> list[ir.Value]:
        """The value that a result of a call or barrier forwards; empty for other ops."""
        position = ir.OpResult(value).result_number
        return (returned(op, position, self.view) or []) if op.name in (BARRIER, CALL) else []

    def _of_branches(self, op: ir.Operation, value: ir.Value) -> list[ir.Value]:
        """The value of a result in each branch; empty for other ops."""
        position = ir.OpResult(value).result_number
        return (returned(op, position, self.view) or []) if op.name in BRANCHES else []

    def _given(self, argument: ir.BlockArgument, parent: ir.Operation) -> list[ir.Value]:
        """The values that an argument of a function or manual region may take; empty if it comes from outside the
        module."""
        if parent.name == "func.func" and is_private(parent):
            return [call.operands[argument.arg_number] for call in self.view.calls_of(parent, in_order=False)]
        return [parent.operands[argument.arg_number]] if parent.name == MANUAL else []

    def _is_opaque(self, value: ir.Value) -> bool:
        known = self._opaque
        op = defining_op(value)
        if op is not None:
            if op.name == WHILE:
                return self._is_opaque_after(Loop(op), ir.OpResult(value).result_number)
            if op.name in BRANCHES:
                return known.get(op.operands[0], False) and any(
                    known.get(each, False) for each in self._of_branches(op, value))
            same = self._through(op, value)
            return op.name in DEVICE_IDS or any(
                known.get(each, False) for each in same or essential(op, lambda v: known.get(v, False)))
        argument, parent = ir.BlockArgument(value), region_op(value)
        if parent.name == WHILE:
            loop, slot = Loop(parent), argument.arg_number
            if loop.keeps(slot):
                return known.get(parent.operands[slot], False)
            return counter_step(loop, slot) is not None or any(known.get(each, False) for each in loop.carried(slot))
        if parent.name == "func.func" and not is_private(parent):
            return True
        given = self._given(argument, parent)
        return bool(given) and all(known.get(each, False) for each in given)

    def _is_opaque_after(self, loop: Loop, slot: int) -> bool:
        """Whether a result of a loop is opaque: after a known number of iterations, a counter is a constant."""
        kept = loop.keeps(slot)
        if not kept and trip_count(loop.op) is not None:
            return False
        return self._opaque.get(loop.op.operands[slot] if kept else loop.yields[slot], False)

    # ---- values that change in each iteration

    def _changing_slots(self, loop: Loop) -> set[int]:
        """The carried values of a loop that every compiler has to treat as changing."""
        slots = {slot for slot in range(len(loop.yields)) if counter_step(loop, slot) or self._accumulates(loop, slot)}
        grown = True
        # Ends: each round but the last adds a slot.
        while grown:
            more = {slot for slot, value in enumerate(loop.yields)
                    if slot not in slots and self._changes(value, loop, slots)}
            slots |= more
            grown = bool(more)
        return slots

    def _accumulates(self, loop: Loop, slot: int) -> bool:
        """Whether a carried value is what it was plus an opaque value, or a sum that reads what it was."""
        carried = loop.body.arguments[slot]
        update = defining_op(loop.yields[slot])
        if update is None:
            return False
        if update.name == "stablehlo.add" and _is_float(carried):
            rest = [operand for operand in update.operands if operand != carried] or [carried]
            if len(rest) == 1 and self.opaque(rest[0]):
                return True
        return any(self._changes(op.operands[0], loop, {slot}) for op in self._sums_read(loop, slot))

    def _sums_read(self, loop: Loop, slot: int) -> list[ir.Operation]:
        """The sums over groups of two or more in a loop's body that the next value of a slot depends on."""
        found: list[ir.Operation] = []
        for value in _postorder(loop.yields[slot], self._essential_in(loop)):
            op = defining_op(value)
            if op is not None and op.name in REDUCING and reduction_kind(op) == "sum" and _joins(op, self.view):
                found.append(op)
        return found

    def _essential_in(self, loop: Loop) -> Callable[[ir.Value], Sequence[ir.Value]]:
        """The values that values of a loop depend on, back to the loop's own arguments."""
        own = (loop.body, loop.condition)

        def below(value: ir.Value) -> Sequence[ir.Value]:
            op = defining_op(value)
            if op is not None:
                return self._through(op, value) or essential(op, self.opaque)
            argument, parent = ir.BlockArgument(value), region_op(value)
            if argument.owner in own or parent.name == WHILE:
                return ()
            return self._given(argument, parent)
        return below

    def _changes(self, root: ir.Value, loop: Loop, slots: set[int]) -> bool:
        """Whether a value depends on one of some carried values, for every call of the function that computes it."""
        below = self._essential_in(loop)
        known: dict[ir.Value, bool] = {}
        for value in _postorder(root, below):
            if isinstance(value, ir.BlockArgument) and value.owner in (loop.body, loop.condition):
                known[value] = value.arg_number in slots
                continue
            sources = [known.get(each, False) for each in below(value)]
            of_calls = defining_op(value) is None
            known[value] = bool(sources) and (all(sources) if of_calls else any(sources))
        return known[root]

    # ---- values that results depend on

    def _needed(self) -> set[ir.Value]:
        """All values that a result of a public function depends on."""
        results = (value for function in self.view.functions.values()
                   if not is_private(function) and len(function.regions[0].blocks) == 1
                   for value in terminator(function.regions[0].blocks[0]).operands)
        return set(reachable(results, self._needs))

    def _needs(self, value: ir.Value) -> Iterable[ir.Value]:
        op = defining_op(value)
        if op is None:
            argument, parent = ir.BlockArgument(value), region_op(value)
            return Loop(parent).carried(argument.arg_number) if parent.name == WHILE else self._given(argument, parent)
        position, decides = ir.OpResult(value).result_number, decision(op)
        if op.name == WHILE:
            return Loop(op).predicate, *Loop(op).carried(position)
        try:
            sources = returned(op, position, self.view)
        except ValueError:  # a pass at work has put the step into a loop (partial-state)
            return []
        if sources is None:
            return essential(op, self.opaque)
        return sources if decides is None else [decides, *sources]


def essential(op: ir.Operation, opaque: Known) -> list[ir.Value]:
    """The operands that the results of an op depend on under every compiler.

    Args:
      op: any op but loops, branches, calls and barriers.
      opaque: whether an operand is not a constant, however it is simplified.

    Returns:
      Some of the op's operands; none for an op that is not in the table.
    """
    name = op.name
    if name in _OF_ONE or name in WITH_REPLICA_GROUPS:
        return list(op.operands)
    if name in _ARITHMETIC:
        return _of_arithmetic(op, opaque)
    if name in _CHOOSING or name in ("stablehlo.and", "stablehlo.or"):
        return list(op.operands) if op.operands[0] != op.operands[1] and all(map(opaque, op.operands)) and (
            name not in ("stablehlo.and", "stablehlo.or") or _is_boolean(op.operands[0])) else []
    if name == "stablehlo.compare":
        return _of_comparison(op, opaque)
    if name == "stablehlo.select":
        chosen = op.operands[1] != op.operands[2] and opaque(op.operands[0])
        return list(op.operands) if chosen else []
    if name in _PRODUCTS:
        return list(op.operands) if all(map(opaque, op.operands)) else []
    if name == "stablehlo.reduce":
        return [op.operands[0]] if len(op.results) == 1 and reduction_kind(op) == "sum" else []
    if name == "stablehlo.dynamic_slice":
        return _of_slice(op, opaque)
    if name == "stablehlo.dynamic_update_slice":
        return [op.operands[1]] if any(map(opaque, op.operands[2:])) else []
    return []


def _of_arithmetic(op: ir.Operation, opaque: Known) -> list[ir.Value]:
    """The opaque operands: all of them for float sums, for other ops those next to a number that does not absorb.

    XLA cancels integer terms, so both operands of an integer sum may drop out.
    """
    name, (left, right) = op.name, op.operands
    of_floats, sums = _is_float(left), name in ("stablehlo.add", "stablehlo.subtract")
    unknown = [operand for operand in (left, right) if opaque(operand)]
    if left == right:
        return unknown[:1] if of_floats and name in ("stablehlo.add", "stablehlo.multiply") else []
    if not unknown:
        return []
    if of_floats and (sums or len(unknown) == 2):
        return unknown
    number = _filled_with(right if unknown[0] == left else left)
    if len(unknown) == 2 or number is None or number != number:
        return []
    absorbs = name != "stablehlo.multiply" or number % 2 == 0  # of integers; an odd factor is invertible
    if of_floats:
        absorbs = number in (0, float("inf"), float("-inf"))
    return [] if absorbs and not sums else unknown


def _of_comparison(op: ir.Operation, opaque: Known) -> list[ir.Value]:
    """XLA decides comparisons of unsigned numbers with zero, and with the least or greatest number of a type."""
    left, right = op.operands
    if left == right or all(map(opaque, op.operands)):
        return [] if left == right else [left, right]
    kept, constant = (left, right) if opaque(left) else (right, left)
    number = _filled_with(constant)
    element = ir.RankedTensorType(kept.type).element_type
    if not opaque(kept) or not isinstance(element, ir.IntegerType) or element.is_unsigned or number is None:
        return []
    return [kept] if abs(number) < (1 << element.width - 1) - 1 else []


def _of_slice(op: ir.Operation, opaque: Known) -> list[ir.Value]:
    """For a slice at an index: the operand, and also the index if the operand is an array from outside the program."""
    operand, starts = op.operands[0], list(op.operands)[1:]
    if not opaque(operand):
        return []
    whole, part = (ir.RankedTensorType(value.type).shape for value in (operand, op.results[0]))
    moving = [start for start, n, k in zip(starts, whole, part, strict=True) if k < n and opaque(start)]
    return [operand, *(moving if _is_given(operand) else ())]


def _is_given(value: ir.Value) -> bool:
    """Whether a value is an argument, moved, converted or carried unchanged: its elements are not all one number."""
    # Ends: each step goes to an operand, or out of a loop or region.
    while True:
        op = defining_op(value)
        if op is not None and op.name in ("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose"):
            value = op.operands[0]
            continue
        if op is not None:
            return False
        argument, parent = ir.BlockArgument(value), region_op(value)
        if parent.name == FUNCTION:
            return not is_private(parent)
        if parent.name not in (WHILE, MANUAL) or (parent.name == WHILE and not Loop(parent).keeps(argument.arg_number)):
            return False
        value = parent.operands[argument.arg_number]


def _filled_with(value: ir.Value) -> float | int | bool | None:
    """The number that a constant is filled with, looking through broadcasts and reshapes."""
    op = defining_op(value)
    # Ends: each step goes to an operand.
    while op is not None and op.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        op = defining_op(op.operands[0])
    return None if op is None else splat_number(op)


def _joins(op: ir.Operation, view: View) -> bool:
    """Whether each group of a collective has two members or more; XLA drops a sum over one."""
    groups = groups_of(op, view)
    return isinstance(groups, Groups) and all(len(row) > 1 for row in groups.rows)


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType)


def _is_boolean(value: ir.Value) -> bool:
    return str(ir.RankedTensorType(value.type).element_type) == "i1"


def _postorder(root: ir.Value, below: Callable[[ir.Value], Iterable[ir.Value]]) -> list[ir.Value]:
    return postorder([root], below) or []
