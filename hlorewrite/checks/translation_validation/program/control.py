"""Branches, calls and the order of effects."""

from collections.abc import Mapping, Sequence

from hlorewrite.checks.translation_validation.program.dynamic_selection import case_of_fetches
from hlorewrite.checks.translation_validation.program.sorts import RegionEncoder
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.translation_validation.verdict import NotRead
from hlorewrite.checks.value_graph.graph import Key, PendingReduction, SymbolicValue, joined, part_type, parts_of
from hlorewrite.ir import EFFECTS, has_side_effect, ir, symbol_name, terminator

_PURE = ("stablehlo.", "chlo.", "mhlo.", "sdy.")
_MOST_CALLS = 64


def has_effects(op: ir.Operation, name: str) -> bool:
    """Whether an op of a given name does more than compute its results, or computes them from more than its
    operands."""
    if name == "stablehlo.custom_call":
        return has_side_effect(op)
    return name in EFFECTS or not name.startswith(_PURE)


def effect(state: ProgramState, op: ir.Operation) -> list[SymbolicValue]:
    """An op that follows all effects before it: its results depend on them, and so do later effects on it."""
    encoder = RegionEncoder(state)
    regions = encoder.regions(op)
    args = (state.effects, *(state.node_of(operand) for operand in op.operands), *encoder.captured)
    label = (op.name, state.attributes_of(op), regions)
    state.effects = state.graph.node(("world", label), "", args)
    return [state.graph.node(("effect", label, number), state.type_of(result), args)
            for number, result in enumerate(op.results)]


def branches(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """``case`` and ``if``: each process takes a branch.

    ``case(p, AR(a), AR(b)) = AR(case(p, a, b))`` where all members of a group take the same branch; a reduction that is
    absent in a branch is one of identities.
    """
    predicate = state.node_of(op.operands[0])
    taken = _taken(state, op, predicate)
    if taken is not None:
        return state.run_block(op.regions[taken].blocks[0], [])
    before, outcomes, effects = state.effects, [], []
    for number, region in enumerate(op.regions):
        state.effects = before
        state.control.append((f"{op.name} {number}", predicate))
        outcomes.append(state.run_block(region.blocks[0], []))
        state.control.pop()
        effects.append(state.effects)
    state.effects = effects[0] if len(set(effects)) == 1 else state.graph.node(
        ("case", op.name), "", (predicate, *effects))
    return [_chosen(state, op, predicate, [outcome[number] for outcome in outcomes], number)
            for number in range(len(op.results))]


def _taken(state: ProgramState, op: ir.Operation, predicate: int) -> int | None:
    """The branch that a constant chooses; ``case`` takes its last one for an index without a branch."""
    label, last = state.graph.labels[predicate], len(op.regions) - 1
    if label[0] != "splat":
        return None
    if op.name == "stablehlo.if":
        return 0 if label[1] == "True" else 1
    index = int(str(label[1]))
    return index if 0 <= index <= last else last


def _chosen(state: ProgramState, op: ir.Operation, predicate: int, values: list[SymbolicValue], number: int
            ) -> SymbolicValue:
    type_, graph = state.type_of(op.results[number]), state.graph
    kinds = {value.kind for value in values if isinstance(value, PendingReduction)}
    members = {each for value in values if isinstance(value, PendingReduction) for each in value.members}
    if len(kinds) == 1 and all(state.same.same(predicate, each) for each in members):
        kind = kinds.pop()
        parts = [parts_of(graph, value, kind) for value in values]
        keys = dict.fromkeys(key for held in parts for key in held)
        return joined(graph, kind, {key: _case(state, op.name, predicate, _of_branches(state, kind, key, parts, type_),
                                               part_type(key, type_)) for key in keys})
    ends = [terminator(region.blocks[0]).operands[number] for region in op.regions]
    return _case(state, op.name, predicate, [state.reduced(v, end) for v, end in zip(values, ends, strict=True)], type_)


def _of_branches(state: ProgramState, kind: str, key: Key, parts: Sequence[Mapping[Key, int]], type_: str
                 ) -> list[int]:
    """The part of a key in each branch; the identity where it is absent."""
    identity = state.graph.identity(kind, part_type(key, type_))
    assert identity is not None
    return [held.get(key, identity) for held in parts]


def _case(state: ProgramState, name: str, predicate: int, nodes: list[int], type_: str) -> int:
    if len(set(nodes)) == 1:
        return nodes[0]
    one = case_of_fetches(state, predicate, nodes) if name == "stablehlo.case" else None
    if one is not None:
        return one
    return state.graph.node(("case", name), type_, (predicate, *nodes))


def call(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """The function's results for the arguments."""
    function = state.view.callee(op)
    if function is None or len(function.regions[0].blocks) != 1:
        return effect(state, op)
    if len(state.calls) >= _MOST_CALLS:
        raise NotRead(f"calls are nested too deeply (@{symbol_name(function)})", state.view.source(op))
    outside, state.env = state.env, {}
    state.calls.append(symbol_name(function))
    results = state.run_block(function.regions[0].blocks[0], values)
    state.calls.pop()
    state.env = outside
    return results


def kept(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """The operands themselves: a barrier says when they are there, a sharding constraint on which devices."""
    return list(values)
