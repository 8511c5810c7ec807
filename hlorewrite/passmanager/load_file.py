"""``hlorewrite.load`` and ``--load``: passes and natives of a Python file that the user names."""

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from hlorewrite.errors import UsageError
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.mlir_pass import MLIR_PASSES
from hlorewrite.passmanager.registry import built_in_passes, plugin_passes
from hlorewrite.rules.register import NATIVES
from hlorewrite.util.python_file import import_file
from hlorewrite.util.registered import LOADED

_RULES = ".hlopat"


@dataclass(frozen=True)
class LoadedFile:
    """What a file registered.

    Attributes:
      path: the file.
      passes: names of its passes, for pipelines.
      natives: names of its natives, for rule files.
    """

    path: str
    passes: tuple[str, ...]
    natives: tuple[str, ...]


def load(path: str | os.PathLike[str]) -> LoadedFile:
    """Runs a Python file, and registers its passes and natives by name.

    A pass is a class of the file that derives from ``hlorewrite.passes.api.Pass`` and has a ``name``; a native is a
    function under ``@hlorewrite.rules.native``. A file that changed since it was loaded is loaded again, and its new
    passes replace the old ones. The file's code runs, so load only files that you trust. Rule files, modules, plans and
    other data never load code.

    Args:
      path: the Python file.

    Returns:
      The names that it registered.

    Raises:
      InputError: the file is missing, is not Python, or raises; with its line.
      UsageError: it registers nothing, or a name that is already taken.

    Example:
      >>> import tempfile, pathlib
      >>> text = '''
      ... from dataclasses import dataclass
      ... from hlorewrite.passes.api import Pass
      ...
      ... @dataclass(frozen=True)
      ... class Nothing(Pass):
      ...     \"\"\"Changes nothing.\"\"\"
      ...     name = "nothing"
      ...     def run(self, module, ctx):
      ...         return False
      ... '''
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     file = pathlib.Path(folder, "nothing.py")
      ...     size = file.write_text(text)
      ...     load(file).passes
      ('nothing',)
    """
    shown = os.fspath(path)
    if shown.endswith(_RULES):
        raise UsageError("is a rule file, not Python code", location=shown, hint=f"apply it with --rules={shown}")
    if not shown.endswith(".py"):
        raise UsageError("is not a Python file", location=shown, hint="name a file that ends in .py")
    module = import_file(shown)
    passes = _passes_of(module)
    natives = tuple(sorted(name for name, function in NATIVES.functions.items()
                           if function.__module__ == module.__name__))
    if not passes and not natives:
        raise UsageError("registers no pass and no native", location=shown,
                         hint="derive a class from hlorewrite.passes.api.Pass, or put @native on a function")
    for name, cls in passes.items():
        _refuse_taken(name, cls, shown)
    for name in [name for name, cls in LOADED.items() if cls.__module__ == module.__name__]:
        del LOADED[name]
    LOADED.update(passes)
    return LoadedFile(shown, tuple(passes), natives)


def load_files(paths: Sequence[str]) -> None:
    """Loads files, in order."""
    for path in paths:
        load(path)


def _passes_of(module: ModuleType) -> dict[str, type[Pass]]:
    """The passes that a module defines, in the order of its text."""
    found: dict[str, type[Pass]] = {}
    for cls in vars(module).values():
        if not (isinstance(cls, type) and issubclass(cls, Pass) and cls.__module__ == module.__name__):
            continue
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name:
            if not inspect.isabstract(cls) and not cls.__name__.startswith("_"):
                raise UsageError(f"the pass {cls.__name__} has no name", location=_line(cls, str(module.__file__)),
                                 hint='write name: ClassVar[str] = "my-pass" in it')
            continue
        if name in found and found[name] is not cls:
            raise UsageError(f'two passes are named "{name}"', location=_line(cls, str(module.__file__)),
                             hint="rename one of them")
        found[name] = cls
    return found


def _refuse_taken(name: str, cls: type[Pass], shown: str) -> None:
    other = LOADED.get(name)
    plugins = plugin_passes()
    owner = ("a built-in pass" if name in built_in_passes() else "a pass of MLIR" if name in MLIR_PASSES
             else f"package {plugins[name][1]}" if name in plugins
             else inspect.getfile(other) if other is not None and other.__module__ != cls.__module__ else "")
    if owner:
        raise UsageError(f'the pass {cls.__name__} is called "{name}", a name that {owner} has already',
                         location=_line(cls, shown), hint="rename it")


def _line(cls: type, shown: str) -> str:
    try:
        return f"{shown}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):  # made by a call of type()
        return shown
