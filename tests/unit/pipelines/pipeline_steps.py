"""Steps with stage marks, split and run without a driver: fragment after fragment, on one CPU device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla import private
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.adapter.sequential import sequential
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, Transfer, read_program
from hlorewrite.pipelines.passes.split_stages import SplitStages


def lowered(step: Callable[..., Any], args: Sequence[Any], *, specs: Sequence[Any] = (), sizes: tuple[int, ...] = (2,),
            locations: bool = True) -> Module:
    """A step over a mesh that does not exist, first argument donated."""
    mesh = AbstractMesh(sizes, ("data", "tensor")[:len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))
    laid = [jax.tree.map(lambda x, spec=spec: jax.ShapeDtypeStruct(
        jnp.shape(x), jnp.result_type(x), sharding=NamedSharding(mesh, spec)), arg)
        for arg, spec in zip(args, specs or [P()] * len(args), strict=True)]
    text = jax.jit(step, donate_argnums=0, keep_unused=True).trace(*laid).lower(
        lowering_platforms=("cpu",)).as_text(debug_info=locations)
    return parse(text, name="step")


def split(step: Callable[..., Any], args: Sequence[Any], meshes: str = "(2),(2)", schedule: str = "1f1b", *,
          specs: Sequence[Any] = (), sizes: tuple[int, ...] = (2,), locations: bool = True, **options: Any) -> Module:
    """A step as a program."""
    module = lowered(step, args, specs=specs, sizes=sizes, locations=locations)
    run_passes(module, [SplitStages(meshes=meshes, schedule=schedule, **options)], PassContext())
    return module


def run_on_one_device(program: Module, values: Sequence[Any]) -> list[np.ndarray]:
    """The results of a program, its fragments one after the other."""
    module = sequential(program)
    main = next(op.operation for op in module.mlir.body.operations if op.operation.name == "func.func"
                and ir.StringAttr(op.operation.attributes["sym_name"]).value == "main")
    type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    options = private.compile_options(1, shardy=False, outputs=[False] * len(type_.results),
                                      inputs=[False] * len(values), overrides={})
    executable = private.compile_module(private.client_devices(_client()), module.mlir, options, load=True)
    return [each[0] for each in private.execute(executable, [np.asarray(value) for value in values])]


@functools.cache
def _client() -> Any:
    return private.cpu_client(1)


def difference(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    """The largest difference of any result, relative to the largest number of that result."""
    worst = 0.0
    for want, got in zip(expected, actual, strict=True):
        want, got = np.asarray(want), np.asarray(got)
        assert want.shape == got.shape and want.dtype == got.dtype
        if want.size:
            wide = want.astype(np.float64)
            worst = max(worst, float(np.max(np.abs(wide - got.astype(np.float64))) / (np.max(np.abs(wide)) + 1e-30)))
    return worst


def check_same(step: Callable[..., Any], args: Sequence[Any], *splitting: Any, tolerance: float = 1e-5,
               **options: Any) -> Program:
    """Splits a step, runs both, compares every result; returns the program."""
    module = split(step, args, *splitting, **options)
    expected = jax.tree.leaves(jax.jit(step)(*args))
    actual = run_on_one_device(module, jax.tree.leaves(args))
    assert difference(expected, actual) <= tolerance
    return read_program(module)


def calls(program: Program, task: str = "") -> list[FragmentCall]:
    """The fragment calls of a program, of one task if named."""
    return [step for step in program.steps if isinstance(step, FragmentCall) and task in ("", step.task)]


def sent(program: Program) -> list[tuple[str, str, tuple[int, ...]]]:
    """(from, to, shape) of the transfers inside the loop."""
    return [(program.types[step.operand].mesh, program.types[step.result].mesh, program.types[step.operand].shape)
            for step in program.body if isinstance(step, Transfer)]


def sent_outside(program: Program) -> list[tuple[str, str, tuple[int, ...]]]:
    """The same around the loop."""
    return [(program.types[step.operand].mesh, program.types[step.result].mesh, program.types[step.operand].shape)
            for step in (*program.before, *program.after) if isinstance(step, Transfer)]


# ---- an MLP of any number of stages


def weights(stages: int, width: int = 8) -> list[jax.Array]:
    """One matrix a stage."""
    return [jax.random.normal(jax.random.key(i), (width, width)) * 0.5 for i in range(stages)]


def batch(microbatches: int = 4, rows: int = 4, width: int = 8) -> tuple[jax.Array, jax.Array]:
    """Inputs and targets, shape [m, rows, width]."""
    return (jax.random.normal(jax.random.key(100), (microbatches, rows, width)),
            jax.random.normal(jax.random.key(101), (microbatches, rows, width)))


def mlp_loss(params: Sequence[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean square error of tanh layers, a stage each."""
    for i, w in enumerate(params):
        x = jnp.tanh(hlorewrite.stage(x, i) @ w)
    return jnp.mean((x - y) ** 2)


def train_step(loss: Callable[..., Any], update: Callable[[Any, Any], Any] | None = None) -> Callable[..., Any]:
    """(params, xs, ys) -> (params, mean loss): gradients summed in a scan over micro-batches."""
    def step(params: Any, *parts: Any) -> Any:
        count = jax.tree.leaves(parts)[0].shape[0]

        def body(total: Any, part: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, *part)), None

        zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        (value, grads), _ = lax.scan(body, zeros, parts)
        grads = jax.tree.map(lambda g: g / count, grads)
        return (update or _descend)(params, grads), value / count

    return step


def _descend(params: Any, grads: Any) -> Any:
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
