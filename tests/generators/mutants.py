"""Mutants: a program with one small mistake in it, of the kinds a rewriter could make.

Each changes one place of a clone: an operand, an op, a collective (dropped, doubled, moved, over other groups, with
another reducer), a constant, a direction, a slot of a loop, a predicate, an element type, an attribute of integers.
Nothing here says which of them are equal to the program.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from hlorewrite.ir.binding import ir
from hlorewrite.ir.module import Module

BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide")
LOGICAL = ("and", "or", "xor")
GROUPS = ("[[0], [1], [2], [3]]", "[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]", "[[0, 1, 2, 3]]", "[[0, 3], [1, 2]]",
          "[[3, 2, 1, 0]]", "[[1, 0]]", "[[0], [1]]", "[[0, 1]]", "[[0, 1, 2, 3, 4, 5, 6, 7]]",
          "[[0, 1, 2, 3], [4, 5, 6, 7]]", "[[0, 4], [1, 5], [2, 6], [3, 7]]", "[[0, 1], [2, 3], [4, 5], [6, 7]]",
          "[[0, 2, 4, 6], [1, 3, 5, 7]]")
NARROWER = {"f32": "bf16", "i32": "i8", "f64": "f32", "bf16": "f8E4M3FN", "i8": "i4", "ui8": "ui4", "i64": "i16"}
Mutator = Callable[[random.Random, list[ir.Operation]], bool]


def mutant(original: Module, choices: random.Random) -> tuple[Module, str] | None:
    """A clone with one change that the verifier accepts.

    Args:
      original: the program; it stays as it is.
      choices: where decisions come from.

    Returns:
      The mutant and what was done; None when the change drawn does not fit or does not verify.
    """
    module = original.clone()
    ops = [op for op in inner_ops(module.mlir.operation) if op.name not in ("func.func", "sdy.mesh", "builtin.module")
           and (not len(op.results) or any(True for result in op.results for _ in result.uses))]
    name = choices.choice(list(MUTATORS))
    with module.context, ir.Location.unknown():
        if not MUTATORS[name](choices, ops):
            return None
    return None if module.verify() else (module, name)


def inner_ops(op: ir.Operation) -> Iterator[ir.Operation]:
    """An op and all in its regions."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from inner_ops(inner.operation)


def in_scope(op: ir.Operation) -> list[ir.Value]:
    """Values that stand before an op in its block and the blocks around, as far as its function goes."""
    values: list[ir.Value] = []
    while op.name not in ("func.func", "builtin.module"):
        block = op.block
        values += list(block.arguments)
        for other in block.operations:
            if other.operation == op:
                break
            values += list(other.operation.results)
        if block.owner is None:
            break
        op = block.owner.operation
    return values


def named(choices: random.Random, ops: list[ir.Operation], names: tuple[str, ...]) -> ir.Operation | None:
    """One of the ops of some names."""
    fitting = [op for op in ops if op.name.removeprefix("stablehlo.") in names]
    return choices.choice(fitting) if fitting else None


COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_permute", "collective_broadcast")


def other_operand(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """An op reads another value of the type."""
    fitting = [op for op in ops if len(op.operands)]
    op = choices.choice(fitting)
    place = choices.randrange(len(op.operands))
    old = op.operands[place]
    candidates = [value for value in in_scope(op) if value.type == old.type and value != old]
    if not candidates:
        return False
    op.operands[place] = choices.choice(candidates)
    return True


def swapped_operands(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """Two operands of an op change places: of a difference, the slots of a loop, what a loop starts from."""
    fitting = [op for op in ops if len(op.operands) > 1]
    if not fitting:
        return False
    op = choices.choice(fitting)
    a, b = choices.sample(range(len(op.operands)), 2)
    first, second = op.operands[a], op.operands[b]
    if first.type != second.type or first == second:
        return False
    op.operands[a], op.operands[b] = second, first
    return True


def swapped_slots(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """Two slots of a loop or branch change places at its end."""
    return swapped_operands(choices, [op for op in ops if op.name == "stablehlo.return" and len(op.operands) > 1])


def other_result(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A reader of a loop, branch or collective reads another result of it."""
    fitting = [op for op in ops if len(op.results) > 1]
    if not fitting:
        return False
    op = choices.choice(fitting)
    a, b = choices.sample(list(op.results), 2)
    uses = [(use.owner.operation, use.operand_number) for use in a.uses]
    if a.type != b.type or not uses:
        return False
    reader, place = choices.choice(uses)
    reader.operands[place] = b
    return True


def other_op(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """An op with two operands, or a reducer, computes something else."""
    op = named(choices, ops, BINARY + LOGICAL)
    if op is None:
        return False
    kinds = BINARY if op.name[10:] in BINARY else LOGICAL
    name = choices.choice([kind for kind in kinds if kind != op.name[10:]])
    made = ir.Operation.create(f"stablehlo.{name}", [op.results[0].type], list(op.operands), ip=ir.InsertionPoint(op))
    op.results[0].replace_all_uses_with(made.results[0])
    return True


def other_reducer(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """The region of a reduction combines otherwise."""
    inside = [inner for op in ops if op.name in ("stablehlo.all_reduce", "stablehlo.reduce_scatter", "stablehlo.reduce",
                                                 "stablehlo.scatter") for inner in inner_ops(op) if inner != op]
    return other_op(choices, inside)


def dropped(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """An op is left out: its readers get one of its operands."""
    fitting = [(op, result, operand) for op in ops if op.name != "stablehlo.while" for result in op.results
               for operand in op.operands if operand.type == result.type]
    if not fitting:
        return False
    _, result, operand = choices.choice(fitting)
    result.replace_all_uses_with(operand)
    return True


def dropped_collective(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A collective is left out."""
    return dropped(choices, [op for op in ops if op.name[10:] in COLLECTIVES])


def doubled(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """An op, most often a collective, is applied once more to its result."""
    names = COLLECTIVES if choices.randrange(3) else ("add", "multiply", "negate", "divide", "convert", "reverse")
    op = named(choices, ops, names)
    if op is None or op.operands[0].type != op.results[0].type:
        return False
    return _applied(op, op.results[0], op)


def _applied(op: ir.Operation, value: ir.Value, after: ir.Operation) -> bool:
    """Puts a copy of an op after another one; readers of a value read its result."""
    uses = [(use.owner.operation, use.operand_number) for use in value.uses]
    copy = op.clone(ip=ir.InsertionPoint(after)).operation
    copy.move_after(after)
    copy.operands[0] = value
    for reader, place in uses:
        reader.operands[place] = copy.results[0]
    return bool(uses)


def added_collective(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A collective of the program is applied to another value too."""
    op = named(choices, ops, ("all_reduce", "collective_permute"))
    if op is None or len(op.operands) != 1:
        return False
    fitting = [(each, result) for each in ops for result in each.results
               if result.type == op.operands[0].type and each != op]
    if not fitting:
        return False
    each, result = choices.choice(fitting)
    return _applied(op, result, each)


def moved(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """An op leaves the loop or branch it stands in."""
    fitting = [op for op in ops if len(op.results) and op.block.owner is not None
               and op.block.owner.operation.name in ("stablehlo.while", "stablehlo.if", "stablehlo.case")]
    if not fitting:
        return False
    op = choices.choice(fitting)
    op.move_before(op.block.owner.operation)
    return True


def other_groups(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A collective works over other groups, or means its ids otherwise."""
    op = named(choices, ops, COLLECTIVES)
    if op is None:
        return False
    name = "source_target_pairs" if "source_target_pairs" in op.attributes else "replica_groups"
    if choices.randrange(5) == 0 and "use_global_device_ids" in op.attributes:
        del op.attributes["use_global_device_ids"]
        return True
    if choices.randrange(8) == 0 and "channel_handle" in op.attributes and name == "source_target_pairs":
        del op.attributes["channel_handle"]
        return True
    rows = choices.choice(GROUPS)
    if name == "source_target_pairs":
        text = str(op.attributes[name])
        numbers = re.findall(r"\d+", text.split(">")[0].split("tensor")[0].split(" : ")[0])
        if len(numbers) < 2:
            return False
        choices.shuffle(numbers)
        rows = "[" + ", ".join(f"[{a}, {b}]" for a, b in zip(numbers[::2], numbers[1::2], strict=False)) + "]"
    size = f"{rows.count('[') - 1}x{len(rows.split(']')[0].split(','))}"
    new = ir.Attribute.parse(f"dense<{rows}> : tensor<{size}xi64>")
    if new == op.attributes[name]:
        return False
    op.attributes[name] = new
    return True


def other_constant(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A constant holds another number; so loops run more often, and slices start elsewhere."""
    op = named(choices, ops, ("constant",))
    if op is None:
        return False
    type_ = ir.RankedTensorType(op.results[0].type)
    element = str(type_.element_type)
    if element == "i1":
        number = choices.choice(["true", "false"])
    elif element.lstrip("ui").isdigit():
        number = str(choices.choice([0, 1, 2, 3, 5]))
    elif element in ("f32", "bf16", "f64", "f16"):
        number = choices.choice(["0.0", "1.0", "2.0", "-1.0", "0.5", "0xFF800000" if element == "f32" else "3.0"])
    else:
        return False
    new = ir.Attribute.parse(f"dense<{number}> : {type_}")
    if new == op.attributes["value"]:
        return False
    op.attributes["value"] = new
    return True


def other_direction(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A comparison asks for something else."""
    op = named(choices, ops, ("compare",))
    if op is None:
        return False
    new = ir.Attribute.parse(f"#stablehlo<comparison_direction {choices.choice(['EQ', 'NE', 'LT', 'LE', 'GT', 'GE'])}>")
    if new == op.attributes["comparison_direction"]:
        return False
    op.attributes["comparison_direction"] = new
    return True


def negated(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A predicate is negated."""
    truth = ir.Type.parse("tensor<i1>")
    fitting = [(op, place) for op in ops for place, operand in enumerate(op.operands) if operand.type == truth]
    if not fitting:
        return False
    op, place = choices.choice(fitting)
    made = ir.Operation.create("stablehlo.not", [truth], [op.operands[place]], ip=ir.InsertionPoint(op))
    op.operands[place] = made.results[0]
    return True


def narrowed(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """A value passes through a narrower element type."""
    fitting = [(op, place) for op in ops if not op.name.endswith("return") for place, operand in enumerate(op.operands)
               if isinstance(operand.type, ir.RankedTensorType)
               and str(ir.RankedTensorType(operand.type).element_type) in NARROWER]
    if not fitting:
        return False
    op, place = choices.choice(fitting)
    value = op.operands[place]
    type_ = ir.RankedTensorType(value.type)
    narrow = ir.RankedTensorType.get(type_.shape, ir.Type.parse(NARROWER[str(type_.element_type)]))
    for target in (narrow, type_):
        value = ir.Operation.create("stablehlo.convert", [target], [value], ip=ir.InsertionPoint(op)).results[0]
    op.operands[place] = value
    return True


def other_integers(choices: random.Random, ops: list[ir.Operation]) -> bool:
    """An attribute of integers changes: where a slice starts, which dimension is scattered, the order of dimensions."""
    names = ("scatter_dimension", "all_gather_dim", "split_dimension", "concat_dimension", "dimension", "permutation",
             "broadcast_dimensions", "dimensions", "start_indices", "iota_dimension")
    fitting = [(op, name) for op in ops for name in names if name in op.attributes]
    if not fitting:
        return False
    op, name = choices.choice(fitting)
    if name == "start_indices":
        shift = choices.choice([-1, 1, 2, -2])
        for each in ("start_indices", "limit_indices"):
            old = list(ir.DenseI64ArrayAttr(op.attributes[each]))
            op.attributes[each] = ir.DenseI64ArrayAttr.get([n + shift for n in old])
        return True
    old = op.attributes[name]
    if isinstance(old, ir.IntegerAttr):
        op.attributes[name] = ir.IntegerAttr.get(old.type, 1 - min(1, old.value))
        return True
    numbers = list(ir.DenseI64ArrayAttr(old))
    choices.shuffle(numbers)
    if numbers == list(ir.DenseI64ArrayAttr(old)):
        return False
    op.attributes[name] = ir.DenseI64ArrayAttr.get(numbers)
    return True


MUTATORS: dict[str, Mutator] = {each.__name__.replace("_", " "): each for each in (
    other_operand, swapped_operands, swapped_slots, other_result, other_op, other_reducer, dropped, dropped_collective,
    doubled, added_collective, moved, other_groups, other_constant, other_direction, negated, narrowed, other_integers)}
