"""The most that a rewritten module can send beyond its original, over every outcome of its branches and loops.

A module is read as a tree: bytes that collectives put on the wire (``ir.collectives.wire_share``), loops and branches
in the order of the program, calls and manual regions dissolved. Rewrites of communication keep loops and branches, so
the two trees are laid side by side, and the difference ``D`` (bytes sent now - bytes sent before) has a largest value
over all paths that follows the structure:

* a sequence adds: ``D(a; b) = D(a) + D(b)``;
* any branch may be taken each time: ``D(case) = max(D(branch))``; where the loop's counter decides (``i % 4 == 3``) the
  mean, by how often each is taken;
* a loop of n iterations: ``n D(body) + (n + 1) D(condition)``; where it ran another number of times before, what both
  runs have, and the rest of either by itself;
* a loop of unknown count t >= 1: ``t (D(body) + D(condition)) + D(condition)``, which has no bound when the sum in
  brackets is positive, and is largest at t = 1 otherwise.

Every branch and every trip count is taken to be independent of the others. So the result is never too small: at most 0
proves "never more on any path". It shares nothing with
``analysis.deferral_graph.placement``, whose answers the tests check with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction

from hlorewrite.analysis.block_frequency import taken_shares
from hlorewrite.analysis.groups import group_members
from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import BRANCHES, COLLECTIVES, Module, ir, kind_of, op_key, tensor_bytes, wire_share
from hlorewrite.ir.view import View, called_function

Bytes = float | Fraction
"""Whole bytes, or infinity if no number bounds them."""


@dataclass(frozen=True)
class Growth:
    """The additional bytes of the worst path.

    Attributes:
      bytes: bytes sent beyond the original on that path; negative when every path sends less, infinite when they grow
        with a trip count that is not known.
      path: what the path takes, outermost first; empty when there is no branch and no unknown loop to decide on.
    """

    bytes: Bytes
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Fork:
    """A loop or a set of branches.

    Attributes:
      name: the op's name.
      trips: iterations of a loop; None for an unknown count and for branches.
      parts: condition and body of a loop; the branches.
      where: the user's line.
      shares: how often each branch is taken, where that is known.
    """

    name: str
    trips: int | None
    parts: tuple[_Stretch, ...]
    where: str
    shares: tuple[Fraction, ...] | None = None

    @property
    def is_loop(self) -> bool:
        return self.name == "stablehlo.while"

    @property
    def shape(self) -> tuple[str, int | None, int]:
        return self.name, self.trips, len(self.parts)


@dataclass(frozen=True)
class _Stretch:
    """A straight stretch of the program: the bytes of its collectives, and the forks on the way."""

    sent: Fraction
    forks: tuple[_Fork, ...]


_NOTHING = _Stretch(Fraction(0), ())


def worst_growth(before: Module, after: Module, function: str = "main") -> Growth:
    """The most bytes a module can send beyond another, over all outcomes of branches and trip counts of at least one.

    Args:
      before: the original.
      after: the rewritten module.
      function: the function that is run.

    Returns:
      The growth, in whole bytes; at most 0 means never more on any path. An all-reduce that becomes a reduce-scatter
      and an all-gather sends as much as before.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> worst_growth(module, module).bytes
      0
    """
    growth = _of_stretch(_Reader(before).function(function), _Reader(after).function(function))
    return growth if math.isinf(growth.bytes) else Growth(math.ceil(growth.bytes), growth.path)


class _Reader:
    """Reads a module as a tree."""

    def __init__(self, module: Module) -> None:
        self.view = View(module)
        self._functions: dict[int, _Stretch] = {}

    def function(self, name: str) -> _Stretch:
        """The tree of a function by name; nothing for one that is not there."""
        found = self.view.functions.get(name)
        return _NOTHING if found is None else self._function(found)

    def _function(self, op: ir.Operation) -> _Stretch:
        known = self._functions.get(op_key(op))
        if known is None:
            self._functions[op_key(op)] = _NOTHING  # for a function that calls itself
            blocks = list(op.regions[0].blocks)
            known = self._functions[op_key(op)] = self._block(blocks[0]) if blocks else _NOTHING
        return known

    def _block(self, block: ir.Block) -> _Stretch:
        sent, forks = Fraction(0), list[_Fork]()
        for each in block.operations:
            op = each.operation
            if op.name in COLLECTIVES:
                sent += self._sent(op)
            elif called_function(op):
                callee = self.view.functions.get(called_function(op))
                inner = _NOTHING if callee is None else self._function(callee)
                sent, forks = sent + inner.sent, [*forks, *inner.forks]
            elif op.name in ("stablehlo.while", *BRANCHES):
                inner = self._fork(op)
                sent, forks = sent + inner.sent, [*forks, *inner.forks]
            else:
                for region in op.regions:
                    for inner in map(self._block, region.blocks):
                        sent, forks = sent + inner.sent, [*forks, *inner.forks]
        return _Stretch(sent, tuple(forks))

    def _sent(self, op: ir.Operation) -> Fraction:
        payload = max(sum(tensor_bytes(value.type) for value in values) for values in (op.operands, op.results))
        return payload * wire_share(kind_of(op.name), group_members(op, self.view))

    def _fork(self, op: ir.Operation) -> _Stretch:
        """A loop or branches; the one branch that a constant chooses is dissolved."""
        trips = trip_count(op) if op.name == "stablehlo.while" else None
        parts = tuple(self._block(region.blocks[0]) for region in op.regions)
        shares = None if op.name == "stablehlo.while" else taken_shares(op)
        if shares is not None and 1 in shares:
            return parts[shares.index(Fraction(1))]
        return _Stretch(Fraction(0), (_Fork(op.name, trips, parts, self.view.source(op), shares),))


def _of_stretch(before: _Stretch, after: _Stretch) -> Growth:
    total: Bytes = after.sent - before.sent
    path: tuple[str, ...] = ()
    for old, new in _side_by_side(before.forks, after.forks):
        growth = _of_fork(old, new)
        total, path = total + growth.bytes, path + growth.path
    return Growth(total, path)


def _side_by_side(before: tuple[_Fork, ...], after: tuple[_Fork, ...]) -> list[tuple[_Fork, _Fork]]:
    """Each fork with its partner; one that was removed or added is next to one that sends nothing.

    Partners come from the same line, in whatever order they run now; what is left is paired in the order of the
    program.
    """
    waiting: dict[tuple[str, str], list[_Fork]] = {}
    for fork in reversed(after):
        waiting.setdefault((fork.name, fork.where), []).append(fork)
    pairs: list[tuple[_Fork, _Fork]] = []
    left: list[_Fork] = []
    for fork in before:
        partners = waiting.get((fork.name, fork.where))
        if partners:
            pairs.append((fork, partners.pop()))
        else:
            left.append(fork)
    paired = {id(new) for _, new in pairs}
    return pairs + _in_order(left, [fork for fork in after if id(fork) not in paired])


def _in_order(before: list[_Fork], after: list[_Fork]) -> list[tuple[_Fork, _Fork]]:
    """Pairs forks of equal shape in the order of the program."""
    pairs: list[tuple[_Fork, _Fork]] = []
    matcher = SequenceMatcher(None, [fork.shape for fork in before], [fork.shape for fork in after], autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            pairs += zip(before[first:last], after[start:end], strict=True)
        else:
            pairs += [(fork, _silent(fork)) for fork in before[first:last]]
            pairs += [(_silent(fork), fork) for fork in after[start:end]]
    return pairs


def _silent(fork: _Fork) -> _Fork:
    return _Fork(fork.name, fork.trips, tuple(_NOTHING for _ in fork.parts), fork.where, fork.shares)


def _of_fork(before: _Fork, after: _Fork) -> Growth:
    if before.is_loop:
        return _of_loop(before, after)
    parts = [_of_stretch(old, new) for old, new in _padded(before, after)]
    shares = before.shares or after.shares
    if shares is not None:
        mean = sum(share * part.bytes for share, part in zip(shares, parts, strict=True) if share)
        return Growth(mean, tuple(step for part in parts for step in part.path))
    number, worst = max(enumerate(parts), key=lambda each: (each[1].bytes, -each[0]))
    if all(part.bytes == worst.bytes for part in parts) and not worst.path:
        return worst
    return Growth(worst.bytes, (f"{before.name} at {after.where} takes branch {number}", *worst.path))


def _padded(before: _Fork, after: _Fork) -> list[tuple[_Stretch, _Stretch]]:
    count = max(len(before.parts), len(after.parts))
    old, new = ((*fork.parts, *[_NOTHING] * (count - len(fork.parts))) for fork in (before, after))
    return list(zip(old, new, strict=True))


def _of_counted(before: _Fork, after: _Fork, body: Growth, condition: Growth, old: int, new: int) -> Growth:
    """The growth of two loops with known counts: that of their common iterations, plus the rest of the longer one."""
    both = min(old, new)
    total: Bytes = (both * body.bytes if both else 0) + (both + 1) * condition.bytes
    path = (*condition.path, *body.path)
    for part in (0, 1) if old != new else ():
        alone = (_of_stretch(before.parts[part], _NOTHING) if old > new else _of_stretch(_NOTHING, after.parts[part]))
        total, path = total + abs(old - new) * alone.bytes, (*path, *alone.path)
    return Growth(total, path if total else ())


def _of_loop(before: _Fork, after: _Fork) -> Growth:
    condition, body = (_of_stretch(old, new) for old, new in zip(before.parts, after.parts, strict=True))
    path = (*condition.path, *body.path)
    known = [trips for trips in (before.trips, after.trips) if trips is not None]
    if known:
        return _of_counted(before, after, body, condition, known[0], known[-1])
    each = condition.bytes + body.bytes
    if each > 0:
        return Growth(math.inf, (f"the loop at {after.where} runs many times", *path))
    return Growth(each + condition.bytes, (f"the loop at {after.where} runs once", *path) if each else path)
