"""Pairs arguments of a step with the results that are their new values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hlorewrite.analysis.parameter_provenance import continues, result_paths
from hlorewrite.ir import argument_path, defining_op, ir, terminator, users
from hlorewrite.ops.table import ELEMENTWISE
from hlorewrite.passes.common.steps.manual_step import ManualStep, returned
from hlorewrite.passes.shard_update.growth import StateShards
from hlorewrite.util.reachability import reachable


@dataclass(frozen=True)
class StatePair:
    """An argument that holds optimizer state, and the result that is its new value.

    Attributes:
      argument: position among the arguments of the manual computation.
      result: position among its results.
      dim: the dimension along which both are sharded.
    """

    argument: int
    result: int
    dim: int


def state_pairs(step: ManualStep, shards: StateShards) -> list[StatePair]:
    """Pairs the arguments of a step that become shards with their new values.

    A new value is computed from the old one. Where it is computed from several arguments of its type (a parameter from
    itself and from its momentum), those whose new value is known already are left out; JAX's names of arguments and
    results decide next, and then their order. Names also decide between results that hold the same value (a parameter
    that is its own float32 copy).

    Args:
      step: the step.
      shards: the values that become shards.

    Returns:
      The pairs, in the order of the arguments; arguments and results that have no counterpart are in none.
    """
    values = returned(step)
    ends = [place for place, value in enumerate(values) if value in shards.dims]
    made_of = {place: _arguments_behind(step, shards, values[place]) for place in ends}
    named = partial(_named, step, result_paths(step.function, len(step.op.results)))
    chosen = _only_choices(made_of, named)
    for place in ends:
        rest = [each for each in made_of[place] if each not in chosen.values()]
        if place in chosen or not rest:
            continue
        chosen[place] = next((each for each in rest if named(each, place)), rest[0])
        chosen |= _only_choices({end: [each for each in made_of[end] if each not in chosen.values()]
                                 for end in ends if end not in chosen}, named)
    arguments = {argument.arg_number for argument in shards.arguments()}
    return sorted((StatePair(argument, place, shards.dims[values[place]]) for place, argument in chosen.items()
                   if argument in arguments and step.may_shard_result(place)
                   and shards.dims[values[place]] == shards.dims[step.block.arguments[argument]]),
                  key=lambda pair: pair.argument)


def result_of(step: ManualStep, gradient: ir.Operation) -> str:
    """JAX's name for the first result of a step that a gradient goes into element by element; empty if it has none.

    Args:
      step: the step.
      gradient: an all-reduce of it.
    """
    paths = result_paths(step.function, len(step.op.results))
    found = reachable([gradient.results[0]], lambda value: [
        reader.results[0] for reader, _ in users(value) if reader.name in ELEMENTWISE])
    places = [position for value in found for reader, position in users(value)
              if reader == terminator(step.block) and step.may_shard_result(position)]
    return paths[step.result_of_step(min(places))] if places else ""


def _named(step: ManualStep, paths: list[str], argument: int, place: int) -> bool:
    """Whether JAX gives a result the name of an argument."""
    return step.may_shard_result(place) and continues(argument_path(step.op.operands[argument].location),
                                                      paths[step.result_of_step(place)])


def _only_choices(made_of: dict[int, list[int]], named: Callable[[int, int], bool]) -> dict[int, int]:
    """Results computed from only one argument of their type that no other result is known to replace.

    If several results share this argument, the one with its name is chosen.
    """
    chosen: dict[int, int] = {}
    # Ends: each round but the last chooses for one more result.
    while True:
        left = {place: [each for each in arguments if each not in chosen.values()]
                for place, arguments in made_of.items() if place not in chosen}
        sure = [place for place, arguments in left.items() if len(arguments) == 1]
        if not sure:
            return chosen
        place = next((place for place in sure if named(left[place][0], place)), sure[0])
        chosen[place] = left[place][0]


def _arguments_behind(step: ManualStep, shards: StateShards, value: ir.Value) -> list[int]:
    """The arguments of a value's type that it is computed from, element by element."""
    found = reachable([value], lambda each: [
        source for source, _ in shards.reads(each, step.shards)] if each in shards.dims else [])
    return sorted(ir.BlockArgument(each).arg_number for each in found
                  if defining_op(each) is None and each.owner == step.block and each.type == value.type)
