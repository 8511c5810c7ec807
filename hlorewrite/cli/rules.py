"""``hlorewrite rules``: what rules there are, what they say, and whether they are right."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hlorewrite.cli.parser import add_load_argument
from hlorewrite.errors import InputError, ValuesDiffer, did_you_mean
from hlorewrite.rules.native_source import failure_text
from hlorewrite.rules.proofs import how_known
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression, print_file

if TYPE_CHECKING:
    from hlorewrite.checks.prove.verdict import Verdict
    from hlorewrite.rules.library import RuleSource


_HEADING = "// ----"
HELP = "list, show, check, prove and document rewrite rules"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rules``."""
    parser.set_defaults(action=None)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    every: list[tuple[str, str, Callable[[argparse.Namespace], int]]] = [
        ("list", "list rules and linearity facts", _list), ("show", "print one rule as written in its file", _show),
        ("check", "check rule files: names, kinds, arity; then both sides of each rule", _check),
        ("prove", DESCRIPTION, _prove),
        ("docs", "print the documentation of rules as Markdown", _docs)]
    for name, text, action in every:
        sub = actions.add_parser(name, help=_PROVE_HELP if name == "prove" else text, description=text)
        sub.set_defaults(action=action)
        if name == "show":
            sub.add_argument("rule", metavar="RULE", help="the rule's name")
        sub.add_argument("files", nargs="*", metavar="FILE",
                         help="rule files, or names of shipped ones (default: all shipped)")
        if name == "prove":
            add_prove_arguments(sub)
        if name == "check":
            sub.add_argument("--natives", action="append", default=[], metavar="MODULE",
                             help="import a module, or a .py file, that registers natives; repeatable")
            sub.add_argument("--static", action="store_true", help="execute and import nothing")
            sub.add_argument("--programs", type=int, default=150, metavar="N",
                             help="how many programs to generate for each rule (default 150)")
        add_load_argument(sub)
        if name != "docs":
            sub.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the action."""
    if args.action is None:
        args.action, args.files, args.json, args.load = _list, [], False, []
    if args.load and not getattr(args, "static", False):
        from hlorewrite.passmanager.load_file import load_files
        load_files(args.load)
    return args.action(args)


def _sources(names: list[str]) -> list[RuleSource]:
    from hlorewrite.rules.library import read_source, shipped_names
    return [read_source(name) for name in names or shipped_names()]


def _items(names: list[str]) -> list[tuple[RuleSource, ast.Rule | ast.Linear]]:
    from hlorewrite.rules.library import checked
    return [(source, item) for source in _sources(names) for item in checked(source)[0].items
            if isinstance(item, ast.Rule | ast.Linear)]


def _row(source: RuleSource, item: ast.Rule | ast.Linear) -> dict[str, Any]:
    kind = "rule" if isinstance(item, ast.Rule) else "linear"
    return {"name": item.name, "kind": kind, "purpose": _purpose(source, item),
            "location": f"{source.name}:{item.name_span.line}", "equation": item.docs[0] if item.docs else "",
            "tags": list(item.tags) if isinstance(item, ast.Rule) else [],
            "known": how_known(item),
            "kinds": list(item.kinds.names) if isinstance(item, ast.Linear) else []}


def _purpose(source: RuleSource, item: ast.Rule | ast.Linear) -> str:
    """The heading above a rule in its file, ``// ---- sums of reductions``; empty without one."""
    above = source.text.splitlines()[:item.name_span.line]
    return next((line.removeprefix(_HEADING).strip() for line in reversed(above) if line.startswith(_HEADING)), "")


# ---- list and show


def _list(args: argparse.Namespace) -> int:
    rows = [_row(source, item) for source, item in _items(args.files)]
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    widths = [max((len(row[key]) for row in rows), default=0) for key in ("name", "known")]
    group = ("", "")
    for row in rows:
        at = row["location"].rpartition(":")[0], row["purpose"]
        if at != group:
            print(("\n" if any(group) else "") + (f"{at[1]} ({at[0]})" if at[1] else at[0]))
            group = at
        print(f"  {row['name']:<{widths[0]}}  {row['known']:<{widths[1]}}  {row['equation']}")
    return 0


def _show(args: argparse.Namespace) -> int:
    from hlorewrite.rules.library import written
    items = _items(args.files)
    named = [(source, item) for source, item in items if item.name == args.rule]
    if not named:
        raise InputError(f'there is no rule "{args.rule}"',
                         hint=did_you_mean(args.rule, [i.name for _, i in items], "hlorewrite rules list"))
    for source, item in named:
        text = print_file(ast.File((replace(written(source)[item.name], comments=(), trailing=""),)))
        print(json.dumps({**_row(source, item), "text": text}, indent=2, ensure_ascii=False) if args.json
              else f"// {source.name}:{item.name_span.line}\n{text}", end="\n" if args.json else "")
    return 0


# ---- check


def _check(args: argparse.Namespace) -> int:
    from hlorewrite.rules.checks.checker import check, raise_first
    from hlorewrite.rules.library import natives_of
    from hlorewrite.rules.register import load_natives
    from hlorewrite.rules.syntax.expand import expanded
    from hlorewrite.rules.syntax.parser import parse
    if not args.static:
        load_natives(args.natives)
    rows: list[dict[str, Any]] = []
    for source in _sources(args.files):
        tree = parse(source.text, source.name)
        raise_first(check(tree, natives_of(tree, source)), source.text, source.name)
        name = source.name.removeprefix("patterns/") if source.shipped else source.name
        results = [] if args.static else _decided(name, _executed(name, args.programs, [*args.load, *args.natives]))
        rules, facts = (sum(isinstance(item, kind) for item in expanded(tree).items) for kind in (ast.Rule, ast.Linear))
        rows.append({"file": source.name, "rules": rules, "facts": facts, "results": results})
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        _print_checks(rows)
    results = [result for row in rows for result in row["results"]]
    undecided = [result["rule"] for result in results if result["undecided"]]
    if undecided and not args.json:
        print(f"hlorewrite: {len(undecided)} of {len(results)} rules and facts neither executed nor proved: "
              f"{', '.join(undecided)}; run a module that it matches with `hlorewrite opt --rules=FILE --check=interp`",
              file=sys.stderr)
    if any(result["wrong"] for result in results):
        return ValuesDiffer.exit_code
    return int(any(result["undecided"] for result in results))


def _decided(name: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results with why a rule or fact that was executed on no program is not proved either; empty for the others."""
    from hlorewrite.checks.prove.prove import why_unproved
    return [{**result, "undecided": "" if result["executed"] or result["wrong"] else why_unproved(name, result["rule"])}
            for result in results]


def _executed(name: str, programs: int, natives: list[str]) -> list[dict[str, Any]]:
    from hlorewrite.checks.reference.rule_checks.worker import items, results_in_subprocess
    from hlorewrite.rules.library import load
    from hlorewrite.util.progress import advanced, progress
    with progress(f"executing the rules of {name}", len(items(load(name)))) as step:
        return results_in_subprocess(name, programs, advanced(step), natives)


def _print_checks(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(f"{row['file']}: {row['rules']} rules, {row['facts']} linearity facts: names, kinds and arity are sound")
        for result in row["results"]:
            print(f"  {result['rule']}: {_verdict(result)}")
            if result["undecided"]:
                print(f"    neither executed nor proved: {result['undecided']}")
            for sentence in result["wrong"]:
                print(f"    wrong: {sentence}")
            for condition in result["conditions"]:
                if not condition["noticed"]:
                    print(f"    untested: {condition['block']} {condition['text']} ({_never(condition['fired'])})")


def _verdict(result: dict[str, Any]) -> str:
    if result["not_generated"]:
        return f"not executed: {result['not_generated']}"
    values = "wrong values" if result["wrong"] else "equal values" if result["executed"] else "none was executed"
    needed = sum(condition["noticed"] for condition in result["conditions"])
    count = len(result["conditions"])
    return (f"applies to {result['rewritten']} of {result['programs']} programs, {values}"
            + (f"; {needed} of {count} conditions shown to be needed" if count else ""))


def _never(fired: int) -> str:
    return (f"removing it changes {fired} program{'' if fired == 1 else 's'}, but no values" if fired
            else "removing it changes no program")


def _prove(args: argparse.Namespace) -> int:
    from hlorewrite.rules.library import shipped_names
    return prove(args, args.files or shipped_names())


# ---- docs


def _docs(args: argparse.Namespace) -> int:
    from hlorewrite.rules.library import written
    for source, item in _items(args.files):
        sys.stdout.write(document(item, source.name, written(source)[item.name]))
    return 0


# ---- documentation of rules, from their doc lines and their checks


def document(item: ast.Rule | ast.Linear, file: str, written: ast.Rule | ast.Linear | None = None) -> str:
    """One rule as a section of Markdown: equation, remarks, conditions with their sentences, the rule itself.

    Args:
      item: a rule or linearity fact.
      file: the file it is in.
      written: the rule as the file has it, where that is shorter; see ``syntax.expand``.

    Returns:
      Text that starts with a heading and ends in a blank line.

    Example:
      >>> from hlorewrite.rules.syntax.parser import parse
      >>> print(document(parse('/// x -> x' '\\n' 'rule a { match { root %r = stablehlo.negate(%x); } '
      ...                      'rewrite { replace %r with %x; } }').items[0], "a.hlopat").splitlines()[0])
      ### `a`
    """
    docs = list(item.docs)
    bare = replace(written or item, docs=(), comments=(), trailing="")
    equation = docs[0] if docs else ""
    lines = [f"### `{item.name}`", "", equation, ""]
    more = "\n".join(docs[1:]).strip("\n")
    lines += [more, ""] if more else []
    floats = ", ".join(item.floats.names) if item.floats else "not said"
    lines += [f"In `{file}`, line {item.name_span.line}. How it is known: {how_known(item)}. "
              f"What it does to floats: {floats}.", ""]
    rows = [(block.keyword, expression(s.expression), s.sentence or failure_text(expression(s.expression)))
            for block in item.blocks[1:] for s in block.statements if isinstance(s, ast.Condition | ast.Let)]
    if rows:
        lines += ["| kind | condition | text when it fails |", "|---|---|---|"]
        lines += [f"| {kind} | `{_cell(text)}` | {_cell(sentence) or 'the predicate’s own sentence'} |"
                  for kind, text, sentence in rows]
        lines.append("")
    return "\n".join([*lines, "```", print_file(ast.File((bare,))).rstrip(), "```", "", ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# ---- prove: proofs for all ranks, sizes, groups and element types


_PROVE_HELP = "prove rules and facts for all ranks, sizes, groups and element types"
DESCRIPTION = (_PROVE_HELP + ". Exit code 0: all are proved; 1: some are unknown or, without a solver, assumed; 3: "
               "some are refuted.")


def add_prove_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rules prove`` in addition to its files."""
    parser.add_argument("--rule", "--fact", action="append", default=[], metavar="NAME", dest="only",
                        help="prove only this rule or fact; repeatable")
    parser.add_argument("--lemmas", action="store_true", help="check the steps of the lemmas too")
    parser.add_argument("--counterexamples", metavar="DIR",
                        help="write two modules with different values for each wrong rule or fact")
    parser.add_argument("--natives", action="append", default=[], metavar="MODULE",
                        help="import a module, or a .py file, that registers natives; repeatable")


def prove(args: argparse.Namespace, files: Sequence[str]) -> int:
    """Proves the files; returns the exit code.

    Raises:
      InputError: a named rule or fact is in none of them.
    """
    from hlorewrite.checks.prove.prove import has_solver, prove_file, prove_lemmas
    from hlorewrite.rules.register import load_natives
    from hlorewrite.util.progress import progress
    load_natives(args.natives)
    _require_names(files, args.only)
    verdicts: list[Verdict] = []
    shown: dict[str, str] = {}
    with progress("proving") as step:
        for file in files:
            for verdict in prove_file(file, args.only, step):
                verdict, command = _with_counterexample(verdict, file, args)
                verdicts.append(verdict)
                shown |= {verdict.name: command} if command else {}
        if args.lemmas and has_solver():
            verdicts += prove_lemmas()
    if args.json:
        print(json.dumps([_verdict_row(v, shown) for v in verdicts], indent=2, ensure_ascii=False))
    else:
        _print(verdicts, shown)
    return _exit_code(verdicts)


def _require_names(files: Sequence[str], names: Sequence[str]) -> None:
    from hlorewrite.checks.prove.prove import provable
    from hlorewrite.rules.library import checked, read_source
    known = [item.name for file in files for item in provable(checked(read_source(file))[0])]
    for name in names:
        if name not in known:
            raise InputError(f'there is no rule or fact "{name}"',
                             hint=did_you_mean(name, known, "hlorewrite rules list"))


def _with_counterexample(verdict: Verdict, file: str, args: argparse.Namespace) -> tuple[Verdict, str]:
    """A verdict that is not a proof, with a program that refutes it where one is found."""

    from hlorewrite.checks.prove.counterexamples import counterexample, write_counterexample
    from hlorewrite.checks.prove.verdict import REFUTED, UNKNOWN
    if verdict.status not in (REFUTED, UNKNOWN):
        return verdict, ""
    programs = counterexample(file, verdict.name, [*args.load, *args.natives])
    if programs is None:
        return verdict, ""
    command = write_counterexample(verdict, programs, args.counterexamples) if args.counterexamples else ""
    return replace(verdict, status=REFUTED), command


def _exit_code(verdicts: Sequence[Verdict]) -> int:
    from hlorewrite.checks.prove.verdict import REFUTED
    if any(v.status == REFUTED for v in verdicts):
        return ValuesDiffer.exit_code
    return 0 if all(v.sound for v in verdicts) else 1


def _verdict_row(verdict: Verdict, shown: dict[str, str]) -> dict[str, Any]:
    row = asdict(verdict) | {"model": dict(verdict.model), "counterexample": shown.get(verdict.name, "")}
    return {**row, "sentence": verdict.sentence}


def _print(verdicts: Sequence[Verdict], shown: dict[str, str]) -> None:
    width = max((len(v.name) for v in verdicts), default=0)
    for verdict in verdicts:
        print(f"{verdict.name:<{width}}  {verdict.sentence}")
        if verdict.model:
            print(f"{'':<{width}}    with {', '.join(f'{name} = {value}' for name, value in verdict.model)}")
        if verdict.name in shown:
            print(f"{'':<{width}}    run: {shown[verdict.name]}")
    counts = Counter(v.status for v in verdicts)
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "nothing to prove")
