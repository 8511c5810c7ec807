"""Notebooks as text: what their cells print, and the pages of the site that show them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markup import fence

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs" / "notebooks"


class WrongNotebook(Exception):
    """A notebook that is damaged or was not run."""


@dataclass(frozen=True)
class NotebookCell:
    """A cell of a notebook.

    Attributes:
      kind: ``markdown`` or ``code``.
      source: its text.
      printed: what it prints, standard output before standard error.
      picture: the SVG it shows; empty when it shows none.
      tags: its tags, such as ``times-vary``.
    """

    kind: str
    source: str
    printed: str
    picture: str
    tags: frozenset[str]

    def shown_source(self) -> tuple[str, str]:
        """Language and text of a code cell, without the line that chooses the language.

        Example:
          >>> NotebookCell("code", "%%bash\\nls", "", "", frozenset()).shown_source()
          ('bash', 'ls')
        """
        first, _, rest = self.source.partition("\n")
        return ("bash", rest) if first == "%%bash" else ("python", self.source)


def notebooks() -> list[Path]:
    """Every notebook, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def cells_of(notebook: dict[str, Any]) -> list[NotebookCell]:
    """The cells of a notebook.

    Args:
      notebook: its JSON document.
    """
    return [_cell(cell) for cell in notebook["cells"]]


def _cell(cell: dict[str, Any]) -> NotebookCell:
    outputs = cell.get("outputs", [])
    printed = "".join(_joined(one["text"]) for name in ("stdout", "stderr") for one in outputs
                      if one["output_type"] == "stream" and one["name"] == name)
    data = [one["data"] for one in outputs if "data" in one]
    pictures = [_joined(one["image/svg+xml"]) for one in data if "image/svg+xml" in one]
    results = "".join(_joined(one["text/plain"]) + "\n" for one in data if "image/svg+xml" not in one)
    return NotebookCell(cell["cell_type"], _joined(cell["source"]), printed + results, "".join(pictures),
                frozenset(cell.get("metadata", {}).get("tags", ())))


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def notebook_page(path: Path) -> tuple[str, dict[str, str]]:
    """The page of a notebook, and its pictures by file name.

    Args:
      path: the notebook.

    Raises:
      WrongNotebook: it holds no JSON of a notebook, or a code cell without a number: it was not run.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        cells = cells_of(document)
        unrun = [cell for cell in document["cells"] if cell["cell_type"] == "code" and not cell["execution_count"]]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongNotebook(f"{path.name}: not a notebook: {error}; make it with Jupyter") from error
    if unrun:
        raise WrongNotebook(f"{path.name}: cells were not run: python tools/docs/run_notebook.py --update {path.name}")
    parts, pictures = [], {}
    for number, cell in enumerate(cells):
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        language, text = cell.shown_source()
        parts.append(fence(language, text))
        if cell.printed:
            parts.append(fence("text", cell.printed.rstrip()))
        if cell.picture:
            name = f"{path.stem}-{number}.svg"
            pictures[name] = cell.picture
            parts.append(f"![What the cell above shows]({name})")
    return "\n\n".join([*parts, f"This page is the notebook `docs/notebooks/{path.name}` of the repository."]), pictures
