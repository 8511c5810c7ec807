"""Finds the scheduled HLO in a folder that XLA dumped into (``--xla_dump_to``)."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.util.read import MOST_TRACE_BYTES, read_regular

_GPU = re.compile(r"^(?P<module>module_\d+\.(?P<name>.+?))\.(?:sm_[\w.]+?_)?gpu_after_optimizations\.txt$")
_OTHER = re.compile(r"\.(cpu|tpu)\w*_after_\w*optimizations\.txt$|\.tpu_comp_env\.txt$")
_PARTITIONED, _OPTIONS = "after_spmd_partitioner.txt", "debug_options"
_OPTION = re.compile(r'^(\w+): "?([^"\n]*)"?$', re.MULTILINE)
_MEMORY = "gpu_after_optimizations-memory-usage-report.txt"
_TOTAL = re.compile(r"^Total bytes(?: used)?: (\d+)", re.MULTILINE)
_OPCODE = re.compile(r" ([a-z][\w\-]*)\(")
_MOST_NAMED = 5


@dataclass(frozen=True)
class DumpedModule:
    """A module of a dump.

    Attributes:
      path: its scheduled HLO.
      module: ``module_0007.jit_step``.
      name: the module's name without the number: ``jit_step``.
      text: the HLO.
      memory_bytes: memory of one device; None when the dump does not say.
      partitioned: the program of one device before XLA optimises it, as HLO; empty when the dump does not contain it.
      options: XLA flags that the job set, as far as the dump says.
    """

    path: str
    module: str
    name: str
    text: str
    memory_bytes: int | None
    partitioned: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def dumped_module(folder: str, wanted: str = "") -> DumpedModule:
    """The module of a dump to look at.

    Args:
      folder: where XLA dumped.
      wanted: its name, as in the file's name (``module_0007.jit_step``) or without the number; when empty, the only
        module, or the only one that communicates.

    Returns:
      The module.

    Raises:
      InputError: the folder contains no scheduled HLO of XLA:GPU.
      UsageError: it contains several modules, or none of that name.
    """
    found = _modules(folder)
    if wanted:
        named = [each for each in found if wanted in (each[1], each[2])]
        if not named:
            raise UsageError(f'the dump has no module "{wanted}"', location=folder,
                             hint=f"there is {_listed(found)}")
        found = named
    elif len(found) > 1:
        found = [each for each in found if _communicates(_read(each[0]))] or found
    if len(found) > 1:
        raise UsageError(f"the dump contains {len(found)} modules", location=folder,
                         hint=f"name one with --module: {_listed(found)}")
    path, module, name = found[0]
    return DumpedModule(str(path), module, name, text=_read(path), memory_bytes=_memory(path),
                        partitioned=_beside(path, module, _PARTITIONED),
                        options=dict(_OPTION.findall(_beside(path, module, _OPTIONS))))


def _modules(folder: str) -> list[tuple[Path, str, str]]:
    """(file, module, name without the number) of each module, sorted."""
    try:
        files = sorted(os.listdir(folder))
    except OSError as error:
        raise InputError(f"cannot be read ({os.strerror(error.errno or 0)})", location=folder,
                         hint="name the folder of --xla_dump_to") from None
    found = [(Path(folder) / name, match["module"], match["name"]) for name in files if (match := _GPU.match(name))]
    if found:
        return found
    other = next((match.group(1) or "tpu" for name in files if (match := _OTHER.search(name))), "")
    if other:
        raise InputError(f"this dump is XLA:{other.upper()}'s; only schedules of XLA:GPU are read", location=folder,
                         hint="dump the step where it is compiled for GPUs, or pass its StableHLO")
    raise InputError("contains no *gpu_after_optimizations.txt", location=folder,
                     hint="name the folder that a job with XLA_FLAGS=--xla_dump_to=FOLDER wrote")


def _listed(found: list[tuple[Path, str, str]]) -> str:
    """The names to choose from, largest files first."""
    order = sorted(found, key=lambda each: (-each[0].stat().st_size, each[1]))
    names = [each[2] for each in found]
    shown = [each[2] if names.count(each[2]) == 1 else each[1] for each in order]
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return ", ".join(shown[:_MOST_NAMED]) + more


def _communicates(text: str) -> bool:
    return any(collective_kind(opcode) for opcode in set(_OPCODE.findall(text)))


def _read(path: Path) -> str:
    try:
        return read_regular(path, MOST_TRACE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"cannot be read ({os.strerror(error.errno or 0)})", location=str(path),
                         hint="check its permissions") from None


def _beside(path: Path, module: str, ending: str) -> str:
    """The text of another file of a module's dump; empty if there is none."""
    other = path.with_name(f"{module}.{ending}")
    return _read(other) if other.is_file() else ""


def _memory(path: Path) -> int | None:
    """What XLA's memory report next to a module says."""
    report = path.with_name(path.name.replace("gpu_after_optimizations.txt", _MEMORY))
    total = _TOTAL.search(_read(report)) if report.is_file() else None
    return int(total.group(1)) if total else None
