"""Checks how the files of the package import each other, and prints the diagram of its layers.

Usage: ``python tools/import_layers.py`` prints each violation and exits 1 when there is one; ``--diagram`` prints the
layers, their folders and what they hold, as ARCHITECTURE.md shows them.

* Imports run downwards: a layer imports itself and those below it. Imports inside functions and under
  ``TYPE_CHECKING`` count.
* No circle between files. Importing a file also imports the packages it is in, unless the importer is in them too.
* No circle between the rooms of a layer, which are its folders; imports inside functions and under ``TYPE_CHECKING``
  count here too.
* ``jax`` is imported in the layers of ``JAX`` only.
* No import is written as a string. A table that looks modules up by name is listed in ``REGISTRIES``; the names in it
  are checked for direction like imports. ``importlib.import_module`` is called in ``LOOKUPS`` only.
* No two classes have one name, private ones and those of ``SCRIPTS`` included, and no folder contains more than
  ``MOST_FILES`` files.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # what tools share, when a test imports this file

from syntax_nodes import all_nodes

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "hlorewrite"
_PIPELINES = ("door", "cli", "decorator", "runtime", "layout_search", "adapter", "passes", "simulate", "actions",
              "reshard", "schedules", "mpmd")
_CHECKS = ("prove", "translation_validation", "value_graph", "reference")
LAYERS = ("testing", *(f"pipelines.{room}" for room in _PIPELINES), "cli", "viewer", "jaxbridge",
          *(f"checks.{check}" for check in _CHECKS), "tune", "passes", "patterns", "lockfile", "page", "passmanager",
          "rules", "audit", "timeline", "cost", "hlo", "analysis", "ops", "ir", "util", "errors", "version")
"""Highest first; ``hlorewrite/__init__.py`` stands above all. The rooms of ``pipelines`` stand above the core, which
runs without them."""
JAX = ("jaxbridge", "pipelines.decorator", "pipelines.runtime")
"""Layers that may import jax."""
REGISTRIES = {
    "cli/subcommands.py": "a subcommand's module is imported when it is asked for",
    "__init__.py": "what users import is imported when it is first used",
    "pipelines/door.py": "passes, subcommands and names of programs of several meshes, imported when asked for",
    "passes/table.py": "a pass is imported when it is asked for",
    "jaxbridge/passes.py": "the same for passes that need jax",
    "patterns/table.py": "natives are imported when one is asked for",
}
LOOKUPS = {
    "cli/subcommands.py": "its table",
    "__init__.py": "its table",
    "ir/__init__.py": "its table of the names of the room",
    "passmanager/registry.py": "the registered tables",
    "passmanager/programs.py": "the registered reader of programs of several meshes",
    "rules/register.py": "the registered table, and the modules a user names with --natives",
    "rules/dialects.py": "the op classes of a dialect, from jaxlib",
    "jaxbridge/xla/private.py": "the CUDA plug-in of jax",
}
MOST_FILES = 20
SCRIPTS = ("tools", "bench", "examples", "tests")
"""Folders next to the package; their class names and the number of their files are checked too."""


@dataclass(frozen=True)
class ImportedModule:
    """One module that a file names.

    Attributes:
      line: where.
      module: the dotted name.
      imported: whether the statement runs it; False for names in a registry, which only count for direction.
    """

    line: int
    module: str
    imported: bool = True


@dataclass
class SourceFile:
    """One file of the package.

    Attributes:
      path: below the package's folder, with ``/``.
      name: its dotted name.
      tree: what ``ast`` reads.
      imports: modules of the package that it names.
    """

    path: str
    name: str
    tree: ast.Module
    imports: list[ImportedModule] = field(default_factory=list)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, which takes longer to walk than all that is looked for in it."""
        return all_nodes(self.tree)

    @cached_property
    def statements(self) -> list[tuple[int, str, str]]:
        """(line, module, name imported from it or nothing) of each import anywhere in the file."""
        package = self.name.split(".") if self.path.endswith("__init__.py") else self.name.split(".")[:-1]
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package[:len(package) - node.level + 1] if node.level else []
                module = ".".join([*base, *([node.module] if node.module else [])])
                found += [(node.lineno, module, alias.name) for alias in node.names]
        return found

    def layer(self, layers: Sequence[str]) -> str:
        """Its layer; empty for files of the package itself, and its folder where that is in no layer."""
        return layer_of(self.name, layers) if self.path not in ("__init__.py", "__main__.py") else ""

    @property
    def room(self) -> str:
        """The folder of its layer that it is in, ``layer/folder``; empty for files of the layer itself."""
        return "/".join(self.path.split("/")[:2]) if self.path.count("/") > 1 else ""


def layer_of(module: str, layers: Sequence[str]) -> str:
    """The layer of a dotted name: the longest that it begins with, else the name of its folder.

    Example:
      >>> layer_of("hlorewrite.pipelines.mpmd.types", ("pipelines.mpmd", "ir"))
      'pipelines.mpmd'
    """
    parts = module.split(".")[1:]
    found = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in found if name in layers), parts[0] if parts else "")


def read_package(folder: Path, with_text: str = "") -> dict[str, SourceFile]:
    """Every file of a package by dotted name, or those in which a regular expression matches; links are followed."""
    sources = {}
    for base, folders, files in os.walk(folder, followlinks=True):
        folders.sort()
        for file in sorted(files):
            if file.endswith(".py"):
                path = (Path(base) / file).relative_to(folder).as_posix()
                parts = [folder.name, *path.removesuffix(".py").split("/")]
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                text = (folder / path).read_text(encoding="utf-8")
                if re.search(with_text, text):
                    sources[name] = SourceFile(path, name, ast.parse(text, path))
    return sources


def check(folder: Path, layers: tuple[str, ...] = LAYERS, registries: Mapping[str, str] | None = None,
          lookups: Mapping[str, str] | None = None, scripts: Sequence[Path] = ()) -> list[str]:
    """One sentence for each violation in a package.

    Args:
      folder: the package.
      layers: names of its folders and files, highest first.
      registries: files whose strings may name modules.
      lookups: files that may call ``importlib.import_module``.
      scripts: folders of programs whose classes are compared with the package's, and whose folders are counted.
    """
    registries = REGISTRIES if registries is None else registries
    lookups = LOOKUPS if lookups is None else lookups
    sources = read_package(folder)
    sentences = []
    for source in sources.values():
        source.imports = list(_imports(source, sources, registries))
        sentences += _directions(source, layers)
        sentences += _strings(source, sources, registries, lookups)
    edges = {name: sorted({each.module for each in source.imports if each.imported} - {name})
             for name, source in sources.items()}
    sentences += [f"{folder.name} imports itself in a cycle: {' -> '.join(circle)}" for circle in _circles(edges)]
    sentences += _room_circles(sources)
    for name, paths in class_doubles(folder, *scripts, read={folder: sources}).items():
        sentences.append(f"class {name} stands in {' and '.join(paths)}; give one of them a name of its own")
    return [*sentences, *_crowded(folder, *scripts)]


# ---- what a file names


def _imports(source: SourceFile, sources: Mapping[str, SourceFile],
             registries: Mapping[str, str]) -> Iterator[ImportedModule]:
    for line, module, name in source.statements:
        target = f"{module}.{name}" if f"{module}.{name}" in sources else module
        parts = target.split(".")
        for end in range(2, len(parts) + 1):
            outer = ".".join(parts[:end])
            inside = outer != target and f"{source.name}.".startswith(f"{outer}.")
            if outer in sources and not inside:
                yield ImportedModule(line, outer)
    if source.path in registries:
        yield from (ImportedModule(line, module, imported=False) for line, module in _named(source, sources))


def _named(source: SourceFile, sources: Mapping[str, SourceFile]) -> Iterator[tuple[int, str]]:
    """Modules below a layer that strings of a file name, docstrings aside."""
    said = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            parts = node.value.partition(":")[0].split(".")
            for end in range(len(parts), 2, -1):
                if ".".join(parts[:end]) in sources:
                    yield node.lineno, ".".join(parts[:end])
                    break


# ---- the rules


def _directions(source: SourceFile, layers: tuple[str, ...]) -> Iterator[str]:
    layer = source.layer(layers)
    if layer and layer not in layers:
        if source.path.endswith("__init__.py") and any(name.startswith(f"{layer}.") for name in layers):
            return  # the folder of several layers
        yield f"{source.path}: {layer} is in no layer; add it to LAYERS"
        return
    allowed = set(layers[layers.index(layer):]) if layer else set(layers)
    reported = set()
    for each in source.imports:
        target = layer_of(each.module, layers)
        if target in layers and target not in allowed and (each.line, target) not in reported:
            reported.add((each.line, target))
            yield f"{source.path}:{each.line}: {layer} imports {target}, which is above it"
    for line, module, _ in source.statements:
        if module.split(".")[0] == "jax" and layer not in JAX:
            yield f"{source.path}:{line}: {layer or PACKAGE} imports jax; only {', '.join(JAX)} may"
        if layer and module == source.name.split(".")[0] and not _names_a_layer(source, line, layers):
            yield f"{source.path}:{line}: {layer} imports the package itself, which is above it"


def _names_a_layer(source: SourceFile, line: int, layers: tuple[str, ...]) -> bool:
    """Whether an import from the package itself takes layers only, as in ``from hlorewrite import version``."""
    return all(name in layers for at, _, name in source.statements if at == line)


def _strings(source: SourceFile, sources: Mapping[str, SourceFile], registries: Mapping[str, str],
             lookups: Mapping[str, str]
             ) -> Iterator[str]:
    if source.path not in registries:
        for line, module in _named(source, sources):
            yield f"{source.path}:{line}: the string names the module {module}; import it, or use REGISTRIES"
    if source.path in lookups:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield f"{source.path}:{node.lineno}: {called} hides an import; write it, or list the file in LOOKUPS"


def _room_circles(sources: Mapping[str, SourceFile]) -> Iterator[str]:
    """Circles between the rooms of a layer, each with its imports."""
    edges: dict[str, dict[str, str]] = defaultdict(dict)
    for source in sources.values():
        for each in source.imports:
            here, there = source.room, sources[each.module].room
            if here and there and here != there and here.split("/")[0] == there.split("/")[0]:
                edges[here].setdefault(there, f"{source.path}:{each.line}")
                edges.setdefault(there, {})
    for circle in _circles({room: sorted(others) for room, others in edges.items()}):
        rooms = ", ".join(room.split("/")[1] for room in circle)
        places = [place for room in circle for other, place in edges[room].items() if other in circle]
        yield f"rooms import each other ({circle[0].split('/')[0]}: {rooms}): {', '.join(places)}"


def _circles(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Groups of nodes that lead to each other, each sorted (Tarjan, SIAM J. Comput. 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in edges[name]:
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                circles.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in edges:
        if name not in number:
            visit(name)
    return circles


def class_doubles(*folders: Path, read: Mapping[Path, Mapping[str, SourceFile]] | None = None) -> dict[str, list[str]]:
    """Class names that stand more than once in some folders, private ones included, with their files.

    Args:
      folders: the folders.
      read: the files of some of them, where they are read already.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        for source in ((read or {}).get(folder) or read_package(folder, r"\bclass\b")).values():
            for name in _classes(source.tree.body):
                places[name].append(f"{folder.name}/{source.path}")
    return {name: sorted(paths) for name, paths in sorted(places.items()) if len(paths) > 1}


def _classes(statements: Sequence[ast.AST]) -> Iterator[str]:
    """Names of the classes among statements and the statements within, which are few of the nodes of a file."""
    for each in statements:
        if isinstance(each, ast.ClassDef):
            yield each.name
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(each, part, None)
            if isinstance(inner, list):
                yield from _classes(inner)


def _crowded(*folders: Path) -> Iterator[str]:
    for top in folders:
        for base, inner, files in os.walk(top, followlinks=True):
            inner.sort()
            count = sum(file.endswith(".py") for file in files)
            if count > MOST_FILES:
                name = Path(base).relative_to(top.parent)
                yield f"{name} holds {count} files, more than {MOST_FILES}; divide it by subject"


# ---- the diagram


def diagram(folder: Path, layers: tuple[str, ...] = LAYERS) -> str:
    """The layers, highest first: each with its own folders, not those within, and the first line of its docstring."""
    sources = read_package(folder)
    rows = []
    for layer in layers:
        name, outer = f"{folder.name}.{layer}", layer.rpartition(".")[0]
        if outer:
            if f"{outer}/" not in (row[0] for row in rows):
                rows.append((f"{outer}/", _first_line(sources[f"{folder.name}.{outer}"])))
            shown = layer.rpartition(".")[2] + ("/" if sources[name].path.endswith("__init__.py") else ".py")
            rows.append((f"  {shown}", _first_line(sources[name])))
            continue
        inner = [each.name.removeprefix(f"{name}.") for each in sources.values()
                 if each.path.endswith("__init__.py") and each.path.startswith(f"{layer}/") and each.name != name]
        rows.append((f"{layer}/" if (folder / layer).is_dir() else f"{layer}.py", _first_line(sources[name])))
        rows += [(f"  {each}/", _first_line(sources[f"{name}.{each}"])) for each in sorted(inner) if "." not in each]
    wide = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:<{wide}}  {held}" for name, held in rows)


def _first_line(source: SourceFile) -> str:
    return (ast.get_docstring(source.tree) or "").partition("\n")[0].replace("``", "")


def main(words: list[str]) -> int:
    """Runs the checks, or prints what was asked for."""
    folder = ROOT / PACKAGE
    if words == ["--diagram"]:
        print(diagram(folder))
        return 0
    violations = check(folder, scripts=[ROOT / name for name in SCRIPTS])
    print("\n".join(dict.fromkeys(violations)) or "imports run downwards, without circles")
    return 1 if violations else 0


if __name__ == "__main__":
    gc.disable()  # the trees live to the end
    sys.exit(main(sys.argv[1:]))
