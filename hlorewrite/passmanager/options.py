"""Options of a pass: the typed fields of a frozen dataclass, to text and back."""

import dataclasses
import enum
import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hlorewrite.errors import UsageError, closest, did_you_mean
from hlorewrite.util.sizes import exact_bytes, parse_bytes

_SIZE_MARK = "bytes"
Size = Annotated[int, _SIZE_MARK]
"""Type of an option that is a number of bytes, written as ``hlorewrite.util.sizes.parse_bytes`` reads it: ``8GiB``."""

_BARE = re.compile(r"[^\s{}(),=\"']+")


@dataclass(frozen=True)
class Option:
    """One option of a pass as ``hlorewrite help`` shows it.

    Attributes:
      name: as written on the command line, with dashes.
      kind: its type in words.
      default: its default as text; None when it must be given.
      help: its line in the docstring.
    """

    name: str
    kind: str
    default: str | None
    help: str


def options_of(cls: type) -> list[Option]:
    """The options of a pass class, in the order of its fields."""
    hints, helps = _hints(cls), _attribute_lines(cls)
    return [Option(_dashed(f.name), kind_in_words(hints[f.name]),
                   None if _default(f) is dataclasses.MISSING else to_text(_default(f), hints[f.name]),
                   f.metadata.get("help", helps.get(f.name, "")))
            for f in dataclasses.fields(cls)]


def options_from_text(cls: type, options: Mapping[str, str], owner: str) -> dict[str, Any]:
    """Field values from option texts.

    Args:
      cls: the frozen dataclass.
      options: name (dashes or underscores) to text.
      owner: what the options belong to, for messages: ``pass "cse"``.

    Returns:
      Keyword arguments for the class.

    Raises:
      UsageError: an option is unknown, missing, or its text is not of its type.
    """
    fields = {f.name: f for f in dataclasses.fields(cls)}
    hints, values = _hints(cls), {}
    for name, text in options.items():
        key = name.replace("-", "_")
        if key not in fields:
            known = [_dashed(each) for each in fields]
            hint = closest(_dashed(key), known)
            listed = f"{hint} its options: {', '.join(known)}" if hint else did_you_mean(_dashed(key), known)
            raise UsageError(f'{owner} has no option "{name}"', hint=listed if known else "it takes none")
        values[key] = from_text(text, hints[key], f'option "{_dashed(key)}" of {owner}')
    missing = [_dashed(f.name) for f in fields.values()
               if f.name not in values and _default(f) is dataclasses.MISSING]
    if missing:
        raise UsageError(f'{owner} needs option "{missing[0]}"', hint=f"write {{{missing[0]}=...}}")
    return values


def options_to_text(instance: Any) -> str:
    """The options that differ from their defaults, ``a=1 b=x,y``; parses back to the same values."""
    hints = _hints(type(instance))
    shown = []
    for f in dataclasses.fields(instance):
        value = getattr(instance, f.name)
        if value != _default(f):
            shown.append(f"{_dashed(f.name)}={to_text(value, hints[f.name])}")
    return " ".join(shown)


def to_text(value: Any, kind: Any) -> str:
    """One value as option text.

    Example:
      >>> to_text(8 * 2**30, Size), to_text((1, 2), tuple[int, ...]), to_text("a b", str)
      ('8GiB', '1,2', '"a b"')
    """
    kind = _without_none(kind)[0]
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        inner = _element_kinds(kind, len(value))
        return ",".join(to_text(v, k) for v, k in zip(value, inner, strict=True))
    if isinstance(value, enum.Enum):
        return quoted(str(value.value))
    if _is_size(kind):
        return exact_bytes(value)
    return repr(value) if isinstance(value, float) else quoted(str(value))


def from_text(text: str, kind: Any, what: str) -> Any:
    """One value from option text.

    Args:
      text: the text, quotes already removed only by the pipeline parser's tokenizer for whole values.
      kind: the field's type.
      what: what is being read, for messages.

    Returns:
      The value.

    Raises:
      UsageError: the text is not of that type.

    Example:
      >>> from_text("8GiB", Size, "it") == 8 * 2**30, from_text("1,2", tuple[int, ...], "it")
      (True, (1, 2))
    """
    kind, optional = _without_none(kind)
    if optional and text == "none":
        return None
    if get_origin(kind) is tuple:
        parts = split_list(text)
        return tuple(from_text(p, k, what) for p, k in zip(parts, _element_kinds(kind, len(parts), what), strict=True))
    text = unquoted(text)
    try:
        return _scalar(text, kind, what)
    except ValueError:
        raise UsageError(f"{what}: {text!r} is not {kind_in_words(kind)}", hint="change the value") from None


def _scalar(text: str, kind: Any, what: str) -> Any:
    if _is_size(kind):
        return _size(text)
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower()) if text.lower() in (
            "true", "1", "false", "0") else _refuse()
    if kind in (int, float):
        return kind(text)
    if kind is str:
        return text
    if get_origin(kind) is Literal:
        chosen = next((v for v in get_args(kind) if str(v) == text), None)
        return chosen if chosen is not None else _unknown(text, map(str, get_args(kind)), what)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        chosen = next((v for v in kind if str(v.value) == text), None)
        return chosen if chosen is not None else _unknown(text, (str(v.value) for v in kind), what)
    raise TypeError(f"{what}: a field of type {kind} cannot be an option")


def _refuse() -> Any:
    raise ValueError


def _unknown(text: str, known: Any, what: str) -> Any:
    known = list(known)
    hint = did_you_mean(text, known)
    expected = "" if hint.startswith("known") else f" known: {', '.join(known)}"
    raise UsageError(f'{what}: unknown value "{text}"', hint=hint + expected)


def kind_in_words(kind: Any) -> str:
    """A type as help shows it."""
    kind, optional = _without_none(kind)
    after = " or none" if optional else ""
    if get_origin(kind) is tuple:
        return f"a list of {kind_in_words(get_args(kind)[0]).removeprefix('a ').removeprefix('an ')}, comma-separated"
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind))) + after
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "one of " + ", ".join(str(v.value) for v in kind) + after
    if _is_size(kind):
        return "a number of bytes such as 8GiB" + after
    words = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
    return words.get(kind, str(kind)) + after


def quoted(text: str) -> str:
    """Text as an option value: bare if the pipeline syntax allows it, otherwise in double quotes."""
    if _BARE.fullmatch(text) and text != "none":
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unquoted(text: str) -> str:
    """The value inside double quotes, or the bare text."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def split_list(text: str) -> list[str]:
    """Splits at commas outside quotes; an empty text is the empty list, ``""`` holds one empty text."""
    if text == "":
        return []
    return re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', text)


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except UsageError:
        raise ValueError from None


def _is_size(kind: Any) -> bool:
    return get_origin(kind) is Annotated and _SIZE_MARK in get_args(kind)[1:]


def _without_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) in (Union, types.UnionType):
        rest = [k for k in get_args(kind) if k is not type(None)]
        return (rest[0], True) if len(rest) == 1 else (kind, False)
    return kind, False


def _element_kinds(kind: Any, count: int, what: str = "") -> list[Any]:
    args = get_args(kind)
    if len(args) == 2 and args[1] is Ellipsis:
        return [args[0]] * count
    if len(args) != count:
        raise UsageError(f"{what}: {len(args)} values expected, {count} given", hint="separate them by commas")
    return list(args)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _default(f: dataclasses.Field[Any]) -> Any:
    return f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _attribute_lines(cls: type) -> dict[str, str]:
    """Option name to its text in the ``Attributes:`` section of a Google-style docstring."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    section = re.search(r"^Attributes:\n((?:[ \t]+.*\n?|\n)+)", doc, re.MULTILINE)
    lines: dict[str, str] = {}
    name = ""
    for line in section.group(1).splitlines() if section else []:
        start = re.match(r"\s{2,4}(\w+):\s+(.*)", line)
        if start:
            name, lines[start.group(1)] = start.group(1), start.group(2).strip()
        elif name and line.strip():
            lines[name] += " " + line.strip()
    return lines


_OPTION_NAME = re.compile(r"[A-Za-z_][\w-]*")


def parse_options(text: str, owner: str) -> dict[str, str]:
    """Options between braces, ``a=1 b="x y" c``; a name alone means ``true``.

    Args:
      text: what is between the braces.
      owner: whose options they are, for messages.

    Returns:
      Name to text, quotes kept.

    Raises:
      UsageError: the text is not a list of options, or an option is given twice.

    Example:
      >>> parse_options('a=1,2 b="x y" c', "it")
      {'a': '1,2', 'b': '"x y"', 'c': 'true'}
    """
    options: dict[str, str] = {}
    for word in re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^\s"]|")+', text):
        name, equals, value = word.partition("=")
        if not _OPTION_NAME.fullmatch(name) or (value.count('"') % 2 and "\\" not in value):
            raise UsageError(f'{owner}: "{word}" is not an option', hint="write name=value, separated by spaces")
        if name in options:
            raise UsageError(f'{owner}: option "{name}" is given twice', hint="keep one of them")
        options[name] = value if equals else "true"
    return options
