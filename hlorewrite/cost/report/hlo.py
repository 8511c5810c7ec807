"""Collectives of optimised HLO text, as the report counts them."""

from collections import Counter

from hlorewrite.cost.report.report import UNCOUNTED_CALLS, UNCOUNTED_MESSAGES, Executed, counted_names
from hlorewrite.hlo.collectives import collective_kind, collectives, executions
from hlorewrite.hlo.parse import HloText, custom_call_target, parse_hlo
from hlorewrite.hlo.wrapped import WrappedCollectives
from hlorewrite.ir.collectives import timed_kind
from hlorewrite.ops.table import may_communicate

_MESSAGES = ("send", "recv")
_COMMENTS = ((b"//", b"\n"), (b"/*", b"*/"))


def looks_like_hlo(data: bytes) -> bool:
    """Whether a file is HLO text: comments may be before its first line.

    Example:
      >>> looks_like_hlo(b"// RUN: a test\\nHloModule m"), looks_like_hlo(b"module {}")
      (True, False)
    """
    at, comment = 0, True
    while comment:  # Ends: each round goes past a comment.
        while data[at:at + 1].isspace():  # Ends: each round goes past a byte.
            at += 1
        comment = False
        for begin, end in _COMMENTS:
            if data.startswith(begin, at):
                after = data.find(end, at + len(begin))
                if after < 0:
                    return False
                at, comment = after + len(end), True
                break
    return data.startswith((b"HloModule", b"ENTRY"), at)


def collectives_of_hlo(text: str) -> tuple[int, list[Executed], list[str]]:
    """Reads the collectives of a compiled module.

    Args:
      text: optimised HLO, as ``Compiled.as_text()`` prints it.

    Returns:
      (devices, collectives, messages about what could not be read).

    Raises:
      InputError: the text or the groups of a collective cannot be read.
    """
    module = parse_hlo(text)
    loops = _loops(module)
    executed, remarks = [], []
    for each in collectives(module):
        place = each.source if each.source != "?" else each.name
        if not each.bytes or not each.groups:
            remarks.append(f"{place}: {each.name} is left out: its payload or groups are unknown")
            continue
        largest = max(map(max, each.groups))
        if largest >= module.devices > 1:  # a header that names no devices says nothing about them
            remarks.append(f"{place}: {each.name} is left out: its groups name device {largest}, "
                           f"but the module has {module.devices}")
            continue
        kind = timed_kind(each.kind)
        executed.append(Executed(kind, place, each.groups, axes=(), payload_bytes=each.bytes, trips=each.trips,
                                 trips_known=each.trips_known,
                                 loop=loops.get(each.name, "-") if each.loop_depth else "", loop_depth=each.loop_depth,
                                 name=each.name))
    named = max((gpu + 1 for what in executed for group in what.groups for gpu in group), default=1)
    return max(module.devices, named), executed, [*remarks, *uncounted_hlo(module)]


def uncounted_hlo(module: HloText) -> list[str]:
    """Messages about what communicates or may communicate, but is in no list of collectives.

    Args:
      module: the module.

    Raises:
      InputError: a computation calls itself.

    Example:
      >>> print(*uncounted_hlo(parse_hlo("HloModule m\\nENTRY %e (p: f32[2]) -> f32[2] {\\n  %p = f32[2] parameter(0)"
      ...                                '\\n  ROOT %c = f32[2] custom-call(%p), custom_call_target="exchange"\\n}')))
      custom calls that may communicate are not counted: exchange (1)
    """
    found: dict[str, Counter[str]] = {}
    for run in executions(module):
        for instruction in run.computation.instructions.values():
            if instruction.opcode in _MESSAGES and "is_host_transfer=true" not in instruction.attributes:
                found.setdefault(UNCOUNTED_MESSAGES, Counter())[instruction.opcode] += 1
            elif instruction.opcode.removesuffix("-start") == "custom-call":
                target = custom_call_target(instruction)
                if may_communicate(target):
                    found.setdefault(UNCOUNTED_CALLS, Counter())[target] += 1
    return counted_names(found)


def _loops(module: HloText) -> dict[str, str]:
    """The user's line of the innermost loop around each collective, also where the loop's body calls what holds it."""
    body_of: dict[str, str] = {}
    for computation in module.computations.values():
        for instruction in computation.instructions.values():
            if instruction.opcode == "while":
                place = module.source(instruction)
                for name in instruction.called("body"):
                    body_of[name] = place if place != "?" else instruction.name
    wrapped = WrappedCollectives(module)
    loops: dict[str, str] = {}
    for name, place in body_of.items():
        body = module.computations.get(name)
        for instruction in body.instructions.values() if body is not None else ():
            if collective_kind(instruction.opcode):
                loops[instruction.name] = place
            loops |= {each.instruction.name: place for each in wrapped.inside(instruction)}
    return loops
