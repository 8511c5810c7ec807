"""What XLA miscompiles: releases and the pass at fault in each, and the loops that the pass rewrites wrongly."""

from collections.abc import Iterator
from dataclasses import dataclass

from hlorewrite.analysis.groups import groups_of
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import ALL_REDUCE, Loop, View, defining_op, ir, terminator
from hlorewrite.ops.reducers import is_identity, reduction_kind

# ---- releases of XLA that miscompile some programs, and the pass of XLA at fault in each


CODE_MOTION = "while-loop-all-reduce-code-motion"
"""The pass that moves all-reduces out of loops; always on for GPU."""
GPU_PLATFORMS = ("gpu", "cuda", "rocm")


@dataclass(frozen=True)
class Miscompilation:
    """A form of program that XLA on GPU gets wrong.

    Attributes:
      form: its short name.
      what: what the program does.
      wrong: what XLA makes of it.
      first: first jaxlib release with the fault; None when it is in every release since the pass exists.
      last: last jaxlib release with the fault; None when the newest source read still has it.
      source: where the fault is documented.
    """

    form: str
    what: str
    wrong: str
    first: tuple[int, int, int] | None
    last: tuple[int, int, int] | None
    source: str

    def affects(self, version: tuple[int, ...]) -> bool:
        """Whether a release of jaxlib has the fault.

        Example:
          >>> MISCOMPILATIONS["X"].affects((0, 10, 2)), MISCOMPILATIONS["X"].affects((0, 12, 0))
          (True, False)
        """
        version = tuple(version[:3])
        return (self.first is None or version >= self.first) and (self.last is None or version <= self.last)

    @property
    def versions(self) -> str:
        """The affected releases in words.

        Example:
          >>> MISCOMPILATIONS["X"].versions, MISCOMPILATIONS["U3"].versions
          ('jaxlib 0.10.1 to 0.11.2', 'every jaxlib up to 0.11.2 and, as far as its source is known, later ones')
        """
        first = ".".join(map(str, self.first)) if self.first else None
        last = ".".join(map(str, self.last)) if self.last else None
        if first and last:
            return f"jaxlib {first} to {last}"
        since = f"jaxlib {first} to 0.11.2" if first else "every jaxlib up to 0.11.2"
        return f"{since} and, as far as its source is known, later ones"


_PASS_SOURCE = "xla/service/while_loop_all_reduce_code_motion.cc"
MISCOMPILATIONS = {each.form: each for each in (
    Miscompilation("X", "a loop scatters into its accumulator, selected by a predicate that differs between devices, "
                   "and all-reduces the result",
                   "the all-reduce leaves the loop and the select stays: the deselected devices keep only their last "
                   "iteration", (0, 10, 1), (0, 11, 2), "openxla/xla#49143, fixed by openxla/xla#49182"),
    Miscompilation("W", "a loop scatters into its accumulator and all-reduces accumulator and updates together",
                   "the all-reduce leaves the loop, so the accumulator is no longer added up in every iteration",
                   (0, 10, 1), None, _PASS_SOURCE),
    Miscompilation("U2", "a loop accumulates a reduced value under a select whose predicate differs between devices",
                   "outside the loop, the all-reduce also adds the contributions of the deselected devices", None, None,
                   _PASS_SOURCE),
    Miscompilation("U3", "a loop accumulates a reduced value, and its condition reads the accumulator",
                   "the all-reduce leaves the loop, so the condition sees only the sums of one device", None, None,
                   f"{_PASS_SOURCE}, TODO(b/276505779)"),
)}
"""The known forms, by name."""


# ---- finds loops that XLA's ``while-loop-all-reduce-code-motion`` rewrites into something else

# It follows what that pass accepts: a sum all-reduce of one array whose result reaches the next value of a carried one
# through ops the pass looks through, that value being read nowhere else in the body. Calls must be inlined, as XLA:GPU
# does before.


_LOOP = "stablehlo.while"
_MOVES = {"stablehlo.convert", "stablehlo.bitcast_convert", "stablehlo.reshape", "stablehlo.transpose"}
_ON_RESULT = _MOVES | {"stablehlo.slice", "stablehlo.broadcast_in_dim"}
_TO_YIELD = _MOVES | {"stablehlo.slice", "stablehlo.dynamic_update_slice"}
_FROM_CARRIED = _MOVES | {"stablehlo.dynamic_slice"}
_ELEMENTS = ("bf16", "f16", "f32", "f64", *(f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


@dataclass(frozen=True)
class Hazard:
    """One all-reduce that XLA moves wrongly.

    Attributes:
      kind: the known form.
      location: source line of the all-reduce.
      reason: what makes it this form here.
    """

    kind: Miscompilation
    location: str
    reason: str


def find_hazards(view: View) -> list[Hazard]:
    """The all-reduces of a module that XLA on GPU would move wrongly, in the order of the module.

    Args:
      view: the module; reductions inside called functions are not seen, so inline first.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> find_hazards(View(parse("func.func @main() { return }")))
      []
    """
    return [hazard for op, loop, uniformity in _candidates(view) for hazard in _hazards_of(op, loop, uniformity, view)]


def moved_out(view: View) -> list[ir.Operation]:
    """The all-reduces that the pass moves out of their loop because the loop adds them up, rightly or wrongly.

    Args:
      view: the module, its calls inlined.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> moved_out(View(parse("func.func @main() { return }")))
      []
    """
    return [op for op, loop, uniformity in _candidates(view)
            if _accumulations(op.results[0], loop, uniformity) is not None]


def _candidates(view: View) -> Iterator[tuple[ir.Operation, Loop, Uniformity]]:
    """The all-reduces in loops that the pass looks at: those of one array, sums, over several devices."""
    known: dict[object, Uniformity] = {}
    for op in view.ops(ALL_REDUCE.op):
        loop, groups = _loop_around(op), groups_of(op, view)
        if loop is None or isinstance(groups, str) or groups.size < 2:
            continue
        if len(op.operands) == 1 and reduction_kind(op) == "sum" and _is_moved_type(op.operands[0].type):
            if groups.key not in known:
                known[groups.key] = Uniformity(view, groups)
            yield op, loop, known[groups.key]


def _loop_around(op: ir.Operation) -> Loop | None:
    """The loop whose body contains an op directly."""
    parent = op.block.owner.operation
    return Loop(parent) if parent.name == _LOOP and op.block == Loop(parent).body else None


def _is_moved_type(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and str(type_.element_type) in _ELEMENTS


def _hazards_of(op: ir.Operation, loop: Loop, uniformity: Uniformity, view: View) -> Iterator[Hazard]:
    scattered = _scattered(op, loop, uniformity)
    if scattered is not None:
        form, reason = scattered
        yield Hazard(MISCOMPILATIONS[form], view.place(op), reason)
        return
    ends = _accumulations(op.results[0], loop, uniformity)
    if ends is None:
        return
    for position, reason in ends:
        if reason is not None:
            yield Hazard(MISCOMPILATIONS["U2"], view.place(op), reason)
        if next(iter(loop.condition.arguments[position].uses), None) is not None:
            yield Hazard(MISCOMPILATIONS["U3"], view.place(op),
                         f"the condition of the loop at {view.place(loop.op)} reads the accumulator")


# ---- the scatter forms


def _scattered(op: ir.Operation, loop: Loop, uniformity: Uniformity) -> tuple[str, str] | None:
    """The form of ``buffer = AR(move*(scatter(select*(buffer, 0), ...)))``; None when it is none."""
    scatter = _back(op.operands[0], _MOVES | {"stablehlo.slice"})
    if scatter is None or scatter.name != "stablehlo.scatter" or len(scatter.results) != 1:
        return None
    position = _yielded_at(op.results[0], loop, _MOVES)
    if position is None:
        return None
    value, reader, varying = scatter.operands[0], scatter, None
    # Ends: each step goes to an operand, and SSA values form no circle within a block.
    while (select := defining_op(value)) is not None and select.name == "stablehlo.select":
        kept = [v for v in list(select.operands)[1:] if not is_identity(v, "sum")]
        if len(kept) != 1:
            return None
        varying = varying or uniformity.varying(select.operands[0])
        value, reader = kept[0], select
    if value != loop.body.arguments[position] or _readers(value) != [reader]:
        return None
    if varying is not None:
        return "X", f"the predicate of the select differs between devices of a group: {varying.sentence}"
    return "W", "every device contributes the whole accumulator to each all-reduce"


# ---- the accumulation forms


def _accumulations(value: ir.Value, loop: Loop, uniformity: Uniformity) -> list[tuple[int, str | None]] | None:
    """Where a reduced value is accumulated: (carried position, why a select on the way is wrong to pass).

    None when it is read in any other way, since the pass then leaves it alone.
    """
    ends: list[tuple[int, str | None]] = []
    pending: list[tuple[ir.Value, str | None]] = [(value, None)]
    # Ends: each step goes to a reader after it in the block, along one operand.
    while pending:
        current, reason = pending.pop()
        uses = [(use.owner.operation, use.operand_number) for use in current.uses]
        if not uses:
            return None
        for reader, operand in uses:
            if reader.block != loop.body:
                return None
            scaled = reader.name == "stablehlo.multiply" and _is_scalar_spread(reader.operands[1 - operand])
            if scaled or reader.name in _ON_RESULT:
                pending.append((reader.results[0], reason))
            elif reader.name == "stablehlo.select" and operand > 0 and is_identity(reader.operands[3 - operand], "sum"):
                varying = uniformity.varying(reader.operands[0])
                pending.append((reader.results[0], reason or (
                    f"the predicate of the select differs between devices of a group: {varying.sentence}"
                    if varying is not None else None)))
            else:
                position = _accumulated_at(reader, operand, loop)
                if position is None:
                    return None
                ends.append((position, reason))
    return ends


def _is_scalar_spread(value: ir.Value) -> bool:
    """Whether a factor is a broadcast scalar all-reduce, the only one the pass looks through."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.broadcast_in_dim" or ir.RankedTensorType(op.operands[0].type).rank:
        return False
    source = _back(op.operands[0], {"stablehlo.convert"})
    return source is not None and source.name == ALL_REDUCE.op


def _accumulated_at(add: ir.Operation, operand: int, loop: Loop) -> int | None:
    """The carried position of ``buffer + value``, when the buffer is read for that only."""
    if add.name != "stablehlo.add" or add.operands[0] == add.operands[1]:
        return None
    position = _yielded_at(add.results[0], loop, _TO_YIELD)
    if position is None:
        return None
    value, reader, sliced = add.operands[1 - operand], add, False
    # Ends: each step goes to an operand.
    while (op := defining_op(value)) is not None and op.name in _FROM_CARRIED:
        sliced = sliced or op.name == "stablehlo.dynamic_slice"
        value, reader = op.operands[0], op
    if value != loop.body.arguments[position]:
        return None
    readers = [r for r in _readers(value) if r != reader]
    return position if not readers or (sliced and all(r.name == "stablehlo.dynamic_update_slice" for r in readers)
                                       ) else None


# ---- chains


def _back(value: ir.Value, through: set[str]) -> ir.Operation | None:
    """The op a value comes from, through ops with one operand that are read once."""
    op = defining_op(value)
    # Ends: each step goes to an operand.
    while op is not None and op.name in through and len(_readers(op.results[0])) == 1:
        op = defining_op(op.operands[0])
    return op


def _yielded_at(value: ir.Value, loop: Loop, through: set[str]) -> int | None:
    """The position in which the loop carries a value on, if nothing else reads the value."""
    end = terminator(loop.body)
    # Ends: each step goes to a reader after it in the block.
    while True:
        uses = [(use.owner.operation, use.operand_number) for use in value.uses]
        if len(uses) != 1:
            return None
        reader, operand = uses[0]
        if reader == end:
            return operand
        update = reader.name == "stablehlo.dynamic_update_slice"
        if reader.name not in through or operand != (1 if update else 0):
            return None
        value = reader.results[0]


def _readers(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]
