"""The Python source of natives: its digest, which a rule's verdict covers, and the failure texts in it."""

import ast
import importlib.util
import inspect
import re
import sys
import textwrap
from functools import cache
from pathlib import Path

from hlorewrite.rules.register import NATIVES
from hlorewrite.util.reachability import reachable

_WORD = re.compile(r"[A-Za-z_]\w*")


def native_source(text: str) -> str:
    """The code of the shipped natives that a rule calls, with what they call in their own modules.

    Comments, docstrings and layout do not count; what natives import from other modules is left out.

    Args:
      text: the rule as its printer writes it.

    Returns:
      A text that changes when the code does, the same on each supported version of Python.

    Example:
      >>> native_source("legal { one_use(%r); }").startswith("FunctionDef(name='one_use'")
      True
      >>> native_source("legal { 1 < 2; }")
      ''
    """
    words, parts = set(_WORD.findall(text)), list[str]()
    for module in NATIVES.shipped:
        defined = _definitions(module)
        named = (function for name, function in _natives(module).items() if name in words)
        reached = reachable(named, lambda name: [each.id for each in ast.walk(defined[name])  # noqa: B023
                                                 if isinstance(each, ast.Name) and each.id in defined])  # noqa: B023
        parts += [_form(defined[name]) for name in sorted(reached)]
    return "\n".join(parts)


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """The functions, classes and assignments of a module by name, read from its source without importing it."""
    loaded = sys.modules.get(module)
    spec = importlib.util.find_spec(module) if loaded is None else loaded.__spec__
    assert spec is not None and spec.origin is not None
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {target.id: statement for target in targets if isinstance(target, ast.Name)}
    return found


@cache
def _natives(module: str) -> dict[str, str]:
    """The functions that a module registers, by the names rule files use."""
    found: dict[str, str] = {}
    for function, statement in _definitions(module).items():
        for each in statement.decorator_list if isinstance(statement, ast.FunctionDef) else ():
            if isinstance(each, ast.Name) and each.id == "native":
                found[function] = function
            elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "native":
                found[str(ast.literal_eval(each.args[0]))] = function
    return found


def _form(node: object) -> str:
    """A syntax tree as text without empty fields, since newer versions of Python add some."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [], "")]
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            fields = [(name, value[1:] if name == "body" else value) for name, value in fields]
        return f"{type(node).__name__}({', '.join(f'{name}={_form(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_form, node))}]"
    return repr(node)


# ---- reads the failure texts of natives from their source, to list conditions without an op


_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_FAILURE = "MatchFailure"
_MOST_TEXTS = 3


def failure_text(condition: str) -> str:
    """The sentences that the natives of a condition can give, ``...`` for what depends on the program.

    Args:
      condition: as written in a rule file, ``same_groups(%a, %b)``.

    Returns:
      Up to three sentences, separated by "; or "; empty if the natives build their sentences elsewhere.

    Example:
      >>> failure_text("one_use(%ga)")
      'its result is read ... times'
    """
    texts: dict[str, None] = {}
    for name in _CALL.findall(condition):
        function = NATIVES.find(name)
        if function is not None:
            texts.update(dict.fromkeys(_texts(function)))
    return "; or ".join(list(texts)[:_MOST_TEXTS])


def _texts(function: object) -> list[str]:
    """The texts of the failures that a function makes, in the order of its source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # pyright: ignore[reportArgumentType]
    except (OSError, TypeError, SyntaxError):  # no Python source
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args
             and isinstance(node.func, ast.Name) and node.func.id == _FAILURE]
    return [text for call in calls if (text := _shown(call.args[0]))]


def _shown(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return ""
