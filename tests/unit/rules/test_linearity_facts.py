"""Every linearity fact, executed: op(AR(a) + p) against AR(op(a)) + op(p) on four devices."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import numpy as np
import pytest

from hlorewrite.analysis.groups import groups_of
from hlorewrite.analysis.linearity import JointlyLinear, NotLinear, UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.rules.library import load, shipped_facts

GROUPS = "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
ATTRIBUTES = (f"replica_groups = {GROUPS}, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
              "use_global_device_ids")
OP_OF = {"sum": "add", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "product": "multiply"}
V, M, S = "tensor<4xf32>", "tensor<4x4xf32>", "tensor<f32>"


@dataclass(frozen=True)
class Row:
    """An op with operands ``{0}``, ``{1}``...; those not in ``linear`` are constants."""

    fact: str
    op: str
    operands: tuple[str, ...]
    result: str
    linear: tuple[int, ...] = (0,)
    kind: str = "sum"
    constants: dict[int, str] = field(default_factory=dict)


def unary(name: str) -> str:
    return f"stablehlo.{name} {{0}} : {V}"


def binary(name: str, kind: str = V) -> str:
    return f"stablehlo.{name} {{0}}, {{1}} : {kind}"


def reducing(op: str, kind: str, element: str = "f32", more: str = "dimensions = array<i64: 0>", name: str = "reduce",
             types: str = "(tensor<4x4x{e}>, tensor<{e}>) -> tensor<4x{e}>", arguments: str = "{0}, {1}") -> str:
    scalar = f"tensor<{element}>"
    return (f'"stablehlo.{name}"({arguments}) ({{{{^bb0(%x: {scalar}, %y: {scalar}): %z = stablehlo.{op} %x, %y : '
            f'{scalar} stablehlo.return %z : {scalar}}}}}) {{{{{more}}}}} : {types.replace("{e}", element)}')


SCATTER = ("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
           "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")
SCATTER_TYPES = "(tensor<4x4x{e}>, tensor<2x1xi32>, tensor<2x4x{e}>) -> tensor<4x4x{e}>"
GATHER = ('"stablehlo.gather"({0}, {1}) {{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
          'collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}} '
          f': ({M}, tensor<2x1xi32>) -> tensor<2x4xf32>')
CONVOLUTION = ("stablehlo.convolution({0}, {1}) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}} "
               "{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<1x4x2xf32>, tensor<2x2x3xf32>)"
               " -> tensor<1x3x3xf32>")
CLAMP = f"stablehlo.clamp {{0}}, {{1}}, {{2}} : {V}"
CASES = [
    Row("add", binary("add"), (V, V), V, (0, 1)),
    Row("add-uniform-to-extremum", binary("add"), (V, V), V, kind="max"),
    Row("add-uniform-to-extremum", binary("add"), (V, V), V, (1,), "min"),
    Row("subtract", binary("subtract"), (V, V), V, (0, 1)), Row("negate", unary("negate"), (V,), V),
    Row("multiply-by-uniform", binary("multiply"), (V, V), V),
    Row("multiply-by-uniform", binary("multiply"), (V, V), V, (1,)),
    Row("multiply-products", binary("multiply"), (V, V), V, (0, 1), "product"),
    Row("divide-by-uniform", binary("divide"), (V, V), V),
    Row("convert", f"stablehlo.convert {{0}} : ({V}) -> tensor<4xf64>", (V,), "tensor<4xf64>"),
    Row("convert", "stablehlo.convert {0} : (tensor<4xi32>) -> tensor<4xi8>", ("tensor<4xi32>",), "tensor<4xi8>"),
    Row("convert-extremum", f"stablehlo.convert {{0}} : ({V}) -> tensor<4xbf16>", (V,), "tensor<4xbf16>", kind="max"),
    Row("real-or-imaginary-part", f"stablehlo.real {{0}} : (tensor<4xcomplex<f32>>) -> {V}",
         ("tensor<4xcomplex<f32>>",), V),
    Row("real-or-imaginary-part", f"stablehlo.imag {{0}} : (tensor<4xcomplex<f32>>) -> {V}",
         ("tensor<4xcomplex<f32>>",), V),
    Row("complex", "stablehlo.complex {0}, {1} : tensor<4xcomplex<f32>>", (V, V), "tensor<4xcomplex<f32>>", (0, 1)),
    Row("maximum", binary("maximum"), (V, V), V, (0, 1), "max"),
    Row("minimum", binary("minimum"), (V, V), V, (0, 1), "min"),
    Row("minimum-of-maximum", binary("minimum"), (V, V), V, (0,), "max"),
    Row("maximum-of-minimum", binary("maximum"), (V, V), V, (1,), "min"),
    Row("clamp", CLAMP, (V, V, V), V, (1,), "max"), Row("clamp", CLAMP, (V, V, V), V, (1,), "min"),
    Row("and", binary("and", "tensor<4xi32>"), ("tensor<4xi32>",) * 2, "tensor<4xi32>", (0, 1), "and"),
    Row("or", binary("or", "tensor<4xi32>"), ("tensor<4xi32>",) * 2, "tensor<4xi32>", (0, 1), "or"),
    Row("and-of-disjunction", binary("and", "tensor<4xi32>"), ("tensor<4xi32>",) * 2, "tensor<4xi32>", (0,), "or"),
    Row("or-of-conjunction", binary("or", "tensor<4xi1>"), ("tensor<4xi1>",) * 2, "tensor<4xi1>", (1,), "and"),
    Row("move-elements", f"stablehlo.reshape {{0}} : ({V}) -> tensor<2x2xf32>", (V,), "tensor<2x2xf32>"),
    Row("move-elements", f"stablehlo.transpose {{0}}, dims = [1, 0] : ({M}) -> {M}", (M,), M, kind="max"),
    Row("move-elements", f"stablehlo.broadcast_in_dim {{0}}, dims = [1] : ({V}) -> tensor<2x4xf32>", (V,),
         "tensor<2x4xf32>"),
    Row("move-elements", f"stablehlo.slice {{0}} [1:3] : ({V}) -> tensor<2xf32>", (V,), "tensor<2xf32>"),
    Row("move-elements", f"stablehlo.reverse {{0}}, dims = [0] : {V}", (V,), V, kind="min"),
    Row("concatenate", f"stablehlo.concatenate {{0}}, {{1}}, dim = 0 : ({V}, {V}) -> tensor<8xf32>", (V, V),
         "tensor<8xf32>", (0, 1)),
    Row("pad-with-identity", f"stablehlo.pad {{0}}, {{1}}, low = [1], high = [1], interior = [1] : ({V}, {S}) -> "
         "tensor<9xf32>", (V, S), "tensor<9xf32>", constants={1: "dense<0.0>"}),
    Row("pad-with-identity", f"stablehlo.pad {{0}}, {{1}}, low = [1], high = [1], interior = [1] : ({V}, {S}) -> "
         "tensor<9xf32>", (V, S), "tensor<9xf32>", kind="max", constants={1: "dense<0xFF800000>"}),
    Row("pad", f"stablehlo.pad {{0}}, {{1}}, low = [1], high = [1], interior = [1] : ({V}, {S}) -> tensor<9xf32>",
         (V, S), "tensor<9xf32>", (0, 1)),
    Row("dynamic-slice", f"stablehlo.dynamic_slice {{0}}, {{1}}, sizes = [2] : ({V}, tensor<i32>) -> tensor<2xf32>",
         (V, "tensor<i32>"), "tensor<2xf32>"),
    Row("dynamic-update-slice", f"stablehlo.dynamic_update_slice {{0}}, {{1}}, {{2}} : ({V}, tensor<2xf32>, "
         f"tensor<i32>) -> {V}", (V, "tensor<2xf32>", "tensor<i32>"), V, (0, 1)),
    Row("gather", GATHER, (M, "tensor<2x1xi32>"), "tensor<2x4xf32>"),
    Row("select", f"stablehlo.select {{0}}, {{1}}, {{2}} : tensor<4xi1>, {V}", ("tensor<4xi1>", V, V), V, (1, 2)),
    Row("reduce-sum", reducing("add", "sum"), (M, S), V, constants={1: "dense<0.0>"}),
    Row("reduce-sum-from-value", reducing("add", "sum"), (M, S), V, (0, 1)),
    Row("reduce-max", reducing("maximum", "max"), (M, S), V, (0, 1), "max"),
    Row("reduce-min", reducing("minimum", "min"), (M, S), V, (0, 1), "min"),
    Row("reduce-and", reducing("and", "and", "i32"), ("tensor<4x4xi32>", "tensor<i32>"), "tensor<4xi32>", (0, 1),
         "and"),
    Row("reduce-or", reducing("or", "or", "i1"), ("tensor<4x4xi1>", "tensor<i1>"), "tensor<4xi1>", (0, 1), "or"),
    Row("reduce-window-sum", reducing("add", "sum", more="window_dimensions = array<i64: 2>", name="reduce_window",
                                       types="(tensor<4xf32>, tensor<f32>) -> tensor<3xf32>"), (V, S),
         "tensor<3xf32>", (0, 1)),
    *(Row(f"scatter-{kind}", reducing(OP_OF[kind], kind, more=SCATTER, name="scatter", types=SCATTER_TYPES,
                                       arguments="{0}, {1}, {2}"), (M, "tensor<2x1xi32>", "tensor<2x4xf32>"), M,
           (0, 2), kind) for kind in ("sum", "max", "min")),
    Row("dot-general-left", f"stablehlo.dot_general {{0}}, {{1}}, contracting_dims = [1] x [0] : ({M}, {M}) -> {M}",
         (M, M), M),
    Row("dot-general-right", f"stablehlo.dot_general {{0}}, {{1}}, contracting_dims = [1] x [0] : ({M}, {M}) -> {M}",
         (M, M), M, (1,)),
    Row("convolution-input", CONVOLUTION, ("tensor<1x4x2xf32>", "tensor<2x2x3xf32>"), "tensor<1x3x3xf32>"),
    Row("convolution-kernel", CONVOLUTION, ("tensor<1x4x2xf32>", "tensor<2x2x3xf32>"), "tensor<1x3x3xf32>", (1,)),
    Row("fft", f"stablehlo.fft {{0}}, type = RFFT, length = [4] : ({V}) -> tensor<3xcomplex<f32>>", (V,),
         "tensor<3xcomplex<f32>>"),
    Row("triangular-solve", '"stablehlo.triangular_solve"({0}, {1}) {{left_side = true, lower = true, unit_diagonal = '
         f'false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}}} : ({M}, {M}) -> {M}', (M, M), M, (1,)),
]
FACTS = {fact.name: fact for fact in load("linearity").facts}


def constant(kind: str, seed: int) -> str:
    shape = [int(n) for n in kind.removeprefix("tensor<").split("complex")[0].split("x")[:-1]]
    generator = np.random.default_rng(seed)
    if "i1>" in kind:
        values = np.array(generator.integers(0, 2, shape)).astype(bool).tolist()
        return "dense<" + str(values).lower() + f"> : {kind}"
    if "i32>" in kind or "i8>" in kind:
        return f"dense<{np.array(generator.integers(0, 3, shape)).tolist()}> : {kind}"
    numbers = np.array(generator.integers(1, 9, shape)) / 4
    if "complex" in kind:
        return f"dense<[{', '.join(f'({x}, {y})' for x, y in zip(numbers, numbers[::-1], strict=True))}]> : {kind}"
    return f"dense<{numbers.tolist()}> : {kind}"


def all_reduce(result: str, operand: str, kind: str, reduction: str) -> str:
    element = "complex<f32>" if "complex" in kind else kind.removeprefix("tensor<").split("x")[-1].removesuffix(">")
    scalar = f"tensor<{element}>"
    return (f'{result} = "stablehlo.all_reduce"({operand}) ({{^bb0(%x: {scalar}, %y: {scalar}): '
            f'%z = stablehlo.{OP_OF[reduction]} %x, %y : {scalar} stablehlo.return %z : {scalar}}}) '
            f'{{{ATTRIBUTES}}} : ({kind}) -> {kind}\n')


def program(case: Row, body: str) -> Module:
    arguments = ", ".join(f"%w{i}: {case.operands[i]}" for i in case.linear)
    fixed = "".join(f"%u{i} = stablehlo.constant {case.constants.get(i, constant(kind, i).split(' : ')[0])} : {kind}\n"
                    for i, kind in enumerate(case.operands))
    return parse(f"module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{\n"
                 f"func.func @main({arguments}) -> {case.result} {{\n{fixed}{body}return %r : {case.result}\n}}\n}}")


def applied(case: Row, result: str, prefix: str) -> str:
    names = [f"%{prefix}{i}" if i in case.linear else f"%u{i}" for i in range(len(case.operands))]
    return f"{result} = {case.op.format(*names)}\n"


def reduced_first(case: Row) -> Module:
    body = "".join(all_reduce(f"%v{i}", f"%w{i}", case.operands[i], case.kind)
                   + f"%x{i} = stablehlo.{OP_OF[case.kind]} %v{i}, %u{i} : {case.operands[i]}\n" for i in case.linear)
    return program(case, body + applied(case, "%r", "x"))


def reduced_last(case: Row) -> Module:
    body = applied(case, "%l", "w") + applied(case, "%p", "u") + all_reduce("%s", "%l", case.result, case.kind)
    return program(case, f"{body}%r = stablehlo.{OP_OF[case.kind]} %s, %p : {case.result}\n")


def asked(case: Row, module: Module) -> tuple[list[JointlyLinear | NotLinear], UniformContext]:
    """What the facts say about each linear operand of the op before the return."""
    view = View(module)
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert not isinstance(groups, str)
    context = UniformContext(case.kind, Uniformity(view, groups))
    op = module.mlir.body.operations[0].regions[0].blocks[0].operations[-2].operation
    return [shipped_facts().linear_in(op, i, context) for i in case.linear], context


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.fact}-{c.kind}-{c.linear}")
def test_fact_holds_when_executed(case: Row) -> None:
    before = reduced_first(case)
    answers, _ = asked(case, before)
    held = [(answer.operands, answer.fact) for answer in answers if isinstance(answer, JointlyLinear)]
    assert held == [(frozenset(case.linear), case.fact)] * len(case.linear)
    assert check(before, reduced_last(case), tolerance=1e-5).equal  # a convert may sum in the wider type


def test_every_fact_has_a_case() -> None:
    assert {case.fact for case in CASES} == set(FACTS)
    assert all(fact.fact.docs for fact in FACTS.values())


VARYING = [(c, i) for c in CASES if FACTS[c.fact].checks for i in range(len(c.operands))
           if i not in c.linear and i not in c.constants]


@pytest.mark.parametrize(("case", "position"), VARYING, ids=lambda x: x.fact if isinstance(x, Row) else str(x))
def test_an_operand_that_differs_between_devices_is_refused_with_a_sentence(case: Row, position: int) -> None:
    free = Row(case.fact, case.op, case.operands, case.result, tuple(sorted({*case.linear, position})), case.kind)
    body = "".join(all_reduce(f"%v{i}", f"%w{i}", case.operands[i], case.kind)
                   + f"%x{i} = stablehlo.{OP_OF[case.kind]} %v{i}, %u{i} : {case.operands[i]}\n" for i in case.linear)
    names = [f"%x{i}" if i in case.linear else f"%w{i}" if i == position else f"%u{i}"
             for i in range(len(case.operands))]
    module = program(free, f"{body}%r = {case.op.format(*names)}\n")
    answers, _ = asked(case, module)
    for answer in answers:
        assert isinstance(answer, NotLinear) and answer.illegal
        assert "differs" in answer.sentence or "other devices" in answer.sentence


REFUSED = [
    ("stablehlo.divide {0}, {1} : tensor<4xi32>", ("tensor<4xi32>",) * 2, "tensor<4xi32>", "sum",
     "division of integers"),
    (f"stablehlo.convert {{0}} : ({V}) -> tensor<4xbf16>", (V,), "tensor<4xbf16>", "sum", "represents less than f32"),
    ("stablehlo.convert {0} : (tensor<4xi8>) -> tensor<4xi32>", ("tensor<4xi8>",), "tensor<4xi32>", "sum",
     "a sum of i8 is not"),
    ("stablehlo.convert {0} : (tensor<4xi1>) -> tensor<4xf32>", ("tensor<4xi1>",), V, "sum", "a sum of i1 is not"),
    ("stablehlo.convert {0} : (tensor<4xi32>) -> tensor<4xi8>", ("tensor<4xi32>",), "tensor<4xi8>", "max",
     "wrap around"),
    ("stablehlo.add {0}, {1} : tensor<4xi32>", ("tensor<4xi32>",) * 2, "tensor<4xi32>", "max", "wrap around"),
]


@pytest.mark.parametrize(("op", "operands", "result", "kind", "sentence"), REFUSED)
def test_what_would_change_numbers_is_refused(op: str, operands: tuple[str, ...], result: str, kind: str,
                                              sentence: str) -> None:
    answers, _ = asked(case := Row("", op, operands, result, (0,), kind), reduced_first(case))
    assert isinstance(answers[0], NotLinear) and answers[0].illegal
    assert sentence in answers[0].sentence


@pytest.mark.parametrize(("op", "kind", "sentence"), [
    (f"stablehlo.tanh {{0}} : {V}", "sum", "stablehlo.tanh is not linear"),
    (f"stablehlo.maximum {{0}}, {{0}} : {V}", "sum", "stablehlo.maximum does not commute with a sum reduction"),
    (f"stablehlo.negate {{0}} : {V}", "max", "stablehlo.negate does not commute with a max reduction"),
    (f"stablehlo.divide {{1}}, {{0}} : {V}", "sum", "stablehlo.divide is not linear in this operand"),
])
def test_ops_that_are_not_linear_are_no_illegality(op: str, kind: str, sentence: str) -> None:
    case = Row("", op, (V, V), V, (0,), kind)
    module = reduced_first(case)
    view = View(module)
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert not isinstance(groups, str)
    target = module.mlir.body.operations[0].regions[0].blocks[0].operations[-2].operation
    position = len(target.operands) - 1
    answer = shipped_facts().linear_in(target, position, UniformContext(kind, Uniformity(view, groups)))
    assert answer == NotLinear(sentence)


def test_asking_leaves_nothing_for_the_collector_of_circles() -> None:
    """The validator asks for each op with the collector switched off: circles would stay until it is done."""
    view = View(reduced_first(Row("", f"stablehlo.multiply {{0}}, {{1}} : {V}", (V, V), V)))
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert not isinstance(groups, str)
    target = view.ops("stablehlo.multiply")[0]
    context = UniformContext("sum", Uniformity(view, groups))
    shipped_facts().linear_in(target, 0, context)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            shipped_facts().linear_in(target, 0, context)
        assert gc.collect() < 50
    finally:
        gc.enable()
