"""The reference of the command line, made from the parsers that read it."""

from __future__ import annotations

import argparse
import re

from markup import fence, table, toctree

from hlorewrite.cli.parser import Parser
from hlorewrite.cli.subcommands import available, subcommand

EXIT_CODES = [("0", "ok"), ("1", "a pass, a check or a file failed"), ("2", "the command line is wrong"),
              ("3", "values differ")]


def cli_pages() -> dict[str, str]:
    """Every page about the command line, by name under ``reference/cli/``."""
    names = available()
    pages = {f"{name}.md": command_page(name) for name in names}
    rows = [(f"[{name}]({name}.md)", subcommand(name).HELP) for name in names]
    pages["index.md"] = "\n".join([
        "# Command line", "", "Made from the parsers themselves, so it is what `hlorewrite SUBCOMMAND --help` prints.",
        "", table(("subcommand", "what it does"), rows), "`hlorewrite help PASS` shows what a pass does.", "",
        "## Exit codes", "", table(("code", "meaning"), EXIT_CODES),
        "An error is one line on stderr: where, what, what to do next. `HLOREWRITE_TRACEBACK=1` shows the traceback "
        "after it.", "", toctree(names, hidden=True)])
    return pages


def command_page(name: str) -> str:
    """The page of one subcommand.

    Args:
      name: as typed.

    Returns:
      Markdown.
    """
    parser = parser_of(name)
    lines = [f"# hlorewrite {name}", "", _sentence(subcommand(name).HELP), "", *_usage(parser), *_options(parser)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub_name, sub in action.choices.items():
                lines += [f"## {name} {sub_name}", "", _sentence(sub.description or ""), "", *_usage(sub),
                          *_options(sub, level=3)]
    if parser.epilog:
        lines += [_sentence(parser.epilog), ""]
    return "\n".join(lines)


def parser_of(name: str) -> Parser:
    """The parser of a subcommand, as ``hlorewrite`` makes it."""
    module = subcommand(name)
    parser = Parser(prog=f"hlorewrite {name}", description=module.HELP, allow_abbrev=False)
    module.add_arguments(parser)
    return parser


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    return [fence("text", parser.format_usage().removeprefix("usage: ")), ""]


def _options(parser: argparse.ArgumentParser, level: int = 2) -> list[str]:
    lines: list[str] = []
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS
                 and not isinstance(a, argparse._HelpAction | argparse._SubParsersAction)]
        if not shown:
            continue
        title = {"positional arguments": "Arguments"}.get(group.title or "", (group.title or "options").capitalize())
        lines += [f"{'#' * level} {title}", ""]
        for action in shown:
            lines += [_name(parser, action), f": {_meaning(parser, action)}", ""]
    return lines


def _name(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    if not action.option_strings:
        return f"`{formatter._format_args(action, action.dest)}`"
    values = "" if action.nargs == 0 else " " + formatter._format_args(action, action.dest.upper())
    return ", ".join(f"`{option}{values}`" for option in action.option_strings)


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return _sentence(_plain(text)) or "–"


def _plain(text: str) -> str:
    """Help text as Markdown: flags are code, signs that would be formatting stand for themselves."""
    parts = re.split(r"(?<![\w`-])(--?[A-Za-z][\w-]*(?:=[^\s;,)]+)?)", text)
    return "".join(f"`{part}`" if at % 2 else "".join("\\" + sign if sign in "*_<>{}[]|~$" else sign for sign in part)
                   for at, part in enumerate(parts))


def _sentence(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith(".") else text + "."
