"""Finds the argument of a step that a collective belongs to, by its JAX path: ``params['block']['kernel']``.

JAX names the arguments of a step in their locations and its results in ``jax.result_info``. A reduced gradient becomes
part of the new value of one argument. Going back from a result through ops that keep an element in its place (or move
all elements together) reaches the reduction, the old parameter and the optimizer's state. The parameter is the one
among these that the step also reads in other ways: in a product, a broadcast or a slice. For a gather, the search goes
back from its operand. If it finds no argument, or two, there is no answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from hlorewrite.ir import BY_OP, COLLECTIVES, argument_path, ir, is_static_tensor, op_key
from hlorewrite.ir.regions import BRANCHES, CALL, FUNCTION, MANUAL, WHILE, Loop, region_op, returned
from hlorewrite.ir.view import View, defining_op, readable, terminator, users
from hlorewrite.ops.table import ELEMENTWISE, TERMINATORS
from hlorewrite.util.reachability import reachable

_MOST_STEPS = 100_000
"""The limit of a search; in a program that needs more steps, the remaining values have no names."""
_MOVES = frozenset({f"stablehlo.{name}" for name in (
    "convert", "transpose", "reshape", "optimization_barrier", "reduce_precision")} | {"sdy.sharding_constraint"})
_MOVES_OF_ONE = ("stablehlo.broadcast_in_dim", "stablehlo.reduce", "stablehlo.slice")
_WITH_SCALARS = ("stablehlo.clamp", "stablehlo.select")
_UPDATE, _SLICE, _REDUCE = "stablehlo.dynamic_update_slice", "stablehlo.dynamic_slice", "stablehlo.reduce"
_PART = re.compile(r"\['([^']*)'\]|\.(\w+)|\[(\d+)\]")


class _Place(NamedTuple):
    """A value, and the keys of the calls through which it was reached."""

    value: ir.Value
    calls: tuple[int, ...] = ()


class _Known(NamedTuple):
    """The facts known about a place.

    Attributes:
      collective: the key of the collective that makes its value; None for others.
      is_argument: whether it is an argument of the step.
      before: the places whose elements become its own.
    """

    collective: int | None
    is_argument: bool
    before: tuple[_Place, ...]


@dataclass
class _NewValue:
    """A result of the step, and the values that become part of it element by element."""

    result: str
    type: ir.Type
    arguments: list[ir.Value] = field(default_factory=list)
    collectives: list[int] = field(default_factory=list)
    size: int = 0


class ParameterProvenance:
    """The names of collectives, for the module at the time of construction.

    Args:
      view: the module.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._steps = 0
        self._read: dict[tuple[ir.Value, bool], bool] = {}
        self._updates: dict[int, list[_NewValue]] = {}
        self._known: dict[_Place, _Known] = {}
        self._calls: dict[int, ir.Operation] = {}
        for function in view.functions.values():
            if "private" not in str(readable(function, "sym_visibility")):
                self._follow_results(function)

    def of(self, op: ir.Operation) -> str:
        """The path of the argument that a collective belongs to.

        Args:
          op: a collective; a custom call that communicates counts as one that reduces nothing.

        Returns:
          The path; empty when it is not known.
        """
        name = self._updated(self._updates.get(op_key(op), []))
        if name or (op.name in BY_OP and BY_OP[op.name].reduces) or not len(op.operands):
            return name
        return self._gathered(op.operands[0])

    # ---- reductions: back from the results

    def _follow_results(self, function: ir.Operation) -> None:
        block = function.regions[0].blocks[0]
        end = terminator(block)
        paths = result_paths(function, len(end.operands))
        for path, value in zip(paths, end.operands, strict=True):
            update = self._update(_Place(value), path)
            for key in update.collectives:
                self._updates.setdefault(key, []).append(update)

    def _update(self, start: _Place, path: str) -> _NewValue:
        update = _NewValue(path, start.value.type)
        for place in reachable([start], lambda place: self._of_place(place).before):
            if self._steps >= _MOST_STEPS:
                break
            self._steps += 1
            update.size += 1
            known = self._of_place(place)
            if known.collective is not None:
                update.collectives.append(known.collective)
            if known.is_argument:
                update.arguments.append(place.value)
        return update

    def _of_place(self, place: _Place) -> _Known:
        """The facts of a place; the new values of a parameter and of its moments share most places."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = self._look_at(place)
        return known

    def _look_at(self, place: _Place) -> _Known:
        maker = defining_op(place.value)
        collective = op_key(maker) if maker is not None and maker.name in COLLECTIVES else None
        return _Known(collective, maker is None and _is_entry(place), tuple(self._before(place, maker)))

    def _updated(self, updates: list[_NewValue]) -> str:
        """The one argument whose new value a collective becomes part of."""
        found: dict[ir.Value, list[_NewValue]] = {}
        for update in updates:
            for argument in update.arguments:
                if argument.type == update.type and argument_path(argument.location):
                    found.setdefault(argument, []).append(update)
        named = {argument: min(of, key=lambda update: update.size).result for argument, of in found.items()}
        # A parameter that is added to what it is as large as is read only after that.
        read = [a for a in named if self._is_read(a)] or [a for a in named if self._is_read(a, ELEMENTWISE)]
        same = [a for a in read if continues(argument_path(a.location), named[a])]
        # Without a result of the same name, a scalar (a loss, a scale) says too little.
        chosen = same or [a for a in read if _shape(a)]
        return _clearer(argument_path(chosen[0].location), named[chosen[0]]) if len(chosen) == 1 else ""

    def _before(self, place: _Place, maker: ir.Operation | None) -> Iterator[_Place]:
        """The places whose elements become those of a place that ``maker`` makes; None for a block argument."""
        if maker is None:
            yield from self._before_argument(place)
            return
        position, name, calls = ir.OpResult(place.value).result_number, maker.name, place.calls
        if name == CALL:
            self._calls[op_key(maker)] = maker
            calls = (*calls, op_key(maker))
        if name in ELEMENTWISE:
            values = list(maker.operands)
            if name in _WITH_SCALARS:
                values = [value for value in values if _shape(value) == _shape(place.value)]
        elif name == WHILE:
            values = Loop(maker).carried(position)
        elif name in (*BRANCHES, MANUAL, CALL):
            values = returned(maker, position, self.view) or []
        elif name in COLLECTIVES:
            values = [maker.operands[position]] if position < len(maker.operands) else []
        elif name == _UPDATE:
            values = list(maker.operands)[:2]
        elif _only_moves(maker):
            values = [maker.operands[position]]
        else:
            return
        for value in values:
            yield _Place(value, calls)

    def _before_argument(self, place: _Place) -> Iterator[_Place]:
        """The places whose elements become those of a place, for a block argument."""
        parent, position = region_op(place.value), ir.BlockArgument(place.value).arg_number
        if parent.name == WHILE:
            yield from (_Place(value, place.calls) for value in Loop(parent).carried(position))
        elif parent.name == MANUAL:
            yield _Place(parent.operands[position], place.calls)
        elif parent.name == FUNCTION and place.calls:
            yield _Place(self._calls[place.calls[-1]].operands[position], place.calls[:-1])

    # ---- whether a step reads an argument for more than its update

    def _is_read(self, argument: ir.Value, behind: frozenset[str] = frozenset()) -> bool:
        """Whether an op reads an argument, directly or through ops of some names."""
        key = argument, bool(behind)
        if key not in self._read:
            self._read[key] = self._reads(argument, behind)
        return self._read[key]

    def _reads(self, argument: ir.Value, behind: frozenset[str]) -> bool:
        pending, seen = [argument], {argument}
        # Ends: a value is added once.
        while pending and self._steps < _MOST_STEPS:
            value = pending.pop()
            self._steps += 1
            for op, position in users(value):
                follows = list(op.results) if op.name in behind else self._unchanged_in(op, position)
                if follows is None:
                    return True
                for each in follows:
                    if each not in seen:
                        seen.add(each)
                        pending.append(each)
        return False

    def _unchanged_in(self, op: ir.Operation, position: int) -> list[ir.Value] | None:
        """The values that are the operand of an op, moved or not; None when the op reads the operand."""
        if _only_moves(op) and position < len(op.results):
            return [op.results[position]]
        if op.name == WHILE:
            return [Loop(op).body.arguments[position]]
        if op.name == MANUAL:
            return [op.regions[0].blocks[0].arguments[position]]
        if op.name == CALL:
            callee = self.view.callee(op)
            return [] if callee is None else [callee.regions[0].blocks[0].arguments[position]]
        known = op.name in ELEMENTWISE or op.name in (*TERMINATORS, _UPDATE, _REDUCE)
        return [] if known else None

    # ---- back from an operand

    def accumulator(self, value: ir.Value) -> str:
        """The path of the argument that a value represents, if the step reads it only to update it; empty for
        scalars."""
        argument = self._argument(value, ())
        if argument is None or not _shape(argument) or self._is_read(argument):
            return ""
        return argument_path(argument.location)

    def _gathered(self, value: ir.Value) -> str:
        """The path of the argument that a value is, or is a slice of."""
        argument = self._argument(value, (_SLICE,))
        return "" if argument is None else argument_path(argument.location)

    def _argument(self, value: ir.Value, also: tuple[str, ...]) -> ir.Value | None:
        """The argument of the step that a value is, up to moves of all elements and ops of the given names."""
        place = _Place(value)
        for _ in range(_MOST_STEPS):
            maker = defining_op(place.value)
            if maker is None:
                if _is_entry(place):
                    return place.value
                origins = [origin for origin in self._before_argument(place) if origin.value != place.value]
            elif _only_moves(maker) or maker.name in also:
                origins = [_Place(maker.operands[ir.OpResult(place.value).result_number], place.calls)]
            else:
                return None
            if len(origins) != 1:
                return None
            place = origins[0]
        return None


def _is_entry(place: _Place) -> bool:
    """Whether a block argument is one of the function that the step starts with."""
    return not place.calls and region_op(place.value).name == FUNCTION


def _only_moves(op: ir.Operation) -> bool:
    """Whether an op keeps all elements, up to their place and type: also a broadcast or reduction over sizes of 1."""
    name = op.name
    return name in _MOVES or (name in _MOVES_OF_ONE and _count(op.operands[0]) == _count(op.results[0]))


def _count(value: ir.Value) -> int | None:
    shape = _shape(value)
    return None if shape is None else prod(shape)


def _shape(value: ir.Value) -> list[int] | None:
    return list(ir.RankedTensorType(value.type).shape) if is_static_tensor(value.type) else None


def result_paths(function: ir.Operation, count: int) -> list[str]:
    """JAX's names for the results of a function; empty if it gives none."""
    listed = readable(function, "res_attrs")
    if listed is None:
        return [""] * count
    paths = []
    for attributes in map(ir.DictAttr, ir.ArrayAttr(listed)):
        named = "jax.result_info" in attributes
        paths.append(ir.StringAttr(attributes["jax.result_info"]).value if named else "")
    return paths


def named(place: str, path: str) -> str:
    """An output by its position, and by its JAX name if that is known.

    Example:
      >>> named("#25", "result[0]['w']"), named("#25", "")
      ("#25 result[0]['w']", '#25')
    """
    return f"{place} {path}".rstrip()


def _parts(path: str) -> list[str]:
    """The keys of a path, without the name of the argument or ``result``.

    Example:
      >>> _parts("params['block'].layers[0]")
      ['block', 'layers', '0']
    """
    return ["".join(part) for part in _PART.findall(path[re.match(r"\w*", path).end():])]  # pyright: ignore


def continues(argument: str, result: str) -> bool:
    """Whether a result and an argument have at least one name in common.

    Example:
      >>> continues("params['w']", "result[0]['w']"), continues("params['w']", "result[1][0].mu['v']")
      (True, False)
    """
    wanted, given = _parts(argument), _parts(result)
    return any(not part.isdigit() for part in wanted) and given[-len(wanted):] == wanted


def at_the_same_place(argument: str, result: str) -> bool:
    """Whether a result takes the position of an argument; positions need not have names.

    Example:
      >>> at_the_same_place("state[1][0]", "result[0][1][0]"), at_the_same_place("state[1][0]", "result[0][1][1]")
      (True, False)
    """
    wanted, given = _parts(argument), _parts(result)
    return bool(wanted) and given[-len(wanted):] == wanted


def _clearer(argument: str, result: str) -> str:
    """The path with more names: some libraries number what they pass to JAX, and name what they return.

    Example:
      >>> _clearer("dynamic['first'][0]", "result[1][0].layers[0].weight")
      'layers[0].weight'
      >>> _clearer("params['w']", "result[0]['w']")
      "params['w']"
    """
    names = [sum(not part.isdigit() for part in _parts(path)) for path in (argument, result)]
    return re.sub(r"^\w*(\[\d+\])*\.?", "", result) if names[1] > names[0] else argument
