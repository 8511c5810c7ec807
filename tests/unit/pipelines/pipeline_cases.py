"""Programs and references for the tests of the pipeline driver."""
# ruff: noqa: E501 - lines of MLIR

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from hlorewrite.ir.load import load, parse
from hlorewrite.ir.module import Module

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
TWO_STAGES = PROGRAMS / "two_stages.mlir"
RATE = 1e-3


def two_stages() -> Module:
    """Two stages on meshes of four devices, all values at the same places on both."""
    return load(str(TWO_STAGES))


def edited(*changes: tuple[str, str]) -> Module:
    """The same program with parts of its text replaced."""
    text = TWO_STAGES.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return parse(text, name="edited.mlir")


def smaller_second_mesh() -> Module:
    """The same program, the second mesh of two devices that hold whole activations."""
    return _other_second_mesh('["data"=2]', TWO_STAGES.read_text().replace('@m1, [{"data"}, {}]', "@m1, [{}, {}]"))


def reordered_second_mesh() -> Module:
    """The same program, the second mesh on the devices of the first one in another order."""
    return _other_second_mesh('["data"=4], device_ids=[3, 1, 2, 0]', TWO_STAGES.read_text())


def _other_second_mesh(mesh: str, text: str) -> Module:
    lines = [line.replace('mesh_shape = #sdy.mesh<["data"=4]>', f"mesh_shape = #sdy.mesh<{mesh}>") if "_1(" in line
             else line for line in text.splitlines()]
    text = "\n".join(lines)
    for what in ("sdy.mesh @m1 = <", '<"m1" : <'):
        text = text.replace(f'{what}["data"=4]', f"{what}{mesh}")
    return parse(text, name="other.mlir")


def columns() -> Module:
    """The same program, activations of the second mesh cut by columns: its transfers need plans."""
    return edited(('@m1, [{"data"}, {}]', '@m1, [{}, {"data"}]'))


def chain(mesh_of: Sequence[int], *, halved: bool = False, microbatches: int = 4, devices: int = 2) -> Module:
    """A program of any number of stages: h = tanh(h w) through all but the last, which is h w; sum of squares, descent.

    Args:
      mesh_of: the mesh of each stage; two stages at least.
      halved: whether backwards are in two halves.
      microbatches: how many.
      devices: of each mesh.

    Returns:
      The program; its arguments are a weight for each stage, inputs, targets; its results the weights and the loss.
    """
    return parse(_Chain(tuple(mesh_of), halved, microbatches, devices).text(), name="chain.mlir")


class _Chain:
    """Writes the text of a chain. Kinds of values: w weight, r rows, x stacked rows, l loss, k index."""

    shapes: ClassVar = {"w": ("8x8xf32", "{}, {}"), "r": ("16x8xf32", '{"data"}, {}'), "l": ("f32", ""), "k": ("ui32", "")}

    def __init__(self, mesh_of: tuple[int, ...], halved: bool, microbatches: int, devices: int) -> None:
        self.mesh_of, self.halved, self.count, self.devices = mesh_of, halved, microbatches, devices
        self.shapes = {**self.shapes, "x": (f"{microbatches}x16x8xf32", '{}, {"data"}, {}')}
        self.last = len(mesh_of) - 1
        self.functions: list[str] = []
        self.topology = "#mpmd.topology<" + ", ".join(f'<"m{i}" : <["data"={devices}]>>' for i in self.meshes()) + ">"

    def meshes(self) -> list[int]:
        return sorted(set(self.mesh_of))

    def kind(self, kind: str, mesh: int) -> str:
        shape, cut = self.shapes[kind]
        return f'!mpmd.mesh_tensor<"m{mesh}", tensor<{shape}>, sharding=<@m{mesh}, [{cut}]>>'

    def call(self, task: str, stage: int, given: str, made: str, body: str) -> str:
        """A fragment call; ``given`` and ``made`` are ``name:kind`` lists, the fragment's own names the same ones."""
        mesh, name = self.mesh_of[stage], f"{task}_{stage}"
        operands, results = [each.split(":") for each in given.split()], [each.split(":") for each in made.split()]

        def local(kind: str) -> str:
            shape, cut = self.shapes[kind]
            return f"tensor<{shape}> {{sdy.sharding = #sdy.sharding<@m{mesh}, [{cut}]>}}"

        head = ", ".join(f"%{value}: {local(kind)}" for value, kind in operands)
        tail = ", ".join(local(kind) for _, kind in results)
        ends = ", ".join(f"%o_{value}" for value, _ in results), ", ".join(f"tensor<{self.shapes[k][0]}>" for _, k in results)
        self.functions.append(f'  func.func private @{name}({head}) -> ({tail}) attributes {{mesh_shape = '
                              f'#sdy.mesh<["data"={self.devices}]>}} {{\n{body}\n    return {ends[0]} : {ends[1]}\n  }}')
        types = ", ".join(self.kind(kind, mesh) for _, kind in operands), ", ".join(self.kind(k, mesh) for _, k in results)
        return (f'    {", ".join(f"%{value}" for value, _ in results)} = mpmd.fragment_call<mesh="m{mesh}", origin=["{task}"]> '
                f'@{name}({", ".join(f"%{value}" for value, _ in operands)}) {{hlorewrite.stage = {stage} : i64, '
                f'hlorewrite.task = "{task}"}} : ({types[0]}) -> ({types[1]})')

    def sent(self, value: str, here: int, there: int) -> tuple[str, list[str]]:
        """A value on another stage's mesh, and the transfer if it needs one."""
        a, b = self.mesh_of[here], self.mesh_of[there]
        if a == b:
            return value, []
        return f"{value}_t", [f"    %{value}_t = mpmd.transfer %{value} : ({self.kind('r', a)}) -> {self.kind('r', b)}"]

    def forward(self) -> list[str]:
        lines: list[str] = []
        take = (f"    %i = stablehlo.convert %k%d : (tensor<ui32>) -> tensor<i32>\n    %z = stablehlo.constant dense<0> : tensor<i32>"
                f"\n    %s = stablehlo.dynamic_slice %x, %i, %z, %z, sizes = [1, 16, 8] : (tensor<{self.count}x16x8xf32>, "
                f"tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>\n    %one = stablehlo.reshape %s : "
                f"(tensor<1x16x8xf32>) -> {_R}\n")
        source = ""
        for stage in range(self.last + 1):
            first, end, mesh = stage == 0, stage == self.last, self.mesh_of[stage]
            given, made = [f"w{stage}:w"], []
            body = take.replace("%k%d", f"%k{mesh}") if first or end else ""
            if first or end:
                body = body.replace("%x,", "%x," if first else "%y,")
                given += ["x:x" if first else "y:x", f"k{mesh}:k"]
            if not first:
                given.append(f"{source}:r")
            operand = "%one" if first else f"%{source}"
            body += (f"    %p = stablehlo.dot_general {operand}, %w{stage}, contracting_dims = [1] x [0] : ({_R}, {_W}) -> {_R}\n")
            if first:
                made.append("h0:r")
                body += f"    %o_h0 = stablehlo.reshape %one : ({_R}) -> {_R}\n"
            if end:
                given.append("loss:l")
                made += ["d:r", "loss1:l"]
                body += (f"    %o_d = stablehlo.subtract %p, %one : {_R}\n    %q = stablehlo.multiply %o_d, %o_d : {_R}\n"
                         f"    %f0 = stablehlo.constant dense<0.0> : tensor<f32>\n    %e = stablehlo.reduce(%q init: %f0) "
                         f"applies stablehlo.add across dimensions = [0, 1] : ({_R}, tensor<f32>) -> tensor<f32>\n"
                         f"    %o_loss1 = stablehlo.add %loss, %e : tensor<f32>")
            else:
                made.append(f"h{stage + 1}:r")
                body += f"    %o_h{stage + 1} = stablehlo.tanh %p : {_R}"
            lines.append(self.call("F", stage, " ".join(given), " ".join(made), body))
            if not end:
                source, sending = self.sent(f"h{stage + 1}", stage, stage + 1)
                lines += sending
        return lines

    def backward(self) -> list[str]:
        lines: list[str] = []
        source = ""
        for stage in reversed(range(self.last + 1)):
            entered = "h0" if stage == 0 else self.sent(f"h{stage}", stage - 1, stage)[0]
            if stage == self.last:
                given, dp = "d:r", (f"    %c = stablehlo.constant dense<2.0> : {_R}\n"
                                    f"    %o_dp{stage} = stablehlo.multiply %d, %c : {_R}\n")
            else:
                given, dp = f"h{stage + 1}:r {source}:r", (
                    f"    %c = stablehlo.constant dense<1.0> : {_R}\n    %hh = stablehlo.multiply %h{stage + 1}, %h{stage + 1} : "
                    f"{_R}\n    %s = stablehlo.subtract %c, %hh : {_R}\n    %o_dp{stage} = stablehlo.multiply %{source}, %s : "
                    f"{_R}\n")
            down = "" if stage == 0 else (f"    %o_g{stage} = stablehlo.dot_general %o_dp{stage}, %w{stage}, contracting_dims = [1] "
                                          f"x [1] : ({_R}, {_W}) -> {_R}\n")
            weight = (f"    %g = stablehlo.dot_general %{entered}, %dpv, contracting_dims = [0] x [0] : ({_R}, {_R}) -> {_W}\n"
                      f"    %o_n{stage} = stablehlo.add %a{stage}, %g : {_W}")
            up = f" g{stage}:r" if stage else ""
            given += f" w{stage}:w" if stage else ""
            if self.halved:
                lines.append(self.call("I", stage, given, f"dp{stage}:r{up}", (dp + down).rstrip()))
                late = self.call("W", stage, f"{entered}:r dp{stage}:r a{stage}:w", f"n{stage}:w",
                                 weight.replace("%dpv", f"%dp{stage}"))
            else:
                lines.append(self.call("B", stage, f"{given} {entered}:r a{stage}:w", f"n{stage}:w{up}",
                                       dp + down + weight.replace("%dpv", f"%o_dp{stage}")))
                late = ""
            if stage:
                source, sending = self.sent(f"g{stage}", stage, stage - 1)
                lines += sending
            lines += [late] if late else []
        return lines

    def text(self) -> str:
        """The program's text."""
        stages, mesh_of, last = range(self.last + 1), self.mesh_of, self.last
        before, after = [], []
        for stage in stages:
            made = f"z{stage}:w" + (" zl:l" if stage == last else "")
            zero = f"    %o_z{stage} = stablehlo.constant dense<0.0> : {_W}"
            zero += "\n    %o_zl = stablehlo.constant dense<0.0> : tensor<f32>" if stage == last else ""
            before.append(self.call("before", stage, "", made, zero))
            step = (f"    %c = stablehlo.constant dense<{RATE}> : {_W}\n    %s = stablehlo.multiply %a{stage}, %c : {_W}\n"
                    f"    %o_u{stage} = stablehlo.subtract %w{stage}, %s : {_W}")
            after.append(self.call("update", stage, f"w{stage}:w a{stage}:w", f"u{stage}:w", step)
                         .replace(f"%a{stage})", f"%r{stage})"))
        carried = [(f"a{stage}", f"z{stage}", f"n{stage}", f"r{stage}", self.kind("w", mesh_of[stage])) for stage in stages]
        carried.append(("loss", "zl", "loss1", "rl", self.kind("l", mesh_of[last])))
        indexed = sorted({mesh_of[0], mesh_of[last]})
        fixed = [(f"w{stage}", self.kind("w", mesh_of[stage])) for stage in stages]
        fixed += [("x", self.kind("x", mesh_of[0])), ("y", self.kind("x", mesh_of[last]))]
        inner = [(each[0], each[4]) for each in carried] + fixed + [(f"k{mesh}", self.kind("k", mesh)) for mesh in indexed]
        names, types = ", ".join(f"%{name}" for name, _ in inner), ", ".join(kind for _, kind in inner)
        head = ", ".join(f"%{name}: {kind}" for name, kind in inner)
        out = ", ".join(each[4] for each in carried)
        arguments = ", ".join(f"%{name}: {kind}" + (f" {{tf.aliasing_output = {place} : i32}}" if place <= last else "")
                              for place, (name, kind) in enumerate(fixed))
        results = ", ".join(f"%{each[3]}i" for each in carried)
        assigns = "\n".join(f"      %k{mesh} = mpmd.assign %index : (tensor<ui32>) -> {self.kind('k', mesh)}" for mesh in indexed)
        sums = ", ".join("true" for _ in carried)
        loop = (f"    {', '.join(f'%{each[3]}' for each in carried)} = mpmd.for ({', '.join(f'%{each[1]}' for each in carried)}) "
                f"{{hlorewrite.sums = array<i1: {sums}>, iterations = {self.count} : ui32}} ("
                + ", ".join(f"%{each[0]}: {each[4]}" for each in carried) + f", %index: tensor<ui32>) {{\n{assigns}\n"
                f"      {results} = mpmd.call @microbatch({names}) : ({types}) -> ({out})\n      mpmd.return {results} : {out}\n"
                f"    }} : {out}")
        returned = ", ".join(f"%u{stage}" for stage in stages) + ", %rl"
        kinds = ", ".join([*(self.kind("w", mesh_of[stage]) for stage in stages), self.kind("l", mesh_of[last])])
        body = "\n".join((*self.forward(), *self.backward()))
        carry = ", ".join(f"%{each[2]}" for each in carried)
        meshes = "\n".join(f'  sdy.mesh @m{mesh} = <["data"={self.devices}]>' for mesh in self.meshes())
        lines = "\n".join((*before, loop, *after))
        return (f"module @chain {{\n{meshes}\n  func.func public @main({arguments}) -> ({kinds}) attributes {{topology = "
                f'{self.topology}}} {{\n{lines}\n    return {returned} : {kinds}\n  }}\n  func.func private '
                f"@microbatch({head}) -> ({out}) attributes {{topology = {self.topology}}} {{\n{body}\n    return {carry} : {out}\n"
                "  }\n" + "\n".join(self.functions) + "\n}\n")


_R, _W = "tensor<16x8xf32>", "tensor<8x8xf32>"


def chain_values(stages: int, microbatches: int = 4, seed: int = 0) -> list[np.ndarray]:
    """Weights of all stages, inputs, targets."""
    generator = np.random.default_rng(seed)
    shapes = [(8, 8)] * stages + [(microbatches, 16, 8)] * 2
    return [generator.standard_normal(shape).astype(np.float32) / (2 if len(shape) == 2 else 1) for shape in shapes]


def chain_reference(*given: np.ndarray) -> list[np.ndarray]:
    """A chain's step on one device, in double precision."""
    *weights, x, y = (each.astype(np.float64) for each in given)
    entered = [x]
    for weight in weights[:-1]:
        entered.append(np.tanh(entered[-1] @ weight))
    d = entered[-1] @ weights[-1] - y
    up, updated = 2 * d, []
    for stage in reversed(range(len(weights))):
        updated.append(weights[stage] - RATE * np.einsum("kbi,kbj->ij", entered[stage], up))
        up = (up @ weights[stage].T) * (1 - entered[stage] ** 2)
    return [*updated[::-1], np.array((d * d).sum())]


def values(seed: int = 0) -> list[np.ndarray]:
    """Weights of both stages, inputs, targets."""
    generator = np.random.default_rng(seed)
    shapes = ((8, 8), (8, 8), (4, 16, 8), (4, 16, 8))
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


def reference(w0: np.ndarray, w1: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """The step on one device, in double precision: h = tanh(x w0), loss = sum((h w1 - y)^2), gradient descent."""
    w0, w1, x, y = (each.astype(np.float64) for each in (w0, w1, x, y))
    h = np.tanh(x @ w0)
    d = h @ w1 - y
    g1 = np.einsum("kbi,kbj->ij", h, 2 * d)
    g0 = np.einsum("kbi,kbj->ij", x, (2 * d @ w1.T) * (1 - h * h))
    return [w0 - RATE * g0, w1 - RATE * g1, np.array((d * d).sum())]


def relative_errors(actual: object, wanted: list[np.ndarray]) -> list[float]:
    """Largest difference of each result over its largest magnitude, on the worst device."""
    errors = []
    for array, want in zip(actual, wanted, strict=True):  # pyright: ignore
        errors.append(max(float(np.abs(np.asarray(shard.data) - want[shard.index]).max() / np.abs(want).max())
                          for shard in array.addressable_shards))
    return errors
