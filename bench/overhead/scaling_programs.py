"""Families of programs that grow in one direction each: in ops, loops, functions, collectives, constants, values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from generate_step import step_text

_HEADER = "module @grown attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
_VECTOR = "tensor<64xf32>"
_MATRIX = "tensor<64x64xf32>"
_GROUPS = "replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>"
_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@dataclass(frozen=True)
class Family:
    """Programs that grow in one direction.

    Attributes:
      name: what there is more and more of.
      text: about how many ops -> MLIR text.
      unread: the validator does not read them.
    """

    name: str
    text: Callable[[int], str]
    unread: bool = False


def all_reduce(result: str, operand: str, type_: str = _VECTOR) -> str:
    """An all-reduce over all eight devices: four ops, those of its region among them."""
    return (f'{result} = "stablehlo.all_reduce"({operand}) <{{{_CHANNEL}, {_GROUPS}, use_global_device_ids}}> ({{\n'
            "^bb0(%left: tensor<f32>, %right: tensor<f32>):\n"
            "  %sum = stablehlo.add %left, %right : tensor<f32>\n  stablehlo.return %sum : tensor<f32>\n"
            f"}}) : ({type_}) -> {type_}")


def _main(body: Iterable[str], result: str, functions: Iterable[str] = (), arguments: str = f"%x: {_VECTOR}",
          types: str = _VECTOR) -> str:
    lines = [f"func.func public @main({arguments}) -> ({types}) {{", *body, f"return {result} : {types}", "}",
             *functions, "}"]
    return _HEADER + "\n".join(lines) + "\n"


def _of_one_value(ops: int) -> str:
    """All-reduces of one value, each read once."""
    body, last = [], "%x"
    for i in range(ops // 5):
        body += [all_reduce(f"%r{i}", "%x"), f"%p{i} = stablehlo.multiply {last}, %r{i} : {_VECTOR}"]
        last = f"%p{i}"
    return _main(body, last)


def _in_one_block(ops: int) -> str:
    """All-reduces of values of their own."""
    body, last = [], "%x"
    for i in range(ops // 6):
        body += [f"%v{i} = stablehlo.tanh {last} : {_VECTOR}", all_reduce(f"%r{i}", f"%v{i}"),
                 f"%p{i} = stablehlo.multiply %v{i}, %r{i} : {_VECTOR}"]
        last = f"%p{i}"
    return _main(body, last)


def _loop(i: int, start: str, body: list[str], last: str) -> list[str]:
    """A loop of eight iterations that adds a value to what it carries."""
    return [f"%w{i}:2 = stablehlo.while(%n{i} = %zero, %a{i} = {start}) : tensor<i32>, {_VECTOR}", "cond {",
            f"%go{i} = stablehlo.compare LT, %n{i}, %eight, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            f"stablehlo.return %go{i} : tensor<i1>", "} do {", *body,
            f"%s{i} = stablehlo.add %a{i}, {last} : {_VECTOR}", f"%m{i} = stablehlo.add %n{i}, %one : tensor<i32>",
            f"stablehlo.return %m{i}, %s{i} : tensor<i32>, {_VECTOR}", "}"]


_COUNTERS = ["%zero = stablehlo.constant dense<0> : tensor<i32>", "%one = stablehlo.constant dense<1> : tensor<i32>",
             "%eight = stablehlo.constant dense<8> : tensor<i32>"]


def _loops(ops: int) -> str:
    """Loops one after the other, a reduction in each."""
    body, last = list(_COUNTERS), "%x"
    for i in range(ops // 11):
        inner = [f"%v{i} = stablehlo.tanh %x : {_VECTOR}", all_reduce(f"%r{i}", f"%v{i}")]
        body += _loop(i, last, inner, f"%r{i}")
        last = f"%w{i}#1"
    return _main(body, last)


def _accumulators(ops: int) -> str:
    """A loop that adds up reduce-scatters of many values, as a network whose layers are written out does."""
    count, part = ops // 7, "tensor<8xf32>"
    names = range(count)
    carried = ", ".join(f"%a{i} = %part" for i in names)
    types = ", ".join([part] * count)
    body = [*_COUNTERS, f"%part = stablehlo.constant dense<0.0> : {part}",
            f"%w:{count + 1} = stablehlo.while(%n = %zero, {carried}) : tensor<i32>, {types}", "cond {",
            "%go = stablehlo.compare LT, %n, %eight, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            "stablehlo.return %go : tensor<i1>", "} do {"]
    last = "%x"
    for i in names:
        body += [f"%v{i} = stablehlo.tanh {last} : {_VECTOR}",
                 f'%r{i} = "stablehlo.reduce_scatter"(%v{i}) <{{{_CHANNEL}, {_GROUPS}, scatter_dimension = 0 : i64, '
                 "use_global_device_ids}> ({", "^bb0(%left: tensor<f32>, %right: tensor<f32>):",
                 "  %sum = stablehlo.add %left, %right : tensor<f32>\n  stablehlo.return %sum : tensor<f32>",
                 f"}}) : ({_VECTOR}) -> {part}", f"%s{i} = stablehlo.add %a{i}, %r{i} : {part}"]
        last = f"%v{i}"
    return _main([*body, "%m = stablehlo.add %n, %one : tensor<i32>",
                  f"stablehlo.return %m, {', '.join(f'%s{i}' for i in names)} : tensor<i32>, {types}", "}",
                  *(f"%t{i} = stablehlo.tanh %w#{i + 1} : {part}" for i in names)], "%t0", types=part)


def _nests(ops: int) -> str:
    """Nests of loops, all of one depth, a reduction in the innermost."""
    depth = 16
    body, last = list(_COUNTERS), "%x"
    for nest in range(max(1, ops // (6 * depth + 5))):
        numbers = range(nest * depth, (nest + 1) * depth)
        inner, value = [all_reduce(f"%r{nest}", "%x")], f"%r{nest}"
        for i in reversed(numbers):
            start = "%x" if i > numbers[0] else last
            inner, value = _loop(i, start, inner, value), f"%w{i}#1"
        body += inner
        last = value
    return _main(body, last)


def _function(name: str, body: list[str], result: str) -> str:
    return "\n".join([f"func.func private @{name}(%x: {_VECTOR}) -> {_VECTOR} {{", *body,
                      f"return {result} : {_VECTOR}", "}"])


def _calls(ops: int) -> str:
    """Functions that are called once each, a reduction in each."""
    body, functions, last = [], [], "%x"
    for i in range(ops // 8):
        body.append(f"%c{i} = call @f{i}({last}) : ({_VECTOR}) -> {_VECTOR}")
        functions.append(_function(f"f{i}", [f"%v = stablehlo.tanh %x : {_VECTOR}", all_reduce("%r", "%v")], "%r"))
        last = f"%c{i}"
    return _main(body, last, functions)


def _callers(ops: int) -> str:
    """Functions of which each calls the next, a reduction in the last."""
    count = ops // 4
    functions = [_function(f"f{i}", [f"%v = stablehlo.tanh %x : {_VECTOR}",
                                     f"%c = call @f{i + 1}(%v) : ({_VECTOR}) -> {_VECTOR}"], "%c")
                 for i in range(count)]
    functions.append(_function(f"f{count}", [all_reduce("%r", "%x")], "%r"))
    return _main([f"%c = call @f0(%x) : ({_VECTOR}) -> {_VECTOR}"], "%c", functions)


def _constants(ops: int) -> str:
    """Constants, each of a value of its own, and a reduction in a hundred of them."""
    body, last = [], "%x"
    for i in range(ops // 2):
        body += [f"%k{i} = stablehlo.constant dense<{i}.0> : {_VECTOR}",
                 f"%p{i} = stablehlo.add {last}, %k{i} : {_VECTOR}"]
        last = f"%p{i}"
        if i % 100 == 50:
            body.append(all_reduce(f"%r{i}", last))
            last = f"%r{i}"
    return _main(body, last)


def _gathers(ops: int) -> str:
    """Gathers of values that do not change, in one loop."""
    inner, last = [], "%x"
    for i in range(ops // 4):
        inner += [f"%v{i} = stablehlo.slice %rows [{i % 64}:{i % 64 + 1}, 0:64] : ({_MATRIX}) -> tensor<1x64xf32>",
                  f'%g{i} = "stablehlo.all_gather"(%v{i}) <{{all_gather_dim = 0 : i64, {_CHANNEL}, {_GROUPS}, '
                  "use_global_device_ids}> : (tensor<1x64xf32>) -> tensor<8x64xf32>",
                  f"%h{i} = stablehlo.reshape %g{i} : (tensor<8x64xf32>) -> tensor<512xf32>",
                  f"%i{i} = stablehlo.slice %h{i} [0:64] : (tensor<512xf32>) -> {_VECTOR}",
                  f"%q{i} = stablehlo.maximum {last}, %i{i} : {_VECTOR}"]
        last = f"%q{i}"
    return _main(_COUNTERS + _loop(0, "%x", inner, last), "%w0#1", (), f"%x: {_VECTOR}, %rows: {_MATRIX}")


def _norms(ops: int) -> str:
    """Matrix products and batch norms in turn: a variance waits for its mean, and the next norm for both."""
    part, last = "tensor<8xf32>", "%x0"
    body = [f"%x0 = stablehlo.reshape %x : ({_VECTOR}) -> tensor<8x8xf32>",
            f"%n = stablehlo.constant dense<64.0> : {part}",
            "%zero = stablehlo.constant dense<0.0> : tensor<f32>"]

    def total(name: str, value: str) -> list[str]:
        return [f"%l{name} = stablehlo.reduce({value} init: %zero) applies stablehlo.add across dimensions = [0] : "
                f"(tensor<8x8xf32>, tensor<f32>) -> {part}", all_reduce(f"%t{name}", f"%l{name}", part),
                f"%m{name} = stablehlo.divide %t{name}, %n : {part}",
                f"%b{name} = stablehlo.broadcast_in_dim %m{name}, dims = [1] : ({part}) -> tensor<8x8xf32>"]
    for i in range(1, 1 + ops // 20):
        body += [*total(f"{i}", last), f"%d{i} = stablehlo.subtract {last}, %b{i} : tensor<8x8xf32>",
                 f"%q{i} = stablehlo.multiply %d{i}, %d{i} : tensor<8x8xf32>", *total(f"{i}q", f"%q{i}"),
                 f"%z{i} = stablehlo.divide %d{i}, %b{i}q : tensor<8x8xf32>",
                 f"%x{i} = stablehlo.dot_general %z{i}, %x0, contracting_dims = [1] x [0] : "
                 "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"]
        last = f"%x{i}"
    return _main([*body, f"%y = stablehlo.reshape {last} : (tensor<8x8xf32>) -> {_VECTOR}"], "%y")


def _wide(ops: int) -> str:
    """A function and a loop that carry values, a reduction for each."""
    count = max(1, ops // 7)
    values = [f"%x{i}" for i in range(count)]
    types = ", ".join([_VECTOR] * count)
    body = [*_COUNTERS, f"%w:{count + 1} = stablehlo.while(%n = %zero, "
            + ", ".join(f"%a{i} = {value}" for i, value in enumerate(values)) + f") : tensor<i32>, {types}", "cond {",
            "%go = stablehlo.compare LT, %n, %eight, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            "stablehlo.return %go : tensor<i1>", "} do {"]
    for i, value in enumerate(values):
        body += [f"%v{i} = stablehlo.tanh {value} : {_VECTOR}", all_reduce(f"%r{i}", f"%v{i}"),
                 f"%s{i} = stablehlo.add %a{i}, %r{i} : {_VECTOR}"]
    body += ["%m = stablehlo.add %n, %one : tensor<i32>",
             f"stablehlo.return %m, {', '.join(f'%s{i}' for i in range(count))} : tensor<i32>, {types}", "}"]
    return _main(body, ", ".join(f"%w#{i + 1}" for i in range(count)), (),
                 ", ".join(f"{value}: {_VECTOR}" for value in values), types)


_LAYER_OPS = 18
_LAYERS = 8


def unrolled_text(batches: int, layers: int = _LAYERS) -> str:
    """A step with its micro-batches one after the other: activations and gradients are reduced in every layer.

    Args:
      batches: how many micro-batches; each has four functions of its own, as JAX makes them for ``jnp`` functions.
      layers: how many layers; each calls three of the functions, with 18 ops of its own.

    Returns:
      A module that parses and verifies.
    """
    body = [f"%eight = stablehlo.constant dense<8.0> : {_MATRIX}", f"%none = stablehlo.constant dense<0.0> : {_MATRIX}"]
    functions: list[str] = []
    accumulated = ["%none"] * layers
    for batch in range(batches):
        lines, accumulated = _micro_batch(batch, layers, accumulated)
        body += lines
        functions += _layer_functions(batch)
    total = accumulated[0]
    for layer, value in enumerate(accumulated[1:]):
        body.append(f"%t{layer} = stablehlo.maximum {total}, {value} : {_MATRIX}")
        total = f"%t{layer}"
    return _main(body, total, functions, f"%p: {_MATRIX}, %x: tensor<8x64xf32>", _MATRIX)


def _layer_functions(batch: int) -> list[str]:
    rows = "tensor<8x64xf32>"
    return [f"func.func private @{kind}{batch}(%x: {rows}) -> {rows} {{\n%a = stablehlo.{first} %x : {rows}\n"
            f"%b = stablehlo.multiply %a, %x : {rows}\nreturn %b : {rows}\n}}"
            for kind, first in (("gelu", "tanh"), ("norm", "rsqrt"), ("gelu_backward", "logistic"), ("clip", "abs"))]


def _micro_batch(batch: int, layers: int, accumulated: list[str]) -> tuple[list[str], list[str]]:
    rows = "tensor<8x64xf32>"
    lines, value, saved = [], "%x", []
    for layer in range(layers):
        at = f"{batch}_{layer}"
        saved.append(value)
        lines += [f"%h{at} = stablehlo.dot_general {value}, %p, contracting_dims = [1] x [0] : ({rows}, {_MATRIX}) "
                  f"-> {rows}", all_reduce(f"%e{at}", f"%h{at}", rows),
                  f"%f{at} = call @gelu{batch}(%e{at}) : ({rows}) -> {rows}",
                  f"%z{at} = stablehlo.add %f{at}, {value} : {rows}",
                  f"%y{at} = call @norm{batch}(%z{at}) : ({rows}) -> {rows}"]
        value = f"%y{at}"
    lines.append(f"%l{batch} = call @clip{batch}({value}) : ({rows}) -> {rows}")
    value, sums = f"%l{batch}", list(accumulated)
    for layer in reversed(range(layers)):
        at = f"{batch}_{layer}"
        lines += [f"%d{at} = call @gelu_backward{batch}({value}) : ({rows}) -> {rows}",
                  f"%b{at} = stablehlo.multiply %d{at}, {saved[layer]} : {rows}",
                  f"%g{at} = stablehlo.dot_general {saved[layer]}, %b{at}, contracting_dims = [0] x [0] : "
                  f"({rows}, {rows}) -> {_MATRIX}", all_reduce(f"%r{at}", f"%g{at}", _MATRIX),
                  f"%m{at} = stablehlo.divide %r{at}, %eight : {_MATRIX}",
                  f"%s{at} = stablehlo.add {sums[layer]}, %m{at} : {_MATRIX}"]
        value, sums[layer] = f"%b{at}", f"%s{at}"
    return lines, sums


FAMILIES = (
    Family("step", lambda ops: step_text(ops, max(4, ops // 250))),
    Family("unrolled step", lambda ops: unrolled_text(max(1, ops // (_LAYER_OPS * _LAYERS)))),
    Family("all-reduces of one value", _of_one_value),
    Family("batch norms", _norms),
    Family("all-reduces in one block", _in_one_block),
    Family("loops", _loops),
    Family("nests of loops", _nests),
    Family("called functions", _calls),
    Family("functions in a chain", _callers, unread=True),  # it follows 64 calls in each other
    Family("constants", _constants),
    Family("gathers in a loop", _gathers),
    Family("accumulators in a loop", _accumulators),
    Family("width", _wide),
)


def rules_text(rules: int) -> str:
    """A rule file: each rule matches another attribute of one op.

    Args:
      rules: how many.
    """
    lines = [f"rule slice-{i} {{ match {{ root %s = stablehlo.slice(%x) {{start_indices = [{i}]}}; }} types any; "
             f"floats exact; rewrite {{ replace %s with %x; }} }}" for i in range(rules)]
    return "\n".join(lines) + "\n"
