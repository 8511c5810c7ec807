"""Refuses steps whose updates of flax NNX objects ``jax.jit`` would lose.

An NNX module, optimizer or variable is changed in place. ``nnx.jit`` copies the changes back to the caller's objects;
``jax.jit`` passes copies to the function and drops them. flax is inspected only where the user imported it.
"""

import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import Literal

from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.xla import private

_NNX_HINT = ("jit a pure step: graph, state = nnx.split((model, optimizer)) outside, nnx.merge(graph, state) inside, "
             "and return nnx.state((model, optimizer))")
_EQUINOX_HINT = ("jit a pure step: arrays, static = eqx.partition(model, eqx.is_array) outside, eqx.combine(arrays, "
                 "static) inside, and return eqx.filter(model, eqx.is_array)")
_HINTS = {"flax": _NNX_HINT, "equinox": _EQUINOX_HINT}


def refuse_foreign_jit(fun: Any) -> None:
    """Refuses what another library jitted: its wrapper does more than ``jax.jit``, and that would be lost.

    Args:
      fun: what ``optimize`` was given, when it is not a ``jax.jit`` function.

    Raises:
      UsageError: it is the jit of another library, or an NNX object or a method of one.
    """
    held = next((one for one in (fun, getattr(fun, "__self__", None)) if _is_nnx(one)), None)
    if held is not None:
        raise UsageError(f"{_name(fun)} belongs to a flax NNX object ({type(held).__name__}), whose values would be "
                         "constants of the compiled step", hint=_NNX_HINT)
    for one in (fun, getattr(fun, "func", None)):
        kind = type(one)
        library = kind.__module__.partition(".")[0]
        wrapped = isinstance(one, jax.stages.Wrapped) and private.jit_options(one) is None
        if wrapped or (library in _HINTS and hasattr(kind, "lower")):
            raise UsageError(f"{_name(one)} is jitted by {library} ({kind.__qualname__}), whose handling of state "
                             "hlorewrite.optimize does not know", hint=_HINTS.get(library, "pass optimize a jax.jit"))


def refuse_lost_updates(jitted: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Refuses a call whose updates of NNX objects would be lost.

    Args:
      jitted: the ``jax.jit`` function.
      args: the arguments of the call.
      kwargs: the same, by name.

    Raises:
      UsageError: an NNX object is closed over or static, or an argument that is updated and not returned.
    """
    if not _nnx_types():
        return
    fun = private.user_function(jitted)
    if not private.being_traced((args, kwargs)):
        for name, value in (*_closed_over(fun), *_static(jitted, args, kwargs)):
            raise UsageError(f"{_name(fun)} closes over a flax NNX object ({name}: {type(value).__name__}), whose "
                             "values would be constants of the compiled step", hint=_NNX_HINT)
    if not _nnx_leaves((args, kwargs)):
        return
    lost = _lost(jitted, args, kwargs)
    if lost:
        raise UsageError(f"{_name(fun)} updates a flax NNX object among its arguments ({lost}) and does not return the "
                         "update, which would be lost", hint=_NNX_HINT)


# ---- arguments


@dataclass(frozen=True)
class _Update:
    """A new value of an NNX argument: the argument's type, and whether it must come back inside of an NNX object."""

    owner: str
    as_object: bool


def _lost(jitted: Any, args: tuple, kwargs: dict[str, Any]) -> str:
    """The type of an NNX argument with an update that no result of the function holds; empty without one.

    The new values of modules and variables must come back in such objects or in an ``nnx.State``: a bare array that is
    returned does not update the caller's object. Values that arrive in a state may come back as anything.
    """
    updates: list[_Update] = []
    options: Any = private.jit_options(jitted)
    fun = private.user_function(jitted)

    @functools.wraps(fun)
    def watched(*inner: Any, **named: Any) -> tuple[list[Any], list[Any], list[Any]]:
        objects = {id(node) for node in _objects((inner, named))}
        nodes = [(_Update(type(node).__name__, id(node) in objects), node) for node in _nnx_leaves((inner, named))]
        before = {id(leaf): leaf for _, node in nodes for leaf in jax.tree.leaves(node)}
        result = fun(*inner, **named)
        held = jax.tree.leaves(_nnx_leaves(result))
        known = {True: {*before, *map(id, held)}, False: {*before, *map(id, jax.tree.leaves(result))}}
        new = {id(leaf): (update, leaf) for update, node in nodes for leaf in jax.tree.leaves(node)
               if id(leaf) not in known[update.as_object]}
        updates[:] = [update for update, _ in new.values()]
        return jax.tree.leaves(result), held, [leaf for _, leaf in new.values()]

    traced = jax.jit(watched, static_argnums=options.static_argnums,
                     static_argnames=options.static_argnames).trace(*args, **kwargs)
    results, held, new = map(len, traced.out_info)
    jaxpr = traced.jaxpr.jaxpr
    every, inside = jaxpr.outvars[:results], jaxpr.outvars[results:results + held]
    values = jaxpr.outvars[len(jaxpr.outvars) - new:] if new else []
    return next((update.owner for update, value in zip(updates, values, strict=True)
                 if not any(_comes_from(one, value, jaxpr) for one in (inside if update.as_object else every))), "")


def _comes_from(result: Any, update: Any, jaxpr: Any) -> bool:
    """Whether a result of the update's shape and type is computed from the update, such as its mean over devices."""
    if isinstance(update, Literal) or result.aval != update.aval:
        return False
    reached = {update}
    for eqn in jaxpr.eqns:
        if any(not isinstance(value, Literal) and value in reached for value in eqn.invars):
            reached.update(eqn.outvars)
    return not isinstance(result, Literal) and result in reached


# ---- closures


def _closed_over(fun: Any) -> Iterator[tuple[str, Any]]:
    """The NNX objects a function reads from outside its arguments, with their names."""
    if isinstance(fun, functools.partial):
        yield from ((_name(fun.func), held) for held in _objects((fun.args, fun.keywords)))
        fun = fun.func
    code = getattr(fun, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True):
        try:
            yield from ((name, held) for held in _objects(cell.cell_contents))
        except (ValueError, TypeError):  # a name that has no value yet, or something JAX cannot take apart
            continue
    for name in sorted(_global_names(code)):
        value = fun.__globals__.get(name)
        if _is_nnx(value):
            yield name, value


def _static(jitted: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The NNX objects among static arguments."""
    options: Any = private.jit_options(jitted)
    named = [(f"static argument {number}", args[number]) for number in options.static_argnums
             if -len(args) <= number < len(args)]
    named += [(name, kwargs[name]) for name in options.static_argnames if name in kwargs]
    for name, value in named:
        if _is_nnx(value):
            yield name, value


def _global_names(code: Any) -> set[str]:
    """Names a function and the functions inside it look up outside."""
    inner = (each for each in code.co_consts if hasattr(each, "co_names"))
    return set(code.co_names).union(*map(_global_names, inner))


# ---- types of flax


def _nnx_types() -> tuple[type, ...]:
    nnx = sys.modules.get("flax.nnx")
    return tuple(getattr(nnx, name) for name in ("Pytree", "Object", "Module", "Variable") if hasattr(nnx, name))


def _is_nnx(value: Any) -> bool:
    return isinstance(value, _nnx_types())


def _nnx_leaves(tree: Any) -> list[Any]:
    """The NNX objects in a tree; those inside of one belong to it."""
    if not _nnx_types():
        return []
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=_is_nnx) if _is_nnx(leaf)]


def _objects(tree: Any) -> list[Any]:
    """The NNX objects in a tree that are not in an ``nnx.State``, which is a plain value."""
    state = getattr(sys.modules.get("flax.nnx"), "State", ())
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=lambda at: isinstance(at, state) or _is_nnx(at))
            if _is_nnx(leaf)]


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", type(fun).__name__)
