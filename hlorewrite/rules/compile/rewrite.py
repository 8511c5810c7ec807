"""Compiles a rewrite block into actions on an editor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.errors import PassFailed
from hlorewrite.ir import Editor, ir, readable
from hlorewrite.ops.reducers import OP_OF_KIND
from hlorewrite.rules.compile.checks import ExpressionCompiler, Refused
from hlorewrite.rules.compile.environment import Environment, to_attribute
from hlorewrite.rules.dialects import signature
from hlorewrite.rules.syntax import ast


@dataclass
class Rewriting:
    """One application of a rule.

    Attributes:
      editor: edits the module.
      root: the root op, whose location new ops get.
      anchor: new ops are put before this op.
      behind: or after this one.
      created: the ops made so far.
    """

    editor: Editor
    root: ir.Operation
    anchor: ir.Operation
    behind: ir.Operation | None = None
    created: list[ir.Operation] = field(default_factory=list)


Action = Callable[[Environment, Rewriting], None]


class RewriteCompiler:
    """Compiles the actions of one rule.

    Args:
      expressions: compiles expressions in the rule's slots.
      rule: the rule's name, for messages.
    """

    def __init__(self, expressions: ExpressionCompiler, rule: str) -> None:
        self.expressions = expressions
        self.slots = expressions.slots
        self.rule = rule

    def actions(self, statements: Sequence[Any]) -> list[Action]:
        """The actions of a block, in its order."""
        return [self._action(s) for s in statements]

    def _action(self, node: Any) -> Action:
        if isinstance(node, ast.Create):
            return self._create(node)
        if isinstance(node, ast.Replace):
            return self._replace(node)
        if isinstance(node, ast.Erase):
            return self._erase(node)
        if isinstance(node, ast.SetAttributes):
            return self._set_attributes(node)
        if isinstance(node, ast.SetOperand):
            return self._set_operand(node)
        if isinstance(node, ast.At):
            return self._at(node)
        check = self.expressions.statement(node)

        def let(env: Environment, run: Rewriting) -> None:
            answer = check.run(env)
            if answer is not True:
                raise self._failed(run, answer.sentence)
        return let

    def _failed(self, run: Rewriting, what: str) -> PassFailed:
        return PassFailed(f"rule {self.rule}: {what}", location=run.editor.view.source(run.root),
                          hint="the rule must exclude this in `where`")

    # ---- operands

    def _values(self, nodes: Sequence[ast.ValueRef | ast.Spread | ast.Name]) -> Callable[[Environment], list[Any]]:
        getters: list[tuple[Callable[[Environment], Any], bool]] = []
        for node in nodes:
            if isinstance(node, ast.Spread):
                slot = self.slots.slot(f"%{node.name}")
                getters.append((lambda env, slot=slot: env[slot], True))
            elif isinstance(node, ast.Name):
                slot = self.slots.slot(node.name)
                getters.append((lambda env, slot=slot: _listed(env[slot]), True))
            else:
                getters.append((self.expressions.value(node), False))

        def values(env: Environment) -> list[Any]:
            operands: list[Any] = []
            for get, many in getters:
                operands.extend(get(env)) if many else operands.append(get(env))
            return operands
        return values

    # ---- create

    def _create(self, node: ast.Create) -> Action:
        operands = self._values(node.operands)
        assignments = [(a.name, self.expressions.compile(a.value)) for a in node.attributes]
        types = [self.expressions.compile(t) for t in node.types]
        like = self.slots.ops[node.like] if node.like else None
        known = signature(node.op)
        region_count = len(known.regions) if known else 0
        kinds = {(known.regions.index(r.region) if known else 0): self._kind(r) for r in node.regions}
        outputs = self._outputs(node)

        def create(env: Environment, run: Rewriting) -> None:
            model = env[like] if like is not None else None
            inputs = operands(env)
            attributes = _attributes(assignments, env, model, run, known.attributes if known else ())
            result_types = [t(env) for t in types] or self._types(node, inputs, attributes, model, run, region_count)
            with run.editor.context:
                op = run.editor.create(node.op, inputs, result_types, attributes=attributes, regions=region_count,
                                       location=origin((model or run.root).location), before=run.anchor)
                self._fill_regions(op, model, kinds, env)
            if region_count:
                run.editor.adopt(op)
            _place(op, run)
            run.created.append(op)
            for slot, number in outputs:
                env[slot] = op if number is None else op.results[number]
        return create

    def _outputs(self, node: ast.Create) -> list[tuple[int, int | None]]:
        if len(node.results) == 1:
            self.slots.ops[node.results[0]] = self.slots.slot(f"op %{node.results[0]}")
            return [(self.slots.ops[node.results[0]], None)]
        return [(self.slots.slot(f"%{name}"), i) for i, name in enumerate(node.results) if name != "_"]

    def _kind(self, region: ast.Reduces) -> Callable[[Environment], str]:
        if isinstance(region.kind, str):
            return lambda env, kind=region.kind: kind
        slot = self.slots.slot(f"${region.kind.name}")
        return lambda env: env[slot]

    def _types(self, node: ast.Create, inputs: list[Any], attributes: dict[str, ir.Attribute],
               model: ir.Operation | None, run: Rewriting, region_count: int) -> list[ir.Type]:
        """Result types that a rule does not state: inferred by MLIR, else those of the ``like`` op."""
        if region_count == 0:
            inferred = infer_types(node.op, inputs, attributes, run.root.location)
            if inferred is not None:
                return inferred
        if model is not None:
            return [r.type for r in model.results]
        raise self._failed(run, f"the result type of `{node.op}` is not inferred; write `-> type(%x)`")

    def _fill_regions(self, op: ir.Operation, model: ir.Operation | None,
                      kinds: dict[int, Callable[[Environment], str]], env: Environment) -> None:
        if len(op.regions) == 0:
            return
        copy = model.clone(False) if model is not None and len(kinds) < len(op.regions) else None
        for number in range(len(op.regions)):
            if number in kinds:
                build_reducer(op, number, kinds[number](env))
            elif copy is not None and number < len(copy.regions):
                for block in list(copy.regions[number].blocks):
                    block.append_to(op.regions[number])

    # ---- replace, erase, set, before, after

    def _replace(self, node: ast.Replace) -> Action:
        values = self._values(node.new)
        op_slot = self.slots.ops.get(node.old.name) if node.old.index is None else None
        old_value = None if op_slot is not None else self.expressions.value(node.old)

        def replace(env: Environment, run: Rewriting) -> None:
            old = list(env[op_slot].results) if op_slot is not None else [old_value(env)] if old_value else []
            new = values(env)
            if len(old) != len(new):
                raise self._failed(run, f"{len(old)} results are replaced by {len(new)} values")
            for before, after in zip(old, new, strict=True):
                if before.type != after.type:
                    raise self._failed(run, f"`%{node.old.name}` of type {before.type} is replaced by a value of "
                                            f"type {after.type}")
                run.editor.replace(before, after, run.created)
            if op_slot is not None and run.editor.erase_if_dead(env[op_slot]):
                env[op_slot] = None
        return replace

    def _erase(self, node: ast.Erase) -> Action:
        slots = [self.slots.ops[name] for name in node.names]

        def erase(env: Environment, run: Rewriting) -> None:
            for slot in slots:
                if env[slot] is not None and run.editor.erase_if_dead(env[slot]):
                    env[slot] = None
        return erase

    def _set_attributes(self, node: ast.SetAttributes) -> Action:
        slot = self.slots.ops[node.op]
        assignments = [(a.name, self.expressions.compile(a.value)) for a in node.attributes]

        def set_attributes(env: Environment, run: Rewriting) -> None:
            for name, evaluate in assignments:
                run.editor.set_attribute(env[slot], name, to_attribute(evaluate(env), name, run.editor.context))
        return set_attributes

    def _set_operand(self, node: ast.SetOperand) -> Action:
        slot, values = self.slots.ops[node.op], self._values((node.value,))
        position = (self.expressions.compile(ast.Position(node.position)) if isinstance(node.position, str)
                    else lambda env, number=node.position: number)

        def set_operand(env: Environment, run: Rewriting) -> None:
            run.editor.set_operand(env[slot], position(env), values(env)[0])
        return set_operand

    def _at(self, node: ast.At) -> Action:
        slot = self.slots.ops[node.anchor]
        body = self.actions(node.body)
        behind = node.side == "after"

        def at(env: Environment, run: Rewriting) -> None:
            inner = Rewriting(run.editor, run.root, env[slot], env[slot] if behind else None, run.created)
            for action in body:
                action(env, inner)
        return at


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _copied(model: ir.Operation, name: str, run: Rewriting) -> ir.Attribute:
    attribute = readable(model, name)
    if attribute is None:
        raise PassFailed(f"rule {run.editor.rule}: the attribute `{name}` of {model.name} contains complex numbers, "
                         "which cannot be copied", location=run.editor.view.source(run.root))
    return attribute


def _attributes(assignments: Sequence[tuple[str, Callable[[Environment], Any]]], env: Environment,
                model: ir.Operation | None, run: Rewriting, own: Sequence[str]) -> dict[str, ir.Attribute]:
    """The attributes of a new op: those of the ``like`` op that it can have, then those that the rule sets."""
    attributes: dict[str, ir.Attribute] = {}
    if model is not None:
        named = {name for name, _ in assignments}
        attributes = {name: _copied(model, name, run) for name in model.attributes
                      if name not in named and (name in own or "." in name)}
    for name, evaluate in assignments:
        try:
            attribute = to_attribute(evaluate(env), name, run.editor.context)
        except Refused as refused:
            raise PassFailed(f"rule {run.editor.rule}: {refused.answer.sentence}",
                             location=run.editor.view.source(run.root)) from None
        if attribute is None:
            attributes.pop(name, None)
        else:
            attributes[name] = attribute
    return attributes


def origin(location: ir.Location) -> ir.Location:
    """A location without the names of earlier rules; otherwise they would pile up with each rewrite."""
    # Ends: each step goes to the location inside.
    while isinstance(location, ir.NameLoc) and location.name_str.startswith("hlorewrite."):
        location = location.child_loc
    return location


def _place(op: ir.Operation, run: Rewriting) -> None:
    """Moves a new op after the anchor when the rule says ``after``."""
    if run.behind is None:
        return
    op.move_after(run.behind)
    run.editor.view.moved(op)
    run.behind = op


def infer_types(name: str, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute],
                location: ir.Location) -> list[ir.Type] | None:
    """The result types MLIR infers for an op without regions; None when it cannot."""
    try:
        probe = ir.Operation.create(name, operands=list(operands), attributes=attributes, loc=location, ip=False,
                                    infer_type=True)
    except (ValueError, RuntimeError, ir.MLIRError):
        return None
    return [result.type for result in probe.results]


def build_reducer(op: ir.Operation, region: int, kind: str) -> None:
    """Fills a region with a reducer over the element type of the op's first operand."""
    element = ir.RankedTensorType(op.operands[0].type).element_type
    with op.context, op.location:
        scalar = ir.RankedTensorType.get([], element)
        block = ir.Block.create_at_start(op.regions[region], [scalar, scalar], [op.location, op.location])
        point = ir.InsertionPoint(block)
        combined = ir.Operation.create(OP_OF_KIND[kind], results=[scalar], operands=list(block.arguments), ip=point)
        ir.Operation.create("stablehlo.return", operands=[combined.results[0]], ip=point)
