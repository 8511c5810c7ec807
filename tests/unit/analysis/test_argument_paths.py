"""Collectives get the name of the argument they belong to, and none if two would fit or none does."""

from __future__ import annotations

import pytest

from hlorewrite.analysis.parameter_provenance import ParameterProvenance
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

W, B, S = "tensor<4x4xf32>", "tensor<4xf32>", "tensor<f32>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


def reduced(name: str, value: str, type_: str) -> str:
    return f"""%{name} = "stablehlo.all_reduce"({value}) <{{{GROUPS}}}> ({{
      ^bb0(%l: {S}, %r: {S}):
        %t = stablehlo.add %l, %r : {S}
        stablehlo.return %t : {S}
    }}) : ({type_}) -> {type_}
"""


def names(arguments: dict[str, tuple[str, str]], lines: str, results: list[tuple[str, str, str]], more: str = "",
          kind: str = "stablehlo.all_reduce") -> list[str]:
    """The names of the collectives of a kind.

    Args:
      arguments: SSA name -> (path, type).
      lines: the body.
      results: (SSA name, path, type) of each.
      more: other functions.
      kind: the collectives to name.
    """
    taken = ", ".join(f'%{name}: {type_} loc("{path}")' for name, (path, type_) in arguments.items())
    given = ", ".join(f'{type_} {{jax.result_info = "{path}"}}' for _, path, type_ in results)
    values, types = ", ".join(name for name, _, _ in results), ", ".join(type_ for _, _, type_ in results)
    body = f"{{\n{lines}\nreturn {values} : {types}\n}}\n{more}"
    view = View(parse(f"func.func public @main({taken}) -> ({given}) {body}"))
    paths = ParameterProvenance(view)
    return [paths.of(op) for op in view.ops(kind)]


STEP = {"w": ("params['w']", W), "m": ("opt.mu['w']", W), "x": ("x", W)}
GRADIENT = f"%y = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : ({W}, {W}) -> {W}\n"
SGD = f"%new = stablehlo.subtract %w, %g : {W}"


def test_sgd() -> None:
    assert names(STEP, GRADIENT + reduced("g", "%y", W) + SGD, [("%new", "result['w']", W)]) == ["params['w']"]


def test_the_parameter_and_not_the_moments_or_the_average() -> None:
    arguments = {**STEP, "e": ("ema['w']", W), "k": ("k", W)}
    lines = (GRADIENT + reduced("g", "%y", W) + f"%gt = stablehlo.transpose %g, dims = [1, 0] : ({W}) -> {W}\n"
             f"%m2 = stablehlo.multiply %m, %k : {W}\n%m3 = stablehlo.add %m2, %gt : {W}\n"
             f"%new = stablehlo.subtract %w, %m3 : {W}\n%e2 = stablehlo.multiply %e, %k : {W}\n"
             f"%e3 = stablehlo.add %e2, %new : {W}\n")
    results = [("%new", "result[0]['w']", W), ("%m3", "result[1].mu['w']", W), ("%e3", "result[2]['w']", W)]
    assert names(arguments, lines, results) == ["params['w']"]


def test_a_loss_is_no_parameter() -> None:
    """A scalar argument that the loss is divided by, and that is read elsewhere, is not what the loss updates."""
    arguments = {"x": ("x", S), "scale": ("scale", S)}
    lines = (reduced("l", "%x", S) + f"%loss = stablehlo.divide %l, %scale : {S}\n"
             f"%b = stablehlo.broadcast_in_dim %scale, dims = [] : ({S}) -> {B}\n")
    assert names(arguments, lines, [("%loss", "result[1]", S), ("%b", "result[0]", B)]) == [""]


def test_a_parameter_that_is_only_added() -> None:
    """Position embeddings of one row: the moment is added to too, but nothing reads what comes of it."""
    lines = (f"%h = stablehlo.add %w, %x : {W}\n"
             f"%y = stablehlo.dot_general %h, %x, contracting_dims = [1] x [0] : ({W}, "
             f"{W}) -> {W}\n" + reduced("g", "%y", W) + f"%m2 = stablehlo.add %m, %g : {W}\n"
             f"%new = stablehlo.subtract %w, %m2 : {W}\n")
    results = [("%new", "result[0]['w']", W), ("%m2", "result[1].mu['w']", W)]
    assert names(STEP, lines, results) == ["params['w']"]


def test_no_guess_between_two() -> None:
    arguments = {**STEP, "v": ("params['v']", W)}
    lines = (GRADIENT + f"%z = stablehlo.dot_general %v, %x, contracting_dims = [1] x [0] : ({W}, {W}) -> {W}\n"
             + reduced("g", "%y", W) + f"%both = stablehlo.add %w, %v : {W}\n%new = stablehlo.add %both, %g : {W}\n")
    assert names(arguments, lines, [("%new", "result", W), ("%z", "result[1]", W)]) == [""]


def test_activations_have_no_name() -> None:
    lines = GRADIENT + reduced("a", "%y", W) + (
        f"%z = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : ({W}, {W}) -> {W}\n")
    assert names(STEP, lines, [("%z", "result", W)]) == [""]


@pytest.mark.parametrize("argument", ["dynamic['first'][0]", "model[0]"])
def test_the_result_is_named_where_the_argument_is_numbered(argument: str) -> None:
    assert names({**STEP, "w": (argument, W)}, GRADIENT + reduced("g", "%y", W) + SGD,
                 [("%new", "result[1].layers[0].weight", W)]) == ["layers[0].weight"]


def test_through_loops_and_a_function_called_for_each_parameter() -> None:
    """The update is one function for both parameters; its calls are kept apart."""
    arguments = {"w": ("p['w']", W), "v": ("p['v']", W), "x": ("x", W)}
    lines = (GRADIENT + f"%z = stablehlo.dot_general %v, %x, contracting_dims = [1] x [0] : ({W}, {W}) -> {W}\n"
             f"%c0 = stablehlo.constant dense<0> : tensor<i32>\n%zero = stablehlo.constant dense<0.0> : {W}\n"
             f"%loop:3 = stablehlo.while(%i = %c0, %a = %zero, %b = %zero) : tensor<i32>, {W}, {W}\n"
             "cond {\n%p = stablehlo.compare LT, %i, %c0 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
             "stablehlo.return %p : tensor<i1>\n} do {\n" + reduced("g", "%y", W) + reduced("h", "%z", W)
             + f"%a2 = stablehlo.add %a, %g : {W}\n%b2 = stablehlo.add %b, %h : {W}\n"
             f"stablehlo.return %i, %a2, %b2 : tensor<i32>, {W}, {W}\n}}\n"
             f"%w2 = call @update(%w, %loop#1) : ({W}, {W}) -> {W}\n"
             f"%v2 = call @update(%v, %loop#2) : ({W}, {W}) -> {W}\n")
    update = (f"func.func private @update(%p: {W}, %g: {W}) -> {W} {{\n%n = stablehlo.subtract %p, %g : {W}\n"
              f"return %n : {W}\n}}")
    results = [("%w2", "result['w']", W), ("%v2", "result['v']", W)]
    assert names(arguments, lines, results, update) == ["p['w']", "p['v']"]


def test_stacked_layers_whose_gradients_are_written_into_a_stack() -> None:
    stack = "tensor<3x4x4xf32>"
    arguments = {"w": ("params['layers']", stack), "g": ("g", "tensor<1x4x4xf32>"), "i": ("i", "tensor<i32>")}
    lines = (f"%s = stablehlo.dynamic_slice %w, %i, %i, %i, sizes = [1, 4, 4] : ({stack}, tensor<i32>, tensor<i32>, "
             "tensor<i32>) -> tensor<1x4x4xf32>\n" + reduced("r", "%g", "tensor<1x4x4xf32>")
             + f"%zero = stablehlo.constant dense<0.0> : {stack}\n"
             f"%all = stablehlo.dynamic_update_slice %zero, %r, %i, %i, %i : ({stack}, tensor<1x4x4xf32>, tensor<i32>, "
             f"tensor<i32>, tensor<i32>) -> {stack}\n%new = stablehlo.add %w, %all : {stack}\n")
    assert names(arguments, lines, [("%new", "result['layers']", stack), ("%s", "result[1]", "tensor<1x4x4xf32>")]) == [
        "params['layers']"]


def test_a_gather_of_a_parameter() -> None:
    half = "tensor<2x4xf32>"
    lines = (f"%c = stablehlo.convert %w : {half}\n"
             f'%all = "stablehlo.all_gather"(%c) <{{all_gather_dim = 0 : i64, {GROUPS}}}> : ({half}) -> {W}\n'
             f"%t = stablehlo.tanh %c : {half}\n"
             f'%other = "stablehlo.all_gather"(%t) <{{all_gather_dim = 0 : i64, {GROUPS}}}> : ({half}) -> {W}\n')
    assert names({"w": ("params['w']", half)}, lines, [("%all", "result[0]", W), ("%other", "result[1]", W)],
                 kind="stablehlo.all_gather") == ["params['w']", ""]


def test_modules_without_names() -> None:
    view = View(parse(f"func.func @main(%w: {W}, %x: {W}) -> {W} {{\n{GRADIENT}{reduced('g', '%y', W)}{SGD}\n"
                      f"return %new : {W}\n}}"))
    assert ParameterProvenance(view).of(view.ops("stablehlo.all_reduce")[0]) == ""


def test_accumulators_are_arguments_that_are_only_updated() -> None:
    text = (f'func.func public @main(%w: {W} loc("w"), %a: {W} loc("state[3]"), %n: {S} loc("n"))'
            f" -> ({W}, {W}, {S}) {{\n"
            f"%y = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : ({W}, {W}) -> {W}\n"
            f"%new = stablehlo.add %a, %y : {W}\n%m = stablehlo.add %n, %n : {S}\n"
            f"return %y, %new, %m : {W}, {W}, {S}\n}}")
    view = View(parse(text))
    block = view.functions["main"].regions[0].blocks[0]
    assert [ParameterProvenance(view).accumulator(value) for value in block.arguments] == ["", "state[3]", ""]
