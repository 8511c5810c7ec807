"""StableHLO programs whose communication a rule or pass makes cheaper, at any size, for any number of devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@dataclass(frozen=True)
class CollectiveCase:
    """One program.

    Attributes:
      name: what it is about.
      text: (devices, rows of a shard) to MLIR text.
      rows: rows of a shard when compiled; values are compared with few.
      factor: payload times wire factor that the best form needs, over that of the program as written.
    """

    name: str
    text: Callable[[int, int], str]
    rows: int
    factor: float


def _groups(devices: int, size: int) -> str:
    rows = [list(range(first, first + size)) for first in range(0, devices, size)]
    return f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{size}xi64>"


def _reduce(name: str, operand: str, kind: str, groups: str, element: str = "f32") -> str:
    return (f'      {name} = "stablehlo.all_reduce"({operand}) <{{{CHANNEL}, {groups}, use_global_device_ids}}> ({{\n'
            f"      ^bb0(%l: tensor<{element}>, %r: tensor<{element}>):\n"
            f"        %sum = stablehlo.add %l, %r : tensor<{element}>\n"
            f"        stablehlo.return %sum : tensor<{element}>\n      }}) : ({kind}) -> {kind}")


def _place(size: int) -> str:
    """The device's place in its group of ``size`` neighbours, as %k."""
    return "\n".join(["      %id = stablehlo.partition_id : tensor<ui32>",
                      f"      %size = stablehlo.constant dense<{size}> : tensor<ui32>",
                      "      %rem = stablehlo.remainder %id, %size : tensor<ui32>",
                      "      %k = stablehlo.convert %rem : (tensor<ui32>) -> tensor<i32>"])


def _module(devices: int, kind: str, lines: list[str], out: str, out_kind: str) -> str:
    return "\n".join([f"module @case attributes {{mhlo.num_partitions = {devices} : i32, "
                      "mhlo.num_replicas = 1 : i32} {",
                      f"  func.func public @main(%x: {kind}) -> {out_kind} {{", *lines,
                      f"      return {out} : {out_kind}", "  }", "}"]) + "\n"


def masked_sum(devices: int, rows: int) -> str:
    """psum(where(axis_index == 2, x, 0)) over all devices."""
    kind = f"tensor<{rows}x1024xf32>"
    return _module(devices, kind, [
        _place(devices), "      %two = stablehlo.constant dense<2> : tensor<i32>",
        f"      %zero = stablehlo.constant dense<0.0> : {kind}",
        "      %mine = stablehlo.compare EQ, %k, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        f"      %m = stablehlo.select %mine, %x, %zero : tensor<i1>, {kind}",
        _reduce("%y", "%m", kind, _groups(devices, devices))], "%y", kind)


def sum_and_slice(devices: int, rows: int) -> str:
    """The mean over four devices, of which each keeps its quarter."""
    kind, part = f"tensor<{rows}x1024xf32>", f"tensor<{rows // 4}x1024xf32>"
    return _module(devices, kind, [
        _place(4), _reduce("%s", "%x", kind, _groups(devices, 4)),
        f"      %four = stablehlo.constant dense<4.0> : {kind}",
        f"      %y = stablehlo.divide %s, %four : {kind}",
        f"      %quarter = stablehlo.constant dense<{rows // 4}> : tensor<i32>",
        "      %zero = stablehlo.constant dense<0> : tensor<i32>",
        "      %start = stablehlo.multiply %k, %quarter : tensor<i32>",
        f"      %z = stablehlo.dynamic_slice %y, %start, %zero, sizes = [{rows // 4}, 1024] : "
        f"({kind}, tensor<i32>, tensor<i32>) -> {part}"], "%z", part)


def gather_of_one(devices: int, rows: int) -> str:
    """all_gather(x)[2] over four devices."""
    kind, whole = f"tensor<{rows}x1024xf32>", f"tensor<{4 * rows}x1024xf32>"
    return _module(devices, kind, [
        f'      %g = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {CHANNEL}, {_groups(devices, 4)}, '
        f"use_global_device_ids}}> : ({kind}) -> {whole}",
        f"      %y = stablehlo.slice %g [{2 * rows}:{3 * rows}, 0:1024] : ({whole}) -> {kind}"], "%y", kind)


def fan_out(devices: int, rows: int) -> str:
    """The first of four devices sends to the three others, one permute each."""
    kind, lines = f"tensor<{rows}x1024xf32>", []
    for target in (1, 2, 3):
        pairs = [[first, first + target] for first in range(0, devices, 4)]
        lines.append(f'      %p{target} = "stablehlo.collective_permute"(%x) <{{{CHANNEL}, source_target_pairs = '
                     f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>}}> : ({kind}) -> {kind}")
    lines += [f"      %a = stablehlo.add %p1, %p2 : {kind}", f"      %y = stablehlo.add %a, %p3 : {kind}"]
    return _module(devices, kind, lines, "%y", kind)


def twice_through_calls(devices: int, rows: int) -> str:
    """The same sum in main and in a function it calls."""
    kind = f"tensor<{rows}x1024xf32>"
    inner = _reduce("%s", "%n", kind, _groups(devices, devices))
    text = _module(devices, kind, [f"      %n = stablehlo.negate %x : {kind}",
                                   _reduce("%y", "%n", kind, _groups(devices, devices)),
                                   f"      %c = func.call @f(%x) : ({kind}) -> {kind}",
                                   f"      %z = stablehlo.multiply %y, %c : {kind}"], "%z", kind)
    function = (f"  func.func private @f(%x: {kind}) -> {kind} {{\n"
                f"      %n = stablehlo.negate %x : {kind}\n{inner}\n"
                f"      return %s : {kind}\n  }}\n")
    return text.rstrip()[:-1] + function + "}\n"


def in_a_loop(devices: int, rows: int) -> str:
    """A sum that is the same in each of eight iterations."""
    kind = f"tensor<{rows}x1024xf32>"
    return _module(devices, kind, [
        "      %c0 = stablehlo.constant dense<0> : tensor<i32>",
        "      %c1 = stablehlo.constant dense<1> : tensor<i32>",
        "      %c8 = stablehlo.constant dense<8> : tensor<i32>",
        f"      %w:2 = stablehlo.while(%i = %c0, %acc = %x) : tensor<i32>, {kind}",
        "      cond {", "      %go = stablehlo.compare LT, %i, %c8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "      stablehlo.return %go : tensor<i1>", "      } do {",
        _reduce("%y", "%x", kind, _groups(devices, devices)),
        f"      %t = stablehlo.multiply %acc, %y : {kind}", f"      %u = stablehlo.tanh %t : {kind}",
        "      %j = stablehlo.add %i, %c1 : tensor<i32>",
        f"      stablehlo.return %j, %u : tensor<i32>, {kind}", "      }"], "%w#1", kind)


CASES = (
    CollectiveCase("masked sum", masked_sum, 4096, 0.5), CollectiveCase("sum and slice", sum_and_slice, 4096, 0.5),
    CollectiveCase("gather of one", gather_of_one, 4096, 1 / 3),
    CollectiveCase("fan-out to three", fan_out, 4096, 1 / 3),
    CollectiveCase("twice, through a call", twice_through_calls, 4096, 0.5),
    CollectiveCase("in a loop", in_a_loop, 4096, 1 / 8),
)


def backward_pass(devices: int, blocks: int, width: int, tokens: int) -> str:
    """Forward and backward pass of a chain of blocks of four matrices and four vectors each, every gradient averaged.

    Args:
      devices: data-parallel devices.
      blocks: blocks; each has eight gradients.
      width: model width h; the matrices are h x 3h, h x h, h x 4h and 4h x h, in bfloat16.
      tokens: rows of the activations of one device.

    Returns:
      MLIR text; arguments are the input and the weights, results the gradients.
    """
    writer = _Step(devices, width, tokens)
    for block in range(blocks):
        writer.forward(block)
    for block in reversed(range(blocks)):
        writer.backward(block)
    types = ", ".join(writer.kinds)
    arguments = [f"%x: tensor<{tokens}x{width}xbf16>", *writer.arguments]
    return _numbered("\n".join([
        f"module @step attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
        f"  func.func public @main({', '.join(arguments)}) -> ({types}) {{", *writer.lines,
        f"      return {', '.join(writer.outs)} : {types}", "  }", "}"]) + "\n")


class _Step:
    """Writes one step; the current activation or its gradient is ``self.value``."""

    def __init__(self, devices: int, width: int, tokens: int) -> None:
        self.groups, self.width, self.tokens = _groups(devices, devices), width, tokens
        self.shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
        self.lines = ["      %zero = stablehlo.constant dense<0.0> : tensor<bf16>"]
        self.arguments: list[str] = []
        self.outs: list[str] = []
        self.kinds: list[str] = []
        self.value = "%x"
        self.saved: dict[str, str] = {}

    def activation(self, columns: int) -> str:
        """The type of an activation."""
        return f"tensor<{self.tokens}x{columns}xbf16>"

    def forward(self, block: int) -> None:
        """Four products, each with a tanh after it; queries, keys and values are mixed by a product of parts."""
        narrow = self.activation(self.width)
        for layer, (rows, columns) in enumerate(self.shapes):
            name, act, over = f"{block}_{layer}", self.activation(rows), self.activation(columns)
            self.arguments.append(f"%w{name}: tensor<{rows}x{columns}xbf16>")
            self.saved[name] = self.value
            self.lines += [
                f"      %f{name} = stablehlo.dot_general {self.value}, %w{name}, contracting_dims = [1] x [0] : "
                f"({act}, tensor<{rows}x{columns}xbf16>) -> {over}",
                f"      %a{name} = stablehlo.tanh %f{name} : {over}"]
            self.value = f"%a{name}"
            if layer == 0:
                for part in range(3):
                    self.lines.append(f"      %q{part}_{block} = stablehlo.slice {self.value} [0:{self.tokens}, "
                                      f"{part * self.width}:{(part + 1) * self.width}] : ({over}) -> {narrow}")
                self.lines += [f"      %m_{block} = stablehlo.multiply %q0_{block}, %q1_{block} : {narrow}",
                               f"      %n_{block} = stablehlo.add %m_{block}, %q2_{block} : {narrow}"]
                self.value = f"%n_{block}"

    def backward(self, block: int) -> None:
        """Gradients of a block's weights and vectors, and of its input."""
        narrow = self.activation(self.width)
        for layer in reversed(range(4)):
            rows, columns = self.shapes[layer]
            name, act, over = f"{block}_{layer}", self.activation(rows), self.activation(columns)
            weight, vector = f"tensor<{rows}x{columns}xbf16>", f"tensor<{columns}xbf16>"
            if layer == 0:
                self.lines.append(f"      %e{block} = stablehlo.concatenate {self.value}, {self.value}, {self.value}, "
                                  f"dim = 1 : ({narrow}, {narrow}, {narrow}) -> {over}")
                self.value = f"%e{block}"
            self.lines += [
                f"      %s{name} = stablehlo.multiply {self.value}, %a{name} : {over}",
                f"      %dw{name} = stablehlo.dot_general {self.saved[name]}, %s{name}, contracting_dims = [0] x [0] : "
                f"({act}, {over}) -> {weight}",
                f"      %db{name} = stablehlo.reduce(%s{name} init: %zero) applies stablehlo.add across dimensions = "
                f"[0] : ({over}, tensor<bf16>) -> {vector}",
                _reduce(f"%rw{name}", f"%dw{name}", weight, self.groups, "bf16"),
                _reduce(f"%rb{name}", f"%db{name}", vector, self.groups, "bf16"),
                f"      %d{name} = stablehlo.dot_general %s{name}, %w{name}, contracting_dims = [1] x [1] : "
                f"({over}, {weight}) -> {act}"]
            self.outs += [f"%rw{name}", f"%rb{name}"]
            self.kinds += [weight, vector]
            self.value = f"%d{name}"


def _numbered(text: str) -> str:
    """The same with its line number as the name of each op, which XLA keeps: ``exposed_time`` reads program order."""
    lines, number = [], 0
    for line in text.splitlines():
        if line.startswith("      ") and not line.lstrip().startswith(("^", "return", "%sum", "stablehlo.return")) and (
                not line.endswith("({")):
            number += 1
            line = f'{line} loc("line{number}/")'
        lines.append(line)
    return "\n".join(lines) + "\n"
