"""What a rule file declares beyond StableHLO: meanings of ops the prover does not know, and element types."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.checks.prove.elements import TYPES, Arithmetic, Value
from hlorewrite.checks.prove.op_semantics import Get, OpSemantics, Typing, fold, known_ops
from hlorewrite.errors import RuleCheckError
from hlorewrite.ir import ir, new_context
from hlorewrite.rules.compile.checks import NativeFunction
from hlorewrite.rules.syntax import ast

# ---- meanings that a rule file declares for ops the prover does not know


Elements = Callable[[Arithmetic, Typing, Get, str], list[Value]]


def declared_meanings(items: Iterable[ast.Item], file: str) -> dict[str, OpSemantics]:
    """The meanings of a file, by op.

    Args:
      items: its items.
      file: its name, for messages.

    Raises:
      RuleCheckError: a meaning is declared twice, or for an op that has one.
    """
    found: dict[str, OpSemantics] = {}
    for item in items:
        if isinstance(item, ast.Meaning):
            if item.op in found or item.op in known_ops():
                raise RuleCheckError(f"{item.op} has a meaning already", hint="remove this one",
                                     location=f"{file}:{item.span.line}:{item.span.column}")
            found[item.op] = _meaning(item)
    return found


def _meaning(item: ast.Meaning) -> OpSemantics:
    place = {o.name: i for i, o in enumerate(item.operands)}
    data = tuple(place[o.name] for o in item.data)
    selectors = tuple(place[o.name] for o in item.selectors)
    if item.form in ("moves", "folds"):
        elements = _moved(data) if item.form == "moves" else fold(*((i, ("j", "k"), 0) for i in data))
        kind = "selection" if item.form == "moves" else "fold"
        return OpSemantics(item.op, kind, _one_type(data), elements=elements, selectors=selectors, source="file",
                           count=len(place))
    kind = "elementwise" if item.form == "each" else "sum of terms"
    converts = not any(True for _ in _plain(item.expression))
    typings = _any_to_any if converts else _one_type(tuple(place.values()))
    return OpSemantics(item.op, kind, typings, elements=_expressed(item.expression, place, kind), selectors=(),
                       source="file", count=len(place))


def _one_type(data: tuple[int, ...]) -> Callable[[int], Iterator[Typing]]:
    return lambda count: (Typing(tuple(e if i in data else "i32" for i in range(count)), e) for e in TYPES)


def _any_to_any(count: int) -> Iterator[Typing]:
    return (Typing((source,) * count, target) for source in TYPES for target in TYPES)


def _moved(data: tuple[int, ...]) -> Elements:
    return lambda math, typing, get, reduction: [get(i, "j") for i in data]


def _expressed(node: Any, place: dict[Any, int], kind: str) -> Elements:
    def elements(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
        def at(where: str) -> Value:
            return _evaluated(node, math, typing, lambda name: get(place[name], where), place)
        return [at("j")] if kind == "elementwise" else [math.add(typing.result, at("j"), at("k"))]
    return elements


def _evaluated(node: Any, math: Arithmetic, typing: Typing, read: Callable[[str], Value],
               place: dict[Any, int]) -> Value:
    element = typing.result
    if isinstance(node, ast.ValueRef):
        return read(node.name)
    if isinstance(node, ast.Literal):
        return math.number(element, int(node.value if isinstance(node.value, int) else 0))
    if isinstance(node, ast.Call) and node.function == "convert":
        value = node.arguments[0]
        assert isinstance(value, ast.ValueRef)
        return math.convert(typing.operands[place[value.name]], element, read(value.name))
    parts = [_evaluated(part, math, typing, read, place) for part in ast.parts_of(node)]
    if isinstance(node, ast.Call):
        return (math.maximum if node.function == "max" else math.minimum)(element, *parts)
    if isinstance(node, ast.Unary):
        return math.negate(element, *parts)
    operator = {"+": math.add, "-": math.subtract, "*": math.multiply, "/": math.divide}[node.operator]
    return operator(element, *parts)


def _plain(node: Any) -> Iterator[ast.ValueRef]:
    """Operands that are used as they are, without a convert."""
    if isinstance(node, ast.ValueRef):
        yield node
    elif not (isinstance(node, ast.Call) and node.function == "convert"):
        for part in ast.parts_of(node):
            yield from _plain(part)


# ---- the element types that a rule or fact admits, found by calling the natives of its relations


@dataclass(frozen=True)
class TypedValue:
    """All that a relation may look at: the type of a value."""

    type: ir.Type


@dataclass
class Relations:
    """Asks relations about element types.

    Args:
      natives: the natives that a file declares.
    """

    natives: Mapping[str, NativeFunction]
    _context: Any = field(default_factory=new_context, repr=False)
    _values: dict[str, TypedValue] = field(default_factory=dict, repr=False)
    _known: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict, repr=False)

    def admit(self, types: ast.Block | None, elements: Mapping[str, str]) -> bool:
        """Whether ``types`` admits a combination of element types.

        Args:
          types: the block; None or empty admits every combination.
          elements: the element type of each value, by name; values of a spread ``%p`` are ``p.0``, ``p.1``...
        """
        statements = types.statements if types else ()
        return all(self._holds(s.expression, elements) for s in statements if isinstance(s, ast.Condition))

    def _holds(self, node: Any, elements: Mapping[str, str]) -> bool:
        if isinstance(node, ast.Binary):
            left, right = self._holds(node.left, elements), self._holds(node.right, elements)
            return (left and right) if node.operator == "and" else (left or right)
        if isinstance(node, ast.Unary):
            return not self._holds(node.operand, elements)
        native = self.natives[node.function]
        arguments = [name for a in node.arguments for name in _named(a, elements)]
        if any(isinstance(a, ast.Spread) for a in node.arguments) and not native.declared.parameters[-1].variadic:
            return all(self._answer(node.function, (elements[name],)) for name in arguments)
        return self._answer(node.function, tuple(elements[name] for name in arguments))

    def _answer(self, name: str, types: tuple[str, ...]) -> bool:
        if (name, types) not in self._known:
            values = [self._value(element) for element in types]
            self._known[name, types] = self.natives[name].function(None, *values) is True
        return self._known[name, types]

    def _value(self, element: str) -> TypedValue:
        if element not in self._values:
            with self._context, ir.Location.unknown(self._context):
                self._values[element] = TypedValue(ir.RankedTensorType.get([2], ir.Type.parse(element)))
        return self._values[element]


def _named(argument: Any, elements: Mapping[str, str]) -> list[str]:
    if isinstance(argument, ast.Spread):
        return [name for name in elements if name.startswith(f"{argument.name}.")]
    return [argument.name]
