"""The stage and task that each op of a micro-batch belongs to.

Positions are numbered in the order of one micro-batch: F0 .. F(n-1), B(n-1) .. B0, then W(n-1) .. W0 where backwards
are split. An op is at the largest position of its operands; a forward mark i lifts to F(i), a backward one to
B(i-1). Ops that depend on no mark float: they are placed where they are used.
"""

from dataclasses import dataclass

from hlorewrite.errors import InputError
from hlorewrite.ir.location import op_name
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values, closure
from hlorewrite.pipelines.passes.split_stages.remat import is_recomputed
from hlorewrite.pipelines.passes.split_stages.step import TrainStep, mark_of
from hlorewrite.util.reachability import reachable

_BACKWARD_NAME = "transpose("  # what JAX calls ops of the backward pass
_ENDS_CHAIN = frozenset(f"stablehlo.{name}" for name in ("dot_general", "convolution", "scatter", "reduce"))


@dataclass(frozen=True)
class StageAssignment:
    """Numbers of positions.

    Attributes:
      stages: n.
      split: whether backwards come in two halves.
    """

    stages: int
    split: bool = False

    def task(self, position: int) -> str:
        """``F``, ``B``, ``I`` or ``W``."""
        if position < self.stages:
            return "F"
        if position < 2 * self.stages:
            return "I" if self.split else "B"
        return "W"

    def stage(self, position: int) -> int:
        """The stage of a position.

        Example:
          >>> [StageAssignment(2).stage(position) for position in range(6)]
          [0, 1, 1, 0, 1, 0]
        """
        n = self.stages
        return position if position < n else (2 * n - 1 - position if position < 2 * n else 3 * n - 1 - position)

    def backward(self, stage: int) -> int:
        """The position of a stage's backward pass, or of its first half."""
        return 2 * self.stages - 1 - stage

    def weights(self, stage: int) -> int:
        """The position of the second half of a stage's backward pass."""
        return 3 * self.stages - 1 - stage


def place_body(step: TrainStep, at: StageAssignment) -> list[StepNode]:
    """Gives each op of the micro-batch its position, except those that float.

    Args:
      step: the step; ``place`` of the nodes of its body is set.
      at: the positions.

    Returns:
      The nodes that depend on nothing that changes from micro-batch to micro-batch and cost too much to be made for
      each: they are taken out of the body.

    Raises:
      InputError: a mark is where it cannot be, or a carried value is read before the stage that writes it.
    """
    _lift(step, at)
    _last_backward(step, at)
    varying = varying_nodes(step)
    hoisted = _pin(step, at, varying)
    _check_carried(step, at)
    return hoisted


def place_of(values: Values, number: int) -> int | None:
    """The position that makes a value; None for one that floats or comes from outside the loop."""
    node = values.producer[values.find(number)]
    return None if node is None else node.place


def _lift(step: TrainStep, at: StageAssignment) -> None:
    values = step.values
    leads = _leads_to_mark(step)
    for node in step.body:
        places = [place for place in (place_of(values, each) for each in node.reads) if place is not None]
        place = max(places, default=None)
        mark = mark_of(node.op)
        if mark is not None:
            place = _marked(step, at, node, mark, place)
        elif place is not None and place < at.stages and id(node) not in leads and is_backward(node):
            place = at.backward(place)
        node.place = place


def _marked(step: TrainStep, at: StageAssignment, node: StepNode, mark: tuple[int, bool], place: int | None) -> int:
    """Where a mark's result is placed."""
    assert node.op is not None
    index, backward = mark
    if backward:
        target = at.backward(index - 1)
        if place is not None and place > target:
            raise InputError(f"the cotangent of the mark of stage {index} comes from stage {at.stage(place)}",
                             location=step.view.source(node.op), hint="mark stages in the order they run")
        return target
    again = place is not None and place >= at.stages
    if again and not is_recomputed(node) and op_name(node.op.location):  # without names either may be
        where = step.view.source(node.op)
        raise InputError(f"a gradient of the micro-batch goes into another forward pass here, which reaches the mark "
                         f"of stage {index} ({where}): a schedule runs each stage forward and backward once",
                         location=_use_of_gradient(step, at, node) or where,
                         hint="compute the gradient in a separate pipelined step, whose results stay on their "
                         "meshes, or keep both passes within one stage")
    if again or is_recomputed(node):
        raise InputError(f"the mark of stage {index} runs again in a backward pass, and differs from the "
                         "forward pass: jax.checkpoint is around it", location=step.view.source(node.op),
                         hint="put jax.checkpoint around parts of a stage, not around marks")
    if place is not None and place > index:
        raise InputError(f"stage {index} reads a value of stage {place}: marks are out of order",
                         location=step.view.source(node.op), hint="mark stages in the order they run")
    return index


def _use_of_gradient(step: TrainStep, at: StageAssignment, mark: StepNode) -> str:
    """The line of the first forward op between a gradient and a mark that depends on it; empty if none is known."""
    reached = {id(node) for node in reachable([mark], step.values.makers, key=id)}
    first = next((node for node in step.body if id(node) in reached and node is not mark and node.op is not None
                  and node.place is not None and node.place >= at.stages and not is_backward(node)
                  and mark_of(node.op) is None), None)
    return "" if first is None or first.op is None else step.view.source(first.op)


def is_backward(node: StepNode) -> bool:
    """Whether JAX made an op by transposing one of the forward pass."""
    return node.op is not None and _BACKWARD_NAME in op_name(node.op.location)


def _leads_to_mark(step: TrainStep) -> set[int]:
    """Nodes that a forward mark depends on: these are never part of a backward, whatever their names say."""
    leading: set[int] = set()
    for node in reversed(step.body):
        mark = mark_of(node.op)
        if (mark is not None and not mark[1]) or id(node) in leading:
            leading.update(map(id, step.values.makers(node)))
    return leading


def _last_backward(step: TrainStep, at: StageAssignment) -> None:
    """Separates the last stage's backward from its forward if ops have no names: ops that only gradients need are
    backward.
    """
    last = at.stages - 1
    here = [node for node in step.body if node.place == last]
    if not here or any(is_backward(node) for node in step.body):
        return
    values = step.values
    forward: set[int] = set()
    for carried in step.carried:
        node = values.producer[values.find(carried.next)]
        if node is not None and node.place == last and _rank(values, carried.next) == 0:
            forward.add(id(node))
    for node in reversed(here):
        if id(node) in forward or mark_of(node.op):
            forward.add(id(node))
            forward.update(map(id, values.makers(node)))
    for node in here:
        if id(node) not in forward:
            node.place = at.backward(last)


def _rank(values: Values, number: int) -> int:
    from hlorewrite.ir.binding import ir
    return ir.RankedTensorType(values.types[number]).rank


def varying_nodes(step: TrainStep) -> set[int]:
    """Nodes of the body that depend on the micro-batch, by identity."""
    values = step.values
    changing = {values.find(each.inside) for each in step.carried} | {step.counter}
    varying: set[int] = set()
    for node in step.body:
        if any(values.find(each) in changing for each in node.reads) or any(
                id(made) in varying for made in values.makers(node)):
            varying.add(id(node))
    return varying


def _pin(step: TrainStep, at: StageAssignment, varying: set[int]) -> list[StepNode]:
    """Gives floating nodes that are not cheap their position; takes out those that never change.

    What a mark's operand depends on is on the stage before the mark, what reads that follows it, and the rest
    stands where it is first needed. A value carried without touching any stage (a random key, a count of tokens) is
    computed where it is first read, or on the last stage.
    """
    values = step.values
    needed = _needed(step, at)
    own = {values.find(each.inside) for each in step.carried if place_of(values, each.next) is None}
    first = min((needed[each] for each in own if each in needed), default=at.stages - 1)
    for each in step.carried:
        if values.find(each.inside) in own:
            needed[values.find(each.next)] = min(first, needed.get(values.find(each.next), first))
            node = values.producer[values.find(each.next)]
            if node is not None and id(node) in varying:
                node.place = first
    _pin_before_marks(step, varying, needed)
    _follow(step, varying)
    _needed(step, at, needed, varying)
    hoisted: dict[int, StepNode] = {}
    inside = set(map(id, step.body))
    for node in step.body:
        if node.place is None and id(node) not in varying and not values.is_cheap(node):
            made = closure(values, node.results, lambda each: id(each) in inside)[0]
            hoisted.update((id(each), each) for each in made)
    step.body[:] = [node for node in step.body if id(node) not in hoisted]
    return list(hoisted.values())


def _needed(step: TrainStep, at: StageAssignment, needed: dict[int, int] | None = None,
            pinning: set[int] | None = None) -> dict[int, int]:
    """The earliest position that needs each value, from readers to what they read; pins nodes of a set on the way."""
    values = step.values
    needed = {} if needed is None else needed

    def need(number: int, position: int) -> None:
        number = values.find(number)
        needed[number] = min(position, needed.get(number, position))

    for node in reversed(step.body):
        mark = mark_of(node.op)
        if mark is not None:
            need(node.operands[0], at.backward(mark[0]) if mark[1] else mark[0] - 1)
            continue
        positions = [needed[each] for each in node.results if each in needed]
        if node.place is None and positions and pinning is not None and id(node) in pinning and \
                not values.is_cheap(node):
            node.place = min(positions)
        position = node.place if node.place is not None else min(positions, default=None)
        if position is not None:
            for each in node.reads:
                need(each, position)
    return needed


def _pin_before_marks(step: TrainStep, varying: set[int], needed: dict[int, int]) -> None:
    """Floating nodes that forward marks depend on: the stage before the first such mark."""
    values = step.values
    heavy: set[int] = set()  # varying nodes that float and cost something, or depend on such
    for node in step.body:
        if node.place is None and id(node) in varying and (
                not values.is_cheap(node) or any(id(made) in heavy for made in values.makers(node))):
            heavy.add(id(node))
    bound: dict[int, int] = {}
    for node in reversed(step.body):
        mark = mark_of(node.op)
        limit = mark[0] - 1 if mark is not None and not mark[1] else bound.get(id(node))
        if limit is None:
            continue
        for made in values.makers(node):
            if made.place is None and id(made) in heavy:
                bound[id(made)] = min(limit, bound.get(id(made), limit))
                if mark is not None:  # what crosses is computed where it comes from, however cheap the last op
                    made.place = bound[id(made)]
        if node.place is None and not values.is_cheap(node):
            node.place = min([limit, *(needed[each] for each in node.results if each in needed)])


def _follow(step: TrainStep, varying: set[int]) -> None:
    """Floating nodes stand where what they read stands, if any of it has a position: as on stages after a mark."""
    values = step.values
    reached: dict[int, int] = {}  # floating node -> largest position it depends on
    for node in step.body:
        if node.place is not None or id(node) not in varying:
            continue
        places = [made.place if made.place is not None else reached.get(id(made), -1) for made in values.makers(node)]
        if max(places, default=-1) < 0:
            continue
        reached[id(node)] = max(places)
        node.place = max(places)


def sink_forwards(step: TrainStep, at: StageAssignment) -> None:
    """Moves ops of a forward pass that only its own backward pass needs into that pass, if less has to be kept
    afterwards.

    JAX computes ``1 - h*h``, the derivative of ``h = tanh(x)``, next to ``h``, so it would be kept instead of ``h``, or
    in addition to it.
    """
    values = step.values
    carried = {values.find(each.next) for each in step.carried}
    readers: dict[int, set[int]] = {}  # value -> positions that read it, through what floats
    kept: set[tuple[int, int]] = set()  # (value, position) read there anyway
    for node in reversed(step.body):
        wanted = set().union(*(readers.get(each, ()) for each in node.results))
        place = node.place
        if place is not None and place < at.stages and wanted == {at.backward(place)} and not mark_of(node.op) and \
                not any(each in carried for each in node.results):
            back = at.backward(place)
            fresh = {each for each in map(values.find, node.reads) if (each, back) not in kept
                     and place_of(values, each) is not None and place_of(values, each) != back}
            saved = sum(values.bytes(each) for each in node.results if each in readers)
            if sum(map(values.bytes, fresh)) <= saved:
                place = node.place = back
        for each in map(values.find, node.reads):
            readers.setdefault(each, set()).update(wanted if place is None else (place,))
            kept.update((each, position) for position in (wanted if place is None else (place,)))


def _check_carried(step: TrainStep, at: StageAssignment) -> None:
    """No carried value may be read by a task that comes before the one that writes it."""
    values = step.values
    readers: dict[int, list[StepNode]] = {}
    for node in step.body:
        for each in node.reads:
            readers.setdefault(values.find(each), []).append(node)
    for carried in step.carried:
        written = place_of(values, carried.next)
        if written is None:
            continue
        reading = reachable(
            readers.get(values.find(carried.inside), ()), lambda node: [] if node.place is not None else [
                user for result in node.results for user in readers.get(result, ())], key=id)
        for node in reading:
            if node.place is not None and node.place < written:
                assert node.op is not None
                raise InputError(
                    f"stage {at.stage(node.place)} reads in its {_word(at, node.place)} what stage "
                    f"{at.stage(written)} passes to the next micro-batch in its {_word(at, written)}",
                    location=step.view.source(node.op),
                    hint="a pipeline runs several micro-batches at a time: carry only values that one stage reads "
                         "and writes")


def check_places(step: TrainStep) -> None:
    """Refuses cuts that make a task read a later task's result; marks that a user writes cannot cause this.

    Raises:
      InputError: there is such a task.
    """
    for node in step.body:
        for made in step.values.makers(node):
            if node.place is not None and made.place is not None and made.place > node.place and node.op is not None:
                raise InputError("a stage would read a value that a later stage makes",
                                 location=step.view.source(node.op),
                                 hint="pass other cuts, or mark stages with hlorewrite.stage")


def _word(at: StageAssignment, position: int) -> str:
    return "forward" if at.task(position) == "F" else "backward"


def split_backwards(step: TrainStep, at: StageAssignment) -> None:
    """Moves ops that no other stage waits for to the second half of each backward pass.

    The first half computes what the cotangents for other stages depend on. Stage 0 sends none; its second half consists
    of the products that make the weights' gradients and what only follows from them.
    """
    values = step.values
    outward: set[int] = set()  # values needed by other positions, or by first halves
    for node in reversed(step.body):
        stands = node.place is not None and at.stages <= node.place < 2 * at.stages
        sends = not stands or any(values.find(each) in outward for each in node.results)
        for each in node.reads:
            made = values.producer[values.find(each)]
            if made is not None and (made.place != node.place or (stands and sends)):
                outward.add(values.find(each))
        if stands and not sends and at.stage(node.place or 0) > 0:
            node.place = at.weights(at.stage(node.place or 0))
    _first_stage_weights(step, at)


def _first_stage_weights(step: TrainStep, at: StageAssignment) -> None:
    values, here = step.values, at.backward(0)
    writers = [made for made in (values.producer[values.find(each.next)] for each in step.carried) if made]
    second = {id(node) for node in reachable(
        writers, lambda node: () if node.place != here or node.name in _ENDS_CHAIN else values.makers(node), key=id)
        if node.place == here}
    kept: set[int] = set()  # values the first half reads
    for node in reversed(step.body):
        if node.place == here and (id(node) not in second or any(values.find(each) in kept for each in node.results)):
            second.discard(id(node))
            kept.update(map(values.find, node.reads))
    for node in step.body:
        if id(node) in second:
            node.place = at.weights(0)
