"""Proves rewrite rules: on every device, at every index, what is replaced equals what replaces it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.checks.prove.comparison import ElementComparison, ScalarFact
from hlorewrite.checks.prove.contracts import CONTRACTS
from hlorewrite.checks.prove.declared import Relations
from hlorewrite.checks.prove.elements import COMPLEX, KINDS, TYPES, Arithmetic, reduces, sort_of
from hlorewrite.checks.prove.facts import Obligation, answers
from hlorewrite.checks.prove.op_semantics import OpSemantics, Typing
from hlorewrite.checks.prove.proof_obligation import MODE, SCATTER, MatchedOp, NotFollowed, ProofObligation
from hlorewrite.checks.prove.solver import decide, satisfiable, solver
from hlorewrite.checks.prove.tensors import DeviceGroups, device_sort, index_sort
from hlorewrite.checks.prove.verdict import OVER_REALS, PROVED, UNKNOWN, Verdict
from hlorewrite.rules.syntax import ast

_MOST_DIMENSIONS = 3
"""The size of the tensor that shows that the premises hold together; proofs are about any size."""


def prove_rule(rule: ast.Rule, relations: Relations, meanings: Mapping[str, OpSemantics], location: str) -> Verdict:
    """The verdict about a rule.

    Args:
      rule: its syntax tree, checked.
      relations: answers which element types ``types`` admits.
      meanings: what elementwise ops compute, by name.
      location: where the rule is written.

    Returns:
      ``proved`` or ``proved over the reals``; ``unknown`` with the reason otherwise. Counterexamples are looked for by
      execution (``counterexamples.py``): quantified claims that are wrong leave the solver without an answer.
    """
    asked, typings, reals, trusts = 0, 0, False, set[str]()
    for scene in scenes(rule, meanings):
        try:
            comparison, reason = _compared(scene)
        except NotFollowed as stop:
            return Verdict(rule.name, location, UNKNOWN, str(stop))
        asked += comparison.asked
        if reason:
            return Verdict(rule.name, location, UNKNOWN, reason, asked)
        for elements in _assignments(scene, comparison, relations):
            typings += 1
            problem, real, count = _scalars(scene, comparison, elements)
            asked, reals = asked + count, reals or real
            if problem:
                return Verdict(rule.name, location, UNKNOWN, problem, asked, typings)
        trusts |= {f"meaning {op}" for op, _, _ in scene.applied if meanings[op].source == "file"}
    if not typings:
        return Verdict(rule.name, location, UNKNOWN, "no combination of element types and reductions is admitted")
    return Verdict(rule.name, location, OVER_REALS if reals else PROVED, "", asked, typings,
                   trusts=tuple(sorted(trusts)))


def scenes(rule: ast.Rule, meanings: Mapping[str, OpSemantics]) -> Iterator[ProofObligation]:
    """A rule with each choice of op names and of reductions that its conditions do not exclude."""
    patterns = [s for s in rule.match.statements if isinstance(s, ast.OpPattern)]
    variables = sorted({r.kind.name for p in patterns for r in p.regions
                        if isinstance(r, ast.Reduces) and isinstance(r.kind, ast.AttributeVariable)})
    alike = [{getattr(a, "name", "") for a in s.expression.arguments} for b in rule.blocks for s in b.statements
             if isinstance(s, ast.Condition) and isinstance(s.expression, ast.Call)
             and s.expression.function == "same_collective"]
    for names in itertools.product(*(p.names for p in patterns)):
        if any(len({name for name, p in zip(names, patterns, strict=True) if same & {*p.results}}) > 1
               for same in alike):  # the contract: both are the same op
            continue
        for chosen in itertools.product(KINDS, repeat=len(variables)):
            kinds = dict(zip(variables, chosen, strict=True))
            if all(_holds(s.expression, kinds) is not False for b in (rule.where, rule.legal) if b
                   for s in b.statements if isinstance(s, ast.Condition)):
                yield ProofObligation(rule, names, kinds, meanings)


def _holds(node: Any, kinds: Mapping[str, str]) -> bool | None:
    """Whether a condition about kinds of reductions holds; None when it is about anything else."""
    if not isinstance(node, ast.Binary):
        return None
    if node.operator in ("and", "or"):
        sides = [_holds(node.left, kinds), _holds(node.right, kinds)]
        decisive = node.operator == "or"
        return decisive if decisive in sides else None if None in sides else not decisive
    sides = [kinds.get(s.name) if isinstance(s, ast.AttributeVariable) else getattr(s, "value", None)
             for s in (node.left, node.right)]
    if node.operator not in ("==", "!=") or None in sides:
        return None
    return (sides[0] == sides[1]) == (node.operator == "==")


# ---- devices and indices


def _compared(scene: ProofObligation) -> tuple[ElementComparison, str]:
    z3 = solver()
    reader = RuleReader(scene)
    reader.read_match()
    reader.read_conditions()
    replaced = reader.read_rewrite()
    comparison = ElementComparison(scene)
    device, index, k = z3.Const("device", device_sort()), z3.Const("index", index_sort()), z3.Int("k")
    comparison.devices.append(device)
    if not all(comparison.follows(claim, []) for claim in scene.claims):
        return comparison, "the shapes of the new ops are not shown to fit"
    for old, new in replaced:
        a, b = scene.tensor(old), scene.tensor(new)
        inside = [z3.ForAll([k], z3.And(index[k] >= 0, index[k] < a.sizes[k]), patterns=[index[k]])]
        places = [z3.IntVal(i) for i in range(_MOST_DIMENSIONS)] + scene.used_dimensions
        somewhere = [z3.And(index[i] == 0, a.sizes[i] >= 1) for i in places]
        if not possible([*scene.premises, *somewhere], scene.every_groups()):
            return comparison, "its conditions are not shown to be satisfiable on one to three devices"
        if not comparison.follows(a.sizes == b.sizes, []):
            return comparison, f"%{new} is not shown to have the shape of %{old}"
        if not comparison.equal(a.at(device, index), b.at(device, index), inside):
            return comparison, f"%{new} is not shown to equal %{old}: {comparison.failure}"
        comparison.scalars[ScalarFact("type", "", "", (a.type, b.type))] = None
    return comparison, ""


def possible(premises: list[Any], groups: Sequence[DeviceGroups] = ()) -> bool:
    """Whether premises hold together on one, two or three devices."""
    z3 = solver()
    d = z3.Const("d", device_sort())
    for count in (1, 2, 3):
        devices = [z3.Const(f"device {i}", device_sort()) for i in range(count)]
        bounded = [z3.ForAll([d], z3.Or(*(d == device for device in devices))), z3.Distinct(*devices)]
        for each in groups:
            g = z3.Const("g", each.grp.range())
            bounded.append(z3.ForAll([g], z3.Or(*(g == each.grp(device) for device in devices))))
        if satisfiable([*premises, *bounded]):
            return True
    return False


# ---- element types


def _assignments(scene: ProofObligation, comparison: ElementComparison, relations: Relations) -> Iterator[dict[str,
                                                                                                               str]]:
    """Element types for every class of values, as the ops of the match, `types` and the reductions admit them."""
    values = [*dict.fromkeys([*scene.types, *(o for op in scene.ops.values() for o in op.operands)])]
    classes = sorted({scene.type_class(value) for value in values})
    made = scene.made
    kinds = [(op.kind, scene.type_class(name)) for name, op in scene.ops.items() if op.kind in KINDS]
    for chosen in itertools.product(TYPES, repeat=len(classes)):
        of = dict(zip(classes, chosen, strict=True))
        elements = {value: of[scene.type_class(value)] for value in values}
        if not all(reduces(kind, of[cls]) for kind, cls in kinds) or not all(
                _typed(scene, elements, *applied) for applied in scene.applied if applied[2] not in made):
            continue
        if relations.admit(scene.rule.types, elements):
            yield elements


def _typed(scene: ProofObligation, elements: Mapping[str, str], op: str, operands: tuple[str, ...],
           result: str) -> bool:
    return Typing(tuple(elements[o] for o in operands), elements[result]) in scene.typings(op, len(operands))


def _scalars(scene: ProofObligation, comparison: ElementComparison, elements: Mapping[str, str]) -> tuple[str, bool,
                                                                                                          int]:
    """Answers what was collected about elements: a problem or an empty text, whether reals were needed, how many."""
    floats = scene.rule.floats.names if scene.rule.floats else ()
    strength = "exact" if floats == ("exact",) else "reassociates" if floats == ("reassociates",) else "reals"
    reals, asked = False, 0
    floating = any(sort_of(e) in ("float", "complex") for e in elements.values())
    if floating and floats == ("exact",) and {"sum", "product"} & comparison.reordered:
        return "it changes the order of a sum of floats, which is not `exact`", False, 0
    reals |= floating and bool({"sum", "product"} & comparison.reordered)
    for applied in scene.applied:
        if not _typed(scene, elements, *applied):
            return f"it makes a {applied[0]} with element types that the op does not have", reals, asked
    for fact in comparison.scalars:
        types = tuple(elements.get(t, elements.get(scene.type_class(t), t)) for t in fact.types)
        if (fact, types) not in comparison.answered:
            comparison.answered[fact, types] = _scalar(scene, fact, types, strength, floats)
        holds, real = comparison.answered[fact, types]
        asked, reals = asked + 1, reals or real
        if not holds:
            return f"for {', '.join(types)}: {_told(fact)}", reals, asked
    return "", reals, asked


def _scalar(scene: ProofObligation, fact: ScalarFact, types: tuple[str, ...], strength: str,
            floats: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether a question about elements is answered with yes, and whether for real numbers instead of floats."""
    math = Arithmetic(strength)
    if fact.kind and fact.kind not in KINDS:  # an unknown reducer
        return False, False
    if fact.question == "type":
        return types[0] == types[1], False
    if fact.question == "zero":
        claim = math.equal(math.convert(types[0], types[1], math.number(types[0], 0)), math.number(types[1], 0))
        return decide(claim, math.premises).status == "proved", False
    if fact.question == "neutral":
        x = math.variable("x", types[0])
        claim = math.equal(math.reduce(fact.kind, types[0], x, math.number(types[0], 0)), x)
        return decide(claim, math.premises).status == "proved", sort_of(types[0]) in ("float", "complex")
    if fact.question == "idempotent":
        x = math.variable("x", types[0])
        claim = math.equal(math.reduce(fact.kind, types[0], x, x), x)
        return decide(claim, math.premises).status == "proved", False
    floating = sort_of(types[-1]) in ("float", "complex")
    if fact.question == "multiple":  # n·x by the lemma of uniform sums: modulo 2^w, and for real numbers
        real = floating and strength == "reals" and types[0] not in COMPLEX
        return sort_of(types[0]) == "integer" or real, floating
    names = tuple(str(i) for i in range(len(types) - 1))
    case = Obligation(scene.meanings[fact.op], names, frozenset(names), uniform=frozenset(), identity=frozenset(),
                      kind=fact.kind, typing=Typing(types[:-1], types[-1]), body="")
    outcomes = answers(case, strength)
    return all(o.status == "proved" for o, _ in outcomes), any(real for _, real in outcomes)


def _told(fact: ScalarFact) -> str:
    return {"type": "the element types of both sides differ", "zero": "zero does not become zero",
            "neutral": f"zero changes a {fact.kind}",
            "idempotent": f"{fact.kind} of equal elements is another element",
            "multiple": "a sum of n equal elements is not known to be n times one",
            "commutes": f"{fact.op} does not commute with {fact.kind}"}[fact.question]


# ---- a rule as a proof obligation: what its match computes, what its conditions promise, what its rewrite creates


@dataclass
class RuleReader:
    """Reads the parts of a rule into its proof obligation, in order: match, conditions, rewrite.

    Args:
      scene: what is read goes there.
    """

    scene: ProofObligation
    _lets: dict[str, Any] = field(default_factory=dict, repr=False)

    # ---- the match

    def read_match(self) -> None:
        """Builds the tensors of the match, operands before results."""
        patterns = [s for s in self.scene.rule.match.statements if isinstance(s, ast.OpPattern)]
        for pattern, name in zip(patterns, self.scene.names, strict=True):
            if len(pattern.results) != 1 or any(isinstance(r, ast.BlockPattern) for r in pattern.regions):
                raise NotFollowed("the prover does not follow ops inside regions, or ops with several results")
            self.scene.ops[pattern.results[0]] = self._matched(pattern, name)
        for name in self.scene.ops:
            self.scene.tensor(name)

    def _matched(self, pattern: ast.OpPattern, name: str) -> MatchedOp:
        variable = pattern.results[0]
        kind = next((self._kind(r.kind) for r in pattern.regions if isinstance(r, ast.Reduces)), f"?{variable}")
        operands = tuple(o.name if isinstance(o, ast.ValueRef) and o.name != "_" else f"{variable}.{i}"
                         for i, o in enumerate(pattern.operands) if not isinstance(o, ast.Spread))
        attributes = {a.name: f"${a.value.name}" if isinstance(a.value, ast.AttributeVariable) else
                      getattr(a.value, "value", str(a.value)) for a in pattern.attributes}
        return MatchedOp(variable, name, operands, attributes, kind)

    def _kind(self, kind: ast.AttributeVariable | str) -> str:
        return kind if isinstance(kind, str) else self.scene.kinds[kind.name]

    # ---- conditions

    def read_conditions(self) -> None:
        """Turns what the conditions promise into premises; a condition without a contract gives none."""
        for block in (self.scene.rule.where, self.scene.rule.types, self.scene.rule.legal):
            for statement in block.statements if block else ():
                if isinstance(statement, ast.Let):
                    self._bind(statement.names, statement.expression)
                elif isinstance(statement, ast.Condition):
                    self._premise(statement.expression)
        for op in self.scene.ops.values():
            self.scene.tensor(op.variable)

    def _bind(self, names: tuple[str, ...], node: Any) -> None:
        answers = self._called(node) if isinstance(node, ast.Call) else None
        for k, name in enumerate(names):
            self._lets[name] = answers[k] if answers else f"let {name}"

    def _premise(self, node: Any) -> None:
        if isinstance(node, ast.Binary) and node.operator == "and":
            self._premise(node.left)
            self._premise(node.right)
        elif isinstance(node, ast.Call) and node.function == "same":
            self.scene.unify(*(a.name for a in node.arguments if isinstance(a, ast.ValueRef)))
        elif isinstance(node, ast.Call):
            self._called(node)
        elif isinstance(node, ast.Binary) and node.operator == "==":
            left, right = _typed_value(node.left), _typed_value(node.right)
            if left is not None and right is not None:
                self.scene.unify(left, right)
                self.scene.premises.append(self.scene.sizes(left) == self.scene.sizes(right))

    def _called(self, node: ast.Call) -> Any:
        contract = CONTRACTS.get(node.function)
        return contract(self.scene, *(self._argument(a) for a in node.arguments)) if contract else None

    def _argument(self, node: Any) -> Any:
        if isinstance(node, ast.ValueRef):
            return self.scene.ops.get(node.name, node.name)
        return self._lets.get(node.name) if isinstance(node, ast.Name) else node

    # ---- the rewrite

    def read_rewrite(self) -> list[tuple[str, str]]:
        """Builds what the rewrite makes; returns which value is replaced with which.

        Raises:
          NotFollowed: an action or op has no meaning here.
        """
        return self._actions(self.scene.rule.rewrite.statements)

    def _actions(self, actions: Sequence[Any]) -> list[tuple[str, str]]:
        replaced: list[tuple[str, str]] = []
        for action in actions:
            if isinstance(action, ast.Create):
                self._create(action)
            elif isinstance(action, ast.Replace) and len(action.new) == 1 and isinstance(action.new[0], ast.ValueRef):
                replaced.append((action.old.name, action.new[0].name))
            elif isinstance(action, ast.At):
                replaced += self._actions(action.body)
            elif isinstance(action, ast.Let):
                self._bind(action.names, action.expression)
            elif not isinstance(action, ast.Erase):
                raise NotFollowed("the prover does not follow changes in place")
        return replaced

    def _create(self, action: ast.Create) -> None:
        operands = tuple(self._operand(o) for o in action.operands)
        if len(action.results) != 1 or None in operands:
            raise NotFollowed("the prover does not follow ops with several results, or with any number of operands")
        variable, like = action.results[0], self.scene.ops.get(action.like) if action.like else None
        names = ("replica_groups", "source_target_pairs", *MODE, "all_gather_dim", "scatter_dimension",
                 "split_dimension", "concat_dimension", *SCATTER)
        attributes: dict[str, Any] = {name: like.attribute(name) for name in names} if like else {}
        attributes |= dict(like.attributes) if like else {}
        attributes |= {a.name: self._assigned(a.value) for a in action.attributes}
        kind = next((self._kind(r.kind) for r in action.regions), like.kind if like else f"?{variable}")
        op = MatchedOp(variable, action.op, tuple(o for o in operands if o), attributes, kind)
        self.scene.make(op, *self._given_type(action.types))

    def _operand(self, node: Any) -> str | None:
        """The name of a value; None for several values."""
        found = self._lets.get(node.name) if isinstance(node, ast.Name) else None
        return node.name if isinstance(node, ast.ValueRef) else found if isinstance(found, str) else None

    def _assigned(self, node: Any) -> Any:
        if isinstance(node, ast.AttributeVariable):
            return f"${node.name}"
        if isinstance(node, ast.Name):
            return self._lets.get(node.name)
        if isinstance(node, ast.Call):
            answers = self._called(node)
            return answers[0] if answers else None
        return getattr(node, "value", str(node))

    def _given_type(self, types: tuple[Any, ...]) -> tuple[Any, str | None]:
        """Sizes and element type of ``-> type(%r)`` or ``-> retyped(%shape, %element)``."""
        if len(types) != 1 or not isinstance(types[0], ast.Call):
            return None, None
        values = [a.name for a in types[0].arguments if isinstance(a, ast.ValueRef)]
        if types[0].function == "type" and len(values) == 1:
            return self.scene.sizes(values[0]), values[0]
        if types[0].function == "retyped" and len(values) == 2:
            return self.scene.sizes(values[0]), values[1]
        raise NotFollowed(f"the type {types[0].function}(...) is not followed")


def _typed_value(node: Any) -> str | None:
    """The value of ``type(%value)``."""
    if isinstance(node, ast.Call) and node.function == "type" and isinstance(node.arguments[0], ast.ValueRef):
        return node.arguments[0].name
    return None
