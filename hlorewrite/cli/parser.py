"""The argument parser of every subcommand: its mistakes are ``UsageError`` with a suggestion."""

import argparse
import os
from typing import Any, NoReturn

from hlorewrite.errors import UsageError, closest, did_you_mean

EXIT_CODES = "exit codes: 0 ok, 1 failed or findings, 2 usage or unreadable input, 3 values differ"
"""The last line of every help."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are ``UsageError`` with a suggestion."""

    def error(self, message: str) -> NoReturn:
        """Raises what argparse would print."""
        raise UsageError(message, hint=f"see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is not among the choices of an argument, and suggests one."""
        if action.choices is None or value in action.choices:
            return
        known, named = [str(each) for each in action.choices], "/".join(action.option_strings) or action.metavar
        hint = closest(str(value), known)
        listed = f"{hint} known: {', '.join(known)}" if hint else did_you_mean(str(value), known)
        raise UsageError(f'{named or action.dest}: unknown value "{value}"', hint=listed)

    def format_help(self) -> str:
        """The help, with the exit codes at its end."""
        return f"{super().format_help().rstrip()}\n\n{EXIT_CODES}\n"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore
        """Parses, and suggests a flag for each unknown one."""
        parsed, unknown = super().parse_known_args(args, namespace)
        flags = [word.partition("=")[0] for word in unknown if word.startswith("-") and word != "-"]
        if flags:
            known = [option for option in self._option_string_actions if option.startswith("--")]
            raise UsageError(f'unknown option "{flags[0]}"',
                             hint=closest(flags[0], known) or f"see `{self.prog} --help`")
        return parsed, unknown


def add_frame_arguments(parser: argparse._ActionsContainer) -> None:
    """Adds ``--skip-frames`` and ``--own-frames``: which frames of call stacks are the user's own."""
    parser.add_argument("--skip-frames", action="append", default=[], metavar="PACKAGE",
                        help="treat source lines of this package as a library's, not as yours; "
                        "repeatable")
    parser.add_argument("--own-frames", action="append", default=[], metavar="PACKAGE",
                        help="treat source lines of this installed package as yours; repeatable")


def add_load_argument(parser: argparse._ActionsContainer) -> None:
    """Adds ``--load``: Python files whose passes and natives are registered."""
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py",
                        help="run a Python file that defines passes or natives, which can then be named; repeatable")


def add_step_flag(parser: argparse._ActionsContainer, name: str, **more: Any) -> None:
    """Adds the flag for an option of a step.

    Args:
      parser: where.
      name: the name of the option, as ``StepOptions`` calls it.
      **more: arguments of ``add_argument`` that differ here.

    Example:
      >>> parser = Parser()
      >>> add_step_flag(parser, "keep")
      >>> parser.parse_args(["--keep=always"]).keep
      'always'
    """
    from hlorewrite.jaxbridge.step.options import StepOptions, step_options

    known, default = dict(step_options())[name], getattr(StepOptions, name)
    shown = known.brief + ("; repeatable" if more.get("action") == "append" else "")
    flag, given = f"--{name.replace('_', '-')}", {"dest": name, "default": None, "help": shown, **more}
    if isinstance(default, bool):
        spelled, action = (flag.replace("--", "--no-", 1), "store_false") if default else (flag, "store_true")
        parser.add_argument(spelled, action=action, **given)
        return
    kinds = {"choices": known.choices} if known.choices else {"metavar": known.metavar}
    checked = type(default) if isinstance(default, float) else known.check
    parser.add_argument(flag, **{**kinds, **({"type": checked} if checked else {}), **given})


def add_report_argument(parser: argparse._ActionsContainer) -> None:
    """Adds ``--report``: the page of the run."""
    parser.add_argument("--report", default="", metavar="FILE",
                        help="also write one page about the run: what is saved, every way that was compared, what was "
                             "done, what stays and why. FILE ends in .html or .json, or gets text; - is standard error")


def add_plan_arguments(parser: argparse._ActionsContainer, purpose: str) -> None:
    """Adds ``--plan`` and ``--on-mismatch``, for commands whose plan is one file.

    Args:
      parser: where.
      purpose: the help of ``--plan``.
    """
    parser.add_argument("--plan", default="", metavar="FILE", help=purpose)
    add_step_flag(parser, "on_mismatch", default="error")


# ---- commands that start jax


def quiet_xla(platform: str = "") -> None:
    """Asks XLA to print only errors; must run before jaxlib is imported.

    Args:
      platform: ``cpu`` keeps JAX from touching the GPUs of this machine.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GLOG_minloglevel", "3")
    if platform == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
