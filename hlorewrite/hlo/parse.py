"""HLO text as computations and instructions: just enough to follow loops and calls, in one pass over the lines.

Reads what ``Compiled.as_text()``, XLA dumps and ``HloModule.to_string()`` print, in long or short form.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from hlorewrite.errors import InputError
from hlorewrite.ir.location import shown_path

_HEADER = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)(?:\s*\(.*->.*)?\s*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+)\s+=\s+")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_PLAIN = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = (\([^()]*\)|[^\s(]+) ([a-z][\w\-]*)\(([^()\"]*)\)(.*)")
"""A line without brackets or strings between those of its shape and operands: nearly all lines."""
_OPERAND = re.compile(r"%([\w.\-]+(?:#\d+)?)")
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_CALLED = re.compile(r"(\{[^}]*\}|%?[\w.\-]+)")
_FRAME, _NUMBER = "stack_frame_id=", re.compile(r"\d+")
_NO_OPERANDS = ("constant", "parameter")
_TABLE_ROW = re.compile(r"^(\d+)\s+(.*)$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


class HloInstruction(NamedTuple):
    """One line of HLO: result name, shape text, opcode, operand names and everything after the operands.

    A tuple and no dataclass: a module has hundreds of thousands of them, and a tuple is made in a third of the time.
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
            at = self.attributes.find(f" {key}=")
            match = _CALLED.match(self.attributes, at + len(key) + 2) if at >= 0 else None
            if match:
                names += [name.strip().lstrip("%") for name in match.group(1).strip("{}").split(",") if name.strip()]
        return tuple(names)


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
      InputError: the text holds no entry computation.

    Example:
      >>> module = parse_hlo("HloModule m\\n\\nENTRY %main (p: f32[4]) -> f32[4] {\\n"
      ...                    "  ROOT %p = f32[4]{0} parameter(0)\\n}\\n")
      >>> module.computations[module.entry].root
      'p'
    """
    lines = text.splitlines()
    module = HloText(header=next((line for line in lines if line.startswith("HloModule")), ""))
    current: Computation | None = None
    table = ""
    for line in lines:
        if current is not None:
            if line.startswith("}"):
                current = None
            else:
                _add_instruction(current, line)
            continue
        if line in _TABLES:
            table = line
            continue
        row = _TABLE_ROW.match(line) if table else None
        if row:
            _add_row(module, table, int(row.group(1)), row.group(2))
            continue
        header = _HEADER.match(line)
        if header and not line.startswith("HloModule"):
            table = ""
            current = module.computations.setdefault(header.group(2), Computation(header.group(2)))
            if header.group(1):
                module.entry = header.group(2)
    if not module.entry:
        raise InputError("the text holds no HLO entry computation", hint="give the output of XLA's HLO printer")
    return module


def _add_row(module: HloText, table: str, number: int, row: str) -> None:
    fields = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", row)}
    if table == "FileNames":
        module.files[number] = row.strip('"')
    elif table == "FileLocations":
        module.locations[number] = (fields.get("file_name_id", -1), fields.get("line", 0), fields.get("column", 0))
    elif table == "StackFrames":
        module.frames[number] = fields.get("file_location_id", -1)


def _add_instruction(computation: Computation, line: str) -> None:
    plain = _PLAIN.fullmatch(line)
    if plain:
        root, name, shape, opcode, inside, attributes = plain.groups()
        operands = () if opcode in _NO_OPERANDS else _operand_names(inside)
        if "#" in inside:
            _add_elements(computation, operands)
        computation.instructions[name] = HloInstruction(name, shape, opcode, operands, attributes, inside)
    else:
        root, name = _add_bracketed(computation, line)
    if root:
        computation.root = name


def _add_bracketed(computation: Computation, line: str) -> tuple[str | None, str]:
    """Adds an instruction whose shape, operands or literal hold brackets or strings; (``ROOT`` or not, name)."""
    start = _INSTRUCTION.match(line)
    if not start:
        return None, ""
    end_of_shape = _shape_end(line, start.end())
    opcode = _OPCODE.match(line, end_of_shape)
    if not opcode:
        return None, ""
    close = _closing(line, opcode.end() - 1)
    inside = line[opcode.end():close]
    operands = () if opcode.group(1) in _NO_OPERANDS else _operand_names(inside)
    if "#" in inside:
        _add_elements(computation, operands)
    name = start.group(2)
    computation.instructions[name] = HloInstruction(name, line[start.end():end_of_shape], opcode.group(1), operands,
                                                    line[close + 1:], inside)
    return start.group(1), name


def _add_elements(computation: Computation, operands: tuple[str, ...]) -> None:
    """Adds the element of a tuple that newer XLA writes as ``%tuple#1`` in the place of an operand."""
    for operand in operands:
        whole, mark, index = operand.partition("#")
        held = computation.instructions.get(whole)
        if mark and held is not None and operand not in computation.instructions:
            shape = _elements(held.shape)
            computation.instructions[operand] = HloInstruction(
                operand, shape[int(index)] if int(index) < len(shape) else held.shape, "get-tuple-element", (whole,),
                f", index={index}", f"%{whole}")


def _elements(shape: str) -> list[str]:
    """The shapes in a tuple's shape.

    Example:
      >>> _elements("(s32[], /*index=1*/f32[8,8]{1,0}, (f32[2]{0}, u32[]))")
      ['s32[]', 'f32[8,8]{1,0}', '(f32[2]{0}, u32[])']
    """
    parts, depth, start = [], 0, 1
    for at, mark in enumerate(shape):
        depth += (mark in "([{") - (mark in ")]}")
        if (mark == "," and depth == 1) or (mark == ")" and depth == 0):
            parts.append(re.sub(r"/\*.*?\*/", "", shape[start:at]).strip())
            start = at + 1
    return parts


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
