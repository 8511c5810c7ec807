"""Loads rule files: parse, import, check, compile; shipped files by name."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hlorewrite.errors import InputError, RuleCheckError, did_you_mean
from hlorewrite.rules.compile.checks import NativeFunction, bind
from hlorewrite.rules.compile.compiled import CompiledRule, compile_rule
from hlorewrite.rules.facts import CompiledFact, Facts, compile_fact
from hlorewrite.rules.register import NATIVES
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.cache import cached_tree
from hlorewrite.rules.syntax.expand import as_written, expanded
from hlorewrite.util.read import read_regular

_DEEPEST = 100
"""How deep imports may nest: enough for people, and far below Python's recursion limit."""
SHIPPED = Path(__file__).parent.parent / "patterns"


@dataclass(frozen=True)
class RuleSource:
    """The text of a rule file.

    Attributes:
      name: as messages show it: the path as given, or ``patterns/NAME`` for a shipped file.
      text: its content.
      folder: where its imports are looked for first; None for text that is in no file.
      shipped: whether it belongs to the package.
    """

    name: str
    text: str
    folder: str | None = None
    shipped: bool = False


@dataclass(frozen=True)
class RuleFile:
    """A loaded file.

    Attributes:
      source: its text.
      tree: its syntax tree, without short forms.
      rules: its rules, compiled.
      facts: its linearity facts, compiled.
    """

    source: RuleSource
    tree: ast.File = field(repr=False)
    rules: tuple[CompiledRule, ...]
    facts: tuple[CompiledFact, ...]


def shipped_names() -> tuple[str, ...]:
    """The shipped rule files.

    Example:
      >>> "natives.hlopat" in shipped_names()
      True
    """
    return tuple(sorted(path.name for path in SHIPPED.glob("*.hlopat")))


def read_source(name: str) -> RuleSource:
    """The text of a file: a path, or the name of a shipped file (with or without ``.hlopat``).

    Raises:
      InputError: there is no such file, or it is not text.
    """
    shipped = name if name.endswith(".hlopat") else f"{name}.hlopat"
    if not os.path.exists(name) and os.path.basename(name) == name and shipped in shipped_names():
        text = (SHIPPED / shipped).read_text(encoding="utf-8")
        return RuleSource(f"patterns/{shipped}", text, None, True)
    return read_file(name)


def read_file(name: str) -> RuleSource:
    """The text of the file at a path.

    Raises:
      InputError: there is no such file, or it is not text.
    """
    try:
        text = read_regular(name, what="rule file").decode("utf-8")
        return RuleSource(name, text.replace("\r\n", "\n"), os.path.dirname(name) or ".")
    except FileNotFoundError:
        hint = did_you_mean(os.path.basename(name), shipped_names())
        raise InputError("no such rule file", location=name, hint=hint) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file", location=name, hint="rule files are UTF-8 text") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({reason})", location=name, hint="check its permissions") from None


def load(name: str) -> RuleFile:
    """Loads a rule file.

    Args:
      name: a path, or the name of a shipped file such as ``collectives``.

    Returns:
      Its rules and facts, ready to run.

    Raises:
      InputError: it cannot be read.
      RuleSyntaxError: it cannot be parsed.
      RuleCheckError: it means nothing.

    Example:
      >>> [rule.name for rule in load("collectives").rules][0]
      'add-of-all-reduces'
    """
    return _loaded(read_source(name))


def load_text(text: str, name: str = "<rules>") -> RuleFile:
    """Loads rules from text; imports are looked for among the shipped files."""
    return _loaded(RuleSource(name, text))


def load_shipped() -> list[RuleFile]:
    """Every shipped file."""
    return [load(name) for name in shipped_names()]


def select(rules: Iterable[CompiledRule], only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[CompiledRule]:
    """The rules to run: those with given names or tags, without those to skip.

    Raises:
      InputError: a name is neither a rule nor a tag.
    """
    every = list(rules)
    known = {rule.name for rule in every} | {tag for rule in every for tag in rule.rule.tags}
    for name in (*only, *skip):
        if name not in known:
            raise InputError(f'there is no rule "{name}"', hint=did_you_mean(name, known, "hlorewrite rules list"))
    return [rule for rule in every if (not only or _named(rule, only)) and not _named(rule, skip)]


def _named(rule: CompiledRule, names: Sequence[str]) -> bool:
    return rule.name in names or any(tag in names for tag in rule.rule.tags)


# ---- imports


def natives_of(tree: ast.File, source: RuleSource) -> dict[str, ast.Native]:
    """The natives a file imports, directly and through others.

    Raises:
      RuleCheckError: files import each other in a cycle, or a file is outside the folder of the one that imports it.
      InputError: an imported file cannot be read.
    """
    return _Imports().of(tree, source, ())


@dataclass
class _Imports:
    """The natives of imported files, each file read once.

    Attributes:
      known: what each file declares and imports, by its real path.
    """

    known: dict[str, dict[str, ast.Native]] = field(default_factory=dict)

    def of(self, tree: ast.File, source: RuleSource, above: tuple[str, ...]) -> dict[str, ast.Native]:
        """The natives that one file imports; ``above`` are the files that import it."""
        natives: dict[str, ast.Native] = {}
        for item in tree.items:
            if isinstance(item, ast.Import):
                inner = _imported(item, source)
                key, chain = _identity(inner), (*above, _identity(source))
                if key in chain:
                    raise RuleCheckError(f"`{item.path}` imports itself, directly or through others",
                                         location=_place(item, source),
                                         hint="put the items that both need into a third file")
                if len(chain) > _DEEPEST:
                    raise RuleCheckError(f"imports are nested more than {_DEEPEST} deep", location=_place(item, source),
                                         hint="import fewer files from each other")
                if key not in self.known:
                    inner_tree = cached_tree(inner.text, inner.name, inner.shipped)
                    declared = self.of(inner_tree, inner, chain)
                    declared.update((n.name, n) for n in inner_tree.items if isinstance(n, ast.Native))
                    self.known[key] = declared
                natives.update(self.known[key])
        return natives


def _imported(item: ast.Import, source: RuleSource) -> RuleSource:
    """The file an import names: in the folder of the importing file or below it, else a shipped one."""
    path = item.path
    beside = os.path.normpath(os.path.join(source.folder, path)) if source.folder is not None else None
    folder = os.path.realpath(source.folder or ".")
    if os.path.isabs(path) or ".." in path.replace(os.sep, "/").split("/") or (
            beside is not None and os.path.commonpath([folder, os.path.realpath(beside)]) != folder):
        raise RuleCheckError(f"`{path}` is outside the folder of {source.name}", location=_place(item, source),
                             hint="a rule file may import files in or below its folder, and shipped ones")
    if beside is not None and os.path.lexists(beside):
        if os.path.exists(beside) and not os.path.isfile(beside) and not os.path.isdir(beside):
            raise InputError(f"`{path}` is not a regular file", location=_place(item, source),
                             hint="import a rule file")
        return read_file(beside)
    if path in shipped_names():
        return read_source(path)
    raise InputError(f"`{path}` is neither next to {source.name} nor shipped", location=_place(item, source),
                     hint=did_you_mean(path, shipped_names()))


def _identity(source: RuleSource) -> str:
    return source.name if source.folder is None else os.path.realpath(source.name)


def _place(item: ast.Import, source: RuleSource) -> str:
    return f"{source.name}:{item.span.line}:{item.span.column}"


def checked(source: RuleSource) -> tuple[ast.File, dict[str, ast.Native]]:
    """The tree of a file, without short forms, and the natives it may call, after all checks.

    Raises:
      RuleSyntaxError: it cannot be parsed.
      RuleCheckError: it means nothing.
    """
    tree = cached_tree(source.text, source.name, source.shipped)
    natives = natives_of(tree, source)
    if not source.shipped:  # shipped files are checked by the tests
        from hlorewrite.rules.checks.checker import check, raise_first
        raise_first(check(tree, natives), source.text, source.name)
    natives.update((n.name, n) for n in tree.items if isinstance(n, ast.Native))
    return expanded(tree), natives


def written(source: RuleSource) -> dict[str, ast.Rule | ast.Linear]:
    """The rules and facts of a file by name, in the form the file has.

    Raises:
      RuleSyntaxError: it cannot be parsed.
    """
    return as_written(cached_tree(source.text, source.name, source.shipped))


def _loaded(source: RuleSource) -> RuleFile:
    if not source.shipped:
        return _compiled(source, *checked(source))
    return _compiled_shipped(source, tuple(map(NATIVES.find, _checked_shipped(source)[1])))


@cache
def _checked_shipped(source: RuleSource) -> tuple[ast.File, dict[str, ast.Native]]:
    return checked(source)


@cache
def _compiled_shipped(source: RuleSource, _functions: tuple[Callable[..., object] | None, ...]) -> RuleFile:
    """A shipped file, compiled once for the functions registered for its natives."""
    return _compiled(source, *_checked_shipped(source))


def _compiled(source: RuleSource, tree: ast.File, natives: dict[str, ast.Native]) -> RuleFile:
    functions: dict[str, NativeFunction] = bind(natives, source.name)
    rules = tuple(compile_rule(i, functions, source.name) for i in tree.items if isinstance(i, ast.Rule))
    facts = tuple(compile_fact(i, functions, source.name) for i in tree.items if isinstance(i, ast.Linear))
    return RuleFile(source, tree, rules, facts)


@cache
def shipped_facts() -> Facts:
    """The facts of ``patterns/linearity.hlopat``, loaded once.

    Example:
      >>> [fact.name for fact in shipped_facts().for_op("stablehlo.negate")]
      ['negate']
    """
    return Facts(load("linearity").facts)
