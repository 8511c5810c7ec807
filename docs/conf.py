"""How Sphinx builds the site; ``tools/docs/make_site.py`` puts its source together and runs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools" / "docs"))

from docstrings import with_code_blocks
from lexers import HlopatLexer, MlirLexer

from hlorewrite import __version__

project = "hlorewrite"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist", "attrs_inline"]
myst_heading_anchors = 4
exclude_patterns: list[str] = []
suppress_warnings = ["ref.python"]  # two classes of one name in different packages: the nearer one is linked

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # a field may be both in Attributes and a documented member
add_module_names = False
toc_object_entries = False  # thousands of entries in every page's navigation otherwise

smartquotes_action = "D"  # dashes; quotes stay as they are typed
html_theme = "furo"
html_title = "hlorewrite"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
pygments_style = "default"  # contrast of 4.5 and more in all tokens; tests measure it on pages
pygments_dark_style = "monokai"
html_theme_options = {"navigation_with_keys": True, "light_css_variables": {"code-font-size": "76%"}}
html_static_path = ["site"]
html_css_files = ["wide.css"]  # what commands print is wide


def _docstring(_app: Any, _what: str, _name: str, _obj: object, _options: Any, lines: list[str]) -> None:
    lines[:] = with_code_blocks(lines)


def setup(app: Any) -> None:
    """Makes the colours of rule files and MLIR known, and code in docstrings."""
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon's
    app.add_lexer("hlopat", HlopatLexer)
    app.add_lexer("mlir", MlirLexer)
