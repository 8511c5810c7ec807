"""``hlorewrite completion``: the script that teaches a shell the subcommands, flags, passes and rules.

The script is static: completing starts no Python. ``shtab`` writes it from the parsers. This module adds what the
parsers do not know: which arguments are files, and the names of passes, rules and topologies.
"""

import argparse
import re
from collections.abc import Iterable

from hlorewrite.errors import HlorewriteError

HELP = "print the completion script for bash, zsh or fish"
SHELLS = ("bash", "zsh", "fish")

_BASH_EQUALS = """
# bash takes `--pass=comm` for three words; the code above calls `--pass comm`.
_hlorewrite() {
  local words=() at=0 i
  for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
    if [[ ${COMP_WORDS[i]} == "=" && i -gt 0 ]]; then
      ((i == COMP_CWORD)) && words+=("") && at=$((${#words[@]} - 1))
      continue
    fi
    words+=("${COMP_WORDS[i]}")
    ((i == COMP_CWORD)) && at=$((${#words[@]} - 1))
  done
  COMP_WORDS=("${words[@]}")
  COMP_CWORD=$at
  _shtab_hlorewrite
}
complete -o bashdefault -F _hlorewrite hlorewrite
"""

_FILES = {"FILE", "FILE.npz", "IN", "BEFORE", "AFTER", "PATH", "PROGRAM", "RUN"}
_FILE_NAMES = {"file", "files"}
_FOLDERS = {"DIR"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``completion``."""
    parser.add_argument("shell", choices=SHELLS, help="the shell the script is for")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """put it where the shell finds it:
  hlorewrite completion bash > ~/.local/share/bash-completion/completions/hlorewrite
  hlorewrite completion zsh > ~/.zfunc/_hlorewrite      # a folder of fpath
  hlorewrite completion fish > ~/.config/fish/completions/hlorewrite.fish"""


def run(args: argparse.Namespace) -> int:
    """Prints the script."""
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The completion script of a shell.

    Args:
      shell: ``bash``, ``zsh`` or ``fish``.

    Returns:
      The script.

    Raises:
      HlorewriteError: ``shtab``, which writes it, is not installed.

    Example:
      >>> "--pass-pipeline" in script("bash")
      True
    """
    try:
        import shtab
    except ImportError:
        raise HlorewriteError("completion scripts are written by shtab, which is not installed",
                              hint="pip install 'shtab>=1.8'") from None
    text = shtab.complete(whole_parser(), shell=shell)
    if shell == "bash":
        return text + _BASH_EQUALS
    if shell == "zsh":  # `--pass=[...]:` takes the value in the next word or after the sign, `--pass[...]:` only there
        return re.sub(r'^(  "\*?--[\w-]+)(\[.*\]:)', r"\1=\2", text, flags=re.MULTILINE)
    return text


def whole_parser() -> argparse.ArgumentParser:
    """One parser with every subcommand; it only describes them and runs nothing."""
    from hlorewrite.cli.subcommands import available, subcommand
    parser = argparse.ArgumentParser(prog="hlorewrite")
    parser.add_argument("--version", action="store_true", help="show the versions")
    subcommands = parser.add_subparsers()
    for name in available():
        module = subcommand(name)
        sub = subcommands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        _annotate(sub)
    topics = subcommands.add_parser("help", help="show what a pass does and its options")
    topics.add_argument("topic").choices = sorted({*_pass_names(), *available()})
    return parser


def _annotate(parser: argparse.ArgumentParser) -> None:
    """Says of each argument what it completes to."""
    import shtab
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                _annotate(sub)
        elif action.choices is None and action.nargs != 0:
            names = _names(action)
            if names:
                action.choices = tuple(names)
                action.type = None  # the choices are the words as typed
            elif _metavars(action) & _FILES or (not action.option_strings and action.dest in _FILE_NAMES):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif _metavars(action) & _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]


def _metavars(action: argparse.Action) -> set[str]:
    return {action.metavar} if isinstance(action.metavar, str) else set(action.metavar or ())


def _names(action: argparse.Action) -> Iterable[str]:
    """The names an argument takes, where they are names of something shipped."""
    options = set(action.option_strings)
    if options & {"--pass", "--pass-pipeline", "--help-pass", "--print-ir-before", "--print-ir-after"}:
        return _pass_names()
    if options & {"--explain"} or action.dest == "rule":
        return _rule_names()
    if "-O" in options:
        from hlorewrite.passmanager.named import PIPELINES
        return sorted(PIPELINES)
    if "--topology" in options:
        from hlorewrite.cost.cluster.topology_file import topology_names
        return sorted(topology_names())
    return ()


def _pass_names() -> list[str]:
    from hlorewrite.passmanager.mlir_pass import MLIR_PASSES
    from hlorewrite.passmanager.registry import built_in_passes
    return sorted({*built_in_passes(), *MLIR_PASSES})


def _rule_names() -> list[str]:
    from hlorewrite.rules.library import load_shipped
    return sorted(rule.name for file in load_shipped() for rule in file.rules)
