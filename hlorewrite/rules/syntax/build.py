"""From lark's parse tree to the dataclasses of ``ast``."""

from __future__ import annotations

import re
from typing import Any

from lark import Token, Transformer, Tree, v_args

from hlorewrite.rules.syntax import ast


def span_of(meta: Any) -> ast.Span:
    """The place of a tree; an empty tree has none."""
    if getattr(meta, "empty", True):
        return ast.Span()
    return ast.Span(meta.line, meta.column, meta.end_line, meta.end_column)


def _token_span(token: Token) -> ast.Span:
    return ast.Span(token.line or 0, token.column or 0, token.end_line or 0, token.end_column or 0)


def _bare(token: Token) -> str:
    return str(token)[1:]


class WrongEscape(ValueError):
    """Quoted text contains an unknown backslash escape."""

    def __init__(self, token: Token, escape: str) -> None:
        super().__init__(f"`{escape}` is not an escape")
        self.token = token


class WrongWord(ValueError):
    """A word is used where only one other word is allowed."""

    def __init__(self, token: Token, keyword: str, wanted: str) -> None:
        super().__init__(f"`{keyword} {token}` means nothing")
        self.token = token
        self.hint = f"write `{keyword} {wanted};` or `{keyword} {{ RELATION(%x, %r); }}`"


_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}


def _text(token: Token) -> str:
    def unescape(escape: re.Match[str]) -> str:
        if escape.group(1) not in _ESCAPES:
            raise WrongEscape(token, escape.group(0))
        return _ESCAPES[escape.group(1)]

    return re.sub(r"\\(.)", unescape, str(token)[1:-1])


def _sequence(item: Any) -> tuple[Any, ...]:
    return () if item is None else tuple(item)


@v_args(meta=True)
class TreeBuilder(Transformer):
    """One method for each rule and alias of the grammar."""

    # ---- literals and leaves

    def integer_literal(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(int(c[0]), span=span_of(meta))

    def float_literal(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(float(c[0]), span=span_of(meta))

    def string_literal(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(_text(c[0]), span=span_of(meta))

    def true(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(True, span=span_of(meta))

    def false(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(False, span=span_of(meta))

    def integer(self, meta: Any, c: list) -> int:
        return -int(c[1]) if c[0] else int(c[1])

    def negative_integer(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(-int(c[1]), span=span_of(meta))

    def integers(self, meta: Any, c: list) -> list[int]:
        return c

    def integer_list(self, meta: Any, c: list) -> ast.Literal:
        return ast.Literal(_sequence(c[0]), span=span_of(meta))

    def mlir(self, meta: Any, c: list) -> ast.Mlir:
        return ast.Mlir(str(c[0])[1:-1], span=span_of(meta))

    def attribute_variable(self, meta: Any, c: list) -> ast.AttributeVariable:
        return ast.AttributeVariable(_bare(c[0]), span=span_of(meta))

    def optional_attribute(self, meta: Any, c: list) -> ast.AttributeVariable:
        return ast.AttributeVariable(_bare(c[0]), True, span=span_of(meta))

    def kind_name(self, meta: Any, c: list) -> str:
        return str(c[0])

    def index(self, meta: Any, c: list) -> int | str:
        return _bare(c[0]) if c[0].type == "POSITION" else int(c[0])

    def value_ref(self, meta: Any, c: list) -> ast.ValueRef:
        return ast.ValueRef(_bare(c[0]), c[1], span=span_of(meta))

    def spread(self, meta: Any, c: list) -> ast.Spread:
        return ast.Spread(_bare(c[-1]), span=span_of(meta))

    def rest(self, meta: Any, c: list) -> ast.Spread:
        return ast.Spread(None, span=span_of(meta))

    def indexed(self, meta: Any, c: list) -> ast.Indexed:
        return ast.Indexed(c[0], c[1], span=span_of(meta))

    # ---- match

    def names(self, meta: Any, c: list) -> tuple[str, ...]:
        return tuple(_bare(t) for t in c)

    def op_names(self, meta: Any, c: list) -> tuple[str, ...]:
        return tuple(str(t) for t in c)

    def operands(self, meta: Any, c: list) -> list:
        return c

    def attribute_patterns(self, meta: Any, c: list) -> list:
        return c

    def attribute_pattern(self, meta: Any, c: list) -> ast.AttributePattern:
        return ast.AttributePattern(str(c[0]), c[1], span=span_of(meta))

    def reduces(self, meta: Any, c: list) -> ast.Reduces:
        return ast.Reduces(str(c[0]), c[1], span=span_of(meta))

    def yield_pattern(self, meta: Any, c: list) -> _Yield:
        return _Yield(_sequence(c[0]))

    def block_pattern(self, meta: Any, c: list) -> ast.BlockPattern:
        region, arguments, *rest = c
        body = tuple(p for p in rest if isinstance(p, ast.OpPattern))
        yields = next((p.operands for p in rest if isinstance(p, _Yield)), None)
        return ast.BlockPattern(str(region), _sequence(arguments), body, yields, span=span_of(meta))

    def type_patterns(self, meta: Any, c: list) -> _Types:
        return _Types(tuple(_bare(t) for t in c))

    def op_pattern(self, meta: Any, c: list) -> ast.OpPattern:
        mark, results, names, operands, attributes, *rest = c
        types = next((t.names for t in rest if isinstance(t, _Types)), ())
        regions = tuple(r for r in rest if isinstance(r, ast.Reduces | ast.BlockPattern))
        return ast.OpPattern(results, names, _sequence(operands), attributes=_sequence(attributes), regions=regions,
                             types=types, root=mark == "root", sole=mark == "sole", span=span_of(meta))

    # ---- expressions and checks

    def name(self, meta: Any, c: list) -> ast.Name:
        return ast.Name(str(c[0]), span=span_of(meta))

    def position(self, meta: Any, c: list) -> ast.Position:
        return ast.Position(_bare(c[0]), span=span_of(meta))

    def arguments(self, meta: Any, c: list) -> list:
        return c

    def call(self, meta: Any, c: list) -> ast.Call:
        return ast.Call(str(c[0]), _sequence(c[1]), span=span_of(meta))

    def list_of(self, meta: Any, c: list) -> ast.ListOf:
        return ast.ListOf(_sequence(c[0]), span=span_of(meta))

    def binary(self, meta: Any, c: list) -> ast.Binary:
        return ast.Binary(str(c[1]), c[0], c[2], span=span_of(meta))

    def comparator(self, meta: Any, c: list) -> str:
        return str(c[0])

    compare = binary

    def or_(self, meta: Any, c: list) -> ast.Binary:
        return ast.Binary("or", c[0], c[1], span=span_of(meta))

    def and_(self, meta: Any, c: list) -> ast.Binary:
        return ast.Binary("and", c[0], c[1], span=span_of(meta))

    def not_(self, meta: Any, c: list) -> ast.Unary:
        return ast.Unary("not", c[0], span=span_of(meta))

    def negative(self, meta: Any, c: list) -> ast.Unary:
        return ast.Unary("-", c[1], span=span_of(meta))

    def condition(self, meta: Any, c: list) -> ast.Condition:
        return ast.Condition(c[0], _text(c[1]) if c[1] else "", span=span_of(meta))

    def let(self, meta: Any, c: list) -> ast.Let:
        *names, expression, sentence = c
        return ast.Let(tuple(map(str, names)), expression, _text(sentence) if sentence else "",
                       span=span_of(meta))

    def let_action(self, meta: Any, c: list) -> ast.Let:
        return ast.Let(tuple(map(str, c[:-1])), c[-1], span=span_of(meta))

    # ---- rewrite

    def values(self, meta: Any, c: list) -> list:
        return c

    def assignments(self, meta: Any, c: list) -> list:
        return c

    def assignment(self, meta: Any, c: list) -> ast.Assignment:
        return ast.Assignment(str(c[0]), c[1], span=span_of(meta))

    def result_types(self, meta: Any, c: list) -> _Types:
        return _Types(tuple(c))

    def create(self, meta: Any, c: list) -> ast.Create:
        results, op, operands, attributes, *rest, like = c
        types = next((t.names for t in rest if isinstance(t, _Types)), ())
        regions = tuple(r for r in rest if isinstance(r, ast.Reduces))
        return ast.Create(results, str(op), _sequence(operands), attributes=_sequence(attributes), regions=regions,
                          types=types, like=_bare(like) if like else None, span=span_of(meta))

    def replace(self, meta: Any, c: list) -> ast.Replace:
        return ast.Replace(c[0], tuple(c[1:]), span=span_of(meta))

    def erase(self, meta: Any, c: list) -> ast.Erase:
        return ast.Erase(tuple(_bare(t) for t in c), span=span_of(meta))

    def set_attributes(self, meta: Any, c: list) -> ast.SetAttributes:
        return ast.SetAttributes(_bare(c[0]), tuple(c[1]), span=span_of(meta))

    def set_operand(self, meta: Any, c: list) -> ast.SetOperand:
        return ast.SetOperand(_bare(c[0]), c[1], c[2], span=span_of(meta))

    def before(self, meta: Any, c: list) -> str:
        return "before"

    def after(self, meta: Any, c: list) -> str:
        return "after"

    def at(self, meta: Any, c: list) -> ast.At:
        return ast.At(c[0], _bare(c[1]), tuple(c[2:]), span=span_of(meta))

    # ---- blocks and items

    def _block(self, meta: Any, c: list, keyword: str) -> ast.Block:
        return ast.Block(keyword, tuple(c), span=span_of(meta))

    def match(self, meta: Any, c: list) -> ast.Block:
        return self._block(meta, c, "match")

    def types_word(self, meta: Any, c: list) -> ast.Block:
        if str(c[0]) != "any":
            raise WrongWord(c[0], "types", "any")
        return self._block(meta, [], "types")

    def types(self, meta: Any, c: list) -> ast.Block:
        return self._block(meta, c, "types")

    def floats(self, meta: Any, c: list) -> ast.Floats:
        return ast.Floats(tuple(str(t) for t in c), span=span_of(meta))

    def where(self, meta: Any, c: list) -> ast.Block:
        return self._block(meta, c, "where")

    def legal(self, meta: Any, c: list) -> ast.Block:
        return self._block(meta, c, "legal")

    def cost(self, meta: Any, c: list) -> ast.Block:
        return self._block(meta, c, "cost")

    def rewrite(self, meta: Any, c: list) -> ast.Block:
        return self._block(meta, c, "rewrite")

    def docs(self, meta: Any, c: list) -> tuple[str, ...]:
        return tuple(str(t)[3:].removeprefix(" ").rstrip() for t in c)

    def item(self, meta: Any, c: list) -> ast.Item:
        docs, build = c
        return build(docs, span_of(meta))

    def import_item(self, meta: Any, c: list) -> Any:
        return lambda docs, span: ast.Import(docs, _text(c[0]), span=span)

    def predicate(self, meta: Any, c: list) -> str:
        return "predicate"

    def analysis(self, meta: Any, c: list) -> str:
        return "analysis"

    def relation(self, meta: Any, c: list) -> str:
        return "relation"

    def parameter(self, meta: Any, c: list) -> ast.Parameter:
        return ast.Parameter(str(c[1]), str(c[2]), c[0] is not None, span=span_of(meta))

    def parameters(self, meta: Any, c: list) -> list:
        return c

    def native(self, meta: Any, c: list) -> Any:
        kind, name, parameters, result = c
        return lambda docs, span: ast.Native(docs, kind, str(name), _sequence(parameters),
                                             str(result) if result else None, span=span)

    def named_operands(self, meta: Any, c: list) -> tuple[Any, ...]:
        return tuple(c)

    def each(self, meta: Any, c: list) -> dict[str, Any]:
        return {"form": "each", "expression": c[0]}

    def terms(self, meta: Any, c: list) -> dict[str, Any]:
        return {"form": "terms", "expression": c[0]}

    def moves(self, meta: Any, c: list) -> dict[str, Any]:
        return {"form": "moves", "data": c[0], "selectors": c[1] or ()}

    def folds(self, meta: Any, c: list) -> dict[str, Any]:
        return {"form": "folds", "data": c[0], "selectors": c[1] or ()}

    def meaning(self, meta: Any, c: list) -> Any:
        op, *operands, definition = c
        return lambda docs, span: ast.Meaning(docs, str(op), tuple(operands), **definition, span=span)

    def benefit(self, meta: Any, c: list) -> tuple[str, Any]:
        return ("benefit", int(c[0]))

    def recursive(self, meta: Any, c: list) -> tuple[str, Any]:
        return ("recursive", int(c[0]))

    def commutes(self, meta: Any, c: list) -> tuple[str, Any]:
        return ("commutes", True)

    def tags(self, meta: Any, c: list) -> tuple[str, Any]:
        return ("tags", tuple(str(t) for t in c))

    def rule(self, meta: Any, c: list) -> Any:
        modifiers = dict(m for m in c[1:] if isinstance(m, tuple))
        blocks = {b.keyword: b for b in c if isinstance(b, ast.Block)}
        match, rewrite = blocks.pop("match"), blocks.pop("rewrite")
        floats = next((f for f in c if isinstance(f, ast.Floats)), None)
        return lambda docs, span: ast.Rule(docs, str(c[0]), match, rewrite, **blocks, floats=floats, **modifiers,
                                           span=span, name_span=_token_span(c[0]))

    def linear_operand(self, meta: Any, c: list) -> ast.ValueRef | ast.Spread:
        if c[0] is not None:
            return ast.Spread(_bare(c[1]), span=span_of(meta))
        return ast.ValueRef(_bare(c[1]), span=span_of(meta))

    def linear_in(self, meta: Any, c: list) -> ast.LinearIn:
        return ast.LinearIn(tuple(c), span=span_of(meta))

    def kinds(self, meta: Any, c: list) -> ast.Kinds:
        return ast.Kinds(tuple(str(t) for t in c), span=span_of(meta))

    def linear(self, meta: Any, c: list) -> Any:
        name, commutes, *parts = c
        match, operands, kinds, types, floats, legal = parts
        return lambda docs, span: ast.Linear(docs, str(name), match, operands=operands, kinds=kinds, types=types,
                                             floats=floats, legal=legal, commutes=commutes is not None, span=span,
                                             name_span=_token_span(name))

    def file(self, meta: Any, c: list) -> ast.File:
        return ast.File(tuple(c), span=span_of(meta))


class _Yield:
    """The operands of a yield pattern, on their way into a block pattern."""

    def __init__(self, operands: tuple[ast.Operand, ...]) -> None:
        self.operands = operands


class _Types:
    """Result types, on their way into an op."""

    def __init__(self, names: tuple[Any, ...]) -> None:
        self.names = names


def build(tree: Tree) -> ast.File:
    """The file a parse tree stands for."""
    return TreeBuilder().transform(tree)
