"""Collectives as plain data flow between processes, from the StableHLO specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hlorewrite.checks.reference.sequentialize.grid import Group, groups_of, pairs_of
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import collectives, ir, remap, terminator
from hlorewrite.ops.table import COMMUTATIVE

if TYPE_CHECKING:
    from hlorewrite.checks.reference.sequentialize.writer import LockstepWriter, Values, World


def run(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    """Writes one collective, or the id of each process.

    Args:
      lockstep: the writer.
      op: the op.
      operands: its operands in each process.
      world: the processes.

    Returns:
      Its results in each process.
    """
    return HANDLERS[op.name](lockstep, op, operands, world)


def _all_reduce(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    return _in_groups(lockstep, op, operands, world, lambda values, _, group: [
        _reduced(lockstep, op, values, group)] * len(values))


def _all_gather(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    dimension = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    return _in_groups(lockstep, op, operands, world, lambda values, type_, _: [
        concatenated(lockstep, values, dimension, type_)] * len(values))


def _reduce_scatter(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    dimension = ir.IntegerAttr(op.attributes["scatter_dimension"]).value
    return _in_groups(lockstep, op, operands[:1], world, lambda values, _, group: pieces(
        lockstep, _reduced(lockstep, op, values, group), dimension, len(values)))


def _all_to_all(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    split = ir.IntegerAttr(op.attributes["split_dimension"]).value
    concat = ir.IntegerAttr(op.attributes["concat_dimension"]).value
    count = ir.IntegerAttr(op.attributes["split_count"]).value

    def exchanged(values: list[ir.Value], type_: ir.Type, _: Group) -> list[ir.Value]:
        parts = [pieces(lockstep, value, split, count) for value in values]
        return [concatenated(lockstep, [part[place] for part in parts], concat, type_) for place in range(len(values))]

    return _in_groups(lockstep, op, operands, world, exchanged)


def _in_groups(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World,
               combine: Callable[[list[ir.Value], ir.Type, Group], list[ir.Value]]) -> list[Values]:
    """What each member of each group gets, of what its members hold, the type of the result, and the group."""
    groups = _groups(lockstep, op, world)
    out = []
    for values, result in zip(operands, op.results, strict=True):
        results = list(values)
        for group in groups:
            for process, made in zip(group, combine([values[p] for p in group], result.type, group), strict=True):
                results[process] = made
        out.append(tuple(results))
    return out


def _collective_permute(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World
                        ) -> list[Values]:
    pairs = pairs_of(op, world.grid)
    for pair in pairs:
        _check_active(lockstep, pair, world)
    return _sent(lockstep, op, operands[0], {target: source for source, target in pairs}, world)


def _collective_broadcast(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World
                          ) -> list[Values]:
    if collectives.DYNAMIC_ROOT in op.attributes:
        raise CannotExecute("a broadcast whose root is an operand cannot be run", location=lockstep.view.source(op),
                            hint="use --check=none for this module")
    sources = {process: group[0] for group in _groups(lockstep, op, world, everyone=False) for process in group}
    return _sent(lockstep, op, operands[0], sources, world)


def _sent(lockstep: LockstepWriter, op: ir.Operation, values: Values, sources: dict[int, int], world: World
          ) -> list[Values]:
    """What each process gets from its source; zeros where it has none."""
    zero = _zeros(lockstep, op.results[0].type) if len(sources) < world.grid.size else None
    received = [values[sources[p]] if p in sources else zero for p in range(world.grid.size)]
    return [tuple(v for v in received if v is not None)]


def _partition_id(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    return _ids(lockstep, op, [world.grid.partition_of(p) for p in range(world.grid.size)])


def _replica_id(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    return _ids(lockstep, op, [world.grid.replica_of(p) for p in range(world.grid.size)])


def _ids(lockstep: LockstepWriter, op: ir.Operation, ids: list[int]) -> list[Values]:
    made = {i: lockstep.constant(str(i), op.results[0].type) for i in dict.fromkeys(ids)}
    return [tuple(made[i] for i in ids)]


def _groups(lockstep: LockstepWriter, op: ir.Operation, world: World, everyone: bool = True) -> list[Group]:
    groups = groups_of(op, world.grid, lockstep.view)
    covered = {process for group in groups for process in group}
    if everyone and len(covered) < world.grid.size:
        missing = min(set(range(world.grid.size)) - covered)
        raise CannotExecute(f"device {missing} is in no group of {op.name}", location=lockstep.view.source(op),
                            hint="every device must be in a group")
    for group in groups:
        _check_active(lockstep, group, world)
    return groups


def _check_active(lockstep: LockstepWriter, group: Group, world: World) -> None:
    """Notes at run time whether some, but not all, of a group are active: real devices would wait forever."""
    if world.masks is None:
        return
    first, *rest = [world.masks[p] for p in group]
    lockstep.diverged += [lockstep.value("stablehlo.xor", [first, other], first.type)
                          for other in dict.fromkeys(rest) if other != first]


def _reduced(lockstep: LockstepWriter, op: ir.Operation, values: list[ir.Value], group: Group) -> ir.Value:
    """Combines the operands of a group in its order, by the reducer of the op, in the reducer's element type.

    A reducer may work in a wider type than the operands ("promotion"): they are converted before they are combined.
    """
    block = op.regions[0].blocks[0]
    elementwise = _elementwise(block)
    total, *rest = [_promoted(lockstep, value, block) for value in values]
    for value in rest:
        if elementwise:
            total = lockstep.value(elementwise, [total, value], total.type)
        else:
            total = _mapped(lockstep, op, (total, value), group)
    return total


def _promoted(lockstep: LockstepWriter, value: ir.Value, reducer: ir.Block) -> ir.Value:
    tensor = ir.RankedTensorType(value.type)
    element = ir.RankedTensorType(reducer.arguments[0].type).element_type
    if tensor.element_type == element:
        return value
    return lockstep.value("stablehlo.convert", [value], ir.RankedTensorType.get(tensor.shape, element))


def _elementwise(block: ir.Block) -> str | None:
    """The op a reducer consists of, when it can be applied to whole tensors."""
    if len(block.operations) != 2:
        return None
    op, end = block.operations[0].operation, terminator(block)
    same = list(op.operands) in ([block.arguments[0], block.arguments[1]], [block.arguments[1], block.arguments[0]])
    return op.name if op.name in COMMUTATIVE and same and end.operands[0] == op.results[0] else None


def _mapped(lockstep: LockstepWriter, op: ir.Operation, pair: tuple[ir.Value, ir.Value], group: Group) -> ir.Value:
    """Two operands combined by the reducer, and by what it reads from outside."""
    rank = len(ir.RankedTensorType(pair[0].type).shape)
    block = op.regions[0].blocks[0]
    if not all(lockstep.is_plain(inner.operation) for inner in block.operations):
        raise CannotExecute(f"the reducer of {op.name} contains an op the interpreter cannot run",
                            location=lockstep.view.source(op), hint="use a simpler reducer")
    read = {value: [made[process] for process in group] for value, made in lockstep.captured.items()}
    if any(len(set(made)) > 1 for made in read.values()):
        raise CannotExecute(f"the reducer of {op.name} reads a value that may differ between the devices of a group",
                            location=lockstep.view.source(op), hint="use a reducer that reads only its arguments")
    made = lockstep.emit("stablehlo.map", list(pair), [pair[0].type],
                         {"dimensions": ir.DenseI64ArrayAttr.get(list(range(rank)))}, regions=1)
    copy = op.clone().operation  # the reducer's block is moved out of a copy: jaxlib has no other way to clone it
    remap(copy, {value: made[0] for value, made in read.items()})
    copy.regions[0].blocks[0].append_to(made.regions[0])
    copy.erase()
    return made.results[0]


def _zeros(lockstep: LockstepWriter, type_: ir.Type) -> ir.Value:
    element = str(ir.RankedTensorType(type_).element_type)
    zero = "false" if element == "i1" else "0" if element.startswith(("i", "ui")) else "0.0"
    return lockstep.constant(zero, type_)


def concatenated(lockstep: LockstepWriter, values: list[ir.Value], dimension: int, type_: ir.Type) -> ir.Value:
    """Values one after the other along a dimension."""
    if len(values) == 1:
        return values[0]
    return lockstep.value("stablehlo.concatenate", values, type_, dimension=f"{dimension} : i64")


def pieces(lockstep: LockstepWriter, value: ir.Value, dimension: int, count: int) -> list[ir.Value]:
    """A value cut into equal parts along a dimension."""
    shape = list(ir.RankedTensorType(value.type).shape)
    size = shape[dimension] // count
    return [sliced(lockstep, value, [place * size if d == dimension else 0 for d in range(len(shape))],
                   [size if d == dimension else n for d, n in enumerate(shape)]) for place in range(count)]


def sliced(lockstep: LockstepWriter, value: ir.Value, starts: list[int], sizes: list[int]) -> ir.Value:
    """A rectangular slice of a value."""
    tensor = ir.RankedTensorType(value.type)
    if list(tensor.shape) == sizes:
        return value
    type_ = ir.RankedTensorType.get(sizes, tensor.element_type)
    return lockstep.emit("stablehlo.slice", [value], [type_], {
        "start_indices": ir.DenseI64ArrayAttr.get(starts),
        "limit_indices": ir.DenseI64ArrayAttr.get([a + n for a, n in zip(starts, sizes, strict=True)]),
        "strides": ir.DenseI64ArrayAttr.get([1] * len(sizes))}).results[0]


HANDLERS = {
    collectives.ALL_REDUCE.op: _all_reduce,
    collectives.ALL_GATHER.op: _all_gather,
    collectives.REDUCE_SCATTER.op: _reduce_scatter,
    collectives.ALL_TO_ALL.op: _all_to_all,
    collectives.COLLECTIVE_PERMUTE.op: _collective_permute,
    collectives.COLLECTIVE_BROADCAST.op: _collective_broadcast,
    "stablehlo.partition_id": _partition_id,
    "stablehlo.replica_id": _replica_id,
}
