"""hoist-collectives: runs a collective whose result is loop-invariant once, before the loop."""

from dataclasses import dataclass, field
from typing import ClassVar

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import COLLECTIVES, Editor, Loop, Module, ir, is_static_tensor, op_key, tensor_bytes
from hlorewrite.ir.view import View, defining_op, nested_ops, users
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passes.common.value_numbers import is_function
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size

_MOST_OPS = 512
_BARRIER = "stablehlo.optimization_barrier"
_MARKS = "hlorewrite."


@dataclass(frozen=True)
class HoistCollectives(Pass):
    """Moves loop-invariant collectives, and the ops that compute their operands, before the loop.

    Operands do not change when they are made outside the loop, carried through it unchanged, or computed from such
    values by ops without effects. An optimization barrier returns its operands, so each of its results may be
    replaced by its operand, regardless of the barrier's other operands. Only collectives that run in every
    iteration move, so a loop of one iteration or more runs none that it did not run before; a loop that may run
    none at all would gain one. XLA:CPU's loop-invariant code motion does the same
    (``while_loop_invariant_code_motion.cc``); XLA:GPU leaves collectives in their loop.

    Attributes:
      most_bytes: most bytes that one hoisted gather may add to what is live during the loop; a larger one stays.
      barriers: also move what is read through optimization barriers, such as those of ``jax.checkpoint``. These hold
        weights so that they need not be kept, so it takes memory.
      unknown_trips: also move out of loops whose trip count is not known, which may turn out to be zero.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> HoistCollectives().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "hoist-collectives"
    by_mesh: ClassVar[bool] = True
    most_bytes: Size = 1 << 30
    barriers: bool = False
    unknown_trips: bool = True

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        editor = ctx.editor(module, self.name)
        wanted = {op_key(op) for op in view.ops(*COLLECTIVES)}
        # In program order, so the sources of a collective leave the loop before it.
        pending = [op for op in nested_ops(module.operation) if op_key(op) in wanted] if wanted else []
        changed = False
        varying: set[int] = set()
        while pending:  # Ends: each round moves every collective that is left one loop further out.
            moved: list[ir.Operation] = []
            for op in pending:
                outside = self._hoist(op, view, editor, ctx, varying)
                if outside is not None:
                    moved.append(outside)
            changed = changed or bool(moved)
            pending = moved
        return changed

    def _hoist(self, op: ir.Operation, view: View, editor: Editor, ctx: PassContext,
              varying: set[int]) -> ir.Operation | None:
        """Moves one collective before its loop.

        Args:
          op: the collective.
          view: the view of the module.
          editor: its editor.
          ctx: where remarks go.
          varying: keys of ops known to change in their loop; more are added.

        Returns:
          The collective before the loop; None when it stays.
        """
        outer = op.parent
        if outer is None or outer.operation.name != "stablehlo.while":
            return None
        loop = Loop(outer.operation)
        if op.block != loop.body:
            return None
        trips = trip_count(loop.op)
        if trips is not None and trips < 2:
            return None
        if not all(isinstance(r.type, ir.RankedTensorType) for r in op.results):
            return None
        if not all(is_static_tensor(r.type) for r in op.results):
            tell(ctx, "blocked", self.name, "it stays in its loop: its size is known only at run time, and no budget "
                 "could bound it", view, op)
            return None
        cone = _invariant_cone(op, loop, varying, self.barriers)
        if cone is None:
            return None
        if trips is None and not self.unknown_trips:
            tell(ctx, "blocked", self.name, "it stays in its loop, which may not run at all", view, op)
            return None
        size, more = sum(tensor_bytes(v.type) for v in op.results), _kept_bytes(op, cone)
        if more > self.most_bytes and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"it stays in its loop: outside, {more} bytes more would be "
                 f"live throughout the loop, and most-bytes is {self.most_bytes}", view, op)
            return None
        if not ctx.take_memory(more):
            tell(ctx, "unprofitable", self.name, f"it stays in its loop: outside, {more} bytes more would be "
                 f"live throughout the loop, but only {ctx.memory_left} are left of the memory budget", view, op)
            return None
        tell(ctx, "applied", self.name, f"its operands do not change in the loop: it runs once, not "
             f"{'each time' if trips is None else f'{trips} times'}, and {size} bytes are kept", view, op)
        ctx.count("collectives hoisted")
        return _hoisted(op, loop, cone, editor)


@dataclass
class _Cone:
    """The ops in a loop that a collective is computed from, and the outside values of their leaves."""

    ops: list[ir.Operation] = field(default_factory=list)
    outside: dict[ir.Value, ir.Value] = field(default_factory=dict)
    barred: dict[ir.Value, ir.Value] = field(default_factory=dict)  # results of barriers: the values they stand for


def _invariant_cone(root: ir.Operation, loop: Loop, varying: set[int], barriers: bool) -> _Cone | None:
    """The ops of the body that a collective is computed from, operands first; None when one of them varies.

    Ops that vary are added to ``varying``, so each is visited once.
    """
    cone, done = _Cone(), set()
    stack: list[tuple[ir.Operation, bool]] = [(root, False)]
    # Ends: the makers of an op's operands are added once.
    while stack:
        op, ready = stack.pop()
        if ready:
            cone.ops.append(op)
            continue
        if op_key(op) in done:
            continue
        done.add(op_key(op))
        sources = [_before_barriers(operand, loop) if barriers else operand for operand in op.operands]
        if (op_key(op) in varying or len(done) > _MOST_OPS or not is_function(op) or op.name == "func.call"
                or any(_changes(source, loop) for source in sources)):
            varying.update(op_key(reader) for reader, waiting in stack if waiting)
            varying.add(op_key(op))
            return None
        stack.append((op, True))
        for operand, source in zip(op.operands, sources, strict=True):
            if source != operand:
                cone.barred[operand] = source
            if isinstance(source, ir.BlockArgument) and source.owner == loop.body:
                cone.outside[source] = loop.op.operands[source.arg_number]
                continue
            maker = defining_op(source)
            if maker is not None and maker.block == loop.body:
                stack.append((maker, False))
    return cone


def _before_barriers(value: ir.Value, loop: Loop) -> ir.Value:
    """The value that a result of an optimization barrier in the body stands for; other values unchanged.

    A barrier that marks a place, such as the end of a stage, is kept.
    """
    # Ends: what a barrier contains is defined before it.
    while ((maker := defining_op(value)) is not None and maker.name == _BARRIER and maker.block == loop.body
           and not any(name.startswith(_MARKS) for name in maker.attributes)):
        value = maker.operands[ir.OpResult(value).result_number]
    return value


def _changes(value: ir.Value, loop: Loop) -> bool:
    """Whether a value is carried by the loop and not the same in each iteration."""
    return (isinstance(value, ir.BlockArgument) and value.owner == loop.body
            and loop.yields[value.arg_number] != value)


def _kept_bytes(root: ir.Operation, cone: _Cone) -> int:
    """Bytes by which results of hoisted collectives that the loop reads exceed their operands."""
    inside = {op_key(op) for op in cone.ops}
    kept = [op for op in cone.ops if op.name in COLLECTIVES and (
        op == root or any(op_key(reader) not in inside for result in op.results for reader, _ in users(result)))]
    sizes = [[sum(tensor_bytes(v.type) for v in values) for values in (op.results, op.operands)] for op in kept]
    return sum(max(0, result - operand) for result, operand in sizes)


def _hoisted(root: ir.Operation, loop: Loop, cone: _Cone, editor: Editor) -> ir.Operation:
    """Copies the ops that a collective is computed from before the loop; moves collectives, so none runs twice."""
    mapping = dict(cone.outside)
    copy = root
    for op in cone.ops:
        for operand in op.operands:
            if operand in cone.barred:
                source = cone.barred[operand]
                mapping[operand] = mapping.get(source, source)
        copy = editor.clone_before(op, loop.op, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    for op in cone.ops:
        if op.name in COLLECTIVES:
            for old in op.results:
                editor.replace(old, mapping[old])
    for op in reversed(cone.ops):
        editor.erase_if_dead(op)
    return copy
