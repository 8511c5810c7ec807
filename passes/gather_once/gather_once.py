"""gather-once: parameters that loops gather again and again are gathered before them, if memory allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.loops import trip_count
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import ALL_GATHER, Module, ir, is_static_tensor, op_key, tensor_bytes, tensor_type
from hlorewrite.ir.view import View, ancestors, nested_ops
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.gather_once.emit import gather_before, gathered_type, read_gathered
from hlorewrite.passes.gather_once.source import GatherSource, source_of
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size


@dataclass(frozen=True)
class GatherOnce(Pass):
    """Gathers a sharded parameter once before the loops that gather it, or a slice of it, in every iteration.

    A step with sharded parameters (FSDP) gathers the slice of each layer in each pass over each micro-batch. Gathered
    once, before the loop over micro-batches, a parameter is sent once and is kept whole during the step:

        AG(slice(w, i)) = slice(AG(w), i),

    for a dimension that the slice takes whole, and an index that is equal on all members of a group. Converts come
    before the gather, as before; reshapes by dimensions of size one, transposes and the barriers of ``jax.checkpoint``
    commute with it. Forward and backward passes read the same gathered value. Gathering once for each micro-batch
    needs as much memory and sends more, so there is nothing in between but the choice of parameters: those come first
    that save most for each byte they keep.

    Legal where each loop around the gather runs it in every iteration and does not change what is gathered. Pays where
    the known trip counts say that it sends less, within the memory budget. In FSDP2 the user makes this choice with
    ``reshard_after_forward`` and ``unshard``, for whole modules.

    Attributes:
      memory_budget: bytes that a device may spend on gathered values; by default what the run leaves, and nothing if it
        names no budget.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> GatherOnce().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "gather-once"
    by_mesh: ClassVar[bool] = True
    memory_budget: Size | None = None

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        if not view.ops(ALL_GATHER.op) or not view.ops("stablehlo.while"):
            return False
        return with_inlined(module, ctx, (ALL_GATHER.op, "stablehlo.dynamic_slice"),
                            lambda inlined, seen: self._on(inlined, seen, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        editor = ctx.editor(module, self.name)
        left = _Budget(self.memory_budget, ctx)
        changed = False
        for one in sorted(self._candidates(view, ctx), key=lambda each: -each.saved / max(1, each.kept)):
            if not left.take(one.kept):
                self._too_large(one, left.bytes, view, ctx)
                continue
            for op, _ in one.gathers:
                tell(ctx, "applied", self.name, f"it is gathered once before the loop: {one.before} bytes before, "
                     f"{one.whole} bytes now, and {one.kept} bytes more are live during the loop", view, op)
            whole = gather_before(*one.gathers[0], one.members, editor)
            for op, source in one.gathers:
                read_gathered(op, source, one.members, whole, editor)
            ctx.count("gathers removed from loops", len(one.gathers))
            changed = True
        return changed

    def _too_large(self, one: _Gathered, left: int, view: View, ctx: PassContext) -> None:
        for op, _ in one.gathers:
            tell(ctx, "unprofitable", self.name, f"it is gathered in each iteration, {one.before} bytes in total: "
                 f"gathered once it would send {one.whole} bytes and keep {one.kept}, but only {left} are left of the "
                 "memory budget", view, op, advice=f'set memory_budget="{-(-one.kept >> 20)}MiB" or more')

    def _candidates(self, view: View, ctx: PassContext) -> list[_Gathered]:
        """Values worth gathering once, in the order of the program."""
        wanted = {op_key(op) for op in view.ops(ALL_GATHER.op)}
        uniformity: dict[tuple[object, ...], Uniformity] = {}
        found: dict[tuple[object, ...], _Gathered] = {}
        for op in [op for op in nested_ops(view.module.operation) if op_key(op) in wanted]:
            if not any(outer.name == "stablehlo.while" for outer in ancestors(op)):
                continue
            groups = groups_of(op, view)
            source = _source(op, groups, view, uniformity)
            if isinstance(source, str) or isinstance(groups, str):
                tell(ctx, "missed", self.name, f"it stays in its loop: {source}", view, op)
                continue
            key = (source.root, source.dimension, source.converts, groups, source.loops[-1].block)
            found.setdefault(key, _Gathered(_members(op))).gathers.append((op, source))
        return [one for one in found.values() if one.saved > 0]


@dataclass
class _Gathered:
    """A value that loops gather.

    Attributes:
      members: the members of a group.
      gathers: its all-gathers, in program order, each with its source.
    """

    members: int
    gathers: list[tuple[ir.Operation, GatherSource]] = field(default_factory=list)

    @property
    def whole(self) -> int:
        """Bytes of the gathered value, and bytes that each device sends and receives to gather it once."""
        op, source = self.gathers[0]
        element = ir.RankedTensorType(op.results[0].type).element_type
        shape = ir.RankedTensorType(source.root.type).shape
        return tensor_bytes(gathered_type(tensor_type(shape, element), source.dimension, self.members))

    @property
    def before(self) -> int:
        """Bytes that are gathered while the loops run; a loop with an unknown trip count counts once."""
        return sum(tensor_bytes(op.results[0].type) * math.prod(_trips(source)) for op, source in self.gathers)

    @property
    def saved(self) -> int:
        """Bytes."""
        return self.before - self.whole

    @property
    def kept(self) -> int:
        """Additional live bytes during the loops: the value without the slice in use."""
        used = max(tensor_bytes(op.results[0].type) for op, _ in self.gathers)
        return self.whole - (used if used < self.whole else self.whole // self.members)


@dataclass
class _Budget:
    """The memory for gathered values: the pass's budget and the run's."""

    own: int | None
    ctx: PassContext

    @property
    def bytes(self) -> int:
        """The bytes that are left."""
        both = [size for size in (self.own, self.ctx.memory_left) if size is not None]
        return min(both, default=0)

    def take(self, size: int) -> bool:
        """Takes bytes if that many are left."""
        if size > self.bytes:
            self.ctx.memory_refused = True
            return False
        if self.own is not None:
            self.own -= size
        return self.ctx.take_memory(size)


def _trips(source: GatherSource) -> Iterator[int]:
    for loop in source.loops:
        count = trip_count(loop)
        yield 1 if count is None else count


def _members(op: ir.Operation) -> int:
    """The number of shards that an all-gather concatenates."""
    dimension = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    before, after = (ir.RankedTensorType(value.type).shape[dimension] for value in (op.operands[0], op.results[0]))
    return after // before


def _source(op: ir.Operation, groups: Groups | str, view: View,
            uniformity: dict[tuple[object, ...], Uniformity]) -> GatherSource | str:
    """The source of a gather outside its loops, or why the gather stays."""
    if isinstance(groups, str):
        return groups
    if len(op.operands) != 1 or not is_static_tensor(op.operands[0].type) or not tensor_bytes(op.operands[0].type):
        return "it gathers several tensors, or one without elements or of unknown size"
    if groups.key not in uniformity:
        uniformity[groups.key] = Uniformity(view, groups)
    equal = uniformity[groups.key]
    dimension = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    return source_of(op, dimension, lambda value: equal.varying(value) is None)
