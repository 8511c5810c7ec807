"""``hlorewrite tune`` that was cut short goes on where it was: by its time limit, by an interrupt, by SIGKILL."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tuned_steps import exported

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None or sys.platform != "linux",
                                reason="compiling for described GPUs needs jax-cuda13-plugin")
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 300


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "hlorewrite", "tune", str(folder / "step.export"), "--target=h200:1x8",
            "--no-compile", *words]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *words), capture_output=True, text=True, check=False,
                          env=environment(**more), timeout=PATIENCE_S)


def cached(cache: Path) -> list[dict]:
    files = list(cache.glob("*.json"))
    return json.loads(files[0].read_text())["points"] if files else []


def children(process: int) -> set[int]:
    """A process's descendants."""
    try:
        found = {int(each) for task in Path(f"/proc/{process}/task").iterdir()
                 for each in (task / "children").read_text().split()}
    except OSError:
        return set()
    return found.union(*map(children, found))


def wait_for(what: str, condition) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A step, and what an uninterrupted search prints; nothing of it is on standard error, which is no terminal."""
    folder = tmp_path_factory.mktemp("tune")
    (folder / "step.export").write_bytes(exported())
    done = run(folder, "--no-cache")
    assert done.returncode == 0 and not done.stderr
    return folder, done.stdout


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_after_a_signal(whole: tuple[Path, str], tmp_path: Path, sent: int, code: int) -> None:
    """All its processes end, the cache is whole, and the next run prints what an uninterrupted one does."""
    folder, expected = whole
    with subprocess.Popen(command(folder, f"--cache={tmp_path}"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment()) as process:
        wait_for("two choices are measured", lambda: len(cached(tmp_path)) >= 2)
        working = children(process.pid)
        assert len(working) >= 2
        process.send_signal(sent)
        said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code and not said[0]
    assert said[1] == (b"hlorewrite: error: interrupted\n" if sent == signal.SIGINT else b"")
    wait_for("all processes end", lambda: not any(Path(f"/proc/{each}/cmdline").exists()
                                                  and Path(f"/proc/{each}/cmdline").read_bytes() for each in working))
    before = cached(tmp_path)
    assert not list(tmp_path.glob(".hlorewrite-*"))
    assert run(folder, f"--cache={tmp_path}").stdout == expected
    assert cached(tmp_path)[:len(before)] == before


def test_after_its_time_limit(whole: tuple[Path, str], tmp_path: Path) -> None:
    """How far it comes depends on the machine; what it writes is whole, and the next run ends the search."""
    folder, expected = whole
    cache, scratch = tmp_path / "cache", tmp_path / "scratch"
    scratch.mkdir()
    begun = time.monotonic()
    cut = run(folder, f"--cache={cache}", "--time-limit=300ms", f"--json={tmp_path / 'a.json'}", TMPDIR=str(scratch))
    assert time.monotonic() - begun < 60 and not cut.stderr
    made = json.loads((tmp_path / "a.json").read_text())
    assert made["left_out"] and made["points"] == cached(cache) and not list(scratch.iterdir())
    assert cut.returncode == (0 if made["frontier"] else 1)
    assert f"time ran out before {made['left_out']} more were tried" in cut.stdout
    assert run(folder, f"--cache={cache}").stdout == expected


def test_on_a_terminal_it_shows_what_is_left(whole: tuple[Path, str]) -> None:
    pty = pytest.importorskip("pty")
    terminal, its_end = pty.openpty()
    with subprocess.Popen(command(whole[0], "--no-cache"), stdout=subprocess.DEVNULL, stderr=its_end,
                          env=environment(TERM="xterm", COLUMNS="160")) as process:
        os.close(its_end)
        written = b""
        with contextlib.suppress(OSError):  # how Linux says that the other side is closed
            while part := os.read(terminal, 65536):  # Ends: the process ends, and with it the terminal.
                written += part
    os.close(terminal)
    assert process.returncode == 0
    shown = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", written.decode(errors="replace"))
    assert re.search(r", about [\d.]+ m?s left", shown) and "hlorewrite: error" not in shown
