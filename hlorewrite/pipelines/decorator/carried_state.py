"""The results of a step that take the places of its arguments in the next call."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax

from hlorewrite.ir import Module, View, ir
from hlorewrite.pipelines.passes.split_stages.step import ALIASED, RETURNED

_DONOR = "jax.buffer_donor"


def carried_places(args_info: Any, out_info: Any) -> dict[int, int]:
    """The result that takes an argument's place: the same pytree of the same shapes, in order.

    Args:
      args_info: ``jax.stages.Lowered.args_info``: positional and named arguments. The last positional one is the batch;
        the step returns it only if it is donated.
      out_info: ``jax.stages.Lowered.out_info``.

    Returns:
      The number of the result by the number of the argument, leaves in order.

    Example:
      >>> lowered = jax.jit(lambda state, x: (x.sum(), state)).lower({"w": 1.0, "b": 2.0}, jax.numpy.ones(3))
      >>> carried_places(lowered.args_info, lowered.out_info)
      {0: 1, 1: 2}
    """
    positional, named = args_info
    trees, first = list[tuple[int, Any, bool]](), 0
    for place, tree in enumerate((*positional, *named.values())):
        leaves = jax.tree.leaves(tree)
        donated = bool(leaves) and any(each.donated for each in leaves)
        if leaves and (donated or place < len(positional) - 1):
            trees.append((first, tree, donated))
        first += len(leaves)
    results = list(_subtrees(out_info, 0, 0))
    found: dict[int, int] = {}
    for start, tree, _ in sorted(trees, key=lambda each: (not each[2], each[0])):
        kind = _kind(tree)
        taken = set(found.values())
        place = next((place for place, other in results if other == kind and place not in taken), None)
        if place is not None:
            found |= {start + number: place + number for number in range(len(kind[1]))}
    return found


_DEEPEST = 3
"""How deep in the results a state is looked for."""


def _subtrees(tree: Any, first: int, depth: int) -> Iterator[tuple[int, Any]]:
    """(number of the first leaf, kind) of a pytree and of what it holds, outermost first."""
    kind = _kind(tree)
    if not kind[1]:
        return
    yield first, kind
    if depth < _DEEPEST:
        for child in _children(tree):
            yield from _subtrees(child, first, depth + 1)
            first += len(jax.tree.leaves(child))


def _children(tree: Any) -> Sequence[Any]:
    return jax.tree.leaves(tree, is_leaf=lambda each: each is not tree)


def _kind(tree: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(tuple(leaf.shape), leaf.dtype) for leaf in leaves]


def note_carried(module: Module, carried: dict[int, int]) -> None:
    """Records on the arguments of a step which results take their places. The results take the buffers of arguments
    that are donated.

    Args:
      module: the step; it is changed.
      carried: what `carried_places` found.
    """
    main = View(module).functions["main"]
    if "arg_attrs" not in main.attributes:
        return
    rows = [{each.name: each.attr for each in ir.DictAttr(row)} for row in ir.ArrayAttr(main.attributes["arg_attrs"])]
    taken = set(carried.values())
    with module.context:
        i32 = ir.IntegerType.get_signless(32)
        for argument, row in enumerate(rows):
            donated = ALIASED in row or _DONOR in row
            if argument in carried:
                row.pop(_DONOR, None)
                row[ALIASED if donated else RETURNED] = ir.IntegerAttr.get(i32, carried[argument])
            elif ALIASED in row and ir.IntegerAttr(row[ALIASED]).value in taken:
                del row[ALIASED]
                row[_DONOR] = ir.BoolAttr.get(True)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])
