"""Rule files are data: they run no code, natives are registered by Python that the user names, imports stay near."""

from __future__ import annotations

import functools
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.errors import HlorewriteError, InputError, RuleCheckError, RuleSyntaxError, UsageError
from hlorewrite.rules import library
from hlorewrite.rules.library import load, load_text, natives_of, read_source
from hlorewrite.rules.register import NATIVES
from hlorewrite.rules.syntax import cache

MODULE = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.negate %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
RULE = "rule a { match { root %r = stablehlo.negate(%x); } where { CHECK; } " \
       "types any; floats exact; rewrite { replace %r with %x; } }\n"
LEAVES_A_MARK = "import os, pathlib\npathlib.Path(os.environ['MARK']).touch()\n"
NATIVE = """from hlorewrite.rules.register import native

@native("NAME")
def answer(context, op):
    return True
"""


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that must not come into being; a module ``mark_maker`` makes it when it is imported."""
    (tmp_path / "mark_maker.py").write_text(LEAVES_A_MARK + "def f(context, op): return True\n")
    (tmp_path / "in.mlir").write_text(MODULE)
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    sys.modules.pop("mark_maker", None)
    return tmp_path / "mark"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test registers is gone after it."""
    load_text('import "natives.hlopat";')  # the shipped ones stay
    register = sys.modules.get("hlorewrite.rules.register")
    before = dict(register.NATIVES.functions) if register else {}
    yield
    if register:
        register.NATIVES.functions.clear()
        register.NATIVES.functions.update(before)


# ---- a rule file cannot name a function


@pytest.mark.parametrize("target", ["os:spawnlp", "mark_maker:f", "hlorewrite.patterns.natives:one_use"])
def test_a_rule_file_cannot_name_a_function(target: str) -> None:
    with pytest.raises(RuleSyntaxError, match=r"<rules>:2:28: a rule file cannot name a Python function") as caught:
        load_text(f'import "natives.hlopat";\nnative predicate p(op: Op) = "{target}";')
    assert "--natives" in str(caught.value)
    with pytest.raises(RuleSyntaxError, match="expected `->` or `;`; correct this place"):
        load_text("native predicate p(op: Op) / 3;")


def spawning(folder: Path) -> str:
    (folder / "evil.hlopat").write_text(
        'native predicate ev(cmd: String, ...rest: String) = "mark_maker:f";\n' + RULE.replace("CHECK", 'ev("touch")'))
    return str(folder / "evil.hlopat")


@pytest.mark.parametrize("words", [
    ["opt", "in.mlir", "--rules=evil.hlopat"], ["rules", "check", "evil.hlopat"], ["rules", "list", "evil.hlopat"],
    ["rules", "check", "--static", "evil.hlopat"], ["fmt", "evil.hlopat"],
    ["opt", "--run-reproducer", "reproducer.mlir"]], ids=lambda words: " ".join(words[:3]))
def test_no_command_imports_what_a_rule_file_names(words: list[str], mark: Path, tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.passmanager.reproducer import Reproducer
    spawning(tmp_path)
    (tmp_path / "reproducer.mlir").write_text(Reproducer(MODULE, "rules{files=evil.hlopat}").text())
    assert guarded(words) == 2
    assert "evil.hlopat:1:51: a rule file cannot name a Python function" in capsys.readouterr().err
    assert not mark.exists()


def test_static_checks_import_nothing(mark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.hlopat").write_text("native predicate f(op: Op);\n" + RULE.replace("CHECK", "f(%r)"))
    assert guarded(["rules", "check", "--static", "--natives=mark_maker", "mine.hlopat"]) == 0
    assert "1 rules" in capsys.readouterr().out and not mark.exists()


# ---- natives that the user names


def declared(folder: Path, name: str) -> None:
    (folder / "mine.hlopat").write_text(f"native predicate {name}(op: Op);\n" + RULE.replace("CHECK", f"{name}(%r)"))
    (folder / "mine.py").write_text(NATIVE.replace("NAME", name))


@pytest.mark.parametrize("module", ["mine", "mine.py", "./mine.py"])
def test_natives_are_loaded_from_the_module_on_the_command_line(
        module: str, mark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"answers_{module.count('.')}"
    declared(tmp_path, name)
    assert guarded(["opt", "in.mlir", "--rules=mine.hlopat"]) == 2
    said = capsys.readouterr().err
    assert f"mine.hlopat:1:1: no native is registered as `{name}`; load what registers it: --load=FILE.py" in said
    sys.modules.pop("mine", None)
    assert guarded(["opt", "in.mlir", f"--natives={module}", "--rules=mine.hlopat"]) == 0
    assert "negate" not in capsys.readouterr().out
    assert guarded(["rules", "check", f"--natives={module}", "--programs=3", "mine.hlopat", "--json"]) in (0, 3)
    (row,) = json.loads(capsys.readouterr().out)[0]["results"]
    assert row["rewritten"] == row["programs"] == 3


def test_a_reproducer_loads_only_what_the_command_line_names(mark: Path, tmp_path: Path,
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.passmanager.reproducer import Reproducer
    declared(tmp_path, "from_a_package")
    (tmp_path / "mine-1.dist-info").mkdir()
    (tmp_path / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (tmp_path / "mine-1.dist-info" / "entry_points.txt").write_text(
        "[hlorewrite.natives]\nfrom_a_package = mine:answer\n")
    (tmp_path / "reproducer.mlir").write_text(Reproducer(MODULE, "rules{files=mine.hlopat}").text())
    sys.modules.pop("mine", None)
    assert guarded(["opt", "--run-reproducer", "reproducer.mlir"]) == 2
    assert "no native is registered as `from_a_package`" in capsys.readouterr().err and "mine" not in sys.modules
    assert guarded(["opt", "--run-reproducer", "reproducer.mlir", "--natives=mine"]) == 0
    sys.modules.pop("mine", None)
    from hlorewrite.rules.register import NATIVES
    del NATIVES.functions["from_a_package"]
    assert guarded(["opt", "in.mlir", "--rules=mine.hlopat"]) == 0  # the user installed the package


@pytest.mark.parametrize(("pipeline", "options", "named"), [
    ("rules{files=../outside.hlopat}", (), "../outside.hlopat"),
    ("rules{files=/etc/hostname}", (), "/etc/hostname"),
    ("rules{files=link.hlopat}", (), "link.hlopat"),
    ("comm-shift{topology=../outside.toml}", (), "../outside.toml"),
    ("cse", ("--topology=../outside.toml:2x8",), "../outside.toml")])
def test_a_reproducer_reads_files_of_its_folder_only(
        pipeline: str, options: tuple[str, ...], named: str, mark: Path, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.passmanager.reproducer import Reproducer
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.hlopat").symlink_to("/etc/hostname")
    (inside / "r.mlir").write_text(Reproducer(MODULE, pipeline, options).text())
    monkeypatch.chdir(inside)
    assert guarded(["opt", "--run-reproducer", "r.mlir"]) == 2
    said = capsys.readouterr().err
    assert f"the reproducer r.mlir reads {named!r}, which is outside its folder; copy that file" in said


def test_a_reproducer_reads_shipped_rules_and_topologies(mark: Path, tmp_path: Path,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.passmanager.reproducer import Reproducer
    (tmp_path / "r.mlir").write_text(Reproducer(MODULE, "rules,comm-shift{topology=h200:1x8}",
                                                ("--topology=h200",)).text())
    assert guarded(["opt", "--run-reproducer", "r.mlir"]) == 0


def test_a_native_that_exits_is_an_error(mark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared(tmp_path, "exits")
    (tmp_path / "mine.py").write_text(NATIVE.replace("NAME", "exits").replace("return True", "raise SystemExit(0)"))
    sys.modules.pop("mine", None)
    assert guarded(["opt", "in.mlir", "--natives=mine.py", "--rules=mine.hlopat", "-o", "out.mlir"]) == 1
    assert "a check raised SystemExit" in capsys.readouterr().err and not (tmp_path / "out.mlir").exists()
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    assert guarded(["opt", "in.mlir", "--natives=leaves.py", "-o", "out.mlir"]) == 2
    assert "leaves.py:1: ends the process; correct this line" in capsys.readouterr().err


def test_a_reproducer_cannot_hold_natives_as_an_option(mark: Path, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.passmanager.reproducer import Reproducer
    (tmp_path / "r.mlir").write_text(Reproducer(MODULE, "cse", ("--natives=mark_maker",)).text())
    assert guarded(["opt", "--run-reproducer", "r.mlir"]) == 2
    assert "unknown reproducer option" in capsys.readouterr().err and not mark.exists()


def test_the_words_that_reproduce_a_failure_name_the_natives(mark: Path, tmp_path: Path,
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    declared(tmp_path, "raises")
    (tmp_path / "mine.py").write_text(NATIVE.replace("NAME", "raises").replace("return True", "raise TypeError"))
    sys.modules.pop("mine", None)
    assert guarded(["opt", "in.mlir", "--natives=mine.py", "--rules=mine.hlopat"]) == 1
    assert "hlorewrite opt --natives=mine.py --run-reproducer hlorewrite-reproducer.mlir" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "text", "sentence"), [
    ("nowhere_to_be_found", "", "cannot be imported (No module named 'nowhere_to_be_found'); install it, or name"),
    ("missing.py", "", "missing.py: no such file; correct the path"),
    ("broken.py", "\n1 / 0", "broken.py:2: raises ZeroDivisionError: division by zero; correct this line"),
    ("twice.py", NATIVE.replace("NAME", "one_use"), 'native "one_use" of file'),
    ("space.py", NATIVE.replace("NAME", "one use"), '"one use" is not a name for a native'),
])
def test_modules_that_cannot_be_loaded_are_told(module: str, text: str, sentence: str, mark: Path, tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    if text:
        (tmp_path / module).write_text(text)
    assert guarded(["opt", "in.mlir", f"--natives={module}"]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_functions_are_registered_from_python() -> None:
    from hlorewrite.rules.register import NATIVES, native

    @native
    def registered_here(context: object, op: object) -> bool:
        return True

    assert NATIVES.find("registered_here") is registered_here is native(registered_here)
    text = "native predicate registered_here(op: Op);\n" + RULE.replace("CHECK", "registered_here(%r)")
    assert [rule.name for rule in load_text(text).rules] == ["a"]
    with pytest.raises(UsageError, match='native "registered_here" of'):
        native("registered_here")(test_functions_are_registered_from_python)


def test_a_proof_is_kept_for_the_code_of_its_natives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest changes with the code of a native that the rule calls, and of what that calls; not with comments."""
    import ast

    from hlorewrite.rules import native_source, proofs
    (rule,) = (each.rule for each in load("collectives").rules if each.name == "add-of-all-reduces")
    kept = proofs.digest(rule)
    assert proofs.known_proofs()[rule.name].digest == kept
    module = "hlorewrite.patterns.natives"
    source = Path(str(sys.modules[module].__file__)).read_text("utf-8")

    def with_source(text: str) -> str:
        defined = {each.name: each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)}
        before = native_source._definitions
        with monkeypatch.context() as patch:
            patch.setattr(native_source, "_definitions",
                          lambda name: before(name) | defined if name == module else before(name))
            return proofs.digest(rule)

    assert with_source(source) == kept
    assert "FunctionDef(name='bytes_of'" in native_source.native_source("bytes(%a) > 4")
    assert with_source(source.replace('"""Whether the results of an op are read', '"""Other words')) == kept
    assert with_source(source.replace("if count == 1", "if count == 2")) != kept


# ---- imports


def escape(folder: Path, path: str) -> Path:
    (folder / "inside" / "below").mkdir(parents=True)
    (folder / "outside.hlopat").write_text("native predicate one_use(op: Op);\n")
    (folder / "inside" / "link.hlopat").symlink_to("../outside.hlopat")
    (folder / "inside" / "below" / "good.hlopat").write_text("native predicate one_use(op: Op);\n")
    main = folder / "inside" / "main.hlopat"
    main.write_text(f'\nimport "{path}";\n' + RULE.replace("CHECK", "one_use(%r)"))
    return main


@pytest.mark.parametrize("path", ["../outside.hlopat", "below/../../outside.hlopat", "/dev/null", "link.hlopat",
                                  "{folder}/outside.hlopat", "{folder}/inside/below/good.hlopat"])
def test_imports_outside_of_the_folder_are_refused(path: str, tmp_path: Path) -> None:
    main = escape(tmp_path, path.format(folder=tmp_path))
    with pytest.raises(RuleCheckError, match=rf"{main}:2:1: `.*` is outside the folder of") as caught:
        load(str(main))
    assert "\n" not in str(caught.value)


def test_imports_below_the_folder_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = escape(tmp_path, "below/good.hlopat")
    assert [rule.name for rule in load(str(main)).rules] == ["a"]
    monkeypatch.chdir(main.parent)
    assert [rule.name for rule in load("main.hlopat").rules] == ["a"]


def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    main = escape(tmp_path, "pipe")
    os.mkfifo(main.parent / "pipe")
    code = f"from hlorewrite.rules.library import load; load({str(main)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "is not a regular file" in done.stderr
    for device in ("/dev/null", "/dev/zero"):
        with pytest.raises(InputError, match=f"{device}: is not a regular file; name a rule file"):
            read_source(device)


def test_large_files_are_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "large.hlopat", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="is larger than 4 MiB; name a rule file"):
        read_source(str(tmp_path / "large.hlopat"))


@pytest.mark.parametrize("write", [
    lambda number, last: f'import "f{number + 1}.hlopat";\nimport "f{number + 1}.hlopat";\n' if number < last else "",
    lambda number, last: "".join(f'import "f{more}.hlopat";\n' for more in range(number + 1, last + 1)),
], ids=["diamonds", "all of the later ones"])
def test_every_imported_file_is_read_once(write: Callable[[int, int], str], tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    kept = library.cached_tree

    def counted(text: str, name: str, shipped: bool) -> object:
        read.append(os.path.basename(name))
        return kept(text, name, shipped)

    monkeypatch.setattr(library, "cached_tree", counted)
    for number in range(9):
        (tmp_path / f"f{number}.hlopat").write_text(write(number, 8))
    load(str(tmp_path / "f0.hlopat"))
    assert sorted(read) == [f"f{number}.hlopat" for number in range(9)]


@pytest.mark.parametrize("length", [150, 2000])
def test_chains_and_loops_of_imports_are_told(length: int, tmp_path: Path) -> None:
    for number in range(length):
        (tmp_path / f"f{number}.hlopat").write_text(f'import "f{number + 1}.hlopat";\n')
    with pytest.raises(HlorewriteError, match="imports are nested more than 100 deep"):
        load(str(tmp_path / "f0.hlopat"))
    (tmp_path / "again").symlink_to(".")
    (tmp_path / "loop.hlopat").write_text('import "again/loop.hlopat";\n')
    with pytest.raises(RuleCheckError, match="imports itself"):
        load(str(tmp_path / "loop.hlopat"))


# ---- stored trees


class Touches:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.path,)


def test_a_stored_tree_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_path", lambda text, name: tmp_path / "x.tree")
    first = cache.cached_tree(RULE.replace("CHECK", "one_use(%r)"), "a.hlopat", True)
    (tmp_path / "x.tree").write_bytes(pickle.dumps(Touches(tmp_path / "touched")))
    assert cache.cached_tree(RULE.replace("CHECK", "one_use(%r)"), "a.hlopat", True) == first
    assert not (tmp_path / "touched").exists()


def test_a_shipped_file_is_compiled_once_for_the_registered_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load("collectives")
    assert load("collectives") is before
    name = next(iter(natives_of(before.tree, before.source)))
    kept = NATIVES.functions[name]

    @functools.wraps(kept)
    def other(*arguments: object) -> object:
        return kept(*arguments)

    monkeypatch.setattr(NATIVES, "functions", {**NATIVES.functions, name: other})
    assert load("collectives") is not before
    monkeypatch.undo()
    assert load("collectives") is before


OF_VALUE = """from hlorewrite.rules import native
from hlorewrite.rules.match_failure import MatchFailure

@native
def is_small(context, value):
    return MatchFailure("it is large", CULPRIT)
"""


@pytest.mark.parametrize(("culprit", "at_fault"), [("value.owner", "func.func"), ("value", "func.func"),
                                                   ("list(value.uses)[0].owner", "")])
def test_the_op_at_fault_may_be_given_by_a_value(culprit: str, at_fault: str, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    """The owner of an argument is a block; the op around it is meant."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.mlir").write_text(MODULE)
    (tmp_path / "mine.py").write_text(OF_VALUE.replace("CULPRIT", culprit))
    rule = RULE.replace("where { CHECK; } ", "").replace("exact;", "exact; legal { is_small(%x); }")
    (tmp_path / "mine.hlopat").write_text(f"native predicate is_small(x: Value);\n{rule}")
    words = ["opt", "in.mlir", "--load=mine.py", "--rules=mine.hlopat", "--remarks=blocked", "-o", "out.mlir"]
    assert guarded(words) == 0
    said = capsys.readouterr().err
    assert "blocked: a: it is large" in said and (f"{at_fault}" in said if at_fault else "(see" not in said)
