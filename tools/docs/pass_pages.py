"""A page for each pass: its docstring, its options, and what it does to the first module of a golden file."""

from __future__ import annotations

import re
from pathlib import Path

from markup import fence, table, toctree
from rule_pages import case_of

from hlorewrite.cli.opt.pass_help import pass_help
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.options import options_of
from hlorewrite.passmanager.registry import built_in_passes, find_pass, help_line
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "lit" / "passes"
SHOWN = {"comm-shift": "psum.mlir"}
"""The golden file that shows a pass best, where it is not the first one in which the pass does something."""
_PIPELINE = re.compile(r"^// RUN: %hlorewrite opt %s (?:.*? )?--pass=('?)(?P<pipeline>\S+)\1", re.MULTILINE)


def pass_pages() -> dict[str, str]:
    """Every page about passes, by name under ``reference/passes/``."""
    names = sorted(built_in_passes())
    pages = {f"{name}.md": pass_page(name) for name in names}
    rows = [(f"[{name}]({name}.md)", help_line(find_pass(name))) for name in names]
    pipelines = [(f"`-O {name}`", f"`{text}`") for name, text in sorted(PIPELINES.items())]
    pages["index.md"] = "\n".join([
        "# Passes", "", "Made from the passes themselves; the examples are run when this site is built. Passes of MLIR "
        "that jaxlib brings can be named too: `hlorewrite opt --list-passes` lists all.", "",
        table(("pass", "what it does"), rows), "Named pipelines:", "", table(("name", "pipeline"), pipelines),
        toctree(names, hidden=True)])
    return pages


def pass_page(name: str) -> str:
    """The page of one pass.

    Args:
      name: the pass's name.

    Returns:
      Markdown.
    """
    cls = find_pass(name)
    prose = re.split(r"^  |^It takes no options", pass_help(name), maxsplit=1, flags=re.MULTILINE)[0]
    prose = prose.removeprefix(f"{name}: ").strip()
    rows = [(f"`{o.name}`", o.kind, f"`{o.default}`" if o.default is not None else "must be given", o.help)
            for o in options_of(cls)]
    lines = [f"# {name}", "", prose.replace("``", "`"), "", "## Options", "",
             table(("option", "type", "default", "meaning"), rows) or "It takes no options.", "",
             f"On the command line: `hlorewrite opt --pass='{name}{_option_hint(cls)}' in.mlir`.", ""]
    return "\n".join([*lines, *_example(name)])


def _option_hint(cls: type) -> str:
    first = next((o for o in options_of(cls) if o.default not in (None, "")), None)
    return f"{{{first.name}={first.default}}}" if first else ""


def _example(name: str) -> list[str]:
    """What the pass does to the first golden module that it changes; nothing when no golden file shows it."""
    for path in _golden_files(name):
        text = path.read_text(encoding="utf-8")
        match = _PIPELINE.search(text)
        if match is None or not match.group("pipeline").startswith(name):
            continue
        pipeline = match.group("pipeline").strip("'\"")
        topology = re.search(r"--topology=(\S+)", text)
        for part in re.split(r"^// -----$", text, flags=re.MULTILINE):
            module, recorder = parse(case_of(part).text), Recorder()
            before = module.text()
            context = PassContext((recorder,), ignore_cost="--ignore-cost" in text,
                          topology=topology[1] if topology else "")
            if not run_passes(module, parse_pipeline(pipeline), context):
                continue
            remarks = [f"* {remark.kind}: {remark.sentence}" for remark in recorder.remarks if remark.kind == "applied"]
            return ["## Example", "", f"`{path.relative_to(ROOT)}` with `--pass='{pipeline}'`. Before:", "",
                    fence("mlir", before), "After:", "", fence("mlir", module.text()),
                    *(["It says:", "", *dict.fromkeys(remarks)] if remarks else []), ""]
    return []


def _golden_files(name: str) -> list[Path]:
    folder = GOLDEN / name
    files = sorted(folder.rglob("*.mlir")) if folder.is_dir() else [GOLDEN / f"{name}.mlir"]
    return sorted((path for path in files if path.exists()), key=lambda path: path.name != SHOWN.get(name))
