"""The syntax tree of the rule language: the parser builds it, the printer writes it and the checker reads it.

Positions are not part of equality, so ``parse(print(tree)) == tree``; comments and doc lines are.
"""

from __future__ import annotations

from dataclasses import field

from hlorewrite.rules.syntax.node import NOWHERE, node
from hlorewrite.rules.syntax.node import Commented as Commented
from hlorewrite.rules.syntax.node import Span as Span
from hlorewrite.rules.syntax.node import SyntaxNode as SyntaxNode

# ---- leaves


@node
class Literal(SyntaxNode):
    """A number, text, truth value or list of integers."""

    value: int | float | str | bool | tuple[int, ...]


@node
class Mlir(SyntaxNode):
    """An attribute or type written as MLIR text between back-quotes."""

    text: str


@node
class ValueRef(SyntaxNode):
    """``%x``, ``%w#0`` or ``%w#@i``: a value, or one result of an op.

    Attributes:
      name: the name without ``%``.
      index: a result number, the name of a position, or None.
    """

    name: str
    index: int | str | None = None


@node
class Spread(SyntaxNode):
    """``...%xs``, or ``...`` alone (name None): any number of values."""

    name: str | None


@node
class Indexed(SyntaxNode):
    """``[@i] = %x``: the value at some position; the position is a name or a number."""

    position: int | str
    value: ValueRef


@node
class AttributeVariable(SyntaxNode):
    """``$g``, or ``?$g`` for an attribute that may be absent."""

    name: str
    optional: bool = False


Operand = ValueRef | Spread | Indexed


# ---- match


@node
class AttributePattern(SyntaxNode):
    """``name = pattern`` inside the braces of an op."""

    name: str
    value: AttributeVariable | Literal | Mlir


@node
class Reduces(SyntaxNode):
    """``region reduces(kind)``: the region combines two elements by one operation."""

    region: str
    kind: AttributeVariable | str


@node
class BlockPattern(SyntaxNode):
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


@node
class OpPattern(Commented):
    """``root %r = dialect.op(%a) {attributes} regions -> $type;``.

    Attributes:
      results: result names; one name stands for the op, several for its results.
      names: the op names it may have; ``("$op",)`` for the op that the reduction ``$op`` combines two values with.
      operands: operand patterns.
      attributes: attribute patterns; attributes that are not named do not matter.
      regions: region patterns.
      types: names that the result types are bound to.
      root: whether this is the op the rule is tried on.
      sole: whether only the match reads its result, and it is in the block of the root.
    """

    results: tuple[str, ...]
    names: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    attributes: tuple[AttributePattern, ...] = ()
    regions: tuple[Reduces | BlockPattern, ...] = ()
    types: tuple[str, ...] = ()
    root: bool = False
    sole: bool = False


# ---- expressions and checks


@node
class Name(SyntaxNode):
    """The result of a ``let``."""

    name: str


@node
class Position(SyntaxNode):
    """``@i`` used as a number."""

    name: str


@node
class ListOf(SyntaxNode):
    """``[a, b]``."""

    items: tuple[Expression, ...]


@node
class Call(SyntaxNode):
    """A call of a native predicate or analysis."""

    function: str
    arguments: tuple[Expression | Spread, ...]


@node
class Unary(SyntaxNode):
    """``not a`` or ``-a``."""

    operator: str
    operand: Expression


@node
class Binary(SyntaxNode):
    """``a op b`` with op one of ``or and == != <= >= < > + - * /``."""

    operator: str
    left: Expression
    right: Expression


Expression = Name | Position | ListOf | Call | Unary | Binary | ValueRef | AttributeVariable | Literal | Mlir


def parts_of(expression: object) -> tuple[Expression | Spread, ...]:
    """The operands of an operator, or the arguments of a call; empty for other expressions."""
    if isinstance(expression, Binary):
        return expression.left, expression.right
    if isinstance(expression, Unary):
        return (expression.operand,)
    return expression.arguments if isinstance(expression, Call) else ()


@node
class Condition(Commented):
    """A check, and the sentence that says what it means when it fails (empty: the predicate's own)."""

    expression: Expression
    sentence: str = ""


@node
class Let(Commented):
    """``let a, b = expression``; an analysis may answer with a sentence instead of a value."""

    names: tuple[str, ...]
    expression: Expression
    sentence: str = ""


# ---- rewrite


@node
class Assignment(SyntaxNode):
    """``attribute = expression`` of a created or changed op."""

    name: str
    value: Expression


@node
class Create(Commented):
    """``%t = dialect.op(...) {...} -> type like %op;``: a new op; ``$op`` as in ``OpPattern``."""

    results: tuple[str, ...]
    op: str
    operands: tuple[ValueRef | Spread | Name, ...] = ()
    attributes: tuple[Assignment, ...] = ()
    regions: tuple[Reduces, ...] = ()
    types: tuple[Expression, ...] = ()
    like: str | None = None


@node
class Replace(Commented):
    """``replace %old with %new;``: readers of an op (or of one value) read new ones instead."""

    old: ValueRef
    new: tuple[ValueRef | Spread | Name, ...]


@node
class Erase(Commented):
    """``erase %a, %b;``: ops that no op reads any more are erased, in this order."""

    names: tuple[str, ...]


@node
class SetAttributes(Commented):
    """``set %op {attribute = expression};``."""

    op: str
    attributes: tuple[Assignment, ...]


@node
class SetOperand(Commented):
    """``set %op[@i] = %x;``."""

    op: str
    position: int | str
    value: ValueRef | Spread | Name


@node
class At(Commented):
    """``before %op { ... }`` or ``after %op { ... }``: where new ops are put."""

    side: str
    anchor: str
    body: tuple[Action, ...]
    dangling: tuple[str, ...] = ()


Action = Create | Replace | Erase | SetAttributes | SetOperand | At | Let


# ---- files


@node
class Block(Commented):
    """A named block of a rule: ``match``, ``where``, ``types``, ``legal``, ``cost`` or ``rewrite``.

    ``types any;`` is a ``types`` block without statements.
    """

    keyword: str
    statements: tuple[OpPattern | Condition | Let | Action, ...]
    dangling: tuple[str, ...] = ()


@node
class Import(Commented):
    """``import "other.hlopat";``: the native declarations of another file."""

    docs: tuple[str, ...]
    path: str


@node
class Parameter(SyntaxNode):
    """``name: Type`` of a native; variadic ones take all remaining arguments."""

    name: str
    type: str
    variadic: bool = False


@node
class Native(Commented):
    """A predicate or analysis written in Python, declared with its types; ``hlorewrite.rules.register`` names it.

    Attributes:
      docs: its doc lines, without the slashes.
      kind: ``predicate`` (answers True or a sentence), ``relation`` (a predicate that looks at nothing but the element
        types of its values) or ``analysis`` (answers a value or a sentence).
      name: what rules call it.
      parameters: names and types.
      result: the type of an analysis' answer.
    """

    docs: tuple[str, ...]
    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    result: str | None


@node
class Floats(Commented):
    """``floats reassociates;``: what a rule or fact does to floating-point numbers; ``$op``: as that reduction does."""

    names: tuple[str, ...]


@node
class Meaning(Commented):
    """The meaning of an op that the prover does not know.

    Attributes:
      docs: its doc lines, without the slashes.
      op: the op's name.
      operands: its operands.
      form: ``each`` (element by element), ``terms`` (each result element is a sum of such terms), ``moves`` (each
        result element is an element of a moved operand) or ``folds`` (each result element reduces elements of these
        operands).
      expression: the element or term; None for ``moves`` and ``folds``.
      data: the operands that are moved or folded.
      selectors: the operands that say which elements.
    """

    docs: tuple[str, ...]
    op: str
    operands: tuple[ValueRef | Spread, ...]
    form: str
    expression: Expression | None = None
    data: tuple[ValueRef | Spread, ...] = ()
    selectors: tuple[ValueRef | Spread, ...] = ()


@node
class Rule(Commented):
    """A rewrite rule; a name that begins with ``$op-`` makes it a family, with one rule for each kind of reduction."""

    docs: tuple[str, ...]
    name: str
    match: Block
    rewrite: Block
    where: Block | None = None
    types: Block | None = None
    floats: Floats | None = None
    legal: Block | None = None
    cost: Block | None = None
    benefit: int | None = None
    recursive: int | None = None
    commutes: bool = False
    tags: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks present, in the order of the file."""
        every = (self.match, self.where, self.types, self.legal, self.cost, self.rewrite)
        return tuple(b for b in every if b is not None)


@node
class LinearIn(Commented):
    """``in %a, ...%rest;``: the operands an op is jointly linear in."""

    operands: tuple[ValueRef | Spread, ...]


@node
class Kinds(Commented):
    """``kinds sum, max;``: the reductions that commute with the op; ``any`` for all."""

    names: tuple[str, ...]


@node
class Linear(Commented):
    """A linearity fact about one op."""

    docs: tuple[str, ...]
    name: str
    match: Block
    operands: LinearIn
    kinds: Kinds
    types: Block | None = None
    floats: Floats | None = None
    legal: Block | None = None
    commutes: bool = False
    dangling: tuple[str, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks present, in the order of the file."""
        return tuple(b for b in (self.match, self.types, self.legal) if b is not None)


Item = Import | Native | Meaning | Rule | Linear


@node
class File(SyntaxNode):
    """A rule file."""

    items: tuple[Item, ...]
    dangling: tuple[str, ...] = ()
