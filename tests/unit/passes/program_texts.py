"""Small programs of several meshes as text, their fragments written as each device runs them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module

AR = ('"stablehlo.all_reduce"({0}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, '
      "replica_groups = dense<{2}> : tensor<{3}xi64>, use_global_device_ids}}> ({{ ^bb0(%aa: tensor<f32>, "
      "%bb: tensor<f32>): %cc = stablehlo.{4} %aa, %bb : tensor<f32> stablehlo.return %cc : tensor<f32> }}) : "
      "({1}) -> {1}")


@dataclass(frozen=True)
class T:
    """A float tensor on a mesh: its global shape, and the axes each dimension is cut over."""

    mesh: str
    shape: tuple[int, ...]
    spec: tuple[str, ...] = ()
    element: str = "f32"

    @property
    def cuts(self) -> str:
        spec = self.spec + ("",) * (len(self.shape) - len(self.spec))
        return "[" + ", ".join("{" + (f'"{axis}"' if axis else "") + "}" for axis in spec) + "]"

    @property
    def tensor(self) -> str:
        return "tensor<" + "".join(f"{size}x" for size in self.shape) + f"{self.element}>"

    @property
    def outside(self) -> str:
        return f'!mpmd.mesh_tensor<"{self.mesh}", {self.tensor}, sharding=<@{self.mesh}, {self.cuts}>>'

    @property
    def attribute(self) -> str:
        return f"{{sdy.sharding = #sdy.sharding<@{self.mesh}, {self.cuts}>}}"

    def local(self, sizes: dict[str, int]) -> str:
        spec = self.spec + ("",) * (len(self.shape) - len(self.spec))
        shape = [size // (sizes[axis] if axis else 1) for size, axis in zip(self.shape, spec, strict=True)]
        return "tensor<" + "".join(f"{size}x" for size in shape) + f"{self.element}>"


@dataclass
class ProgramText:
    """Collects fragments and calls; ``module`` parses the whole.

    Attributes:
      meshes: axes of each mesh.
      iterations: micro-batches.
      sums: ``hlorewrite.sums``.
    """

    meshes: dict[str, dict[str, int]]
    iterations: int = 4
    arguments: dict[str, T] = field(default_factory=dict)
    fragments: list[str] = field(default_factory=list)
    steps: dict[str, list[str]] = field(default_factory=lambda: {"before": [], "body": [], "after": []})
    types: dict[str, T] = field(default_factory=dict)
    carries: list[tuple[str, str, str, str, bool]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    indices: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def argument(self, name: str, kind: T) -> str:
        """A program argument; ``%name``."""
        self.arguments[name] = self.types[name] = kind
        return name

    def call(self, part: str, task: str, stage: int, reads: Sequence[str], makes: dict[str, T], body: str,
             returned: str = "", *, manual: bool = True, name: str = "") -> None:
        """A fragment and its call. In the body ``%name`` is the device's tile of a value, ``$name`` its type there,
        ``AR(%x, $t)`` an all-reduce over ``data``."""
        mesh = next(iter(makes.values())).mesh if makes else self.types[reads[0]].mesh
        sizes = self.meshes[mesh]
        kinds = [self.types[read] for read in reads]
        locals_ = {n: self.types[n].local(sizes) if manual else self.types[n].tensor for n in reads}
        locals_ |= {n: t.local(sizes) if manual else t.tensor for n, t in makes.items()}
        text = _expanded(body, sizes).replace("$$", "$")
        for each in sorted(locals_, key=len, reverse=True):
            text = text.replace(f"${each}", locals_[each])
        self.count += 1
        callee = name or f"{task.lower()}_{stage}_{self.count}"
        ends = returned or ", ".join(f"%{n}_" for n in makes)
        arguments = ", ".join(f"%g{i}: {t.tensor} {t.attribute}" for i, t in enumerate(kinds))
        results = ", ".join(f"{t.tensor} {t.attribute}" for t in makes.values())
        axes = ", ".join(f'"{a}"={n}' for a, n in sizes.items())
        head = (f"  func.func private @{callee}(" + (arguments if manual else ", ".join(
            f"%{n}: {t.tensor} {t.attribute}" for n, t in zip(reads, kinds, strict=True)))
            + f") -> ({results}) attributes {{mesh_shape = #sdy.mesh<[{axes}]>}} {{\n")
        inner_results = ", ".join(locals_[n] for n in makes)
        if manual:
            ins = ", ".join(f"<@{mesh}, {t.cuts}>" for t in kinds)
            outs = ", ".join(f"<@{mesh}, {t.cuts}>" for t in makes.values())
            names = ", ".join(f'"{a}"' for a in sizes)
            inner = ", ".join(f"%{n}: {locals_[n]}" for n in reads)
            given = ", ".join(f"%g{i}" for i in range(len(kinds)))
            types = f"({', '.join(t.tensor for t in kinds)}) -> ({', '.join(t.tensor for t in makes.values())})"
            text = (f"    %r:{len(makes)} = sdy.manual_computation({given}) in_shardings=[{ins}] "
                    f"out_shardings=[{outs}] manual_axes={{{names}}} ({inner}) {{\n{text}\n"
                    f"      sdy.return {ends} : {inner_results}\n    }} : {types}\n"
                    f"    return {', '.join(f'%r#{i}' for i in range(len(makes)))} : "
                    f"{', '.join(t.tensor for t in makes.values())}\n  }}\n")
        else:
            text = f"{text}\n    return {ends} : {inner_results}\n  }}\n"
        self.fragments.append(head + text)
        outputs = ", ".join(f"%{n}" for n in makes)
        self.steps[part].append(
            f'    {outputs} = "mpmd.fragment_call"({", ".join("%" + n for n in reads)}) <{{callee = @{callee}, '
            f'mesh_name = "{mesh}", origin = []}}> {{hlorewrite.stage = {stage} : i64, hlorewrite.task = "{task}"}} : '
            f"({', '.join(t.outside for t in kinds)}) -> ({', '.join(t.outside for t in makes.values())})")
        self.types.update(makes)

    def transfer(self, part: str, source: str, name: str, kind: T) -> None:
        """A transfer."""
        self.steps[part].append(f"    %{name} = mpmd.transfer %{source} : ({self.types[source].outside}) -> "
                                f"{kind.outside}")
        self.types[name] = kind

    def carry(self, first: str, inside: str, following: str, after: str, is_sum: bool = True) -> None:
        """A carried value; to be set before the body reads it."""
        self.carries.append((first, inside, following, after, is_sum))
        self.types[inside] = self.types[after] = self.types[first]

    def index(self, mesh: str, name: str) -> None:
        """The micro-batch's index on a mesh."""
        self.indices[name] = mesh
        self.types[name] = T(mesh, (), (), "ui32")

    @property
    def text(self) -> str:
        """The module."""
        topology = ", ".join(f'<"{m}" : <[{", ".join(f"{chr(34)}{a}{chr(34)}={n}" for a, n in axes.items())}]>>'
                             for m, axes in self.meshes.items())
        meshes = "".join(f"  sdy.mesh @{m} = <[{', '.join(f'{chr(34)}{a}{chr(34)}={n}' for a, n in axes.items())}]>\n"
                         for m, axes in self.meshes.items())
        said = f"attributes {{topology = #mpmd.topology<{topology}>}}"
        results = [self.types[n].outside for n in self.results]
        inputs = ", ".join(f"%{n}: {t.outside}" for n, t in self.arguments.items())
        body = "\n".join([*self.steps["before"], *self._loop(), *self.steps["after"]])
        ends = f"    return {', '.join('%' + n for n in self.results)} : {', '.join(results)}\n"
        return (f"module @program {{\n{meshes}  func.func public @main({inputs}) -> ({', '.join(results)}) {said} {{\n"
                f"{body}\n{ends}  }}\n{self._microbatch(said)}{''.join(self.fragments)}}}\n")

    def _inside(self) -> list[str]:
        made = {inside for _, inside, _, _, _ in self.carries} | set(self.indices)
        reads = []
        for step in self.steps["body"]:
            left, right = step.split(" = ", 1)
            reads += [n for n in re.findall(r"%([\w.]+)", right.split(" : ")[0]) if n not in made and n not in reads]
            made |= set(re.findall(r"%([\w.]+)", left))
        return [n for n in dict.fromkeys(reads) if n in self.types and n not in made]

    def _loop(self) -> list[str]:
        invariants = self._inside()
        types = [self.types[first].outside for first, *_ in self.carries]
        inner = [c[1] for c in self.carries] + invariants + list(self.indices)
        flags = ", ".join("true" if c[4] else "false" for c in self.carries)
        called = ", ".join(f"%{n}" for n in inner)
        firsts = ", ".join(f"%{c[0]}" for c in self.carries)
        arguments = ", ".join(f"%{c[1]}: {t}" for c, t in zip(self.carries, types, strict=True))
        lines = [f"    {', '.join('%' + c[3] for c in self.carries)} = mpmd.for ({firsts}) {{hlorewrite.sums = "
                 f"array<i1: {flags}>, iterations = {self.iterations} : ui32}} ({arguments}, %index: tensor<ui32>) {{"]
        lines += [f"      %{n} = mpmd.assign %index : (tensor<ui32>) -> {self.types[n].outside}" for n in self.indices]
        lines.append(f"      %n:{len(types)} = mpmd.call @microbatch({called}) : "
                     f"({', '.join(self.types[n].outside for n in inner)}) -> ({', '.join(types)})")
        lines.append(f"      mpmd.return {', '.join(f'%n#{i}' for i in range(len(types)))} : {', '.join(types)}")
        lines.append(f"    }} : {', '.join(types)}")
        return lines

    def _microbatch(self, said: str) -> str:
        inner = [c[1] for c in self.carries] + self._inside() + list(self.indices)
        arguments = ", ".join(f"%{n}: {self.types[n].outside}" for n in inner)
        types = ", ".join(self.types[c[0]].outside for c in self.carries)
        body = "\n".join(self.steps["body"])
        ends = ", ".join(f"%{c[2]}" for c in self.carries)
        return (f"  func.func private @microbatch({arguments}) -> ({types}) {said} {{\n{body}\n    return {ends} : "
                f"{types}\n  }}\n")

    def module(self) -> Module:
        """The program."""
        made = parse(self.text, name="program.mlir")
        assert not made.verify()
        return made


def _expanded(body: str, sizes: dict[str, int]) -> str:
    """All-reduces and maxima over the axis ``data`` in full."""
    count = math.prod(sizes.values())
    inner = math.prod(n for a, n in sizes.items() if a != "data")
    rows = [[column + inner * row for row in range(count // inner)] for column in range(inner)]

    def full(match: re.Match[str]) -> str:
        reducer = "maximum" if match[1] == "MAX" else "add"
        return AR.format(match[2], match[3], str(rows), f"{len(rows)}x{len(rows[0])}", reducer)

    return re.sub(r"(AR|MAX)\((%[\w.]+), (\$\w+|tensor<[^>]*>)\)", full, body)
