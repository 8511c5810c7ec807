"""The rule language as data: what the parser builds, the printer writes and the checker reads.

Positions are not part of equality, so ``parse(print(tree)) == tree``; comments and doc lines are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def _node(cls: _Class) -> _Class:
    """A frozen dataclass that leaves ``==``, ``hash`` and ``repr`` to ``Node``: a third of the time to import."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)


@dataclass(frozen=True)
class Span:
    """Where a node stands in its file; lines and columns count from 1, the end is exclusive."""

    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0


_NOWHERE = Span()


@_node
class Node:
    """Anything with a place in a file."""

    span: Span = field(default=_NOWHERE, compare=False, repr=False, kw_only=True)

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f.name) for f in fields(self) if f.compare)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Node):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), self._compared()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"{type(self).__name__}({shown})"


@_node
class Commented(Node):
    """A node that stands on lines of its own, so that comments can belong to it.

    Attributes:
      comments: the comment lines before it; an empty text stands for a blank line.
      trailing: the comment behind it on its last line.
    """

    comments: tuple[str, ...] = field(default=(), kw_only=True)
    trailing: str = field(default="", kw_only=True)


# ---- leaves


@_node
class Literal(Node):
    """A number, text, truth value or list of integers."""

    value: int | float | str | bool | tuple[int, ...]


@_node
class Mlir(Node):
    """An attribute or type written as MLIR text between back-quotes."""

    text: str


@_node
class ValueRef(Node):
    """``%x``, ``%w#0`` or ``%w#@i``: a value, or one result of an op.

    Attributes:
      name: the name without ``%``.
      index: a result number, the name of a position, or None.
    """

    name: str
    index: int | str | None = None


@_node
class Spread(Node):
    """``...%xs``, or ``...`` alone (name None): any number of values."""

    name: str | None


@_node
class Indexed(Node):
    """``[@i] = %x``: the value at some position; the position is a name or a number."""

    position: int | str
    value: ValueRef


@_node
class AttributeVariable(Node):
    """``$g``, or ``?$g`` for an attribute that may be absent."""

    name: str
    optional: bool = False


Operand = ValueRef | Spread | Indexed


# ---- match


@_node
class AttributePattern(Node):
    """``name = pattern`` inside the braces of an op."""

    name: str
    value: AttributeVariable | Literal | Mlir


@_node
class Reduces(Node):
    """``region reduces(kind)``: the region combines two elements by one operation."""

    region: str
    kind: AttributeVariable | str


@_node
class BlockPattern(Node):
    """``region ^(arguments) { ops; yield(...); }``.

    Attributes:
      region: the region's name in the op's definition.
      arguments: patterns of the block's arguments.
      body: ops the block holds, in any order and among others.
      yields: patterns of the terminator's operands; None when they do not matter.
      dangling: comment lines before the closing brace.
    """

    region: str
    arguments: tuple[Operand, ...]
    body: tuple[OpPattern, ...]
    yields: tuple[Operand, ...] | None
    dangling: tuple[str, ...] = ()


@_node
class OpPattern(Commented):
    """``root %r = dialect.op(%a) {attributes} regions -> $type;``.

    Attributes:
      results: result names; one name stands for the op, several for its results.
      names: the op names it may have.
      operands: operand patterns.
      attributes: attribute patterns; attributes that are not named do not matter.
      regions: region patterns.
      types: names that the result types are bound to.
      root: whether this is the op the rule is tried on.
    """

    results: tuple[str, ...]
    names: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    attributes: tuple[AttributePattern, ...] = ()
    regions: tuple[Reduces | BlockPattern, ...] = ()
    types: tuple[str, ...] = ()
    root: bool = False


# ---- expressions and checks


@_node
class Name(Node):
    """The result of a ``let``."""

    name: str


@_node
class Position(Node):
    """``@i`` used as a number."""

    name: str


@_node
class ListOf(Node):
    """``[a, b]``."""

    items: tuple[Expression, ...]


@_node
class Call(Node):
    """A call of a native predicate or analysis."""

    function: str
    arguments: tuple[Expression | Spread, ...]


@_node
class Unary(Node):
    """``not a`` or ``-a``."""

    operator: str
    operand: Expression


@_node
class Binary(Node):
    """``a op b`` with op one of ``or and == != <= >= < > + - * /``."""

    operator: str
    left: Expression
    right: Expression


Expression = Name | Position | ListOf | Call | Unary | Binary | ValueRef | AttributeVariable | Literal | Mlir


@_node
class Condition(Commented):
    """A check, and the sentence that says what it means when it fails (empty: the predicate's own)."""

    expression: Expression
    sentence: str = ""


@_node
class Let(Commented):
    """``let a, b = expression``; an analysis may answer with a sentence instead of a value."""

    names: tuple[str, ...]
    expression: Expression
    sentence: str = ""


# ---- rewrite


@_node
class Assignment(Node):
    """``attribute = expression`` of a created or changed op."""

    name: str
    value: Expression


@_node
class Create(Commented):
    """``%t = dialect.op(...) {...} -> type like %op;``: a new op."""

    results: tuple[str, ...]
    op: str
    operands: tuple[ValueRef | Spread | Name, ...] = ()
    attributes: tuple[Assignment, ...] = ()
    regions: tuple[Reduces, ...] = ()
    types: tuple[Expression, ...] = ()
    like: str | None = None


@_node
class Replace(Commented):
    """``replace %old with %new;``: readers of an op (or of one value) read others instead."""

    old: ValueRef
    new: tuple[ValueRef | Spread | Name, ...]


@_node
class Erase(Commented):
    """``erase %a, %b;``: ops that nobody reads any more go, in this order."""

    names: tuple[str, ...]


@_node
class SetAttributes(Commented):
    """``set %op {attribute = expression};``."""

    op: str
    attributes: tuple[Assignment, ...]


@_node
class SetOperand(Commented):
    """``set %op[@i] = %x;``."""

    op: str
    position: int | str
    value: ValueRef | Spread | Name


@_node
class At(Commented):
    """``before %op { ... }`` or ``after %op { ... }``: where new ops are put."""

    side: str
    anchor: str
    body: tuple[Action, ...]
    dangling: tuple[str, ...] = ()


Action = Create | Replace | Erase | SetAttributes | SetOperand | At | Let


# ---- files


@_node
class Block(Commented):
    """A named block of a rule: ``match``, ``where``, ``legal``, ``cost`` or ``rewrite``."""

    keyword: str
    statements: tuple[OpPattern | Condition | Let | Action, ...]
    dangling: tuple[str, ...] = ()


@_node
class Import(Commented):
    """``import "other.hlopat";``: the native declarations of another file."""

    docs: tuple[str, ...]
    path: str


@_node
class Parameter(Node):
    """``name: Type`` of a native; variadic ones take all remaining arguments."""

    name: str
    type: str
    variadic: bool = False


@_node
class Native(Commented):
    """A predicate or analysis written in Python, declared with its types.

    Attributes:
      docs: its doc lines, without the slashes.
      kind: ``predicate`` (answers True or a sentence) or ``analysis`` (answers a value or a sentence).
      name: what rules call it.
      parameters: names and types.
      result: the type of an analysis' answer.
      target: ``module:function``.
    """

    docs: tuple[str, ...]
    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    result: str | None
    target: str


@_node
class Rule(Commented):
    """A rewrite rule."""

    docs: tuple[str, ...]
    name: str
    match: Block
    rewrite: Block
    where: Block | None = None
    legal: Block | None = None
    cost: Block | None = None
    benefit: int | None = None
    recursive: int | None = None
    commutes: bool = False
    tags: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()
    name_span: Span = field(default=_NOWHERE, compare=False, repr=False)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that are there, in the order of the file."""
        return tuple(b for b in (self.match, self.where, self.legal, self.cost, self.rewrite) if b is not None)


@_node
class LinearIn(Commented):
    """``in %a, ...%rest;``: the operands an op is jointly linear in."""

    operands: tuple[ValueRef | Spread, ...]


@_node
class Kinds(Commented):
    """``kinds sum, max;``: the reductions that commute with the op; ``any`` for all."""

    names: tuple[str, ...]


@_node
class Linear(Commented):
    """A linearity fact about one op."""

    docs: tuple[str, ...]
    name: str
    match: Block
    operands: LinearIn
    kinds: Kinds
    legal: Block | None = None
    commutes: bool = False
    dangling: tuple[str, ...] = ()
    name_span: Span = field(default=_NOWHERE, compare=False, repr=False)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that are there, in the order of the file."""
        return (self.match,) if self.legal is None else (self.match, self.legal)


Item = Import | Native | Rule | Linear


@_node
class File(Node):
    """A rule file."""

    items: tuple[Item, ...]
    dangling: tuple[str, ...] = ()
