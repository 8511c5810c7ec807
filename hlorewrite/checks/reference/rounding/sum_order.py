"""The sums of a module, without its values: for each value, the ops it is computed from and the depth of its sums.

It is the error analysis of `bounds.py` for whole tensors, where no element is known. A value that the other module
computes by the same ops has no error. Each op after it adds its roundings, relative to the sum of the magnitudes of the
terms. With n roundings in a row a sum of products is off by at most ``n u`` of that sum, to first order (Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd edition, section 3.1). A loop adds what one iteration adds, as
often as it runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlorewrite.analysis.groups import device_count, groups_of
from hlorewrite.analysis.loops import trip_count
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.rounding.eval_op import attribute_names, region_texts
from hlorewrite.checks.reference.rounding.fingerprint import seed_of
from hlorewrite.checks.reference.rounding.op_errors import ROUNDINGS
from hlorewrite.checks.reference.rounding.sums import body_op, product_of, reduction_of, window_terms
from hlorewrite.checks.reference.rounding.units import float_format
from hlorewrite.ir import BRANCHES, CHANNEL, COLLECTIVES, REDUCING, Loop, View, ir, op_key, source_line, symbol_name
from hlorewrite.ops.attributes import scatter_numbers
from hlorewrite.ops.table import COMMUTATIVE, ROUNDS_NOTHING, SAME, TERMINATORS

# ---- how much each op adds to the relative error of sums, from types and attributes alone


_FIRST_ONLY = frozenset({"dynamic_slice", "pad", "gather"})
_ELEMENTS = ROUNDS_NOTHING - {"stablehlo.select"} | {"stablehlo.custom_call"}
_MOVING = frozenset(name.removeprefix("stablehlo.") for name in COLLECTIVES if name not in REDUCING)
_MARKS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape")


@dataclass(frozen=True)
class Summed:
    """What is known about a value without its elements.

    Attributes:
      key: the ops and inputs it is computed from, as a number.
      error: by how much it may be off, relative to the sum of the magnitudes of its terms, to first order; infinite
        where nothing is known.
      carried: how often a value that a loop carries is a factor of a term.
      longest: terms of the longest sum.
      wires: element types of the reductions between devices.
      ended: the op after which the error is no longer one of sums, with its line; empty if there is none.
      before: the error of the operands of that op.
    """

    key: int
    error: float = 0.0
    carried: float = 0.0
    longest: int = 0
    wires: frozenset[str] = frozenset()
    ended: str = ""
    before: float = 0.0

    @property
    def most(self) -> float:
        """The largest error of a sum on the path."""
        return max(self.error, self.before)


def merged(key: int, values: Sequence[Summed], *, product: bool = False) -> Summed:
    """The error of values that are terms of one sum, or factors of one product."""
    join = sum if product else max
    worst = max(values, key=lambda each: each.before, default=Summed(0))
    return Summed(key, float(join([v.error for v in values] or [0])), float(join([v.carried for v in values] or [0])),
                  longest=max((v.longest for v in values), default=0),
                  wires=frozenset().union(*(v.wires for v in values)),
                  ended=worst.ended or next((v.ended for v in values if v.ended), ""), before=worst.before)


def result_of(op: ir.Operation, operands: Sequence[Summed], kind: ir.Type, key: int, view: View) -> Summed:
    """How an op without control-flow regions changes its operands' errors.

    Args:
      op: the op.
      operands: the same facts about its operands.
      kind: the type of the result.
      key: the key of the result.
      view: the view of the module, for its devices and meshes.
    """
    name = op.name.removeprefix("stablehlo.")
    unit = _unit(kind)
    if name in ("add", "subtract"):
        return _rounded(merged(key, operands), unit, 2)
    if name == "multiply":
        return _rounded(merged(key, operands, product=True), unit)
    if name == "convert":
        source = _unit(op.operands[0].type)
        return _rounded(merged(key, operands), 0.0 if source and unit <= source else unit)
    if name == "divide" and not operands[1].error:
        return _rounded(merged(key, operands), unit)
    if name in _SUMS:
        return _sum_of(op, name, operands, unit, key, kind, view=view)
    if name == "select" and not operands[0].error:
        return merged(key, operands[1:])
    if op.name in _ELEMENTS or name in _MOVING or op.name.startswith("sdy."):
        indices = operands[1:] if name in _FIRST_ONLY - {"pad"} else ()
        marks = name != "custom_call" or ir.StringAttr(op.attributes["call_target_name"]).value in _MARKS
        if marks and not any(each.error for each in indices):
            return merged(key, operands)
    return _ended(op, operands, key, unit * ROUNDINGS.get(name, 2.0))


def _ended(op: ir.Operation, operands: Sequence[Summed], key: int, own: float) -> Summed:
    """The result of an op that is not linear: its operands' errors are named, and counting starts again."""
    made = merged(key, operands)
    if not made.error and not made.carried:
        return replace(made, error=own)
    place = source_line(op.location)
    name = op.name.removeprefix("stablehlo.") + (f" ({place})" if place else "")
    keep = made.before >= made.error and made.ended
    return Summed(key, own, 0.0, longest=made.longest, wires=made.wires, ended=made.ended if keep else name,
                  before=made.most)


def _rounded(value: Summed, error: float, terms: int = 0) -> Summed:
    return replace(value, error=value.error + error, longest=max(value.longest, terms))


def _sum_of(op: ir.Operation, name: str, operands: Sequence[Summed], unit: float, key: int, kind: ir.Type,
            *, view: View) -> Summed:
    if name in ("dot_general", "convolution"):
        terms = product_of(op).terms if name == "dot_general" else window_terms(op)
        narrow = any(_unit(value.type) > unit for value in op.operands)
        return _rounded(merged(key, operands, product=True), unit * (terms + 2 * narrow), terms)
    by = body_op(op)
    if by in ("maximum", "minimum", "and", "or"):
        return merged(key, operands)
    if by != "add":
        return _ended(op, operands, key, 2 * unit)
    if name == "reduce":
        form = reduction_of(op)
        return _ended(op, operands, key, unit) if form is None else \
            _rounded(merged(key, operands), unit * form.terms, form.terms)
    if name == "reduce_window":
        terms = window_terms(op)
        return _ended(op, operands, key, unit) if len(op.operands) != 2 else \
            _rounded(merged(key, operands), unit * terms, terms)
    if name == "scatter":
        numbers = scatter_numbers(op)
        window = set(numbers.update_window_dims)
        shape = ir.RankedTensorType(op.operands[2].type).shape
        terms = math.prod(size for axis, size in enumerate(shape) if axis not in window)
        made = merged(key, [operands[0], *operands[2:]])
        return _ended(op, operands, key, unit) if operands[1].error else _rounded(made, unit * terms, terms)
    groups = groups_of(op, view)
    members = (device_count(view) if isinstance(groups, str) else groups.size) or 0
    if not members:
        return _ended(op, operands, key, unit)
    made = _rounded(merged(key, operands), unit * (members - 1), members)
    return replace(made, wires=made.wires | {str(ir.RankedTensorType(kind).element_type)})


_SUMS = frozenset({"dot_general", "convolution", "reduce", "reduce_window", "scatter",
                   *(name.removeprefix("stablehlo.") for name in REDUCING)})


def _unit(kind: ir.Type) -> float:
    """The unit roundoff of a tensor's elements; 0 of integers."""
    try:
        form = float_format(np.dtype(dtype_of(kind)))
    except Exception:  # a token, or a type that numpy lacks
        return 0.0
    return 0.0 if form is None else form.unit


# ---- the sums of a module


_LEFT_OUT = frozenset({CHANNEL, "sym_name", "callee", "precision_config"})
Environment = dict[ir.Value, Summed]


@dataclass
class OrderWalk:
    """One walk over a module.

    Args:
      module: the view of it.
      shared: keys of the other module's values; None while keys are collected.
    """

    module: View
    shared: frozenset[int] | None = None
    keys: set[int] = field(default_factory=set)
    _seeds: dict[int, int] = field(default_factory=dict)
    _calls: dict[object, list[Summed]] = field(default_factory=dict)
    _placing: bool = False

    def outputs(self, function: ir.Operation) -> list[Summed]:
        """What is known about a function's results."""
        block = function.regions[0].blocks[0]
        return self._block(block, {argument: self._made(Summed(_key("input", position)))
                                   for position, argument in enumerate(block.arguments)})

    def _made(self, value: Summed) -> Summed:
        """A value: without an error where the other module computes it alike."""
        if self._placing:
            return value
        self.keys.add(value.key)
        return Summed(value.key) if self.shared is not None and value.key in self.shared else value

    def _block(self, block: ir.Block, environment: Environment) -> list[Summed]:
        for each in block.operations:
            op = each.operation
            if op.name in TERMINATORS:
                return [environment[value] for value in op.operands]
            operands = [environment[value] for value in op.operands]
            environment.update(zip(op.results, self._op(op, operands, environment), strict=True))
        return []

    def _op(self, op: ir.Operation, operands: list[Summed], environment: Environment) -> Sequence[Summed]:
        if op.name in SAME or (op.name == "stablehlo.convert" and op.operands[0].type == op.results[0].type):
            return operands
        if op.name == "func.call":
            return self._call(op, operands)
        if op.name == "stablehlo.while":
            return self._while(op, operands, environment)
        if op.name in BRANCHES:
            return self._branches(op, operands, environment)
        if op.name == "sdy.manual_computation":
            return self._manual(op, operands, environment)
        keys = [each.key for each in operands]
        key = _key(self._seed(op), *(sorted(keys) if op.name in COMMUTATIVE else keys))
        return [self._made(result_of(op, operands, value.type, _key(key, position) if position else key,
                                     self.module))
                for position, value in enumerate(op.results)]

    def _seed(self, op: ir.Operation) -> int:
        key = op_key(op)
        if key not in self._seeds:
            names = [name for name in attribute_names(op) if "." not in name and name not in _LEFT_OUT]
            self._seeds[key] = _key(op.name, *[f"{name}={op.attributes[name]}" for name in names],
                                    *[value.type for value in op.results], *region_texts(op))
        return self._seeds[key]

    def _call(self, op: ir.Operation, operands: list[Summed]) -> list[Summed]:
        called = self.module.callee(op)
        if called is None or not called.regions[0].blocks:
            return [replace(merged(_key("call", position, *[v.key for v in operands]), operands), ended="a call")
                    for position in range(len(op.results))]
        memo = (symbol_name(called), tuple(operands), self._placing)
        if memo not in self._calls:
            block = called.regions[0].blocks[0]
            self._calls[memo] = self._block(block, dict(zip(block.arguments, operands, strict=True)))
        return self._calls[memo]

    def _branches(self, op: ir.Operation, operands: list[Summed], environment: Environment) -> list[Summed]:
        rows = [self._block(region.blocks[0], environment) for region in op.regions]
        made = []
        for position, values in enumerate(zip(*rows, strict=True)):
            key = _key(op.name, position, operands[0].key, *[v.key for v in values])
            made.append(self._made(merged(key, [*values, operands[0]])))
        return made

    def _manual(self, op: ir.Operation, operands: list[Summed], environment: Environment) -> list[Summed]:
        block = op.regions[0].blocks[0]
        inside = [str(op.attributes[name]) for name in ("in_shardings", "manual_axes")]
        environment.update({argument: self._made(replace(value, key=_key("manual", *inside, position, value.key)))
                            for position, (argument, value) in enumerate(zip(block.arguments, operands, strict=True))})
        outside = str(op.attributes["out_shardings"])
        return [self._made(replace(value, key=_key("global", outside, position, value.key)))
                for position, value in enumerate(self._block(block, environment))]

    # ---- loops

    def _while(self, op: ir.Operation, operands: list[Summed], environment: Environment) -> list[Summed]:
        loop, trips = Loop(op), trip_count(op)
        symbols, reaches = self._symbols(loop, operands, environment)
        first = self._body(loop, [Summed(symbol, carried=1.0) for symbol in symbols], environment)
        alike = [self._known(symbol) for symbol in symbols]
        count = float("inf") if trips is None else float(trips)
        total: list[Summed] = []
        for position, symbol in enumerate(symbols):
            reached = [k for k in _bits(reaches[position]) if not alike[k]]
            grows = max((first[k].error for k in reached), default=0.0)
            if max((first[k].carried for k in reached), default=0.0) > 1:
                grows = float("inf")
            begun = max((operands[k].error for k in reached), default=0.0)
            longest = trips or 0 if grows else 0
            error = begun + (count * grows if grows else 0.0)
            beside = merged(symbol, [*(first[k] for k in reached), *(operands[k] for k in reached)])
            total.append(replace(beside, error=error, carried=0.0, longest=max(beside.longest, longest)))
        if any(each.error for each in total):
            last = self._body(loop, total, environment)
            total = [_after(value, end) if not same else value
                     for value, end, same in zip(total, last, alike, strict=True)]
        return [self._made(replace(value, key=_key("result", value.key))) for value in total]

    def _known(self, key: int) -> bool:
        return self.shared is not None and key in self.shared

    def _body(self, loop: Loop, values: Sequence[Summed], environment: Environment) -> list[Summed]:
        environment.update({argument: self._made(value)
                            for argument, value in zip(loop.body.arguments, values, strict=True)})
        return self._block(loop.body, environment)

    def _symbols(self, loop: Loop, operands: list[Summed], environment: Environment) -> tuple[list[int], list[int]]:
        """A key for each carried value, and the carried values it is computed from, as bits.

        Two loops carry the same values where those begin the same and each iteration computes them by the same ops from
        the same values; their positions do not matter.
        """
        places, ranks = [], {}
        for value, start in zip(loop.body.arguments, operands, strict=True):
            kind = (start.key, str(value.type))
            places.append(_key("carried", *kind, ranks.get(kind, 0)))
            ranks[kind] = ranks.get(kind, 0) + 1
        outer, self._placing = self._placing, True
        begin = [Summed(place) for place in places]
        ends = self._body(loop, begin, environment)
        environment.update(zip(loop.condition.arguments, begin, strict=True))
        [goes_on] = self._block(loop.condition, environment)
        self._placing = outer
        reaches = reached_arguments(loop)
        steps = [_key(place, end.key) for place, end in zip(places, ends, strict=True)]
        sums = {mask: sum(steps[k] for k in _bits(mask)) for mask in set(reaches)}
        return [_key("loop", goes_on.key, place, sums[mask])
                for place, mask in zip(places, reaches, strict=True)], reaches


def reached_arguments(loop: Loop) -> list[int]:
    """For each carried value, the carried values from which it or the number of iterations is computed, as bits."""
    direct = _masks(loop.body)
    count = len(direct)
    decides = _masks(loop.condition)[0]
    reaches = [mask | decides | 1 << position for position, mask in enumerate(direct)]
    # Ends: bits are only added.
    while True:
        wider = [_union(mask, reaches) for mask in reaches]
        if wider == reaches:
            return wider[:count]
        reaches = wider


def _union(mask: int, reaches: list[int]) -> int:
    for position in _bits(mask):
        mask |= reaches[position]
    return mask


def _masks(block: ir.Block) -> list[int]:
    """For each operand of a block's terminator, the arguments of the block it is computed from, as bits."""
    masks: dict[ir.Value, int] = {argument: 1 << position for position, argument in enumerate(block.arguments)}
    for each in block.operations:
        op, read = each.operation, 0
        for value in _operands(op):
            read |= masks.get(value, 0)
        if op.name in TERMINATORS:
            return [masks.get(value, 0) for value in op.operands]
        masks.update((result, read) for result in op.results)
    return []


def _operands(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op and of the ops inside it."""
    inside = [value for region in op.regions for block in region.blocks for each in block.operations
              for value in _operands(each.operation)]
    return [*op.operands, *inside]


def _after(value: Summed, end: Summed) -> Summed:
    """A loop's result, with what the last iteration says about ops that end sums."""
    if not end.ended or end.before <= value.before:
        return value
    return replace(value, ended=end.ended, before=end.before, wires=value.wires | end.wires)


def _bits(mask: int) -> list[int]:
    return [position for position in range(mask.bit_length()) if mask >> position & 1]


def _key(*parts: object) -> int:
    return int(seed_of(*parts))
