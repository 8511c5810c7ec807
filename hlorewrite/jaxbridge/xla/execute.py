"""Runs modules on random arguments that fit a signature: what every device holds afterwards, and whether two agree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlorewrite.checks.reference.rounding.bounds import RoundingBounds
from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir import Module, ir
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.rounding import range_problems, rounding_between
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd, main_function
from hlorewrite.jaxbridge.xla.target import Target, parse_target
from hlorewrite.util.tolerances import relative_tolerance

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


# ---- whether two modules compute the same values on the same devices with the same random arguments


@dataclass(frozen=True)
class OutputDifference:
    """How far one output differs.

    Attributes:
      value: name, shape and type of the output.
      abs_error: largest difference on any device.
      rel_error: the same divided by the output's largest magnitude.
      tolerance: the largest ``rel_error`` that counts as equal where there is no bound; 0 means bit for bit.
      nonfinite: elements that are infinite or NaN in both, at the same places.
      equal: whether it is within its bound or tolerance, with NaN and infinities at the same places.
      bound: what rounding explains at most of ``abs_error``; None if no bound is compared.
      reason: why there is no bound.
    """

    value: Value
    abs_error: float
    rel_error: float
    tolerance: float
    nonfinite: int
    equal: bool
    bound: float | None = None
    reason: str = ""

    @property
    def allowed(self) -> str:
        """What is allowed: an absolute bound, or a relative tolerance."""
        return f"{self.tolerance:.3g} relative" if self.bound is None else f"{self.bound:.3g}"


@dataclass(frozen=True)
class Verification:
    """The outputs compared, both executions, and messages about what is wrong on extreme inputs."""

    outputs: tuple[OutputDifference, ...]
    before: Execution
    after: Execution
    positive_inputs: bool
    problems: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether every output is equal within its tolerance, and stays in range where the original does."""
        return not self.problems and all(output.equal for output in self.outputs)


def require_same_signature(before: Module, after: Module) -> None:
    """Raises ``UsageError`` that names the first argument or output in which two modules differ."""
    sides = zip(("argument", "output"), signature(before), signature(after), strict=True)
    for word, old, new in sides:
        if len(old) != len(new):
            raise UsageError(f"{before.name} has {len(old)} {word}s but {after.name} has {len(new)}",
                             hint="compare a module with a rewritten form of itself")
        for position, (a, b) in enumerate(zip(old, new, strict=True)):
            if (a.shape, a.element) != (b.shape, b.element):
                raise UsageError(f"{word} {position} is {a} in {before.name} and {b} in {after.name}",
                                 hint="compare a module with a rewritten form of itself")


def verify(before: Module, after: Module, target: Target, *, seed: int = 0, tolerance: float | None = None,
           positive: bool | None = None) -> Verification:
    """Runs two modules on the same random arguments and compares what every device holds.

    Args:
      before: the original.
      after: the rewritten module; its signature must be the original's.
      target: ``cpu:N`` or ``gpu``.
      seed: the seed of the random arguments.
      tolerance: relative error that counts as equal, for all outputs; by default what rounding explains is compared,
        and an error by dtype where there is no bound.
      positive: draw positive floats; by default standard normals, and positive ones if those give infinities or NaN.

    Returns:
      The comparison.

    Raises:
      UsageError: the signatures differ.
    """
    require_same_signature(before, after)
    first, second = prepared_for_run(before), prepared_for_run(after)
    arguments, _ = signature(first)
    use_positive = bool(positive)
    values = random_arguments(arguments, seed, positive=use_positive)
    old = run_module(first, target, values)
    if positive is None and not _all_finite(old):
        use_positive = True
        values = random_arguments(arguments, seed, positive=True)
        old = run_module(first, target, values)
    new = run_module(second, target, values)
    rounding = None if tolerance is not None else rounding_between(first, second, values, gpu=target.platform == "gpu")
    compared = tuple(compare_output(value, a, b, tolerance, rounding=rounding, position=position)
                     for position, (value, a, b) in enumerate(zip(old.outputs, old.shards, new.shards, strict=True)))
    problems = range_problems(first, second, seed) if all(output.equal for output in compared) else ()
    return Verification(compared, old, new, use_positive, problems)


def _all_finite(made: Execution) -> bool:
    return all(np.isfinite(_wide(shard)).all() for shards in made.shards for shard in shards)


def compare_output(value: Value, before: Sequence[np.ndarray], after: Sequence[np.ndarray],
                   tolerance: float | None = None, *, dtype: np.dtype | None = None,
                   rounding: RoundingBounds | None = None, position: int = 0) -> OutputDifference:
    """Compares one output device by device, so that diverging replicas are found too.

    Args:
      value: what the output is.
      before: what each device holds of it in the original.
      after: the same for the rewritten module.
      tolerance: relative error that counts as equal; by default by dtype, or by a rougher type it is computed in.
      dtype: the dtype of the elements, where ``value`` does not state it.
      rounding: what rounding may change; compared instead of a tolerance where there is a bound.
      position: the position of the output among those of ``rounding``.

    Returns:
      The errors.

    Example:
      >>> value = Value("loss", (2,), "f32", "")
      >>> compare_output(value, [np.float32([1, 2])], [np.float32([1, 2.5])]).rel_error
      0.25
    """
    dtype = dtype or value.dtype
    scale = max((float(np.abs(_finite(a)).max(initial=0.0)) for a in before), default=0.0)
    worst, nonfinite, same_places = 0.0, 0, len(before) == len(after)
    for a, b in zip(before, after, strict=False):
        wide_a, wide_b = _wide(a), _wide(b)
        odd_a, odd_b = ~np.isfinite(wide_a), ~np.isfinite(wide_b)
        nonfinite += int(odd_a.sum())
        same_places &= a.shape == b.shape and bool((odd_a == odd_b).all()) and \
            bool(np.array_equal(wide_a[odd_a], wide_b[odd_b], equal_nan=True))
        if a.shape == b.shape:
            both = ~(odd_a | odd_b)
            worst = max(worst, float(np.abs(wide_a[both] - wide_b[both]).max(initial=0.0)))
    relative = worst / scale if scale else (0.0 if worst == 0 else float("inf"))
    exact = dtype.kind in "biu"
    most, reason = (None, "") if rounding is None else rounding.of_output(position)
    usual = max(relative_tolerance(dtype), 0.0 if rounding is None else rounding.tolerance_of(position))
    allowed = 0.0 if exact else usual if tolerance is None else tolerance
    fits = same_places and (worst <= most if most is not None else worst == 0 if exact else relative <= allowed)
    return OutputDifference(value, worst, relative, tolerance=allowed, nonfinite=nonfinite, equal=fits, bound=most,
                            reason=reason)


def _wide(array: np.ndarray) -> np.ndarray:
    """Values in a type NumPy calculates with: 64-bit integers wrap, so they go to Python-sized floats last."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.longdouble if array.dtype.kind in "iu" else np.float64)


def _finite(array: np.ndarray) -> np.ndarray:
    wide = _wide(array)
    return wide[np.isfinite(wide)]
