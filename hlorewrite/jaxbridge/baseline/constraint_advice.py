"""Finds sharding constraints on activations that a program lacks, by trying each with XLA's partitioner."""

from dataclasses import dataclass

from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.errors import HlorewriteError, InputError
from hlorewrite.ir import Editor, Module, View, inline_calls, ir, is_floating, is_static_tensor, sdy
from hlorewrite.jaxbridge.xla.partition import expose_collectives, hides_collectives
from hlorewrite.util.sizes import format_bytes

LEAST_SHARE = 0.02
"""Constraints that save a smaller share of the step's bytes are not reported."""
MOST_TRIED = 6
"""The most lines that are tried: each costs one run of the partitioner."""


@dataclass(frozen=True)
class ConstraintAdvice:
    """A constraint that makes a step send less.

    Attributes:
      source: the user's line of the loop that carries the activation.
      type: the type of the activation.
      spec: the sharding, as ``P('data')``.
      before: executed bytes of a device without the constraint.
      after: executed bytes with it.
    """

    source: str
    type: str
    spec: str
    before: int
    after: int

    def __str__(self) -> str:
        saved, sent = format_bytes(self.before - self.after, 1), format_bytes(self.before, 1)
        return (f"{self.source}: note: this loop carries an activation ({self.type}) that no line of the program "
                f"shards; jax.lax.with_sharding_constraint(x, {self.spec}) on it would save {saved} of the {sent} that "
                "a step sends")


@dataclass(frozen=True)
class _Batch:
    """How the inputs of a step are split: the batch size, and the mesh axes that split the dimension of that size."""

    size: int
    mesh: str
    axes: tuple[str, ...]

    @property
    def spec(self) -> str:
        """The sharding as a user writes it."""
        return f"P({self.axes[0]!r})" if len(self.axes) == 1 else f"P({self.axes!r})"

    def sharding(self, rank: int) -> str:
        """The sharding of a value whose first dimension is the batch, as ``sdy`` writes it."""
        first = ", ".join(f'"{axis}"' for axis in self.axes)
        return f"#sdy.sharding<{self.mesh}, [{{{first}}}{', {}' * (rank - 1)}]>"


def constraint_advice(module: Module) -> list[ConstraintAdvice]:
    """The lines where constraining activations to the batch's sharding makes a step send less.

    Args:
      module: an auto-sharded step; it is not changed.

    Returns:
      One for each line that saves at least a fiftieth, largest saving first; none if the module has no hidden
      collectives, or its batch is not sharded along one dimension.
    """
    try:
        hidden = hides_collectives(module)
    except InputError:  # such as dynamic shapes, which XLA cannot partition
        return []
    if not hidden:
        return []
    flat = module.clone()
    inline_calls(Editor(View(flat)))
    batch = _batch(View(flat))
    lines = [] if batch is None else list(dict.fromkeys(place for place, _, _ in _carried(View(flat), batch)))
    before = _sent(flat) if lines else None
    if batch is None or not before:
        return []
    made = []
    for line, kind in lines[:MOST_TRIED]:
        after = _sent(_constrained(flat, batch, (line, kind)))
        if after is not None and after < before * (1 - LEAST_SHARE):
            made.append(ConstraintAdvice(line, kind, batch.spec, before, after))
    return sorted(made, key=lambda advice: (advice.after, advice.source))


def _batch(view: View) -> _Batch | None:
    """The only way in which inputs that no result replaces are split along one dimension; integers before floats."""
    found: dict[bool, set[_Batch]] = {True: set(), False: set()}
    for function in view.ops("func.func"):
        if "arg_attrs" not in function.attributes or str(function.attributes["sym_name"]) != '"main"':
            continue
        for argument, attributes in zip(function.regions[0].blocks[0].arguments,
                                        ir.ArrayAttr(function.attributes["arg_attrs"]), strict=True):
            facts = ir.DictAttr(attributes)
            if "sdy.sharding" in facts and "tf.aliasing_output" not in facts and "jax.buffer_donor" not in facts:
                found[_is_float(argument.type)] |= _split(argument.type, facts["sdy.sharding"])
    candidates = found[False] or found[True]
    return next(iter(candidates)) if len(candidates) == 1 else None


def _split(type_: ir.Type, sharding: ir.Attribute) -> set[_Batch]:
    attribute = sdy.TensorShardingAttr(sharding)
    axes = [tuple(sdy.AxisRefAttr(axis).name for axis in sdy.DimensionShardingAttr(each).axes)
            for each in attribute.dimension_shardings]
    dims = [dim for dim, names in enumerate(axes) if names]
    if len(dims) != 1:
        return set()
    return {_Batch(ir.RankedTensorType(type_).shape[dims[0]], str(attribute.mesh_or_ref), axes[dims[0]])}


def _is_float(type_: ir.Type) -> bool:
    return is_static_tensor(type_) and is_floating(ir.RankedTensorType(type_).element_type)


def _carried(view: View, batch: _Batch) -> list[tuple[tuple[str, str], ir.Operation, int]]:
    """The line and type of each activation that a loop carries and changes, with the loop and its index there."""
    found = []
    for loop in view.ops("stablehlo.while"):
        body = loop.regions[1].blocks[0]
        for position, (value, carried) in enumerate(zip(loop.operands, _end(loop).operands, strict=True)):
            if not _is_float(value.type) or carried == body.arguments[position] or view.source(loop) == "?":
                continue
            shape = ir.RankedTensorType(value.type).shape
            if len(shape) > 1 and shape[0] == batch.size:
                found.append(((view.source(loop), str(value.type)), loop, position))
    return found


def _end(loop: ir.Operation) -> ir.Operation:
    """The terminator of the loop's body."""
    return list(loop.regions[1].blocks[0].operations)[-1].operation


def _constrained(module: Module, batch: _Batch, place: tuple[str, str]) -> Module:
    """A copy in which the activations of a line are constrained where they enter the loop and where it carries them."""
    made = module.clone()
    view = View(made)
    editor = Editor(view, "constraint-advice")
    for _, loop, position in [each for each in _carried(view, batch) if each[0] == place]:
        for reader in (loop, _end(loop)):
            value = reader.operands[position]
            with editor.context:
                sharding = ir.Attribute.parse(batch.sharding(len(ir.RankedTensorType(value.type).shape)))
            pinned = editor.create("sdy.sharding_constraint", [value], [value.type], attributes={"sharding": sharding},
                                   location=loop.location, before=reader)
            editor.set_operand(reader, position, pinned.results[0])
    return made


def _sent(module: Module) -> int | None:
    """Executed bytes of a device; None if the partitioner refuses the module, or a trip count is not known."""
    try:
        _, found, left_out = collectives_of(expose_collectives(module))
    except HlorewriteError:
        return None
    return None if left_out or not all(each.trips_known for each in found) else sum(c.executed_bytes for c in found)
