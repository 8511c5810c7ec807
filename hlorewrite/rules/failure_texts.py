"""Reads the failure texts of natives from their source, to list conditions without an op."""

import ast
import inspect
import re
import textwrap

from hlorewrite.rules.register import NATIVES

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
