"""Kinds of programs, manual computations, dtypes, comparison, the check before and after."""

from __future__ import annotations

import subprocess

import ml_dtypes
import numpy as np
import pytest

from hlorewrite.checks.reference import execute, prepare
from hlorewrite.checks.reference.check import Comparison, check, compare, error_of
from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import Outcome, entries
from hlorewrite.checks.reference.worker import check_in_subprocess
from hlorewrite.errors import CannotExecute, ValuesDiffer
from hlorewrite.ir.load import parse
from hlorewrite.util.tolerances import relative_tolerance

MANUAL = """
sdy.mesh @mesh = <["x"=2, "y"=3]DEVICES>
func.func @main(%a: tensor<4x6xf32>, %b: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<12xf32>) {
  %0:2 = sdy.manual_computation(%a, %b)
      in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y", "x"}]>]
      out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{"x", "y"}]>] manual_axes={"x", "y"}
      (%u: tensor<2x2xf32>, %v: tensor<1xf32>) {
    %g = "stablehlo.all_gather"(%u) <{all_gather_dim = 0 : i64, replica_groups = dense<GROUPS> : tensor<3x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}>
      : (tensor<2x2xf32>) -> tensor<4x2xf32>
    %i = stablehlo.partition_id : tensor<ui32>
    %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
    %r = stablehlo.reshape %f : (tensor<f32>) -> tensor<1xf32>
    %w = stablehlo.concatenate %v, %r, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    sdy.return %g, %w : tensor<4x2xf32>, tensor<2xf32>
  } : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<12xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<12xf32>
}
"""
# The gathers along x of the mesh, in the order of its coordinates.
IN_ORDER = MANUAL.replace("DEVICES", "").replace("GROUPS", "[[0, 3], [1, 4], [2, 5]]")
SHUFFLED = MANUAL.replace("DEVICES", ", device_ids=[5, 4, 3, 2, 1, 0]").replace("GROUPS", "[[5, 2], [4, 1], [3, 0]]")


@pytest.mark.parametrize(("text", "ids"), [(IN_ORDER, [0, 1, 2, 3, 4, 5]), (SHUFFLED, [5, 4, 3, 2, 1, 0])])
def test_manual_computations(text: str, ids: list[int]) -> None:
    """Inputs are cut and outputs put together by the mesh, devices numbered as it says."""
    program = prepare(parse(text))
    assert (program.kind, program.processes, program.devices) == ("global", 1, 6)
    a, b = np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(6, dtype=np.float32)
    outcome = program.run([[a, b]])
    assert not outcome.diverged and not outcome.replicas_differ
    np.testing.assert_array_equal(outcome.outputs[0][0], a)  # gathered along x, cut along y: a again
    # Place (x, y) holds part 2y + x of b, and its device id.
    parts = [[b[2 * y + x], ids[3 * x + y]] for x in range(2) for y in range(3)]
    np.testing.assert_array_equal(outcome.outputs[0][1], np.ravel(parts))


def test_what_a_device_does_on_its_own_inputs() -> None:
    """The body alone, on shards."""
    module = parse(IN_ORDER)
    program = prepare(module, per_device=True)
    assert (program.kind, program.processes) == ("per-device", 6)
    rows = execute(module, [[np.full((2, 2), d, np.float32), np.float32([d])] for d in range(6)])
    np.testing.assert_array_equal(rows[4][0], np.repeat(np.float32([1, 4]), 4).reshape(4, 2))
    np.testing.assert_array_equal(rows[4][1], [4, 4])


def test_replicas_that_differ_are_told() -> None:
    """An output that should be the same on all devices, and holds the device's own number."""
    text = IN_ORDER.replace('out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{"x", "y"}]>]',
                            'out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{}]>]').replace("tensor<12xf32>",
                                                                                           "tensor<2xf32>")
    outcome = prepare(parse(text)).run([[np.ones((4, 6), np.float32), np.ones(6, np.float32)]])
    assert outcome.replicas_differ


def test_along_automatic_axes_values_are_whole() -> None:
    """A manual computation over one of two axes runs on all devices; ids of devices count along both."""
    sharding = '[<@mesh, [{"x", ?}]>]'
    text = ('sdy.mesh @mesh = <["x"=2, "y"=3]>\nfunc.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n'
            f"  %0 = sdy.manual_computation(%a) in_shardings={sharding} out_shardings={sharding}"
            ' manual_axes={"x"} (%u: tensor<2xf32>) {\n'
            '    %s = "stablehlo.all_reduce"(%u) <{replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>,'
            " channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({\n"
            "      ^bb0(%l: tensor<f32>, %q: tensor<f32>):\n        %t = stablehlo.add %l, %q : tensor<f32>\n"
            "        stablehlo.return %t : tensor<f32>\n    }) : (tensor<2xf32>) -> tensor<2xf32>\n"
            "    sdy.return %s : tensor<2xf32> } : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  return %0 : tensor<4xf32>\n}")
    outcome = prepare(parse(text)).run([[np.float32([1, 2, 10, 20])]])
    np.testing.assert_array_equal(outcome.outputs[0][0], [11, 22, 11, 22])


NESTED = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%u: tensor<2xf32>) {
    %1 = sdy.manual_computation(%u) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>]
        manual_axes={"y"} (%v: tensor<1xf32>) {
      %s = "stablehlo.all_reduce"(%v) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%l: tensor<f32>, %q: tensor<f32>):
          %t = stablehlo.add %l, %q : tensor<f32>
          stablehlo.return %t : tensor<f32>
      }) : (tensor<1xf32>) -> tensor<1xf32>
      %w = stablehlo.multiply %s, %v : tensor<1xf32>
      sdy.return %w : tensor<1xf32>
    } : (tensor<2xf32>) -> tensor<2xf32>
    sdy.return %1 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_a_manual_computation_inside_another() -> None:
    """Each device holds its part along both axes; the parts come together axis by axis."""
    outcome = prepare(parse(NESTED)).run([[np.float32([1, 2, 10, 20])]])
    np.testing.assert_array_equal(outcome.outputs[0][0], [3, 6, 300, 600])


def test_manual_computations_around_global_code() -> None:
    """Ops outside run once; a manual computation inside a loop of the global program too."""
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %c0, %v = %a) : tensor<i32>, tensor<4xf32>
      cond {
        %n = stablehlo.constant dense<3> : tensor<i32>
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %0 = sdy.manual_computation(%v) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x"} (%u: tensor<2xf32>) {
          %s = "stablehlo.all_reduce"(%u) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
            channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
            ^bb0(%l: tensor<f32>, %q: tensor<f32>):
              %t = stablehlo.add %l, %q : tensor<f32>
              stablehlo.return %t : tensor<f32>
          }) : (tensor<2xf32>) -> tensor<2xf32>
          sdy.return %s : tensor<2xf32>
        } : (tensor<4xf32>) -> tensor<4xf32>
        %1 = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %1 : tensor<i32>
        stablehlo.return %j, %0 : tensor<i32>, tensor<4xf32>
      }
      return %r#1 : tensor<4xf32>
    }"""
    outcome = prepare(parse(text)).run([[np.float32([1, 2, 3, 4])]])
    np.testing.assert_array_equal(outcome.outputs[0][0], [16, 24, 16, 24])


def test_programs_without_collectives_are_global() -> None:
    """Whatever the module says about partitions: XLA has not cut it yet."""
    module = parse("module attributes {mhlo.num_partitions = 8 : i32} {"
                   "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> } }")
    assert (prepare(module).kind, prepare(module).processes) == ("global", 1)


def test_entries() -> None:
    """main, or every public function with a body."""
    text = "func.func @a() { return }\nfunc.func @b() { return }\nfunc.func private @c() { return }\n"
    assert entries(parse(text)) == ["a", "b"]
    assert entries(parse(text + "func.func @main() { return }")) == ["main"]
    with pytest.raises(CannotExecute, match="several public functions"):
        prepare(parse(text))
    with pytest.raises(CannotExecute, match='contains no function @aa'):
        prepare(parse(text), "aa")


KINDS = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
         "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "i1": np.bool_, "i4": ml_dtypes.int4,
         "ui4": ml_dtypes.uint4, "i8": np.int8, "ui8": np.uint8, "i32": np.int32, "ui32": np.uint32, "i64": np.int64,
         "ui64": np.uint64, "complex<f32>": np.complex64, "complex<f64>": np.complex128}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1)])
def test_every_type_goes_in_and_out(kind: str, shape: tuple[int, ...]) -> None:
    """Bit for bit."""
    tensor = f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"
    program = prepare(parse(f"func.func @main(%x: {tensor}) -> {tensor} {{ return %x : {tensor} }}"))
    value = random_inputs(program, 3)[0][0]
    assert value.dtype == np.dtype(KINDS[kind]) and value.shape == shape
    actual = program.run([[value]]).outputs[0][0]
    assert actual.dtype == value.dtype and actual.shape == shape and actual.tobytes() == value.tobytes()


def test_inputs_must_fit() -> None:
    """Number, shape, dtype."""
    program = prepare(parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"))
    with pytest.raises(CannotExecute, match="1 inputs for each of 1 processes"):
        program.run([])
    with pytest.raises(CannotExecute, match=r"shape \(3,\)"):
        program.run([[np.zeros(3, np.float32)]])
    with pytest.raises(CannotExecute, match="float64"):
        program.run([[np.zeros(2)]])


def test_ops_the_interpreter_lacks_are_refused() -> None:
    """It would end the process."""
    for op in ("%y = stablehlo.cholesky %x : tensor<2x2xf32>",
               "%y = chlo.lgamma %x : tensor<2x2xf32> -> tensor<2x2xf32>"):
        with pytest.raises(CannotExecute, match=r"cannot run (stablehlo\.cholesky|chlo\.lgamma)"):
            prepare(parse(f"func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {{ {op} "
                          "return %y : tensor<2x2xf32> }"))


def test_chlo_ops_of_train_steps() -> None:
    """Squares exactly, the error function of GELU to single precision."""
    import math
    text = ("func.func @main(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {\n"
            "  %y = chlo.erf %x : tensor<9xf32> -> tensor<9xf32>\n"
            "  %z = chlo.square %x : tensor<9xf32> -> tensor<9xf32>\n"
            "  return %y, %z : tensor<9xf32>, tensor<9xf32>\n}")
    x = np.linspace(-4, 4, 9, dtype=np.float32)
    actual = prepare(parse(text)).run([[x]]).outputs[0]
    np.testing.assert_allclose(actual[0], [math.erf(v) for v in x], atol=3e-7)
    np.testing.assert_array_equal(actual[1], x * x)


@pytest.mark.parametrize(("a", "b", "absolute", "relative"), [
    ([1.0, 2.0], [1.0, 2.5], 0.5, 0.25),
    ([0.0], [1e-7], 1e-7, 1e-7),
    ([np.nan, np.inf], [np.nan, np.inf], 0, 0),
    ([np.inf], [-np.inf], np.inf, np.inf),
    ([1.0], [np.nan], np.inf, np.inf),
    ([], [], 0, 0),
])
def test_errors(a: list[float], b: list[float], absolute: float, relative: float) -> None:
    """Relative to the largest number; what is not finite must be where it was."""
    errors = error_of(np.float64(a), np.float64(b))
    np.testing.assert_allclose(errors, (absolute, relative))


def test_comparison_by_type() -> None:
    """Integers exactly, narrow floats loosely; a tolerance of the user's does not loosen integers."""
    def outcome(value: np.ndarray, **flags: bool) -> Outcome:
        return Outcome(((value,),), flags.get("diverged", False), flags.get("replicas", False))

    one, other = np.float32([1, 2]), np.float32([1, 2 + 1e-4])
    assert not compare(outcome(one), outcome(other)).equal
    assert compare(outcome(one), outcome(other), tolerance=1e-3).equal
    assert not compare(outcome(np.int32([1])), outcome(np.int32([2])), tolerance=10.0).equal
    narrow, near = (np.float32(v).astype(ml_dtypes.bfloat16) for v in ([1, 2], [1, 2.03]))
    assert compare(outcome(narrow), outcome(near)).equal and not np.array_equal(narrow, near)
    assert relative_tolerance(np.dtype(ml_dtypes.float8_e4m3fn)) > relative_tolerance(np.dtype(np.float16))
    assert "wait for each other" in compare(outcome(one), outcome(one, diverged=True)).problems[0]
    assert "replicas" in compare(outcome(one), outcome(one, replicas=True)).problems[0]
    assert compare(outcome(one, replicas=True), outcome(one, replicas=True)).equal
    report = compare(outcome(one), outcome(other), "main")
    assert Comparison.from_json(report.to_json()) == report
    with pytest.raises(ValuesDiffer, match="output @main #0 differs") as caught:
        report.raise_if_different("a.mlir")
    assert caught.value.exit_code == 3


ADDS = ("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{ %y = stablehlo.{} %x, %x : tensor<2xf32> "
        "return %y : tensor<2xf32> }}")


def test_check_in_a_process_of_its_own() -> None:
    """Equal, different, refused: three answers."""
    add, multiply = parse(ADDS.format("add")), parse(ADDS.format("multiply"))
    assert check_in_subprocess(add, add).equal
    assert not check_in_subprocess(add, multiply).equal
    strange = parse("func.func @main() { stablehlo.custom_call @x() : () -> () return }", name="s.mlir")
    with pytest.raises(CannotExecute, match=r"cannot run stablehlo\.custom_call"):
        check_in_subprocess(strange, strange)


def test_a_crash_of_the_interpreter_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is one that never ends."""
    def crash(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, -6, "", "noise\nLLVM ERROR: Unsupported op\n")

    def hang(command: list[str], **options: object) -> None:
        raise subprocess.TimeoutExpired(command, 600)

    add = parse(ADDS.format("add"))
    monkeypatch.setattr(subprocess, "run", crash)
    with pytest.raises(CannotExecute, match=r"crashed .LLVM ERROR: Unsupported op."):
        check_in_subprocess(add, add)
    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(CannotExecute, match="takes longer than 600 s"):
        check_in_subprocess(add, add)


def test_another_signature_is_a_problem() -> None:
    """Not compared, but reported."""
    other = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"
    assert "another signature" in check(parse(ADDS.format("add")), parse(other)).problems[0]


def test_the_last_collective_may_go() -> None:
    """What is left still runs on as many devices as before, each with its own inputs."""
    reduce = ('%y = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 0], [1, 1], [2, 2]]> : '
              "tensor<3x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>")
    face = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {"
    before = parse(f"{face} {reduce} return %y : tensor<2xf32> }}")
    after = parse(f"{face} return %x : tensor<2xf32> }}")
    assert prepare(after, like=prepare(before)).processes == 3
    assert check(before, after).equal


def test_inputs_come_from_the_seed() -> None:
    """The same again, others for another seed, others on each device."""
    text = IN_ORDER
    program = prepare(parse(text), per_device=True)
    one, again, other = random_inputs(program, 0), random_inputs(program, 0), random_inputs(program, 1)
    assert all(np.array_equal(a, b) for x, y in zip(one, again, strict=True) for a, b in zip(x, y, strict=True))
    assert not np.array_equal(one[0][0], other[0][0]) and not np.array_equal(one[0][0], one[1][0])
