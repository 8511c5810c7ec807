"""``hlorewrite opt``: reads a module, runs passes over it, writes it."""

import argparse
import json

from hlorewrite.cli.opt.arguments import add_arguments, prepare

HELP = "run passes over a StableHLO module"

__all__ = ["HELP", "add_arguments", "prepare", "run"]


def run(args: argparse.Namespace) -> int:
    """Runs ``opt``.

    Args:
      args: the parsed command line.

    Returns:
      The exit code.

    Raises:
      HlorewriteError: what went wrong.
    """
    from hlorewrite.cli.parser import quiet_xla

    quiet_xla()
    from hlorewrite.passmanager.load_file import load_files
    load_files(args.load)
    if args.list_passes or args.list_rules or args.help_pass:
        return _show(args)
    from hlorewrite.cli.opt.job import Job
    from hlorewrite.rules.register import NATIVES, load_natives
    load_natives(args.natives)
    with NATIVES.without_installed(args.run_reproducer):  # the file chooses rule files: only natives named here count
        return Job(args).run()


def _show(args: argparse.Namespace) -> int:
    from hlorewrite.cli.opt import pass_help
    if args.help_pass:
        print(pass_help.pass_help(args.help_pass), end="")
    if args.list_passes:
        print(pass_help.list_passes(args.list_passes == "json"), end="")
    if args.list_rules:
        print(list_rules(args.list_rules == "json"), end="")
    return 0


# ---- the shipped rules, for ``--list-rules``


def list_rules(as_json: bool) -> str:
    """The output of ``--list-rules``: each shipped rule, where it is written, and its first line of help."""
    rows = _rows()
    if as_json:
        return json.dumps(rows, indent=2) + "\n"
    if not rows:
        return "no rules are shipped\n"
    width = max(len(row["name"]) for row in rows)
    return "".join(f"{row['name']:<{width}}  {row['help']}  ({row['location']}; {row['known']})\n" for row in rows)


def _rows() -> list[dict[str, str]]:
    from hlorewrite.rules.library import load_shipped
    from hlorewrite.rules.proofs import how_known
    return [{"name": rule.name, "help": rule.rule.docs[0] if rule.rule.docs else "", "location": rule.location,
             "known": how_known(rule.rule)} for file in load_shipped() for rule in file.rules]
