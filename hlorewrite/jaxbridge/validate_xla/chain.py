"""Verdicts on what XLA's passes did to a program: on all passes at once, then on halves, then on single passes if
halves fail.
"""

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hlorewrite.checks.reference.refute import DRAWS
from hlorewrite.checks.translation_validation.equivalence import Certainty, Equivalence, compare_modules, prove
from hlorewrite.errors import InputError
from hlorewrite.hlo.aliasing import alias_fault
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.dump_chain import DumpStage, dump_chain
from hlorewrite.hlo.per_device import manual_program, per_device_pair
from hlorewrite.hlo.plain_hlo import FILE, PlainHlo
from hlorewrite.hlo.shapes import shape_elements
from hlorewrite.ir import Module
from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump
from hlorewrite.jaxbridge.validate_xla.read_hlo import read_hlo
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd

_ORDER = list(Certainty)
_PLACE = re.compile(rf"{FILE}:(\d+)")
_MOST_MOVED = 4
_MOST_ELEMENTS = 1 << 24
"""The most elements of arguments on all devices: with more, the interpreter would need minutes and gigabytes for the
partitioner alone."""
_PARTITIONS = ("shardy-xla", "sharding-propagation")
"""Passes that begin to partition: what they leave means something else on one device."""


@dataclass(frozen=True)
class PassVerdict:
    """What is known about one pass, or several in a row.

    Attributes:
      passes: their names, as ``simplification/algsimp``.
      before: the file of the program they read.
      after: the file of the one they left.
      local: whether these are programs of one device.
      answer: the verdict.
      seconds: what it took.
      instruction: the instruction of the program after where the proof stopped; empty for proofs.
      source: the user's line of that instruction.
      moved: collectives that are in another computation, new or gone.
    """

    passes: tuple[str, ...]
    before: str
    after: str
    local: bool
    answer: Equivalence
    seconds: float
    instruction: str = ""
    source: str = ""
    moved: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainReport:
    """What is known about all passes.

    Attributes:
      module: which module of the dump.
      rows: the rows on passes before the partitioner and after it, in their order.
      unread: files that could not be read as StableHLO, with the reason; the passes around are compared across them.
      partitioned: whether the partitioner is in between.
      seconds: what it took.
      partitioning: the row on the partitioner; None if it is not compared.
    """

    module: str
    rows: tuple[PassVerdict, ...]
    unread: tuple[tuple[str, str], ...]
    partitioned: bool
    seconds: float
    partitioning: PassVerdict | None = None

    @property
    def every(self) -> tuple[PassVerdict, ...]:
        """All rows, with that of the partitioner last."""
        return self.rows if self.partitioning is None else (*self.rows, self.partitioning)

    @property
    def verdict(self) -> Certainty:
        """The worst verdict of all rows; a partitioner that could not be compared leaves it as it is."""
        known = [row.answer.verdict for row in self.every
                 if row is not self.partitioning or row.answer.verdict is not Certainty.UNKNOWN]
        return max(known, key=_ORDER.index, default=Certainty.PROVED)

    @property
    def whole(self) -> bool:
        """Whether everything after the partitioner was proved at once."""
        local = [row for row in self.rows if row.local]
        return len(local) <= 1 and all(row.answer.proved for row in local)


@dataclass(frozen=True, eq=False)
class _Program:
    """A stage that was read.

    Attributes:
      stage: the stage.
      module: its program, as StableHLO.
      plain: its program, as it was converted.
      passes: the passes since the stage before.
      of_device: whether it is what one device computes.
    """

    stage: DumpStage
    module: Module
    plain: PlainHlo
    passes: tuple[str, ...]
    of_device: bool


def validate_dump(folder: Path, *, module: str = "", seed: int = 0, draws: int = len(DRAWS), seconds: float = 60.0,
                  progress: Callable[[str], None] = lambda text: None) -> ChainReport:
    """Compares the programs of a dump of every pass.

    Args:
      folder: where XLA dumped.
      module: which module; by default the one that passes changed most often.
      seed: the seed of inputs, where no proof is found.
      draws: how many inputs are tried then; 0 for none.
      seconds: about how long they may take, for each pass.
      progress: takes a line about each comparison.

    Returns:
      A row for passes that were proved together, and one for each that was not.

    Raises:
      InputError: the folder contains no dump of passes, or a file of it is damaged.
      UsageError: it contains no module of the name.
    """
    started = time.monotonic()
    name, stages = dump_chain(folder, module)
    unread: list[tuple[str, str]] = []
    rows: list[PassVerdict] = []
    whole = [stage for stage in stages if not stage.local]
    at = next((at for at, stage in enumerate(whole) if stage.done in _PARTITIONS), len(whole))
    manual = _of_each_device(whole[:at])
    local_stages = [stage for stage in stages if stage.local]
    sides = _read(manual or whole[:at], unread, bool(manual)), _read(local_stages, unread, True)
    for local, programs in zip((False, True), sides, strict=True):
        progress(f"{name}: {len(programs)} programs")
        walk = _ChainWalk(programs, local, seed, draws, seconds, progress=progress)
        rows += walk.rows(0, len(programs) - 1) if len(programs) > 1 else []
    pair = _around_partitioner(whole[at:], *sides) if whole[at:] and all(sides) else []
    size = _elements(sides[0][-1]) if pair else 0
    walk = _ChainWalk(pair, True, seed, draws if size <= _MOST_ELEMENTS else 0, seconds, progress=progress)
    return ChainReport(name, tuple(rows), tuple(unread), bool(whole), time.monotonic() - started,
                       partitioning=_partitioner(walk.rows(0, 1)[0], size) if pair else None)


def _partitioner(row: PassVerdict, size: int) -> PassVerdict:
    """The row on the partitioner: without the collectives that it is there to make, and with the reason why a large
    program is not executed."""
    answer = row.answer
    if answer.verdict is Certainty.UNKNOWN and size > _MOST_ELEMENTS:
        answer = replace(answer, reason=f"{answer.reason}; not executed: its arguments have {size} elements")
    return replace(row, moved=(), answer=answer)


def _elements(program: _Program) -> int:
    """How many elements the arguments of a program have on all devices."""
    parsed = program.stage.parsed
    return parsed.devices * sum(shape_elements(each.shape) for each in parsed.parameters())


def _around_partitioner(stages: Sequence[DumpStage], before: Sequence[_Program], after: Sequence[_Program]
                        ) -> list[_Program]:
    """What each device computes before the partitioner and after it; empty if that is not known of both."""
    passes = (*(stage.pass_name for stage in stages), f"{stages[-1].pipeline}/spmd-partitioning")
    first, second = before[-1], replace(after[0], passes=passes)
    if first.of_device:
        return [first, second]
    pair = per_device_pair(first.stage.parsed, stages[-1].parsed, second.stage.parsed)
    if pair is None:
        return []
    made = []
    for program, parsed in zip((first, second), pair, strict=True):
        module, plain = read_hlo(parsed, program.stage.file.name)
        made.append(replace(program, stage=replace(program.stage, parsed=parsed), module=module, plain=plain))
    return made


def _of_each_device(stages: Sequence[DumpStage]) -> list[DumpStage]:
    """What each device computes in programs that are not partitioned yet; empty if that is not known of all."""
    programs = [manual_program(stage.parsed) for stage in stages]
    known = [replace(stage, parsed=each) for stage, each in zip(stages, programs, strict=True) if each is not None]
    return known if len(known) == len(stages) else []


def _read(stages: Sequence[DumpStage], unread: list[tuple[str, str]], of_device: bool) -> list[_Program]:
    """The stages that can be read, each with the passes since the one before it."""
    programs: list[_Program] = []
    passes: list[str] = []
    for stage in stages:
        passes.append(stage.pass_name)
        try:
            module, plain = read_hlo(stage.parsed, stage.file.name)
        except InputError as error:
            unread.append((stage.file.name, error.what))
            continue
        programs.append(_Program(stage, module, plain, tuple(passes), of_device))
        passes = []
    return programs


class _ChainWalk:
    """Compares ranges of programs.

    Args:
      programs: the programs, in order.
      local: whether they are programs of one device.
      seed: the seed of inputs.
      draws: how many are tried.
      seconds: how long.
      progress: takes a line about each comparison.
    """

    def __init__(self, programs: Sequence[_Program], local: bool, seed: int, draws: int, seconds: float, *,
                 progress: Callable[[str], None]) -> None:
        self._programs, self._local = programs, local
        self._seed, self._draws, self._seconds, self._progress = seed, draws, seconds, progress

    def rows(self, first: int, last: int) -> list[PassVerdict]:
        """The verdicts on the passes between two programs."""
        started = time.monotonic()
        before, after = self._programs[first], self._programs[last]
        passes = tuple(name for program in self._programs[first + 1:last + 1] for name in program.passes)
        self._progress(passes[-1] if last == first + 1 else f"{passes[0]} to {passes[-1]}")
        fault = alias_fault(before.stage.parsed.header, after.stage.parsed.header)
        if last > first + 1:
            answer = prove(before.module, after.module, quick=True)
            if not answer.proved or fault:
                middle = (first + last) // 2
                return _joined(self.rows(first, middle) + self.rows(middle, last), self._local)
        elif fault:
            answer = Equivalence(Certainty.UNKNOWN, reason=fault)
        else:
            answer = compare_modules(before.module, after.module, seed=self._seed, draws=self._draws,
                                     seconds=self._seconds)
        instruction, source = ("", "") if answer.proved else _where(after, answer.location)
        moved = () if answer.proved else _moved(before.stage, after.stage)
        return [PassVerdict(passes, before.stage.file.name, after.stage.file.name, self._local,
                            replace(answer, location=""), time.monotonic() - started, instruction=instruction,
                            source=source, moved=moved)]


def _joined(rows: Sequence[PassVerdict], local: bool) -> list[PassVerdict]:
    """Merges neighbouring rows that are proved into one: equality is transitive."""
    made: list[PassVerdict] = []
    for row in rows:
        if made and made[-1].answer.proved and made[-1].answer.verdict is row.answer.verdict:
            last = made.pop()
            strategy = last.answer.strategy if last.answer.strategy == row.answer.strategy else ""
            row = PassVerdict(last.passes + row.passes, last.before, row.after, local,
                              replace(row.answer, strategy=strategy), last.seconds + row.seconds)
        made.append(row)
    return made


def _where(program: _Program, location: str) -> tuple[str, str]:
    """The instruction that a location names, and the user's line of it."""
    match = _PLACE.match(location)
    if match is None or not 0 < int(match[1]) <= len(program.plain.origins):
        return "", ""
    computation, instruction = program.plain.origins[int(match[1]) - 1]
    source = program.stage.parsed.source(instruction)
    return f"%{instruction.name} in %{computation}", "" if source == "?" else source


def _moved(before: DumpStage, after: DumpStage) -> tuple[str, ...]:
    """The collectives that are not where they were."""
    old, new = _places(before), _places(after)
    gone = [f"%{name} left %{where}" for name, where in old if (name, where) not in new]
    made = [f"%{name} is new in %{where}" for name, where in new if (name, where) not in old]
    return tuple((gone + made)[:_MOST_MOVED])


def _places(stage: DumpStage) -> dict[tuple[str, str], None]:
    return {(each.name, computation.name): None for computation in stage.parsed.computations.values()
            for each in computation.instructions.values() if collective_kind(each.opcode)}


# ---- ``check="xla"``: whether XLA's passes preserve a step, checked once for each signature

# The step is compiled once more, in a separate process and up to the generation of code, with a dump of every pass.
# Then the programs of the dump are compared. A small step takes seconds, an unrolled model of many layers minutes.


def checked_step(module: Module, place: DeviceSet) -> tuple[str, str]:
    """What is known about XLA's passes on a step.

    Args:
      module: the module that is compiled.
      place: what for.

    Returns:
      The verdict, and a message for the user if a pass changed the program or could not be compared; empty
      otherwise.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {"
      ...                "%b = stablehlo.add %a, %a : tensor<4xf32> return %b : tensor<4xf32> }")
      >>> checked_step(module, DeviceSet("cpu"))
      ('proved', '')
    """
    target = f"cpu:{for_spmd(module).devices}" if place.platform == "cpu" else place.topology
    if not target:
        why = "there is no description of this cluster"
        return f"unknown: {why}", f"is compiled without a check of XLA's passes: {why}"
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as name:
        try:
            found = validate_dump(compile_with_dump(module, target, Path(name)))
        except InputError as error:
            return f"unknown: {error.what}", f"is compiled without a check of XLA's passes: {error.what}"
    return found.verdict.value, _sentence(found)


def _sentence(found: ChainReport) -> str:
    for row in found.every:
        if row.answer.verdict is Certainty.DIFFERS:
            where = f" at {row.source or row.instruction}" if row.source or row.instruction else ""
            return f"is changed by XLA's pass {row.passes[-1]}{where}: {row.answer.example}"
    unknown = [row.passes[-1] for row in found.rows if row.answer.verdict is Certainty.UNKNOWN]
    return f"has XLA passes that could not be compared: {', '.join(unknown)}" if unknown else ""
