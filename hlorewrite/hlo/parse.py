"""HLO text as computations and instructions: just enough to follow loops and calls, in one pass over the lines.

Reads what ``Compiled.as_text()``, XLA dumps and ``HloModule.to_string()`` print, in long or short form. Any other line
is an error, and never skipped, because it may communicate. Text that people write by hand has more freedom, and XLA's
own parser reads it first (``jaxbridge/xla/hlo_text.py``).
"""

import functools
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hlorewrite.errors import InputError
from hlorewrite.hlo.shapes import tuple_parts
from hlorewrite.ir.location import shown_path
from hlorewrite.util.sizes import MOST_DEVICES

_HEADER = re.compile(r"^\s*(ENTRY\s+)?%?([\w.\-]+)(?:\s*\(.*->.*)?\s*\{\s*$")
_END = re.compile(r"\s*\}(?:, [\w\-]+=.*)?\s*")
_INSTRUCTION = re.compile(r"^\s*(ROOT\s+)?%?([\w.\-]+)\s*=\s*")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_PLAIN = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = (\([^()]*\)|[^\s(]+) ([a-z][\w\-]*)\(([^()\"]*)\)(.*)")
"""A line without brackets or strings between those of its shape and operands: nearly all lines."""
PART = "#"
"""Precedes the number of an element in the name of a part of a tuple."""
_OPERAND = re.compile(r"%([\w.\-]+(?:#\d+)?)")
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
INDEX = re.compile(r"\bindex=(\d+)")
"""Finds, in the attributes of a get-tuple-element, which element it takes."""
_TARGET = re.compile(r'\bcustom_call_target="([^"]*)"')
_CALLED = re.compile(r"(\{[^}]*\}|%?[\w.\-]+)")
_NESTED = re.compile(r"\b[a-z][\w\-]*\(")
"""An instruction written in the place of an operand, as in text that people write."""
_FRAME, _NUMBER = "stack_frame_id=", re.compile(r"\d+")
_NO_OPERANDS = ("constant", "parameter")
_TABLE_ROW = re.compile(r"^(\d+)\s+(.*)$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_CALLING = ("body", "condition", "branch_computations", "true_computation", "false_computation", "calls", "to_apply",
            "called_computations")
_WRITE_IT = "pass HLO as XLA prints it: Compiled.as_text(), or a file of --xla_dump_to"
_MOST_SHOWN = 60


class HloInstruction(NamedTuple):
    """One line of HLO: result name, shape text, opcode, operand names and everything after the operands.

    A tuple rather than a dataclass: a module has hundreds of thousands of them, and a tuple takes a third of the time
    to make.
    """

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    literal: str = ""

    def called(self, *keys: str) -> tuple[str, ...]:
        """Names of the computations under attributes such as ``body`` or ``calls``."""
        names: list[str] = []
        for key in keys:
            text = self.attributes
            at = text.find(f" {key}=")
            if at >= 0 and '"' in text[:at]:  # it may be in a string
                text = without_strings(text)
                at = text.find(f" {key}=")
            match = _CALLED.match(text, at + len(key) + 2) if at >= 0 else None
            if match:
                names += [name.strip().lstrip("%") for name in match.group(1).strip("{}").split(",") if name.strip()]
        return tuple(names)


def header_of(lines: Iterable[str]) -> str:
    """The line that begins a module: comments may be before it; empty if there is none."""
    return next((line.lstrip() for line in lines if line.lstrip().startswith("HloModule")), "")


def is_scheduled(text: str) -> bool:
    """Whether HLO is the end of a compilation, by its header, and not a program that has yet to be compiled.

    Args:
      text: the text of the module, or its header alone. Nothing after the header is read.

    Example:
      >>> is_scheduled("HloModule m, is_scheduled=true"), is_scheduled("HloModule m, num_partitions=2")
      (True, False)
    """
    return "is_scheduled=true" in header_of(io.StringIO(text))


def without_strings(attributes: str) -> str:
    """The attributes of an instruction with its strings emptied: a name in a string says nothing.

    Args:
      attributes: what follows the operands.

    Example:
      >>> without_strings(', metadata={op_name="calls=%f \\\\" x"}, calls=%g')
      ', metadata={op_name=""}, calls=%g'
    """
    return _STRING.sub('""', attributes)


def custom_call_target(instruction: HloInstruction) -> str:
    """The target of a custom call; empty for other ops."""
    target = _TARGET.search(instruction.attributes)
    return target.group(1) if target else ""


@dataclass
class Computation:
    """A computation: its instructions by name in order, and which one is its root."""

    name: str
    instructions: dict[str, HloInstruction] = field(default_factory=dict)
    root: str = ""


@dataclass
class HloText:
    """A parsed HLO module: computations by name, the entry's name, the header line and the source frames."""

    header: str
    computations: dict[str, Computation] = field(default_factory=dict)
    entry: str = ""
    files: dict[int, str] = field(default_factory=dict)
    locations: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    frames: dict[int, int] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """Replicas times partitions, as the header states them."""
        return self.replicas * self.partitions

    @functools.cached_property
    def replicas(self) -> int:
        """Replicas, as the header states them."""
        return _header_number(self.header, "replica_count")

    @functools.cached_property
    def partitions(self) -> int:
        """Partitions, as the header states them."""
        return _header_number(self.header, "num_partitions")

    def parameters(self) -> list[HloInstruction]:
        """The arguments of the entry, by their numbers."""
        held = self.computations[self.entry].instructions.values()
        return sorted((each for each in held if each.opcode == "parameter"), key=lambda each: int(each.literal))

    def source(self, instruction: HloInstruction) -> str:
        """The user's line of an instruction as ``file:line:column``; ``?`` when it carries none."""
        at = instruction.attributes.find(_FRAME)
        match = _NUMBER.match(instruction.attributes, at + len(_FRAME)) if at >= 0 else None
        if match:
            name_id, line, column = self.locations.get(self.frames.get(int(match.group()), -1), (-1, 0, 0))
            if name_id in self.files:
                return f"{shown_path(self.files[name_id])}:{line}:{column}"
        if "source_file=" not in instruction.attributes:
            return "?"
        match = re.search(r'\bsource_file="((?:[^"\\]|\\.)*)"', instruction.attributes)
        line = re.search(r"\bsource_line=(\d+)", instruction.attributes)
        if not match:
            return "?"
        column = re.search(r"\bsource_column=(\d+)", instruction.attributes)
        return ":".join([shown_path(match.group(1)), line.group(1) if line else "0",
                         *([column.group(1)] if column else [])])


def parse_hlo(text: str) -> HloText:
    """Reads HLO text.

    Args:
      text: a whole module as XLA prints it.

    Returns:
      Its computations; instructions keep their attributes as text.

    Raises:
      InputError: a line cannot be read, a name appears twice or is missing, the module has more than ``MOST_DEVICES``
        devices, or the text contains no entry computation.

    Example:
      >>> module = parse_hlo("HloModule m\\n\\nENTRY %main (p: f32[4]) -> f32[4] {\\n"
      ...                    "  ROOT %p = f32[4]{0} parameter(0)\\n}\\n")
      >>> module.computations[module.entry].root
      'p'
    """
    lines = text.splitlines()
    module = HloText(header=header_of(lines))
    if not 0 < module.devices <= MOST_DEVICES:
        raise InputError(f"the module runs on {module.devices} devices", hint=f"1 to {MOST_DEVICES} are read")
    current: Computation | None = None
    table = ""
    for number, line in _whole_lines(lines):
        if current is not None:
            if line.startswith("}") or _END.fullmatch(line):
                current = None
            elif not _add_instruction(current, line) and not _says_nothing(line):
                raise _unreadable(number, line)
            continue
        if line in _TABLES:
            table = line
            continue
        row = _TABLE_ROW.match(line) if table else None
        if row:
            _add_row(module, table, int(row.group(1)), row.group(2))
            continue
        header = _HEADER.match(line)
        if line.lstrip().startswith("HloModule") or _says_nothing(line):
            continue
        if not header:
            raise _unreadable(number, line)
        table = ""
        current = _new_computation(module, number, line, header)
    if current is not None:
        raise InputError(f"the computation {current.name} has no end", hint="the text was cut short; write it again")
    if not module.entry:
        raise InputError("the text contains no HLO entry computation", hint="pass the output of XLA's HLO printer")
    _check_names(module)
    return module


def _whole_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Numbers and lines, instructions joined whose configuration goes over several lines, as XLA prints JSON."""
    begun, brackets, first = list[str](), 0, 0
    for number, line in enumerate(lines, 1):
        if begun or (line.count("{") > line.count("}") and " = " in line and not _says_nothing(line)):
            first = first if begun else number
            begun.append(line)
            brackets += _opened(line)
            if brackets > 0:
                continue
            yield first, " ".join(begun)
            begun, brackets = [], 0
        else:
            yield number, line
    if begun:
        yield first, " ".join(begun)


def _opened(line: str) -> int:
    """How many more brackets a line opens than it closes, outside of strings."""
    outside = without_strings(line) if '"' in line else line
    return outside.count("{") - outside.count("}")


def _new_computation(module: HloText, number: int, line: str, header: re.Match[str]) -> Computation:
    """The computation that a line begins."""
    name = header.group(2)
    if name in module.computations or (header.group(1) and module.entry):
        raise _unreadable(number, line, "begins a second entry" if header.group(1) else "repeats a name")
    if header.group(1):
        module.entry = name
    return module.computations.setdefault(name, Computation(name))


def _says_nothing(line: str) -> bool:
    """Whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith("//") or (text.startswith("/*") and text.endswith("*/"))


def _unreadable(number: int, line: str, why: str = "is not HLO as XLA prints it") -> InputError:
    shown = line.strip()
    shown = f"{shown[:_MOST_SHOWN]}..." if len(shown) > _MOST_SHOWN else shown
    return InputError(f'line {number} {why}: "{shown}"', hint=_WRITE_IT)


def _check_names(module: HloText) -> None:
    """Refuses a text that reads or calls undefined names; without a ``ROOT``, the last instruction is the root."""
    for computation in module.computations.values():
        if not computation.root and computation.instructions:
            computation.root = next(reversed(computation.instructions))
        held = computation.instructions
        for instruction in held.values():
            for operand in instruction.operands:
                if operand not in held:
                    raise InputError(f"{instruction.name} reads {operand}, which {computation.name} does not contain",
                                     hint=_WRITE_IT)
            if "=%" in instruction.attributes or ("=" in instruction.attributes and "{%" in instruction.attributes):
                missing = [name for name in instruction.called(*_CALLING) if name not in module.computations]
                if missing:
                    raise InputError(f"{instruction.name} calls the computation {missing[0]}, which the text does not "
                                     "contain", hint=_WRITE_IT)


def _add_row(module: HloText, table: str, number: int, row: str) -> None:
    fields = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", row)}
    if table == "FileNames":
        module.files[number] = row.strip('"')
    elif table == "FileLocations":
        module.locations[number] = (fields.get("file_name_id", -1), fields.get("line", 0), fields.get("column", 0))
    elif table == "StackFrames":
        module.frames[number] = fields.get("file_location_id", -1)


def _add_instruction(computation: Computation, line: str) -> bool:
    """Adds the instruction of a line; False if the line has none, or one of a name that is there."""
    plain = _PLAIN.fullmatch(line)
    if plain is None:
        return _add_bracketed(computation, line)
    root, name, shape, opcode, inside, attributes = plain.groups()
    operands = () if opcode in _NO_OPERANDS else _operand_names(inside)
    return _add(computation, root, HloInstruction(name, shape, opcode, operands, attributes, inside))


def _add_bracketed(computation: Computation, line: str) -> bool:
    """Adds an instruction whose shape, operands or literal contain brackets or strings."""
    start = _INSTRUCTION.match(line)
    if not start:
        return False
    end_of_shape = _shape_end(line, start.end())
    opcode = _OPCODE.match(line, end_of_shape)
    if not opcode:
        return False
    close = _closing(line, opcode.end() - 1)
    inside = line[opcode.end():close]
    if close == len(line) or (opcode.group(1) not in _NO_OPERANDS and _NESTED.search(inside)):
        return False
    operands = () if opcode.group(1) in _NO_OPERANDS else _operand_names(inside)
    return _add(computation, start.group(1), HloInstruction(
        start.group(2), line[start.end():end_of_shape], opcode.group(1), operands, line[close + 1:], inside))


def _add(computation: Computation, root: str | None, instruction: HloInstruction) -> bool:
    if instruction.name in computation.instructions or (root and computation.root):
        return False
    if "#" in instruction.literal:
        _add_elements(computation, instruction.operands)
    computation.instructions[instruction.name] = instruction
    if root:
        computation.root = instruction.name
    return True


def _add_elements(computation: Computation, operands: tuple[str, ...]) -> None:
    """Adds a get-tuple-element for each operand that newer XLA writes as ``%tuple#1``."""
    for operand in operands:
        whole, mark, index = operand.partition(PART)
        held = computation.instructions.get(whole)
        if mark and held is not None and operand not in computation.instructions:
            shape = tuple_parts(held.shape)
            computation.instructions[operand] = HloInstruction(
                operand, shape[int(index)] if int(index) < len(shape) else held.shape, "get-tuple-element", (whole,),
                f", index={index}", f"%{whole}")


def _shape_end(line: str, start: int) -> int:
    """End of the shape that starts here: a tuple up to its closing bracket, else up to the next blank."""
    if line.startswith("(", start):
        return _closing(line, start) + 1
    end = line.find(" ", start)
    return end if end != -1 else len(line)


def _closing(line: str, start: int) -> int:
    """Position of the bracket that closes the one at start; the end of the line when it is cut."""
    depth = 0
    for match in _MARK.finditer(line, start):
        mark = match.group()
        depth += mark == "("
        depth -= mark == ")"
        if depth == 0:
            return match.start()
    return len(line)


def _operand_names(text: str) -> tuple[str, ...]:
    """Names of operands, printed with or without their shapes."""
    if "%" in text:
        return tuple(_OPERAND.findall(text))
    plain = re.sub(r"/\*.*?\*/", "", text)
    plain = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", plain)
    return tuple(part.split()[-1].strip("()") for part in plain.split(",") if part.strip())


def _header_number(header: str, key: str) -> int:
    match = re.search(rf"\b{key}=(\d+)", header)
    return int(match.group(1)) if match else 1
