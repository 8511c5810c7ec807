"""Runs the RUN lines of a golden file in this process, as lit's own shell would with a process for each program.

What the file checks is the text that the command prints, and starting two processes for it takes ten times as long. The
standard streams of a command are files, so that they are buffered as those of a process are.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hlorewrite.cli.main import guarded
from hlorewrite.errors import UsageError
from hlorewrite.util.optional_dependencies import install

SUFFIXES = (".mlir", ".test")
"""How the names of golden files end."""
SKIPPED_FOLDERS = ("Inputs", "Output")
"""Folders with what golden files read, and what lit writes."""
_ROOT_FILES = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_RUN = re.compile(r"\bRUN:\s*(.*)")
_OWN = ("hlorewrite", "filecheck")


def root_of(path: str | os.PathLike[str]) -> Path:
    """The repository that contains a file; ``%root`` expands to it.

    Outside of a repository it is the outermost folder with a ``conftest.py``, and the file's own where there is none.
    """
    above = Path(path).resolve().parents
    repository = next((folder for folder in above if any((folder / name).exists() for name in _ROOT_FILES)), None)
    return repository or next((folder for folder in reversed(above) if (folder / "conftest.py").exists()), above[0])


def run_lines(path: Path, folder: Path) -> list[str]:
    """The RUN lines of a file, lines that end in a backslash joined, with lit's substitutions.

    Args:
      path: the file.
      folder: where ``%t`` is.
    """
    lines: list[str] = []
    for match in _RUN.finditer(path.read_text("utf-8", "replace")):
        if lines and lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\") + match.group(1).rstrip()
        else:
            lines.append(match.group(1).rstrip())
    values = {"hlorewrite": "hlorewrite", "filecheck": "filecheck", "python": sys.executable, "s": str(path),
              "S": str(path.parent), "root": str(root_of(path)), "t": str(folder / "t")}
    found = re.compile("%%|%(" + "|".join(sorted(values, key=len, reverse=True)) + r")\b|%t")
    return [found.sub(lambda match: "%" if match.group() == "%%" else values[match.group()[1:]], line)
            for line in lines]


def failure(path: Path, folder: Path) -> str:
    """The output of the first RUN line that fails; nothing if all succeed.

    Args:
      path: the golden file.
      folder: an empty folder, where the commands run.

    Raises:
      UsageError: lit or filecheck is not installed.
    """
    parser = _parser()
    for line in run_lines(path, folder):
        printed = folder / "printed"
        printed.write_bytes(b"")
        if _run(parser(line, pipefail=True).parse(), folder, printed):
            return f"RUN: {line}\n{printed.read_text('utf-8', 'replace')}"
    return ""


def _parser() -> Any:
    try:
        import filecheck.main  # noqa: F401
        from lit.ShUtil import ShParser
    except ImportError as error:
        raise UsageError(f"golden files need lit and filecheck ({error})", hint=install("testing")) from None
    return ShParser


def _run(command: Any, folder: Path, printed: Path) -> int:
    """The exit code of what lit's parser reads from a line; what is neither piped nor redirected is appended."""
    from lit.ShCommands import Pipeline, Seq
    if isinstance(command, Seq):
        code = _run(command.lhs, folder, printed)
        if command.op in ("&&", "||") and (code == 0) != (command.op == "&&"):
            return code
        return _run(command.rhs, folder, printed)
    assert isinstance(command, Pipeline), command
    codes, read = [], Path(os.devnull)
    for at, each in enumerate(command.commands):
        last = at == len(command.commands) - 1
        out = printed if last else folder / f"pipe{at}"
        if not last:
            out.write_bytes(b"")
        codes.append(_program(list(each.args), each.redirects, (read, out, printed), folder))
        read = out
    failed = next((code for code in reversed(codes) if code), 0)
    return int(failed == 0) if command.negate else failed


def _program(words: list[str], redirects: Sequence[Any], streams: tuple[Path, Path, Path], folder: Path) -> int:
    """The exit code of one program; ``not`` before it inverts success and failure."""
    if words[0] == "not":
        return int(_program(words[1:], redirects, streams, folder) == 0)
    read, out, error = streams
    for (operator, *number), target in redirects:
        if operator == "<":
            read = Path(target)
        elif operator == ">&" and (number, target) == ([2], "1"):
            error = out
        elif operator in (">", ">>", "&>"):
            if operator != ">>":
                Path(target).write_bytes(b"")
            if number == [2] or operator == "&>":
                error = Path(target)
            if number != [2]:
                out = Path(target)
        else:
            raise ValueError(f"unknown redirection: {operator}{number} {target}")
    with open(read, "rb") as source, open(out, "ab") as to, open(error, "ab") as to_error:
        if words[0] not in _OWN:
            return subprocess.run(words, cwd=folder, stdin=source, stdout=to, stderr=to_error, check=False).returncode
    with _streams(read, out, error, folder):
        if words[0] == "hlorewrite":
            return guarded(words[1:])
        from filecheck.main import main as filecheck
        try:
            filecheck(words)
        except SystemExit as leave:
            return leave.code if isinstance(leave.code, int) else 1
    return 0


@contextmanager
def _streams(read: Path, out: Path, error: Path, folder: Path) -> Iterator[None]:
    """The standard streams, the working directory and the environment of a program of lit."""
    kept = sys.stdin, sys.stdout, sys.stderr, os.getcwd(), dict(os.environ)
    with (open(read, encoding="utf-8") as source, open(out, "a", encoding="utf-8") as to,
          open(error, "a", 1, encoding="utf-8") as to_error):
        sys.stdin, sys.stdout, sys.stderr = source, to, to_error
        os.environ.update(COLUMNS="100", FILECHECK_OPTS="--enable-var-scope")
        os.chdir(folder)
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = kept[:3]
            os.chdir(kept[3])
            os.environ.clear()
            os.environ.update(kept[4])
