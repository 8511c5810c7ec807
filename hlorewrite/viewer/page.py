"""The page: one self-contained file that loads nothing else."""

import base64
import hashlib
import html
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

from hlorewrite.page.decision import decision_html
from hlorewrite.page.style import DECISION_STYLE

ASSETS = Path(__file__).parent / "assets"
MAIN = "main.js"
HEAD = "head"  # painted at once, so never packed
_PACK_FROM = 20_000
_IMPORT = re.compile(r'^import\s+\{[^}]*\}\s+from\s+"\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|class|async)", re.MULTILINE)


def render(data: dict[str, Any], title: str) -> bytes:
    """The page as HTML.

    Args:
      data: what ``page_data`` made: ``head`` and the large parts.
      title: the title of the browser's tab.

    Returns:
      UTF-8.
    """
    script = bundle(MAIN)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'"
    decision = data[HEAD]["decision"]
    parts = {"TITLE": html.escape(title), "POLICY": policy,
             "STYLE": _asset("style.css") + DECISION_STYLE + _asset("print.css"),
             "DECISION": decision_html(decision) if decision else "",
             "DATA": "\n".join(_embedded(name, part) for name, part in sorted(data.items())), "SCRIPT": script}
    page = re.sub(r"\{\{([A-Z]+)\}\}", lambda match: parts[match[1]], _asset("page.html"))
    return page.encode()


def bundle(main: str) -> str:
    """The script and everything it imports as one module, each file once, imported ones first.

    Files import named things from files next to them and nothing else; all share one scope, so no two may use one name
    at their top level.

    Args:
      main: the file to start from.

    Returns:
      JavaScript without imports.

    Example:
      >>> bundle("dom.js").splitlines()[0]
      '// ---- dom.js'
    """
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name in done:
            return
        text = _asset(name)
        done[name] = ""
        for other in _IMPORT.findall(text):
            add(other)
        del done[name]
        done[name] = f"// ---- {name}\n{_EXPORT.sub('', _IMPORT.sub('', text))}"

    add(main)
    return "\n".join(done.values())


def _embedded(name: str, part: object) -> str:
    """Data as a script element; large parts are deflated, which browsers undo by themselves."""
    text = _json(part)
    if name != HEAD and len(text) >= _PACK_FROM:
        packed = zlib.compress(text.encode(), 9)
        return f'<script type="text/plain" id="data-{name}">{base64.b64encode(packed).decode()}</script>'
    # "</script>" and "<!--" would end or hide the element; JSON may write any character as an escape.
    safe = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="data-{name}">{safe}</script>'


def _json(part: object) -> str:
    """JSON that browsers can parse: without NaN, which Python writes."""
    try:
        return json.dumps(part, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(part), separators=(",", ":"))


def _finite(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _finite(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_finite(value) for value in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
