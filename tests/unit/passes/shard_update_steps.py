"""Data-parallel steps over four devices, written as manual computations, for tests of shard-update."""

from __future__ import annotations

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ONE_AXIS, TWO_AXES = '"data"=4', '"data"=2, "rep"=2'
ALL = "[[0, 1, 2, 3]]"
P, SHARD = "tensor<8x4xf32>", "tensor<2x4xf32>"
MEAN = f"%four = stablehlo.constant dense<4.0> : {P}  %mean = stablehlo.divide %sum, %four : {P}"
MOMENTUM = (f"%beta = stablehlo.constant dense<0.9> : {P}  %old = stablehlo.multiply %beta, %m : {P}  "
            f"%new = stablehlo.add %old, %grad : {P}")
APPLY = f"%next = stablehlo.subtract %p, %new : {P}"


def reduced(name: str = "%sum", operand: str = "%local", kind: str = P, *, groups: str = ALL, op: str = "add") -> str:
    """An all-reduce."""
    element = kind.removeprefix("tensor<").rstrip(">").rpartition("x")[2]
    rows = eval(groups)
    return (f'{name} = "stablehlo.all_reduce"({operand}) <{{{CHANNEL}, replica_groups = dense<{groups}> : '
            f"tensor<{len(rows)}x{len(rows[0])}xi64>, use_global_device_ids}}> ({{ "
            f"^bb0(%l: tensor<{element}>, %r: tensor<{element}>): %s = stablehlo.{op} %l, %r : tensor<{element}> "
            f"stablehlo.return %s : tensor<{element}> }}) : ({kind}) -> {kind}")


def total(name: str, operand: str, zero: str = "%zero", op: str = "add", kind: str = P) -> str:
    """A reduction to one number."""
    return (f"{name} = stablehlo.reduce({operand} init: {zero}) applies stablehlo.{op} across dimensions = [0, 1] : "
            f"({kind}, tensor<f32>) -> tensor<f32>")


def step(*lines: str, axes: str = ONE_AXIS, results: tuple[str, ...] = ("%next", "%new", "%loss"),
         kinds: tuple[str, ...] = (P, P, "tensor<f32>"), arguments: str = "", donated: str = "",
         after: str = "", returned: str = "", first: str = "") -> Module:
    """A step of a parameter ``%p``, its momentum ``%m`` and a batch ``%x``, of which each device has its own rows.

    ``%local`` is the gradient of a device, and ``%zero`` the number 0. ``first`` is put before all.
    """
    body = "\n      ".join((first, "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
                            f"%wave = stablehlo.sine %x : {P}", f"%local = stablehlo.multiply %wave, %p : {P}",
                            total("%mine", "%wave"), reduced("%loss", "%mine", "tensor<f32>"), *lines))
    whole, rows = "<@mesh, [{}, {}]>", "<@mesh, [{\"data\"}, {}]>"
    if axes == TWO_AXES:
        rows = '<@mesh, [{"data", "rep"}, {}]>'
    outs = [whole if "x" in kind else "<@mesh, []>" for kind in kinds]
    info = ["result[0]['w']", "result[1].mu['w']", *(f"result[{k}]" for k in range(2, len(kinds)))]
    attributes = [f'{kind} {{jax.result_info = "{name}"}}' for kind, name in zip(kinds, info, strict=True)]
    shown = ", ".join(f"%0#{k}" for k in range(len(kinds)))
    return parse(f"""module @m attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <[{axes}]>
  func.func public @main(%arg0: {P} {{{donated or 'sdy.sharding = #sdy.sharding' + whole}}} loc("params['w']"),
      %arg1: {P} {{{donated.replace('= 1 ', '= 9 ').replace('= 0 ', '= 1 ').replace('= 9 ', '= 0 ')
                   or 'sdy.sharding = #sdy.sharding' + whole}}} loc("state.mu['w']"),
      %arg2: tensor<32x4xf32> {{sdy.sharding = #sdy.sharding{rows}}} loc("x")) -> ({", ".join(attributes)}) {{
    %0:{len(kinds)} = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[{whole}, {whole}, {rows}]
        out_shardings=[{", ".join(outs)}] manual_axes={{{", ".join(a.split("=")[0] for a in axes.split(", "))}}}
        (%p: {P}, %m: {P}, %x: {P}) {{
      {body}
      sdy.return {", ".join(results)} : {", ".join(kinds)}
    }} : ({P}, {P}, tensor<32x4xf32>) -> ({", ".join(kinds)})
    {after}
    return {returned or shown} : {", ".join(kinds)}
  }}
  {arguments}
}}""", name="m.mlir")
