"""Inputs that are well-formed and mean something else: values, attributes and shapes exchanged by a form's grammar.

Damaged bytes rarely come past a parser. These do: JSON with other values under the same keys (a plan with a right
checksum), HLO with other groups, opcodes and trip counts, MLIR with other groups, types and constants, TOML with other
values.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from generators.hostile.mutations import mutate
from generators.hostile.seeds import Seed

_EDGES = (0, 1, -1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, -1e308,
          5e-324)
_TEXTS = ("", "x", "x" * 5000, "../../x", "\u0000", "\ud7ff", "é", "a b",
          "@main", "0", "null", "comm-shift", "h200:1x8")
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast",
          "ragged-all-to-all", "all-reduce-start", "all-reduce-done", "async-start", "send", "recv", "custom-call",
          "fusion", "call", "while", "conditional", "copy", "negate", "add", "tuple", "get-tuple-element", "infeed")
_GROUPS = ("{}", "{{0}}", "{{0,1},{2,3}}", "{{0,1,2,3}}", "{{0,0}}", "{{3,2,1,0}}", "{{0,1},{2}}", "{{9}}",
           "[1,4]<=[4]",
           "[2,2]<=[4]", "[2,2]<=[2,2]T(1,0)", "[2,2]<=[2,2]T(0,0)", "[0,4]<=[4]", "[4,0]<=[4]", "[2,2]<=[3]",
           "[4]<=[4]",
           "[1,1048577]<=[1048577]", "mesh['x'=4] {'x'}", "mesh['x'=2,'y'=2] {'y','x'}", "mesh['x'=4] {'x':(1)2}",
           "mesh['x'=4] {'x':(3)2}", "mesh['x'=4] {'z'}", "mesh['x'=0] {'x'}")
_DENSE = ("dense<> : tensor<0x0xi64>", "dense<0> : tensor<1x1xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
          "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", "dense<[[0, -1], [2, 3]]> : tensor<2x2xi64>",
          "dense<0> : tensor<4x4xi64>", "dense<[[7]]> : tensor<1x1xi64>", "dense<-1> : tensor<2x2xi64>")
_TYPES = ("f32", "bf16", "f64", "i1", "i8", "i32", "ui8", "f8E4M3FN", "complex<f32>", "i4", "index", "!quant.any<i8>")
_OPS = ("add", "multiply", "maximum", "subtract", "divide", "and", "tanh", "negate", "abs", "reshape", "transpose",
        "convert", "all_reduce", "all_gather", "optimization_barrier")


def rewritten(seed: Seed, random_: random.Random) -> Seed:
    """A copy that means something else; a form without a grammar here is damaged instead.

    Args:
      seed: a sound input.
      random_: what decides.
    """
    changes: dict[str, Callable[[str, random.Random], str]] = {
        "hlo": _hlo, "text": _mlir, "rules": _tokens, "topology": _toml, "program": _mlir, "times": _tokens,
        "calibration": _numbers, "cache": _mlir, "plan": _mlir}
    if seed.form in ("reshard", "pipeline", "arguments"):
        return mutate(seed, random_)
    files, changed = list(seed.content), False
    at = random_.randrange(len(files))
    name, content = files[at]
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return mutate(seed, random_)
    if _is_json(text):
        files[at], changed = (name, _json(text, random_).encode()), True
    elif seed.form in changes:
        for _ in range(random_.choice((1, 1, 2, 4))):
            text = changes[seed.form](text, random_)
        files[at], changed = (name, text.encode(errors="replace")), True
    return Seed(seed.form, tuple(files), (random_.choice(seed.commands),)) if changed else mutate(seed, random_)


def _is_json(text: str) -> bool:
    """Whether a file is one JSON value, or one a line."""
    return _parses(text) or all(map(_parses, text.splitlines()))


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _json(text: str, random_: random.Random) -> str:
    """JSON, or lines of it, with other values in places; a plan keeps a right checksum."""
    try:
        value = json.loads(text)
    except ValueError:  # a value a line
        lines = text.splitlines()
        at = random_.randrange(len(lines))
        changed = _json(lines[at], random_) if _parses(lines[at]) else "{}"
        return "\n".join([*lines[:at], changed, *lines[at + 1:]]) + "\n"
    for _ in range(random_.choice((1, 1, 2, 5))):
        value = _other_value(value, random_)
    if isinstance(value, dict) and "checksum" in value:
        from hlorewrite.lockfile.document import _checksum
        value.pop("checksum")
        value["checksum"] = _checksum(value)
    return json.dumps(value, allow_nan=True)


def _other_value(value: Any, random_: random.Random) -> Any:
    """A value with another one somewhere inside."""
    if isinstance(value, dict) and value and random_.random() < 0.9:
        key = random_.choice(sorted(value))
        kind = random_.randrange(8)
        if kind == 0:
            return {name: each for name, each in value.items() if name != key}
        if kind == 1:
            return {**value, random_.choice(_TEXTS): value[key]}
        return {**value, key: _other_value(value[key], random_)}
    if isinstance(value, list) and value and random_.random() < 0.9:
        at = random_.randrange(len(value))
        kind = random_.randrange(6)
        if kind == 0:
            return value[:at] + value[at + 1:]
        if kind == 1:
            return value + value[at:at + 1] * random_.choice((1, 100))
        return [*value[:at], _other_value(value[at], random_), *value[at + 1:]]
    if isinstance(value, str) and random_.random() < 0.8:
        return random_.choice((*_TEXTS, value[::-1], value + value))
    if isinstance(value, int | float) and random_.random() < 0.8:
        return random_.choice((*_EDGES, -value, value * 10**9, float("nan"), float("inf")))
    return random_.choice((None, True, [], {}, [[]], {"a": 1}, *_EDGES[:6], *_TEXTS[:4]))


def _one(pattern: str, instead: Callable[[re.Match[str]], str], text: str, random_: random.Random) -> str:
    """Replaces one of the places that match."""
    places = list(re.finditer(pattern, text))
    if not places:
        return _tokens(text, random_)
    place = random_.choice(places)
    return text[:place.start()] + instead(place) + text[place.end():]


def _hlo(text: str, random_: random.Random) -> str:
    kind = random_.randrange(9)
    if kind == 0:
        return _one(r"replica_groups=(?:\{[^=]*?\}\}|\[[^\s,]*(?:,\d+)*\]<=\[[\d,]+\](?:T\([\d,]+\))?)",
                    lambda _: f"replica_groups={random_.choice(_GROUPS)}", text, random_)
    if kind == 1:
        return _one(r"(?<= )[a-z][\w\-]*(?=\()", lambda _: random_.choice(_KINDS), text, random_)
    if kind == 2:
        return _one(r"\[\d[\d,]*\]", lambda _: random_.choice(("[]", "[0]", "[1]", "[8,8]", "[<=8]", "[?]",
                                                               "[9223372036854775807]")), text, random_)
    if kind == 3:
        return _one(r"num_partitions=\d+|replica_count=\d+", lambda found: f"{found[0].partition('=')[0]}="
                    f"{random_.choice((0, 1, 2, 3, 8, 10**6, 10**7, 10**18))}", text, random_)
    lines = text.splitlines()
    at, other = random_.randrange(len(lines)), random_.randrange(len(lines))
    if kind == 4:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 5:
        lines.insert(at, lines[other])
    elif kind == 6:
        del lines[at]
    elif kind == 7:
        lines[at] += random_.choice((', backend_config={"known_trip_count":{"n":"-5"}}', ", to_apply=%absent",
                                     ", calls=%",
                                     ', metadata={source_file="a.py" source_line=99999999999999999999}', "}", " {",
                                     ", channel_id=1, use_global_device_ids=true",
                                     ", source_target_pairs={{0,1},{0,2}}"))
    else:
        return _one(r"%[\w.\-]+", lambda _: random_.choice(re.findall(r"%[\w.\-]+", text)), text, random_)
    return "\n".join(lines) + "\n"


def _mlir(text: str, random_: random.Random) -> str:
    kind = random_.randrange(7)
    if kind == 0:
        return _one(r"(?<=replica_groups = )dense<[^>]*> : tensor<[^>]*>", lambda _: random_.choice(_DENSE), text,
                    random_)
    if kind == 1:
        return _one(r"(?<=x)[a-z]+\d+(?=>)", lambda _: random_.choice(_TYPES), text, random_)
    if kind == 2:
        return _one(r"(?<=tensor<)\d+(?=x)", lambda _: str(random_.choice((0, 1, 2, 3, 16, "?", 2**40))), text, random_)
    if kind == 3:
        return _one(r"(?<=stablehlo\.)\w+", lambda _: random_.choice(_OPS), text, random_)
    if kind == 4:
        return _one(r"num_partitions = \d+|num_replicas = \d+", lambda found: f"{found[0].partition(' = ')[0]} = "
                    f"{random_.choice((0, 1, 2, 3, 8, 2**20, 2**31 - 1))}", text, random_)
    if kind == 5:
        return _one(r"handle = \d+, type = \d+", lambda _: f"handle = {random_.choice((0, 1, 2**40))}, "
                    f"type = {random_.choice((0, 1, 2, 9))}", text, random_)
    return _one(r"%[\w#]+", lambda _: random_.choice(re.findall(r"%[\w#]+", text)), text, random_)


def _numbers(text: str, random_: random.Random) -> str:
    """Another number, or word, in the place of a number."""
    return _one(r"(?<=\s)[\d.]+(?=\s)", lambda _: str(random_.choice((*_EDGES, "N/A", "", "1,048,576", "1e999"))), text,
                random_)


def _toml(text: str, random_: random.Random) -> str:
    return _one(r'(?<== )(?:"[^"]*"|[\d.eE+\-_]+|true|false|\[[^\]]*\])', lambda _: random_.choice(
        [str(each) for each in _EDGES] + [json.dumps(each) for each in _TEXTS[:6]] + ["[]", "[[1, 2]]", "nan", "inf",
                                                                                     "-inf", "true"]), text, random_)


def _tokens(text: str, random_: random.Random) -> str:
    """One word in the place of another one of the same text."""
    words = list(re.finditer(r"[A-Za-z_.%@$?][\w.]*|\d+|[{}()<>;:,=]", text))
    if not words:
        return text
    word, other = random_.choice(words), random_.choice(words)
    return text[:word.start()] + other[0] + text[word.end():]
