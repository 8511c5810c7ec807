"""merge-statistics: sums over devices that wait for one another, as those of a batch norm do, wait no longer."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from hlorewrite.analysis.groups import Groups, groups_of, rows_attribute
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.ir import (
    ALL_GATHER,
    ALL_REDUCE,
    Editor,
    Module,
    View,
    defining_op,
    element_type,
    has_side_effect,
    ir,
    is_static_tensor,
    tensor_bytes,
    tensor_type,
)
from hlorewrite.ops.attributes import ints, shape_of
from hlorewrite.ops.reducers import is_identity, reduction_kind
from hlorewrite.passes.common.emit import add_reducer, integer_attribute, repeated, splat_constant
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passmanager.base import Pass, PassContext

_TYPES = ("f32", "f64")
"""Element types for sums of larger terms: squares, or products without a factor that makes them small. They count
``_MOST_ELEMENTS`` exactly."""
_MOST_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class _SumOverDevices:
    """An all-reduce of what each device sums over some dimensions.

    Attributes:
      op: the all-reduce.
      local: the reduce that makes its operand.
      terms: what each device sums.
      dims: the dimensions that it sums over.
      groups: the devices that take part.
    """

    op: ir.Operation
    local: ir.Operation
    terms: ir.Value
    dims: tuple[int, ...]
    groups: Groups

    @property
    def kept(self) -> list[int]:
        """The dimensions of the terms that the sum has."""
        return [dim for dim in range(len(shape_of(self.terms))) if dim not in self.dims]

    @property
    def count(self) -> int:
        """How many terms each device adds to one element of the sum."""
        return math.prod(shape_of(self.terms)[dim] for dim in self.dims)

    def repeated(self, value: ir.Value) -> ir.Value | None:
        """The value of the sum's shape that another one repeats along the dimensions summed over; None for others."""
        op = defining_op(value)
        if op is None or op.name != "stablehlo.broadcast_in_dim" or ints(op, "broadcast_dimensions") != self.kept:
            return None
        return op.operands[0] if op.operands[0].type == self.local.results[0].type else None


@dataclass(frozen=True)
class MergeStatistics(Pass):
    """Lets sums over devices that wait for one another travel in one call, as in batch norms.

    A variance waits for its mean. If each device also sums its deviations from its *own* mean, and their squares, one
    gather of these sums gives the mean and the variance, as precisely as in two steps (Chan, Golub and LeVeque 1983,
    "Algorithms for computing the sample variance"). A gradient that sums products with a factor per channel waits for
    that factor; the factor is taken out of the sum.

    Attributes:
      topology: the cluster to estimate times for; by default the one the run names, else servers of eight H100s.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> MergeStatistics().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "merge-statistics"
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if len(ctx.view(module).ops(ALL_REDUCE.op)) < 2:
            return False
        return with_inlined(module, ctx, (ALL_REDUCE.op,), lambda inlined, view: self._on(inlined, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        writer = _Merger(self.name, self.topology or ctx.topology, view, ctx, ctx.editor(module, self.name))
        blocks: dict[ir.Block, int] = {}
        for op in view.ops(ALL_REDUCE.op):
            blocks[op.block] = blocks.get(op.block, 0) + 1
        changed = [writer.block(block) for block, count in blocks.items() if count > 1]
        writer.erase_old()
        return any(changed)


@dataclass
class _Merger:
    """Rewrites the sums of a module, block by block.

    Args:
      name: the pass.
      topology: the cluster to estimate times for.
      view: the module.
      ctx: where remarks go.
      editor: changes the module.
    """

    name: str
    topology: str
    view: View
    ctx: PassContext
    editor: Editor
    _waits: dict[ir.Value, int] = field(default_factory=dict, init=False)
    """How many all-reduces of its block a value waits for, one after the other."""
    _sums: dict[tuple[ir.Value, tuple[int, ...], object], _SumOverDevices] = field(default_factory=dict, init=False)
    _uniform: dict[object, Uniformity] = field(default_factory=dict, init=False)
    _times: dict[int, CollectiveTimes] = field(default_factory=dict, init=False)
    _old: list[ir.Operation] = field(default_factory=list, init=False)

    def block(self, block: ir.Block) -> bool:
        """Rewrites the sums of one block; returns whether any changed."""
        changed = False
        self._sums.clear()
        for each in list(block.operations):
            op = each.operation
            self._count(op)
            summed = _sum_over_devices(op, self.view) if op.name == ALL_REDUCE.op else None
            if summed is None:
                continue
            made = self._without_factor(summed)
            if made is None and self._gathered(summed):
                changed = True
                continue
            changed = changed or made is not None
            summed = made or summed
            self._sums[summed.terms, summed.dims, summed.groups.key] = summed
        return changed

    def erase_old(self) -> None:
        """Erases what was replaced and what only that read. Until now their values are remembered."""
        pending = dict.fromkeys(self._old)  # each op once: an erased one must not be looked at
        # Ends: what is added comes before what is taken.
        while pending:
            op, _ = pending.popitem()
            makers = [maker for maker in map(defining_op, op.operands) if maker is not None]
            if self.editor.erase_if_dead(op):
                pending |= dict.fromkeys(maker for maker in makers if not has_side_effect(maker))

    def _count(self, op: ir.Operation) -> None:
        before = max((self._waits.get(operand, 0) for operand in op.operands), default=0)
        for result in op.results:
            self._waits[result] = before + (op.name == ALL_REDUCE.op)

    def _times_of(self, groups: Groups) -> CollectiveTimes:
        devices = sum(map(len, groups.rows))
        if devices not in self._times:
            self._times[devices] = CollectiveTimes(self.topology, devices)
        return self._times[devices]

    def _differs(self, value: ir.Value, groups: Groups) -> str:
        """Why a value differs between the devices of a group; empty if it does not."""
        if groups.key not in self._uniform:
            self._uniform[groups.key] = Uniformity(self.view, groups)
        found = self._uniform[groups.key].varying(value)
        return "" if found is None else found.sentence

    def _too_coarse(self, summed: _SumOverDevices) -> str:
        """Why the element type is too narrow for other sums than the user's; empty if it is not."""
        name = str(element_type(summed.op.results[0]))
        return "" if name in _TYPES else f"other sums are too coarse in {name}"

    # ---- factors: sum(k * x) = k * sum(x)

    def _without_factor(self, summed: _SumOverDevices) -> _SumOverDevices | None:
        """Takes a factor out of a sum, if the factor waits for more all-reduces than the rest; returns the new sum."""
        terms, negative = _without_signs(summed.terms)
        product = defining_op(terms)
        if product is None or product.name != "stablehlo.multiply":
            return None
        for factor, rest in (product.operands, list(product.operands)[::-1]):
            factor, negated = _without_signs(factor)
            uniform = summed.repeated(factor)
            if uniform is None or self._waits.get(uniform, 0) <= self._waits.get(rest, 0):
                continue
            if why := self._too_coarse(summed) or self._differs(uniform, summed.groups):
                tell(self.ctx, "blocked", self.name, f"the sum waits for its factor: {why}", self.view, summed.op)
                continue
            return self._taken_out(summed, uniform, rest, negative != negated)
        return None

    def _taken_out(self, summed: _SumOverDevices, factor: ir.Value, rest: ir.Value, negative: bool) -> _SumOverDevices:
        """Writes ``factor * sum(rest)``."""
        tell(self.ctx, "applied", self.name, "the sum no longer waits for a factor, which is the same on all its "
             "devices", self.view, summed.op)
        self.ctx.count("factors taken out of sums")
        local = self.editor.clone_before(summed.local, summed.op, {summed.terms: rest})
        whole = self.editor.clone_before(summed.op, summed.op, {summed.op.operands[0]: local.results[0]})
        writer = OpWriter.before(self.editor, summed.op)
        made = writer.make("stablehlo.multiply", [factor, whole.results[0]])
        made = writer.make("stablehlo.negate", [made]) if negative else made
        self._count(local)
        self._count(whole)
        self._waits[made] = max(self._waits.get(factor, 0), self._waits[whole.results[0]])
        self.editor.replace(summed.op.results[0], made)
        self._old.append(summed.op)
        return _SumOverDevices(whole, local, rest, summed.dims, summed.groups)

    # ---- deviations: sum (x - k)^2 = sum (x - m)^2 + 2 (m - k) sum (x - m) + n (m - k)^2
    #
    # The sums are over the n values of a device. k is any value on which all devices agree, m any value of a device.
    # With the device's own mean as m, no term is large. The second one is what rounding leaves of the mean.

    def _gathered(self, squares: _SumOverDevices) -> bool:
        """Gathers the sums behind a mean and a variance in one call."""
        found = self._mean_of(squares)
        if found is None:
            return False
        first, mean = found
        if why := self._refusal(squares, mean):
            tell(self.ctx, "blocked", self.name, f"the variance waits for its mean: {why}", self.view, squares.op)
            return False
        times = self._times_of(squares.groups)
        rows, payload = squares.groups.rows, tensor_bytes(squares.op.results[0].type)
        apart = 2 * times.seconds(ALL_REDUCE.kind, payload, rows)
        together = times.seconds(ALL_GATHER.kind, 3 * payload * squares.groups.size, rows)
        sentence = f"one gather takes {together * 1e6:.0f} us, two all-reduces {apart * 1e6:.0f} us on {times.cluster}"
        if together >= apart and not self.ctx.ignore_cost:
            tell(self.ctx, "unprofitable", self.name, f"the variance waits for its mean: {sentence}", self.view,
                 squares.op)
            return False
        tell(self.ctx, "applied", self.name, f"the variance no longer waits for its mean: {sentence}", self.view,
             squares.op)
        self.ctx.count("variances merged with their means")
        del self._sums[first.terms, first.dims, first.groups.key]
        self._write_gather(first, squares, mean)
        return True

    def _mean_of(self, squares: _SumOverDevices) -> tuple[_SumOverDevices, ir.Value] | None:
        """The sum behind the mean whose distances are squared, and that mean; None if no distances are squared."""
        square = defining_op(squares.terms)
        if square is None or square.name != "stablehlo.multiply" or square.operands[0] != square.operands[1]:
            return None
        distance = defining_op(square.operands[0])
        if distance is None or distance.name != "stablehlo.subtract":
            return None
        mean = squares.repeated(distance.operands[1])
        first = self._sums.get((distance.operands[0], squares.dims, squares.groups.key))
        if mean is None or first is None or self._waits.get(mean, 0) < self._waits[first.op.results[0]]:
            return None
        return first, mean

    def _refusal(self, squares: _SumOverDevices, mean: ir.Value) -> str:
        """Why the two sums cannot be gathered; empty if they can be."""
        if not 0 < squares.count <= _MOST_ELEMENTS:
            return f"a device sums {squares.count} values"
        return self._too_coarse(squares) or self._differs(mean, squares.groups)

    def _write_gather(self, first: _SumOverDevices, squares: _SumOverDevices, mean: ir.Value) -> None:
        parts = [first.op.operands[0], *self._around_own_mean(first, squares)]
        size, shape, before = math.prod(shape_of(mean)), shape_of(mean), OpWriter.before(self.editor, first.op)
        sums, rest, own = self._from_all(first, [before.reshaped(part, [1, size]) for part in parts])
        total = before.reshaped(self._added(sums, first.op), shape)
        self._waits[total] = self._waits.get(parts[0], 0) + 1
        self.editor.replace(first.op.results[0], total)
        at, writer = squares.op, OpWriter.before(self.editor, squares.op)
        count = self._filled(float(squares.count), sums.type, at)
        common = repeated(self.editor, writer.reshaped(mean, [size]), sums.type, at, [1])
        means = writer.make("stablehlo.divide", [sums, count])
        apart = writer.make("stablehlo.subtract", [means, common])
        twice = writer.make("stablehlo.add", [rest, rest])
        whole = writer.make("stablehlo.multiply", [apart, count])
        slope = writer.make("stablehlo.add", [whole, twice])
        between = writer.make("stablehlo.multiply", [apart, slope])
        spread = self._added(writer.make("stablehlo.add", [own, between]), at)
        made = writer.reshaped(spread, shape)
        self._waits[made] = self._waits.get(mean, 0)
        self.editor.replace(squares.op.results[0], made)
        self._old += first.op, squares.op

    def _around_own_mean(self, first: _SumOverDevices, squares: _SumOverDevices) -> tuple[ir.Value, ir.Value]:
        """The sums of the distances of a device's values from their own mean, and of the squared distances."""
        at, sums, writer = first.op, first.op.operands[0], OpWriter.before(self.editor, first.op)
        mean = writer.make("stablehlo.divide", [sums, self._filled(float(squares.count), sums.type, at)])
        wide = repeated(self.editor, mean, first.terms.type, at, squares.kept)
        distance = writer.make("stablehlo.subtract", [first.terms, wide])
        square = writer.make("stablehlo.multiply", [distance, distance])
        rest, own = (self.editor.clone_before(first.local, at, {first.terms: each}).results[0]
                     for each in (distance, square))
        return rest, own

    def _from_all(self, first: _SumOverDevices, parts: list[ir.Value]) -> list[ir.Value]:
        """Rows of equal length of each device, as matrices with a row of every device; they travel in one gather."""
        at, members, size = first.op, first.groups.size, shape_of(parts[0])[1]
        writer = OpWriter.before(self.editor, at)
        attributes = {name: at.attributes[name] for name in at.attributes}
        attributes |= {"all_gather_dim": integer_attribute(self.editor, 0),
                       "replica_groups": rows_attribute(self.editor.context, first.groups.rows)}
        whole = writer.make(ALL_GATHER.op, [writer.concatenated(parts, 1)], [members, len(parts) * size], **attributes)
        return [writer.part(whole, 1, number * size, (number + 1) * size) for number in range(len(parts))]

    # ---- ops

    def _filled(self, number: float, type_: ir.Type, before: ir.Operation) -> ir.Value:
        with self.editor.context, before.location:
            value = ir.FloatAttr.get(ir.RankedTensorType(type_).element_type, number)
        return splat_constant(self.editor, value, type_, before)

    def _added(self, value: ir.Value, before: ir.Operation) -> ir.Value:
        """The sum of a matrix over its rows."""
        zero = self._filled(0.0, tensor_type([], element_type(value)), before)
        with self.editor.context:
            dims: ir.Attribute = ir.DenseI64ArrayAttr.get([0])
        type_ = tensor_type(shape_of(value)[1:], element_type(value))
        made = self.editor.create("stablehlo.reduce", [value, zero], [type_], attributes={"dimensions": dims},
                                  regions=1, location=before.location, before=before)
        add_reducer(self.editor, made, "sum")
        return made.results[0]


# ---- reading the module


def _sum_over_devices(op: ir.Operation, view: View) -> _SumOverDevices | None:
    """An all-reduce as a sum of local sums; None if it is anything else."""
    if len(op.operands) != 1 or reduction_kind(op) != "sum":
        return None
    local = defining_op(op.operands[0])
    if local is None or local.name != "stablehlo.reduce" or len(local.operands) != 2 or reduction_kind(local) != "sum":
        return None
    terms, zero = local.operands
    groups = groups_of(op, view)
    if isinstance(groups, str) or not is_static_tensor(terms.type) or not is_identity(zero, "sum"):
        return None
    return _SumOverDevices(op, local, terms, tuple(ints(local, "dimensions")), groups)


def _without_signs(value: ir.Value) -> tuple[ir.Value, bool]:
    """What is negated, and whether an odd number of times."""
    negative = False
    # Ends: each step goes to an operand.
    while (op := defining_op(value)) is not None and op.name == "stablehlo.negate":
        value, negative = op.operands[0], not negative
    return value, negative

