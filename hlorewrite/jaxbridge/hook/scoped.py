"""Calls of a function with its own way to jit, rewritten when JAX compiles the programs of the call.

The call keeps the semantics of whatever jitted the function: state that ``flax.nnx.jit`` copies back, donation, static
arguments, arguments of classes that check their leaves.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import jax

from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.hook.patch import JitPatch, scoped
from hlorewrite.jaxbridge.hook.records import CompiledStep
from hlorewrite.jaxbridge.step.notices import HlorewriteWarning, users_level
from hlorewrite.jaxbridge.step.options import StepOptions

_LIBRARIES = ("flax", "equinox")


class OptimizedCallable:
    """A function jitted by another library, a partial or a method of a jitted one, whose modules are rewritten.

    Args:
      function: what the user jitted.
      options: passes and policies.
    """

    def __init__(self, function: Callable[..., Any], options: StepOptions) -> None:
        self._function = function
        self._patch = JitPatch(options)
        self._called = False
        self.__name__ = name_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function; what JAX compiles for the call is rewritten first."""
        with scoped(self._patch):
            result = self._function(*args, **kwargs)
        if not self._called:
            self._called = True
            if not self._patch.records:
                warnings.warn(f"{self.__name__}: nothing that communicates was compiled in the first call; it was "
                              "compiled before it was optimized, or its inputs are not sharded", HlorewriteWarning,
                              stacklevel=users_level())
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function as a method."""
        return self if instance is None else functools.partial(self, instance)

    def __copy__(self) -> OptimizedCallable:
        """The same function and options; records are not shared."""
        return type(self)(self._function, self.options)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedCallable:
        """As a copy: Python copies no functions."""
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<hlorewrite.optimize({self.options.text!r}) of {self._function!r}>"

    @property
    def original(self) -> Callable[..., Any]:
        """The function as it was given."""
        return self._function

    @property
    def options(self) -> StepOptions:
        """Passes and policies."""
        return self._patch.options

    @property
    def records(self) -> tuple[CompiledStep, ...]:
        """The outcome for each module that was compiled in a call."""
        return self._patch.records

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: another library's lowering does not know of rewriting."""
        raise UsageError(f"{self.__name__} is not jitted by jax.jit itself, so it cannot be lowered rewritten",
                         hint="call it and read .records, or compile under hlorewrite.patch_jit")


def is_jitted_elsewhere(fun: Any) -> bool:
    """Whether a function runs jitted code in another way than as a ``jax.jit`` function.

    Args:
      fun: what ``optimize`` was given.

    Returns:
      True for ``flax.nnx.jit(f)`` and ``equinox.filter_jit(f)``, and for partials and methods of these and of
      ``jax.jit`` functions.

    Example:
      >>> jitted = jax.jit(lambda x: x)
      >>> is_jitted_elsewhere(jitted), is_jitted_elsewhere(functools.partial(jitted, 1))
      (False, True)
    """
    inner = _inside(fun)
    return _is_library_jit(inner) or (inner is not fun and isinstance(inner, jax.stages.Wrapped))


def _inside(fun: Any) -> Any:
    """The function in partials and methods."""
    while True:  # Ends: each iteration takes a layer of a finite object off.
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        else:
            return fun


def _is_library_jit(fun: Any) -> bool:
    return type(fun).__module__.partition(".")[0] in _LIBRARIES and hasattr(type(fun), "lower")


def name_of(fun: Any) -> str:
    """The name of a function in messages."""
    return getattr(_inside(fun), "__name__", type(fun).__name__)
