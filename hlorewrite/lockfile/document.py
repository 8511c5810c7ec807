"""The document in a plan file: readable JSON with sorted keys, a checksum over its content, and the resulting module.

Nothing in it depends on the machine or the time it was made: the same step under the same options gives the same bytes.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.errors import PlanMismatch
from hlorewrite.util.read import read_json

FORMAT = "hlorewrite plan"
FORMAT_VERSION = 1
MOST_PLAN_BYTES = 64 << 20
"""Of a plan file."""
MOST_MODULE_BYTES = 256 << 20
"""Of the text of a resulting module."""
_LINE = 110


@dataclass(frozen=True)
class PlanDocument:
    """The decision about one step.

    Attributes:
      step: name of the step.
      made_for: what has to be the same for the plan to be replayed, by name.
      jax: the version of JAX that lowered the step; another one that gives the same module is not an obstacle.
      decision: what is compiled and why: ``compiled``, ``passes`` as run, ``partitioner``, ``memory`` in bytes,
        ``reason``; of a step also ``how``, which processes compare.
      report: figures of the step before and after, for the report of a run that replays the plan.
      rewrites: what the passes said, an entry for each remark.
      notices: messages for the user.
      digest: the digest of the resulting module, without locations.
      module: the text of the resulting module; empty if the original is compiled.
    """

    step: str
    made_for: Mapping[str, str]
    jax: str
    decision: Mapping[str, Any]
    report: Mapping[str, Any]
    rewrites: tuple[Mapping[str, str], ...]
    notices: tuple[str, ...] = ()
    digest: str = ""
    module: str = field(default="", repr=False)

    def text(self) -> str:
        """The content of the file.

        Example:
          >>> made = PlanDocument("step", {"jaxlib": "0.10.2"}, "0.10.2", {"compiled": "original"}, {}, ())
          >>> print(made.text())
          {
            "checksum": "...",
            "decision": {
              "compiled": "original"
            },
            "format": "hlorewrite plan",
            "format_version": 1,
            "jax": "0.10.2",
            "made_for": {
              "jaxlib": "0.10.2"
            },
            "notices": [],
            "report": {},
            "result": "",
            "rewrites": [],
            "step": "step",
            "stored_module": []
          }
          <BLANKLINE>
          >>> read_document(made.text().encode(), "step.plan") == made
          True
        """
        data = {"decision": dict(self.decision), "format": FORMAT, "format_version": FORMAT_VERSION, "jax": self.jax,
                "made_for": dict(self.made_for), "notices": list(self.notices), "report": dict(self.report),
                "result": self.digest, "rewrites": [dict(each) for each in self.rewrites], "step": self.step,
                "stored_module": _packed(self.module)}
        return _shown({**data, "checksum": _checksum(data)})


def read_document(raw: bytes, name: str) -> PlanDocument:
    """Reads the content of a plan file.

    Args:
      raw: the bytes.
      name: the name of the file, for messages.

    Raises:
      PlanMismatch: it is not a plan, cut short, changed by hand, or of a newer format.
    """
    data = _parsed(raw, name)
    if data.get("format") != FORMAT:
        raise PlanMismatch("is not a plan of hlorewrite", location=name)
    version = data.get("format_version")
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and version > FORMAT_VERSION
        raise PlanMismatch(f"has plan format {version!r}, but this hlorewrite reads {FORMAT_VERSION}"
                           + ("; a newer hlorewrite wrote it" if newer else ""), location=name)
    checksum = data.pop("checksum", None)
    if checksum != _checksum(data):
        raise PlanMismatch("was changed after it was written: its checksum differs", location=name)
    try:
        return _document(data)
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error):
        raise PlanMismatch("is not a complete plan", location=name) from None


def _parsed(raw: bytes, name: str) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise PlanMismatch("is not a plan: it is not UTF-8 text", location=name) from None
    try:
        data = read_json(text)
    except (ValueError, RecursionError):
        raise PlanMismatch("is not a plan, or cut short: it is not JSON", location=name) from None
    if not isinstance(data, dict):
        raise PlanMismatch("is not a plan: it is not a JSON object", location=name)
    return data


def _document(data: dict[str, Any]) -> PlanDocument:
    module = _unpacked(data["stored_module"])
    return PlanDocument(_text(data["step"]), _texts(data["made_for"]), _text(data["jax"]),
                        decision=dict(data["decision"]), report=dict(data["report"]),
                        rewrites=tuple(_texts(each) for each in data["rewrites"]),
                        notices=tuple(_text(each) for each in data["notices"]), digest=_text(data["result"]),
                        module=module)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(each) for name, each in value.items()}


def _checksum(data: Mapping[str, Any]) -> str:
    plain = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _shown(data: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of the parts of the document."""
    lines = [f"  {json.dumps(name)}: {_part(data[name])}" for name in sorted(data)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _part(value: object) -> str:
    if isinstance(value, dict) and value:
        inner = [f"{json.dumps(name)}: {_entries(value[name])}" for name in sorted(value)]
        return "{\n" + ",\n".join(f"    {line}" for line in inner) + "\n  }"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {json.dumps(each, sort_keys=True)}" for each in value) + "\n  ]"
    return json.dumps(value)


def _entries(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"      {json.dumps(each, sort_keys=True)}" for each in value) + "\n    ]"
    return json.dumps(value, sort_keys=True)


def _packed(module: str) -> list[str]:
    if not module:
        return []
    text = base64.b64encode(zlib.compress(module.encode(), 9)).decode()
    return [text[at:at + _LINE] for at in range(0, len(text), _LINE)]


def _unpacked(lines: list[str]) -> str:
    """The text of a module; no more of it is made than a module may have.

    Raises:
      ValueError: it is larger, cut short, or no text.
    """
    if not lines:
        return ""
    stream = zlib.decompressobj()
    text = stream.decompress(base64.b64decode("".join(map(_text, lines)), validate=True), MOST_MODULE_BYTES)
    if not stream.eof or stream.unused_data:
        raise ValueError
    return text.decode("utf-8")
