"""Shell completion, asked of the shells themselves: what TAB gives."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from hlorewrite.cli.completion import script, whole_parser
from hlorewrite.cli.main import guarded
from hlorewrite.cli.subcommands import available

COMPLETE = """
source ./hlorewrite.bash
line="$1"; spaced="${line//=/ = }"
COMP_LINE="$line"; COMP_POINT=${#line}
read -ra COMP_WORDS <<< "$spaced"
[[ "$line" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p hlorewrite | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" hlorewrite "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scripts and a file to complete."""
    path = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        (path / f"hlorewrite.{shell}").write_text(script(shell))
    (path / "hlorewrite.zsh").rename(path / "_hlorewrite")  # as zsh looks for it
    (path / "complete.bash").write_text(COMPLETE)
    (path / "step.mlir").write_text("module {}\n")
    return path


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


LINES = [
    ("hlorewrite rep", {"report"}),
    ("hlorewrite opt --pass-", {"--pass-pipeline"}),
    ("hlorewrite opt --pass comm", {"comm-shift"}),
    ("hlorewrite opt --pass=comm", {"comm-shift"}),
    ("hlorewrite opt --emit=", {"text", "generic", "bytecode", "portable", "export"}),
    ("hlorewrite opt st", {"step.mlir"}),
    ("hlorewrite rules ", {"list", "show", "check", "prove", "docs"}),
    ("hlorewrite rules show slice-of-all-r", {"slice-of-all-reduce"}),
    ("hlorewrite help hoist", {"hoist-collectives"}),
    ("hlorewrite report step.mlir --topology h2", {"h200"}),
    ("hlorewrite fmt --nothing-of-this-name", set()),
]


@needs("bash")
@pytest.mark.parametrize(("line", "expected"), LINES)
def test_bash_completes(line: str, expected: set[str], folder: Path) -> None:
    done = subprocess.run(["bash", "complete.bash", line], cwd=folder, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected
    assert "compopt" in done.stderr or not done.stderr  # outside readline compopt has nothing to set


@needs("fish")
@pytest.mark.parametrize(("line", "expected"), [case for case in LINES if "=" not in case[0]])
def test_fish_completes(line: str, expected: set[str], folder: Path) -> None:
    command = f"source hlorewrite.fish; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", command], cwd=folder, capture_output=True, text=True,
                          check=True, env=dict(os.environ, HOME=str(folder)))
    words = {completion.split("\t")[0] for completion in done.stdout.splitlines()}
    assert expected <= words, done.stdout + done.stderr
    assert expected or not words


@pytest.mark.parametrize(("command", "prepare"), [
    pytest.param(["bash", "--norc", "--noprofile", "-i"], "source ./hlorewrite.bash", marks=needs("bash")),
    pytest.param(["zsh", "-f", "-i"], "fpath=($PWD $fpath); autoload -Uz compinit; compinit -D -u",
                 marks=needs("zsh")),
])
def test_tab_in_an_interactive_shell(command: list[str], prepare: str, folder: Path) -> None:
    """The keys a user types, on a terminal; the command is a stand-in that prints how it was called."""
    typed = [f"{prepare}; hlorewrite() {{ echo \"GOT<$*>\"; }}; echo REA''DY\n", "hlorewrite opt --pass=comm-sh\t",
             "step.m\t", "\n"]
    assert "GOT<opt --pass=comm-shift step.mlir>" in terminal(command, typed, "READY\n", "GOT<.*>", folder)


def terminal(command: list[str], typed: list[str], ready: str, end: str, folder: Path) -> str:
    """Types into a program on a terminal; returns what the terminal shows."""
    process, handle = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm", COLUMNS="200", LINES="40", HOME=str(folder), PS1="> ", HISTFILE="/dev/null")
        os.execvp(command[0], command)
    try:
        os.write(handle, typed[0].encode())
        shown = _read_until(handle, ready)
        for text in typed[1:]:
            time.sleep(1)  # what is typed before there is a prompt, or over a completion, is not completed
            os.write(handle, text.encode())
        return shown + _read_until(handle, end)
    finally:
        os.close(handle)
        os.kill(process, 9)
        os.waitpid(process, 0)


def _read_until(handle: int, pattern: str) -> str:
    shown, deadline = "", time.monotonic() + 30
    while not re.search(pattern, shown):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([handle], [], [], left)[0]:
            break
        shown += os.read(handle, 65536).decode(errors="replace").replace("\r", "")
    return shown


def test_every_subcommand_is_in_it() -> None:
    text = script("bash")
    assert all(f"'{name}'" in text or f" {name}" in text for name in available())
    assert whole_parser().prog == "hlorewrite"


def test_unknown_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["completion", "tcsh"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
