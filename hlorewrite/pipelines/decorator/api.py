"""``hlorewrite.pipeline``: a train step with stage marks, run over several meshes."""

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax
import numpy as np

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.jaxbridge.processes.fetch import fetch_value
from hlorewrite.jaxbridge.processes.notes import one_line
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.jaxbridge.xla import private
from hlorewrite.passmanager.base import Pass
from hlorewrite.pipelines.decorator.lowered import PipelineCompiled, PipelineLowered, lower_step
from hlorewrite.pipelines.decorator.specs import MeshLike, PipelineSettings, checked_stages, stage_meshes
from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.decorator.state import StateSummary, summarize, to_global
from hlorewrite.pipelines.runtime.group import begin, solver_effort
from hlorewrite.pipelines.schedules import Schedule

DEFAULT_PASSES = "expose-collectives,comm-shift"


class PipelinedFunction:
    """A train step that runs as a program of several meshes.

    Its first call with new shapes traces, splits, rewrites and compiles; arguments that are elsewhere are put on the
    mesh of their stage, results stay there, so the next call moves nothing but the batch.

    Args:
      function: the user's step.
      settings: meshes, schedule, passes.
      jit_options: ``donate_argnums``, ``static_argnums`` and other options of ``jax.jit``.
    """

    __name__: str

    def __init__(self, function: Callable[..., Any], settings: PipelineSettings, jit_options: dict[str, Any]) -> None:
        self._function, self._settings, self._options = function, settings, jit_options
        self._known: dict[Any, PipelineCompiled] = {}
        self.__name__ = "function"
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the step; returns as soon as everything is passed to the devices."""
        if jax.config.jax_disable_jit:
            return self._op_by_op(args, kwargs)
        if _mesh_is_set():
            return self._without_mesh(self, args, kwargs)
        key = self._key(args, kwargs)
        compiled = self._known.get(key)
        if compiled is None:
            compiled = self._known[key] = self._compiled(args, kwargs)
        return compiled(*args, **kwargs)

    def _op_by_op(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs the step unsplit on one device, as ``jax.jit`` does within ``jax.disable_jit``."""
        if len(self._settings.meshes.processes()) > 1:
            raise UsageError(f"{self.__name__} runs on several processes, which jax.disable_jit cannot",
                             hint="debug it in one process, with meshes of its devices")
        device = self._settings.meshes.all_devices()[0]
        given, named = jax.tree.map(lambda leaf: _on_device(leaf, device), (args, kwargs))
        return self._function(*given, **named)

    def _without_mesh(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls a function as outside of ``jax.set_mesh``: a pipeline has its own meshes."""
        if private.being_traced((args, kwargs)):
            self._refuse_traced()
        with jax.set_mesh(jax.sharding.Mesh(np.empty((), object), ())):
            return function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function bound to an object, where it is a method; give ``static_argnums=0`` for ``self``."""
        return self if instance is None else types.MethodType(self, instance)

    def _compiled(self, args: tuple, kwargs: dict[str, Any]) -> PipelineCompiled:
        """Splits, rewrites and compiles together with the other processes; when one fails, all stop."""
        agreement = begin(self._settings.meshes.processes(), self._settings.timeout_s)
        try:
            return self._lower(args, kwargs, solver_effort(agreement)).compile(agreement)
        except BaseException as error:
            if agreement is not None:
                agreement.refuse(one_line(error))
            raise

    def __repr__(self) -> str:
        return f"<hlorewrite.pipeline({self._settings.meshes.text}) of {self.__name__}>"

    def lower(self, *args: Any, **kwargs: Any) -> PipelineLowered:
        """Traces, splits and rewrites for given arguments, arrays or ``jax.ShapeDtypeStruct``; compiles nothing."""
        return self._without_mesh(self.lower, args, kwargs) if _mesh_is_set() else self._lower(args, kwargs)

    def _lower(self, args: tuple, kwargs: dict[str, Any], effort: float | None = None) -> PipelineLowered:
        if private.being_traced((args, kwargs)):
            self._refuse_traced()
        return lower_step(self._function, self._settings, self._options, args, kwargs, effort)

    def _refuse_traced(self) -> NoReturn:
        raise UsageError(f"{self.__name__} is pipelined and cannot run inside jax.jit or another transformation",
                         hint="call it as it is: it is compiled, one program for each mesh")

    @property
    def original(self) -> Callable[..., Any]:
        """The user's own function, which runs unsplit."""
        return self._function

    def fetch(self, tree: Any, to: int | None = None) -> Any:
        """The values of a step's results on the host, on every process or on one; every process must call this.

        Args:
          tree: results of a step: a pytree of arrays; this process may have a part of each or nothing.
          to: the process that gets the values; None for all.

        Returns:
          The same pytree of NumPy arrays; None in place of each array on processes that do not get it.

        Raises:
          UsageError: no step has run on several processes, or ``to`` is none of them.
          PlanError: a process does not send its part in time.
        """
        watch = self._watch()
        leaves, structure = jax.tree.flatten(tree)

        def fetched(name: str, leaf: Any) -> np.ndarray | None:
            if isinstance(leaf, StageArray):
                parts = [fetched(f"{name}[{place}]", part) for place, part in enumerate(leaf.parts)]
                here = [part for part in parts if part is not None]
                return np.concatenate(here) if here else None
            return fetch_value(name, leaf, watch, self._settings.timeout_s, to) if isinstance(leaf, jax.Array) \
                else np.asarray(leaf)

        return jax.tree.unflatten(structure, [fetched(f"value {number}", leaf) for number, leaf in enumerate(leaves)])

    def summary(self, tree: Any) -> StateSummary:
        """Norms and checks of a state whose arrays are on several meshes; every process must call this.

        Args:
          tree: results of a step: a pytree of arrays.

        Returns:
          ``norm``, ``not_finite`` and a row for each array, reduced where it is; ``print`` shows a table.

        Raises:
          UsageError: no step has run on several processes.
          PlanError: a process does not send its part in time.
        """
        watch = self._watch()
        return summarize(tree, lambda name, value: fetch_value(name, value, watch, self._settings.timeout_s))

    def _watch(self) -> Any:
        """What watches the other processes; None in one process."""
        watches = [compiled.driver.watch for compiled in self._known.values()]
        if not watches and jax.process_count() > 1:
            raise UsageError(f"{self.__name__} has not run: there is nothing to fetch", hint="run a step first")
        return watches[-1] if watches else None

    def to_global(self, tree: Any) -> Any:
        """Converts a state to arrays that every process has a part of, for checkpoints (orbax).

        The step takes such arrays as arguments and brings restored values to their stages. All processes call it.

        Args:
          tree: a pytree of results of a step, or of host values, the same on every process: then it shows orbax what
            to restore.

        Returns:
          The same pytree; arrays that every process has a part of, such as stacked layers, are not copied.

        Raises:
          PlanError: a process does not arrive in time.
        """
        return jax.tree.map(lambda leaf: to_global(leaf, self._settings.meshes.all_devices(),
                                                   self._settings.timeout_s), tree)

    def clear_cache(self) -> None:
        """Forgets everything compiled for this step."""
        self._known.clear()

    def _key(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        static = _positions(self._options.get("static_argnums"), len(args))
        names = _names(self._options.get("static_argnames"))
        dynamic = [arg for position, arg in enumerate(args) if position not in static]
        named = {name: value for name, value in kwargs.items() if name not in names}
        leaves, tree = jax.tree.flatten((dynamic, named))
        if any(map(private.is_tracer, leaves)):
            self._refuse_traced()
        kinds = tuple(map(_kind, leaves))
        fixed = tuple((position, args[position]) for position in sorted(static))
        fixed += tuple((name, kwargs[name]) for name in sorted(names) if name in kwargs)
        for name, value in fixed:
            _check_hashable(name, value)
        return tree, kinds, fixed, private.trace_context()


def _kind(leaf: Any) -> Any:
    type_ = leaf if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | StageArray) else jax.typeof(leaf)
    return type_.shape, type_.dtype, getattr(type_, "weak_type", False)


def _mesh_is_set() -> bool:
    return not jax.sharding.get_abstract_mesh().empty


def _on_device(leaf: Any, device: Any) -> Any:
    """An array of any mesh on one device; anything else as it is."""
    value = np.asarray(leaf) if isinstance(leaf, StageArray) else leaf
    return jax.device_put(value, device) if isinstance(leaf, jax.Array | StageArray) else value


def _check_hashable(name: int | str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise UsageError(f"static argument {name!r} is a {type(value).__name__}, which cannot be hashed",
                         hint="pass a hashable value, such as a tuple, or do not make it static") from None


def _positions(given: int | Sequence[int] | None, count: int) -> frozenset[int]:
    numbers = () if given is None else (given,) if isinstance(given, int) else tuple(given)
    return frozenset(number % count for number in numbers if -count <= number < count)


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def pipeline(fun: Callable[..., Any] | None = None, /, *, meshes: Sequence[MeshLike],
             schedule: str | Schedule = "1f1b", microbatches: int | None = None,
             passes: str | Pass | Sequence[str | Pass] | None = None, axes: Sequence[str] | None = None,
             in_specs: Any = None, out_specs: Any = None, shared: str = "once", topology: str = "",
             timeout_s: float = TIMEOUT_S, stages: str | Sequence[int] = "marked",
             share_fragments: bool | None = None, **jit_options: Any) -> Any:
    """Runs a train step with stage marks over several meshes.

    The step is an ordinary function: one loop over micro-batches (``lax.scan``, ``lax.fori_loop``, or
    ``hlorewrite.mean_over_microbatches``) in which ``hlorewrite.stage`` marks where stages begin, and an update after
    it. Without this decorator it runs unsplit and computes the same::

        @hlorewrite.pipeline(meshes=[(2, 1)] * 4, schedule="1f1b", donate_argnums=0)
        def step(state, batch):
            loss, grads = hlorewrite.mean_over_microbatches(
                lambda rows: jax.value_and_grad(loss_fn)(state.params, rows), batch, 8)
            return state.apply(grads), loss

    Args:
      fun: the step; without it, returns a decorator.
      meshes: one for each stage, or fewer if the schedule puts several stages on a mesh: ``jax.sharding.Mesh`` objects
        with the same axes, or shapes, which take devices from ``jax.devices()`` in order.
      schedule: a schedule or the name of one.
      microbatches: m, which must match the step's loop.
      passes: the passes to run on the program; by default ``expose-collectives,comm-shift``.
      axes: names of the axes if ``meshes`` are shapes; ``("data", "tensor")`` by default.
      in_specs: a prefix pytree of ``jax.sharding.PartitionSpec`` for the positional arguments; by default all are
        replicated on their mesh, except the last one, the batch, whose rows are sharded over the first axis.
      out_specs: the same for results; by default a result is placed like the donated argument that it can replace.
      shared: when to add the contributions of several stages to one sum (tied embeddings): ``once`` after the loop, or
        ``every-micro-batch`` in it.
      topology: the cluster's servers, for plans of transfers and for choosing ``stages``; by default guessed from the
        devices, and h200 for ``stages``.
      timeout_s: seconds that another process may be missing, be silent, or keep this one waiting.
      stages: where stages begin. ``marked``: at the step's marks. ``auto``, for a step without marks: where the cost
        model says, one stage for each mesh, or two if the schedule puts several on a mesh. Or the cuts from the remarks
        of ``auto``.
      share_fragments: whether to run the pass ``share-fragments``, which compiles equal parts of fragments once: a
        shorter first call, but more dispatches in each step. None: on CPU only.
      **jit_options: ``donate_argnums``, ``static_argnums`` and other options of ``jax.jit``.

    Returns:
      A function with ``lower``, or a decorator.

    Raises:
      UsageError: meshes, axes, schedule or passes are invalid.

    Example:
      >>> import jax.numpy as jnp
      >>> import hlorewrite
      >>> def loss(params, x):
      ...     h = hlorewrite.stage(jnp.tanh(x @ params[0]), 1)
      ...     return jnp.mean((h @ params[1]) ** 2)
      >>> def step(params, x):
      ...     value, grads = hlorewrite.mean_over_microbatches(
      ...         lambda rows: jax.value_and_grad(loss)(params, rows), x, 2)
      ...     return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value
      >>> pipelined = pipeline(step, meshes=[(1,), (1,)])
      >>> weights = [jnp.ones((4, 4)), jnp.ones((4, 2))]
      >>> lowered = pipelined.lower(weights, jnp.ones((8, 4)))
      >>> [call.callee for call in lowered.data().body if hasattr(call, "callee")]
      ['forward_0', 'forward_1', 'backward_1', 'backward_0']
    """
    from hlorewrite.jaxbridge.step.options import as_passes

    _check_schedule(schedule)
    settings = PipelineSettings(stage_meshes(meshes, axes), schedule, microbatches,
                                passes=as_passes(DEFAULT_PASSES if passes is None else passes), in_specs=in_specs,
                                out_specs=out_specs, shared=shared, topology=topology, timeout_s=timeout_s,
                                stages=checked_stages(stages), share_fragments=share_fragments)
    _check_options(jit_options)
    jit_options.pop("keep_unused", None)  # arguments are always kept
    if fun is None:
        return lambda inner: PipelinedFunction(inner, settings, jit_options)
    return PipelinedFunction(fun, settings, jit_options)


_JIT_OPTIONS = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
_REFUSED = {"in_shardings": "pass in_specs with PartitionSpecs", "out_shardings": "pass out_specs with PartitionSpecs",
            "device": "pass meshes", "backend": "pass meshes of its devices",
            "compiler_options": "set XLA_FLAGS in the environment"}


def _check_options(given: dict[str, Any]) -> None:
    """Refuses options of ``jax.jit`` that name devices or one compilation, and names that are none."""
    for name in given:
        if name in _REFUSED:
            raise UsageError(f"{name} is for one program, and a pipeline has one for each mesh", hint=_REFUSED[name])
        if name not in _JIT_OPTIONS:
            raise UsageError(f'hlorewrite.pipeline has no option "{name}"', hint=did_you_mean(name, _JIT_OPTIONS))


def _check_schedule(schedule: str | Schedule) -> None:
    from hlorewrite.pipelines.schedules import SCHEDULES

    if isinstance(schedule, str) and schedule not in SCHEDULES:
        raise UsageError(f'there is no schedule "{schedule}"', hint=did_you_mean(schedule, SCHEDULES))
