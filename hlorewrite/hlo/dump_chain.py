"""Dumps of XLA: the scheduled HLO in a folder, and the programs of one module that each pass read and left."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.errors import InputError, UsageError, did_you_mean
from hlorewrite.hlo.aliasing import aliases
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.parse import HloText, parse_hlo
from hlorewrite.util.read import MOST_TRACE_BYTES, read_regular

_STAGE = re.compile(r"(?P<module>module_\d+\.(?P<name>.+?))\.(?P<number>\d{4})\.(?P<pipeline>[\w\-]+)\."
                    r"after_(?P<done>[\w\-]+?)(?:\.before_[\w\-]+)?\.txt")
_ENDS = re.compile(r"(?P<module>module_\d+\.(?P<name>.+?))\.(?:[\w.\-]*?(?P<last>(?:cpu|gpu)_after_optimizations)"
                   r"|(?P<first>before_optimizations))\.txt")
_START, _LAST = "pipeline-start", 10_000
_NAME = re.compile(r"%[\w.\-]+")
_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_LOCAL = ("spmd-cleanup", "spmd-partitioning")
"""The first pipeline that reads programs of one device, and the pass that leaves one."""
_MOST_NAMED = 5
HOW_TO_DUMP = "--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_large_constants --xla_dump_hlo_pass_re=.*"
"""The ``XLA_FLAGS`` for such a dump."""


@dataclass(frozen=True, eq=False)
class DumpStage:
    """A program of a dump.

    Attributes:
      file: its path.
      pipeline: the pipeline of XLA that it was written in.
      done: the pass that left it; ``pipeline-start`` where passes before it wrote nothing.
      text: the HLO.
      parsed: the same, read.
      local: whether it is what one device runs: the partitioner is done.
    """

    file: Path
    pipeline: str
    done: str
    text: str
    parsed: HloText
    local: bool

    @property
    def pass_name(self) -> str:
        """The pass that wrote it, as ``simplification/algsimp``."""
        if self.done == "before_optimizations":
            return self.done
        return f"before {self.pipeline}" if self.done == _START else f"{self.pipeline}/{self.done}"


def dump_chain(folder: Path, wanted: str = "") -> tuple[str, list[DumpStage]]:
    """The distinct programs of one module of a dump, in the order in which XLA's passes left them.

    Args:
      folder: where XLA dumped every pass.
      wanted: the module, as the files name it (``module_0007.jit_step``) or without the number; when empty, the one
        that passes changed most often.

    Returns:
      The module's name, and its programs. Neighbours differ in more than names and metadata.

    Raises:
      InputError: the folder contains no dump of passes, or a file of it cannot be read.
      UsageError: it contains no module of the name.

    Example:
      >>> import tempfile
      >>> text = "HloModule m\\n\\nENTRY %main (p: f32[]) -> f32[] {\\n  ROOT %p = f32[] parameter(0)\\n}\\n"
      >>> with tempfile.TemporaryDirectory() as name:
      ...     for file in ("module_0001.m.0000.simplification.after_algsimp.txt", "module_0001.m.0001.x.after_cse.txt"):
      ...         _ = Path(name, file).write_text(text)
      ...     module, stages = dump_chain(Path(name))
      >>> module, [stage.pass_name for stage in stages]
      ('module_0001.m', ['simplification/algsimp'])
    """
    found: dict[str, list[tuple[int, str, str, Path]]] = {}
    names: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        stage, end = _STAGE.fullmatch(path.name), _ENDS.fullmatch(path.name)
        if stage is not None:
            row = (int(stage["number"]), stage["pipeline"], stage["done"], path)
        elif end is not None:
            row = (_LAST if end["last"] else -1, end["last"] or end["first"], end["last"] or end["first"], path)
        else:
            continue
        match = stage or end
        assert match is not None
        found.setdefault(match["module"], []).append(row)
        names[match["module"]] = match["name"]
    passes = {module: sum(0 <= row[0] < _LAST for row in rows) for module, rows in found.items()}
    if not any(passes.values()):
        raise InputError("contains no dump of XLA's passes", location=str(folder),
                         hint=f'dump with XLA_FLAGS="{HOW_TO_DUMP}"')
    module = _chosen(names, passes, wanted, folder)
    return module, _distinct(sorted(found[module], key=lambda row: row[0]))


def _chosen(names: dict[str, str], passes: dict[str, int], wanted: str, folder: Path) -> str:
    if not wanted:
        return max(sorted(passes), key=lambda module: passes[module])
    fitting = [module for module, name in names.items() if wanted in (module, name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"the dump contains {len(fitting)} modules {wanted}", location=str(folder),
                         hint=f"name one with its number: {', '.join(fitting[:_MOST_NAMED])}")
    raise UsageError(f"the dump contains no module {wanted}", location=str(folder),
                     hint=did_you_mean(wanted, sorted(names)))


def _distinct(rows: list[tuple[int, str, str, Path]]) -> list[DumpStage]:
    """The programs that differ from the one before."""
    stages: list[DumpStage] = []
    key, local = "", False
    after = any(pipeline == _LOCAL[0] or done == _LOCAL[1] for _, pipeline, done, _ in rows)
    for _, pipeline, done, path in rows:
        text = read_regular(path, MOST_TRACE_BYTES).decode(errors="replace")
        local |= not after or pipeline == _LOCAL[0] or done == _LOCAL[1]
        same = _key(text)
        if stages and same == key:
            continue
        try:
            parsed = parse_hlo(text)
        except InputError as error:
            error.location = error.location or str(path)
            raise
        stages.append(DumpStage(path, pipeline, done, text, parsed, local))
        key = same
    return stages


def _key(text: str) -> str:
    """Text with values numbered in order, without metadata and tables; which memory results share stays."""
    numbers: dict[str, str] = {}
    lines = text.splitlines()
    body = [_METADATA.sub("", line) for line in lines if line.startswith((" ", "%", "ENTRY", "}"))]
    shared = str(sorted(aliases(lines[0]))) if lines else ""
    return shared + _NAME.sub(lambda match: numbers.setdefault(match[0], f"%{len(numbers)}"), "\n".join(body))


# ---- finds the scheduled HLO in a folder that XLA dumped into (``--xla_dump_to``)


_GPU = re.compile(r"^(?P<module>module_\d+\.(?P<name>.+?))\.(?:sm_[\w.]+?_)?gpu_after_optimizations\.txt$")
_OTHER = re.compile(r"\.(cpu|tpu)\w*_after_\w*optimizations\.txt$|\.tpu_comp_env\.txt$")
_PARTITIONED, _OPTIONS = "after_spmd_partitioner.txt", "debug_options"
_OPTION = re.compile(r'^(\w+): "?([^"\n]*)"?$', re.MULTILINE)
_MEMORY = "gpu_after_optimizations-memory-usage-report.txt"
_TOTAL = re.compile(r"^Total bytes(?: used)?: (\d+)", re.MULTILINE)
_OPCODE = re.compile(r" ([a-z][\w\-]*)\(")


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
