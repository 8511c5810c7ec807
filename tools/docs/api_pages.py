"""The reference of the Python API: every public docstring, one page for each package."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import hlorewrite

PACKAGES = ("util", "ir", "ops", "analysis", "hlo", "cost", "rules", "passmanager", "patterns", "passes",
            "checks.reference", "jaxbridge", "pipelines")
"""Lowest layer first; what a new package needs is its name here."""

TOP = """API
===

What most programs need is in the package itself; everything below it is for those who write passes, rules or tools.

.. toctree::
   :maxdepth: 1

{pages}

hlorewrite
----------

{top}

Errors
------

.. automodule:: hlorewrite.errors
   :members:
"""


def api_pages() -> dict[str, str]:
    """Every page about the Python API, by name under ``reference/api/``; reStructuredText, as autodoc reads it."""
    pages = {f"{name}.rst": package_page(name) for name in PACKAGES}
    top = "\n\n".join(f".. auto{kind}:: {name}\n   :no-index:" for kind, name in top_names())
    pages["index.rst"] = TOP.format(pages="\n".join(f"   {name}" for name in PACKAGES), top=top)
    return pages


def top_names() -> list[tuple[str, str]]:
    """(``function`` or ``class``, where it is written) of what ``import hlorewrite`` offers.

    The package imports these names when they are first used; it lists them for type checkers.

    Example:
      >>> ("function", "hlorewrite.jaxbridge.decorator.optimize.optimize") in top_names()
      True
    """
    tree = ast.parse(inspect.getsource(hlorewrite))
    imported = [(node.module, alias.name) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names if alias.asname == alias.name]
    return [("class" if inspect.isclass(getattr(importlib.import_module(module), name)) else "function",
             f"{module}.{name}") for module, name in imported]


def package_page(name: str) -> str:
    """The page of one package: its own docstring, then each module's."""
    title = f"hlorewrite.{name}"
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", ""]
    for module, is_package in modules_of(title):
        # What a package re-exports is documented where it is written.
        members = [] if is_package else ["   :members:", "   :ignore-module-all:"]
        heading = module.removeprefix(f"{title}.")
        lines += [heading, "-" * len(heading), "", f".. automodule:: {module}", *members, ""]
    return "\n".join(lines)


def modules_of(package: str) -> list[tuple[str, bool]]:
    """The modules of a package and of the packages in it, sorted, and whether each is a package."""
    path = importlib.import_module(package).__path__
    return sorted((module.name, module.ispkg) for module in pkgutil.walk_packages(path, f"{package}."))
