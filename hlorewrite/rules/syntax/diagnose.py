"""Turns lark's parse errors into sentences: where, what, what was expected, what to do."""

from collections.abc import Callable, Iterable
from typing import Any

from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from hlorewrite.errors import RuleSyntaxError

# The name of each terminal in messages; keywords and signs are quoted as written.
SPELLINGS: dict[str, str] = {
    "VALUE": "a value such as `%x`", "ATTRIBUTE": "an attribute variable such as `$g`",
    "POSITION": "a position such as `@i`", "OP_NAME": "an op name such as `stablehlo.all_reduce`",
    "RULE_NAME": "a rule name such as `fuse-all-reduce`", "IDENT": "a name such as `replica_groups`",
    "FLOAT": "a number", "INT": "a whole number", "STRING": 'text in double quotes', "MLIR": "MLIR text in back-quotes",
    "DOC": "a `///` doc line", "LPAR": "`(`", "RPAR": "`)`", "LBRACE": "`{`", "RBRACE": "`}`", "LSQB": "`[`",
    "RSQB": "`]`", "SEMICOLON": "`;`", "COMMA": "`,`", "COLON": '`: "sentence"`', "EQUAL": "`=`", "BAR": "`|`",
    "HASH": "`#`", "CARET": "`^(...)`", "QMARK": "`?$name`", "ARROW": "`->`", "ELLIPSIS": "`...`",
    "$END": "the end of the file", "EQ": "`==`", "NE": "`!=`", "LE": "`<=`", "GE": "`>=`", "LT": "`<`", "GT": "`>`",
    "PLUS": "`+`", "MINUS": "`-`", "STAR": "`*`", "SLASH": "`/`",
}
_OPERATORS = frozenset({"EQ", "NE", "LE", "GE", "LT", "GT", "PLUS", "MINUS", "STAR", "SLASH", "AND", "OR"})
_START_OF_EXPRESSION = frozenset({"IDENT", "VALUE", "ATTRIBUTE", "POSITION", "INT", "FLOAT", "STRING", "TRUE", "FALSE",
                                  "LPAR", "LSQB", "MINUS"})

_HEAD = "rule a { match { root %r = stablehlo.add(%a, %b); } "
# The commonest mistakes: (what is wrong, what to do) -> texts that make it. lark compares parser states.
MISTAKES: dict[tuple[str, str], list[str]] = {
    ("a statement ends with `;`", "add `;` after the closing bracket"): [
        "rule a { match { root %r = stablehlo.add(%a, %b) }",
        "rule a { match { %r = stablehlo.add(%a, %b) root",
        "rule a { match { root %r = stablehlo.add(%a, %b) {x = $y} }",
        _HEAD + "where { f(%a) }", _HEAD + "where { f(%a) g(",
        _HEAD + "rewrite { replace %r with %a }", _HEAD + "rewrite { erase %r }"],
    ("values are written with `%`", "write `%x` for a value and `$g` for an attribute"): [
        "rule a { match { r = stablehlo.add(", "rule a { match { root r = stablehlo.add("],
    ("operands are values, written with `%`", "write `%x`, `...%rest` or `...`"): [
        "rule a { match { root %r = stablehlo.add(a", "rule a { match { root %r = stablehlo.add(%a, b"],
    ("an op is written with its dialect", "write `stablehlo.add`, not `add`"): [
        "rule a { match { root %r = add(", "rule a { match { %r = add("],
    ("a rule needs a `rewrite` block", "name the replacement of the match: `rewrite { replace %r with %x; }`"): [
        _HEAD + "}", _HEAD + "where { } }", _HEAD + "legal { } }", _HEAD + "cost { } }"],
    ("the blocks of a rule come in the order match, where, types, floats, legal, cost, rewrite", "move this block"): [
        _HEAD + "legal { } where {", _HEAD + "cost { } legal {", _HEAD + "cost { } where {",
        "rule a { where {", "rule a { rewrite {", "rule a { legal {"],
    ("an attribute pattern is `name = $variable` or `name = literal`", "bind it with `$`, as in `{dimension = $d}`"): [
        "rule a { match { root %r = stablehlo.add(%a) {x = y", "rule a { match { root %r = stablehlo.add(%a) {x: $",
        "rule a { match { root %r = stablehlo.add(%a) {x = %"],
    ("a rule name is lower-case words joined by `-`", "write `fuse-all-reduce`"): [
        "rule Fuse", "rule fuse_all {", "rule {", 'rule "', "linear Fuse", "linear {"],
    ("a sentence is text in double quotes", 'write `check(%x) : "why it failed";`'): [
        _HEAD + "where { f(%a) : why", _HEAD + "legal { f(%a) : %"],
    ("a rule file cannot name a Python function", "end the declaration with `;`, register the function with "
     "hlorewrite.rules.register.native, and name its module with --natives"): [
        "native predicate a(op: Op) =", "native analysis a(op: Op) -> Int =", "native predicate a() ="],
    ("a file contains `rule`, `linear`, `native` and `import` items", "doc lines start with `///`"): [
        "match {", "pattern a {", "%r = stablehlo.add(", "rewrite {"],
    ("`replace` needs `with`", "write `replace %r with %x;`"): [
        _HEAD + "rewrite { replace %r by", _HEAD + "rewrite { replace %r, %a", _HEAD + "rewrite { replace %r ;"],
    ("a `///` doc line is allowed only before an item", "use `//` for a comment inside a rule"): [
        "rule a { /// x", "rule a { match { /// x", _HEAD + "/// x", _HEAD + "where { /// x",
        "rule a { match { root %r = stablehlo.add(%a, %b); /// x", _HEAD + "rewrite { replace %r with %a; /// x"],
    ("a linear fact says which operands it is linear in", "write `in %a;` and `kinds sum;` after `match`"): [
        "linear a { match { root %r = stablehlo.add(%a, %b); } }",
        "linear a { match { root %r = stablehlo.add(%a, %b); } kinds",
        "linear a { match { root %r = stablehlo.add(%a, %b); } in %a; }",
        "linear a { match { root %r = stablehlo.add(%a, %b); } legal"],
}

# Labels that fit only the exact token of an example, not another token in the same place.
_EXACT = [label for label in MISTAKES if label[0].startswith(("the blocks", "a rule file cannot"))]


def spelled(terminal: str) -> str:
    """The name of a terminal in messages.

    Example:
      >>> spelled("SEMICOLON"), spelled("REWRITE")
      ('`;`', '`rewrite`')
    """
    return SPELLINGS.get(terminal, f"`{terminal.lower()}`")


def expected_words(terminals: Iterable[str]) -> str:
    """The terminals that were possible, in words, shortened to the most informative.

    Example:
      >>> expected_words({"SEMICOLON", "COMMA", "PLUS", "MINUS", "STAR"})
      '`,`, `;` or an operator'
    """
    names = set(terminals)
    words: list[str] = []
    if names >= _START_OF_EXPRESSION:
        names -= _START_OF_EXPRESSION
        words.append("an expression")
    if len(names & _OPERATORS) > 2:
        names -= _OPERATORS
        words.append("an operator")
    listed = sorted(spelled(name) for name in names) + words
    if len(listed) <= 1:
        return "".join(listed)
    return ", ".join(listed[:-1]) + " or " + listed[-1]


def excerpt(text: str, line: int, column: int, length: int = 1) -> str:
    """The source line with a caret under the place.

    Example:
      >>> print(excerpt("rule a {", 1, 6))
          rule a {
               ^
    """
    lines = text.split("\n")
    source = lines[min(line, len(lines)) - 1] if line > 0 else ""
    shown = "".join(c if c.isprintable() else " " for c in source.rstrip("\r"))
    return f"    {shown}\n    {' ' * (column - 1)}{'^' * max(1, min(length, len(shown) - column + 1))}"


def syntax_error(error: UnexpectedInput, text: str, name: str,
                 parse: Callable[[str], Any]) -> RuleSyntaxError:
    """The sentence for a parse error.

    Args:
      error: what lark raised.
      text: the whole file.
      name: its name.
      parse: parses a text with the same parser, for comparing with known mistakes (as lark's ``match_examples`` does,
        but by parser state alone, so that earlier text of the file does not matter).

    Returns:
      The error to raise.
    """
    line, column = _position(error, text)
    unexpected = _unexpected(error, text)
    wanted = expected_words(_expected(error))
    label = _mistake(error, parse)
    what = f"found {unexpected}, expected {wanted}"
    hint = "correct this place"
    if label is not None:
        what, hint = f"{label[0]}: {what}", label[1]
    elif isinstance(error, UnexpectedEOF) or unexpected == "the end of the file":
        hint = "close what is open"
    length = len(str(error.token)) if isinstance(error, UnexpectedToken) else 1
    return RuleSyntaxError(what, location=f"{name}:{line}:{column}", hint=hint,
                           excerpt=excerpt(text, line, column, length))


def value_error(error: VisitError, text: str, name: str) -> RuleSyntaxError:
    """The sentence for a token that parses but has no value (a wrong escape in text)."""
    token = getattr(error.orig_exc, "token", None)
    hint = getattr(error.orig_exc, "hint", None)
    if token is not None and hint is not None:
        return RuleSyntaxError(str(error.orig_exc), location=f"{name}:{token.line}:{token.column}", hint=hint,
                               excerpt=excerpt(text, token.line, token.column, len(token)))
    if token is None:  # a number too long for Python
        meta = getattr(error.obj, "meta", error.obj)
        line, column = getattr(meta, "line", 1), getattr(meta, "column", 1)
        return RuleSyntaxError("the number is too long", location=f"{name}:{line}:{column}",
                               hint="write a shorter one", excerpt=excerpt(text, line, column))
    return RuleSyntaxError(f"{error.orig_exc} in text", location=f"{name}:{token.line}:{token.column}",
                           hint='write `\\\\` for a back-slash and `\\"` for a quote',
                           excerpt=excerpt(text, token.line, token.column, len(token)))


def _position(error: UnexpectedInput, text: str) -> tuple[int, int]:
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if at_end or isinstance(error, UnexpectedEOF) or not isinstance(error.line, int) or error.line < 1:
        lines = text.rstrip().split("\n")
        return len(lines), len(lines[-1]) + 1
    return error.line, int(error.column)


def _unexpected(error: UnexpectedInput, text: str) -> str:
    if isinstance(error, UnexpectedToken):
        return "the end of the file" if error.token.type == "$END" else f"`{error.token}`"
    if isinstance(error, UnexpectedCharacters) and error.pos_in_stream is not None:
        word = _word(text[error.pos_in_stream:].split("\n")[0])
        return f"`{word}`" if word.isprintable() else f"the character U+{ord(word[0]):04X}"
    return "the end of the file"


def _word(rest: str) -> str:
    end = 1
    if rest[0].isalnum() or rest[0] in "_%$@\"":
        # Ends: each round passes a character.
        while end < len(rest) and (rest[end].isalnum() or rest[end] in "_-."):
            end += 1
    return rest[:end]


def _expected(error: UnexpectedInput) -> set[str]:
    if isinstance(error, UnexpectedToken):
        return set(error.accepts or error.expected)
    allowed: set[str] = set(getattr(error, "allowed", None) or getattr(error, "expected", ()))
    return allowed - {"WHITESPACE", "COMMENT"}


def _mistake(error: UnexpectedInput, parse: Callable[[str], Any]) -> tuple[str, str] | None:
    """The known mistake with the same parser state: the one with the same token first, else any."""
    if _token_type(error) == "DOC":
        return next(label for label in MISTAKES if label[0].startswith("a `///`"))
    same_state: tuple[str, str] | None = None
    for label, example in ((label, text) for label, texts in MISTAKES.items() for text in texts):
        try:
            parse(example)
        except UnexpectedInput as known:
            if _state(known) != _state(error) or _expected(known) != _expected(error):
                continue
            if _token_type(known) == _token_type(error):
                return label
            if label not in _EXACT:
                same_state = same_state or label
    return same_state


def _state(error: UnexpectedInput) -> Any:
    return getattr(error.state, "position", None)


def _token_type(error: UnexpectedInput) -> str:
    return error.token.type if isinstance(error, UnexpectedToken) else ""
