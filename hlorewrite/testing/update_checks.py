"""Writes the CHECK lines of golden files from what their RUN lines print now.

Usage: ``python -m hlorewrite.testing.update_checks FILE...``. For each ``// RUN: COMMAND | %filecheck %s
[--check-prefix=P]`` the command is run and its output turned into ``P-LABEL``/``P-SAME``/``P-NEXT`` lines above the
function of that name, SSA names captured under names made from their ops. Hand-written ``P-NOT`` lines stay, all other
lines with the prefix are replaced. A file whose command fails is left alone. The result pins down what is printed:
delete what the test is not about, so that it says its intent.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.testing.golden import root_of

_RUN = re.compile(r"^//\s*RUN:\s*(?P<command>.*?)\s*\|\s*%filecheck\s+%s(?P<flags>.*)$")
_FUNCTION = re.compile(r"^\s*func\.func (?:public |private )?@(?P<name>[\w$.-]+)")
_SSA = re.compile(r"%(?P<name>[A-Za-z_0-9$.-]+)(?P<rest>:\d+(?= =)|#\d+)?")
_DEFINITION = re.compile(r'^\s*%[\w$.-]+(?::\d+)? = "?(?:\w+\.)*(?P<op>\w+)')
_NAME = "[A-Za-z0-9_]+"


class CannotUpdate(Exception):
    """A file that must be left alone; the sentence says why."""


@dataclass
class Namer:
    """FileCheck variables for the SSA names of one function.

    Attributes:
      names: SSA name to variable, as far as it has been seen.
      counts: how many variables each op has given.
    """

    names: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def pattern(self, line: str) -> str:
        """A line of output as a FileCheck pattern: new names captured, known ones referred to."""
        defining = _DEFINITION.match(line)
        stem = defining.group("op").upper() if defining else "ARG"
        out, at = [], 0
        for match in _SSA.finditer(line):
            out.append(escaped(line[at:match.start()]))
            out.append(self._variable(match.group("name"), stem) + (match.group("rest") or ""))
            stem = "ARG"
            at = match.end()
        return "".join([*out, escaped(line[at:])]).strip()

    def _variable(self, name: str, stem: str) -> str:
        if name in self.names:
            return f"%[[{self.names[name]}]]"
        number = self.counts.get(stem, 0)
        self.counts[stem] = number + 1
        self.names[name] = f"{stem}_{number}"
        return f"%[[{self.names[name]}:{_NAME}]]"


def escaped(text: str) -> str:
    """Escapes text for FileCheck: each ``[[`` and ``{{`` becomes a regular expression that matches it literally."""
    return re.sub(r"\[\[+|\{\{+", lambda m: "{{" + re.sub(r"(.)", r"\\\1", m.group(0)) + "}}", text)


def function_checks(output: str, prefix: str) -> dict[tuple[str, int], list[str]]:
    """The check lines of each function of an output, by its name and how many of that name precede it.

    Args:
      output: what a RUN line printed.
      prefix: its check prefix.

    Returns:
      Comment lines in order.
    """
    by_function: dict[tuple[str, int], list[str]] = {}
    seen: Counter[str] = Counter()
    lines = output.splitlines()
    for start, line in enumerate(lines):
        function = _FUNCTION.match(line)
        if not function:
            continue
        indent = len(line) - len(line.lstrip())
        end = next((k for k in range(start + 1, len(lines)) if lines[k] == " " * indent + "}"), start)
        head, parenthesis, rest = line.strip().partition("(")
        namer = Namer()
        checks = [f"// {prefix}-LABEL: {head}", f"// {prefix}-SAME: {namer.pattern(parenthesis + rest)}"]
        checks += [f"// {prefix}-NEXT: {namer.pattern(body)}" for body in lines[start + 1:end + 1]]
        name = function.group("name")
        by_function[name, seen[name]] = checks
        seen[name] += 1
    return by_function


def run_command(command: str, path: Path) -> str:
    """The output of a RUN line.

    Raises:
      CannotUpdate: it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, value in (("%hlorewrite", f"{sys.executable} -m hlorewrite"), ("%python", sys.executable),
                            ("%s", str(path)), ("%S", str(path.parent)), ("%root", str(root_of(path))),
                            ("%t", os.path.join(folder, "t"))):
            command = command.replace(name, value)
        done = subprocess.run(command, shell=True, cwd=root_of(path), capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}: {command}"
        raise CannotUpdate(f"{path}: its RUN line fails: {said}")
    return done.stdout


def updated(text: str, path: Path) -> str:
    """The content of a golden file with new check lines.

    Raises:
      CannotUpdate: it has no RUN line that pipes into filecheck, or one fails.
    """
    runs = [match for match in map(_RUN.match, text.splitlines()) if match]
    runs = [run for run in runs if not run.group("command").startswith("not ")]
    if not runs:
        raise CannotUpdate(f"{path}: no RUN line pipes into %filecheck %s")
    checks: dict[str, dict[tuple[str, int], list[str]]] = {}
    for run in runs:
        flag = re.search(r"--check-prefix=(\S+)", run.group("flags"))
        prefix = flag.group(1) if flag else "CHECK"
        by_function = function_checks(run_command(run.group("command"), path), prefix)
        if checks.setdefault(prefix, by_function) != by_function:
            raise CannotUpdate(f"{path}: two RUN lines of prefix {prefix} print different things")
    old = re.compile(rf"^\s*//\s*(?:{'|'.join(checks)})(?!-NOT)(?:-[A-Z]+)?:")
    out: list[str] = []
    written: Counter[str] = Counter()
    for line in text.splitlines():
        if old.match(line):
            continue
        function = _FUNCTION.match(line)
        if function:
            key = function.group("name"), written[function.group("name")]
            written[key[0]] += 1
            out += [check for by_function in checks.values() for check in by_function.get(key, ())]
        out.append(line)
    for by_function in checks.values():  # functions that only the output holds
        out += [line for (name, number), lines in by_function.items() if number >= written[name] for line in lines]
    return "\n".join(out) + "\n"


def main(names: list[str]) -> int:
    """Updates files; returns 1 when one had to be left alone."""
    if not names or names[0].startswith("-"):
        print(__doc__)
        return 0 if names else 2
    failed = 0
    for path in map(Path, names):
        try:
            text = path.read_text(encoding="utf-8")
            new = updated(text, path.resolve())
        except (CannotUpdate, OSError) as error:
            print(error, file=sys.stderr)
            failed = 1
            continue
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"updated {path}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
