"""An optimized function as a method of one object."""

from __future__ import annotations

import functools
import types
from typing import Any

import jax

from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.xla import private


class BoundFunction:
    """An optimized function as a method of one object: calls and lowerings get the object first.

    Args:
      function: the ``OptimizedFunction``.
      instance: the object.
    """

    def __init__(self, function: Any, instance: Any) -> None:
        self.__func__, self.__self__ = function, instance
        functools.update_wrapper(self, types.MethodType(private.user_function(function.original), instance))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the method."""
        return self.__func__(self.__self__, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """Traces the method."""
        return self.__func__.trace(self.__self__, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> OptimizedLowered:
        """Lowers and rewrites the method."""
        return self.__func__.lower(self.__self__, *args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the method's outputs."""
        return self.__func__.eval_shape(self.__self__, *args, **kwargs)

    def clear_cache(self) -> None:
        """Forgets everything compiled for the function, of every object."""
        self.__func__.clear_cache()
