"""Compiles a match block, once, into a list of steps over an environment.

A step either tests, binds and returns True or False, or offers alternatives, each with its own environment.
Steps run in an order that follows the ops from the root along their operands, so that most ops fail at the first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.ir import defining_op, ir, op_key, terminator
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.ops.table import COMMUTATIVE
from hlorewrite.rules.compile.checks import PairCondition, indexed, together
from hlorewrite.rules.compile.environment import ABSENT, CONTEXT, Environment, Slots, attribute_matches
from hlorewrite.rules.dialects import signature
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.pattern_graph import OpPatternNode, Visit, nodes_of, results_of, visit_order

Getter = Callable[[Environment], Any]
Reason = tuple[str, "ir.Operation | None"]


@dataclass(frozen=True)
class MatchStep:
    """One step of a match.

    Attributes:
      run: tests and binds; None for a step with alternatives.
      choose: the alternatives.
      why: the sentence and the op at fault when the step fails.
    """

    run: Callable[[Environment], bool] | None
    choose: Callable[[Environment], Iterator[Environment]] | None
    why: Callable[[Environment], Reason]


@dataclass
class MatchCompiler:
    """Compiles one match block.

    Args:
      patterns: the op patterns.
      commutes: whether commutative ops match in both operand orders.
      pairs: conditions on two ops that let partners reading one value be indexed.
    """

    patterns: Sequence[ast.OpPattern]
    commutes: bool = False
    pairs: Sequence[PairCondition] = ()
    slots: Slots = field(default_factory=Slots)
    steps: list[MatchStep] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = nodes_of(self.patterns)
        self.owners = results_of(self.nodes)
        self.visits = visit_order(self.patterns)
        self.assigned: set[int] = set()
        self.bound: set[str] = set()
        self.root = next(n for n in self.nodes if n.pattern.root)
        for node in self.nodes:
            self._name_results(node)

    def _name_results(self, node: OpPatternNode) -> None:
        results = node.pattern.results
        slot = self.slots.slot(f"op {node.number}")
        if len(results) == 1:
            self.slots.ops[results[0]] = slot
        else:
            self.slots.results.update({name: (slot, i) for i, name in enumerate(results) if name != "_"})

    def compile(self) -> list[MatchStep]:
        """The steps; the slot ``op N`` of the root is set before they run."""
        self.assigned.add(self.root.number)
        self._emit(self.root)
        for visit in self.visits:
            if visit.node.number in self.assigned:
                continue
            self._choose_op(visit)
            self._emit(visit.node)
        return self.steps

    def op_slot(self, number: int) -> int:
        """The slot of an op pattern."""
        return self.slots.slot(f"op {number}")

    # ---- one op

    def _emit(self, node: OpPatternNode) -> None:
        slot, pattern = self.op_slot(node.number), node.pattern
        if node.container is not None:
            self._test_block(node, slot)
        if len(pattern.results) > 1:
            self._test_result_count(pattern, slot)
        for attribute in pattern.attributes:
            self._attribute(attribute, slot)
        for region in pattern.regions:
            if isinstance(region, ast.Reduces):
                self._reduces(region, slot)
        self._operand_list(pattern.operands, slot, self._read_operands(pattern, slot), pattern)
        for region in pattern.regions:
            if isinstance(region, ast.BlockPattern):
                self._block(region, node, slot)
        for position, name in enumerate(pattern.types):
            self._bind(f"${name}", lambda env, i=position: env[slot].results[i].type if i < len(env[slot].results)
                       else None, "the result types differ", slot)

    def _test(self, run: Callable[[Environment], bool], sentence: str | Callable[[Environment], str],
              culprit: int | None) -> None:
        def why(env: Environment) -> Reason:
            text = sentence if isinstance(sentence, str) else sentence(env)
            return text, None if culprit is None else env[culprit]
        self.steps.append(MatchStep(run, None, why))

    def _test_block(self, node: OpPatternNode, slot: int) -> None:
        assert node.container is not None
        block = self.slots.slot(f"block {node.container[0]} {node.container[1]}")
        region = node.container[1]
        self._test(lambda env: env[block] is not None and env[slot].block == env[block],
                   f"the op is not in the region `{region}`", slot)

    def _test_result_count(self, pattern: ast.OpPattern, slot: int) -> None:
        count = len(pattern.results)
        self._test(lambda env: len(env[slot].results) == count, f"the op does not have {count} results", slot)

    def _attribute(self, pattern: ast.AttributePattern, slot: int) -> None:
        name, value = pattern.name, pattern.value
        if isinstance(value, ast.AttributeVariable):
            if not value.optional:
                self._test(lambda env: name in env[slot].attributes, f"the op has no attribute `{name}`", slot)
            self._bind(f"${value.name}", lambda env: _attribute_or_absent(env[slot], name),
                       f"the attribute `{name}` differs", slot)
            return

        def matches(env: Environment) -> bool:
            return attribute_matches(_attribute_or_absent(env[slot], name), value, env[slot].context)
        self._test(matches, lambda env: f"the attribute `{name}` is {_shown(env[slot], name)}", slot)

    def _reduces(self, region: ast.Reduces, slot: int) -> None:
        if isinstance(region.kind, ast.AttributeVariable):
            kind_slot = self.slots.slot(f"${region.kind.name}")
            self._test(lambda env: reduction_kind(env[slot]) is not None,
                       "the reduction is not one of sum, product, max, min, and, or", slot)
            self._bind(f"${region.kind.name}", lambda env: reduction_kind(env[slot]),
                       lambda env: f"the reductions differ ({env[kind_slot]} and {reduction_kind(env[slot])})", slot)
            return
        wanted = region.kind
        self._test(lambda env: reduction_kind(env[slot]) == wanted,
                   lambda env: f"the reduction is {_spoken_kind(env[slot])}, not {wanted}", slot)

    def _bind(self, name: str, get: Getter, sentence: str | Callable[[Environment], str], culprit: int) -> None:
        slot = self.slots.slot(name)
        if name in self.bound:
            self._test(lambda env: env[slot] == get(env), sentence, culprit)
            return
        self.bound.add(name)

        def bind(env: Environment) -> bool:
            env[slot] = get(env)
            return env[slot] is not None
        self._test(bind, sentence, culprit)

    # ---- operand lists (also block arguments and yields)

    def _read_operands(self, pattern: ast.OpPattern, slot: int) -> int:
        """Steps that store the operands in a slot, in each order that may match."""
        values = self.slots.slot(f"operands of {slot}")
        pair = [o for o in pattern.operands if isinstance(o, ast.ValueRef)]
        both = (self.commutes and len(pair) == len(pattern.operands) == 2
                and all(name in COMMUTATIVE for name in pattern.names))

        def read(env: Environment) -> bool:
            env[values] = tuple(env[slot].operands)
            return True

        def orders(env: Environment) -> Iterator[Environment]:
            operands = tuple(env[slot].operands)
            for order in (operands, operands[::-1]):
                alternative = env.copy()
                alternative[values] = order
                yield alternative
        if both:
            self.steps.append(MatchStep(None, orders, lambda env: ("no operand order matches", env[slot])))
        else:
            self._test(read, "", slot)
        return values

    def _operand_list(self, patterns: Sequence[ast.Operand], slot: int, values: int,
                      pattern: ast.OpPattern | None) -> None:
        fixed = [p for p in patterns if isinstance(p, ast.ValueRef)]
        spread = next((i for i, p in enumerate(patterns) if isinstance(p, ast.Spread)), None)
        count, exact = len(fixed), spread is None and not any(isinstance(p, ast.Indexed) for p in patterns)
        if pattern is None or _may_vary(pattern):
            self._test(lambda env: len(env[values]) == count if exact else len(env[values]) >= count,
                       lambda env: f"it has {len(env[values])} values where the pattern has {count}", slot)
        if exact:
            for i, ref in enumerate(fixed):
                self._value(ref, lambda env, i=i: env[values][i], slot)
            return
        self._open_list(patterns, slot, values, spread)

    def _open_list(self, patterns: Sequence[ast.Operand], slot: int, values: int, spread: int | None) -> None:
        behind = len(patterns) - 1 - (spread or 0)
        for i, p in enumerate(patterns):
            if isinstance(p, ast.Indexed):
                self._indexed(p, slot, values)
            elif isinstance(p, ast.Spread):
                if p.name is not None:
                    self._bind(f"%{p.name}", lambda env, i=i: env[values][i:len(env[values]) - behind],
                               f"the values of `...%{p.name}` differ", slot)
            elif spread is not None and i > spread:
                from_end = i - len(patterns)
                self._value(p, lambda env, i=from_end: env[values][i], slot)
            else:
                self._value(p, lambda env, i=i: env[values][i], slot)

    def _indexed(self, pattern: ast.Indexed, slot: int, values: int) -> None:
        position = pattern.position
        if isinstance(position, int):
            self._test(lambda env: position < len(env[values]), f"there is no position {position}", slot)
            self._value(pattern.value, lambda env: env[values][position], slot)
            return
        index = self.slots.slot(f"@{position}")
        if f"@{position}" in self.bound:
            self._test(lambda env: env[index] < len(env[values]), f"there is no position @{position}", slot)
        else:
            self.bound.add(f"@{position}")

            def positions(env: Environment) -> Iterator[Environment]:
                for i in range(len(env[values])):
                    alternative = env.copy()
                    alternative[index] = i
                    yield alternative
            self.steps.append(MatchStep(None, positions,
                                        lambda env: (f"there is no position for @{position}", env[slot])))
        self._value(pattern.value, lambda env: env[values][env[index]], slot)

    # ---- one value

    def _value(self, ref: ast.ValueRef, get: Getter, culprit: int) -> None:
        if ref.name == "_":
            return
        owner = self.owners.get(ref.name)
        if owner is None:
            self._bind(f"%{ref.name}", get, f"it does not read `%{ref.name}`", culprit)
            return
        number, result = owner
        index = self._result_index(ref, result)
        if number in self.assigned:
            self._test_result(self.op_slot(number), index, get, ref, culprit)
            return
        self.assigned.add(number)
        node = self.nodes[number]
        self._define(node, index, get, ref, culprit)
        self._emit(node)

    def _result_index(self, ref: ast.ValueRef, result: int | None) -> int | str | None:
        return result if result is not None else ref.index

    def _test_result(self, owner: int, index: int | str | None, get: Getter, ref: ast.ValueRef, culprit: int) -> None:
        place = self._index_getter(index)

        def same(env: Environment) -> bool:
            results, i = env[owner].results, place(env)
            return (index is not None or len(results) == 1) and i < len(results) and results[i] == get(env)
        self._test(same, f"it does not read `%{ref.name}`", culprit)

    def _index_getter(self, index: int | str | None) -> Callable[[Environment], int]:
        if isinstance(index, str):
            slot = self.slots.slot(f"@{index}")
            return lambda env: env[slot]
        number = index or 0
        return lambda env: number

    def _define(self, node: OpPatternNode, index: int | str | None, get: Getter, ref: ast.ValueRef,
                culprit: int) -> None:
        slot, names = self.op_slot(node.number), frozenset(node.pattern.names)
        others = [self.op_slot(n) for n in self.assigned if n != node.number]
        new_position = isinstance(index, str) and f"@{index}" not in self.bound
        if new_position:
            self.bound.add(f"@{index}")
        position = self.slots.slot(f"@{index}") if isinstance(index, str) else None
        place = self._index_getter(index)

        def define(env: Environment) -> bool:
            value = get(env)
            if isinstance(value, ir.BlockArgument):
                return False
            op = value.owner.operation
            if op.name not in names or any(env[other] == op for other in others):
                return False
            number = ir.OpResult(value).result_number
            if new_position and position is not None:
                env[position] = number
            elif number != place(env) or (index is None and len(op.results) != 1):
                return False
            env[slot] = op
            return True
        wanted = " or ".join(sorted(names))
        self.steps.append(MatchStep(define, None, lambda env: (_defined_by(get(env), ref.name, wanted), env[culprit])))

    # ---- ops reached by use, or inside regions

    def _choose_op(self, visit: Visit) -> None:
        node, slot = visit.node, self.op_slot(visit.node.number)
        self.assigned.add(node.number)
        others = [self.op_slot(n) for n in self.assigned if n != node.number]
        names = frozenset(node.pattern.names)
        candidates = self._inside(visit) if visit.relation == "inside" else self._readers(visit)
        if visit.relation == "shared":
            asked = together(self.pairs, node.pattern.results, self.nodes[visit.via].pattern.results)
            candidates = indexed(candidates, asked, names, self.op_slot(visit.via), self.slots.slot(f"%{visit.name}"))

        def choose(env: Environment) -> Iterator[Environment]:
            seen: set[int] = set()
            for op in candidates(env):
                if op.name not in names or op_key(op) in seen or any(env[other] == op for other in others):
                    continue
                seen.add(op_key(op))
                alternative = env.copy()
                alternative[slot] = op
                yield alternative
        via, inside = self.op_slot(visit.via), visit.relation == "inside"
        place = "is in its region" if inside else f"reads `%{visit.name}`"
        self.steps.append(MatchStep(None, choose, lambda env: (f"no {' or '.join(sorted(names))} {place}", env[via])))

    def _readers(self, visit: Visit) -> Callable[[Environment], Iterator[ir.Operation]]:
        name = visit.name
        owner = self.owners.get(name)
        if owner is None:
            slot = self.slots.slot(f"%{name}")
            return lambda env: (use.owner.operation for use in env[slot].uses)
        op_slot, result = self.op_slot(owner[0]), owner[1]
        return lambda env: (use.owner.operation for i, value in enumerate(env[op_slot].results)
                            if result is None or i == result for use in value.uses)

    def _inside(self, visit: Visit) -> Callable[[Environment], Iterator[ir.Operation]]:
        assert visit.node.container is not None
        block = self.slots.slot(f"block {visit.node.container[0]} {visit.node.container[1]}")
        return lambda env: (op for op in env[CONTEXT].view.ops(*visit.node.pattern.names) if op.block == env[block])

    # ---- regions

    def _block(self, region: ast.BlockPattern, node: OpPatternNode, slot: int) -> None:
        name = region.region
        number = known.regions.index(name) if (known := signature(node.pattern.names[0])) else 0
        block = self.slots.slot(f"block {node.number} {name}")
        arguments = self.slots.slot(f"arguments {node.number} {name}")
        yields = self.slots.slot(f"yields {node.number} {name}")

        def enter(env: Environment) -> bool:
            regions = env[slot].regions
            if number >= len(regions) or len(regions[number].blocks) != 1:
                return False
            env[block] = regions[number].blocks[0]
            env[arguments] = tuple(env[block].arguments)
            env[yields] = tuple(terminator(env[block]).operands)
            return True
        self._test(enter, f"the region `{name}` does not have exactly one block", slot)
        if region.arguments:
            self._operand_list(region.arguments, slot, arguments, None)
        if region.yields is not None:
            self._operand_list(region.yields, slot, yields, None)


def _may_vary(pattern: ast.OpPattern) -> bool:
    """Whether ops of a pattern's names differ in their number of operands."""
    return any(s is None or s.most_operands != s.fewest_operands for s in map(signature, pattern.names))


def _attribute_or_absent(op: ir.Operation, name: str) -> Any:
    try:
        return op.attributes.get(name, ABSENT)
    except TypeError:  # jaxlib has no Python class for some attributes (complex constants); they equal nothing
        return object()


def _shown(op: ir.Operation, name: str) -> str:
    value = _attribute_or_absent(op, name)
    return "absent" if value is ABSENT else str(value)[:80]


def _spoken_kind(op: ir.Operation) -> str:
    return reduction_kind(op) or "another computation"


def _defined_by(value: ir.Value, name: str, wanted: str) -> str:
    if isinstance(value, ir.BlockArgument):
        return f"`%{name}` is an argument, not the result of {wanted}"
    op = defining_op(value)
    actual = op.operation.name if op is not None else "nothing"
    if actual in wanted.split(" or "):
        return f"`%{name}` is a different result, or an op that is already matched"
    return f"`%{name}` is the result of {actual}, not of {wanted}"
