"""Loading rule files: shipped ones, imports, natives, the stored trees, and the commands over them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from hlorewrite.cli.main import main
from hlorewrite.errors import HlorewriteError, InputError, RuleCheckError
from hlorewrite.rules.checks.checker import check
from hlorewrite.rules.library import load, load_shipped, load_text, natives_of, read_source, shipped_names
from hlorewrite.rules.syntax import ast, cache
from hlorewrite.rules.syntax.parser import parse
from hlorewrite.rules.syntax.printer import print_file

RULE = "rule a { match { root %r = stablehlo.negate(%x); } where { one_use(%r); } " \
       "types any; floats exact; rewrite { replace %r with %x; } }\n"


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_files_are_sound_formatted_and_documented(name: str) -> None:
    source = read_source(name)
    tree = parse(source.text, source.name)
    assert check(tree, natives_of(tree, source)) == []
    assert print_file(tree) == source.text
    assert all(item.docs for item in tree.items if not isinstance(item, ast.Import))


def test_rule_and_fact_names_are_unique_over_all_shipped_files() -> None:
    names = [r.name for f in load_shipped() for r in f.rules] + [r.name for f in load_shipped() for r in f.facts]
    assert len(names) == len(set(names))


def test_imports_are_found_beside_the_file_and_among_shipped_files(tmp_path: Path) -> None:
    (tmp_path / "mine.hlopat").write_text('import "natives.hlopat";\nnative predicate unused(op: Op);\n')
    (tmp_path / "rules.hlopat").write_text('import "mine.hlopat";\n' + RULE.replace("one_use", "unused"))
    assert [r.name for r in load(str(tmp_path / "rules.hlopat")).rules] == ["a"]


def test_files_that_import_each_other_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.hlopat").write_text('import "b.hlopat";\n')
    (tmp_path / "b.hlopat").write_text('import "a.hlopat";\n')
    with pytest.raises(RuleCheckError, match="imports itself"):
        load(str(tmp_path / "a.hlopat"))


@pytest.mark.parametrize(("text", "sentence"), [
    ('import "nativs.hlopat";', "is neither next to"),
    ("native predicate p(op: Op);", "<rules>:1:1: no native is registered as `p`; load what registers it"),
    ("native predicate one_use(a: Op, b: Op);", "does not take the context and 2"),
])
def test_natives_and_imports_that_are_not_there_are_told(text: str, sentence: str) -> None:
    with pytest.raises(HlorewriteError, match=sentence):
        load_text(text)


def test_missing_folders_and_binary_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "bin.hlopat").write_bytes(b"\xff\xfe\x00")
    for name, sentence in (("collectivs", "no such rule file"), (str(tmp_path), "is a directory"),
                           (str(tmp_path / "bin.hlopat"), "is not a text file")):
        with pytest.raises(InputError, match=sentence):
            load(name)


def test_trees_are_stored_read_again_and_survive_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tmp_path / "x.tree"
    monkeypatch.setattr(cache, "_path", lambda text, name: stored)
    first = cache.cached_tree(RULE, "a.hlopat", True)
    assert pickle.loads(stored.read_bytes()) == first == cache.cached_tree(RULE, "a.hlopat", True)
    stored.write_bytes(b"damaged")
    assert cache.cached_tree(RULE, "a.hlopat", True) == first
    stored.unlink()
    cache.cached_tree(RULE, "a.hlopat", False)
    assert not stored.exists()


# ---- commands


def test_rules_list_show_check_and_docs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["rules", "list", "collectives", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["name"] == "add-of-all-reduces" and "AR(add(a, b))" in rows[0]["equation"]
    assert main(["rules", "show", "negate"]) == 0
    assert "linear negate {" in capsys.readouterr().out
    assert main(["rules", "docs", "linearity"]) == 0
    assert "### `dynamic-slice`" in capsys.readouterr().out
    path = tmp_path / "mine.hlopat"
    path.write_text('import "natives.hlopat";\n' + RULE.replace("one_use", "one_us"))
    with pytest.raises(RuleCheckError, match="there is no predicate or analysis `one_us`"):
        main(["rules", "check", str(path)])
    with pytest.raises(InputError, match='there is no rule "negat"'):
        main(["rules", "show", "negat"])


def test_fmt_rewrites_checks_and_shows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.hlopat"
    path.write_text(RULE)
    assert main(["fmt", "--check", str(path)]) == 1
    assert "would be reformatted" in capsys.readouterr().err and path.read_text() == RULE
    assert main(["fmt", "--diff", str(path)]) == 0
    assert "+  match { root %r = stablehlo.negate(%x); }" in capsys.readouterr().out and path.read_text() == RULE
    assert main(["fmt", str(path)]) == 0
    formatted = path.read_text()
    assert formatted == print_file(parse(RULE))
    assert main(["fmt", "--check", str(path)]) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["mine.hlopat"]


def test_fmt_leaves_a_file_that_does_not_parse(tmp_path: Path) -> None:
    path = tmp_path / "mine.hlopat"
    path.write_text("rule a {")
    with pytest.raises(HlorewriteError, match=str(path)):
        main(["fmt", str(path)])
    assert path.read_text() == "rule a {"
