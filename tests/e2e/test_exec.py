"""``hlorewrite exec``: an unedited program is rewritten, and everything else about it is its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("exec_worker.py")
HLOREWRITE = [sys.executable, "-m", "hlorewrite"]
EIGHT = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"


def environment(**more: str) -> dict[str, str]:
    """The environment of a program of eight CPU devices, with this checkout on the path."""
    return dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", XLA_FLAGS=EIGHT, PYTHONPATH=str(ROOT)) | more


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command line to its end."""
    return subprocess.run(list(words), env=environment(**more), capture_output=True, text=True, timeout=120,
                          check=False)


def train(*flags: str, command: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The training program under ``exec``."""
    return run(*HLOREWRITE, "exec", *flags, "--", *(command or (sys.executable, str(WORKER), "0", "0", "1", "4")))


def test_a_program_is_rewritten_and_trains_as_before(tmp_path: Path) -> None:
    """Bytes fall to a quarter; output and exit code are the program's own; nothing is printed next to it."""
    plain = run(sys.executable, str(WORKER), "0", "0", "1", "4")
    report = tmp_path / "report.json"
    under = train("--report", str(report))
    assert (under.returncode, under.stdout, under.stderr) == (0, plain.stdout, plain.stderr)
    assert plain.stdout.count("LOSS") == 3
    [step] = json.loads(report.read_text())["modules"]
    assert (step["name"], step["outcome"]) == ("jit_train_step", "rewritten")
    assert step["bytes_after"] < 0.3 * step["bytes_before"]


@pytest.mark.parametrize("report", ["", "report.html"])
def test_on_a_terminal_one_line_says_what_was_rewritten(tmp_path: Path, report: str) -> None:
    controller, terminal = os.openpty()
    flags = [f"--report={tmp_path / report}"] if report else []
    done = subprocess.run([*HLOREWRITE, "exec", *flags, "--", sys.executable, str(WORKER), "0", "0", "1", "4"],
                          env=environment(), stdout=subprocess.PIPE, stderr=terminal, text=True, timeout=120,
                          check=False)
    os.close(terminal)
    said = os.read(controller, 4096).decode()
    os.close(controller)
    assert done.returncode == 0 and done.stdout.count("LOSS") == 3 and said.count("\n") == 1
    assert said.startswith("hlorewrite exec: rewrote 1 of 1 modules that communicate: ")
    assert (str(tmp_path / report) if report else "--report FILE") in said


def test_plans_are_kept_and_replayed(tmp_path: Path) -> None:
    plans, report = tmp_path / "plans", tmp_path / "report.json"
    first = train("--plan", str(plans))
    again = train("--plan", str(plans), "--report", str(report))
    assert first.returncode == again.returncode == 0 and again.stdout == first.stdout and again.stderr == ""
    [step] = json.loads(report.read_text())["modules"]
    assert step["outcome"] == "rewritten" and step["plan"].startswith("replayed from")
    refused = train("--plan", str(plans), "--pass", "comm-shift")
    assert refused.returncode != 0 and "does not fit: passes" in refused.stderr


def test_reports_as_text_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert train("--report", str(page)).returncode == 0
    text = page.read_text()
    assert "jit_train_step" in text
    assert "all_reduce" in text and "What each pass changed: " in text and "What was done: " in text
    said = train("--report", "-").stderr
    assert "remark: applied: comm-shift: " in said and "missed: hierarchical-all-reduce" not in said
    assert said.count("note: hierarchical-all-reduce needs a cluster") == 1
    audit = train("--audit")
    assert "jit_train_step  audited" in audit.stderr
    assert audit.stdout.count("LOSS") == 3


def test_only_what_matches() -> None:
    done = train("--match", "eval_*", "--report", "-")
    assert (done.returncode, done.stderr) == (0, "no module that communicates was compiled\n")


def test_the_hook_reaches_children_and_modules(tmp_path: Path) -> None:
    """A launcher that starts Python, and ``python -m``."""
    (tmp_path / "launcher.py").write_text(
        f"import subprocess, sys\nsys.exit(subprocess.run([sys.executable, {str(WORKER)!r}, '0', '0', '1', '4'])"
        ".returncode + 5)\n")
    done = train("--report", "-", command=(sys.executable, str(tmp_path / "launcher.py")))
    assert done.returncode == 5
    assert "jit_train_step  rewritten" in done.stderr
    done = run(*HLOREWRITE, "exec", "--report", "-", "--", sys.executable, "-m", "launcher",
               PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert done.returncode == 5
    assert "jit_train_step  rewritten" in done.stderr


@pytest.mark.parametrize(("name", "begins"), [("step.mlirbc", b"ML\xefR"), ("step.mlir", b"#loc")])
def test_a_step_is_captured_and_the_program_ends(tmp_path: Path, name: str, begins: bytes) -> None:
    """The file contains the step as JAX passes it to XLA, with the user's source lines; nothing was compiled or run."""
    file = tmp_path / name
    done = train("--capture", str(file), "--match", "train_*")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
    assert f"{file} contains jit_train_step for 8 devices" in done.stderr
    assert file.read_bytes().startswith(begins)
    found = run(*HLOREWRITE, "report", str(file), "--json")
    assert [each["source"].split("/")[-1] for each in json.loads(found.stdout)["collectives"]] == [
        "exec_worker.py:29:23", "exec_worker.py:29:56"]


def test_a_program_that_catches_everything_ends_all_the_same(tmp_path: Path) -> None:
    program = tmp_path / "stubborn.py"
    program.write_text(f"import sys\nsys.argv = ['worker', '0', '0', '1', '4']\nsource = open({str(WORKER)!r}).read()\n"
                       "for _ in range(3):\n    try:\n        exec(source, {'__name__': 'worker'})\n"
                       "    except BaseException as error:\n        print('caught', type(error).__name__)\n")
    done = train("--capture", str(tmp_path / "step.mlirbc"), command=(sys.executable, str(program)))
    assert (done.returncode, done.stdout) == (0, "caught SystemExit\n")


@pytest.mark.parametrize(("words", "more", "why"), [
    (("--match", "eval"), {}, "the program compiled no module for several devices that communicates and is named eval"),
    ((), {"HLOREWRITE": "0"}, "HLOREWRITE=0 is set"),
])
def test_what_is_not_captured_is_said(tmp_path: Path, words: tuple[str, ...], more: dict[str, str], why: str) -> None:
    file = tmp_path / "step.mlirbc"
    done = run(*HLOREWRITE, "exec", "--capture", str(file), *words, "--", sys.executable, str(WORKER), "0", "0", "1",
               "4", **more)
    assert (done.returncode, done.stdout.count("LOSS"), file.exists()) == (1, 3, False)
    assert done.stderr == f"hlorewrite exec: {file} is not written: {why}\n"


def test_a_program_without_jax_is_as_it_was(tmp_path: Path) -> None:
    """Output, exit code, arguments, standard input; a ``sitecustomize`` of the user's own still runs."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.own = 'mine'\n")
    program = tmp_path / "plain.py"
    program.write_text("import sys\nprint(sys.argv[1:], sys.stdin.read(), sys.own)\nsys.exit(9)\n")
    done = subprocess.run([*HLOREWRITE, "exec", "--", sys.executable, str(program), "--", "-O"], input="in",
                          env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}"), capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (9, "['--', '-O'] in mine\n", "")


def test_signals_reach_the_program(tmp_path: Path) -> None:
    """``exec`` becomes the program: it has the same process id, and ends by the same signal."""
    program = tmp_path / "waits.py"
    program.write_text("import os, sys, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    started = subprocess.Popen([*HLOREWRITE, "exec", "--", sys.executable, str(program)], env=environment(),
                               stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert int(started.stdout.readline()) == started.pid
    started.send_signal(signal.SIGTERM)
    assert started.wait(20) == -signal.SIGTERM


def test_the_default_can_be_named() -> None:
    done = subprocess.run([*HLOREWRITE, "exec", "-O", "auto", "--", sys.executable, "-c", "print(1)"],
                          env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.parametrize(("words", "code", "said"), [
    (("-O", "fast"), 2, 'there is no pipeline "fast"'),
    (("--pass", "comm-shfit"), 2, "comm-shift"),
    (("--topology", "nowhere"), 2, "nowhere"),
    (("--capture", "nowhere/step.mlirbc"), 2, "there is no folder nowhere"),
    (("--capture", "step.mlirbc", "--report", "page.html"), 2, "--capture and --report cannot be used together"),
])
def test_mistakes_are_one_line_before_anything_runs(words: tuple[str, ...], code: int, said: str) -> None:
    done = train(*words)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_program_that_is_not_there() -> None:
    done = train(command=("no-such-program",))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert 'there is no program "no-such-program"' in done.stderr


def test_a_python_that_lacks_hlorewrite_runs_unmodified(tmp_path: Path) -> None:
    """One line that says so; here a jax that is a stub, on a path without this package."""
    (tmp_path / "jax.py").write_text("ready = True\n")
    program = tmp_path / "program.py"
    program.write_text("import jax\nprint('runs', jax.ready)\n")
    done = run(*HLOREWRITE, "exec", "--", "env", f"PYTHONPATH={ROOT / 'hlorewrite/jaxbridge/hook/shim'}{os.pathsep}"
               f"{tmp_path}", sys.executable, "-S", "-c", "import site, sys; sys.path[:] = [p for p in sys.path if "
               f"'site-packages' not in p]; import sitecustomize; exec(open({str(program)!r}).read())")
    assert done.stdout == "runs True\n"
    assert done.stderr.count("\n") == 1
    assert "hlorewrite cannot be loaded by" in done.stderr
    assert done.stderr.endswith("install it there; the program runs unmodified\n")


def test_isolated_python_is_named() -> None:
    done = run(*HLOREWRITE, "exec", "--", sys.executable, "-I", "-c", "print('ran')")
    assert done.stdout == "ran\n"
    assert done.stderr == "hlorewrite exec: python -I does not load the hook; the program runs unmodified\n"


def together(patched: list[bool], tmp_path: Path) -> list[tuple[int, str, str]]:
    """Exit code, losses and errors of processes that train together, each under ``exec`` or without."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    running = []
    for process, under in enumerate(patched):
        report = ["--report", str(tmp_path / f"{process}.json")]
        prefix = [*HLOREWRITE, "exec", *report, "--"] if under else []
        running.append(subprocess.Popen(
            [*prefix, sys.executable, str(WORKER), port, str(process), str(len(patched)), "4"],
            env=environment(XLA_FLAGS=EIGHT.replace("=8", "=2")), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True))
    try:
        ended = [process.communicate(timeout=120) for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    return [(process.returncode, "".join(line for line in out.splitlines(True) if line.startswith("LOSS")), err)
            for process, (out, err) in zip(running, ended, strict=True)]


def test_processes_rewrite_together(tmp_path: Path) -> None:
    """Two processes over gloo agree and rewrite; the losses are those of the plain run."""
    plain = together([False, False], tmp_path)
    under = together([True, True], tmp_path)
    assert [row[:2] for row in under] == [row[:2] for row in plain]
    assert plain[0][0] == 0
    assert plain[0][1].count("LOSS") == 3
    [step] = json.loads((tmp_path / "0.json").read_text())["modules"]
    assert step["outcome"] == "rewritten"


def test_rewriting_on_one_process_only(tmp_path: Path) -> None:
    """The other runs without hlorewrite: both run the original, and the patched one says whom it waited for."""
    start = time.monotonic()
    rows = together([True, False], tmp_path)
    assert [row[0] for row in rows] == [0, 0]
    assert rows[0][1] == rows[1][1]
    assert "process 1 (not seen yet): it did not reach this module within 10 s" in rows[0][2]
    [step] = json.loads((tmp_path / "0.json").read_text())["modules"]
    assert step["outcome"] == "original"
    assert time.monotonic() - start < 60
