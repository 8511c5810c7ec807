"""The checker of imports: each rule on a small package that breaks it, and on one that keeps all of them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_layers", ROOT / "tools" / "import_layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


layers = _tool()
KEPT = {
    "__init__.py": "from hlorewrite.top import a",
    "jaxbridge/__init__.py": "import jax",
    "top/__init__.py": "",
    "top/a.py": "from hlorewrite.top.inner.b import B\nfrom hlorewrite import low",
    "top/inner/__init__.py": "",
    "top/inner/b.py": "from hlorewrite.low.c import C\nclass B: pass",
    "low/__init__.py": "",
    "low/c.py": '"""hlorewrite.top.a is above."""\nclass C: pass\nclass _C: pass',
    "low/d.py": "class _D: pass",
}
ORDER = ("jaxbridge", "top", "low")


def violations(tmp_path: Path, changes: dict[str, str], **options: object) -> list[str]:
    """What the checker says about the package above with some files changed."""
    for path, text in (KEPT | changes).items():
        file = tmp_path / "hlorewrite" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    settings = {"registries": {}, "lookups": {}} | options
    return layers.check(tmp_path / "hlorewrite", ORDER, **settings)


def test_a_package_that_keeps_the_rules(tmp_path: Path) -> None:
    """Strings in docstrings and imports of layers from the package are fine."""
    assert violations(tmp_path, {}) == []


def test_folders_of_one_layer_can_be_layers_of_their_own(tmp_path: Path) -> None:
    files = {"top/inner/b.py": "from hlorewrite.low.c import C", "low/c.py": "from hlorewrite.top import a"}
    for path, text in (KEPT | files).items():
        (tmp_path / "hlorewrite" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "hlorewrite" / path).write_text(text)
    said = layers.check(tmp_path / "hlorewrite", ("jaxbridge", "top.a", "low", "top.inner"), registries={}, lookups={})
    assert "top/inner/b.py:1: top.inner imports low, which is above it" in said
    assert "low/c.py:1: low imports top.a, which is above it" in said


@pytest.mark.parametrize(("path", "text", "said"), [
    ("low/inner/e.py", "from hlorewrite.top import a", "low/inner/e.py:1: low imports top, which is above it"),
    ("low/e.py", "def f():\n    import hlorewrite.top.a", "low/e.py:2: low imports top"),
    ("low/e.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hlorewrite.top.a import x",
     "low/e.py:3: low imports top"),
    ("low/e.py", "from ..top import a", "low/e.py:1: low imports top"),
    ("low/e.py", "from hlorewrite import top", "low/e.py:1: low imports top"),
    ("low/e.py", "from hlorewrite import __version__", "low imports the package itself"),
    ("low/e.py", "import jax.numpy", "low/e.py:1: low imports jax; only jaxbridge, "),
    ("other/e.py", "", "other/e.py: other is in no layer"),
    ("top/e.py", 'TABLE = {"c": "hlorewrite.low.c:C"}', "top/e.py:1: the string names the module hlorewrite.low.c"),
    ("top/e.py", 'import importlib\nimportlib.import_module("hlorewrite.low")', "top/e.py:2: import_module hides an"),
    ("top/e.py", '__import__("hlorewrite." + name)', "top/e.py:1: __import__ hides an import"),
    ("top/e.py", "class B: pass", "class B stands in hlorewrite/top/e.py and hlorewrite/top/inner/b.py"),
    ("top/e.py", "def f():\n    class _D: pass", "class _D stands in hlorewrite/low/d.py and hlorewrite/top/e.py"),
])
def test_each_rule(tmp_path: Path, path: str, text: str, said: str) -> None:
    """One changed file, one sentence."""
    sentences = violations(tmp_path, {path: text})
    assert len(sentences) == 1 and said in sentences[0]


ROOMS = {"top/inner/b.py": "class B: pass", "top/outer/__init__.py": "", "top/outer/e.py": "",
         "top/outer/f.py": "from hlorewrite.top.inner.b import B"}
"""Two rooms, of which one imports the other; no file imports itself in what follows."""


@pytest.mark.parametrize("back", [
    "from hlorewrite.top.outer.e import x", "def f():\n    from hlorewrite.top.outer import e",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hlorewrite.top.outer.e"])
def test_circles_between_rooms(tmp_path: Path, back: str) -> None:
    """Files of two rooms that need the other one, though no file needs itself."""
    assert violations(tmp_path, ROOMS) == []
    (sentence,) = violations(tmp_path, {**ROOMS, "top/inner/g.py": back})
    assert sentence.startswith("rooms import each other (top: inner, outer): top/inner/g.py:")
    assert "top/outer/f.py:1" in sentence


def test_longer_circles_between_rooms(tmp_path: Path) -> None:
    third = {"top/third/__init__.py": "", "top/third/g.py": "from hlorewrite.top.outer.f import B",
             "top/inner/g.py": "import hlorewrite.top.third"}
    (sentence,) = violations(tmp_path, {**ROOMS, **third})
    assert sentence.startswith("rooms import each other (top: inner, outer, third)")


def test_files_of_the_layer_itself_are_in_no_room(tmp_path: Path) -> None:
    assert violations(tmp_path, {**ROOMS, "top/h.py": "import hlorewrite.top.outer.f",
                                 "top/inner/g.py": "import hlorewrite.top.h"}) == []


@pytest.mark.parametrize("back", [
    "from hlorewrite.low.c import C", "import hlorewrite.low.c", "def f():\n    from hlorewrite.low import c",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hlorewrite.low.c import C",
])
def test_circles_between_files(tmp_path: Path, back: str) -> None:
    """Also through functions and types."""
    sentences = violations(tmp_path, {"low/c.py": "from hlorewrite.low.d import x\nclass C: pass", "low/d.py": back})
    assert sentences == ["hlorewrite imports itself in a cycle: hlorewrite.low.c -> hlorewrite.low.d"]


def test_circles_through_a_package(tmp_path: Path) -> None:
    """What a package re-exports from a file, the file may not import from the package."""
    changes = {"low/__init__.py": "from hlorewrite.low.c import C",
               "low/c.py": "from hlorewrite.low import C\nclass C: pass"}
    assert any("cycle" in each for each in violations(tmp_path, changes))
    changes = {"low/c.py": "from hlorewrite.low import d\nclass C: pass"}
    assert violations(tmp_path, {"low/__init__.py": "from hlorewrite.low.c import C"} | changes) == []


def test_registries_name_modules_downwards(tmp_path: Path) -> None:
    """A table may name modules; it is not a circle with them, but above it they may not be."""
    down = {"top/e.py": 'TABLE = {"c": "hlorewrite.low.c:C", "f": "hlorewrite.top.f"}',
            "top/f.py": "from hlorewrite.top.e import x"}
    assert violations(tmp_path, down, registries={"top/e.py": "why"}) == []
    (tmp_path / "hlorewrite/top/e.py").unlink()
    up = {"low/e.py": 'TABLE = {"a": "hlorewrite.top.a"}', "top/f.py": ""}
    assert violations(tmp_path, up | {"top/e.py": ""}, registries={"low/e.py": "why"}) == [
        "low/e.py:1: low imports top, which is above it"]


def test_lookups_may_import_by_name(tmp_path: Path) -> None:
    """Only the files that are listed."""
    text = "import importlib\nimportlib.import_module(name)"
    assert violations(tmp_path, {"top/e.py": text}, lookups={"top/e.py": "why"}) == []
    assert len(violations(tmp_path, {"top/e.py": text})) == 1


def test_class_names_of_scripts(tmp_path: Path) -> None:
    """They are compared with those of the package."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "b.py").write_text("class B: pass")
    assert violations(tmp_path, {}, scripts=[tmp_path / "tools"]) == [
        "class B stands in hlorewrite/top/inner/b.py and tools/b.py; give one of them a name of its own"]


def test_crowded_folders(tmp_path: Path) -> None:
    """Counted without the folders inside."""
    changes = {f"low/x{i}.py": "" for i in range(layers.MOST_FILES - 3)}
    assert violations(tmp_path, changes) == []
    assert "holds 21 files" in violations(tmp_path, {"low/y.py": ""})[0]
    (tmp_path / "hlorewrite/low/y.py").unlink()
    (tmp_path / "bench/cases").mkdir(parents=True)
    for i in range(layers.MOST_FILES + 1):
        (tmp_path / f"bench/cases/x{i}.py").touch()
    assert "bench/cases holds 21 files" in violations(tmp_path, {}, scripts=[tmp_path / "bench"])[0]


def test_registries_and_lookups_are_files() -> None:
    """That the package keeps the rules is a part of `make lint`."""
    assert all((ROOT / "hlorewrite" / path).exists() for path in (*layers.REGISTRIES, *layers.LOOKUPS))


def test_the_diagram_is_in_the_architecture() -> None:
    """Exactly as the tool prints it."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert f"```text\n{layers.diagram(ROOT / 'hlorewrite')}\n```" in text


def test_files_that_the_architecture_names_exist() -> None:
    """A path is below the package or the root; a bare name is next to a path of its cell, or below its folder."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    missing = []
    for cell in (line.split("|")[2] for line in text.splitlines() if line.startswith("| ") and line.count("|") == 3):
        folders: list[Path] = []
        for name in re.findall(r"`([\w./-]+\.(?:py|md|hlopat|txt|json))`", cell):
            found = [path for path in (ROOT / "hlorewrite" / name, ROOT / name,
                                       *(folder / name for folder in folders)) if path.exists()]
            if not found and "NAME" not in name:
                missing.append(name)
            folders += [folder for path in found for folder in (path.parent, path.parent.parent)]
    assert not missing
