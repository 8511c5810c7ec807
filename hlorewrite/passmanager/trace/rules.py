"""The text of the rules and passes that rewrote something, for readers of a trace."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import replace

from hlorewrite.errors import HlorewriteError


def rule_texts(seen: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """What each rule says.

    Args:
      seen: (rule, where it is written); a place that is empty means that a pass rewrote by itself.

    Returns:
      For each ``rule``, ``location``, ``equation`` (its first line of documentation), ``docs`` and ``text``; what
      cannot be found any more is empty.
    """
    rows = []
    for rule, location in dict.fromkeys(seen):
        text = _written(rule, location) if location else _of_pass(rule)
        rows.append({"rule": rule, "location": location, "equation": text[0], "docs": text[1], "text": text[2]})
    return rows


def _written(name: str, location: str) -> tuple[str, str, str]:
    from hlorewrite.rules.library import checked, read_source
    from hlorewrite.rules.syntax import ast
    from hlorewrite.rules.syntax.printer import print_file
    file = location.rpartition(":")[0]
    try:
        tree, _ = checked(read_source(file.removeprefix("patterns/") if file.startswith("patterns/") else file))
    except HlorewriteError:  # the file was moved while the run went on; the rewrite itself is still worth showing
        return "", "", ""
    for item in tree.items:
        if isinstance(item, ast.Rule) and item.name == name:
            bare = replace(item, docs=(), comments=(), trailing="")
            docs = [*item.docs, ""]
            return docs[0], "\n".join(docs[1:]).strip(), print_file(ast.File((bare,))).strip()
    return "", "", ""


def _of_pass(name: str) -> tuple[str, str, str]:
    from hlorewrite.passmanager.mlir_table import MLIR_PASSES
    from hlorewrite.passmanager.registry import find_pass
    if name in MLIR_PASSES:
        return MLIR_PASSES[name].help, "", ""
    try:
        text = inspect.cleandoc(find_pass(name).__doc__ or "")
    except HlorewriteError:
        return "", "", ""
    first, _, rest = text.partition("\n")
    return first, re.split(r"^(?:Attributes|Example):$", rest, maxsplit=1, flags=re.MULTILINE)[0].strip(), ""
