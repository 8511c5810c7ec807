"""sink-waits: compute waits for a collective only after the kernels that hide it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir import (
    BARRIER,
    COLLECTIVES,
    Editor,
    Effects,
    Module,
    View,
    inline_calls,
    ir,
    is_static_tensor,
    nested_ops,
    op_key,
    tensor_bytes,
    terminator,
)
from hlorewrite.ir.regions import WHILE
from hlorewrite.ops.table import TERMINATORS, OpClass, ops_of
from hlorewrite.passes.common.emit import divide_barrier
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.pass_support import on_copy, tell
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.timeline.stream_tasks import StreamTask, TaskPlaces, awaited_by_kernels, task_places

SUNK = "hlorewrite.sunk"
"""A unit attribute of collectives whose wait was moved: a second run leaves them alone."""
_PRODUCTS = ops_of(OpClass.CONTRACTION)
_SEPARATE = (*COLLECTIVES, *TERMINATORS, *_PRODUCTS, WHILE)
"""Ops that XLA does not compute in the kernel that makes what they read."""


@dataclass(frozen=True)
class SinkWaits(Pass):
    """Has compute wait for a collective only after a kernel that hides it.

    XLA's latency-hiding scheduler places transfers by rules of thumb. It may wait for one although compute is left that
    does not need it. Here a barrier fixes the order:

        y = f(AR(x)); z = g(w)    becomes    r = AR(x); z = g(w); r, z = barrier(r, z); y = f(r)

    where ``g`` is the kernel that ends after the collective in the order that :mod:`hlorewrite.timeline.stream_tasks`
    finds for the block. XLA:GPU keeps barriers until it has scheduled a module, so the collective is in flight while
    ``g``, and what ``g`` needs, runs. All waits of a block follow that one order, so none contradicts another.
    PyTorch's Inductor has a pass of this name.

    ``jax.checkpoint`` ties what a layer saved to the incoming gradient, so the layer would be recomputed only once the
    gradient is there. Such a barrier is divided.

    Legal because a barrier changes no value, each op still follows what it reads, and ops with effects keep their
    order; a block where they would not stays as it is.

    Attributes:
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> SinkWaits().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "sink-waits"
    beside_compute: ClassVar[bool] = True
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if not ctx.view(module).ops(*COLLECTIVES):
            return False
        return on_copy(module, ctx, lambda copy, view: self._on(copy, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        editor = ctx.editor(module, self.name)
        inline_calls(editor)
        blocks = {op.block: None for op in view.ops(*COLLECTIVES)}
        for block in blocks:
            for barrier, late in _mixed_barriers(block):
                divide_barrier(editor, barrier, late)
        model, effects = OverlapModel(view, ctx, self.name, self.topology), Effects(view)
        found = [each for block in blocks if (each := self._late_waits(block, model, effects, ctx)) is not None]
        for each in found:
            each.emit(editor)
        ctx.count("waits behind kernels",
                  sum(len(behind.collectives) for each in found for behind in each.waits.values()))
        return bool(found)

    def _late_waits(self, block: ir.Block, model: OverlapModel, effects: Effects, ctx: PassContext
                    ) -> _LateWaits | None:
        """The order of a block in which compute waits later; None if no wait moves."""
        ordered = _ordered(block, model)
        ops, waits = ordered.ops, dict[int, KernelWaits]()
        with_effects = [each for each in ordered.order if effects.first([ops[each]])]
        keeps_effects = with_effects == sorted(with_effects)
        for number in sorted(awaited_by_kernels(ordered.tasks)):
            op, seconds = ops[number], ordered.tasks[number].seconds
            if op.name not in COLLECTIVES or SUNK in op.attributes:
                continue
            kernel, result = next(ordered.behind(number), (-1, None))
            if result is None or not keeps_effects:
                why = "ops with effects would change places" if result is not None else \
                    f"no separate kernel runs during its {seconds * 1e6:.0f} us"
                tell(ctx, "missed", self.name, f"it stays as it is: {why}", model.view, op)
                continue
            waits.setdefault(op_key(ops[kernel]), KernelWaits(result, [])).collectives.append(op)
            tell(ctx, "applied", self.name, f"it takes {seconds * 1e6:.0f} us, and compute waits for it only after a "
                 f"{ops[kernel].name.rpartition('.')[2]} of {ordered.tasks[kernel].seconds * 1e6:.0f} us, according "
                 f"to the model of {model.spec}", model.view, op)
        return _LateWaits(block, tuple(ops[each] for each in ordered.order), waits) if waits else None


@dataclass(frozen=True)
class KernelWaits:
    """What compute waits for only after a kernel.

    Attributes:
      result: a result of the kernel.
      collectives: the collectives.
    """

    result: ir.Value
    collectives: list[ir.Operation]


@dataclass(frozen=True)
class _LateWaits:
    """An order of a block in which each wait follows a kernel that hides it.

    Attributes:
      block: the block.
      order: its ops in this order, without the terminator.
      waits: the waits behind kernels, by the kernels' keys.
    """

    block: ir.Block
    order: tuple[ir.Operation, ...]
    waits: Mapping[int, KernelWaits]

    def emit(self, editor: Editor) -> None:
        """Reorders the block and writes the barriers."""
        end = terminator(self.block)
        for op in self.order:
            editor.move_before(op, end)
        with editor.context:
            mark = ir.UnitAttr.get()
        for op in self.order:
            waits = self.waits.get(op_key(op))
            if waits is None:
                continue
            held = [waits.result, *(value for each in waits.collectives for value in each.results)]
            made = editor.create(BARRIER, held, [value.type for value in held], location=op.location,
                                 at=ir.InsertionPoint.after(op))
            for value, later in zip(held, made.results, strict=True):
                editor.replace(value, later, keep=[made])
            for each in waits.collectives:
                editor.set_attribute(each, SUNK, mark)


@dataclass(frozen=True)
class _OrderedBlock:
    """A block in the order of :mod:`hlorewrite.timeline.stream_tasks`.

    Attributes:
      ops: its ops as they are.
      tasks: the task of each.
      places: their places in the order.
      order: the numbers of the ops in this order, without the terminator.
      kernels: the numbers of the kernels in this order.
    """

    ops: Sequence[ir.Operation]
    tasks: Sequence[StreamTask]
    places: TaskPlaces
    order: Sequence[int]
    kernels: Sequence[int]

    def behind(self, collective: int) -> Iterator[tuple[int, ir.Value]]:
        """The kernels behind which compute may wait for a collective, with the smallest result to be held there.

        First those from the one on that ends after the collective has arrived, then the others that run during it,
        last ones first. A barrier costs least where XLA writes the kernel's result to memory in any case. Next come
        products, whose readers XLA computes in the same kernel only at times.
        """
        places = self.places
        first, last = (bisect_left(self.kernels, place, key=lambda each: places.begins[each])
                       for place in (places.begins[collective], places.ends[collective]))
        hidden = bisect_left(self.kernels, places.seconds[collective], first, last,
                             key=lambda each: places.seconds[each])
        for part in (range(hidden, last), range(hidden - 1, first - 1, -1)):
            for kept in (True, False):
                for kernel in (self.kernels[each] for each in part):
                    held = [value for value in self.ops[kernel].results
                            if is_static_tensor(value.type) and _may_hold(value, self.ops[kernel], kept)]
                    if held:
                        yield kernel, min(held, key=lambda value: tensor_bytes(value.type))


def _ordered(block: ir.Block, model: OverlapModel) -> _OrderedBlock:
    """Orders a block."""
    ops = [each.operation for each in block.operations]
    tasks = model.tasks(ops)
    places = task_places(tasks)
    order = sorted(range(len(ops) - 1), key=lambda each: (places.begins[each], each))
    return _OrderedBlock(ops, tasks, places, order, [each for each in order if tasks[each].is_kernel])


def _may_hold(value: ir.Value, maker: ir.Operation, kept: bool) -> bool:
    """Whether a barrier may hold a kernel's result. XLA drops a barrier without readers.

    Args:
      value: the result.
      maker: the kernel.
      kept: whether it has to be written to memory in any case.
    """
    readers = [use.owner.operation for use in value.uses]
    product = maker.name in _PRODUCTS and (not kept or len(readers) > 1)
    return bool(readers) and (product or all(op.name in _SEPARATE for op in readers))


def _mixed_barriers(block: ir.Block) -> list[tuple[ir.Operation, list[int]]]:
    """The barriers of a block that hold what depends on its collectives together with other values, and the positions
    of what does."""
    late, found = set[ir.Value](), list[tuple[ir.Operation, list[int]]]()
    for each in block.operations:
        op = each.operation
        if op.name == BARRIER:
            positions = [place for place, value in enumerate(op.operands) if value in late]
            late.update(op.results[place] for place in positions)
            if 0 < len(positions) < len(op.results):
                found.append((op, positions))
        elif op.name in COLLECTIVES or any(value in late for one in nested_ops(op) for value in one.operands):
            late.update(op.results)
    return found
