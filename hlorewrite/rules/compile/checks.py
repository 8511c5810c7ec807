"""Compiles expressions and checks into functions of an environment."""

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import PassFailed, RuleCheckError
from hlorewrite.ir.binding import ir
from hlorewrite.rules.compile.environment import CONTEXT, Environment, Slots, parse_mlir
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.register import NATIVES, PartnerKey
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression

# ---- from declared natives to the Python functions that implement them


@dataclass(frozen=True)
class NativeFunction:
    """A declared native and its function; the function's first argument is the context."""

    declared: ast.Native
    function: Callable[..., Any]


def bind(natives: Mapping[str, ast.Native], name: str) -> dict[str, NativeFunction]:
    """Finds the functions of declared natives.

    Args:
      natives: the declarations by name.
      name: the file, for messages.

    Raises:
      RuleCheckError: no function is registered under the name, or it takes another number of arguments.
    """
    return {key: NativeFunction(native, _function(native, name)) for key, native in natives.items()}


def _function(native: ast.Native, file: str) -> Callable[..., Any]:
    where = f"{file}:{native.span.line + len(native.docs)}:{native.span.column}"  # docs come before the line
    function = NATIVES.find(native.name)
    if function is None:
        raise RuleCheckError(f"no native is registered as `{native.name}`", location=where,
                             hint="load what registers it: --load=FILE.py or --natives=MODULE, or import it in Python")
    variadic = bool(native.parameters) and native.parameters[-1].variadic
    expected = 1 + len(native.parameters) - variadic
    try:
        inspect.signature(function).bind(*[None] * (expected + variadic))
    except (TypeError, ValueError):  # ValueError: a C function without a signature
        raise RuleCheckError(f"`{native.name}`: {function.__name__} does not take the context and "
                             f"{len(native.parameters)} arguments", location=where,
                             hint="declare the function's arguments") from None
    return function


# ---- expressions and checks


Function = Callable[[Environment], Any]
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Refused(Exception):
    """An analysis answered with a sentence instead of a value."""

    def __init__(self, answer: MatchFailure) -> None:
        super().__init__(answer.sentence)
        self.answer = answer


@dataclass(frozen=True)
class CompiledCheck:
    """A check or ``let``, ready to run.

    Attributes:
      run: True, or No with the sentence.
      text: the check as the rule writes it.
    """

    run: Callable[[Environment], Any]
    text: str


class ExpressionCompiler:
    """Compiles expressions of one rule.

    Args:
      slots: where names live.
      natives: the declared natives and their functions.
      rule: the rule's name, for messages.
    """

    def __init__(self, slots: Slots, natives: Mapping[str, NativeFunction], rule: str) -> None:
        self.slots = slots
        self.natives = natives
        self.rule = rule

    def statement(self, node: ast.Condition | ast.Let) -> CompiledCheck:
        """A check, or a ``let`` that fails when its analysis answers No."""
        text = expression(node.expression)
        evaluate = self.compile(node.expression)
        if isinstance(node, ast.Let):
            return CompiledCheck(self._let(node, evaluate), f"let {', '.join(node.names)} = {text}")
        sentence = node.sentence

        def check(env: Environment) -> Any:
            try:
                answer = evaluate(env)
            except Refused as refused:
                answer = refused.answer
            if answer is True:
                return True
            if isinstance(answer, MatchFailure):
                return MatchFailure(sentence, answer.culprit) if sentence else answer
            if answer is False:
                return MatchFailure(sentence or f"`{text}` does not hold")
            raise PassFailed(f"rule {self.rule}: `{text}` answered {answer!r}",
                             hint="a predicate answers True or MatchFailure(sentence)")
        return CompiledCheck(check, text)

    def _let(self, node: ast.Let, evaluate: Function) -> Function:
        slots = [self.slots.slot(name) for name in node.names]

        def bind(env: Environment) -> Any:
            try:
                answer = evaluate(env)
            except Refused as refused:
                return MatchFailure(node.sentence, refused.answer.culprit) if node.sentence else refused.answer
            values = (answer,) if len(slots) == 1 else tuple(answer)
            for slot, value in zip(slots, values, strict=True):
                env[slot] = value
            return True
        return bind

    def compile(self, node: Any, wanted: str = "Any") -> Function:
        """An expression as a function; ``wanted`` is the type of the parameter it is passed to."""
        if isinstance(node, ast.Literal):
            return lambda env, value=node.value: value
        if isinstance(node, ast.Mlir):
            return lambda env, text=node.text: parse_mlir(text, env[CONTEXT].view.module.context)
        if isinstance(node, ast.ListOf):
            items = [self.compile(item) for item in node.items]
            return lambda env: tuple(item(env) for item in items)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Unary):
            return self._unary(node)
        if isinstance(node, ast.Binary):
            return self._binary(node)
        if isinstance(node, ast.ValueRef):
            return self.value(node) if wanted == "Value" or node.index is not None else self._op_or_value(node)
        sigil = {ast.AttributeVariable: "$", ast.Position: "@", ast.Name: ""}[type(node)]
        slot = self.slots.slot(f"{sigil}{node.name}")
        return lambda env: env[slot]

    def _unary(self, node: ast.Unary) -> Function:
        inner = self.compile(node.operand)
        if node.operator == "not":
            return lambda env: not inner(env)
        return lambda env: -inner(env)

    def _binary(self, node: ast.Binary) -> Function:
        left, right = self.compile(node.left), self.compile(node.right)
        if node.operator == "and":
            return lambda env: left(env) and right(env)
        if node.operator == "or":
            return lambda env: left(env) or right(env)
        function = _BINARY[node.operator]
        return lambda env: function(left(env), right(env))

    # ---- values

    def _op_or_value(self, node: ast.ValueRef) -> Function:
        slot = self.slots.ops.get(node.name)
        if slot is None:
            return self.value(node)
        return lambda env: env[slot]

    def value(self, node: ast.ValueRef) -> Function:
        """A value: a variable, a result of an op, or the only result of an op."""
        if node.name in self.slots.results:
            owner, number = self.slots.results[node.name]
            return lambda env: env[owner].results[number]
        slot = self.slots.ops.get(node.name)
        if slot is None:
            variable = self.slots.slot(f"%{node.name}")
            return lambda env: env[variable]
        if isinstance(node.index, str):
            position = self.slots.slot(f"@{node.index}")
            return lambda env: env[slot].results[env[position]]
        number, single = node.index or 0, node.index is None

        def result(env: Environment) -> Any:
            results = env[slot].results
            if (single and len(results) != 1) or number >= len(results):
                raise Refused(MatchFailure(f"`%{node.name}` has {len(results)} results", env[slot]))
            return results[number]
        return result

    # ---- calls

    def _call(self, node: ast.Call) -> Function:
        native = self.natives[node.function]
        parameters = native.declared.parameters
        function, predicate = native.function, native.declared.kind != "analysis"
        arguments: list[tuple[Function, bool]] = []
        each: int | None = None
        for i, argument in enumerate(node.arguments):
            parameter = parameters[min(i, len(parameters) - 1)]
            if isinstance(argument, ast.Spread):
                if not parameter.variadic:
                    each = i
                slot = self.slots.slot(f"%{argument.name}")
                arguments.append((lambda env, slot=slot: env[slot], parameter.variadic))
            else:
                arguments.append((self.compile(argument, parameter.type), False))

        def call(env: Environment) -> Any:
            values: list[Any] = []
            for evaluate, spread in arguments:
                value = evaluate(env)
                values.extend(value) if spread else values.append(value)
            if each is not None:
                return _for_all(function, env[CONTEXT], values, each)
            answer = function(env[CONTEXT], *values)
            if not predicate and isinstance(answer, MatchFailure):
                raise Refused(answer)
            return answer
        return call


def _for_all(function: Callable[..., Any], context: Any, values: list[Any], place: int) -> Any:
    """A predicate on every value of a spread: the first that does not hold answers."""
    for value in values[place]:
        answer = function(context, *values[:place], value, *values[place + 1:])
        if answer is not True:
            return answer
    return True


# ---- conditions on two ops that share an operand, and an index that yields only pairs which may satisfy them

# The readers of one value form quadratically many pairs. If a rule requires that a key is equal for both ops, or that
# one op's result can be read at the other (``only_if_equal``, ``only_if_available``), partners are looked up.


Candidates = Callable[[Environment], Iterator[ir.Operation]]


@dataclass(frozen=True)
class PairCondition:
    """A rule's requirements on two ops.

    Attributes:
      first: the name of one op.
      second: the name of the other.
      key: the function whose value is equal for both; None without such a requirement.
      available: whether the results of the first can be read at the second.
    """

    first: str
    second: str
    key: PartnerKey | None = None
    available: bool = False


def pair_conditions(rule: ast.Rule, natives: Mapping[str, NativeFunction]) -> list[PairCondition]:
    """The conditions of a rule that hold only for pairs that an index can find.

    Args:
      rule: the rule.
      natives: the natives it may call.
    """
    found: list[PairCondition] = []
    for block in (rule.where, rule.legal):
        for statement in block.statements if block else ():
            call = statement.expression if isinstance(statement, ast.Condition) else None
            if not isinstance(call, ast.Call) or len(call.arguments) != 2:
                continue
            function = natives[call.function].function
            names = [each.name for each in call.arguments if isinstance(each, ast.ValueRef) and each.index is None]
            if len(names) == 2 and (function in NATIVES.keys or function in NATIVES.availability):
                found.append(PairCondition(names[0], names[1], NATIVES.keys.get(function),
                                           function in NATIVES.availability))
    return found


def together(conditions: Sequence[PairCondition], wanted: Sequence[str], known: Sequence[str]) -> PairCondition | None:
    """Combines the conditions on one op and another; None when the other need not follow it.

    Args:
      conditions: those of the rule.
      wanted: the names of the results of the op to look for; one of them identifies the op.
      known: the names of the results of the known op.
    """
    if len(wanted) != 1 or len(known) != 1:
        return None
    op, other = wanted[0], known[0]
    key = next((each.key for each in conditions if each.key and {each.first, each.second} == {op, other}), None)
    available = any(each.available and (each.first, each.second) == (op, other) for each in conditions)
    return PairCondition(op, other, key or _any_key, True) if available else None


def indexed(every: Candidates, condition: PairCondition | None, names: frozenset[str], known: int, shared: int
            ) -> Candidates:
    """Looks up candidates in an index; returns one that does not match if the index contains none.

    Args:
      every: all candidates.
      condition: the requirement on them; None keeps all.
      names: the op names they may have.
      known: the slot of the op that is known.
      shared: the slot of the value that both read.
    """
    if condition is None or condition.key is None:
        return every
    key, pattern = condition.key, object()

    def candidates(env: Environment) -> Iterator[ir.Operation]:
        context = env[CONTEXT]
        if context.every_partner:
            yield from every(env)
            return
        index = context.readers(pattern, names, key)
        found = None
        for found in index.before(env[shared], env[known]):
            yield found
        other = index.other(env[shared], env[known]) if found is None else None
        if other is not None:
            yield other
    return candidates


def _any_key(context: object, op: ir.Operation) -> str:
    return op.name
