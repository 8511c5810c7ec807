"""``hlorewrite.export``: lowers a train step and writes it as a file that every subcommand reads."""

import dataclasses
import functools
import os
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.tree_util import keystr, tree_flatten_with_path

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.ir import Format, Module, View, argument_path, emit, ir, parse, source_line
from hlorewrite.jaxbridge.export.names import (
    Renaming,
    bound_arguments,
    equinox_names,
    flat_names,
    is_array,
    leaf_names,
    nnx_names,
    renamed,
)
from hlorewrite.jaxbridge.step.notices import users_line
from hlorewrite.jaxbridge.xla import private
from hlorewrite.util.write import write_file

_TEXT_ENDINGS = (".mlir", ".txt")
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_WRITABLE = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")
_LIBRARIES = {"flax": nnx_names, "equinox": equinox_names}


@dataclass(frozen=True)
class ExportedStep:
    """A train step as a file.

    Attributes:
      data: a serialized ``jax.export``.
      arguments: the path of each argument of the module: ``state.opt_state[0].mu['w']``.
      results: the path of each result.
      devices: how many devices the step runs on.
      platforms: what it was lowered for.
    """

    data: bytes = field(repr=False)
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    devices: int
    platforms: tuple[str, ...]

    def text(self) -> str:
        """The module as MLIR text, with source lines and names."""
        return emit(parse(self.data), Format.TEXT, debug_info=True).decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the step: as MLIR text to a path that ends in ``.mlir``, else as a serialized ``jax.export``.

        Args:
          path: the file; its folder must exist.

        Raises:
          OutputError: the file cannot be written.
        """
        name = os.fspath(path)
        write_file(name, self.text().encode() if name.endswith(_TEXT_ENDINGS) else self.data)


def export(step: Callable[..., Any], /, *args: Any, path: str | os.PathLike[str] | None = None,
           platforms: str | Sequence[str] = (), **kwargs: Any) -> ExportedStep:
    """Lowers a train step for given arguments, and writes it as a file that ``opt``, ``compile``, ``report`` read.

    The state may be of any type: optax, flax, NNX, equinox, dataclasses. Donation, shardings and the mesh are those of
    the step. Nothing runs; arguments may be ``jax.ShapeDtypeStruct``.

    Args:
      step: the step as you call it: a ``jax.jit`` or ``hlorewrite.optimize`` function, ``flax.nnx.jit``,
        ``equinox.filter_jit``, a method or partial of one, or a function that is not jitted yet. For the last, text,
        booleans and other leaves that are not arrays become part of the program.
      *args: the positional arguments of a call.
      path: where to write; MLIR text if it ends in ``.mlir``, otherwise a serialized ``jax.export``. With several
        processes, the first one writes. If the step itself has an argument of this name, wrap it in a lambda.
      platforms: the platforms to lower for, such as ``cuda`` on a machine without a GPU; by default this machine's.
      **kwargs: the keyword arguments of a call.

    Returns:
      The exported step, with the names of its arguments and results.

    Raises:
      UsageError: the step cannot take an argument, or a file cannot store the step because it calls back to Python or
        changes references.
      OutputError: the file cannot be written.

    Example:
      >>> import jax.numpy as jnp
      >>> exported = export(lambda state: {"w": state["w"] * 2}, {"w": jnp.ones(3)})
      >>> exported.arguments, exported.results
      (("state['w']",), ("result['w']",))
    """
    if not callable(step):
        raise UsageError(f"export takes a step, but got {type(step).__name__}", location=users_line(),
                         hint="write hlorewrite.export(step, state, batch, path=\"step.export\")")
    names = _checked_platforms((platforms,) if isinstance(platforms, str) and platforms else tuple(platforms))
    name = getattr(step, "__name__", type(step).__name__)
    inner, args, kwargs = _unwrapped(step, args, kwargs)
    traced, renaming = _traced(inner, args, kwargs, name)
    exported = _exported(traced, names, name)
    data = bytes(dataclasses.replace(exported, in_tree=plain_tree(exported.in_tree),
                                     out_tree=plain_tree(exported.out_tree)).serialize())
    result = _with_names(data, renaming, exported)
    if path is not None and jax.process_index() == 0:
        result.save(path)
    return result


def _checked_platforms(platforms: tuple[str, ...]) -> tuple[str, ...]:
    named = tuple("cuda" if platform == "gpu" else platform for platform in platforms)
    for platform in named:
        if platform not in _PLATFORMS:
            raise UsageError(f'there is no platform "{platform}"', location=users_line(),
                             hint=did_you_mean(platform, _PLATFORMS))
    return named


def _unwrapped(step: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict[str, Any]]:
    """The function inside of partials, methods and ``hlorewrite.optimize``, and all that it is called with."""
    # Ends: each round takes a layer of a finite object off.
    while True:
        if isinstance(step, functools.partial) or all(hasattr(step, each) for each in ("func", "args", "keywords")):
            step, args, kwargs = step.func, (*step.args, *args), {**step.keywords, **kwargs}
        elif isinstance(step, types.MethodType) or hasattr(step, "__func__"):
            step, args = step.__func__, (step.__self__, *args)
        elif hasattr(step, "original") and type(step).__module__.startswith("hlorewrite."):
            step = step.original
        else:
            return step, args, kwargs


# ---- tracing


def _traced(step: Any, args: tuple, kwargs: dict[str, Any], name: str) -> tuple[jax.stages.Traced, Renaming]:
    """The trace of a step, and what its arguments are to be called."""
    library = type(step).__module__.partition(".")[0]
    if private.is_pmapped(step):
        step = jax.jit(step)
    if private.jit_options(step) is not None:
        _refuse_other_leaves(step, args, kwargs, name)
        return step.trace(*args, **kwargs), Renaming()
    if library in _LIBRARIES and hasattr(step, "lower"):
        if library == "equinox" and any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(args)):
            raise UsageError(f"{name} is jitted by equinox, which takes jax.ShapeDtypeStruct for a static leaf",
                             location=users_line(), hint="pass arrays, or use filter_jit(...) on a function of arrays")
        return _foreign_trace(step, args, kwargs, name), _LIBRARIES[library](step, args, kwargs)
    return _plain_trace(step, args, kwargs)


def _refuse_other_leaves(step: Any, args: tuple, kwargs: dict[str, Any], name: str) -> None:
    options: Any = private.jit_options(step)
    static = {place % len(args) for place in options.static_argnums if -len(args) <= place < len(args)}
    dynamic = (*(arg for place, arg in enumerate(args) if place not in static),
               *(value for key, value in kwargs.items() if key not in options.static_argnames))
    for path, leaf in tree_flatten_with_path(dynamic)[0]:
        if not is_array(leaf) and not isinstance(leaf, bool) and not hasattr(leaf, "__jax_array__"):
            owner = next((each for each, value in bound_arguments(private.user_function(step), args, kwargs)
                          if value is dynamic[path[0].idx]), "args")
            raise UsageError(f"{name} cannot take {owner}{keystr(path[1:])}, which is of type {type(leaf).__name__}",
                             location=users_line(), hint="name the argument in static_argnames of jax.jit, or keep "
                             "values that are not arrays out of the state")


def _foreign_trace(step: Any, args: tuple, kwargs: dict[str, Any], name: str) -> jax.stages.Traced:
    """What the ``jit`` of another library gives to ``jax.jit``."""
    with private.recorded_traces() as traces:
        step.lower(*args, **kwargs)
    if not traces:
        raise UsageError(f"{name} is jitted by {type(step).__module__}, in a way that hlorewrite does not support",
                         location=users_line(), hint="export the jax.jit function inside it")
    return traces[-1]


def _plain_trace(step: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[jax.stages.Traced, Renaming]:
    """A function without a ``jit``: its arrays are arguments, and all else is part of the program."""
    given, tree = jax.tree.flatten((args, kwargs))
    names = [name for each in bound_arguments(step, args, kwargs) for name in leaf_names(*each)]
    dynamic = [place for place, leaf in enumerate(given) if is_array(leaf)]

    def flat(*leaves: Any) -> Any:
        inner = dict(enumerate(given)) | dict(zip(dynamic, leaves, strict=True))
        positional, named = tree.unflatten(inner.values())
        return jax.tree.map(lambda leaf: leaf if is_array(leaf) else None, step(*positional, **named))
    flat.__name__ = getattr(step, "__name__", "step")
    traced = jax.jit(flat).trace(*(given[place] for place in dynamic))
    return traced, flat_names([names[place] for place in dynamic])


# ---- writing


class _Traced:
    """A function that was traced already, as ``jax.export`` takes one."""

    def __init__(self, traced: jax.stages.Traced) -> None:
        self._traced = traced

    def __call__(self) -> None:
        """It is never run."""

    def trace(self) -> jax.stages.Traced:
        """The trace."""
        return self._traced

    def lower(self) -> jax.stages.Lowered:
        """The lowering for this machine."""
        return self._traced.lower()


def _exported(traced: jax.stages.Traced, platforms: tuple[str, ...], name: str) -> jax.export.Exported:
    try:
        return jax.export.export(_Traced(traced), platforms=platforms or None)()
    except (NotImplementedError, ValueError) as error:
        if private.changes_references(traced.lower()):
            raise UsageError(f"{name} changes references (jax.new_ref) that it closes over; a file cannot store these",
                             location=users_line(),
                             hint="take their values as arguments and return the new ones") from None
        where, target = _unwritable_call(traced)
        if not target:
            raise UsageError(f"{name} cannot be exported ({str(error).partition(chr(10))[0]})", location=users_line(),
                             hint="jax.export gives the reason; it writes only steps that jax.jit compiles for "
                             "devices, without callbacks") from error
        what = "calls back to Python" if "callback" in target else f"calls {target}, which only this jaxlib has"
        raise UsageError(f"{name} {what}, which a file cannot store", location=where or users_line(),
                         hint="export it without jax.debug.print and callbacks") from None


def _unwritable_call(traced: jax.stages.Traced) -> tuple[str, str]:
    """The user's line and the target of the first custom call that no file can store; empty without one."""
    module = Module(private.module_of(traced.lower()))
    found = [(source_line(op.location), ir.StringAttr(op.attributes["call_target_name"]).value)
             for op in View(module).ops("stablehlo.custom_call")]
    named = [each for each in found if each[1] not in _WRITABLE]
    return next((each for each in named if "callback" in each[1]), named[0] if named else ("", ""))


def _with_names(data: bytes, renaming: Renaming, exported: jax.export.Exported) -> ExportedStep:
    from hlorewrite.analysis.parameter_provenance import result_paths
    from hlorewrite.jaxbridge.xla.spmd_module import main_function

    module = parse(data)
    renamed(module, renaming)
    function = main_function(module)
    arguments = function.regions[0].blocks[0].arguments
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
    return ExportedStep(emit(module, Format.EXPORT), tuple(argument_path(each.location) for each in arguments),
                        tuple(result_paths(function, count)), exported.nr_devices, tuple(exported.platforms))


# ---- trees of arguments as ``jax.export`` can write them: types that it cannot write become tuples


def plain_tree(tree: Any) -> Any:
    """The same tree, with a tuple in place of each node that ``jax.export`` cannot write.

    The leaves keep their order and number. Nodes that it can write stay: tuples, lists, ``None``, dictionaries with
    text keys, and types that the user registered with ``jax.export.register_pytree_node_serialization``.

    Args:
      tree: the structure of arguments or results, a ``jax.tree_util.PyTreeDef``.

    Example:
      >>> import collections
      >>> State = collections.namedtuple("State", "count mu")
      >>> plain_tree(jax.tree.structure({"opt": State(0, [1, 2])}))
      PyTreeDef({'opt': (*, [*, *])})
    """
    node = tree.node_data()
    if node is None:
        return jax.tree.structure(0)  # JAX traces with a separate registry, in which files cannot be written
    children = [plain_tree(child) for child in tree.children()]
    if not _is_written(*node):
        return jax.tree_util.treedef_tuple(children)
    return type(tree).from_node_data_and_children(jax.tree_util.default_registry, node, children)


def _is_written(kind: type, keys: Any) -> bool:
    if kind in (tuple, list, type(None)):
        return True
    return all(isinstance(key, str) for key in keys) if kind is dict else private.is_written_by_export(kind)
