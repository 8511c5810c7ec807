"""Slices, updates, concatenations and scatters of rearranged tensors: proved where they are those of the tensor itself,
and never where the interpreter finds other values."""

# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.refute import refute
from hlorewrite.checks.translation_validation.equivalence import Certainty, prove
from hlorewrite.ir import Module
from hlorewrite.ir.load import parse

PARTS = "hlorewrite.checks.value_graph.views.indexed"


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def turned(name: str, of: str, shape: Sequence[int], order: Sequence[int]) -> str:
    """A line that transposes."""
    return (f"%{name} = stablehlo.transpose %{of}, dims = {list(order)} : ({tensor(shape)}) -> "
            f"{tensor([shape[d] for d in order])}")


def inverse(order: Sequence[int]) -> list[int]:
    """The transposition that undoes another one."""
    return [order.index(d) for d in range(len(order))]


def updated(name: str, of: str, shape: Sequence[int], update: str, sizes: Sequence[int], starts: Sequence[str]) -> str:
    """A line that updates a part."""
    types = ", ".join([tensor(shape), tensor(sizes), *["tensor<i32>"] * len(starts)])
    return (f"%{name} = stablehlo.dynamic_update_slice %{of}, %{update}, {', '.join(f'%{s}' for s in starts)} : "
            f"({types}) -> {tensor(shape)}")


def sliced(name: str, of: str, shape: Sequence[int], sizes: Sequence[int], starts: Sequence[str]) -> str:
    """A line that reads a part."""
    types = ", ".join([tensor(shape), *["tensor<i32>"] * len(starts)])
    return (f"%{name} = stablehlo.dynamic_slice %{of}, {', '.join(f'%{s}' for s in starts)}, sizes = {list(sizes)} : "
            f"({types}) -> {tensor(sizes)}")


def module(arguments: dict[str, str], lines: Sequence[str], result: str, type_: str) -> Module:
    """A module of one function."""
    given = ", ".join(f"%{name}: {each}" for name, each in arguments.items())
    return parse(f"func.func @main({given}) -> {type_} {{\n" + "\n".join(lines) + f"\nreturn %{result} : {type_}\n}}")


def parts(seed: int) -> tuple[Module, Module, Module]:
    """An update and a slice of a tensor, of its transpose, and of a wrongly transposed one."""
    draw = random.Random(seed)
    shape = [draw.randint(2, 4) for _ in range(draw.randint(2, 4))]
    sizes = [draw.choice((n, 1)) for n in shape]
    order = draw.sample(range(len(shape)), len(shape))
    starts = [f"i{d}" for d in range(len(shape))]
    arguments = {"x": tensor(shape), "u": tensor(sizes), **dict.fromkeys(starts, "tensor<i32>")}
    to = [shape[d] for d in order]
    plain = [updated("a", "x", shape, "u", sizes, starts), sliced("b", "a", shape, sizes, starts[::-1]),
             updated("r", "a", shape, "b", sizes, starts)]

    def moved(starts: Sequence[str]) -> list[str]:
        small, by = [sizes[d] for d in order], [starts[d] for d in order]
        lines = [turned("t", "x", shape, order), turned("v", "u", sizes, order), updated("a", "t", to, "v", small, by),
                 sliced("b", "a", to, small, [starts[::-1][d] for d in order]), updated("c", "a", to, "b", small, by)]
        return [*lines, turned("r", "c", to, inverse(order))]

    wrong = [*starts[1:], starts[0]]
    return tuple(module(arguments, lines, "r", tensor(shape)) for lines in (plain, moved(starts), moved(wrong)))  # type: ignore[return-value]


def joins(seed: int) -> tuple[Module, Module, Module]:
    """A concatenation of three tensors, one of their transposes, and one of two in the wrong order."""
    draw = random.Random(seed)
    shape = [draw.randint(2, 4) for _ in range(draw.randint(2, 4))]
    order, along = draw.sample(range(len(shape)), len(shape)), draw.randrange(len(shape))
    whole = [n * (3 if d == along else 1) for d, n in enumerate(shape)]
    arguments = dict.fromkeys("xyz", tensor(shape))

    def joined(name: str, of: Sequence[str], shape: Sequence[int], along: int) -> str:
        long = [n * (len(of) if d == along else 1) for d, n in enumerate(shape)]
        return (f"%{name} = stablehlo.concatenate {', '.join(f'%{each}' for each in of)}, dim = {along} : "
                f"({', '.join([tensor(shape)] * len(of))}) -> {tensor(long)}")

    def moved(of: Sequence[str]) -> list[str]:
        to = [shape[d] for d in order]
        return [*(turned(f"{each}t", each, shape, order) for each in "xyz"),
                joined("c", [f"{each}t" for each in of], to, order.index(along)),
                turned("r", "c", [whole[d] for d in order], inverse(order))]

    return tuple(module(arguments, lines, "r", tensor(whole))  # type: ignore[return-value]
                 for lines in ([joined("r", "xyz", shape, along)], moved("xyz"), moved("xzy")))


@pytest.mark.parametrize("made", [parts, joins])
@pytest.mark.parametrize("seed", range(24))
def test_a_rearranged_tensor_has_the_same_parts(made: object, seed: int):
    plain, moved, wrong = made(seed)  # type: ignore[operator]
    assert prove(plain, moved).verdict is Certainty.PROVED
    if prove(plain, wrong).verdict is Certainty.PROVED:
        assert refute(plain, wrong).example is None


def test_a_start_within_merged_dimensions_is_none_of_the_tensor():
    """``update(reshape(x), u, i)`` with i within the rows of x: clamped at the end of all, not of a row."""
    arguments = {"x": tensor((3, 4)), "u": tensor((2,)), "i": "tensor<i32>", "z": "tensor<i32>"}
    flat = ["%f = stablehlo.reshape %x : (tensor<3x4xf32>) -> tensor<12xf32>", updated("a", "f", (12,), "u", (2,), ["i"]),
            "%r = stablehlo.reshape %a : (tensor<12xf32>) -> tensor<3x4xf32>"]
    rows = ["%v = stablehlo.reshape %u : (tensor<2xf32>) -> tensor<1x2xf32>",
            updated("r", "x", (3, 4), "v", (1, 2), ["z", "i"])]
    pair = [module(arguments, lines, "r", tensor((3, 4))) for lines in (flat, rows)]
    assert prove(*pair).verdict is Certainty.UNKNOWN
    assert refute(*pair).example is not None


def test_a_start_of_a_whole_dimension_counts_as_zero():
    arguments = {"x": tensor((3, 4)), "i": "tensor<i32>", "z": "tensor<i32>"}
    pair = [module(arguments, ["%o = stablehlo.constant dense<0> : tensor<i32>",
                               sliced("r", "x", (3, 4), (1, 4), ["i", last])], "r", tensor((1, 4))) for last in "zo"]
    assert prove(*pair).verdict is Certainty.PROVED


def test_a_reversed_or_repeated_tensor_has_parts_of_its_own():
    arguments = {"x": tensor((4,)), "i": "tensor<i32>"}
    reversed_ = ["%t = stablehlo.reverse %x, dims = [0] : tensor<4xf32>", sliced("r", "t", (4,), (2,), ["i"])]
    plain = [sliced("t", "x", (4,), (2,), ["i"]), "%r = stablehlo.reverse %t, dims = [0] : tensor<2xf32>"]
    pair = [module(arguments, lines, "r", tensor((2,))) for lines in (reversed_, plain)]
    assert prove(*pair).verdict is Certainty.UNKNOWN
    assert refute(*pair).example is not None


ADD, MAX = ("({ ^bb0(%p: tensor<E>, %q: tensor<E>): %s = stablehlo.OP %p, %q : tensor<E> "
            "stablehlo.return %s : tensor<E> })".replace("OP", op) for op in ("add", "maximum"))
SCATTER = ('%NAME = "stablehlo.scatter"(%OF, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = '
           "[1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> COMBINE : "
           "(tensor<8x4xE>, tensor<3x1xi32>, tensor<3x4xE>) -> tensor<8x4xE>")


@pytest.mark.parametrize(("combine", "element", "zero", "proved"), [
    (ADD, "f32", "0.0", True), (ADD, "i32", "0", True), (ADD, "f32", "1.0", False), (MAX, "f32", "0.0", False)])
def test_a_scatter_that_adds_is_a_sum(combine: str, element: str, zero: str, proved: bool):
    def line(name: str, of: str) -> str:
        scatter = SCATTER.replace("COMBINE", combine).replace("NAME", name).replace("OF", of)
        return scatter.replace("xE>", f"x{element}>").replace("<E>", f"<{element}>")

    arguments = {"x": tensor((8, 4), element), "i": tensor((3, 1), "i32"), "u": tensor((3, 4), element)}
    into = module(arguments, [line("r", "x")], "r", tensor((8, 4), element))
    apart = module(arguments, [f"%z = stablehlo.constant dense<{zero}> : {tensor((8, 4), element)}", line("s", "z"),
                               f"%r = stablehlo.add %x, %s : {tensor((8, 4), element)}"], "r", tensor((8, 4), element))
    assert (prove(into, apart).verdict is Certainty.PROVED) is proved
    assert proved or refute(into, apart).example is not None


def test_shapes_are_counted_in_elements():
    """Merged and split dimensions around what is updated are those of the tensor."""
    shape, sizes = (3, 2, 4, 5), (1, 2, 4, 5)
    arguments = {"x": tensor(shape), "u": tensor(sizes), "i": "tensor<i32>", "z": "tensor<i32>"}
    plain = [updated("r", "x", shape, "u", sizes, ["i", "z", "z", "z"])]
    flat = [f"%f = stablehlo.reshape %x : ({tensor(shape)}) -> {tensor((3, prod(shape[1:])))}",
            f"%v = stablehlo.reshape %u : ({tensor(sizes)}) -> {tensor((1, prod(shape[1:])))}",
            updated("a", "f", (3, prod(shape[1:])), "v", (1, prod(shape[1:])), ["i", "z"]),
            f"%r = stablehlo.reshape %a : ({tensor((3, prod(shape[1:])))}) -> {tensor(shape)}"]
    pair = [module(arguments, lines, "r", tensor(shape)) for lines in (plain, flat)]
    assert prove(*pair).verdict is Certainty.PROVED


OWN = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %id = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %i = stablehlo.multiply %n, %two : tensor<i32>
    BODY
    return %r : tensor<2xf32>
  }
}"""
REDUCE = ('"stablehlo.all_reduce"(%OF) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = '
          "dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): "
          "%s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32> }) : (TYPE) -> TYPE")
SLICE_OF_SUM = (f"%a = {REDUCE}".replace("OF", "x").replace("TYPE", "tensor<4xf32>"), sliced("r", "a", (4,), (2,), ["i"]))
SUM_OF_SLICES = (sliced("a", "x", (4,), (2,), ["i"]), f"%r = {REDUCE}".replace("OF", "a").replace("TYPE", "tensor<2xf32>"))


@pytest.mark.parametrize("across", [False, True])
def test_a_slice_stays_outside_of_a_sum_over_devices(across: bool, monkeypatch: pytest.MonkeyPatch):
    """Each device slices at its own start; with the sum taken for an op that works element by element, it is proved."""
    if across:
        replace_source(PARTS, "not in OF_PLACES and", 'not in (*OF_PLACES, "reduced") and', monkeypatch)
    pair = [parse(OWN.replace("BODY", "\n".join(lines))) for lines in (SLICE_OF_SUM, SUM_OF_SLICES)]
    assert prove(*pair).verdict is (Certainty.PROVED if across else Certainty.UNKNOWN)
    assert refute(*pair).example is not None


def test_a_slice_of_a_sum_is_a_sum_of_slices():
    arguments = {"x": tensor((3, 4)), "y": tensor((3, 4)), "i": "tensor<i32>", "z": "tensor<i32>"}
    kind = tensor((3, 4))
    whole = [f"%a = stablehlo.multiply %x, %y : {kind}", f"%b = stablehlo.tanh %a : {kind}",
             sliced("r", "b", (3, 4), (1, 2), ["i", "z"])]
    parts = [sliced("a", "x", (3, 4), (1, 2), ["i", "z"]), sliced("b", "y", (3, 4), (1, 2), ["i", "z"]),
             f"%c = stablehlo.multiply %a, %b : {tensor((1, 2))}", f"%r = stablehlo.tanh %c : {tensor((1, 2))}"]
    other = [*parts[:1], sliced("b", "y", (3, 4), (1, 2), ["z", "i"]), *parts[2:]]
    made = [module(arguments, lines, "r", tensor((1, 2))) for lines in (whole, parts, other)]
    assert prove(made[0], made[1]).verdict is Certainty.PROVED
    assert prove(made[0], made[2]).verdict is Certainty.UNKNOWN
    assert refute(made[0], made[2]).example is not None
