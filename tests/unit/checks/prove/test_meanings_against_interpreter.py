"""Every row of the table of meanings says what the reference interpreter computes, on integers of their whole range."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hlorewrite.checks.prove.elements import INTEGERS, Arithmetic, sort_of
from hlorewrite.checks.prove.op_semantics import Typing, known_ops, semantics_of
from hlorewrite.checks.prove.solver import decide
from hlorewrite.checks.reference.program import LockstepProgram, prepare
from hlorewrite.checks.reference.rule_checks.facts import Form, forms, generic, tensor
from hlorewrite.ir.load import parse

z3 = pytest.importorskip("z3")

COUNT = 8
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "and", "or")
WIDTHS = [e for e in INTEGERS if e.lstrip("u") != "i2"]  # the interpreter has no arithmetic of two bits
WHOLE = {"i1": (0, 2), **{e: (0, 2**int(e[2:])) if e.startswith("u") else (-(2**(int(e[1:]) - 1)), 2**(int(e[1:]) - 1))
                          for e in WIDTHS}}


def drawn(element: str, seed: int) -> list[int]:
    """Numbers over the whole range of a type, its ends among them."""
    low, below = WHOLE[element]
    generator = np.random.default_rng(seed)
    return [low, below - 1, *(int(low + int(x) % (below - low)) for x in generator.integers(0, 2**63, COUNT - 2))]


def constant(name: str, element: str, numbers: list[int]) -> str:
    written = ["true" if n else "false" for n in numbers] if element == "i1" else numbers
    return f"%{name} = stablehlo.constant dense<[{', '.join(map(str, written))}]> : tensor<{COUNT}x{element}>\n"


def results(lines: str, values: dict[str, str]) -> list[list[int]]:
    """What the interpreter computes for the named values."""
    types = ", ".join(f"tensor<{COUNT}x{element}>" for element in values.values())
    text = (f"func.func @main() -> ({types}) {{\n{lines}return {', '.join('%' + v for v in values)} : {types}\n}}")
    return [[int(x) for x in array] for array in prepare(parse(text)).run([[]]).outputs[0]]


def element_of(math: Arithmetic, op: str, typing: Typing, operands: list[list[int]], i: int) -> int:
    """What the table says."""
    meaning = semantics_of(f"stablehlo.{op}")
    assert meaning is not None
    [value] = meaning.elements(math, typing, lambda k, place: math.number(typing.operands[k], operands[k][i]), "")
    known = z3.simplify(value)
    if sort_of(typing.result) == "truth":
        return int(z3.is_true(known))
    return known.as_long() if typing.result.startswith("u") else known.as_signed_long()


@pytest.mark.parametrize("element", WHOLE)
def test_elementwise_ops(element: str) -> None:
    a, b, c = (drawn(element, seed) for seed in (1, 2, 3))
    lines = constant("a", element, a) + constant("b", element, b) + constant("c", element, c)
    kind = f"tensor<{COUNT}x{element}>"
    ops = [op for op in BINARY if element != "i1" or op != "subtract"]
    lines += "".join(f"%{op} = stablehlo.{op} %a, %b : {kind}\n" for op in ops)
    lines += f"%clamp = stablehlo.clamp %a, %b, %c : {kind}\n"
    every = {op: [a, b] for op in ops} | {"clamp": [a, b, c]}
    if element != "i1":
        lines += f"%negate = stablehlo.negate %a : {kind}\n"
        every["negate"] = [a]
    computed = results(lines, dict.fromkeys(every, element))
    for (op, operands), row in zip(every.items(), computed, strict=True):
        typing = Typing((element,) * len(operands), element)
        assert [element_of(Arithmetic(), op, typing, operands, i) for i in range(COUNT)] == row, op


@pytest.mark.parametrize("source", WHOLE)
def test_converts_of_integers(source: str) -> None:
    numbers = drawn(source, 4)
    lines = constant("a", source, numbers) + "".join(
        f"%r{target} = stablehlo.convert %a : (tensor<{COUNT}x{source}>) -> tensor<{COUNT}x{target}>\n"
        for target in WHOLE)
    for target, row in zip(WHOLE, results(lines, {f"r{t}": t for t in WHOLE}), strict=True):
        typing = Typing((source,), target)
        assert [element_of(Arithmetic(), "convert", typing, [numbers], i) for i in range(COUNT)] == row, target


def test_floats_where_nothing_is_rounded() -> None:
    math, f = Arithmetic(), "f32"
    for op, expected in (("add", 7), ("subtract", -1), ("multiply", 12), ("maximum", 4), ("minimum", 3),
                         ("divide", 0.75)):
        meaning = semantics_of(f"stablehlo.{op}")
        assert meaning is not None
        [value] = meaning.elements(math, Typing((f, f), f), lambda k, place: math.number(f, 3 + k), "")
        assert decide(value == z3.RealVal(str(expected)), math.premises).status == "proved", op


# ---- selections, folds and sums of terms: their structure, found with units, then tried on any numbers


def program(form: Form) -> LockstepProgram:
    arguments = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(form.operands))
    applied = form.text.format(*(f"%x{i}" for i in range(len(form.operands))))
    body = f"%r = {applied}\nreturn %r : {form.result}"
    return prepare(parse(f"func.func @main({arguments}) -> {form.result} {{\n{body}\n}}"))


def shape_of(kind: str) -> tuple[int, ...]:
    return tuple(int(n) for n in kind.removeprefix("tensor<").split("x")[:-1])


def dtype_of(kind: str) -> Any:
    return {"i1": np.bool_, "i8": np.int8, "i32": np.int32, "f32": np.float32}[kind.removesuffix(">").split("x")[-1]
                                                                               .removeprefix("tensor<")]


def inputs(form: Form, seed: int, selectors: tuple[int, ...]) -> list[np.ndarray]:
    """Numbers over the whole range; selectors stay near the shapes."""
    generator = np.random.default_rng(seed)
    made = []
    for i, kind in enumerate(form.operands):
        dtype, shape = dtype_of(kind), shape_of(kind)
        low, high = (-2, 6) if i in selectors or dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        numbers = generator.integers(0, 2, shape) if dtype is np.bool_ else generator.integers(low, high, shape)
        made.append(np.asarray(numbers).astype(dtype).reshape(shape))
    return made


def computed(ready: LockstepProgram, arrays: list[np.ndarray]) -> np.ndarray:
    return np.asarray(ready.run([arrays]).outputs[0][0])


SELECTIONS = [f for f in forms() if f.result.endswith("i32>") and (m := semantics_of(f.name)) and m.kind == "selection"
              and all(k.endswith(("i32>", "i1>")) for k in f.operands)]
FOLDS = [f for f in forms() if f.result.endswith("i32>") and (m := semantics_of(f.name)) and m.kind == "fold"]
SUMS = {"add": "sum", "maximum": "max", "minimum": "min", "and": "and", "or": "or", "multiply": "product"}


def data_operands(form: Form) -> list[int]:
    meaning = semantics_of(form.name)
    assert meaning is not None
    selectors = range(meaning.selectors[0], len(form.operands)) if "dynamic" in form.name else meaning.selectors
    return [i for i in range(len(form.operands)) if i not in selectors]


@pytest.mark.parametrize("form", SELECTIONS, ids=lambda form: form.name)
def test_a_selection_takes_elements_without_looking_at_them(form: Form) -> None:
    ready, data = program(form), data_operands(form)
    selectors = tuple(i for i in range(len(form.operands)) if i not in data)
    arrays, tag = inputs(form, 1, selectors), itertools.count(1)
    for i in data:
        arrays[i] = np.array([next(tag) for _ in range(arrays[i].size)], np.int32).reshape(arrays[i].shape)
    chosen = computed(ready, arrays)  # each tag names one element of one operand
    for seed in (2, 3):
        fresh = inputs(form, seed, selectors)
        other = [arrays[i] if i in selectors else fresh[i] for i in range(len(arrays))]
        flat = np.concatenate([other[i].reshape(-1) for i in data])
        assert (computed(ready, other) == flat[chosen - 1]).all()


def body_of(form: Form) -> str:
    return next(s for s in SUMS if f"stablehlo.{s} " in form.text)


@pytest.mark.parametrize("form", FOLDS, ids=lambda form: f"{form.name} {body_of(form)}")
def test_a_fold_reduces_elements_without_looking_at_them(form: Form) -> None:
    body = body_of(form)
    adding = Form(form.name, form.text.replace(f"stablehlo.{body} ", "stablehlo.add "), form.operands, form.result)
    ready, counting, data = program(form), program(adding), data_operands(form)
    selectors = tuple(i for i in range(len(form.operands)) if i not in data)
    arrays = inputs(form, 1, selectors)
    counts = []  # how often each element enters each result
    for i in data:
        for k in range(arrays[i].size):
            units = [np.zeros_like(a) if j in data else a for j, a in enumerate(arrays)]
            units[i].reshape(-1)[k] = 1
            counts.append(computed(counting, units).reshape(-1))
    times = np.array(counts)
    flat = np.concatenate([arrays[i].reshape(-1) for i in data])
    result = computed(ready, arrays).reshape(-1)
    for j in range(result.size):
        math, value = Arithmetic(), None
        for element in np.repeat(flat, times[:, j]):
            number = math.number("i32", int(element))
            value = number if value is None else math.reduce(SUMS[body], "i32", value, number)
        assert z3.simplify(value).as_signed_long() == int(result[j])


PRODUCTS = [f for f in forms() if f.name.endswith(("dot_general", "convolution")) and "i8>" in f.operands[0]]


@pytest.mark.parametrize("form", PRODUCTS, ids=lambda form: f"{form.name} {form.result}")
def test_a_product_of_tensors_is_a_sum_of_terms(form: Form) -> None:
    ready = program(form)
    left, right = inputs(form, 5, ())
    times = np.zeros((left.size, right.size, int(np.prod(shape_of(form.result)))), np.int64)
    for j, k in itertools.product(range(left.size), range(right.size)):
        a, b = np.zeros_like(left), np.zeros_like(right)
        a.reshape(-1)[j] = b.reshape(-1)[k] = 1
        times[j, k] = computed(ready, [a, b]).reshape(-1)
    assert set(np.unique(times)) <= {0, 1}
    target = dtype_of(form.result)
    terms = np.einsum("j,k,jkr->r", left.reshape(-1).astype(target).astype(np.int64),
                      right.reshape(-1).astype(target).astype(np.int64), times)
    result = computed(ready, [left, right]).reshape(-1)
    assert (result == terms.astype(result.dtype)).all()


def test_every_row_is_tried() -> None:
    """A new row needs a test here; the last two are about floats, and tried in test_linear_maps_of_floats."""
    tried = {f.name.removeprefix("stablehlo.") for f in (*SELECTIONS, *FOLDS, *PRODUCTS)}
    tried |= {*BINARY, "clamp", "negate", "convert", "divide", "real", "imag", "complex", "fft", "triangular_solve"}
    assert {name.removeprefix("stablehlo.") for name in known_ops()} == tried


def test_complex_parts() -> None:
    z, f = tensor("complex<f32>", 2), tensor("f32", 2)
    text = (f"func.func @main(%a: {f}, %b: {f}) -> ({f}, {f}) {{ %z = stablehlo.complex %a, %b : {z}\n"
            f"%re = stablehlo.real %z : ({z}) -> {f}\n%im = stablehlo.imag %z : ({z}) -> {f}\n"
            f"return %re, %im : {f}, {f} }}")
    a, b = np.array([1, 2], np.float32), np.array([3, -4], np.float32)
    re, im = prepare(parse(text)).run([[a, b]]).outputs[0]
    assert (re == a).all() and (im == b).all()
    for op, k in (("real", 0), ("imag", 1)):
        math, meaning = Arithmetic(), semantics_of(f"stablehlo.{op}")
        assert meaning is not None
        pair = math.variable("z", "complex<f32>")
        [part] = meaning.elements(math, Typing(("complex<f32>",), "f32"), lambda i, place, pair=pair: pair, "")
        assert part.eq(pair[k])


def test_linear_maps_of_floats() -> None:
    """A Fourier transform is a sum of elements times numbers; a triangular solve is the unknown of such a sum."""
    real = next(f for f in forms() if f.name == "stablehlo.fft" and f.operands[0] == tensor("f32", 4))
    ready, x = program(real), np.array([1.5, -2, 0.25, 3], np.float32)
    columns = [computed(ready, [row]) for row in np.eye(4, dtype=np.float32)]
    assert np.allclose(computed(ready, [x]), sum(n * c for n, c in zip(x, columns, strict=True)), atol=1e-5)
    solve = program(generic("triangular_solve", [tensor("f32", 3, 3), tensor("f32", 3, 1)], tensor("f32", 3, 1),
                            "left_side = true, lower = true, unit_diagonal = false, "
                            "transpose_a = #stablehlo<transpose NO_TRANSPOSE>"))
    matrix, right = np.array([[2, 0, 0], [1, 4, 0], [3, -1, 8]], np.float32), np.array([[2], [9], [4]], np.float32)
    assert np.allclose(matrix @ computed(solve, [matrix, right]), right)
