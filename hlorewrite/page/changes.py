"""What each pass changed, folded: a diff of the module, and the ops of each rewrite before and after."""

from collections.abc import Iterable, Sequence
from html import escape

from hlorewrite.passmanager.changes import CutText, OpsChange, PassChange

_CLASSES = {"-": "gone", "+": "come", "@": "aside"}


def changes_html(passes: Sequence[PassChange]) -> str:
    """One fold per pass; empty if no pass changed anything.

    Example:
      >>> change = PassChange("cse", (), 0, CutText(("-a", "+b")), 1, 1)
      >>> "<code>cse</code>: 1 line removed, 1 added" in changes_html([change])
      True
    """
    if not passes:
        return ""
    inner = "".join(map(_pass, passes))
    count = _plural(len(passes), "pass", "passes")
    return f"<details><summary>What each pass changed: {count}</summary>{inner}</details>"


def _pass(change: PassChange) -> str:
    count = len(change.rewrites) + change.left_out
    parts = [_plural(count, "rewrite", "rewrites")] if count else []
    parts += [] if change.unknown else [f"{_plural(change.removed, 'line', 'lines')} removed, {change.added} added"]
    rewrites = "".join(map(_rewrite, change.rewrites))
    left = _plural(change.left_out, "more rewrite", "more rewrites")
    more = f'<p class="aside">{left}</p>' if change.left_out else ""
    diff = _block([*_marked(change.diff)], change.diff.left_out)
    diff = f"<p>{escape(change.unknown)}</p>" if change.unknown else diff
    return (f'<details class="inner"><summary><code>{escape(change.name)}</code>: {", ".join(parts)}</summary>'
            f"{diff}{rewrites}{more}</details>")


def _rewrite(each: OpsChange) -> str:
    lines = [*_marked(each.before, "-"), *_marked(each.after, "+")]
    left_out = each.before.left_out + each.after.left_out
    return (f'<details class="inner"><summary>{escape(each.rule)} at <code>{escape(each.location)}</code></summary>'
            f"{_block(lines, left_out)}</details>")


def _marked(text: CutText, sign: str = "") -> Iterable[str]:
    """Lines with the colour of their sign: what went, what came, and where."""
    for line in text.lines:
        shown = f"{sign}{' ' if sign else ''}{line}"
        kind = _CLASSES.get(shown[:1], "")
        yield f'<span class="{kind}">{escape(shown)}</span>' if kind else escape(shown)


def _block(lines: Sequence[str], left_out: int) -> str:
    more = [f'<span class="aside">{_plural(left_out, "more line", "more lines")}</span>'] if left_out else []
    return "<pre>" + "\n".join([*lines, *more]) + "</pre>" if lines else ""


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
