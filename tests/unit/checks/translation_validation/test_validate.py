"""Small pairs of modules: what is proved, and what is not, each next to the other."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

from pathlib import Path

import pytest

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.ir.load import parse

ROOT = Path(__file__).resolve().parents[4]
COUNTS = "attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}"
F = "tensor<4xf32>"


def module(body: str, arguments: str = f"%x: {F}, %y: {F}", result: str = F, counts: str = COUNTS) -> str:
    """A module of one function that each device runs."""
    return f"module {counts} {{\nfunc.func @main({arguments}) -> {result} {{\n{body}\n}}\n}}"


def reduction(name: str, operand: str, type_: str = F, op: str = "add", groups: str = "[[0, 1, 2, 3]]",
              attributes: str = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
                                "use_global_device_ids") -> str:
    """An all-reduce."""
    element = type_.removeprefix("tensor<").removesuffix(">").split("x")[-1]
    size = f"{groups.count('[') - 1}x{len(groups.split(']')[0].split(','))}"
    given = f"{attributes}, " if attributes else ""
    return (f'%{name} = "stablehlo.all_reduce"(%{operand}) <{{{given}replica_groups = dense<{groups}> : '
            f"tensor<{size}xi64>}}> ({{\n^bb0(%l: tensor<{element}>, %r: tensor<{element}>):\n"
            f"%s{name} = stablehlo.{op} %l, %r : tensor<{element}>\nstablehlo.return %s{name} : tensor<{element}>\n}}) : "
            f"({type_}) -> {type_}\n")


def text(*lines: str) -> str:
    """Lines that end in the result ``%f``."""
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines) + f"return %f : {F}"


BYTES, WIDE = "tensor<4xi8>", "tensor<4xi32>"
REPLICATED = '%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}, %y: tensor<4xf32>'
CONCAT = f"%c = stablehlo.concatenate %x, %y, dim = 0 : ({F}, {F}) -> tensor<8xf32>"
PART = "tensor<1xf32>"
SCATTER = ('%{0} = "stablehlo.reduce_scatter"(%{1}) <{{scatter_dimension = {2} : i64, channel_handle = #stablehlo.channel_handle<handle = 1, '
           "type = 0>, use_global_device_ids, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}> ({{\n"
           "^bb0(%l: tensor<f32>, %r: tensor<f32>):\n%s{0} = stablehlo.add %l, %r : tensor<f32>\nstablehlo.return %s{0} : tensor<f32>\n"
           f"}}}}) : ({F}) -> {PART}\n")
SQUARE = f"%m = stablehlo.broadcast_in_dim %x, dims = [1] : ({F}) -> tensor<4x4xf32>\n"
OWN_ROWS = SCATTER.replace("scatter_dimension = {2}", "scatter_dimension = 0").replace(
    f": ({F}) -> {PART}", ": (tensor<{2}xf32>) -> tensor<{3}xf32>")
PAIR_ROWS = OWN_ROWS.replace("[[0, 1, 2, 3]]> : tensor<1x4", "[[0, 1], [2, 3]]> : tensor<2x2").replace("{2}", "4x4").replace("{3}", "2x4")
FOUR, OWN = "tensor<4x4xf32>", "tensor<1x4xf32>"
SCATTERED_MOVES = [  # the op, what it is on the whole sum where that differs, types of both, the dimension and shapes of the scatter
    ("slice %x [0:1, 1:3]", "slice %m [0:4, 1:3]", f"({OWN}) -> tensor<1x2xf32>", f"({FOUR}) -> tensor<4x2xf32>", 0, ("4x2", "1x2"),
     "tensor<1x2xf32>"),
    ("transpose %x, dims = [1, 0]", "", f"({OWN}) -> tensor<4x1xf32>", f"({FOUR}) -> {FOUR}", 1, ("4x4", "4x1"), "tensor<4x1xf32>"),
    ("concatenate %x, %x, dim = 1", "", f"({OWN}, {OWN}) -> tensor<1x8xf32>", f"({FOUR}, {FOUR}) -> tensor<4x8xf32>", 0, ("4x8", "1x8"),
     "tensor<1x8xf32>"),
    ("broadcast_in_dim %x, dims = [1, 2]", "", f"({OWN}) -> tensor<2x1x4xf32>", f"({FOUR}) -> tensor<2x4x4xf32>", 1,
     ("2x4x4", "2x1x4"), "tensor<2x1x4xf32>"),
]
PERMUTE = (f'%f = "stablehlo.collective_permute"(%{{}}) <{{{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
           f"source_target_pairs = dense<{{}}> : tensor<{{}}x2xi64>}}}}> : ({F}) -> {F}")

PAIRS: dict[str, tuple[str, str, bool]] = {
    "sums of sums": (
        module(text(reduction("a", "x"), reduction("b", "y"), f"%f = stablehlo.add %a, %b : {F}")),
        module(text(f"%t = stablehlo.add %y, %x : {F}", reduction("f", "t"))), True),
    "sums over other groups": (
        module(text(reduction("a", "x", groups="[[0, 1], [2, 3]]"), reduction("b", "y"), f"%f = stablehlo.add %a, %b : {F}")),
        module(text(f"%t = stablehlo.add %y, %x : {F}", reduction("f", "t"))), False),
    "maxima of maxima": (
        module(text(reduction("a", "x", op="maximum"), reduction("b", "y", op="maximum"), f"%f = stablehlo.maximum %a, %b : {F}")),
        module(text(f"%t = stablehlo.maximum %x, %y : {F}", reduction("f", "t", op="maximum"))), True),
    "a sum of maxima": (
        module(text(reduction("a", "x", op="maximum"), reduction("b", "y", op="maximum"), f"%f = stablehlo.add %a, %b : {F}")),
        module(text(f"%t = stablehlo.add %x, %y : {F}", reduction("f", "t", op="maximum"))), False),
    "members in another order": (
        module(text(reduction("f", "x", groups="[[0, 1], [2, 3]]"))), module(text(reduction("f", "x", groups="[[3, 2], [1, 0]]"))),
        True),
    "two steps are one": (
        module(text(reduction("a", "x", groups="[[0, 1], [2, 3]]"), reduction("f", "a", groups="[[0, 2], [1, 3]]"))),
        module(text(reduction("f", "x"))), True),
    "the same step twice is not one": (
        module(text(reduction("a", "x"), reduction("f", "a"))), module(text(reduction("f", "x"))), False),
    "replicas are not partitions": (
        module(text(reduction("f", "x", groups="[[0, 1]]", attributes="")), counts=(
            "attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}")),
        module(text(reduction("f", "x", groups="[[0, 1], [2, 3]]")), counts=(
            "attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}")), False),
    "replicas as flattened ids": (
        module(text(reduction("f", "x", groups="[[0, 1]]", attributes="")), counts=(
            "attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}")),
        module(text(reduction("f", "x", groups="[[0, 2], [1, 3]]")), counts=(
            "attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}")), True),
    "a narrowing of integers": (
        module(reduction("a", "x", WIDE) + f"%f = stablehlo.convert %a : ({WIDE}) -> {BYTES}\nreturn %f : {BYTES}", f"%x: {WIDE}", BYTES),
        module(f"%a = stablehlo.convert %x : ({WIDE}) -> {BYTES}\n" + reduction("f", "a", BYTES) + f"return %f : {BYTES}", f"%x: {WIDE}",
               BYTES), True),
    "a widening of integers": (
        module(reduction("a", "x", BYTES) + f"%f = stablehlo.convert %a : ({BYTES}) -> {WIDE}\nreturn %f : {WIDE}", f"%x: {BYTES}", WIDE),
        module(f"%a = stablehlo.convert %x : ({BYTES}) -> {WIDE}\n" + reduction("f", "a", WIDE) + f"return %f : {WIDE}", f"%x: {BYTES}",
               WIDE), False),
    "a factor that all devices share": (
        module(text(reduction("a", "y"), f"%f = stablehlo.multiply %a, %x : {F}"), REPLICATED),
        module(text(f"%t = stablehlo.multiply %y, %x : {F}", reduction("f", "t")), REPLICATED), True),
    "a factor that may differ": (
        module(text(reduction("a", "y"), f"%f = stablehlo.multiply %a, %x : {F}")),
        module(text(f"%t = stablehlo.multiply %y, %x : {F}", reduction("f", "t"))), False),
    "a slice of one part of a concatenation": (
        module(text(CONCAT, f"%f = stablehlo.slice %c [4:8] : (tensor<8xf32>) -> {F}")), module(text(f"%f = stablehlo.optimization_barrier %y : {F}")),
        True),
    "a slice over two parts of a concatenation": (
        module(text(CONCAT, f"%f = stablehlo.slice %c [3:7] : (tensor<8xf32>) -> {F}")), module(text(f"%f = stablehlo.optimization_barrier %y : {F}")),
        False),
    "a permute to oneself": (
        module(text(PERMUTE.format("x", "[[0, 0], [1, 1], [2, 2], [3, 3]]", 4))), module(text(f"%f = stablehlo.optimization_barrier %x : {F}")), True),
    "a permute to oneself that leaves one out": (
        module(text(PERMUTE.format("x", "[[0, 0], [1, 1], [2, 2]]", 3))), module(text(f"%f = stablehlo.optimization_barrier %x : {F}")), False),
    "scattered sums of sums": (
        module(SCATTER.format("a", "x", 0) + SCATTER.format("b", "y", 0) + f"%f = stablehlo.add %a, %b : {PART}\nreturn %f : {PART}", result=PART),
        module(f"%t = stablehlo.add %x, %y : {F}\n" + SCATTER.format("f", "t", 0) + f"return %f : {PART}", result=PART), True),
    "a scattered sum times different numbers": (
        module(SCATTER.format("a", "x", 0) + f"%k = stablehlo.constant dense<2.0> : {PART}\n%f = stablehlo.multiply %a, %k : {PART}\nreturn %f : {PART}", result=PART),
        module(f"%k = stablehlo.constant dense<[2.0, 2.0, 2.0, 3.0]> : {F}\n%t = stablehlo.multiply %x, %k : {F}\n" + SCATTER.format("f", "t", 0) + f"return %f : {PART}", result=PART), False),
    "a scattered sum times one number": (
        module(SCATTER.format("a", "x", 0) + f"%k = stablehlo.constant dense<2.0> : {PART}\n%f = stablehlo.multiply %a, %k : {PART}\nreturn %f : {PART}", result=PART),
        module(f"%k = stablehlo.constant dense<2.0> : {F}\n%t = stablehlo.multiply %x, %k : {F}\n" + SCATTER.format("f", "t", 0) + f"return %f : {PART}", result=PART), True),
    **{f"a scattered sum that is moved by {op.split()[0]}": (
        module(f"{SQUARE}{OWN_ROWS.format('p', 'm', '4x4', '1x4')}%r = stablehlo.{op.replace('%x', '%p')} : {part}\nreturn %r : {result}",
               result=result),
        module(f"{SQUARE}%w = stablehlo.{changed or op.replace('%x', '%m')} : {whole}\n"
               + OWN_ROWS.replace("dimension = 0", f"dimension = {dimension}").format('r', 'w', *shapes) + f"return %r : {result}",
               result=result), True)
       for op, changed, part, whole, dimension, shapes, result in SCATTERED_MOVES},
    "sums within hosts that are scattered, and then sums across them": (
        module(f"{SQUARE}{PAIR_ROWS.format('p', 'm')}" + reduction("r", "p", "tensor<2x4xf32>", groups="[[0, 2], [1, 3]]")
               + "%q = stablehlo.negate %r : tensor<2x4xf32>\nreturn %q : tensor<2x4xf32>", result="tensor<2x4xf32>"),
        module(f"{SQUARE}%n = stablehlo.negate %m : tensor<4x4xf32>\n{PAIR_ROWS.format('p', 'n')}"
               + reduction("r", "p", "tensor<2x4xf32>", groups="[[0, 2], [1, 3]]") + "return %r : tensor<2x4xf32>", result="tensor<2x4xf32>"), True),
    "operands of a difference": (
        module(text(f"%f = stablehlo.subtract %x, %y : {F}")), module(text(f"%f = stablehlo.subtract %y, %x : {F}")), False),
    "operands of a sum": (
        module(text(f"%f = stablehlo.add %x, %y : {F}")), module(text(f"%f = stablehlo.add %y, %x : {F}")), True),
    "an argument that is donated": (
        module(text(f"%f = stablehlo.add %x, %y : {F}")),
        module(text(f"%f = stablehlo.add %x, %y : {F}"), f"%x: {F} {{tf.aliasing_output = 0 : i32}}, %y: {F}"), False),
    "more partitions": (
        module(text(f"%f = stablehlo.add %x, %y : {F}")),
        module(text(f"%f = stablehlo.add %x, %y : {F}"), counts=COUNTS.replace("4", "8")), False),
    "a device id where nothing says how many devices there are": (
        module("%f = stablehlo.partition_id : tensor<ui32>\nreturn %f : tensor<ui32>", "", "tensor<ui32>", ""),
        module("%f = stablehlo.constant dense<0> : tensor<ui32>\nreturn %f : tensor<ui32>", "", "tensor<ui32>", ""), False),
    "the device id of one device": (
        module("%f = stablehlo.partition_id : tensor<ui32>\nreturn %f : tensor<ui32>", "", "tensor<ui32>", COUNTS.replace("4", "1")),
        module("%f = stablehlo.constant dense<0> : tensor<ui32>\nreturn %f : tensor<ui32>", "", "tensor<ui32>", COUNTS.replace("4", "1")),
        True),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pair(name: str) -> None:
    """A pair is proved, or unknown with a reason."""
    original, result, proved = PAIRS[name]
    answer = validate(parse(original), parse(result))
    assert (str(answer) == "proved") == proved, answer
    assert str(validate(parse(original), parse(original))) == "proved"


def test_channels_of_sends_count() -> None:
    """A send over another channel is another effect; one that is left out is missed."""
    send = ('%t = stablehlo.create_token : !stablehlo.token\n%u = "stablehlo.send"(%x, %t) <{channel_handle = '
            "#stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : "
            f"({F}, !stablehlo.token) -> !stablehlo.token\n%f = stablehlo.add %x, %y : {F}")
    original = parse(module(text(send)))
    assert str(validate(original, original)) == "proved"
    assert "the order of effects" in str(validate(original, parse(module(text(send.replace("handle = 5", "handle = 6"))))))
    assert "the order of effects" in str(validate(original, parse(module(text(f"%f = stablehlo.add %x, %y : {F}")))))


def test_functions_that_are_only_named_count() -> None:
    """What a custom call or a fragment of a program names is part of it."""
    called = ("module {{\nfunc.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
              "%f = stablehlo.custom_call @body(%x) {{called_computations = [@inner]}} : (tensor<4xf32>) -> tensor<4xf32>\n"
              "return %f : tensor<4xf32>\n}}\nfunc.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
              "%f = stablehlo.{} %x : tensor<4xf32>\nreturn %f : tensor<4xf32>\n}}\n}}")
    original = parse(called.format("tanh"))
    assert str(validate(original, parse(called.format("tanh")))) == "proved"
    assert str(validate(original, parse(called.format("exponential")))).startswith("unknown: output 0 is")


def test_fragments_of_a_program_count() -> None:
    """A program of several meshes in which a fragment computes something else."""
    text = (ROOT / "tests" / "programs" / "two_stages.mlir").read_text("utf-8")
    original = parse(text)
    assert str(validate(original, parse(text))) == "proved"
    assert "stablehlo.subtract" in text
    assert str(validate(original, parse(text.replace("stablehlo.subtract", "stablehlo.add", 1)))).startswith("unknown: ")


def test_reason_names_place_and_ops() -> None:
    """The first difference, what stands there, and where."""
    original, result = (parse(module(text(f"%t = stablehlo.{op} %x : {F}", f"%f = stablehlo.add %t, %y : {F}"))) for op in ("tanh", "exponential"))
    assert str(validate(original, result)) == (
        "unknown: output 0 is stablehlo.exponential where the original has stablehlo.tanh at <stdin>:3:6")
