"""Values that a loop over micro-batches carries: finds those that are sums, and splits sums that span stages."""

from collections.abc import Callable

from hlorewrite.errors import PlanError
from hlorewrite.ir import Editor, View, defining_op, element_type, ir, users
from hlorewrite.passes.common.emit import splat_constant
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values
from hlorewrite.pipelines.passes.split_stages.shardings import Spec
from hlorewrite.pipelines.passes.split_stages.stage_assignment import StageAssignment, place_of
from hlorewrite.pipelines.passes.split_stages.step import Carried, TrainStep
from hlorewrite.pipelines.schedules import make_schedule

_LINEAR = frozenset(f"stablehlo.{name}" for name in ("convert", "transpose", "reshape", "negate", "broadcast_in_dim"))
_SCALES = frozenset(("stablehlo.multiply", "stablehlo.divide"))


def find_sums(step: TrainStep) -> None:
    """Records for each carried value whether micro-batches only add to it, or each write a separate place.

    Then their order does not matter. Anything else that reads the value makes the order matter.
    """
    values = step.values
    readers = readers_of(step)
    for carried in step.carried:
        current, final = values.find(carried.inside), values.find(carried.next)
        # Ends: each step goes to a reader after it.
        while True:
            using = readers.get(current, [])
            if current == final:
                carried.is_sum = not using and final != values.find(carried.inside)
                break
            if len(using) != 1 or not _adds(step, using[0], current):
                break
            current = using[0].results[0]


def readers_of(step: TrainStep) -> dict[int, list[StepNode]]:
    """The nodes of the body that read each value, once for each operand."""
    readers: dict[int, list[StepNode]] = {}
    for node in step.body:
        for each in node.reads:
            readers.setdefault(step.values.find(each), []).append(node)
    return readers


def _adds(step: TrainStep, node: StepNode, value: int) -> bool:
    values = step.values
    operands = [values.find(each) for each in node.operands]
    if node.name == "stablehlo.convert":
        return values.types[node.results[0]] == values.types[value]
    if node.name == "stablehlo.add":
        return True
    if node.name == "stablehlo.subtract":
        return operands[0] == value
    if node.name != "stablehlo.dynamic_update_slice" or operands[0] != value:
        return False
    return any(_is_counter(step, each) for each in operands[2:])


def _is_counter(step: TrainStep, number: int) -> bool:
    """Whether a value is the loop's counter, as the index of the place each micro-batch writes."""
    values = step.values
    # Ends: each step goes to an operand.
    while True:
        if number == step.counter:
            return True
        node = values.producer[number]
        if node is None or node.name not in ("stablehlo.convert", "stablehlo.reshape"):
            return False
        number = values.find(node.operands[0])


def separate_sums(step: TrainStep, at: StageAssignment) -> int:
    """Gives each stage that adds to a sum a separate accumulator; they are added up once after the loop.

    ``s + sum_k (a_k + b_k) = (s + sum_k a_k) + (0 + sum_k b_k)``: what stages contribute no longer meets in every
    micro-batch. This is how a parameter of two stages, such as tied embeddings, gets its gradient.

    Args:
      step: the step, its body placed, its sums found.
      at: the positions.

    Returns:
      How many sums were separated.
    """
    values = step.values
    readers = readers_of(step)
    count = 0
    for carried in list(step.carried):
        node = values.producer[values.find(carried.next)]
        if not carried.is_sum or node is None or node.name != "stablehlo.add" or node.place is None:
            continue
        inside = values.find(carried.inside)
        others = [values.find(each) for each in node.operands if values.find(each) != inside]
        if len(others) != 1 or len(node.operands) != 2:
            continue
        parts = _parts(values, others[0], at, readers)
        stages = sorted({at.stage(place) for _, place in parts})
        if len(stages) > 1:
            _separate(step, carried, node, parts, stages, at)
            count += 1
    return count


def _parts(values: Values, number: int, at: StageAssignment, readers: dict[int, list[StepNode]]) -> list[tuple[int,
                                                                                                               int]]:
    """The summands of a value that different stages make, each with its position."""
    node = values.producer[number]
    place = place_of(values, number)
    if node is None or place is None:
        return []
    whole = [(number, place)]
    if len(readers.get(number, ())) > 1:
        return whole
    if node.name == "stablehlo.add":
        inner_parts = [part for each in node.operands for part in _parts(values, values.find(each), at, readers)]
        every = all(place_of(values, each) is not None for each in node.operands)
        return inner_parts if every and len({at.stage(p) for _, p in inner_parts}) > 1 else whole
    inner = _linear_operand(values, node)
    if inner is None:
        return whole
    inner_parts = _parts(values, inner, at, readers)
    if len({at.stage(p) for _, p in inner_parts}) < 2:
        return whole
    return [(_again(values, node, inner, part, p), p) for part, p in inner_parts]


def _linear_operand(values: Values, node: StepNode) -> int | None:
    """The operand a node is linear in, its others floating."""
    placed = [values.find(each) for each in node.operands if place_of(values, each) is not None]
    if node.captured or len(placed) != 1:
        return None
    if node.name in _LINEAR or (node.name in _SCALES and placed[0] == values.find(node.operands[0])) or \
            node.name == "stablehlo.multiply":
        return placed[0]
    return None


def _again(values: Values, node: StepNode, inner: int, part: int, place: int) -> int:
    """The same op on a part; returns its result."""
    result = values.new(values.types[node.results[0]], values.locations[node.results[0]],
                        values.specs[node.results[0]])
    operands = tuple(part if values.find(each) == inner else each for each in node.operands)
    values.producer[result] = StepNode(node.op, operands, (), (result,), node.make, place)
    return result


def _separate(step: TrainStep, carried: Carried, node: StepNode, parts: list[tuple[int, int]], stages: list[int],
              at: StageAssignment) -> None:
    values = step.values
    total, home = values.find(carried.after), stages[0]
    kind = values.types[carried.inside]
    step.body.remove(node)
    sums: list[int] = []
    for stage in stages:
        own = [(number, place) for number, place in parts if at.stage(place) == stage]
        first = carried.first
        if stage != home:
            zero = values.make("zero", (), kind, carried.first)
            step.before.append(zero)
            first = zero.results[0]
        inside = carried.inside if stage == home else values.new(kind, values.locations[carried.inside],
                                                                  values.specs[carried.inside])
        following, place = inside, max(place for _, place in own)
        for number, _ in own:
            made = values.producer[number]
            if made is not None and made not in step.body:
                step.body.append(made)
            add = values.make("add", (following, number), kind, node.results[0])
            add.place = place
            step.body.append(add)
            following = add.results[0]
        after = values.new(kind, values.locations[total], values.specs[total])
        sums.append(after)
        if stage == home:
            carried.next, carried.after = following, after
        else:
            step.carried.append(Carried(first, inside, following, after, True))
    _add_up(step, sums, total)


def _add_up(step: TrainStep, sums: list[int], total: int) -> None:
    values = step.values
    running = sums[0]
    made = []
    for number in sums[1:]:
        add = values.make("add", (running, number), values.types[total], total)
        made.append(add)
        running = add.results[0]
    made[-1].results = (total,)
    values.producer[total] = made[-1]
    step.after[:0] = made


def check_order(step: TrainStep, at: StageAssignment, schedule: str, meshes: int, source: Callable[[StepNode],
                                                                                                   str]) -> None:
    """Refuses schedules that run the micro-batches of a task in an order other than the one that a carried value needs.

    Raises:
      PlanError: a carried value is not a sum, and its task runs out of order.
    """
    careful = [each for each in step.carried if not each.is_sum]
    if not careful or not schedule:
        return
    orders = _orders(schedule, meshes, at.stages, step.iterations)
    for each in careful:
        place = place_of(step.values, each.next)
        node = step.values.producer[step.values.find(each.next)]
        if place is None or node is None:
            continue
        kind = at.task(place)
        order = orders.get(("F" if kind == "F" else "B", at.stage(place)), [])
        if order != sorted(order):
            raise PlanError(f"{schedule} runs the backward passes of stage {at.stage(place)} in an order other than "
                            "that of the micro-batches, and a carried value there is not a sum", location=source(node),
                            hint="add to the carried value and nothing else, or use 1f1b")


def _orders(schedule: str, meshes: int, stages: int, microbatches: int) -> dict[tuple[str, int], list[int]]:
    chunks = stages // meshes if schedule == "interleaved-1f1b" else None
    orders: dict[tuple[str, int], list[int]] = {}
    for order in make_schedule(schedule, meshes, microbatches, chunks).orders:
        for task in order:
            orders.setdefault(("F" if task.kind == "F" else "B", task.stage), []).append(task.microbatch)
    return orders


def align_carried(step: TrainStep) -> None:
    """Gives the four forms of each carried value (first, inside, next, after) the layout of the value inside."""
    values = step.values
    readers: dict[int, int] = {}
    for node in (*step.before, *step.body, *step.after):
        for each in map(values.find, node.reads):
            readers[each] = readers.get(each, 0) + 1
    for each in (*(each.first for each in step.carried), *(each.next for each in step.carried), *step.results):
        readers[values.find(each)] = readers.get(values.find(each), 0) + 1
    for carried in step.carried:
        spec = values.specs[values.find(carried.inside)]
        values.specs[values.find(carried.after)] = spec
        carried.first = _laid_out(step, carried.first, spec, readers, step.before)
        carried.next = _laid_out(step, carried.next, spec, readers, step.body)


def _laid_out(step: TrainStep, number: int, spec: Spec | None, readers: dict[int, int], nodes: list[StepNode]) -> int:
    """A value in a layout: itself if it has no other reader, else a copy."""
    values = step.values
    number = values.find(number)
    if values.specs[number] == spec:
        return number
    made = values.producer[number]
    if made is not None and readers[number] == 1:
        values.specs[number] = spec
        return number
    copy = values.make("convert", (number,), values.types[number], number)
    copy.place = None if made is None else made.place
    values.specs[copy.results[0]] = spec
    nodes.append(copy)
    return copy.results[0]


# ---- micro-batches that are left out of a sum: ``where(ok, a + x, a)`` is the sum ``a + where(ok, x, 0)``


_SELECT, _ADD, _LOOP = "stablehlo.select", "stablehlo.add", "stablehlo.while"


def write_skips_as_sums(view: View, editor: Editor) -> int:
    """Writes each choice between an accumulator and the accumulator with an addend as a sum.

    ``select(p, a + x, a) = a + select(p, x, 0)``, and so with the branches exchanged. Both sides are equal except for
    the sign of a zero, whatever ``x`` holds where ``p`` is false. This is done for loop accumulators, and for additions
    that nothing else reads.

    Args:
      view: the module.
      editor: the editor of the module.

    Returns:
      How many there were.
    """
    found = [(select, position, add) for select in view.ops(_SELECT) for position in (1, 2)
             if (add := _adds_to(select, position)) is not None]
    for select, position, add in found:
        _write_sum(select, position, add, editor)
    return len(found)


def _adds_to(select: ir.Operation, position: int) -> ir.Operation | None:
    """The addition in a branch of a select whose other branch is the accumulator; None when there is none."""
    kept, add = select.operands[3 - position], defining_op(select.operands[position])
    if add is None or add.name != _ADD or len(users(add.results[0])) != 1:
        return None
    if not isinstance(kept.owner, ir.Block) or kept.owner.owner.name != _LOOP:
        return None
    element = element_type(kept)
    if not isinstance(element, ir.FloatType | ir.IntegerType) or str(element) == "i1":
        return None
    return add if sum(operand == kept for operand in add.operands) == 1 else None


def _write_sum(select: ir.Operation, position: int, add: ir.Operation, editor: Editor) -> None:
    kept = select.operands[3 - position]
    addend = next(operand for operand in add.operands if operand != kept)
    with editor.context:
        element = element_type(kept)
        number = ir.FloatAttr.get(element, 0.0, ir.Location.unknown()) if isinstance(element, ir.FloatType) else 0
    zero = splat_constant(editor, number, addend.type, select)
    branches = [addend, zero] if position == 1 else [zero, addend]
    chosen = editor.create(_SELECT, [select.operands[0], *branches], [addend.type], location=select.location,
                           before=select)
    total = editor.create(_ADD, [kept, chosen.results[0]], [kept.type], location=select.location, before=select)
    editor.replace(select.results[0], total.results[0])
    editor.erase(select)
    editor.erase(add)
