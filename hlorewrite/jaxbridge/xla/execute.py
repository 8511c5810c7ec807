"""Running modules: random arguments that fit a signature, and what every device holds afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir import Module, ir
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd, main_function
from hlorewrite.jaxbridge.xla.target import Target, parse_target

_DTYPES = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16",
           "complex<f32>": "complex64", "complex<f64>": "complex128", "f8E4M3FN": "float8_e4m3fn",
           "f8E5M2": "float8_e5m2", "f8E4M3B11FNUZ": "float8_e4m3b11fnuz", "f8E4M3FNUZ": "float8_e4m3fnuz",
           "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu", "i4": "int4", "ui4": "uint4"}
_INTEGERS_BELOW = 16


@dataclass(frozen=True)
class Value:
    """One argument or result: its name where JAX gave one, shape, MLIR element type and sharding text."""

    name: str
    shape: tuple[int, ...]
    element: str
    sharding: str

    def __str__(self) -> str:
        return f"{self.element}[{','.join(map(str, self.shape))}]" + (f" {self.sharding}" if self.sharding else "")

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of an element."""
        import ml_dtypes
        name = _DTYPES.get(self.element) or self.element.replace("ui", "uint") if self.element.startswith("u") else \
            _DTYPES.get(self.element) or self.element.replace("i", "int")
        return np.dtype(getattr(ml_dtypes, name, None) or name)


@dataclass(frozen=True)
class Execution:
    """Outputs of one run: for each output its description and what each device holds."""

    outputs: tuple[Value, ...]
    shards: tuple[tuple[np.ndarray, ...], ...]
    compilation: Compilation


def signature(module: Module) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Arguments and results of a module's entry function.

    Args:
      module: the module.

    Returns:
      (arguments, results).

    Raises:
      InputError: one of them is not a tensor of static shape.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> arguments, _ = signature(parse("func.func @main(%a: tensor<4x2xbf16>) { return }"))
      >>> str(arguments[0]), arguments[0].dtype.name
      ('bf16[4,2]', 'bfloat16')
    """
    function = main_function(module)
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return (_values(function, "arg_attrs", type_.inputs, "argument", module.name),
            _values(function, "res_attrs", type_.results, "output", module.name))


def _values(function: ir.Operation, key: str, types: Sequence[ir.Type], word: str, name: str) -> tuple[Value, ...]:
    rows = list(ir.ArrayAttr(function.attributes[key])) if key in function.attributes else [None] * len(types)
    out = []
    for position, (type_, row) in enumerate(zip(types, rows, strict=True)):
        if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
            raise InputError(f"{word} {position} is {type_}, which cannot be run", location=name,
                             hint="use a module of tensors of static shape")
        facts = ir.DictAttr(row) if row is not None else {}
        label = ir.StringAttr(facts["jax.result_info"]).value if "jax.result_info" in facts else f"{word} {position}"
        sharding = next((str(facts[k]) for k in ("sdy.sharding", "mhlo.sharding") if k in facts), "")
        out.append(Value(label, tuple(type_.shape), str(type_.element_type), sharding))
    return tuple(out)


def random_arguments(arguments: Sequence[Value], seed: int = 0, *, positive: bool = False) -> list[np.ndarray]:
    """Arguments for one run.

    Args:
      arguments: what the module takes.
      seed: the same seed gives the same arguments.
      positive: floats in (0, 1) instead of a standard normal; for programs that take roots or logarithms.

    Returns:
      Global arrays. Signed integers are below 16, so that they can serve as indices; unsigned ones of 32 bits and more
      use their whole range, as PRNG keys do.
    """
    generator = np.random.default_rng(seed)
    return [_random(generator, value, positive) for value in arguments]


def _random(generator: np.random.Generator, value: Value, positive: bool) -> np.ndarray:
    dtype, shape = value.dtype, value.shape
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u" and dtype.itemsize >= 4:
        return generator.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    if dtype.kind in "iu" or value.element in ("i4", "ui4"):
        return generator.integers(0, 4 if "4" in value.element[-2:] and dtype.itemsize == 1 else _INTEGERS_BELOW,
                                  shape).astype(dtype)
    def draw() -> np.ndarray:
        return generator.uniform(0.01, 1.0, shape) if positive else generator.standard_normal(shape)
    return np.asarray(draw() + 1j * draw() if dtype.kind == "c" else draw()).astype(dtype)


def run_target(module: Module, devices: int | None, where: str) -> Target:
    """The target to run a module on.

    Args:
      module: the module.
      devices: how many devices the user asked for, if they did.
      where: ``cpu`` or ``gpu``.

    Raises:
      UsageError: the module is for another number of devices.
    """
    wanted = for_spmd(module).devices
    if devices is not None and devices != wanted:
        raise UsageError(f"--devices {devices} does not fit the module, which is for {wanted} devices",
                         location=module.name, hint=f"leave --devices out, or export the step for {devices} devices")
    return parse_target("gpu") if where == "gpu" else parse_target(f"cpu:{wanted}")


def run_module(module: Module, target: Target, arguments: Sequence[np.ndarray], *, protect: bool = False) -> Execution:
    """Compiles and runs a module once.

    Args:
      module: the module; it is not changed.
      target: ``cpu:N`` or ``gpu``.
      arguments: global arrays, as `signature` of the module prepared for SPMD asks for.
      protect: see `compile_for`.

    Returns:
      Each device's part of each output.
    """
    from hlorewrite.jaxbridge.xla import private

    prepared = prepared_for_run(module)
    made = compile_for(prepared, target, load=True, protect=protect)
    _, outputs = signature(prepared)
    shards = private.execute(made.executable, arguments)
    return Execution(outputs, tuple(tuple(parts) for parts in shards), replace(made, executable=None))


def prepared_for_run(module: Module) -> Module:
    """The module XLA runs: itself, or a per-device module put over all devices."""
    return for_spmd(module).module
