"""``jax.debug.print`` and callbacks of a pipelined step: taken out of the step, and run on what it computed for them.

No fragment calls Python. What a callback would be given leaves the step as a further result, one slot for each
micro-batch, and the host calls it after the step, in the order of the unsplit step.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Var

from hlorewrite.errors import InputError, UsageError
from hlorewrite.jaxbridge.xla import private

_CALLS = frozenset(("jit", "pjit", "closed_call", "core_call"))
_NAMES = {"remat2": "jax.checkpoint", "checkpoint": "jax.checkpoint", "while": "a loop of unknown length",
          "custom_vjp_call": "jax.custom_vjp", "custom_jvp_call": "jax.custom_jvp"}
"""What users call primitives that hold code."""


@dataclass(frozen=True)
class HostCall:
    """One callback.

    Attributes:
      equation: the equation of the step's jaxpr.
      operands: for each operand the number of the further result that holds it, or (constant,).
    """

    equation: Any
    operands: tuple[int | tuple[Any], ...]


@dataclass(frozen=True)
class HostLoop:
    """The callbacks of a loop: further results have one more leading dimension, that of its iterations.

    Attributes:
      iterations: the iterations, in the order they run.
      calls: what each runs.
    """

    iterations: tuple[int, ...]
    calls: "tuple[HostCall | HostLoop | HostBranch, ...]"


@dataclass(frozen=True)
class HostBranch:
    """The callbacks of a branch.

    Attributes:
      index: the number of the further result that says which branch runs.
      branches: what each runs.
    """

    index: int
    branches: "tuple[tuple[HostCall | HostLoop | HostBranch, ...], ...]"


Item = HostCall | HostLoop | HostBranch


@dataclass
class _Evaluation:
    """What a jaxpr without its callbacks returns.

    Attributes:
      first: the number of its first further result.
      results: the results of the jaxpr.
      values: the further results.
      calls: the callbacks.
    """

    first: int
    results: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    calls: list[Item] = field(default_factory=list)

    def keep(self, value: Any) -> int:
        """The number of a value as a further result."""
        self.values.append(value)
        return self.first + len(self.values) - 1

    def inner(self) -> "_Evaluation":
        """An evaluation whose further results follow those of this one."""
        return _Evaluation(self.first + len(self.values))

    def take(self, values: Sequence[Any], *calls: Item) -> None:
        """Adds the further results of an inner evaluation."""
        self.values += values
        self.calls += calls


def calls_host(jaxpr: Any) -> bool:
    """Whether a jaxpr prints or calls back, at any depth."""
    return any(_is_callback(equation) or any(map(calls_host, _inner(equation))) for equation in jaxpr.eqns)


def without_host_calls(function: Callable[..., Any], traced: jax.stages.Traced, dynamic: Callable[[tuple, dict], Any]
                       ) -> tuple[Callable[..., Any], list[Item]]:
    """A step that returns what its callbacks would be given.

    Args:
      function: the step.
      traced: the same, traced.
      dynamic: which of its arguments are not static.

    Returns:
      (a function of the same arguments that returns (what the step returns, further results); the callbacks, which are
      there once it was traced).

    Raises:
      InputError: a callback cannot run after the step; raised where the function is traced.
    """
    calls: list[Item] = []
    closed, structure = traced.jaxpr, jax.tree.structure(traced.out_info)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        made = _Evaluation(0)
        _evaluate(closed, jax.tree.leaves(dynamic(args, kwargs)), made)
        calls[:] = made.calls
        return jax.tree.unflatten(structure, made.results), made.values

    return step, calls


def _is_callback(equation: Any) -> bool:
    return "callback" in equation.primitive.name or equation.primitive.name == "debug_print"


def _inner(equation: Any) -> Iterator[Any]:
    """The jaxprs in an equation."""
    for value in equation.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            each = getattr(each, "jaxpr", each)
            if hasattr(each, "eqns"):
                yield each


def _evaluate(closed: Any, arguments: Sequence[Any], made: _Evaluation) -> None:
    """Evaluates a jaxpr; callbacks are recorded instead."""
    known: dict[Any, Any] = dict(zip((*closed.jaxpr.constvars, *closed.jaxpr.invars), (*closed.consts, *arguments),
                                     strict=True))
    used = {id(each) for equation in closed.jaxpr.eqns for each in equation.invars} | set(map(id, closed.jaxpr.outvars))

    def read(each: Any) -> Any:
        return known[each] if isinstance(each, Var) else each.val

    for equation in closed.jaxpr.eqns:
        values = list(map(read, equation.invars))
        if _is_callback(equation):
            _check_removable(equation, any(id(each) in used for each in equation.outvars))
            operands = tuple((each.val,) if not isinstance(each, Var) else made.keep(value)
                             for each, value in zip(equation.invars, values, strict=True))
            made.calls.append(HostCall(equation, operands))
            continue
        with private.as_equation(equation):
            results = _results(equation, values, made)
        known.update(zip(equation.outvars, results, strict=True))
    made.results = list(map(read, closed.jaxpr.outvars))


def _check_removable(equation: Any, used: bool) -> None:
    """Refuses callbacks that cannot run after the step.

    Raises:
      InputError: it is one.
    """
    where = private.line_of(equation) or None
    if used:
        raise InputError("the step uses what a callback to Python returns, and in a pipeline callbacks run after the "
                         "step", location=where, hint="compute it before the step and pass it as an argument")
    if equation.params.get("partitioned"):
        raise InputError("partitioned=True calls Python for each shard, and in a pipeline callbacks get whole values",
                         location=where, hint="leave partitioned=True out")


def _results(equation: Any, values: list[Any], made: _Evaluation) -> Sequence[Any]:
    """The results of an equation; what it holds is evaluated where there are callbacks in it."""
    name, params = equation.primitive.name, equation.params
    if not any(map(calls_host, _inner(equation))):
        results = equation.primitive.bind(*values, **equation.primitive.get_bind_params(params))
        return results if equation.primitive.multiple_results else [results]
    if name in _CALLS and "jaxpr" in params:
        inner = made.inner()
        _evaluate(params["jaxpr"], values, inner)
        made.take(inner.values, *inner.calls)
        return inner.results
    if name == "scan":
        return _scanned(equation, values, made)
    if name == "cond":
        return _branched(params["branches"], values, made)
    raise InputError(f"a callback to Python inside {_NAMES.get(name, name)} cannot run after the step",
                     location=_line(equation), hint="take it out of there: callbacks may be in lax.scan, lax.cond and "
                     "jax.jit, in the loop over micro-batches and after it")


def _line(equation: Any) -> str | None:
    """The line of the first callback in an equation."""
    if _is_callback(equation):
        return private.line_of(equation) or None
    return next((_line(each) for jaxpr in _inner(equation) for each in jaxpr.eqns
                 if _is_callback(each) or any(map(calls_host, _inner(each)))), None)


def _scanned(equation: Any, values: list[Any], made: _Evaluation) -> list[Any]:
    """A loop that returns what its callbacks would be given, iteration by iteration."""
    params, (constants, carried) = equation.params, private.scan_operands(equation)
    inner = made.inner()

    def body(carry: Any, row: Any) -> Any:
        inner.values, inner.calls = [], []
        _evaluate(params["jaxpr"], [*values[:constants], *carry, *row], inner)
        return inner.results[:carried], (inner.results[carried:], inner.values)

    rows = values[constants + carried:]
    last, (stacked, further) = lax.scan(body, values[constants:constants + carried], rows, params["length"],
                                        params["reverse"], params["unroll"])
    order = range(params["length"])
    made.take(further, HostLoop(tuple(reversed(order) if params["reverse"] else order), tuple(inner.calls)))
    return [*last, *stacked]


def _branched(branches: Sequence[Any], values: list[Any], made: _Evaluation) -> list[Any]:
    """A branch that returns what its callbacks would be given: zeros for those of other branches."""
    index = made.keep(values[0])
    kinds = [jax.eval_shape(functools.partial(_one_branch, each), *values[1:])[1] for each in branches]
    calls: list[tuple[Item, ...]] = []

    def branch(number: int, *given: Any) -> Any:
        inner = _Evaluation(made.first + len(made.values) + sum(map(len, kinds[:number])))
        _evaluate(branches[number], given, inner)
        further = [[jnp.zeros(each.shape, each.dtype) for each in kind] for kind in kinds]
        further[number] = inner.values
        calls.append(tuple(inner.calls))
        return inner.results, [each for kind in further for each in kind]

    run = [functools.partial(branch, number) for number in range(len(branches))]
    results, further = lax.switch(values[0], run, *values[1:])
    made.take(further, HostBranch(index, tuple(calls[-len(branches):])))
    return results


def _one_branch(branch: Any, *given: Any) -> Any:
    made = _Evaluation(0)
    _evaluate(branch, given, made)
    return made.results, made.values


# ---- after the step


def calls_here(calls: Sequence[Item], owners: Sequence[frozenset[int]], process: int, first: int,
               seen: frozenset[int] = frozenset()) -> tuple[Item, ...]:
    """The callbacks that a process runs: those whose operands it has.

    Args:
      calls: the callbacks of a step.
      owners: for each further result the processes where the meshes of its parts begin.
      process: this process.
      first: the process that runs callbacks without operands.
      seen: owners of what decides whether these callbacks run.

    Raises:
      UsageError: the operands of a callback are on meshes of several processes.
    """
    kept: list[Item] = []
    for each in calls:
        if isinstance(each, HostLoop):
            kept.append(replace(each, calls=calls_here(each.calls, owners, process, first, seen)))
        elif isinstance(each, HostBranch):
            kept.append(replace(each, branches=tuple(calls_here(branch, owners, process, first,
                                                                seen | owners[each.index])
                                                     for branch in each.branches)))
        else:
            own = seen.union(*(owners[number] for number in each.operands if isinstance(number, int)))
            if len(own) > 1:
                raise UsageError(f"the operands of a callback are on meshes of processes {sorted(own)}",
                                 location=private.line_of(each.equation) or None,
                                 hint="pass it values of one stage, or return them and fetch them")
            kept += [each] if min(own, default=first) == process else []
    return tuple(each for each in kept if isinstance(each, HostCall) or _holds_calls(each))


def _holds_calls(each: HostLoop | HostBranch) -> bool:
    return bool(each.calls) if isinstance(each, HostLoop) else any(each.branches)


def run_host_calls(calls: Sequence[Item], values: Sequence[Any]) -> None:
    """Calls the callbacks of a step with what it computed for them; waits for these values.

    Args:
      calls: the callbacks that run here.
      values: the further results of the step.
    """
    _run(calls, values, (), {})


def _run(calls: Sequence[Item], values: Sequence[Any], at: tuple[int, ...], known: dict[int, np.ndarray]) -> None:
    def here(number: int) -> Any:
        if number not in known:
            known[number] = _on_the_host(values[number])
        return known[number][at]

    for each in calls:
        if isinstance(each, HostLoop):
            for iteration in each.iterations:
                _run(each.calls, values, (*at, iteration), known)
        elif isinstance(each, HostBranch):
            number = min(max(int(here(each.index)), 0), len(each.branches) - 1)
            _run(each.branches[number], values, at, known)
        else:
            equation = each.equation
            given = [here(number) if isinstance(number, int) else number[0] for number in each.operands]
            equation.primitive.bind(*given, **equation.primitive.get_bind_params(equation.params))


def _on_the_host(value: Any) -> np.ndarray:
    """A value as a callback gets it: of a key its data, as in ``jax.jit``."""
    return np.asarray(jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value)
