"""Runs what a page shows, as its reader would: ``python tools/docs/run_page.py [--update] [--slow] PAGE...``.

A page is run in a copy of the project, with ``hlorewrite`` and ``python`` on the path. ``--update`` writes what the
commands print into the page (where it already shows something, and where no ``...`` stands). ``--list`` names the
blocks that are not run, with their reasons.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from blocks import CodeBlock, Command, WrongBlock, blocks_of, commands_of
from python_session import PythonSession
from warm_process import WarmServer

ROOT = Path(__file__).resolve().parent.parent.parent
OLDEST_JAXLIB = "0.10."
PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
"""Pages outside ``docs/`` that are run too."""
_TIME = re.compile(r"\b\d[\d.,]*(?:e[+-]?\d+)? ?(?:ns|us|µs|ms|s|min)\b")
_TIME_HEADING = re.compile(r"(?<=\S) (?:us|ms|s)(?=  |$)")
_NUMBER = re.compile(r"(?<=  )[\d.]+(?=  |$)")
NOISE = re.compile(r"^(?:W\d{4} |I\d{4} |WARNING: All log messages before absl).*\n", re.MULTILINE)


@dataclass
class Result:
    """What came of a page.

    Attributes:
      failures: a sentence for each block that did not do what the page says.
      left_out: blocks that were not run, with the reason.
      outputs: what commands and outputs printed, by line of the page; for ``--update``.
    """

    failures: list[str] = field(default_factory=list)
    left_out: list[tuple[CodeBlock, str]] = field(default_factory=list)
    outputs: dict[int, tuple[Command | CodeBlock, str]] = field(default_factory=dict)


def pages() -> list[Path]:
    """Every page with blocks to run."""
    return [ROOT / name for name in PAGES] + sorted((ROOT / "docs").rglob("*.md"))


def copy_project(target: Path) -> None:
    """A copy of the project without version control and build products, with an environment next to it."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in os.fsdecode(listed.stdout).split("\0") if name]
        names += [str(p.relative_to(ROOT)) for folder in ("hlorewrite", "passes", "patterns")  # starts twice as fast
                  for ending in ("pyc", "tree") for p in (ROOT / folder).rglob(f"*.{ending}")]
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if not _generated(p.relative_to(ROOT))]
    for name in names:
        source, there = ROOT / name, target / name
        if source.is_symlink() or source.is_file():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, there, follow_symlinks=False)
    (target / ".venv").symlink_to(sys.prefix, target_is_directory=True)


def _generated(path: Path) -> bool:
    return path.parts[0] in ("build", "dist") or any(part.startswith(".") for part in path.parts)


def environment(*programs: Path) -> dict[str, str]:
    """The environment of a reader on a machine without a GPU: the tools on the path, nothing set that a page shows.

    XLA leaves out LLVM's optimisations, which take most of its time.

    Args:
      programs: folders that are searched for programs before the others.
    """
    bin_folders = [*map(str, programs), str(Path(sys.prefix) / "bin"), str(Path(sys.executable).parent),
                   os.environ.get("PATH", "")]
    kept = {key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "HLOREWRITE", "PYTHONPATH")}
    return dict(kept, PATH=os.pathsep.join(bin_folders), COLUMNS="120", NO_COLOR="1", JAX_PLATFORMS="cpu",
                TF_CPP_MIN_LOG_LEVEL="3", GLOG_minloglevel="3", XLA_FLAGS="--xla_backend_optimization_level=0")


def page_server() -> WarmServer:
    """What starts the programs of pages. It holds nothing of the project: each page has its own copy."""
    return WarmServer(environment(), ("jax", "jax.export", "jaxlib.mlir.dialects.sdy", "lark", "rich.table"))


def run_page(path: Path, server: WarmServer, *, slow: bool = False) -> Result:
    """Runs the blocks of a page in order, in a fresh copy of the project.

    Args:
      path: the page.
      server: starts its programs (``page_server``).
      slow: also run blocks marked ``nightly``.

    Returns:
      What failed, and what was left out.

    Raises:
      WrongBlock: the page contains a block that cannot be run.
    """
    blocks = blocks_of(path, path.relative_to(ROOT).as_posix())
    result = Result()
    if not any(block.language in ("console", "python", "hlopat") or block.file for block in blocks):
        return result
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_project(folder)
        variables = dict(environment(server.folder), PYTHONPATH=str(folder))
        with PythonSession(folder, variables) as session:
            _run_blocks(blocks, folder, variables, session, result, slow)
    return result


def _run_blocks(blocks: list[CodeBlock], folder: Path, variables: dict[str, str], session: PythonSession,
                result: Result, slow: bool) -> None:
    printed = ""
    for at, block in enumerate(blocks):
        if block.not_run or (block.nightly and not slow):
            result.left_out.append((block, block.not_run or f"nightly: {block.nightly}"))
            if block.nightly:  # what follows may need its files
                result.left_out += [(later, f"nightly: follows {block.place}") for later in blocks[at + 1:]]
                return
        elif block.output:
            result.outputs[block.line] = block, printed
            if _compared(block) and not matches(block.text, printed, block.times_vary):
                result.failures.append(f"{block.place}: printed something else:\n{printed}")
        elif block.file:
            _write(folder / block.file, block)
        elif block.language == "python":
            printed, error = session.run(block.text, f"{Path(block.page).stem}.py")
            if error:
                result.failures.append(f"{block.place}: {error}")  # its line numbers count from the block's first line
        elif block.language == "hlopat":
            _check_rules(block, folder, variables, result)
        else:
            _run_console(block, folder, variables, result)


def _compared(block: CodeBlock) -> bool:
    """Whether the jaxlib that runs the page prints what the page shows."""
    return not block.versions_vary or version("jaxlib").startswith(OLDEST_JAXLIB)


def _write(path: Path, block: CodeBlock) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a" if block.append else "w", encoding="utf-8") as file:
        file.write(block.text)


def _check_rules(block: CodeBlock, folder: Path, variables: dict[str, str], result: Result) -> None:
    name = folder / "snippet.hlopat"
    name.write_text(block.text, encoding="utf-8")
    code, printed = _shell("hlorewrite rules check --static snippet.hlopat", folder, variables)
    if code:
        result.failures.append(f"{block.place}: {printed}")


def _run_console(block: CodeBlock, folder: Path, variables: dict[str, str], result: Result) -> None:
    commands = commands_of(block)
    for command in commands:
        code, printed = _shell(command.text, folder, variables)
        wanted = block.exit_code if command is commands[-1] else 0
        place = f"{block.page}:{command.line}"
        if code != wanted:
            result.failures.append(f"{place}: exit code {code}, not {wanted}:\n$ {command.text}\n{printed}")
        elif command.expected:
            result.outputs[command.line] = command, printed
            if _compared(block) and not matches(command.expected, printed, block.times_vary):
                result.failures.append(f"{place}: printed something else:\n$ {command.text}\n{printed}")


def _shell(text: str, folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(["bash", "-c", text], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, NOISE.sub("", done.stdout).replace(f"{folder}/", "")


def matches(expected: str, printed: str, times_vary: bool = False) -> bool:
    """Whether a program printed what the page shows.

    Args:
      expected: what the page shows; ``...`` stands for anything.
      printed: what the program printed.
      times_vary: any duration is as good as another.

    Example:
      >>> matches("op  time s  calls\\nf     1.25      3", "op  time s  calls\\nf     2.5       3", times_vary=True)
      False
      >>> matches("op  time s  calls\\nf     1.25      3", "op  time s  calls\\nf      2.5      3", times_vary=True)
      True
      >>> matches("a\\n...\\nd ... f\\n", "a\\nb\\nc\\nd e f\\n"), matches("took 2 s", "took 13.5 s", times_vary=True)
      (True, True)
    """
    if times_vary:
        expected, printed = (re.sub(r"[ -]{2,}", "  ", _TIME.sub("TIME", _without_times(text)))
                             for text in (expected, printed))
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip() + "\n") is not None


def _without_times(text: str) -> str:
    """The text with a mark for each number under a heading that ends in a unit of time; a blank line ends a table."""
    ends: set[int] = set()
    lines = []
    for line in text.splitlines():
        heads = {match.end() for match in _TIME_HEADING.finditer(line)}
        ends = heads or (ends if line.strip() else set())
        lines.append(line if heads else _NUMBER.sub(
            lambda number, ends=ends: "TIME" if number.end() in ends else number.group(), line))
    return "\n".join(lines) + "\n"


def updated(text: str, result: Result) -> str:
    """A page with what its commands print now.

    Args:
      text: the page.
      result: what running it gave.

    Returns:
      The page; outputs with ``...`` are left as they are.
    """
    lines = text.splitlines()
    for line in sorted(result.outputs, reverse=True):
        shown, printed = result.outputs[line]
        old = shown.expected if isinstance(shown, Command) else shown.text
        if "..." in old:
            continue
        start = line - 1 + (len(shown.text.splitlines()) if isinstance(shown, Command) else 0)
        lines[start:start + len(old.splitlines())] = printed.rstrip().splitlines()
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="default: all")
    parser.add_argument("--update", action="store_true", help="write what is printed into the pages")
    parser.add_argument("--slow", action="store_true", help="run blocks marked nightly too")
    parser.add_argument("--list", action="store_true", help="run nothing; name the blocks that are not run")
    args = parser.parse_args()
    failed = False
    with page_server() as server:
        for path in [page.resolve() for page in args.pages] or pages():
            try:
                if args.list:
                    _list(path)
                    continue
                result = run_page(path, server, slow=args.slow)
            except WrongBlock as error:
                print(error)
                failed = True
                continue
            if args.update:
                path.write_text(updated(path.read_text(encoding="utf-8"), result), encoding="utf-8")
            for failure in result.failures:
                print(failure)
            failed = failed or bool(result.failures)
    return 1 if failed else 0


def _list(path: Path) -> None:
    for block in blocks_of(path, path.relative_to(ROOT).as_posix()):
        if block.not_run or block.nightly:
            print(f"{block.place}: {block.not_run or f'nightly: {block.nightly}'}")


if __name__ == "__main__":
    sys.exit(main())
