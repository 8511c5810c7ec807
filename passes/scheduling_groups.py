"""scheduling-groups: XLA's scheduler runs a product between start and done of each permute that compute waits for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.cost.kernels.clock import kernel_op
from hlorewrite.ir import BARRIER, COLLECTIVE_PERMUTE, Editor, Module, View, inline_calls, ir, nested_ops, op_key
from hlorewrite.ir.frontend import FRONTEND, GROUP, frontend_attributes, with_frontend
from hlorewrite.ops.table import ELEMENTWISE
from hlorewrite.passes.common.emit import divide_barrier
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.pass_support import on_copy, tell
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.timeline.stream_tasks import StreamTask, TaskPlaces, task_places


@dataclass(frozen=True)
class SchedulingGroups(Pass):
    """Puts each permute that compute waits for into one scheduling group with a product that hides it.

    XLA's latency-hiding scheduler places a transfer by rules of thumb. In the backward pass of a circular pipeline it
    waits for the gradient of the next stage first and recomputes the forward pass afterwards, although neither needs
    the other. XLA keeps the instructions of a scheduling group together (``_scheduling_group_id``, openxla/xla,
    ``scheduling_annotations_util.cc``): it starts the permute, runs the product, and waits for the permute.

    The product is one that runs during the permute in the order that :mod:`hlorewrite.timeline.stream_tasks` finds, and
    that takes at least as long. In that order each product lies between both ends of its permute. It is still an order
    after all these ends have moved next to their products, so no group waits for another one. Barriers of
    ``jax.checkpoint`` that hold what a permute delivers together with other values are divided, because XLA refuses a
    group that is connected by anything outside of it.

    Only permutes: other collectives take longer than one product, and XLA hides them better alone. Megatron's
    all-reduces in groups made a step of 240 ms take 247. Nothing is computed differently.

    XLA may refuse a group that it connects itself, as where it unrolls a loop. So ``auto`` compiles a step with and
    without groups, and named pipelines do not contain this pass.

    Attributes:
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> SchedulingGroups().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "scheduling-groups"
    beside_compute: ClassVar[bool] = True
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Annotates a module in place; returns whether it changed."""
        view = ctx.view(module)
        permutes = view.ops(COLLECTIVE_PERMUTE.op)
        if not permutes:
            return False
        if own := next((op for op in nested_ops(module.operation) if GROUP in frontend_attributes(op)), None):
            tell(ctx, "missed", self.name, f"it is in a scheduling group ({GROUP}) already, so all are left as they "
                                           "are", view, own)
            return False
        return on_copy(module, ctx, lambda copy, copied: self._on(copy, copied, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        editor = ctx.editor(module, self.name)
        inline_calls(editor)
        blocks = {op.block: None for op in view.ops(COLLECTIVE_PERMUTE.op)}
        for block in blocks:
            for barrier, late in _mixed_barriers(block):
                divide_barrier(editor, barrier, late)
        model = OverlapModel(view, ctx, self.name, self.topology)
        groups = [pair for block in blocks for pair in self._pairs(block, model, ctx)]
        for number, pair in enumerate(groups, start=1):
            for op in pair:
                editor.set_attribute(op, FRONTEND, with_frontend(op, GROUP, str(number)))
        ctx.count("permutes in scheduling groups", len(groups))
        return bool(groups)

    def _pairs(self, block: ir.Block, model: OverlapModel, ctx: PassContext
               ) -> Iterator[tuple[ir.Operation, ir.Operation]]:
        """The permutes of a block that compute waits for, each with a product that hides it."""
        ops = [each.operation for each in block.operations]
        tasks = model.tasks(ops)
        places, awaited, used = task_places(tasks), _awaited(tasks), set[int]()
        products = _products(ops, tasks)
        for number in sorted(awaited, key=lambda each: places.begins[each]):
            if ops[number].name != COLLECTIVE_PERMUTE.op:
                continue
            seconds = tasks[number].seconds
            hiding = [each for each, read in products.items()
                      if each not in used and tasks[each].seconds >= seconds and _hides(each, read, number, places)]
            if not hiding:
                tell(ctx, "unprofitable", self.name, f"it stays as it is: no product runs while it takes "
                     f"{seconds * 1e6:.0f} us and is as long, according to the model of {model.spec}", model.view,
                     ops[number])
                continue
            chosen = min(hiding, key=lambda each: (tasks[each].seconds, each))
            used.add(chosen)
            tell(ctx, "applied", self.name, f"it runs during a product of {tasks[chosen].seconds * 1e6:.0f} us and "
                 f"takes {seconds * 1e6:.0f}, according to the model of {model.spec}", model.view, ops[number])
            yield ops[number], ops[chosen]


def _mixed_barriers(block: ir.Block) -> list[tuple[ir.Operation, list[int]]]:
    """The barriers of a block that hold values which depend on its permutes together with others, and the positions
    of these values."""
    late, found = set[ir.Value](), list[tuple[ir.Operation, list[int]]]()
    for each in block.operations:
        op = each.operation
        if op.name == BARRIER:
            positions = [place for place, value in enumerate(op.operands) if value in late]
            late.update(op.results[place] for place in positions)
            if 0 < len(positions) < len(op.results):
                found.append((op, positions))
        elif op.name == COLLECTIVE_PERMUTE.op or any(value in late for one in nested_ops(op) for value in one.operands):
            late.update(op.results)
    return found


def _awaited(tasks: Sequence[StreamTask]) -> list[int]:
    """The transfers that some kernel of their block waits for."""
    waited = set[int]()
    for number in range(len(tasks) - 1, -1, -1):
        task = tasks[number]
        if number in waited or (task.seconds and not task.transfer):
            waited.update(task.after)
    return [number for number in waited if tasks[number].transfer]


def _products(ops: Sequence[ir.Operation], tasks: Sequence[StreamTask]) -> dict[int, list[int]]:
    """The products of a block, and for each the tasks whose results XLA may read in the same kernel.

    XLA computes elementwise ops that follow a product in its kernel, such as the sum with a residual.
    """
    keys = {op_key(op): place for place, op in enumerate(ops)}
    found: dict[int, list[int]] = {}
    for number, op in enumerate(ops):
        if not tasks[number].seconds or not kernel_op(op, (), ()).products:
            continue
        read, last = [], op
        while (use := next(iter(last.results[0].uses), None)) is not None:  # Ends: each step goes to a later op.
            reader = use.owner.operation
            if len(list(last.results[0].uses)) > 1 or reader.name not in ELEMENTWISE or op_key(reader) not in keys:
                break
            read += [source for source in tasks[keys[op_key(reader)]].after if source != keys[op_key(last)]]
            last = reader
        found[number] = read
    return found


def _hides(product: int, read: Sequence[int], permute: int, places: TaskPlaces) -> bool:
    """Whether a product runs during a permute, and reads nothing in its kernel that waits for the permute."""
    arrives = places.ends[permute]
    return places.begins[permute] < places.begins[product] < arrives and all(
        places.ends[source] < arrives for source in read)
