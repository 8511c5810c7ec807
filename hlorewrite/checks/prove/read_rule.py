"""Reads a rule into a proof obligation: what its match computes, what its conditions promise, and what its rewrite
creates."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.checks.prove.contracts import CONTRACTS
from hlorewrite.checks.prove.matched_op import MatchedOp
from hlorewrite.checks.prove.proof_obligation import MODE, SCATTER, NotFollowed, ProofObligation
from hlorewrite.rules.syntax import ast


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
