"""Modules in short form: four devices, all-reduces in one line, values found by an attribute of their op."""

from __future__ import annotations

import re

from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

_REDUCE = re.compile(r"= AR(?:\.(\w+))?\((%[\w#]+)\)(?: over (\[\[.*?\]\]))? : (tensor<(?:[\dx]*x)?(\w+)>)")
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def expand(text: str) -> str:
    """Writes ``AR(%x) over [[0, 1]] : type`` out; ``AR.maximum`` takes the maximum; all four devices by default."""
    def written(match: re.Match[str]) -> str:
        op, operand, rows, kind, element = match.groups()
        rows = rows or "[[0, 1, 2, 3]]"
        count = rows.count("[") - 1
        size = f"{count}x{(rows.count(',') + 1) // count}"
        return (f'= "stablehlo.all_reduce"({operand}) ({{^bb0(%x_: tensor<{element}>, %y_: tensor<{element}>): '
                f"%z_ = stablehlo.{op or 'add'} %x_, %y_ : tensor<{element}> "
                f"stablehlo.return %z_ : tensor<{element}>}}) "
                f"{{replica_groups = dense<{rows}> : tensor<{size}xi64>, {CHANNEL}, use_global_device_ids}} : "
                f"({kind}) -> {kind}")
    return _REDUCE.sub(written, text)


def module(body: str, partitions: int = 4, replicas: int = 1) -> View:
    """The view of a module with a body of functions."""
    return View(parse(f"module attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : "
                      f"i32}} {{\n{expand(body)}\n}}"))


def marked(view: View, name: str = "v") -> ir.Value:
    """The first result of the op that carries the attribute ``test.NAME``."""
    marked_values: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if f"test.{name}" in op.attributes:
            marked_values.append(op.results[0])
        return ir.WalkResult.ADVANCE

    view.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return marked_values[0]


def rows(*members: tuple[int, ...], mode: str = "flattened_ids") -> Groups:
    """Groups of devices."""
    return Groups(members, mode)


def groups(view: View, name: str) -> Groups | str:
    """The groups of the first op of a name."""
    return groups_of(view.ops(name)[0], view)


V, N = "tensor<4xf32>", "tensor<i32>"
PRELUDE = f"""
      %pid = stablehlo.partition_id : tensor<ui32>
      %me = stablehlo.convert %pid : (tensor<ui32>) -> {N}
      %zero = stablehlo.constant dense<0.0> : {V}
      %one = stablehlo.constant dense<1.0> : {V}
      %c0 = stablehlo.constant dense<0> : {N}
      %c1 = stablehlo.constant dense<1> : {N}
      %mine = stablehlo.compare EQ, %me, %c0 : ({N}, {N}) -> tensor<i1>
      %go = stablehlo.compare LT, %n, %c1 : ({N}, {N}) -> tensor<i1>
"""


def region(body: str, out: str = "", kind: str = V, functions: str = "") -> str:
    """A manual region over four devices, as text for ``module``.

    The body may read ``%s`` (sharded), ``%r`` (the same everywhere), ``%n`` (an integer, the same everywhere) and what
    ``PRELUDE`` defines. What it returns is sharded, so that the values of all devices are seen.
    """
    whole = kind.replace("tensor<", "tensor<4x", 1)
    one = kind.replace("tensor<", "tensor<1x", 1)
    rank = kind.count("x")
    end = f"%out = stablehlo.reshape {out or '%zero'} : ({kind}) -> {one}\nsdy.return %out : {one}"
    spread = "[{\"d\"}" + ", {}" * rank + "]"
    return f"""sdy.mesh @mesh = <["d"=4]>
      func.func public @main(%arg0: tensor<16xf32>, %arg1: {V}, %arg2: {N}) -> {whole} {{
      %result = sdy.manual_computation(%arg0, %arg1, %arg2)
        in_shardings=[<@mesh, [{{"d"}}]>, <@mesh, [{{}}]>, <@mesh, []>]
        out_shardings=[<@mesh, {spread}>] manual_axes={{"d"}} (%s: {V}, %r: {V}, %n: {N}) {{
      {PRELUDE}
      {body}
      {end}
      }} : (tensor<16xf32>, {V}, {N}) -> {whole}
      return %result : {whole}
      }}
      {functions}"""


def loop(name: str, trips: int | str, carried: dict[str, str], body: str, following: str, kind: str = V,
         condition: str = "", test: str = "") -> str:
    """A counted loop: ``%NAME`` is its counter, ``%i_NAME`` within; what it carries follows as ``%NAME#1``...

    Args:
      name: the name of its results.
      trips: how often it runs: a number, or the name of a value.
      carried: name within -> initial value.
      body: the lines of its body.
      following: the next carried values.
      kind: the type of the carried values.
      condition: further lines of the condition, which may define ``%more``.
      test: a mark for the op.
    """
    types = ", ".join([N, *[kind] * len(carried)])
    heads = ", ".join([f"%i_{name} = %c0", *(f"%{inner} = {start}" for inner, start in carried.items())])
    known = isinstance(trips, int)
    bound = f"stablehlo.constant dense<{trips}> : {N}" if known else f"stablehlo.add {trips}, %c0 : {N}"
    mark = f" attributes {{test.{test}}}" if test else ""
    decides = "%more" if condition else "%lt"
    return f"""%{name}:{len(carried) + 1} = stablehlo.while({heads}) : {types}{mark}
      cond {{
        %bound = {bound}
        %lt = stablehlo.compare LT, %i_{name}, %bound : ({N}, {N}) -> tensor<i1>
        {condition}
        stablehlo.return {decides} : tensor<i1>
      }} do {{
        {body}
        %next_{name} = stablehlo.add %i_{name}, %c1 : {N}
        stablehlo.return %next_{name}, {following} : {types}
      }}
"""
