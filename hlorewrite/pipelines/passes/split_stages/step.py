"""Reads a step for ``split-stages``: its marks, its one loop over micro-batches, and what the loop carries."""

from dataclasses import dataclass, field

from hlorewrite.analysis.loops import constant_integer, trip_count
from hlorewrite.errors import InputError
from hlorewrite.ir import Editor, Loop, View, ancestors, defining_op, has_side_effect, ir
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values, ops_of

COMPOSITE, MARK = "hlorewrite.stage", "hlorewrite.mark"
_HOW = "mark stages with hlorewrite.stage inside one lax.scan or fori_loop over the micro-batches"


@dataclass
class Carried:
    """A value the loop carries and changes.

    Attributes:
      first: its number before the loop.
      inside: its number in the loop's body.
      next: the number of its next value.
      after: its number after the loop.
      is_sum: whether the order of the micro-batches does not matter to it.
    """

    first: int
    inside: int
    next: int
    after: int
    is_sum: bool = False


@dataclass
class TrainStep:
    """A step before it is split.

    Attributes:
      view: the view of its module.
      main: its main function.
      loop: its loop over micro-batches.
      values: its values.
      arguments: numbers of its arguments.
      results: numbers of its results.
      before: nodes before the loop.
      body: nodes of one micro-batch.
      after: nodes after the loop.
      carried: what the loop carries and changes.
      iterations: m, how many micro-batches there are.
      counter: number of the loop's counter; None if the loop has none that its body could read.
      start: the counter's first value.
      stride: what is added to it.
      stages: n, one more than the largest mark.
      returned: the position of the result that takes an argument's place in the next step, by the argument's position.
    """

    view: View
    main: ir.Operation
    loop: ir.Operation
    values: Values
    arguments: list[int]
    results: list[int]
    before: list[StepNode]
    body: list[StepNode]
    after: list[StepNode]
    carried: list[Carried]
    iterations: int
    counter: int
    start: int
    stride: int
    stages: int
    returned: dict[int, int] = field(default_factory=dict)

    def argument_name(self, number: int) -> str:
        """The name of an argument in the user's function."""
        return argument_name(self.values.locations[number], self.arguments.index(number))


def argument_name(location: ir.Location, position: int) -> str:
    """The name of an argument in the user's function, or its number if the name is not known."""
    text = str(location)
    return text[5:-2] if text.startswith('loc("') and text.endswith('")') and ":" not in text else \
        f"argument {position}"


def mark_of(op: ir.Operation | None) -> tuple[int, bool] | None:
    """(stage, backward) of a mark; None for other ops."""
    if op is None or op.name != "stablehlo.optimization_barrier" or MARK not in op.attributes:
        return None
    given = ir.DictAttr(op.attributes[MARK])
    return ir.IntegerAttr(given["stage"]).value, ir.BoolAttr(given["backward"]).value


def stage_mark(editor: Editor, value: ir.Value, mark: tuple[int, bool], location: ir.Location,
               before: ir.Operation | ir.InsertionPoint) -> ir.Value:
    """A value under the mark of a stage.

    Args:
      editor: the editor of the module.
      value: the value.
      mark: (stage, backward), as ``mark_of`` reads it.
      location: the location of the mark; its name says what is a backward.
      before: the op, or the place, to write it before.
    """
    stage, backward = mark
    with editor.context:
        said = ir.DictAttr.get({"stage": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), stage),
                                "backward": ir.BoolAttr.get(backward)})
        at = before if isinstance(before, ir.InsertionPoint) else ir.InsertionPoint(before)
    return editor.create("stablehlo.optimization_barrier", [value], [value.type], attributes={MARK: said},
                         location=location, at=at).results[0]


def marks_to_barriers(view: View) -> None:
    """Writes marks as barriers with an attribute: unlike composites, sharding propagation passes through them."""
    editor = Editor(view)
    for op in view.ops("stablehlo.composite"):
        if ir.StringAttr(op.attributes["name"]).value != COMPOSITE:
            continue
        new = editor.create("stablehlo.optimization_barrier", list(op.operands), [op.results[0].type],
                            attributes={MARK: op.attributes["composite_attributes"]}, location=op.location, before=op)
        editor.replace(op.results[0], new.results[0])
        editor.erase(op)


def find_loop(view: View, main: ir.Operation) -> tuple[ir.Operation, int]:
    """The loop that contains the marks, and the largest mark.

    Raises:
      InputError: there are no marks, marks outside a loop or in a loop inside it, or a forward mark is missing.
    """
    marks = [op for op in view.ops("stablehlo.optimization_barrier") if mark_of(op)]
    if not marks:
        raise InputError("the step has no stage marks", location=view.module.name, hint=_HOW)
    loop: ir.Operation | None = None
    seen: dict[int, ir.Operation] = {}
    for op in marks:
        index, backward = mark_of(op) or (0, False)
        around = list(ancestors(op))
        if len(around) != 2 or around[0].name != "stablehlo.while" or around[1] != main:
            where = "is outside the loop over micro-batches" if len(around) < 2 else \
                "is in a loop, branch or manual computation inside the micro-batch"
            raise InputError(f"the mark of stage {index} {where}", location=view.source(op), hint=_HOW)
        if loop is not None and around[0] != loop:
            raise InputError(f"the mark of stage {index} is in two loops over micro-batches, the second at "
                             f"{view.source(around[0])}", location=view.source(op),
                             hint="make each loop a separate pipelined step: values stay on their meshes in between")
        loop = around[0]
        if not backward:
            seen.setdefault(index, op)
    assert loop is not None
    last = max(seen, default=0)
    missing = next((index for index in range(1, last) if index not in seen), None)
    if missing is not None or not seen:
        raise InputError(f"stage {missing or 1} has no mark, stage {last} has one",
                         location=view.source(seen[last] if seen else loop), hint="mark stages 1, 2, 3, ... in turn")
    return loop, last


def refuse_effects(view: View) -> None:
    """Refuses ops that do more than compute: it is undefined on which mesh, and how often, they should run.

    Raises:
      InputError: there is one.
    """
    for op in view.ops("stablehlo.custom_call", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send",
                       "stablehlo.recv"):
        if op.name != "stablehlo.custom_call" or has_side_effect(op):
            raise InputError("the step prints, calls back or talks to the host here, which a pipeline cannot do",
                             location=view.source(op), hint="take jax.debug, io_callback and the like out of the step")


def read_step(view: View, main: ir.Operation) -> TrainStep:
    """The step as a graph.

    Args:
      view: the view of a module without calls, marks written as barriers.
      main: its main function.

    Returns:
      The step.

    Raises:
      InputError: marks or loop are not as they have to be.
    """
    loop, last = find_loop(view, main)
    return step_of(view, main, loop, last + 1)


def step_of(view: View, main: ir.Operation, loop: ir.Operation, stages: int) -> TrainStep:
    """The step as a graph, with a loop that is known.

    Args:
      view: the view of a module without calls.
      main: its main function.
      loop: its loop over micro-batches.
      stages: n.

    Returns:
      The step.

    Raises:
      InputError: it is not known how often the loop runs.
    """
    iterations = trip_count(loop)
    if iterations is None:
        raise InputError("the trip count of the loop over micro-batches is unknown", location=view.source(loop),
                         hint="use lax.scan, or lax.fori_loop with Python integers as bounds")
    values = Values()
    block = main.regions[0].blocks[0]
    arguments = [values.number(each) for each in block.arguments]
    ops = ops_of(block)
    place = next(i for i, op in enumerate(ops) if op == loop)
    before = values.nodes_of(ops[:place])
    counter, start, stride = _counter(loop)
    carried, number = _carried(values, Loop(loop), counter)
    body = values.nodes_of(ops_of(Loop(loop).body))
    for each in carried:  # yields may stand for values that were numbered only now
        each.next = values.find(each.next)
    after = values.nodes_of(ops[place + 1:])
    from hlorewrite.ir.view import terminator
    results = [values.number(each) for each in terminator(block).operands]
    return TrainStep(view, main, loop, values=values, arguments=arguments, results=results, before=before, body=body,
                     after=after, carried=carried, iterations=iterations, counter=number, start=start, stride=stride,
                     stages=stages, returned=returned_places(main))


ALIASED, RETURNED = "tf.aliasing_output", "hlorewrite.returned"
"""Attributes of an argument: the number of the result that takes its place in the next step, in its buffer or not."""


def returned_places(main: ir.Operation) -> dict[int, int]:
    """The result that takes the place of each argument in the next step, by position, if that is known."""
    if "arg_attrs" not in main.attributes:
        return {}
    found: dict[int, int] = {}
    for position, row in enumerate(map(ir.DictAttr, ir.ArrayAttr(main.attributes["arg_attrs"]))):
        name = next((each for each in (RETURNED, ALIASED) if each in row), None)
        if name is not None:
            found[position] = ir.IntegerAttr(row[name]).value
    return found


def _counter(loop: ir.Operation) -> tuple[int, int, int]:
    """(position, first value, step) of the value that the condition compares; the trip count is known."""
    parts = Loop(loop)
    compare = defining_op(parts.predicate)
    assert compare is not None
    argument = next(each for each in compare.operands
                    if isinstance(each, ir.BlockArgument) and each.owner == parts.condition
                    and parts.yields[each.arg_number] != parts.body.arguments[each.arg_number])
    position = argument.arg_number
    update = defining_op(parts.yields[position])
    assert update is not None
    other = next((each for each in update.operands if each != parts.body.arguments[position]), None)
    step = 0 if other is None else constant_integer(other) or 0
    return position, constant_integer(loop.operands[position]) or 0, \
        step if update.name == "stablehlo.add" else -step


def _carried(values: Values, loop: Loop, counter: int) -> tuple[list[Carried], int]:
    """The values that change from micro-batch to micro-batch; any other is the value from outside the loop."""
    carried: list[Carried] = []
    number = -1
    for position, argument in enumerate(loop.body.arguments):
        following = loop.yields[position]
        if following == argument:
            outer = values.number(loop.op.operands[position])
            values.numbers[argument] = outer
            values.numbers[loop.op.results[position]] = outer
        elif position == counter:
            number = values.number(argument)
            values.number(loop.op.results[position])
        else:
            carried.append(Carried(values.number(loop.op.operands[position]), values.number(argument),
                                   values.number(following), values.number(loop.op.results[position])))
    return carried, number


def cut_along_the_loop(step: TrainStep) -> list[tuple[StepNode, str]]:
    """Slices in which each micro-batch is on only some of the devices, with the axes of the cut."""
    values = step.values
    cut = []
    for node in step.body:
        if node.name != "stablehlo.dynamic_slice":
            continue
        type_ = ir.RankedTensorType(values.types[values.find(node.results[0])])
        for size, axes in zip(type_.shape, values.specs[values.find(node.operands[0])] or (), strict=False):
            if size == 1 and axes:
                cut.append((node, ", ".join(f'"{axis}"' for axis in axes)))
    return cut
