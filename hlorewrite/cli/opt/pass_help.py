"""``--list-passes``, ``--list-rules``, ``help PASS``."""

import inspect
import json

from hlorewrite.passmanager.mlir_pass import MLIR_PASSES
from hlorewrite.passmanager.named import ABOUT, AUTO, PIPELINES
from hlorewrite.passmanager.options import options_of
from hlorewrite.passmanager.registry import all_passes, find_pass, help_line
from hlorewrite.passmanager.spec import parse_pipeline


def pass_help(name: str) -> str:
    """The output of ``hlorewrite help PASS``.

    Args:
      name: the pass's name.

    Returns:
      Its docstring without the sections about Python, and its options with types and defaults.

    Raises:
      UsageError: no such pass.

    Example:
      >>> print(pass_help("cse"))
      cse: Removes ops that compute what another op already computes.
      <BLANKLINE>
      A pass of MLIR, run by jaxlib; it works on the module or on functions.
      <BLANKLINE>
    """
    if name in MLIR_PASSES:
        entry = MLIR_PASSES[name]
        where = {"any": "the module or on functions", "module": "the module", "function": "functions"}[entry.anchor]
        return f"{name}: {entry.help}\n\nA pass of MLIR, run by jaxlib; it works on {where}.\n"
    cls = find_pass(name)
    doc = inspect.cleandoc(cls.__doc__ or "")
    prose = "\n".join(_prose(doc.splitlines()))
    lines = [f"{name}: {prose.rstrip()}", ""]
    for option in options_of(cls):
        default = f", default {option.default}" if option.default is not None else ", must be given"
        lines.append(f"  {option.name}: {option.kind}{default}")
        if option.help:
            lines.append(f"      {option.help}")
    if not options_of(cls):
        lines.append("It takes no options.")
    return "\n".join(lines) + "\n"


def pipeline_help(name: str) -> str:
    """The output of ``hlorewrite help PIPELINE``: its passes in the order in which they run, one per line.

    Args:
      name: the name of a named pipeline, or ``auto``.

    Example:
      >>> print(pipeline_help("comm").splitlines()[0])
      comm: Every pass whose result is estimated to communicate no more than before.
    """
    lines = [f"{name}: {ABOUT[name]}", ""]
    if name == AUTO:
        return "\n".join([*lines, *(f"  -O {each:<4}  {ABOUT[each]}" for each in PIPELINES)]) + "\n"
    steps = parse_pipeline(PIPELINES[name])
    width = max(len(str(step)) for step in steps)
    lines.append(f"-O {name} runs in this order:")
    lines += [f"  {place:>2}  {step!s:<{width}}  {help_line(type(step))}" for place, step in enumerate(steps, 1)]
    lines += ["", "`hlorewrite help PASS` shows the options of one."]
    return "\n".join(lines) + "\n"


def _prose(lines: list[str]) -> list[str]:
    """Docstring lines without Attributes and Example sections."""
    kept: list[str] = []
    skipping = False
    for line in lines:
        if line in ("Attributes:", "Example:", "Args:", "Raises:"):
            skipping = True
        elif skipping and line and not line.startswith(" "):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept


def list_passes(as_json: bool) -> str:
    """What ``--list-passes`` prints; JSON contains passes alone."""
    infos = all_passes()
    if as_json:
        return json.dumps([{"name": i.name, "help": i.help, "origin": i.origin} for i in infos], indent=2) + "\n"
    width = max(len(info.name) for info in infos)
    out = []
    for origin in dict.fromkeys(info.origin for info in infos):
        out.append({"built-in": "Passes of hlorewrite:", "mlir": "Passes of MLIR (jaxlib):"}.get(
            origin, f"Passes of {origin}:"))
        out += [f"  {info.name:<{width}}  {info.help}" for info in infos if info.origin == origin]
    out.append("Pipelines (-O NAME, or a name in pipeline text):")
    out += [f"  {name:<{width}}  {text}" for name, text in PIPELINES.items()]
    return "\n".join(out) + "\n"
