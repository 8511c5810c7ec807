"""The command line as a whole: what it loads, how it fails, what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import warm_cli

from hlorewrite.cli import main as command
from hlorewrite.cli.main import guarded
from hlorewrite.cli.subcommands import available, subcommand
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Format
from hlorewrite.ir.save import emit

ROOT = Path(__file__).resolve().parents[3]
TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @id(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @id(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""


def loaded_after(*words: str, stdin: str = "") -> set[str]:
    """Top-level packages loaded by the time a command line has run."""
    code = ("import sys, json\nfrom hlorewrite.cli.main import guarded\n"
            f"code = guarded({list(words)!r})\n"
            "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
            "sys.exit(code)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, input=stdin, check=True,
                          cwd=ROOT)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_version_loads_nothing_heavy() -> None:
    """Not even jaxlib: its version is read from its metadata."""
    assert not loaded_after("--version") & {"jax", "jaxlib", "numpy", "scipy", "lark", "rich", "ortools", "matplotlib"}


def test_help_of_all_subcommands_loads_nothing_heavy() -> None:
    """Imports belong into ``run``."""
    assert not loaded_after("--help") & {"jax", "scipy", "lark", "rich", "ortools", "matplotlib"}


def test_opt_does_not_import_jax() -> None:
    """0.3 s of every run."""
    loaded = loaded_after("opt", "--pass=comm-shift", "--pass=cse", "--remarks", "--stats", stdin=TEXT)
    assert "jaxlib" in loaded and not loaded & {"jax", "rich", "ortools", "matplotlib"}


def test_every_subcommand_is_complete() -> None:
    """HELP in one line, arguments that parse, and a place in the overview."""
    assert "opt" in available()
    for name in available():
        module = subcommand(name)
        assert module.HELP and "\n" not in module.HELP and module.HELP in command.overview()
        parser = command.Parser(prog=f"hlorewrite {name}")
        module.add_arguments(parser)
        assert callable(module.run) and parser.format_help()


@pytest.mark.parametrize(("words", "code", "message"), [
    ([], 2, "a subcommand is needed"),
    (["nope"], 2, 'unknown subcommand "nope"'),
    (["--nope"], 2, 'unknown option "--nope"'),
    (["opt", "a", "b"], 2, "unrecognized arguments: b"),
    (["opt", "--seed=x"], 2, "argument --seed: invalid int value"),
    (["opt", "no-such-file"], 2, "no-such-file: no such file; check the path"),
])
def test_mistakes(words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, the right exit code."""
    assert guarded(words) == code
    error = capsys.readouterr().err
    assert error.startswith("hlorewrite: error: ") and message in error and error.count("\n") == 1


def test_unexpected_errors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the place, and the way to the traceback."""
    def fails(words: object) -> int:
        raise KeyError("x")

    monkeypatch.setattr(command, "main", fails)
    monkeypatch.delenv("HLOREWRITE_TRACEBACK", raising=False)
    assert guarded(["opt"]) == 1
    error = capsys.readouterr().err
    assert "unexpected error (KeyError: 'x') in test_main.py:" in error and "HLOREWRITE_TRACEBACK=1" in error
    monkeypatch.setenv("HLOREWRITE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        guarded(["opt"])


def test_interrupts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """130, as shells expect, without a traceback."""
    def interrupted(words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "main", interrupted)
    assert guarded(["opt"]) == 130
    assert capsys.readouterr().err == "hlorewrite: error: interrupted\n"


def hlorewrite(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """A real process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([warm_cli(), "-m", "hlorewrite", *words], capture_output=True, check=False,
                          env=environment, **options)  # type: ignore[call-overload]


def test_a_closed_pipe_is_no_error() -> None:
    """``hlorewrite opt big.mlir | head``."""
    body = "".join(f"  %{i} = stablehlo.constant dense<{i}> : tensor<i32>\n" for i in range(20000))
    text = f"func.func @main() {{\n{body}  return\n}}\n"
    script = f"{sys.executable} -m hlorewrite opt - | head -n 1"
    done = subprocess.run(["bash", "-c", script], input=text, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout == "module {\n" and "Traceback" not in done.stderr and "rror" not in done.stderr


def test_a_crash_of_mlir_is_one_line(tmp_path: Path) -> None:
    """Damaged bytecode can end the process; the supervisor reports it. Which damage crashes depends on jaxlib: try
    many."""
    data = emit(parse(TEXT), Format.BYTECODE)
    for position in range(4, min(len(data), 400), 37):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        (tmp_path / "damaged.bc").write_bytes(damaged)
        done = hlorewrite("opt", str(tmp_path / "damaged.bc"))
        assert done.returncode in (0, 1, 2)
        if done.returncode:
            assert b"hlorewrite: error: " in done.stderr and b"damaged.bc" in done.stderr and not done.stdout
            assert b"Traceback" not in done.stderr


CALL_OF_NOTHING = """module {
  func.func public @main(%a: !mpmd.mesh_tensor<"m0", tensor<8xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<8xf32>>
      attributes {topology = #mpmd.topology<<"m0" : <["data"=2]>>>} {
    %n = mpmd.call @nowhere(%a) : (!mpmd.mesh_tensor<"m0", tensor<8xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<8xf32>>
    return %n : !mpmd.mesh_tensor<"m0", tensor<8xf32>>
  }
}
"""


@pytest.mark.parametrize("command", ["opt", "report", "lint", "pipeline simulate"])
def test_a_file_that_mlir_crashes_on_is_one_line(command: str, tmp_path: Path) -> None:
    """The verifier of mpmd.call (jaxlib 0.10.2) looks into a function that is not there."""
    file = tmp_path / "program.mlir"
    file.write_text(CALL_OF_NOTHING)
    done = subprocess.run([str(Path(sys.executable).parent / "hlorewrite"), *command.split(), str(file)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("\n") == 1 and "program.mlir" in done.stderr
    assert done.stderr.startswith("hlorewrite: error")


def test_output_is_all_or_nothing(tmp_path: Path) -> None:
    """In place when it succeeds; untouched, without left-overs, when it fails."""
    file = tmp_path / "a.mlir"
    file.write_text(TEXT)
    assert guarded(["opt", str(file), "--pass=inline", "-o", str(file)]) == 0
    assert "call" not in file.read_text()
    file.write_text(TEXT)
    assert guarded(["opt", str(file), "--pass=sdy-convert-global-to-local", "--emit=export", "-o", str(file),
                    "--no-reproducer"]) == 1
    assert file.read_text() == TEXT and os.listdir(tmp_path) == ["a.mlir"]


def test_the_reproducer_never_overwrites_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the input has its name."""
    monkeypatch.chdir(tmp_path)
    text = ('sdy.mesh @mesh = <["x"=2]>\nfunc.func @main() -> tensor<2xf32> {\n  %c = stablehlo.constant '
            '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1.0, 2.0]> : tensor<2xf32>\n'
            "  return %c : tensor<2xf32>\n}\n")
    Path("hlorewrite-reproducer.mlir").write_text(text)
    assert guarded(["opt", "hlorewrite-reproducer.mlir", "--pass=sdy-convert-global-to-local"]) == 1
    assert Path("hlorewrite-reproducer.mlir").read_text() == text
    assert guarded(["opt", "hlorewrite-reproducer.mlir", "--pass=sdy-convert-global-to-local",
                    "--reproducer=other.mlir"]) == 1
    assert "mlir_reproducer" in Path("other.mlir").read_text()


@pytest.mark.parametrize("form", ["text", "generic", "bytecode", "portable"])
def test_passes_that_find_nothing_leave_every_form_as_it_was(form: str, tmp_path: Path) -> None:
    """Byte for byte: what comes out with passes is what comes out without."""
    source, plain, passed = (str(tmp_path / name) for name in ("in", "plain", "passed"))
    Path(source).write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    assert guarded(["opt", source, f"--emit={form}", "-o", plain]) == 0
    assert guarded(["opt", source, f"--emit={form}", "-o", passed, "--pass=inline", "--pass=comm-shift",
                    "--rules=collectives"]) == 0
    assert Path(plain).read_bytes() == Path(passed).read_bytes()


def test_flags_that_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Usage errors, before anything is done."""
    file = tmp_path / "a.bc"
    file.write_bytes(emit(parse(TEXT), Format.BYTECODE))
    for words, message in ((["--split-input-file"], "works on MLIR text"),
                           (["--emit=portable", "--elide-large-constants=3"], "changes text only"),
                           (["--elide-large-constants=-1"], "is not a number of elements"),
                           (["--emit=bytecode", "--verify-diagnostics"], "works on MLIR text")):
        assert guarded(["opt", str(file), *words]) == 2
        assert message in capsys.readouterr().err


def test_a_crash_in_a_pass_leaves_a_reproducer(tmp_path: Path) -> None:
    """The process is gone; the one above writes it from the command line."""
    (tmp_path / "a.mlir").write_text(TEXT)
    script = """import os, sys
from dataclasses import dataclass
from hlorewrite.cli import main
from hlorewrite.passmanager import registry
from hlorewrite.passmanager.base import Pass

@dataclass(frozen=True)
class Abort(Pass):
    "Ends the process."
    name = "abort"
    def run(self, module, ctx):
        os.abort()

registry.plugin_passes = lambda: {"abort": (Abort, "test")}
sys.argv = ["hlorewrite", "opt", "a.mlir", "--pass-pipeline=builtin.module(cse,abort)", "--reproducer=r.mlir"]
main.entry()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 1 and done.stdout == ""
    assert "a.mlir: in a pass of cse,abort: MLIR crashed (SIGABRT)" in done.stderr
    assert 'pipeline: "builtin.module(cse,abort)"' in (tmp_path / "r.mlir").read_text()
