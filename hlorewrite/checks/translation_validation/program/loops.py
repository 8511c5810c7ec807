"""Loops: the values they carry are streams, and a reduction waits through a loop that all members leave together.

A ``LoopShape`` is a guess, which may be wrong; one pass over the body checks it:

* a part that is proposed to stay is yielded as it came in (then it is so in every iteration, by induction);
* a part that waits for a reduction goes through a loop whose predicate is the same on all members of a group, because
  ``exit(AR(x)) = AR(exit(x))`` needs that they take ``exit`` in the same iteration;
* values that the body assumed to be the same on all members are so, given that they were in the iteration before.

A refuted part of the guess is changed, and the body is read again; there are finitely many parts.

In a nest, a loop that waits for a reduction makes the loop around it wait too, so all of them are read again. A loop
inside two or more others does not start that itself: it returns the result of one iteration, which shows what waits,
and the loop around it is read again in any case. Otherwise each loop would be read once for every loop around it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlorewrite.analysis.loops import trip_count
from hlorewrite.checks.translation_validation.program.last_iteration import is_even, once_less, step_of
from hlorewrite.checks.translation_validation.program.row_stacks import left_by
from hlorewrite.checks.translation_validation.program.state import CollectiveRun, LoopShape, ProgramState, PutOff
from hlorewrite.checks.value_graph.graph import LOCAL, Key, PendingReduction, SymbolicValue, joined, part_type, parts_of
from hlorewrite.ir import Loop, defining_op, ir, op_key, terminator

_EFFECTS = -1
_READ_AT_ONCE = 2
"""Loops up to this depth are read again until their shape is confirmed; a loop around an unconfirmed one, only at depth
1."""


@dataclass(frozen=True)
class LoopPass:
    """One pass over a loop under a proposal.

    Attributes:
      entered: what each slot holds in an iteration, by key.
      yielded: what it holds in the next one.
      results: what the body makes, whatever is proposed of it.
      streams: the nodes of the parts that change.
      predicate: whether another iteration follows.
      whole: the same with the last iteration, if that is handled separately.
      effects: the effects before an iteration and after it.
    """

    entered: list[dict[Key, int]]
    yielded: list[dict[Key, int]]
    results: list[SymbolicValue]
    streams: dict[tuple[int, Key], int]
    predicate: int
    whole: int
    effects: tuple[int, int]


def loop(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """``while``: the streams at the first iteration in which the predicate is false."""
    if (few := _few_iterations(state, op)):
        return _in_turn(state, op, values, few)
    shape = state.shapes.get(op_key(op))
    if shape is None:
        shape = state.shapes[op_key(op)] = _guessed(op) if state.strategy.quick else LoopShape()
        shape.paired = op_key(op) in state.in_pairs
    mark, before, put_off = (len(state.executions), len(state.loops)), state.effects, state.put_off
    state.depth += 1
    for slot, value in enumerate(values):
        if isinstance(value, PendingReduction) and slot not in shape.forced:
            shape.kinds.setdefault(slot, value.kind)
    # Ends: each round adds to this shape or to one within: forced slots or differences or, with those kept, streams,
    # kinds or effects; a step is tried once.
    while True:
        del state.executions[mark[0]:], state.loops[mark[1]:]
        state.effects, size = before, _size(shape)
        state.put_off = PutOff.NOTHING
        done = _run(state, op, values, shape)
        if _holds(state, shape, done, size) and (op_key(op) not in state.last_apart
                                                 or _last_is_apart(state, shape, done)):
            if not shape.paired or is_even(state.graph, done.predicate):
                break
            shape.paired = False
        if state.strategy.quick and state.depth > (1 if state.put_off else _READ_AT_ONCE):
            state.depth -= 1
            return _put_off(state, done, PutOff.SHAPE if len(shape.kinds) == size[2] else PutOff.KINDS)
    state.depth -= 1
    state.put_off = put_off
    state.effects = done.effects[0]
    if shape.effects:
        state.effects = state.graph.node(("exit", state.depth), "", (done.streams[_EFFECTS, LOCAL], done.predicate))
    left = [_left(state, shape, done, slot, state.type_of(result)) for slot, result in enumerate(op.results)]
    if done.whole != done.predicate:
        state.read_again += 1
        left = state.run_block(op.regions[1].blocks[0], left)
        state.read_again -= 1
    state.forget_blocks()
    return left


def _put_off(state: ProgramState, done: LoopPass, what: PutOff) -> list[SymbolicValue]:
    """Leaves a refuted loop to the next pass of the loop around it; returns the result of one iteration."""
    for node in done.streams.values():
        state.graph.yields.setdefault(node, node)  # it may be followed until then, and is not read after that
    state.put_off = max(state.put_off, what)
    return done.results


def _few_iterations(state: ProgramState, op: ir.Operation) -> int:
    """How often a loop runs that is evaluated iteration by iteration: once, or once before a last iteration apart."""
    trips = trip_count(op)
    return trips if trips == 1 or (trips == 2 and op_key(op) in state.last_apart) else 0


def _in_turn(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue], times: int
             ) -> list[SymbolicValue]:
    """``while`` of a known number of iterations: the condition before each and after the last."""
    condition, body = (region.blocks[0] for region in op.regions)
    held = list(values)
    for _ in range(times):
        state.run_block(condition, held)
        held = state.run_block(body, held)
    state.run_block(condition, held)
    return held


def _guessed(op: ir.Operation) -> LoopShape:
    """Facts from the text of a loop: a slot changes if the body does not yield it unchanged."""
    body = op.regions[1].blocks[0]
    pairs = zip(body.arguments, terminator(body).operands, strict=True)
    return LoopShape(streams={(slot, LOCAL) for slot, (argument, end) in enumerate(pairs)
                              if not _passes_through(end, argument)})


def _passes_through(value: ir.Value, argument: ir.Value) -> bool:
    """Whether a value is an argument of the enclosing block, passed unchanged through the loops and barriers inside."""
    # Ends: each step goes to an operand.
    while value != argument:
        op = defining_op(value)
        if op is None or op.name not in ("stablehlo.while", "stablehlo.optimization_barrier"):
            return False
        slot = ir.OpResult(value).result_number
        if op.name == "stablehlo.while":
            body = op.regions[1].blocks[0]
            if not _passes_through(terminator(body).operands[slot], body.arguments[slot]):
                return False
        value = op.operands[slot]
    return True


def _left(state: ProgramState, shape: LoopShape, done: LoopPass, slot: int, type_: str) -> SymbolicValue:
    """What a slot holds after the loop."""
    parts = {key: left_by(state, done.streams[slot, key], done.predicate) if (slot, key) in done.streams else node
             for key, node in done.entered[slot].items()}
    kind = shape.kinds.get(slot)
    return parts[LOCAL] if kind is None else joined(state.graph, kind, parts)


def _run(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue], shape: LoopShape) -> LoopPass:
    graph = state.graph
    streams: dict[tuple[int, Key], int] = {}
    entered, arguments = [], []
    changing: dict[int, list[Key]] = {}
    for slot, key in sorted(shape.streams, key=_order):
        changing.setdefault(slot, []).append(key)
    for slot, value in enumerate(values):
        held = _entered(state, op, shape, slot, value, changing.get(slot, ()), streams=streams)
        kind = shape.kinds.get(slot)
        entered.append(held)
        arguments.append(held[LOCAL] if kind is None else joined(graph, kind, held))
    effects = state.effects
    if shape.effects:
        effects = state.effects = streams[_EFFECTS, LOCAL] = _stream(state, "", state.effects, (_EFFECTS, LOCAL), shape)
    condition, body = (region.blocks[0] for region in op.regions)
    predicate = state.reduced(state.run_block(condition, arguments)[0], terminator(condition).operands[0])
    whole = predicate
    if shape.step is not None:
        predicate = once_less(state.graph, whole, shape.step)
    state.control.append(("loop", predicate))
    state.loops.append(tuple(state.control))
    mark = len(state.executions)
    results = state.run_block(body, arguments)
    if shape.paired:
        results = state.run_block(body, results)
    state.control.pop()
    yielded = [_yielded(state, shape, slot, value, end, entered[slot])
               for slot, (value, end) in enumerate(zip(results, terminator(body).operands, strict=True))]
    if state.original and not state.control and state.depth <= 1 and trip_count(op) is None:
        following = {node: yielded[slot][key] for (slot, key), node in streams.items()
                     if slot != _EFFECTS and key in yielded[slot]}
        _grant(state, Loop(op), predicate, state.executions[mark:], following)
    return LoopPass(entered, yielded, results, streams=streams, predicate=predicate, whole=whole,
                    effects=(effects, state.effects))


def _last_is_apart(state: ProgramState, shape: LoopShape, done: LoopPass) -> bool:
    """Whether a pass found the predicate of all iterations but the last, if that can be told; otherwise records the
    step.

    A step that a later pass does not confirm, such as that of a function called with other bounds, is given up for
    good.
    """
    step = step_of(state.graph, done.whole)
    if step == shape.step or not shape.counted:
        return True
    shape.counted = shape.step is None
    shape.step = step if shape.counted else None
    return False


def _entered(state: ProgramState, op: ir.Operation, shape: LoopShape, slot: int, value: SymbolicValue,
             changing: Sequence[Key], *, streams: dict[tuple[int, Key], int]) -> dict[Key, int]:
    """The parts of a slot in an iteration; makes the streams of those that change."""
    graph, type_ = state.graph, state.type_of(op.operands[slot])
    if slot in shape.forced:
        value = state.reduced(value, op.operands[slot])
    kind = shape.kinds.get(slot)
    if isinstance(value, PendingReduction) and value.kind != kind:
        value = state.reduced(value, op.operands[slot])
    held = {LOCAL: value} if kind is None and isinstance(value, int) else dict(parts_of(graph, value, kind or ""))
    for key in changing:
        start = held.get(key)
        if start is None:
            start = graph.identity(kind or "", part_type(key, type_))
            assert start is not None
        held[key] = streams[slot, key] = _stream(state, graph.types[start], start, (slot, key), shape)
    return held


def _stream(state: ProgramState, type_: str, start: int, place: tuple[int, Key], shape: LoopShape) -> int:
    node = state.graph.stream(state.depth, type_, start)
    if place in shape.differs:
        state.same.refuted[node] = shape.differs[place]
    return node


def _order(place: tuple[int, Key]) -> tuple[int, tuple[int, ...]]:
    return place[0], tuple(reduction.number for reduction in place[1])


def _yielded(state: ProgramState, shape: LoopShape, slot: int, value: SymbolicValue, end: ir.Value,
             entered: dict[Key, int]) -> dict[Key, int]:
    """The parts that a slot is yielded, as parts of its kind; what it held when the body has to be read again."""
    if slot in shape.forced:
        value = state.reduced(value, end)
    kind = shape.kinds.get(slot)
    if isinstance(value, PendingReduction):
        if kind == value.kind:
            return dict(value.parts)
        if kind is None:
            shape.kinds[slot] = value.kind
            shape.streams.discard((slot, LOCAL))
            shape.streams |= {(slot, key) for key in value.parts if key != LOCAL}
        else:
            shape.forced.add(slot)
        return entered
    return {LOCAL: value} if kind is None else dict(parts_of(state.graph, value, kind))


def _grant(state: ProgramState, loop: Loop, predicate: int, executed: Sequence[CollectiveRun],
           following: Mapping[int, int]) -> None:
    """Members of a group that meet in each iteration of a loop that is entered once leave it together.

    StableHLO: every process of a group has to execute a collective. The original's loop is assumed to end. So it runs
    equally often on all of them if it unconditionally executes a collective that no compiler moves out of the loop.
    This does not apply if the loop's condition is computed from device ids.
    """
    witnesses = {op_key(each) for each in state.witnesses().of(loop)}
    met = [e.members for e in executed if e.members is not None and op_key(e.op) in witnesses]
    granted = [members for members in dict.fromkeys(met)
               if not state.same.known_to_differ(predicate, members, following)]
    if granted and granted != state.same.granted.get(predicate):
        state.same.granted[predicate] = granted
        state.same.forget()  # the body may have asked before


def _holds(state: ProgramState, shape: LoopShape, done: LoopPass, size: tuple[int, int, int]) -> bool:
    """Whether a pass confirms the proposal; the parts it does not confirm are changed."""
    if state.put_off is PutOff.KINDS or len(shape.kinds) != size[2]:
        return False  # what was read of slots of no kind is not what will be read of them
    kept = shape.effects or done.effects[0] == done.effects[1]
    shape.effects |= not kept
    for slot, (entered, yielded) in enumerate(zip(done.entered, done.yielded, strict=True)):
        shape.streams |= {(slot, key) for key in (*entered, *yielded) if entered.get(key) != yielded.get(key)}
    for slot, key in shape.streams:
        if not all(state.same.same(done.predicate, reduction.members) for reduction in key):
            shape.forced.add(slot)
    shape.streams = {(slot, key) for slot, key in shape.streams if slot not in shape.forced or key == LOCAL}
    for slot in shape.forced:
        shape.kinds.pop(slot, None)
    for (slot, key), node in done.streams.items():
        last = done.effects[1] if slot == _EFFECTS else done.yielded[slot].get(key)
        if last is None:
            last = state.graph.identity(shape.kinds.get(slot, ""), state.graph.types[node])
            if last is None:
                return False
        state.graph.yields[node] = last
    return not state.put_off and kept and size == _size(shape) and _assumptions_hold(state, shape, done)


def _size(shape: LoopShape) -> tuple[int, int, int]:
    return len(shape.streams), len(shape.forced), len(shape.kinds)


def _assumptions_hold(state: ProgramState, shape: LoopShape, done: LoopPass) -> bool:
    """Whether what was assumed to be the same on all members is yielded the same; streams remember where it is not."""
    wrong = [(place, members) for place, node in done.streams.items() for members in state.same.assumed.pop(node, ())
             if not state.same.same(state.graph.yields[node], members)]
    for place, members in wrong:
        state.same.refuted[done.streams[place]] = differs = shape.differs.setdefault(place, set())
        differs.add(members)
    if wrong:
        state.same.forget()
    return not wrong
