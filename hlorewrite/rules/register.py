"""Natives by name: the Python function behind each predicate or analysis that a rule file declares.

A rule file is data: it declares signatures and cannot name a function. Functions are registered by Python code that the
user loads: an import, ``--natives MODULE`` on the command line, or a package with an entry point of group
``hlorewrite.natives``::

    [project.entry-points."hlorewrite.natives"]
    divisible = "my_package.natives:divisible"
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.util.python_file import import_file

ENTRY_POINT_GROUP = "hlorewrite.natives"

_Function = TypeVar("_Function", bound=Callable[..., Any])
PartnerKey = Callable[[Any, Any], Any]
"""Maps the context and an op to a key that is equal for both ops of a pair; None equals nothing."""


@dataclass
class Registry:
    """The functions that rule files may call.

    Attributes:
      functions: the functions, by the name that rule files use.
      installed: whether entry points of installed packages count.
      keys: the key of each predicate on two ops that holds only where the key is equal for both.
      availability: predicates on two ops that hold only where the first one's results can be read at the second.
      shipped: the modules with the natives of the shipped rules; imported when a native is first asked for.
    """

    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    installed: bool = True
    shipped: tuple[str, ...] = ()
    keys: dict[Callable[..., Any], PartnerKey] = field(default_factory=dict)
    availability: set[Callable[..., Any]] = field(default_factory=set)

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """Registers a function; the same one may be registered again.

        Raises:
          UsageError: the name is not an identifier, or another function has it.
        """
        if not name.isidentifier():
            raise UsageError(f'"{name}" is not a name for a native', hint="use letters, digits and _")
        if function.__module__ not in self.shipped:
            self._import_shipped()
        old = self.functions.get(name)
        if old is not None and _place(old) != _place(function):
            raise UsageError(f'native "{name}" of {function.__module__} is registered by {old.__module__} already',
                             hint='give it another name: @native("NAME")')
        self.functions[name] = function

    def find(self, name: str) -> Callable[..., Any] | None:
        """The function registered under a name: shipped, registered by an import, or of an installed package.

        Raises:
          UsageError: the entry point of an installed package cannot be loaded.
        """
        self._import_shipped()
        if name not in self.functions and self.installed:
            self._load_entry_point(name)
        return self.functions.get(name)

    @contextmanager
    def without_installed(self, leave_out: bool = True) -> Iterator[None]:
        """Leaves out the natives of installed packages, for input that chooses its rule files itself."""
        before = self.installed
        self.installed = before and not leave_out
        try:
            yield
        finally:
            self.installed = before

    def _import_shipped(self) -> None:
        for module in self.shipped:
            if module not in sys.modules:
                importlib.import_module(module)

    def _load_entry_point(self, name: str) -> None:
        from importlib.metadata import entry_points
        for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
            origin = point.dist.name if point.dist else point.value
            try:
                function = point.load()
            except Exception as error:  # whatever a package raises while it is imported
                raise UsageError(f'native "{name}" of package {origin} cannot be loaded ({_first_line(error)})',
                                 hint="repair or uninstall the package") from error
            if not callable(function):
                raise UsageError(f'native "{name}" of package {origin} is not a function',
                                 hint="repair or uninstall the package")
            self.add(name, function)


NATIVES = Registry()
"""One registry per process: natives are registered while modules are imported."""


@overload
def native(name: str, /) -> Callable[[_Function], _Function]: ...
@overload
def native(name: _Function, /) -> _Function: ...


def native(name: Any, /) -> Any:
    """Registers a predicate or analysis for rule files, under the function's name or another one.

    Args:
      name: the function, or the name in rule files when used as ``@native("NAME")``.

    Returns:
      The function as it is, or a decorator.

    Raises:
      UsageError: another function has this name.

    Example:
      >>> @native
      ... def always(context, op):
      ...     return True
      >>> NATIVES.find("always") is always
      True
    """
    if isinstance(name, str):
        return lambda function: _registered(name, function)
    return _registered(name.__name__, name)


def only_if_equal(key: PartnerKey) -> Callable[[_Function], _Function]:
    """Declares that a predicate on two ops holds only if a key is equal for both, so that partners can be indexed.

    Args:
      key: maps the context and an op to the key; depends only on the op's name, attributes and regions.

    Returns:
      A decorator for functions under ``native``.
    """
    def declare(function: _Function) -> _Function:
        NATIVES.keys[function] = key
        return function
    return declare


def only_if_available(function: _Function) -> _Function:
    """Declares that a predicate on two ops holds only if the results of the first can be read at the second."""
    NATIVES.availability.add(function)
    return function


def load_natives(modules: Sequence[str]) -> None:
    """Imports modules that register natives.

    Args:
      modules: module names, or paths of Python files (``natives.py``).

    Raises:
      InputError: a file is missing, is not Python, or raises.
      UsageError: a module cannot be imported, or registers a name that is taken.
    """
    for module in modules:
        try:
            _import(module)
        except HlorewriteError:
            raise
        except (Exception, SystemExit) as error:  # whatever a user's module raises while it is imported
            raise UsageError(f"--natives={module}: the module cannot be imported ({_first_line(error)})",
                             hint="install it, or name its file: --natives=FOLDER/FILE.py") from error


def _import(module: str) -> None:
    if not module.endswith(".py"):
        importlib.import_module(module)
        return
    import_file(module)


def _registered(name: str, function: _Function) -> _Function:
    NATIVES.add(name, function)
    return function


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, getattr(function, "__qualname__", "")


def _first_line(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "it ends the process"
    words = str(error).strip().splitlines()
    return words[0] if words else type(error).__name__
