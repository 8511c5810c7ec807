"""The registry of passes: built-in ones by name, MLIR's own, and those of plug-ins.

A plug-in is a package with an entry point of group ``hlorewrite.passes``::

    [project.entry-points."hlorewrite.passes"]
    my-pass = "my_package.my_pass:MyPass"
"""

import importlib
import importlib.util
import inspect
from dataclasses import dataclass

from hlorewrite.errors import UsageError, closest
from hlorewrite.ir.location import shown_path
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.mlir_pass import MLIR_PASSES, make_mlir_pass
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.options import parse_options
from hlorewrite.util.registered import LOADED, PASSES

ENTRY_POINT_GROUP = "hlorewrite.passes"


@dataclass(frozen=True)
class PassInfo:
    """A pass as ``--list-passes`` shows it.

    Attributes:
      name: its name.
      help: one line.
      origin: ``built-in``, ``mlir``, a loaded file, or the plug-in's package.
    """

    name: str
    help: str
    origin: str


def built_in_passes() -> dict[str, str]:
    """Name to ``module:class`` of the shipped passes of this installation."""
    return {name: target for name, target in PASSES.items() if _is_installed(target)}


def _is_installed(target: str) -> bool:
    return importlib.util.find_spec(target.partition(":")[0]) is not None


def find_pass(name: str) -> type[Pass]:
    """The class of a built-in pass, one of a loaded file, or a plug-in's.

    Args:
      name: the pass's name.

    Returns:
      The class.

    Raises:
      UsageError: no such pass, or a plug-in's pass has a name that is taken.

    Example:
      >>> find_pass("inline").__name__
      'Inline'
    """
    target = PASSES.get(name)
    if target is not None and _is_installed(target):
        module, _, cls = target.partition(":")
        return getattr(importlib.import_module(module), cls)
    if name in LOADED:
        return LOADED[name]
    plugins = plugin_passes()
    if name in plugins:
        return plugins[name][0]
    raise UsageError(f'unknown pass "{name}"', hint=_hint(name, plugins))


def _hint(name: str, plugins: dict[str, tuple[type[Pass], str]]) -> str:
    known = [*built_in_passes(), *PIPELINES, *LOADED, *plugins, *MLIR_PASSES]
    return closest(name, known) or "see `hlorewrite opt --list-passes`"


def make_pass(name: str, options: str = "", anchors: tuple[str, ...] = ()) -> Pass:
    """A pass with its options.

    Args:
      name: the name of a built-in, a plug-in's or an MLIR pass.
      options: what is between its braces.
      anchors: the ops it is nested in, outermost first.

    Returns:
      The pass.

    Raises:
      UsageError: the name or an option is unknown, or it is nested where it cannot run.
    """
    if name in MLIR_PASSES:
        return make_mlir_pass(name, options, anchors)
    cls = find_pass(name)
    if anchors and anchors[-1] == "func.func":
        raise UsageError(f'pass "{name}" works on a whole module and cannot be nested in func.func(...)',
                         hint="write it outside the parentheses")
    return cls.from_options(parse_options(options, f'pass "{name}"'))


def plugin_passes() -> dict[str, tuple[type[Pass], str]]:
    """Passes of plug-ins by name, each with the package it comes from.

    Raises:
      UsageError: a plug-in cannot be loaded, is not a pass, or takes a name that is in use.
    """
    from importlib.metadata import entry_points
    passes: dict[str, tuple[type[Pass], str]] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value)):
        origin = point.dist.name if point.dist else point.value
        taken = ("a built-in pass" if point.name in PASSES else "a pass of MLIR" if point.name in MLIR_PASSES
                 else f"package {passes[point.name][1]}" if point.name in passes else "")
        if taken:
            raise UsageError(f'package {origin} offers a pass "{point.name}", a name {taken} already has',
                             hint="uninstall one of them, or rename the plug-in's pass")
        try:
            cls = point.load()
        except Exception as error:  # whatever a stranger's module raises while it is imported
            raise UsageError(f'pass "{point.name}" of package {origin} cannot be loaded ({error})',
                             hint="repair or uninstall the package") from error
        if not (isinstance(cls, type) and issubclass(cls, Pass)):
            raise UsageError(f'"{point.value}" of package {origin} is not a hlorewrite.passmanager.base.Pass',
                             hint="repair or uninstall the package")
        passes[point.name] = (cls, origin)
    return passes


def help_line(cls: type[Pass]) -> str:
    """The first line of a pass's docstring."""
    return inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]


def all_passes() -> list[PassInfo]:
    """Every pass that can be named in a pipeline, built-in ones first."""
    built_in = [PassInfo(name, help_line(find_pass(name)), "built-in") for name in sorted(built_in_passes())]
    plugins = [PassInfo(name, help_line(cls), origin) for name, (cls, origin) in sorted(plugin_passes().items())]
    loaded = [PassInfo(name, help_line(cls), shown_path(inspect.getfile(cls))) for name, cls in sorted(LOADED.items())]
    mlir = [PassInfo(entry.name, entry.help, "mlir") for entry in sorted(MLIR_PASSES.values(), key=lambda e: e.name)]
    return built_in + loaded + plugins + mlir
