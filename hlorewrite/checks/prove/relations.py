"""The element types that a rule or fact admits, found by calling the natives of its relations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.ir import ir, new_context
from hlorewrite.rules.compile.native_functions import NativeFunction
from hlorewrite.rules.syntax import ast


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
