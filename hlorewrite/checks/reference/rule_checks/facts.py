"""Checks linearity facts by execution: op(AR(a) + p) against AR(op(a)) + op(p) on four devices.

Operands that are not linear are constants or identities of the reduction, and one at a time differs between devices. If
a fact refuses such a case, it is asked again without each of its conditions, and what it then claims is executed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hlorewrite.analysis.groups import groups_of
from hlorewrite.analysis.linearity import UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.rule_checks.op_forms import REDUCERS, Form, constant, element_of, forms, identity
from hlorewrite.checks.reference.rule_checks.rules import ConditionResult, RuleResult
from hlorewrite.errors import CannotExecute, InputError
from hlorewrite.ir import ALL_REDUCE, Module, View, parse
from hlorewrite.rules.compile.native_functions import NativeFunction
from hlorewrite.rules.facts import CompiledFact, compile_fact
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression
from hlorewrite.util.tolerances import FACT_TOLERANCE

_GROUPS = ("replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = "
           "#stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids")
_SEEDS = (0, 1, 2)
_DIVIDING = ("stablehlo.divide", "stablehlo.triangular_solve")  # by zero, both sides are infinite or not numbers


@dataclass(frozen=True)
class Question:
    """An op with deferred operands, and what its other operands are.

    Attributes:
      form: the op.
      kind: the kind of reduction.
      linear: the deferred operands.
      varying: another operand that differs between devices, if any.
      identities: whether the remaining ones are identities of the reduction.
    """

    form: Form
    kind: str
    linear: tuple[int, ...]
    varying: int | None = None
    identities: bool = False


def check_fact(fact: CompiledFact, natives: Mapping[str, NativeFunction]) -> RuleResult:
    """Executes both sides of a fact, with all conditions and without each of them.

    Args:
      fact: a compiled fact.
      natives: the natives it may call.

    Returns:
      What was found; ``wrong`` is empty for a sound fact.
    """
    asked, held, wrong = 0, 0, []
    refused: list[tuple[Question, Module]] = []
    for question in _questions(fact):
        before = _built(question, last=False)
        if before is None:
            continue
        asked += 1
        if not _says(fact, question, before):
            refused.append((question, before))
            continue
        problem = _differs(question, before)
        held += problem is not None
        if problem:
            wrong.append(f"{question.form.text} ({question.kind}): the values differ")
    conditions = tuple(_without(fact, natives, i, refused)
                       for i in range(len(fact.fact.legal.statements) if fact.fact.legal else 0))
    why = "" if asked else f"no program is generated for {' or '.join(fact.names)}"
    return RuleResult(fact.name, fact.location, asked, rewritten=held, wrong=tuple(wrong), not_generated=why,
                      conditions=conditions, executed=held)


def fact_programs(fact: CompiledFact) -> Iterator[tuple[str, str]]:
    """Programs that a fact is about, reduced first and reduced last: if the fact is right, both compute the same.

    Args:
      fact: a compiled fact; only cases that it accepts are checked.
    """
    for question in _questions(fact):
        before, after = _built(question, last=False), _built(question, last=True)
        if before is not None and after is not None and _says(fact, question, before):
            yield before.text(), after.text()


def _questions(fact: CompiledFact) -> Iterator[Question]:
    kinds = sorted(fact.kinds) or ["sum", "max", "min"]
    for form in forms():
        if form.name not in fact.names:
            continue
        for kind in kinds:
            for linear in _positions(fact, form):
                yield Question(form, kind, linear)
                others = [i for i in range(len(form.operands)) if i not in linear]
                if others and form.name not in _DIVIDING:
                    yield Question(form, kind, linear, identities=True)
                yield from (Question(form, kind, linear, varying=i) for i in others)


def _positions(fact: CompiledFact, form: Form) -> list[tuple[int, ...]]:
    pattern = fact.fact.match.statements[0]
    assert isinstance(pattern, ast.OpPattern)
    count, positions = len(form.operands), set[int]()
    for i, operand in enumerate(pattern.operands):
        if isinstance(operand, ast.Spread):
            if f"...{operand.name}" in fact.linear:
                positions |= set(range(i, count - (len(pattern.operands) - 1 - i)))
        elif isinstance(operand, ast.ValueRef) and operand.name in fact.linear:
            positions.add(i)
    places = [tuple(sorted(positions))]
    if fact.fact.commutes and count == 2 and len(positions) == 1:
        places.append((1 - places[0][0],))
    return [p for p in places if p and max(p) < count]


# ---- programs


def _built(question: Question, *, last: bool) -> Module | None:
    """The program that reduces first or last; None when the question makes no sense for its types."""
    text = _text(question, last=last)
    if text is None:
        return None
    try:
        return parse(text)
    except InputError:
        return None


def _text(question: Question, *, last: bool) -> str | None:
    form, combine = question.form, REDUCERS[question.kind]
    arguments, lines, fixed = [], [], {}
    for i, kind in enumerate(form.operands):
        if i in question.linear or i == question.varying:
            arguments.append(f"%w{i}: {kind}")
        if i in question.linear:
            lines.append(f"%u{i} = stablehlo.constant {constant(kind, i)}")
        elif i == question.varying:
            fixed[i] = f"%w{i}"
        else:
            value = identity(kind, question.kind) if question.identities else constant(kind, i)
            if value is None:
                return None
            lines.append(f"%u{i} = stablehlo.constant {value}")
    if last:
        lines += [_applied(form, "%l", "w", question.linear, fixed), _applied(form, "%p", "u", question.linear, fixed),
                  _all_reduce("%s", "%l", form.result, question.kind),
                  f"%r = stablehlo.{combine} %s, %p : {form.result}"]
    else:
        for i in question.linear:
            lines += [_all_reduce(f"%v{i}", f"%w{i}", form.operands[i], question.kind),
                      f"%x{i} = stablehlo.{combine} %v{i}, %u{i} : {form.operands[i]}"]
        lines.append(_applied(form, "%r", "x", question.linear, fixed))
    body = "\n".join(lines)
    return (f"module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{\nfunc.func @main("
            f"{', '.join(arguments)}) -> {form.result} {{\n{body}\nreturn %r : {form.result}\n}}\n}}\n")


def _applied(form: Form, result: str, prefix: str, linear: tuple[int, ...], fixed: Mapping[int, str]) -> str:
    names = [f"%{prefix}{i}" if i in linear else fixed.get(i, f"%u{i}") for i in range(len(form.operands))]
    return f"{result} = {form.text.format(*names)}"


def _all_reduce(result: str, operand: str, kind: str, reduction: str) -> str:
    scalar = f"tensor<{element_of(kind)}>"
    return (f'{result} = "stablehlo.all_reduce"({operand}) ({{^bb0(%x: {scalar}, %y: {scalar}): '
            f'%z = stablehlo.{REDUCERS[reduction]} %x, %y : {scalar} stablehlo.return %z : {scalar}}}) '
            f'{{{_GROUPS}}} : ({kind}) -> {kind}')


# ---- answers


def _says(fact: CompiledFact, question: Question, module: Module) -> bool:
    """Whether a fact says that the op before the return is jointly linear in the question's operands."""
    view = View(module)
    groups = groups_of(view.ops(ALL_REDUCE.op)[0], view)
    assert not isinstance(groups, str)
    op = module.mlir.body.operations[0].regions[0].blocks[0].operations[-2].operation
    context = UniformContext(question.kind, Uniformity(view, groups))
    return all(fact.linear_operands(op, i, context) == frozenset(question.linear) for i in question.linear)


def _differs(question: Question, before: Module, seeds: tuple[int, ...] = _SEEDS[:1]) -> bool | None:
    """Whether the two sides give other values; None when they cannot be executed."""
    after = _built(question, last=True)
    if after is None:
        return None
    try:
        return not all(check(before, after, seed=seed, tolerance=FACT_TOLERANCE).equal for seed in seeds)
    except CannotExecute:
        return None


def _without(fact: CompiledFact, natives: Mapping[str, NativeFunction], position: int,
             refused: list[tuple[Question, Module]]) -> ConditionResult:
    legal = fact.fact.legal
    assert legal is not None
    dropped = legal.statements[position]
    rest = tuple(s for i, s in enumerate(legal.statements) if i != position)
    weaker = compile_fact(replace(fact.fact, legal=replace(legal, statements=rest)), natives, fact.location)
    text = expression(dropped.expression) if isinstance(dropped, ast.Condition | ast.Let) else ""
    fired = 0
    for question, before in refused:
        if not _says(weaker, question, before):
            continue
        differs = _differs(question, before, _SEEDS)
        fired += differs is not None
        if differs:
            return ConditionResult("legal", text, fired, True)
    return ConditionResult("legal", text, fired, False)
