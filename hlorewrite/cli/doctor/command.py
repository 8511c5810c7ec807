"""``hlorewrite doctor``: what is installed, which settings hold, a self-test, and what works here."""

import argparse
import json
import os
from collections.abc import Sequence

from hlorewrite.cli.doctor.diagnosis import Diagnosis
from hlorewrite.util.optional_dependencies import install

HELP = ("check Python, JAX, plug-ins, extras and settings, and test in a few seconds what works here; exit code 1 for "
        "a fault")
_MARKS = {"ok": "", "note": "note", "missing": "missing", "wrong": "WRONG"}
_WORKS = {"read a module": "reading modules", "run a pass": "rewriting", "run on CPU devices": "running on CPU devices",
          "compile for a described GPU": "compiling for described GPUs", "devices": "finding devices"}
"""Step of the self-test -> what works with it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite doctor``."""
    parser.add_argument("--no-self-test", action="store_true", help="run nothing; only list versions and settings")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite doctor``."""
    from hlorewrite.cli.doctor.installation import cuda_plugin, extras, installed, python_and_packages
    from hlorewrite.cli.doctor.settings import settings
    from hlorewrite.cli.doctor.tested import self_test
    from hlorewrite.util.progress import progress

    found = [*python_and_packages(), *extras(), *settings(os.environ)]
    if not args.no_self_test and installed("jax") and installed("jaxlib"):
        with progress("self-test"):
            found += self_test(cuda_plugin())
    faults = [finding for finding in found if finding.state == "wrong"]
    verdict = summary(found)
    print(json.dumps({"ok": not faults, "summary": verdict, "findings": [each.as_json() for each in found]}, indent=2)
          if args.json else f"{text(found)}\n{verdict}")
    return 1 if faults else 0


def text(found: Sequence[Diagnosis]) -> str:
    """The findings by topic, as aligned columns; a fix is shown under its line.

    Example:
      >>> print(text([Diagnosis("extras", "viz", "missing", "pictures", "pip install 'hlorewrite[viz]'")]), end="")
      extras
        viz  missing  pictures
             fix: pip install 'hlorewrite[viz]'
    """
    name = max(len(each.name) for each in found)
    mark = max(len(_MARKS[each.state]) for each in found)
    lines, topic = [], ""
    for each in found:
        if each.topic != topic:
            topic = each.topic
            lines.append(topic)
        lines.append(f"  {each.name:<{name}}  {_MARKS[each.state]:<{mark}}  {each.text}".rstrip())
        if each.fix:
            lines.append(f"  {'':<{name}}  fix: {each.fix}")
    return "".join(f"{line}\n" for line in lines)


def summary(found: Sequence[Diagnosis]) -> str:
    """What works here and what does not, with the fixes; the extras that are not installed, with one fix for all.

    Example:
      >>> summary([Diagnosis("self-test", "run a pass", "ok", "done"),
      ...          Diagnosis("extras", "prove", "missing", "", "pip ..."),
      ...          Diagnosis("extras", "viz", "missing", "", "pip ...")])
      "works here: rewriting; optional, not installed: prove, viz (pip install 'hlorewrite[prove,viz]')"
    """
    works = [_WORKS.get(each.name, each.name) for each in found if each.topic == "self-test" and each.state == "ok"]
    parts = [f"works here: {', '.join(works) if works else 'nothing was tested'}"]
    for state, word in (("wrong", "does not work"), ("note", "mind")):
        those = [f"{_WORKS.get(each.name, each.name)} ({each.fix})" if each.fix else each.name
                 for each in found if each.state == state]
        parts += [f"{word}: {', '.join(dict.fromkeys(those))}"] if those else []
    lacking = [each.name for each in found if each.state == "missing" and each.topic == "extras"]
    parts += [f"optional, not installed: {', '.join(lacking)} ({install(','.join(lacking))})"] if lacking else []
    return "; ".join(parts)
