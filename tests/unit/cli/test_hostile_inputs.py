"""Damaged inputs through the command: a few of what ``make fuzz`` tries, and what it has found."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_process import warm_cli
from jaxlib import version as jaxlib_version

from hlorewrite.cli.main import guarded
from hlorewrite.errors import InputError
from hlorewrite.ir.load import load, parse
from hlorewrite.ir.module import Format
from hlorewrite.ir.save import emit

ROOT = Path(__file__).resolve().parents[3]
TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


def test_a_few_damaged_inputs_of_every_form(tmp_path: Path) -> None:
    """No traceback, no silent death, no hang, no lost file."""
    done = subprocess.run([sys.executable, "-m", "generators.hostile.fuzz", "--count=8", "--real=8", "--seconds=90",
                           f"--out={tmp_path}"], capture_output=True, text=True, check=False, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT}"})
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.endswith("findings: none\n") and "arguments: 8 mutations, 0 findings" in done.stdout


@pytest.mark.parametrize("subcommand", ["opt", "verify", "report"])
def test_errors_below_several_nested_regions(subcommand: str, tmp_path: Path) -> None:
    """MLIR can check such regions in parallel; a thread that reports an error needs the lock of the one that waits."""
    sound = (ROOT / "tests" / "programs" / "nested_regions.mlir").read_text("utf-8")
    program = tmp_path / "program.mlir"
    program.write_text(sound.replace("[0:2]", "[0:9]"))
    words = [subcommand, str(program), *([str(program)] if subcommand == "verify" else [])]
    done = subprocess.run([warm_cli(), "-m", "hlorewrite", *words], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "limit index 9 is larger than dimension size 2" in done.stderr


# ---- found by fuzzing


def test_modules_that_no_portable_artifact_can_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """jaxlib raises an error of its own, several lines long."""
    (tmp_path / "out").write_text("old")
    program = ROOT / "tests" / "programs" / "two_stages.mlir"
    code = guarded(["opt", str(program), "--emit=portable", "-o", str(tmp_path / "out")])
    if jaxlib_version.__version_info__ >= (0, 11) and code == 0:  # it writes programs of several meshes too
        written, read = (sorted(load(str(path)).text().splitlines()) for path in (program, tmp_path / "out"))
        assert read == written  # the reader places constants elsewhere
        return
    assert code == 1
    said = capsys.readouterr().err
    assert "cannot be written as a StableHLO" in said and "mpmd." in said and said.count("\n") == 1
    assert (tmp_path / "out").read_text() == "old"


@pytest.mark.parametrize("command", ["opt", "lint", "report"])
def test_devices_are_not_read(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """/dev/zero has no end."""
    assert guarded([command, "/dev/zero"]) == 2
    assert capsys.readouterr().err == ("hlorewrite: error: /dev/zero: is a device; name a file, a pipe, or - for "
                                       "standard input\n")


def test_names_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A binary module can contain them, and Python's bindings cannot."""
    data = emit(parse(TEXT.replace("@main", "@mainmainmain")), Format.BYTECODE)
    (tmp_path / "a.bc").write_bytes(data.replace(b"mainmainmain", b"main\xff\xfemain\xc3("))
    for words in (["--emit=portable"], ["--pass=comm-shift"], ["--emit=text"]):
        assert guarded(["opt", str(tmp_path / "a.bc"), "-o", str(tmp_path / "out"), *words]) == 2
        assert "a name in the module is not UTF-8 text; write the file again\n" in capsys.readouterr().err


@pytest.mark.parametrize(("subcommand", "attribute"), [("opt", "mhlo.a = "), ("verify", "")])
def test_attributes_that_are_locations(subcommand: str, attribute: str, tmp_path: Path,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    """MLIR allows them, and Python's bindings have no type for them."""
    module = f'attributes {{{attribute}loc("x")}} ' if attribute else ""
    text = TEXT.replace("return %x", '%0 = stablehlo.negate %x {a = loc("y")} : tensor<4xf32>\n  return %0')
    (tmp_path / "a.mlir").write_text(f"module {module}{{\n{text}}}\n")
    assert guarded([subcommand, *[str(tmp_path / "a.mlir")] * (2 if subcommand == "verify" else 1)]) == 2
    assert "an attribute in the module has a location, loc(...), as its value" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "sentence"), [
    (["reshard", "--shape=8", "--src-mesh=99999999999999999999", "--dst-mesh=1x2", "--src-spec=gpu", "--dst-spec=-"],
     "the mesh 99999999999999999999 has too many devices"),
    (["pipeline", "simulate", "--stages=1000000", "--microbatches=8", "--fwd=1ms"], "at most 2000000 can be scheduled"),
    (["estimate", "--model=gpt3-175b", "--topology=h200:4x8", "--global-batch=64", "--parameters=1e308"],
     "sizes must be above zero and at most 1e24"),
    (["estimate", "--model=gpt3-175b", "--topology=h200:4x8", "--global-batch=99999999999999999999", "--search"],
     "sizes must be from 1 to"),
    (["opt", "\0"], "embedded null byte"),
])
def test_numbers_and_names_out_of_bounds(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, at once."""
    begin = time.monotonic()
    assert guarded(words) in (1, 2)
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1 and time.monotonic() - begin < 10


def test_ranks_out_of_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A group of a thousand million ranks would be a list."""
    sys.path.insert(0, str(ROOT / "tests"))
    from generators.hostile.made_files import NCCL
    sys.path.pop(0)
    (tmp_path / "nccl.txt").write_text(NCCL)
    assert guarded(["calibrate", str(tmp_path / "nccl.txt"), "--topology=h200:1x8", "--ranks=1000000000"]) == 2
    assert "--ranks is 1000000000; ranks must be from 1 to" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--json"], ["-o", "made.toml"]])
def test_a_calibration_of_one_size(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    """A curve needs two: ``--json`` ended in an IndexError, and ``-o`` wrote a topology that no command reads."""
    monkeypatch.chdir(tmp_path)
    line = "  1048576  262144  float  sum  -1  60.0  17.4  30.5  0  60.0  17.4\n"
    (tmp_path / "all_reduce_perf.txt").write_text(line)
    assert guarded(["calibrate", "all_reduce_perf.txt", "--topology=h200:1x8", *words]) == 2
    said = capsys.readouterr().err
    assert "all_reduce_perf.txt: measures one size, but a curve needs two" in said and said.count("\n") == 1
    assert not (tmp_path / "made.toml").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("work", ["kept = b'x' * (300 << 20); time.sleep(60)", "time.sleep(60)"])
def test_what_reading_damaged_binaries_takes_is_bounded(work: str) -> None:
    """A reader that takes far more than the file explains is stopped before it fills the machine's memory."""
    script = ("import sys, time\nfrom hlorewrite.cli import process\n"
              "from hlorewrite.util.read import READ_GUARD\n"
              "process._READ_BASE_BYTES, process._READ_S = 100 << 20, 1.0\n"
              f"def work():\n    with READ_GUARD.around('a.bc', 1000):\n        {work}\n"
              "    return 0\nsys.exit(process.supervised(work))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert "a.bc: while it was read: took far more time or memory than its size justifies" in done.stderr


def test_deep_nesting_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regions, expressions and conditions of rules."""
    deep = "(" * 3000 + "1" + ")" * 3000
    (tmp_path / "deep.hlopat").write_text(
        "rule a { match { root %r = stablehlo.negate(%x); } where { " + deep + " < 2; } types any; floats exact; "
        "rewrite { replace %r with %x; } }\n")
    (tmp_path / "deep.mlir").write_text(
        "func.func @main(%a: tensor<i1>) {\n" + "".join("\"stablehlo.if\"(%a) ({\n" for _ in range(1500))
        + "".join("stablehlo.return\n}, {\nstablehlo.return\n}) : (tensor<i1>) -> ()\n" for _ in range(1500))
        + "return\n}\n")
    for words in (["fmt", "deep.hlopat"], ["rules", "check", "--static", "deep.hlopat"],
                  ["opt", "deep.mlir", "-O", "comm", "-o", "out"], ["report", "deep.mlir"], ["lint", "deep.mlir"]):
        done = subprocess.run([warm_cli(), "-m", "hlorewrite", *words], capture_output=True, text=True, check=False,
                              cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert "unexpected error" not in done.stderr and "Traceback" not in done.stderr, words
        assert done.returncode == 0 or "hlorewrite: error: " in done.stderr, words


def test_topologies_are_regular_files(tmp_path: Path) -> None:
    """A link to a device is none."""
    from hlorewrite.cost import topology
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is not a regular file; name a topology file"):
        topology(str(tmp_path / "zero.toml"))


MANY = "1" + "0" * 400
LOG = "{size}  262144  float  sum  -1  {time}  37.78  66.11  0  {time}  38.15  66.76  0\n"


@pytest.mark.parametrize(("name", "text", "words"), [
    *(("t.toml", f'extends = "h200"\n[network]\nnic_bytes_per_s = {number}\n',
       ["report", "m.mlir", "--topology=t.toml:1x4"]) for number in (MANY, "9" * 5000, "5e-324")),
    ("all_reduce_perf.txt", LOG.format(size=MANY, time="27.76") + LOG.format(size=1024, time="27.76"),
     ["calibrate", "all_reduce_perf.txt", "--topology=h200:1x8"]),
    *(("all_reduce_perf.txt", LOG.format(size=1024, time=time) + LOG.format(size=2048, time="27.76"),
       ["calibrate", "all_reduce_perf.txt", "--topology=h200:1x8"]) for time in ("1.0e999", "5.0e-324")),
    ("k.toml", f"a = {MANY}\n", ["timeline", "m.hlo", "--target=h200:1x4", "--kernel-times=k.toml"]),
    ("k.json", f'{{"a": {"9" * 5000}}}', ["timeline", "m.hlo", "--target=h200:1x4", "--kernel-times=k.json"]),
    ("p.csv", "Time (%),Total Time (ns),Instances,Name\n50.0,1e308,2,fusion_1\n",
     ["audit", "m.hlo", "--target=h200:1x4", "--profile=p.csv"]),
    ("times.json", f'{{"fragments": {{"forward_0": {"9" * 5000}}}}}',
     ["pipeline", "simulate", str(ROOT / "tests" / "programs" / "two_stages.mlir"), "--times=times.json",
      "--topology=h200:1x8"])])
def test_numbers_that_no_computation_survives(name: str, text: str, words: list[str], tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    """Each is refused where it is read, before something overflows or JSON gets an infinity."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(TEXT)
    (tmp_path / "m.hlo").write_text((ROOT / "tests/generators/hostile/library_calls.hlo").read_text())
    (tmp_path / name).write_text(text)
    assert guarded(words) == 2
    said = capsys.readouterr().err
    assert f"error: {name}" in said and "unexpected" not in said and len(said) < 500


def test_a_trace_with_a_number_of_many_digits_is_shown(tmp_path: Path) -> None:
    """Such a number is none: the page leaves it out."""
    from hlorewrite.util.read import read_json
    assert read_json(f"[{MANY}, 1]", keep=True) == [None, 1]
    with pytest.raises(ValueError, match="401 digits"):
        read_json(f"[{MANY}]")


@pytest.mark.parametrize("words", [
    ["reshard", "--shape=8", "--src-mesh=2x2", f"--dst-mesh={'9' * 5000}x2", "--src-spec=-", "--dst-spec=-"],
    ["reshard", "--shape=8", "--src-mesh=a=2", f"--dst-mesh=a={'9' * 5000}", "--src-spec=-", "--dst-spec=-"],
    ["collective", "all-reduce", f"--bytes={'9' * 5000}", "--topology=h200:1x4"],
    ["report", "-", f"--topology=h200:{'9' * 5000}x8"]])
def test_numbers_of_thousands_of_digits_in_arguments(words: list[str], monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    import io
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert guarded(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("hlorewrite: error: ") and said.count("\n") == 1 and len(said) < 1000
