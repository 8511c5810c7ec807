"""Collectives of optimised HLO text, as the report counts them."""

from hlorewrite.cost.report.report import Executed
from hlorewrite.hlo.collectives import collective_kind, collectives
from hlorewrite.hlo.parse import HloText, parse_hlo
from hlorewrite.hlo.wrapped import WrappedCollectives
from hlorewrite.ir.collectives import timed_kind

_COMMENTS = ((b"//", b"\n"), (b"/*", b"*/"))


def looks_like_hlo(data: bytes) -> bool:
    """Whether a file is HLO text: comments may stand before its first line.

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
      (devices, collectives, sentences on what could not be read).

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
                           f"and the module has {module.devices}")
            continue
        kind = timed_kind(each.kind)
        executed.append(Executed(kind, place, each.groups, axes=(), payload_bytes=each.bytes, trips=each.trips,
                                 trips_known=each.trips_known,
                                 loop=loops.get(each.name, "-") if each.loop_depth else "", loop_depth=each.loop_depth,
                                 name=each.name))
    named = max((gpu + 1 for what in executed for group in what.groups for gpu in group), default=1)
    return max(module.devices, named), executed, remarks


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
