"""Checks the rules and facts of a file in a separate process: the interpreter ends its process on some programs.

``python -m hlorewrite.checks.reference.rule_checks.worker FILE PROGRAMS START [NATIVES...]`` prints a JSON line for
each rule and fact from START on.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hlorewrite.checks.reference.rule_checks.facts import check_fact
from hlorewrite.checks.reference.rule_checks.rules import check_rule
from hlorewrite.rules.compile.checks import bind
from hlorewrite.rules.facts import CompiledFact
from hlorewrite.rules.library import RuleFile, checked, load, read_source
from hlorewrite.rules.register import load_natives
from hlorewrite.util.parent_process import end_with_parent


def results(file: str, programs: int, start: int) -> Iterator[dict[str, Any]]:
    """Executes each rule and fact of a file; returns the results as plain data.

    Args:
      file: a path, or the name of a shipped file.
      programs: how many programs to generate for each rule.
      start: how many rules and facts to skip.
    """
    source = read_source(file)
    natives = bind(checked(source)[1], source.name)
    for item in items(load(file))[start:]:
        verdict = (check_fact(item, natives) if isinstance(item, CompiledFact)
                   else check_rule(item, natives, programs=programs))
        yield asdict(verdict)


def items(loaded: RuleFile) -> list[Any]:
    """The rules and then the facts of a file."""
    return [*loaded.rules, *loaded.facts]


def results_in_subprocess(file: str, programs: int, tell: Callable[[int, int, str], None],
                          natives: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The same in a separate process, started again after a rule that ends it.

    Args:
      file: a path, or the name of a shipped file.
      programs: how many programs to generate for each rule.
      tell: called with the number done, the number of all, and the name of the next one.
      natives: modules that register natives, for the process to import.
    """
    every, rows = items(load(file)), list[dict[str, Any]]()
    # Ends: each round adds a row at least, for the item that ended its process.
    while len(rows) < len(every):
        tell(len(rows), len(every), every[len(rows)].name)
        command = [sys.executable, "-m", __name__, file, str(programs), str(len(rows)), *natives]
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said,
                                                                    text=True) as process:
            for line in process.stdout or ():
                rows.append(json.loads(line))
                if len(rows) < len(every):
                    tell(len(rows), len(every), every[len(rows)].name)
            process.wait()
            said.seek(0)
            why = said.read().strip().rpartition("\n")[2] if process.returncode > 0 else ""
        if process.returncode != 0 and len(rows) < len(every):
            item = every[len(rows)]
            rows.append({"rule": item.name, "location": item.location, "programs": 0, "rewritten": 0, "wrong": [],
                         "not_generated": _ended(process.returncode, why),
                         "conditions": [], "executed": 0})
    return rows


def _ended(status: int, why: str) -> str:
    """How a process ended that executed a rule: Python's last line, or the interpreter crashed.

    Example:
      >>> _ended(1, "KeyError: 'x'")
      "a native or the rule raised KeyError: 'x'; HLOREWRITE_TRACEBACK=1 opt --rules=FILE shows where"
      >>> _ended(-6, "")
      "the interpreter's process ended with status -6"
    """
    if not why:
        return f"the interpreter's process ended with status {status}"
    return f"a native or the rule raised {why}; HLOREWRITE_TRACEBACK=1 opt --rules=FILE shows where"


if __name__ == "__main__":
    end_with_parent()
    load_natives(sys.argv[4:])
    for row in results(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(json.dumps(row), flush=True)
