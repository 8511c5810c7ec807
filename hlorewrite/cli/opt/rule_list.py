"""The shipped rules, for ``--list-rules``."""

from __future__ import annotations

import json


def list_rules(as_json: bool) -> str:
    """What ``--list-rules`` prints: each shipped rule, where it is written, and its first line of help."""
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
