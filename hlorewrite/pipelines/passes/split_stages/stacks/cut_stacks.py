"""Gives each stage its rows of stacked parameters, gradients and optimizer state."""

from collections.abc import Mapping, Sequence

from hlorewrite.ir import Editor, Loop, Module, ir, op_key, passmanager, sdy, with_dimension
from hlorewrite.ir.view import View, nested_ops, terminator
from hlorewrite.pipelines.mpmd.rows import ROWS, rows_attribute
from hlorewrite.pipelines.passes.split_stages.graph import ops_of
from hlorewrite.pipelines.passes.split_stages.remat import keep_what_was_sent
from hlorewrite.pipelines.passes.split_stages.stacks.by_part import PartWriter, StackCut, Stacks, stacks_of
from hlorewrite.pipelines.passes.split_stages.stacks.derived_parts import joins_tensors, row_range, rows_of
from hlorewrite.pipelines.passes.split_stages.stage_assignment import StageAssignment, place_body
from hlorewrite.pipelines.passes.split_stages.step import (
    ALIASED,
    RETURNED,
    argument_name,
    find_loop,
    mark_of,
    read_step,
)


def cut_stacks(module: Module) -> int | None:
    """Writes a step with its stacks by part: arguments, results, accumulators, and all that is computed row by row.

    A stack is cut where the slices of its rows in the micro-batch are read by another stage. Stages may have different
    numbers of its rows.

    Args:
      module: a step without calls, stage marks written as barriers; it is changed.

    Returns:
      How many stacks were cut, a parameter, its gradient and the optimizer's state for it being one; None where the
      module is as it was.
    """
    view = View(module)
    main = view.functions["main"]
    loop = find_loop(view, main)[0]
    slices = [(op, taken) for op in ops_of(Loop(loop).body)
              if (taken := row_range(op)) is not None and taken != (0, rows_of(op.operands[0]))]
    flat = any(map(joins_tensors, _behind(main, loop)))
    if not slices and not flat:
        return None
    stages = _reading_stages(module) if slices else {}
    stacks = stacks_of(main, loop)
    found: dict[ir.Value, list[tuple[int, int, int]]] = {}
    for op, taken in slices:
        if op_key(op) in stages:
            found.setdefault(stacks.find(op.operands[0]), []).append((*taken, stages[op_key(op)]))
    cuts: dict[ir.Value, StackCut] = {}
    for leader, reads in found.items():
        edges = _segments(reads, rows_of(leader))
        if len(edges) > 2 and not _cut_over_axes(main, stacks, leader):
            cuts[leader] = StackCut(edges)
    if not cuts and not flat:
        return None
    _write(view, main, loop, stacks, cuts)
    passmanager.PassManager.parse("builtin.module(cse)", module.context).run(module.operation)
    return len(cuts)


def _behind(main: ir.Operation, loop: ir.Operation) -> list[ir.Operation]:
    """The ops after the loop."""
    ops = ops_of(main.regions[0].blocks[0])
    return ops[next(place for place, op in enumerate(ops) if op == loop):]


def _reading_stages(module: Module) -> dict[int, int]:
    """The first stage that reads each slice of the micro-batch, by its key, as ops are placed without any cut."""
    copy = module.clone()
    step = read_step(View(copy), View(copy).functions["main"])
    at = StageAssignment(step.stages)
    keep_what_was_sent(step)
    place_body(step, at)
    values = step.values
    wanted: dict[int, set[int]] = {}  # value -> positions that read it, through what is made again anywhere
    stages: dict[int, int] = {}
    for node in reversed(step.body):
        reading = set().union(*(wanted.get(values.find(each), set()) for each in node.results))
        if mark_of(node.op) is not None or not values.is_cheap(node):
            reading = reading if node.place is None else {node.place}
        for each in node.reads:
            wanted.setdefault(values.find(each), set()).update(reading)
        if node.op is not None and reading:
            stages[op_key(node.op)] = at.stage(min(reading))
    pairs = zip(nested_ops(copy.operation), nested_ops(module.operation), strict=True)
    return {op_key(original): stages[op_key(op)] for op, original in pairs if op_key(op) in stages}


def _segments(slices: Sequence[tuple[int, int, int]], rows: int) -> tuple[int, ...]:
    """The edges between runs of rows by the stage that reads them first; rows that no stage reads join a neighbouring
    run.
    """
    first: list[int | None] = [None] * rows
    for low, high, stage in slices:
        for row in range(low, high):
            known = first[row]
            first[row] = stage if known is None else min(known, stage)
    current = next(stage for stage in first if stage is not None)
    stages: list[int] = []
    for stage in first:
        current = current if stage is None else stage
        stages.append(current)
    return (0, *(row for row in range(1, rows) if stages[row] != stages[row - 1]), rows)


def _argument_attributes(main: ir.Operation, name: str, count: int) -> list[dict[str, ir.Attribute]]:
    if name not in main.attributes:
        return [{} for _ in range(count)]
    return [{each.name: each.attr for each in ir.DictAttr(row)} for row in ir.ArrayAttr(main.attributes[name])]


def _cut_over_axes(main: ir.Operation, stacks: Stacks, leader: ir.Value) -> bool:
    """Whether an argument or result of a stack has its rows cut over devices already."""
    block = main.regions[0].blocks[0]
    for name, values in (("arg_attrs", list(block.arguments)), ("res_attrs", list(terminator(block).operands))):
        for value, row in zip(values, _argument_attributes(main, name, len(values)), strict=True):
            if rows_of(value) and stacks.find(value) == leader and "sdy.sharding" in row:
                dimensions = sdy.TensorShardingAttr(row["sdy.sharding"]).dimension_shardings
                if list(sdy.DimensionShardingAttr(dimensions[0]).axes):
                    return True
    return False


def _write(view: View, main: ir.Operation, loop: ir.Operation, stacks: Stacks, cuts: Mapping[ir.Value, StackCut]
           ) -> None:
    """Puts a new main function in place of the old one."""
    editor = Editor(view)
    writer = PartWriter(editor, loop, stacks, cuts)
    old = main.regions[0].blocks[0]
    arguments, results = list(old.arguments), list(terminator(old).operands)
    argument_cuts, result_cuts = ([writer.cut(value) for value in values] for values in (arguments, results))
    attributes = {name: main.attributes[name] for name in main.attributes
                  if name not in ("arg_attrs", "res_attrs", "function_type")}
    inputs = [type_ for value, cut in zip(arguments, argument_cuts, strict=True) for type_ in _types(value, cut)]
    outputs = [type_ for value, cut in zip(results, result_cuts, strict=True) for type_ in _types(value, cut)]
    with editor.context, main.location:
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs))
        attributes["arg_attrs"] = _rows(main, "arg_attrs", argument_cuts, result_cuts)
        attributes["res_attrs"] = _rows(main, "res_attrs", result_cuts, result_cuts)
        function = ir.Operation.create("func.func", attributes=attributes, regions=1, loc=main.location,
                                       ip=ir.InsertionPoint(main)).operation
        block = function.regions[0].blocks.append(*inputs, arg_locs=[
            location for number, (value, cut) in enumerate(zip(arguments, argument_cuts, strict=True))
            for location in _locations(value, cut, number)])
    writer.take(arguments, list(block.arguments), argument_cuts)
    writer.write(old, block, lambda: writer.spread(results, result_cuts))
    main.erase()


def _types(value: ir.Value, cut: StackCut | None) -> list[ir.Type]:
    return [value.type] if cut is None else [with_dimension(value.type, 0, high - low) for low, high in cut.parts]


def _locations(value: ir.Value, cut: StackCut | None, number: int) -> list[ir.Location]:
    if cut is None:
        return [value.location]
    return [ir.Location.name(f"{argument_name(value.location, number)}[{low},{high})") for low, high in cut.parts]


def _rows(main: ir.Operation, name: str, cuts: Sequence[StackCut | None], results: Sequence[StackCut | None]
          ) -> ir.Attribute:
    """Attributes of arguments or results, those of parts with their rows; a donated argument keeps its result."""
    starts = [sum(1 if cut is None else len(cut.parts) for cut in results[:number]) for number in range(len(results))]
    rows: list[ir.Attribute] = []
    for number, (cut, row) in enumerate(zip(cuts, _argument_attributes(main, name, len(cuts)), strict=True)):
        targets = {name: ir.IntegerAttr(row.pop(name)).value for name in (ALIASED, RETURNED) if name in row}
        for place, part in enumerate([None] if cut is None else cut.parts):
            own = dict(row)
            if part is not None:
                own[ROWS] = rows_attribute(number, *part)
            for name, to in targets.items():
                if results[to] == cut:
                    own[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), starts[to] + place)
                elif name == ALIASED:
                    own["jax.buffer_donor"] = ir.BoolAttr.get(True)
            rows.append(ir.DictAttr.get(own))
    return ir.ArrayAttr.get(rows)
