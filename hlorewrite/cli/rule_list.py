"""The shipped rules, for ``--list-rules`` and suggestions."""

from __future__ import annotations

import json


def rule_names() -> list[str]:
    """Names of the shipped rules."""
    return [row["name"] for row in _rows()]


def list_rules(as_json: bool) -> str:
    """What ``--list-rules`` prints: each shipped rule, where it is written, and its first line of help."""
    rows = _rows()
    if as_json:
        return json.dumps(rows, indent=2) + "\n"
    if not rows:
        return "no rules are shipped\n"
    width = max(len(row["name"]) for row in rows)
    return "".join(f"{row['name']:<{width}}  {row['help']}  ({row['location']})\n" for row in rows)


def _rows() -> list[dict[str, str]]:
    from importlib import resources

    from hlorewrite.rules.ast import Rule
    from hlorewrite.rules.parser import parse
    files = sorted((f for f in resources.files("hlorewrite.patterns").iterdir() if f.name.endswith(".hlopat")),
                   key=lambda f: f.name)
    return [{"name": item.name, "help": item.docs[0] if item.docs else "",
             "location": f"hlorewrite/patterns/{file.name}:{item.span.line}"}
            for file in files for item in parse(file.read_text("utf-8"), file.name).items if isinstance(item, Rule)]
