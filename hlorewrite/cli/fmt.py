"""``hlorewrite fmt``: rule files in their canonical form."""

import argparse
import difflib
import sys

HELP = "write rule files (*.hlopat) in their canonical form"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``fmt``."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="rule files; - reads standard input and prints")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="change nothing; print the changes")


def run(args: argparse.Namespace) -> int:
    """Formats every file, or reports which would change."""
    changed = [name for name in args.files if _format(name, args)]
    if not (args.check or args.diff):
        return 0
    if args.check:
        for name in changed:
            print(f"{name}: would be reformatted", file=sys.stderr)
    return 1 if changed and args.check else 0


def _format(name: str, args: argparse.Namespace) -> bool:
    from hlorewrite.rules.library import read_file
    from hlorewrite.rules.syntax.parser import parse
    from hlorewrite.rules.syntax.printer import print_file
    from hlorewrite.util.write import write_file
    text = sys.stdin.read() if name == "-" else read_file(name).text
    shown = "<stdin>" if name == "-" else name
    formatted = print_file(parse(text, shown))
    changed = formatted != text
    if args.diff:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), formatted.splitlines(True), shown, shown))
    elif name == "-" and not args.check:
        sys.stdout.write(formatted)
    elif changed and not args.check:
        write_file(name, formatted.encode())
    return changed
