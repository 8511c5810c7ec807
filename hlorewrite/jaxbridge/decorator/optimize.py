"""``hlorewrite.optimize``: one line around a jitted train step."""

from __future__ import annotations

import functools
import inspect
import os
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, overload

import jax
from jax.extend import source_info_util

from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.jaxbridge.decorator.first_call import run_both
from hlorewrite.jaxbridge.decorator.specialize import OptimizedLowered, optimized_lowering
from hlorewrite.jaxbridge.decorator.state import step_with_state
from hlorewrite.jaxbridge.decorator.state.new_state import as_the_user_sees, flat_with_sums, whole_sums
from hlorewrite.jaxbridge.frameworks.lost_updates import refuse_foreign_jit, refuse_lost_updates
from hlorewrite.jaxbridge.hook.patch import JitPatch, scoped
from hlorewrite.jaxbridge.hook.records import CompiledStep
from hlorewrite.jaxbridge.hook.scoped import OptimizedCallable, is_jitted_elsewhere, name_of
from hlorewrite.jaxbridge.step.notices import KILL_SWITCH, HlorewriteWarning, switched_off, users_level
from hlorewrite.jaxbridge.step.options import OPTIMIZE, PATCH_JIT, OptimizeKeywords, StepOptions, documented
from hlorewrite.jaxbridge.xla import private
from hlorewrite.passmanager.base import Pass

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.step.options import Passes

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
JIT_OPTIONS = frozenset(inspect.signature(jax.jit).parameters) - {"fun"}
# Locations name the user's lines, not those of jaxbridge/.
source_info_util.register_exclusion(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Signatures:
    """Lowerings of the original function, and what was compiled for them after rewriting.

    JAX returns the same lowering for the same signature, so its identity is the key; it is held, so that no other can
    take its address.

    Args:
      forget: empties what depends on this.
    """

    def __init__(self, forget: Callable[[], None]) -> None:
        self._forget = forget
        self._compiled: dict[int, tuple[Any, jax.stages.Compiled]] = {}
        private.clear_with_caches(self)

    def __len__(self) -> int:
        return len(self._compiled)

    def find(self, lowering: Any) -> jax.stages.Compiled | None:
        """The compiled step of a lowering; None for a new one."""
        known = self._compiled.get(id(lowering))
        return None if known is None else known[1]

    def keep(self, lowering: Any, compiled: jax.stages.Compiled) -> None:
        """Remembers what was compiled for a lowering."""
        self._compiled[id(lowering)] = lowering, compiled

    def cache_clear(self) -> None:
        """Forgets everything; JAX calls it."""
        self._compiled.clear()
        self._forget()

    def cache_info(self) -> str:
        """How many signatures are known; JAX asks caches for this number."""
        return f"{len(self)} signatures"

    def cache_keys(self) -> list[Any]:
        """The lowerings."""
        return [lowering for lowering, _ in self._compiled.values()]


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


class OptimizedFunction(Generic[Arguments, Returned]):
    """A jitted function whose lowered module goes through passes before XLA compiles it.

    It satisfies ``jax.stages.Wrapped``. Calls are dispatched by JAX's own C++ code under the same key as ``jax.jit``.

    Args:
      jitted: the ``jax.jit`` function; its options hold.
      options: passes and policies.
    """

    __name__: str

    def __init__(self, jitted: Any, options: StepOptions) -> None:
        self._jitted = jitted
        self._options = options
        self._jit_options: Any = private.jit_options(jitted)
        self._said: set[str] = set()
        self._compared: tuple[str, ...] = ()
        self._checked_classes = JitPatch(options)  # for arguments whose classes refuse to be lowered
        self._dispatch = private.dispatcher(jitted, self._miss)
        self._known = Signatures(self._dispatch._clear_cache)
        self._with_states = step_with_state.StepsWithState(self._dispatch._clear_cache)
        self.__name__ = "function"  # functools.partial objects have no name of their own
        _wear(self, private.user_function(jitted))

    def __copy__(self) -> OptimizedFunction[Arguments, Returned]:
        """The same jitted function and options; what was compiled is not shared."""
        return OptimizedFunction(self._jitted, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedFunction[Arguments, Returned]:
        """As a copy: Python copies no functions, and a copied ``jax.jit`` function lacks ``lower``."""
        return self.__copy__()

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        """Runs the rewritten function, rewriting and compiling it for a new signature."""
        return self._dispatch(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function as a method."""
        return self if instance is None else BoundFunction(self, instance)

    def __repr__(self) -> str:
        return f"<hlorewrite.optimize({self._options.text!r}) of {self._jitted!r}>"

    @property
    def records(self) -> tuple[CompiledStep, ...]:
        """The outcome of calls whose arguments cannot be lowered; ``lower(...).report`` covers all others."""
        return self._checked_classes.records

    @property
    def first_call(self) -> tuple[str, ...]:
        """For the last comparison under ``check="first_call"``, the output nearest to what rounding explains, and those
        for which no bound is known."""
        return self._compared

    # ---- ahead of time

    def trace(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> jax.stages.Traced:
        """Traces the user's function as ``jax.jit`` does; rewriting happens in ``lower``."""
        refuse_lost_updates(self._jitted, args, kwargs)
        return self._jitted.trace(*as_the_user_sees(args), **as_the_user_sees(kwargs))

    def lower(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> OptimizedLowered:
        """Lowers and rewrites for given arguments (arrays or ``jax.ShapeDtypeStruct``)."""
        return self._lower(self.trace(*args, **kwargs))

    def in_shardings(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> tuple[Any, dict[str, Any]]:
        """How the compiled step takes its arguments, positional ones and named ones; None for what it does not read.

        ``shard_update`` and ``partial_state`` change the placement of the state that they shard or keep as local sums.
        """
        return self._step(args, kwargs).compiled.input_shardings

    def out_shardings(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
        """How the compiled step places its results."""
        return self._step(args, kwargs).compiled.output_shardings

    def place(self, *args: Any) -> tuple[Any, ...]:
        """Positional arguments as the compiled step takes them, so that no call has to convert state."""
        step = self._step(args, {})
        leaves, tree = flat_with_sums(self._dynamic(args, {}))
        placed = iter(step.given_back(tree, step.placed(leaves))[0])
        static = self._static_places(args)
        return tuple(arg if place in static else next(placed) for place, arg in enumerate(args))

    def whole(self, tree: Any) -> Any:
        """Any tree of arrays with the sums that ``partial_state`` keeps apart added up, as ``jax.jit`` returns them."""
        return whole_sums(tree)

    def eval_shape(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
        """Shapes and dtypes of the outputs, without running anything."""
        return self._jitted.eval_shape(*as_the_user_sees(args), **as_the_user_sees(kwargs))

    def clear_cache(self) -> None:
        """Forgets everything compiled for this function."""
        self._known.cache_clear()
        self._jitted.clear_cache()

    @property
    def original(self) -> Any:
        """The unrewritten ``jax.jit`` function."""
        return self._jitted

    def _lower(self, traced: jax.stages.Traced) -> OptimizedLowered:
        lowered, sentences = optimized_lowering(traced, self._options, switched_off())
        for sentence in sentences:
            self._say(sentence)
        return lowered

    # ---- calls

    def _miss(self, *args: Any, **kwargs: Any) -> tuple[Any, jax.stages.Compiled | None, list[Any]]:
        """A call of a signature C++ has no fast path for."""
        refuse_lost_updates(self._jitted, args, kwargs)
        if private.being_traced((args, kwargs)):
            self._say("runs unrewritten inside a transformation (jit, grad, vmap or shard_map from outside); "
                      "put hlorewrite.optimize around the outermost step")
            return self._jitted(*args, **kwargs), None, []
        if not private.takes_other_leaves((args, kwargs)):
            with scoped(self._checked_classes):
                return self._jitted(*args, **kwargs), None, []
        if self._options.keeps_state and not switched_off():
            return self._with_state(args, kwargs)
        if self._options.partial_state:  # switched off
            args, kwargs = whole_sums((args, kwargs))
            return self._jitted(*args, **kwargs), None, []
        traced = self._jitted.trace(*args, **kwargs)
        if (switched_off() and jax.process_count() == 1) or private.closes_over_references(traced):
            return self._jitted(*args, **kwargs), None, []
        dynamic, named = self._dynamic(args, kwargs)
        leaves = jax.tree.leaves((dynamic, named))
        key = private.lowering_key(traced.lower())
        known = self._known.find(key)
        if known is not None:
            return known(*dynamic, **named), known, leaves
        lowered = self._lower(traced)
        compiled = lowered.compile()
        outputs = self._first_run(lowered, compiled, dynamic, named)
        self._known.keep(key, compiled)
        return outputs, compiled, leaves

    def _with_state(self, args: tuple, kwargs: dict) -> tuple[Any, jax.stages.Compiled | None, list[Any]]:
        """A call of a step that keeps its state differently from the user's function; state is converted if needed."""
        step = self._step(args, kwargs)
        leaves, tree = flat_with_sums(self._dynamic(args, kwargs))
        placed = step.placed(leaves)
        dynamic, named = jax.tree.unflatten(tree, placed)
        moved = any(new is not old for new, old in zip(placed, leaves, strict=True))
        outputs = self._first_run(step.lowered, step.compiled, dynamic, named) if step.is_new() else \
            step.compiled(*dynamic, **named)
        return step.returned(outputs), None if moved or step.lowered.local_sums else step.compiled, leaves

    def _step(self, args: tuple, kwargs: dict) -> step_with_state.StepWithState:
        """What is compiled for some arguments, whose state may come as the user's function takes it, or converted."""
        args, kwargs = as_the_user_sees(args), as_the_user_sees(kwargs)
        leaves, tree = jax.tree.flatten(self._dynamic(args, kwargs))
        static = (*(args[place] for place in sorted(self._static_places(args))),
                  *((name, kwargs[name]) for name in self._jit_options.static_argnames if name in kwargs))
        key = step_with_state.kind_of_arguments(tree, leaves, static)
        known = self._with_states.find(key, leaves)
        if known is not None:
            return known
        lowered = self._lower(self._jitted.trace(*args, **kwargs))
        for sentence in step_with_state.nothing_changed(lowered.report, self._options):
            self._say(sentence)
        return self._with_states.keep(key, lowered, lowered.compile(), leaves)

    def _first_run(self, lowered: OptimizedLowered, compiled: jax.stages.Compiled, args: tuple, kwargs: dict) -> Any:
        if self._options.check != "first_call" or not lowered.report.changed:
            return compiled(*args, **kwargs)
        if private.has_effects(lowered):
            self._say("is not checked on its first call, because it prints, calls back or changes references: "
                      "running it twice would be visible")
            return compiled(*args, **kwargs)
        outputs, self._compared = run_both(lowered, compiled, args, kwargs, self.__name__)
        return outputs

    def _dynamic(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments without the static ones, which a compiled function does not take."""
        static, names = self._static_places(args), self._jit_options.static_argnames
        return (tuple(arg for position, arg in enumerate(args) if position not in static),
                {name: value for name, value in kwargs.items() if name not in names})

    def _static_places(self, args: tuple) -> set[int]:
        return {place % len(args) for place in self._jit_options.static_argnums if -len(args) <= place < len(args)}

    def _say(self, sentence: str) -> None:
        """Warns once."""
        if sentence not in self._said:
            self._said.add(sentence)
            warnings.warn(f"{self.__name__}: {sentence}", HlorewriteWarning,
                          stacklevel=users_level())


def _wear(wrapper: Any, function: Callable[..., Any]) -> None:
    """``functools.update_wrapper``, except for attributes of the function that have the name of one of the wrapper's: a
    function may carry a ``lower`` of its own, as that of ``jax.pmap`` does."""
    own = {*dir(type(wrapper)), *vars(wrapper)}
    functools.update_wrapper(wrapper, function, updated=())
    vars(wrapper).update({name: value for name, value in vars(function).items() if name not in own}
                         if hasattr(function, "__dict__") else {})


class OptimizedPmap(OptimizedCallable):
    """A ``jax.pmap`` function whose modules are rewritten; calls keep its semantics, in several processes too."""

    def lower(self, *args: Any, **kwargs: Any) -> OptimizedLowered:
        """Lowers and rewrites for given arguments (arrays or ``jax.ShapeDtypeStruct``).

        Raises:
          UsageError: in a program of several processes, where a pmap's arguments are those of one.
        """
        if jax.process_count() > 1:
            raise UsageError(f"{self.__name__} is a pmap of {jax.process_count()} processes, whose arguments are local",
                             hint="call it and read .records")
        lowered, sentences = optimized_lowering(jax.jit(self.original).trace(*args, **kwargs), self.options,
                                                switched_off())
        for sentence in sentences:
            warnings.warn(f"{self.__name__}: {sentence}", HlorewriteWarning, stacklevel=users_level())
        return lowered


@overload
def optimize(fun: Callable[Arguments, Returned], /, *, passes: Passes | None = None,
             **options: Unpack[OptimizeKeywords]) -> OptimizedFunction[Arguments, Returned]: ...
@overload
def optimize(fun: Passes | None = None, /, *, passes: Passes | None = None, **options: Unpack[OptimizeKeywords]
             ) -> Callable[[Callable[Arguments, Returned]], OptimizedFunction[Arguments, Returned]]: ...


@documented(OPTIMIZE)
def optimize(fun: Any = None, /, *, passes: Passes | None = None, **options: Unpack[OptimizeKeywords]) -> Any:
    """Rewrites the communication of a train step between JAX and XLA.

    Use it bare, with a pipeline, or around an existing ``jax.jit``, whose options all hold::

        @hlorewrite.optimize
        def step(state, batch): ...

        @hlorewrite.optimize("comm-shift", donate_argnums=0)
        def step(state, batch): ...

        step = hlorewrite.optimize(jax.jit(step, donate_argnums=0), passes="comm-shift")

    Args:
      fun: the function, a ``jax.jit`` of it, or the pipeline when used as a decorator with arguments.
      {options}
      **options: also those of ``jax.jit``, when ``fun`` is not jitted yet.

    Returns:
      A function with the interface of ``jax.jit`` (``jax.stages.Wrapped``), or a decorator. For ``flax.nnx.jit(f)``,
      ``equinox.filter_jit(f)``, ``jax.pmap(f)``, and partials and methods of jitted functions: a callable that keeps
      their semantics, with ``records`` of the rewrites.

    Raises:
      PlanMismatch: a call or ``lower`` raises it if the plan does not fit or cannot be read.
      UsageError: an unknown option, pass or policy, jit options for a function that is jitted already, or a method of
        an NNX object. A call also raises it if updates of flax NNX objects would be lost.

    Example:
      >>> import jax.numpy as jnp
      >>> @optimize("comm-shift")
      ... def double(x):
      ...     return x + x
      >>> double(jnp.float32(2)).item(), double.lower(jnp.float32(2)).report.changed
      (4.0, False)
    """
    decorating = not callable(fun) or isinstance(fun, Pass)
    if decorating and fun is not None and passes is not None:
        raise UsageError("optimize got two pipelines", hint="leave out passes=")
    own: dict[str, Any] = {"passes": fun if decorating and fun is not None else passes}
    jit_options: dict[str, Any] = {}
    for name, value in options.items():
        (jit_options if name in JIT_OPTIONS else own)[name] = value
    chosen = StepOptions.of(OPTIMIZE, own, JIT_OPTIONS)
    return (lambda inner: _optimized(inner, chosen, jit_options)) if decorating else \
        _optimized(fun, chosen, jit_options)


def _optimized(fun: Any, options: StepOptions, jit_options: dict[str, Any]) -> OptimizedFunction | OptimizedCallable:
    pmapped = private.is_pmapped(fun)
    if not pmapped and not is_jitted_elsewhere(fun):
        return OptimizedFunction(_jitted(fun, jit_options), options)
    unknown = [*jit_options, *(name for name in PATCH_JIT.without if getattr(options, name))]
    if unknown:
        raise UsageError(f"{name_of(fun)} is jitted already, so {', '.join(unknown)} cannot be given here",
                         hint="pass these options to the function that jits it; check=, shard_update= and "
                              "partial_state= need a jax.jit function")
    return OptimizedPmap(fun, options) if pmapped else OptimizedCallable(fun, options)


def _jitted(fun: Any, jit_options: dict[str, Any]) -> Any:
    if isinstance(fun, OptimizedFunction):
        raise UsageError(f"{fun.__name__} is optimized already", hint="name all passes in one call of optimize")
    if private.jit_options(fun) is None:
        refuse_foreign_jit(fun)
        return jax.jit(fun, **jit_options)
    if jit_options:
        raise UsageError(f"{fun.__name__} is jitted already, so {', '.join(jit_options)} cannot be given again",
                         hint="pass these options to jax.jit")
    return fun


__all__ = ["KILL_SWITCH", "HlorewriteError", "HlorewriteWarning", "OptimizedFunction", "optimize"]
