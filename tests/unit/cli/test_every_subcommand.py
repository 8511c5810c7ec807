"""What holds for the help, the mistakes and the exit codes of every subcommand."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded, overview
from hlorewrite.cli.parser import EXIT_CODES, Parser
from hlorewrite.cli.subcommands import available, subcommand
from hlorewrite.errors import MOST_NAMES, did_you_mean

READERS = {
    "opt": [], "compile": ["--target", "h200:1x8"], "run": [], "report": [], "timeline": ["--target", "h200:1x8"],
    "audit": ["--target", "h200:1x8"], "lint": [], "fmt": [], "view": [], "calibrate": ["--topology", "h200:1x8"],
    "verify": ["other.mlir"], "rules": [], "pipeline": ["--schedule", "1f1b"],
}
"""Subcommands that read a file -> further arguments that they need."""
ACTION = {"rules": "check", "pipeline": "run"}


def parser_of(name: str) -> Parser:
    parser = Parser(prog=f"hlorewrite {name}", allow_abbrev=False)
    subcommand(name).add_arguments(parser)
    return parser


def with_actions(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its actions."""
    return [parser, *(each for action in parser._actions if isinstance(action, argparse._SubParsersAction)
                      for each in action.choices.values())]


@pytest.mark.parametrize("name", available())
def test_help_ends_with_the_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded([name, "--help"]) == 0
    assert capsys.readouterr().out.endswith(f"\n\n{EXIT_CODES}\n")
    for parser in with_actions(parser_of(name)):
        assert parser.format_help().count(EXIT_CODES) == 1 and "exit codes:" not in (parser.epilog or "")


def test_the_overview_names_them_too() -> None:
    assert overview().endswith(f"{EXIT_CODES}\n")


@pytest.mark.parametrize("name", available())
def test_arguments_are_in_capitals(name: str) -> None:
    """What a user writes in place of an argument is in capitals, or is one of the listed words."""
    for parser in with_actions(parser_of(name)):
        for action in parser._get_positional_actions():
            shown = action.metavar or ("" if action.choices else action.dest)
            assert isinstance(shown, str) and shown == shown.upper(), f"{parser.prog}: {shown}"


@pytest.mark.parametrize("name", available())
def test_help_does_not_repeat_the_name_of_an_option(name: str) -> None:
    """``--layers N``, not ``--layers LAYERS``."""
    repeated = [action.option_strings for parser in with_actions(parser_of(name)) for action in parser._actions
                if action.option_strings and action.nargs != 0 and action.choices is None
                and f"--{str(action.metavar or action.dest).lower().replace('_', '-')}" in action.option_strings]
    assert repeated == []


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_not_there_is_exit_code_2(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    words = [name, *([ACTION[name]] if name in ACTION else []), "missing.mlir", *READERS[name]]
    assert guarded(words) == 2, capsys.readouterr().err
    said = capsys.readouterr()
    assert said.err.startswith("hlorewrite: error: ") and said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize("name", available())
def test_an_unknown_option_is_exit_code_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded([name, "--no-such-option"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("hlorewrite: error: ") and said.count("\n") == 1


def test_an_unknown_subcommand_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["reprot"]) == 2
    assert 'did you mean "report"?' in capsys.readouterr().err


def test_many_names_are_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["rules", "show", "xyzzy"]) == 2
    said = capsys.readouterr().err
    assert len(said) < 250 and "more, see `hlorewrite rules list`" in said
    many = [f"name-{number}" for number in range(MOST_NAMES + 1)]
    assert did_you_mean("xyz", many).endswith(f"and {MOST_NAMES - 2} more")
    assert did_you_mean("xyz", many[1:]).count("name-") == MOST_NAMES
