"""Keeps the syntax trees of shipped rule files next to them, as Python keeps its byte code.

lark and the parser take 0.15 s, more than a whole run of a small module. A tree is stored in ``__pycache__`` under a
name that contains the digest of the file's text, of the grammar and of the code that builds trees; where the folder
cannot be written, files are parsed each time.
"""

import hashlib
import io
import pickle
import sys
from functools import cache
from pathlib import Path

from hlorewrite.errors import OutputError
from hlorewrite.rules.syntax import ast, node
from hlorewrite.util.write import write_file

_SOURCES = ("hlopat.lark", "node.py", "ast.py", "build.py", "parser.py")


def cached_tree(text: str, name: str, shipped: bool) -> ast.File:
    """The tree of a file; parsed when it is not shipped or not stored yet.

    Args:
      text: the file's text.
      name: its name, for messages.
      shipped: whether it belongs to the package.

    Raises:
      RuleSyntaxError: it cannot be parsed.
    """
    if not shipped:
        return _parsed(text, name)
    path = _path(text, name)
    stored = _read(path)
    if stored is not None:
        return stored
    tree = _parsed(text, name)
    _write(path, tree)
    return tree


def _parsed(text: str, name: str) -> ast.File:
    from hlorewrite.rules.syntax.parser import parse
    return parse(text, name)


@cache
def _code_digest() -> bytes:
    here = Path(__file__).parent
    digest = hashlib.sha256(sys.version.encode())
    for source in _SOURCES:
        digest.update((here / source).read_bytes())
    return digest.digest()


def _path(text: str, name: str) -> Path:
    digest = hashlib.sha256(_code_digest() + text.encode()).hexdigest()[:16]
    folder = Path(__file__).parent.parent.parent / "patterns" / "__pycache__"
    return folder / f"{Path(name).name}.{digest}.tree"


class _Trees(pickle.Unpickler):
    """Reads syntax trees and nothing else, so that a stored file cannot run code."""

    def find_class(self, module: str, name: str) -> type:
        cls = getattr({ast.__name__: ast, node.__name__: node}.get(module), name, None)
        if not (isinstance(cls, type) and cls.__module__ == module):
            raise pickle.UnpicklingError(f"{module}.{name} is not part of a syntax tree")
        return cls


def _read(path: Path) -> ast.File | None:
    try:
        stored = _Trees(io.BytesIO(path.read_bytes())).load()
    except (OSError, pickle.PickleError, EOFError, AttributeError, ImportError, IndexError, ValueError, TypeError):
        return None
    return stored if isinstance(stored, ast.File) else None


def _write(path: Path, tree: ast.File) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        for old in path.parent.glob(f"{path.name.rsplit('.', 2)[0]}.*.tree"):
            old.unlink()
        write_file(path, pickle.dumps(tree, protocol=pickle.HIGHEST_PROTOCOL))
    except (OSError, OutputError):
        return
