"""The reference of the Python API: every public docstring, one page for each package."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

PACKAGES = ("ir", "spmd", "cost", "plan", "rules", "pipeline", "patterns", "passes", "oracle", "jaxbridge")
"""Lowest layer first; what a new package needs is its name here."""

TOP = """API
===

What most programs need is in the package itself; everything below it is for those who write passes, rules or tools.

.. toctree::
   :maxdepth: 1

{pages}

hlorewrite
----------

.. autofunction:: hlorewrite.jaxbridge.optimize.optimize
   :no-index:

.. autofunction:: hlorewrite.jaxbridge.shield.no_rewrite
   :no-index:

.. autofunction:: hlorewrite.jaxbridge.reshard.reshard
   :no-index:

Errors
------

.. automodule:: hlorewrite.errors
   :members:
"""


def api_pages() -> dict[str, str]:
    """Every page about the Python API, by name under ``reference/api/``; reStructuredText, as autodoc reads it."""
    found = [name for name in PACKAGES if importlib.util.find_spec(f"hlorewrite.{name}")]
    pages = {f"{name}.rst": package_page(name) for name in found}
    pages["index.rst"] = TOP.format(pages="\n".join(f"   {name}" for name in found))
    return pages


def package_page(name: str) -> str:
    """The page of one package: its own docstring, then each module's."""
    title = f"hlorewrite.{name}"
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", ""]
    for module, is_package in modules_of(title):
        # What a package re-exports is documented where it is written.
        members = [] if is_package else ["   :members:", "   :ignore-module-all:"]
        lines += [module, "-" * len(module), "", f".. automodule:: {module}", *members, ""]
    return "\n".join(lines)


def modules_of(package: str) -> list[tuple[str, bool]]:
    """The modules of a package and of the packages in it, sorted, and whether each is a package."""
    path = importlib.import_module(package).__path__
    return sorted((found.name, found.ispkg) for found in pkgutil.walk_packages(path, f"{package}."))
