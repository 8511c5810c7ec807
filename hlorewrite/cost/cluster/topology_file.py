"""Reads and checks topology files: TOML with a few sections, each key with its type and range.

A file may ``extends = "h100"`` a shipped topology and then states only what differs.
"""

import functools
import itertools
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hlorewrite.cost.cluster.topology import ARCHITECTURES, LINK_KINDS, NETWORK_KINDS, Topology
from hlorewrite.cost.collective_kinds import KINDS, default_constants
from hlorewrite.errors import InputError, UsageError, did_you_mean
from hlorewrite.util.read import read_regular

Fail = Callable[[str, str, str, str], InputError]
SHIPPED = Path(__file__).parent.parent / "data" / "topologies"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a topology file: where it goes, and what it may contain."""

    field: str
    kind: type
    choices: tuple[str, ...] = ()
    most: float | None = None
    zero_ok: bool = False


KEYS: Mapping[str, Mapping[str, Key]] = MappingProxyType({
    "": {
        "extends": Key("", str),
        "name": Key("name", str),
        "hosts": Key("hosts", int),
        "gpus_per_host": Key("gpus_per_host", int),
    },
    "gpu": {
        "model": Key("gpu", str),
        "architecture": Key("architecture", str, ARCHITECTURES),
        "memory_bytes": Key("memory_bytes", float),
        "memory_bytes_per_s": Key("memory_bytes_per_s", float),
    },
    "link": {
        "kind": Key("intra_kind", str, LINK_KINDS),
        "bytes_per_s": Key("intra_bytes_per_s", float),
        "efficiency": Key("intra_efficiency", float, most=1.0),
        "latency_s": Key("intra_latency_s", float, zero_ok=True),
        "switched": Key("switched", bool),
        "nvls": Key("nvls", bool),
    },
    "network": {
        "kind": Key("inter_kind", str, NETWORK_KINDS),
        "nics_per_host": Key("nics_per_host", int),
        "nic_bytes_per_s": Key("nic_bytes_per_s", float),
        "efficiency": Key("nic_efficiency", float, most=1.0),
        "latency_s": Key("inter_latency_s", float, zero_ok=True),
        "sharp": Key("sharp", bool),
    },
})
OPEN_SECTIONS = ("gpu.peak_flops", "collectives", "curves")  # keys of these are checked by their own rules
DTYPES = ("f64", "f32", "tf32", "bf16", "f16", "f8", "f4", "i8")
OPTIONAL_FIELDS = {"", "hosts"}
_MOST_SHOWN = 60
LEAST, MOST = 1e-30, 1e30
"""Bounds of every number of a cluster, so that results stay finite."""


def topology_names() -> list[str]:
    """The names of the shipped topologies.

    Returns:
        Names, sorted.

    Example:
        >>> "h200" in topology_names()
        True
    """
    return sorted(path.name.removesuffix(".toml") for path in SHIPPED.glob("*.toml"))


def topology(spec: str) -> Topology:
    """The topology a text names.

    Args:
        spec: ``NAME:HOSTSxGPUS``, ``NAME`` (one whole server), or the same with the path of a TOML file
            for NAME.

    Returns:
        The topology.

    Raises:
        UsageError: the name is unknown, or the numbers are not possible.
        InputError: the file is malformed; the message names key and line.

    Example:
        >>> topology("h200:4x8").gpus
        32
    """
    name, colon, size = spec.rpartition(":")
    if not colon:
        name, size = spec, ""
    if name.endswith(".toml"):
        loaded = load_topology(name)
    elif name in topology_names():
        loaded = _shipped(name)
    else:
        raise UsageError(f'there is no topology "{name}"', hint=did_you_mean(name, topology_names()))
    return loaded.sized(*_parse_size(spec, size)) if size else loaded


def cluster_of_target(target: str) -> str:
    """The cluster that a target describes.

    Args:
        target: what a module is compiled for: ``h200:4x8``, ``h200:8`` (one host), ``cpu:8`` or ``gpu``.

    Returns:
        The text of a topology; empty for a target that names no kind of GPU.

    Example:
        >>> cluster_of_target("h200:8"), cluster_of_target("cpu:8")
        ('h200:1x8', '')
    """
    name, _, size = target.strip().lower().partition(":")
    if not size or name not in topology_names():
        return ""
    return f"{name}:{size if 'x' in size else f'1x{size}'}"


@functools.cache
def _shipped(name: str) -> Topology:
    """A topology of the package, read once."""
    return load_topology(SHIPPED / f"{name}.toml")


def _parse_size(spec: str, size: str) -> tuple[int, int]:
    """Reads ``HOSTSxGPUS``."""
    hosts, cross, gpus = size.partition("x")
    if not (cross and hosts.isdecimal() and gpus.isdecimal()):
        raise UsageError(f'"{size}" in "{spec}" is not HOSTSxGPUS', hint='write it like "h200:4x8"')
    return int(hosts), int(gpus)


def load_topology(path: str | Path) -> Topology:
    """Reads and checks one topology file.

    Args:
        path: the TOML file.

    Returns:
        One server, or as many hosts as the file's ``hosts`` says.

    Raises:
        InputError: missing file, TOML syntax, or a wrong, unknown or missing key; named with its line.

    Example:
        >>> load_topology(SHIPPED / "p3.8xlarge.toml").nic_bytes_per_s
        1250000000.0
    """
    fields, opened = _fields(Path(path), ())
    peaks = opened["gpu.peak_flops"]
    missing = [(section, name) for section, keys in KEYS.items() for name, key in keys.items()
                if key.field not in fields and key.field not in OPTIONAL_FIELDS]
    if missing:
        section, name = missing[0]
        where = f"[{section}] " if section else ""
        raise InputError(f'the key {where}"{name}" is missing', location=str(path),
                         hint='add it, or start from a shipped server with extends = "h100"')
    if not peaks:
        raise InputError("the section [gpu.peak_flops] is missing", location=str(path), hint="add bf16 = ... to it")
    return Topology(**{"hosts": 1, **fields}, peak_flops=MappingProxyType(peaks),
                    server_gpus=fields["gpus_per_host"], collectives=MappingProxyType(opened["collectives"]),
                    curves=MappingProxyType(opened["curves"]))


def _fields(path: Path, seen: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The checked fields and open sections of a file over those of the file it extends."""
    text = _read(path)
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # also a number of more digits than Python reads
        at = re.search(r"line (\d+), column (\d+)", str(error))
        raise InputError(f"not TOML: {str(error).split(' (at')[0]}", hint="correct the line",
                         location=f"{path}:{at[1]}:{at[2]}" if at else str(path)) from None
    lines = _key_lines(text)

    def fail(section: str, name: str, what: str, hint: str) -> InputError:
        line = lines.get((section, name)) or lines.get((section, ""), 1)
        where = f"[{section}] " if section else ""
        return InputError(f'{where}"{name}" {what}', location=f"{path}:{line}", hint=hint)

    base: dict[str, Any] = {}
    base_opened: dict[str, dict[str, Any]] = {section: {} for section in OPEN_SECTIONS}
    parent = data.get("extends")
    if parent is not None:
        if not isinstance(parent, str) or parent not in topology_names():
            raise fail("", "extends", f"names no shipped topology: {parent!r}",
                       did_you_mean(str(parent), topology_names()))
        if parent in seen:
            raise fail("", "extends", "leads back to this file", "name another topology")
        base, base_opened = _fields(SHIPPED / f"{parent}.toml", (*seen, parent))
    own, opened = _check(data, fail)
    return base | own, {section: base_opened[section] | opened[section] for section in OPEN_SECTIONS}


def _check(data: dict[str, Any], fail: Fail) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Checks that every key is known and every value in range; the error names the key."""
    fields: dict[str, Any] = {}
    opened: dict[str, dict[str, Any]] = {section: {} for section in OPEN_SECTIONS}
    for section, name, value in _flatten(data):
        if section in OPEN_SECTIONS:
            opened[section][name] = _open_value(section, name, value, fail)
            continue
        keys = KEYS.get(section)
        if keys is None:
            known = [*filter(None, KEYS), *OPEN_SECTIONS]
            raise fail(section, name, "is in an unknown section", did_you_mean(section, known))
        if name not in keys:
            raise fail(section, name, "is not a known key", did_you_mean(name, keys))
        fields[keys[name].field] = _value(section, name, value, keys[name], fail)
    fields.pop("", None)
    return fields, opened


def _open_value(section: str, name: str, value: Any, fail: Fail) -> Any:
    """A peak by dtype, a constant of the collective model, or a measured curve."""
    if section == "gpu.peak_flops" and name not in DTYPES:
        raise fail(section, name, "is not a known dtype", did_you_mean(name, DTYPES))
    if section == "collectives" and name not in default_constants():
        raise fail(section, name, "is not a constant of the model", did_you_mean(name, default_constants()))
    if section != "curves":
        return _number(section, name, value, Key(name, float, zero_ok=section == "collectives"), fail)
    kind, _, shape = name.rpartition("-")
    if kind not in KINDS or not re.fullmatch(r"[1-9]\d{0,6}x[1-9]\d{0,6}", shape):
        raise fail(section, name, "is not KIND-HOSTSxRANKS", 'write it like "all-reduce-1x8"')
    if not isinstance(value, list) or len(value) < 2:
        raise fail(section, name, "needs at least two points", "write [[bytes, seconds], ...]")
    points = []
    for point in value:
        if not isinstance(point, list) or len(point) != 2:
            raise fail(section, name, f"has a point {shown(point)}", "write [bytes, seconds]")
        points.append(tuple(_number(section, name, part, Key(name, float), fail) for part in point))
    if any(before[0] >= after[0] for before, after in itertools.pairwise(points)):
        raise fail(section, name, "is not sorted by bytes", "sort its points by size, each size once")
    return tuple(points)


def _flatten(data: dict[str, Any], section: str = "") -> list[tuple[str, str, Any]]:
    """(section, key, value) of every leaf."""
    entries = []
    for name, value in data.items():
        if isinstance(value, dict):
            entries += _flatten(value, f"{section}.{name}" if section else name)
        else:
            entries.append((section, name, value))
    return entries


def _value(section: str, name: str, value: Any, key: Key, fail: Fail) -> Any:
    if key.kind in (int, float):
        return _number(section, name, value, key, fail)
    if not isinstance(value, key.kind):
        raise fail(section, name, f"is {shown(value)}, not {'true or false' if key.kind is bool else 'a text'}",
                   "correct the value")
    if key.choices and value not in key.choices:
        raise fail(section, name, f"is {shown(value)}", did_you_mean(value, key.choices))
    if key.kind is str and not value:
        raise fail(section, name, "is empty", "write some text")
    return value


def shown(value: object) -> str:
    """A value as a message shows it; only the beginning of a long one."""
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _number(section: str, name: str, value: Any, key: Key, fail: Fail) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise fail(section, name, f"is {shown(value)}, not a number", "write a number, such as 50e9")
    if key.kind is int and not isinstance(value, int):
        raise fail(section, name, f"is {shown(value)}, not a whole number", "write a whole number")
    if value < 0 or (value == 0 and not key.zero_ok) or 0 < value < LEAST or value > MOST:
        raise fail(section, name, f"is {shown(value)}", f"write a number above zero, from {LEAST:g} to {MOST:g}")
    if key.most is not None and value > key.most:
        raise fail(section, name, f"is {shown(value)}, above {key.most}", "a share must be at most 1")
    return value if key.kind is int else float(value)


def _read(path: Path) -> str:
    try:
        return read_regular(path, what="topology file").decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", location=str(path), hint="a topology file is TOML text") from None
    except OSError as error:
        raise InputError(f"cannot read the topology file: {error.strerror}", location=str(path),
                         hint="check the path") from None


def _key_lines(text: str) -> dict[tuple[str, str], int]:
    """The line of each ``key =`` and of each section header (under the key ``""``); tomllib keeps none."""
    lines: dict[tuple[str, str], int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            section = ".".join(part.strip().strip("\"'") for part in header[1].split("."))
            lines.setdefault((section, ""), number)
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            *outer, last = (part.strip("\"'") for part in key[1].split("."))
            lines.setdefault((".".join([section, *outer] if section else outer), last), number)
    return lines
