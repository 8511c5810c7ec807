"""Runs notebooks and compares what they print: ``python tools/docs/run_notebook.py [--update] [NOTEBOOK...]``.

A notebook is run in a copy of the project, as pages are (``run_page.py``). Cells with the tag ``times-vary`` are
compared without their durations, those with ``versions-vary`` only with the oldest jaxlib. ``--update`` writes the
outputs into the notebook. Exit code 0 when all print what they hold, 1 when one does not, 2 for a file that is not a
notebook.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from notebooks import NotebookCell, cells_of, notebooks
from run_page import NOISE, OLDEST_JAXLIB, copy_project, environment, matches

_LIMIT_S = 300
"""Seconds that one cell may take."""
_COLOR = re.compile(r"\x1b\[[\d;]*m")


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of a run in a fresh copy of the project.

    Args:
      notebook: its JSON document.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient
    document = nbformat.reads(json.dumps(notebook), as_version=4)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        copy_project(folder)
        client = NotebookClient(document, timeout=_LIMIT_S, kernel_name="python3", record_timing=False,
                                extra_arguments=["--log-level=ERROR"],
                                resources={"metadata": {"path": str(folder / "docs" / "notebooks")}})
        client.execute(env=dict(environment(), PYTHONPATH=str(folder), IPYTHONDIR=str(folder / ".ipython")))
        return json.loads(_without_noise(nbformat.writes(document), folder))


def _without_noise(text: str, folder: Path) -> str:
    """The JSON text without the folder of the run, and its outputs without the log lines of XLA."""
    document = json.loads(text.replace(f"{folder}/", ""))
    for cell in document["cells"]:
        if "outputs" in cell:
            cell["outputs"] = _streams(cell["outputs"]) + [one for one in cell["outputs"] if "text" not in one]
    return json.dumps(document, ensure_ascii=False)


def _streams(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One output for all that was printed to each stream: the kernel sends it in parts that differ from run to run."""
    texts = {name: NOISE.sub("", "".join("".join(one["text"]) for one in outputs if one.get("name") == name))
             for name in ("stdout", "stderr")}
    return [{"name": name, "output_type": "stream", "text": text.splitlines(keepends=True)}
            for name, text in texts.items() if text]


def differences(stored: dict[str, Any], run: dict[str, Any], name: str) -> list[str]:
    """A sentence for each cell that printed or drew something else than the notebook holds.

    Args:
      stored: the notebook as it is kept.
      run: the same notebook after a run.
      name: what the sentences call it.
    """
    pairs = zip(cells_of(stored), cells_of(run), strict=True)
    return [f"{name}, cell {number}: {what}:\n{new.printed}" for number, (old, new) in enumerate(pairs, 1)
            if (what := _difference(old, new))]


def _difference(old: NotebookCell, new: NotebookCell) -> str:
    if "versions-vary" in old.tags and not version("jaxlib").startswith(OLDEST_JAXLIB):
        return ""
    if old.printed != new.printed and not matches(old.printed, new.printed, "times-vary" in old.tags):
        return "printed something else"
    return "drew another picture" if old.picture != new.picture else ""


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Runs notebooks."""
    from nbclient.exceptions import CellExecutionError
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: all")
    parser.add_argument("--update", action="store_true", help="write what is printed into the notebooks")
    args = parser.parse_args()
    failed = False
    for path in args.notebooks or notebooks():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            cells_of(stored)
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{path}: not a notebook: {error}", file=sys.stderr)
            return 2
        try:
            run = executed(stored)
        except CellExecutionError as error:
            print(f"{path.name}: a cell failed:\n{_COLOR.sub('', str(error))}")
            failed = True
            continue
        if args.update:
            path.write_text(_written(run), encoding="utf-8")
            continue
        found = differences(stored, run, path.name)
        print("\n".join(found) if found else f"{path.name}: as stored")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
