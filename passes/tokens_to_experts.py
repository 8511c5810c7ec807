"""tokens-to-experts: sends tokens to the devices that hold their experts, in place of gathering expert weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from hlorewrite.analysis.mesh import mesh_of
from hlorewrite.analysis.step_arguments import argument_read
from hlorewrite.ir import Editor, Module, ir, op_key, sdy, tensor_bytes
from hlorewrite.ir.regions import CALL
from hlorewrite.ir.view import View, defining_op, nested_ops, users
from hlorewrite.ops.attributes import dot_dims, shape_of
from hlorewrite.ops.dims import DimFactor, dim_factor, repeats_whole
from hlorewrite.ops.table import ELEMENTWISE, SAME, OpClass, ops_of
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.util.sizes import format_bytes

_CONSTRAINT, _DOT = "sdy.sharding_constraint", "stablehlo.dot_general"
_FOLLOWED = frozenset((*ELEMENTWISE, _DOT, "stablehlo.transpose", "stablehlo.reshape"))
_IN_ACTIVATIONS = ops_of(OpClass.ELEMENTWISE, OpClass.CONSTANT, OpClass.TERMINATOR) | {"stablehlo.broadcast_in_dim"}
_WORTH = 2
"""The gathered weights must have at least this many times the bytes that devices exchange."""


@dataclass(frozen=True)
class TokensToExperts(Pass):
    """Moves the sharding of dispatched tokens from their batch dimension to their expert dimension.

    A mixture of experts multiplies tokens ``[expert, batch, slot, feature]`` by weights ``[expert, feature, hidden]``,
    and both are sharded over one mesh axis. Where a sharding constraint keeps the tokens sharded by batch, every device
    needs every expert, so XLA's partitioner gathers the weights in each layer, forward and backward, and
    reduce-scatters their gradients. With the axis on the expert dimension of the tokens, it sends the tokens in two
    all-to-alls a layer instead, as in GShard (Lepikhin et al. 2020, section 3.2).

    The pass starts at each product whose weight is sharded along a batching dimension that the tokens keep whole, and
    follows the two dimensions of the tokens through elementwise ops and products over the experts, forward and
    backward (``ops/dims.py``). It changes all sharding constraints that it meets. A constraint is an annotation, so no
    value changes. It changes nothing unless the weights are at least twice as large as what a device would exchange.
    It runs before XLA's partitioner; ``auto`` compiles its result as a separate way and keeps the shorter step.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> TokensToExperts().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "tokens-to-experts"
    before_partitioner: ClassVar[bool] = True

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        dots = [op for op in view.ops(_DOT) if dot_dims(op).batch] if view.ops(_CONSTRAINT) else []
        editor, passed, changed = ctx.editor(module, self.name), set[int](), False
        for dot in dots:
            product = _product(dot, view) if op_key(dot) not in passed else None
            if product is None:
                continue
            found = _followed(product, view)
            passed |= found.dots
            if found.pays(view):
                _move(found, editor, view, ctx)
                changed = True
        return changed


@dataclass(frozen=True)
class _Product:
    """A product of tokens by expert weights.

    Attributes:
      dot: the op.
      tokens: its operand that is sharded by batch.
      weight: its operand that is sharded by expert.
      expert: the dimension of the tokens that counts experts.
      batch: the dimension of the tokens that is sharded.
      axes: the mesh axes by which the weight is sharded, which are the first or last of those of the batch.
    """

    dot: ir.Operation
    tokens: ir.Value
    weight: ir.Value
    expert: int
    batch: int
    axes: tuple[str, ...]


def _product(dot: ir.Operation, view: View) -> _Product | None:
    """What a product with batching dimensions is, if a device needs the weights of experts that others hold."""
    dims = dot_dims(dot)
    for place in (0, 1):
        weight, tokens = dot.operands[place], dot.operands[1 - place]
        of_weight, of_tokens = _axes(weight), _axes(tokens)
        if of_weight is None or of_tokens is None:
            continue
        for pair in dims.batch:
            expert, axes = pair[1 - place], of_weight[pair[place]]
            batch = next((free for free in dims.free[1 - place] if _without(axes, of_tokens[free]) is not None), None)
            if batch is not None and not of_tokens[expert] and argument_read(weight, view) is not None:
                return _Product(dot, tokens, weight, expert, batch, axes)
    return None


def _without(axes: tuple[str, ...], of_batch: tuple[str, ...]) -> tuple[str, ...] | None:
    """The axes of a batch without those of experts; None if these are not the first or the last of them.

    Example:
      >>> _without(("x",), ("data", "x")), _without(("x",), ("x",)), _without(("x",), ("a", "x", "b"))
      (('data',), (), None)
    """
    rest = len(of_batch) - len(axes)
    if axes and of_batch[:len(axes)] == axes:
        return of_batch[len(axes):]
    return of_batch[:rest] if axes and rest > 0 and of_batch[rest:] == axes else None


def _axes(value: ir.Value) -> list[tuple[str, ...]] | None:
    """The mesh axes that a constraint on a value names for each dimension; None if there is no constraint."""
    op = defining_op(value)
    if op is not None and op.name == "stablehlo.convert":
        return _axes(op.operands[0])
    return _axes_of(op) if op is not None and op.name == _CONSTRAINT else None


def _axes_of(constraint: ir.Operation) -> list[tuple[str, ...]]:
    dims = sdy.TensorShardingAttr(constraint.attributes["sharding"]).dimension_shardings
    return [tuple(_axis_name(axis) for axis in sdy.DimensionShardingAttr(each).axes) for each in dims]


def _axis_name(axis: ir.Attribute) -> str:
    """The name of a whole axis; the text of a part of one, which no mesh has as an axis."""
    reference = sdy.AxisRefAttr(axis)
    return reference.name if reference.sub_axis_info is None else str(axis)


def _moved(constraint: ir.Operation, expert: int, batch: int, axes: tuple[str, ...]) -> ir.Attribute:
    """The sharding of a constraint with some axes of its batch dimension on its expert dimension."""
    sharding = sdy.TensorShardingAttr(constraint.attributes["sharding"])
    dims = list(sharding.dimension_shardings)
    references = list(sdy.DimensionShardingAttr(dims[batch]).axes)
    for place, moves in ((expert, True), (batch, False)):
        kept = [each for each in references if (_axis_name(each) in axes) is moves]
        dims[place] = sdy.DimensionShardingAttr.get(kept, sdy.DimensionShardingAttr(dims[place]).is_closed, None,
                                                    constraint.context)
    return sdy.TensorShardingAttr.get(sharding.mesh_or_ref, dims, sharding.replicated_axes,
                                      context=constraint.context)


def _move(found: _Followed, editor: Editor, view: View, ctx: PassContext) -> None:
    """Moves the axes in all constraints that were found, and says so."""
    for op, (expert, batch) in found.constraints.values():
        editor.set_attribute(op, "sharding", _moved(op, expert, batch, found.product.axes))
    product, count, products = found.product, len(found.constraints), len(found.weights)
    gathered, exchanged = (format_bytes(each, 1) for each in found.bytes_by(view))
    ctx.count("sharding constraints moved", count)
    tell(ctx, "applied", TokensToExperts.name,
         f"tokens go to the devices that hold their experts ({exchanged} a device), so that no device gathers expert "
         f"weights ({gathered} for {products} product{'s' * (products > 1)}): {count} sharding constraints move axis "
         f"{', '.join(product.axes)} from dimension {product.batch} to {product.expert}", view, product.dot)


# ---- the values whose experts and batch are known


@dataclass
class _Followed:
    """What belongs to the same tokens as a product does.

    Attributes:
      product: where it began.
      constraints: those that shard by batch, with the dimensions of experts and batch of what they hold.
      weights: sharded by expert, by product.
      dots: the products that were passed.
      borders: values that come from, or go to, what is not followed: there XLA exchanges tokens.
    """

    product: _Product
    constraints: dict[int, tuple[ir.Operation, tuple[int, int]]] = field(default_factory=dict)
    weights: dict[int, ir.Value] = field(default_factory=dict)
    dots: set[int] = field(default_factory=set)
    borders: set[ir.Value] = field(default_factory=set)

    def pays(self, view: View) -> bool:
        """Whether the weights that are gathered are larger than what devices exchange, and experts divide evenly."""
        gathered, exchanged = self.bytes_by(view)
        return bool(self.constraints) and gathered >= _WORTH * exchanged

    def bytes_by(self, view: View) -> tuple[int, int]:
        """Bytes that a device holds of the gathered weights, one copy per product, and those that it exchanges."""
        if not self.constraints:
            return 0, 0
        first, _ = next(iter(self.constraints.values()))
        mesh = mesh_of(view, sdy.TensorShardingAttr(first.attributes["sharding"]).mesh_or_ref)
        sizes = dict(mesh.axes) if mesh else {}

        def parts(axes: Iterable[tuple[str, ...]]) -> int:
            return prod(sizes.get(axis, 1) for each in axes for axis in each)
        experts = parts([self.product.axes])
        whole = all(shape_of(op.results[0])[expert] % experts == 0 for op, (expert, _) in self.constraints.values())
        if experts < 2 or not whole:
            return 0, 1
        exchanged = sum(tensor_bytes(value.type) for value in self.borders) // parts(_axes_of(first))
        return sum(tensor_bytes(value.type) * experts // parts(_axes(value) or ())
                   for value in self.weights.values()), exchanged


def _followed(product: _Product, view: View) -> _Followed:
    """Follows the experts and the batch of a product's tokens to everything that has both dimensions."""
    found, known = _Followed(product), set[ir.Value]()
    pending = [(product.tokens, product.expert, product.batch)]
    while pending:  # Ends: each value is met once.
        value, expert, batch = pending.pop()
        if value in known:
            continue
        known.add(value)
        maker = defining_op(value)
        made = maker is None or all(repeats_whole(maker, each) for each in (expert, batch))
        steps: list[tuple[ir.Operation, int | None]] = [] if made or maker is None else [(maker, None)]
        for op, place in (*steps, *users(value)):
            others = _through(op, place, value, (expert, batch), found, view)
            if others is None:
                found.borders.add(value)
            else:
                pending += others
    return found


def _through(op: ir.Operation, place: int | None, value: ir.Value, dims: tuple[int, int], found: _Followed, view: View
             ) -> list[tuple[ir.Value, int, int]] | None:
    """The other values of an op that have both dimensions; None if the op does not keep the experts apart.

    Args:
      op: which makes or reads the value.
      place: the place of the value among its operands; None if it makes it.
      value: the value.
      dims: its dimensions of experts and of batch.
      found: what gets the constraints and products that are passed.
      view: the module.
    """
    if op.name == _CONSTRAINT and not _note_constraint(op, dims, found):
        return None
    if op.name in SAME:
        number = place if place is not None else ir.OpResult(value).result_number
        return [(op.operands[number], *dims), (op.results[number], *dims)]
    if op.name == CALL:
        alike = [each for each in (*op.operands, *op.results) if each.type == value.type]
        return [(each, *dims) for each in alike] if _is_elementwise(op, view) else None
    if op.name not in _FOLLOWED:
        return None
    experts, batches = (dim_factor(op, each, place) for each in dims)
    if not isinstance(experts, DimFactor) or not isinstance(batches, DimFactor) or experts.result is None:
        return None
    if op.name == _DOT:
        if None in experts.operands:
            return None  # the experts are made here: a product of tokens by their mask
        _note_product(op, found)
    made = zip((*op.operands, op.results[0]), (*experts.operands, experts.result), (*batches.operands, batches.result),
               strict=True)
    return [(each, one, other) for each, one, other in made if one is not None and other is not None]


def _note_constraint(constraint: ir.Operation, dims: tuple[int, int], found: _Followed) -> bool:
    """Notes a constraint that shards by batch; whether it does."""
    axes = _axes_of(constraint)
    sharding = sdy.TensorShardingAttr(constraint.attributes["sharding"])
    if _without(found.product.axes, axes[dims[1]]) is None or axes[dims[0]] or len(sharding.unreduced_axes):
        return False
    found.constraints[op_key(constraint)] = constraint, dims
    return True


def _note_product(dot: ir.Operation, found: _Followed) -> None:
    found.dots.add(op_key(dot))
    for place, value in enumerate(dot.operands):
        axes = _axes(value)
        if axes and any(axes[pair[place]] == found.product.axes for pair in dot_dims(dot).batch):
            found.weights[op_key(dot)] = value


def _is_elementwise(call: ir.Operation, view: View) -> bool:
    """Whether the called function is elementwise, such as an activation that JAX outlines."""
    callee = view.callee(call)
    if callee is None or not callee.regions[0].blocks:
        return False
    return all(op.name in _IN_ACTIVATIONS for op in nested_ops(callee)[1:])
