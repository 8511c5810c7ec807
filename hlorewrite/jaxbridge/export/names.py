"""Arguments and results of a step by the user's own paths, if a library's ``jit`` hands JAX other trees.

``jax.jit`` names them itself: ``state.opt_state[0].mu['w']``. ``flax.nnx.jit`` and ``equinox.filter_jit`` flatten
objects first, and JAX then calls a kernel ``model.states[0][5]`` or ``dynamic_donate['rest'][3]``.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jax.tree_util import keystr, tree_flatten_with_path

from hlorewrite.ir import Module, argument_path, ir

_RESULT = "jax.result_info"


@dataclass(frozen=True)
class Renaming:
    """New names for what JAX named.

    Attributes:
      arguments: JAX's name of an argument to the user's.
      result: JAX's name of a result to the user's.
    """

    arguments: dict[str, str] = field(default_factory=dict)
    result: Callable[[str], str] = str


def bound_arguments(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Each argument of a call with the name of its parameter; ``args[0]`` if the signature is not known.

    Example:
      >>> bound_arguments(lambda state, *batches: None, (1, 2, 3), {})
      [('state', 1), ('batches[0]', 2), ('batches[1]', 3)]
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [*((f"args[{place}]", value) for place, value in enumerate(args)), *kwargs.items()]
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += [(f"{name}[{place}]", each) for place, each in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += value.items()
        else:
            found.append((name, value))
    return found


def leaf_names(name: str, value: Any) -> list[str]:
    """The path of each leaf of a value: ``state.opt_state[0].mu['w']``."""
    return [name + keystr(path) for path, _ in tree_flatten_with_path(value)[0]]


def renamed(module: Module, renaming: Renaming) -> None:
    """Gives the arguments and results of ``main`` their new names."""
    from hlorewrite.jaxbridge.xla.spmd_module import main_function

    function = main_function(module)
    for argument in function.regions[0].blocks[0].arguments:
        new = renaming.arguments.get(argument_path(argument.location))
        if new:
            argument.set_location(ir.Location.name(new, context=module.context))
    if "res_attrs" not in function.attributes:
        return
    rows = []
    for row in map(ir.DictAttr, ir.ArrayAttr(function.attributes["res_attrs"])):
        facts = {each.name: each.attr for each in row}
        if _RESULT in facts:
            facts[_RESULT] = ir.StringAttr.get(renaming.result(ir.StringAttr(facts[_RESULT]).value), module.context)
        rows.append(ir.DictAttr.get(facts, module.context))
    function.attributes["res_attrs"] = ir.ArrayAttr.get(rows, module.context)


# ---- flax.nnx.jit: every object becomes a graph and a tuple of arrays


_NNX_STATE = re.compile(r"(.*)\.states\[(\d+)\]\[(\d+)\]")
_NNX_UPDATE = re.compile(r"result\[([01])\]\[('?)(\w+)\2\](.*)")
_NNX_OUTPUT = re.compile(r"result\[2\]")


def nnx_names(step: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Renaming:
    """The names of what ``flax.nnx.jit`` flattens: ``model.layers[0].kernel``; a new value has its argument's name."""
    function = getattr(step, "__wrapped__", step)
    objects: dict[str, list[str]] = {}
    bound = bound_arguments(function, args, kwargs)
    for prefix, paths in _nnx_objects(bound):
        objects[prefix] = [prefix + "".join(map(_step_of_path, path)) for path in paths]
    arguments = {f"{prefix}.states[0][{place}]": name
                 for prefix, names in objects.items() for place, name in enumerate(names)}
    by_place = [name for name, _ in bound]

    def result(name: str) -> str:
        update = _NNX_UPDATE.fullmatch(name)
        if not update:
            return _NNX_OUTPUT.sub("result", name, count=1)
        by_name, _, key, rest = update.groups()
        owner = key if by_name == "1" else by_place[int(key)] if int(key) < len(by_place) else ""
        return arguments.get(owner + rest, name) if owner else name
    return Renaming(arguments, result)


def _nnx_objects(bound: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Sequence[tuple[Any, ...]]]]:
    """The name of each NNX object among the arguments, with the paths of its arrays; what objects share counts once."""
    from flax.nnx import graphlib

    seen = graphlib.RefMap()
    for name, value in bound:
        for path, node in tree_flatten_with_path(value, is_leaf=graphlib.is_graph_node)[0]:
            if graphlib.is_graph_node(node):
                yield name + keystr(path), tuple(graphlib.flatten(node, ref_index=seen)[1].paths)


def _step_of_path(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"


# ---- equinox.filter_jit: arrays and all else apart


def equinox_names(step: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Renaming:
    """The names of what ``equinox.filter_jit`` takes apart: ``model.layers[0].weight``."""
    function = getattr(step, "__wrapped__", step)
    named = bound_arguments(function, args, kwargs)
    leaves = {"fun": leaf_names(getattr(step, "__name__", "step"), function),
              "first": leaf_names(*named[0]) if named else [],
              "rest": [name for each in named[1:] for name in leaf_names(*each)]}
    arguments = {f"{group}['{part}'][{place}]": name for group in ("dynamic_donate", "dynamic_nodonate")
                 for part, names in leaves.items() for place, name in enumerate(names)}

    def result(name: str) -> str:
        return "equinox.marker" if name == "result[0]" else re.sub(r"^result\[1\]", "result", name)
    return Renaming(arguments, result)


def flat_names(names: Sequence[str]) -> Renaming:
    """The names of arguments that JAX gets as a flat list called ``leaves``."""
    return Renaming({f"leaves[{place}]": name for place, name in enumerate(names)})


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array, a number, or a placeholder of an array.

    Anything else, even a boolean, can select code.
    """
    if isinstance(leaf, bool):
        return False
    return isinstance(leaf, int | float | complex) or (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
