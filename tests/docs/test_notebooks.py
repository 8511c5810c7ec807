"""The notebooks: run in order, without an error, comparable, and pages of the site; ``make nightly`` runs them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from links import local_links
from notebooks import WrongNotebook, cells_of, notebook_page, notebooks
from run_notebook import differences, executed


def notebook(*sources: str, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    """A notebook that was not run."""
    cells = [{"cell_type": "code", "id": f"cell-{number}", "metadata": {"tags": list(tags)}, "source": [source],
              "execution_count": None, "outputs": []} for number, source in enumerate(sources, 1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def test_there_are_four_tutorials() -> None:
    assert [path.stem for path in notebooks()] == ["diagnose-a-dump", "optimise-a-step", "plan-a-pipeline",
                                                   "write-and-prove-a-rule"]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_stored_notebook_was_run_in_order_without_an_error(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [one for cell in code for one in cell["outputs"] if one["output_type"] == "error"]
    assert "/tmp/" not in path.read_text(encoding="utf-8")
    text, pictures = notebook_page(path)
    for target in local_links(text):
        assert target in pictures or (path.parent / target.partition("#")[0]).exists(), target


def test_a_notebook_is_run_in_the_project_and_its_outputs_are_compared() -> None:
    stored = executed(notebook("import hlorewrite, os\nprint(os.path.exists('run_page.py'))", "%%bash\nls ../../R*",
                               "1 + 1"))
    printed = [cell.printed for cell in cells_of(stored)]
    assert printed == ["False\n", "../../README.md\n", "2\n"]
    assert differences(stored, stored, "n.ipynb") == []
    changed = copy.deepcopy(stored)
    changed["cells"][2]["outputs"][0]["data"]["text/plain"] = ["3"]
    assert differences(stored, changed, "n.ipynb") == ["n.ipynb, cell 3: printed something else:\n3\n"]


def test_only_durations_of_marked_cells_vary() -> None:
    def printing(text: str, *tags: str) -> dict[str, Any]:
        found = notebook("x", tags=tags)
        found["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [text]}]
        return found
    assert differences(printing("took 2 ms\n"), printing("took 3 ms\n"), "n")
    assert not differences(notebook("x"), notebook("x"), "n"), "a cell that prints nothing"
    assert not differences(printing("took 2 ms\n", "times-vary"), printing("took 3 ms\n", "times-vary"), "n")
    assert differences(printing("4 calls, 2 ms\n", "times-vary"), printing("5 calls, 2 ms\n", "times-vary"), "n")


def test_a_page_of_a_notebook_holds_commands_outputs_and_pictures(tmp_path: Path) -> None:
    document = notebook("%%bash\nls")
    document["cells"][0] |= {"execution_count": 1, "outputs": [
        {"output_type": "stream", "name": "stdout", "text": ["a\n"]},
        {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {
            "text/plain": ["<SVG>"], "image/svg+xml": ["<svg/>"]}}]}
    (tmp_path / "n.ipynb").write_text(json.dumps(document))
    text, pictures = notebook_page(tmp_path / "n.ipynb")
    assert "```bash\nls\n```" in text and "```text\na\n```" in text and pictures == {"n-0.svg": "<svg/>"}


@pytest.mark.parametrize("text", ["{", "{}", '{"cells": [{"cell_type": "code"}]}', json.dumps(notebook("1"))])
def test_what_is_no_notebook_that_was_run_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.ipynb").write_text(text)
    with pytest.raises(WrongNotebook, match=r"n\.ipynb"):
        notebook_page(tmp_path / "n.ipynb")
