"""Forms of random programs: how devices are numbered, how groups are written, what stands around the body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generators.random_writer import Mesh, Teams, Term, shape_of

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@dataclass(frozen=True)
class Written:
    """A program without what stands around it: its values of inputs and outputs, its lines, its functions."""

    inputs: tuple[Term, ...]
    outputs: tuple[Term, ...]
    lines: tuple[str, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True)
class ProgramForm:
    """A body in one manual region over all axes of a mesh; ids are those of devices.

    Attributes:
      mesh: names and sizes of the axes.
    """

    mesh: Mesh

    @property
    def devices(self) -> int:
        """How many devices there are."""
        total = 1
        for _, size in self.mesh:
            total *= size
        return total

    def attributes(self, teams: Teams, global_ids: bool) -> list[str]:
        """Ways to write groups as attributes of a collective; none if its mode cannot say them.

        Args:
          teams: the groups.
          global_ids: whether the collective takes ``use_global_device_ids``.
        """
        flags = ", use_global_device_ids" if global_ids else ""
        return [f"{_CHANNEL}, replica_groups = {dense(teams.rows)}{flags}"]

    def pairs(self, teams: Teams, closed: bool) -> str | None:
        """Attributes of a permute along each group; None if its mode cannot say them."""
        return f"{_CHANNEL}, {_pairs(teams.rows, closed)}" if closed or len(teams.rows[0]) > 1 else None

    def own_ids(self) -> list[tuple[str, frozenset[str]]]:
        """Ops that return where a process is, and along which axes each differs."""
        return [("stablehlo.partition_id", frozenset(name for name, _ in self.mesh))]

    def module(self, body: Written) -> str:
        """The text of a module; results are sharded over the whole mesh, so that what each device holds is seen."""
        outer = [self._times(v.type, self._factor(v.varies)) for v in body.inputs]
        results = [self._times(v.type, self.devices) for v in body.outputs]
        names, opened, closed = self._regions(body, outer, results)
        return "\n".join([
            f"module @random attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
            "  sdy.mesh @mesh = <[" + ", ".join(f'"{name}"={size}' for name, size in self.mesh) + "]>",
            "  func.func public @main(" + ", ".join(f"%g{n}: {kind}" for n, kind in enumerate(outer))
            + f") -> ({', '.join(results)}) {{", *opened, *body.lines, *closed,
            f"    return {', '.join(names)} : {', '.join(results)}", "  }", *body.functions, "}"]) + "\n"

    def _regions(self, body: Written, outer: list[str], results: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Names of the results, the lines that open the manual region, and those that close it."""
        axes = [name for name, _ in self.mesh]
        opened = (f"    {_several('%r', results)} = "
                  + _manual([f"%g{n}" for n in range(len(outer))], [v.varies for v in body.inputs], results, axes,
                            [(v.name, v.type) for v in body.inputs]))
        closed = [f"      sdy.return {', '.join(v.name for v in body.outputs)} : "
                  f"{', '.join(v.type for v in body.outputs)}",
                  f"    }} : ({', '.join(outer)}) -> ({', '.join(results)})"]
        return _numbered("%r", results), [opened], closed

    def _factor(self, axes: frozenset[str]) -> int:
        factor = 1
        for name, size in self.mesh:
            factor *= size if name in axes else 1
        return factor

    def _times(self, kind: str, factor: int) -> str:
        """A tensor type with its first dimension multiplied.

        Example:
          >>> ProgramForm((("x", 2),))._times("tensor<4x2xf32>", 2), ProgramForm((("x", 2),))._times("tensor<i32>", 1)
          ('tensor<8x2xf32>', 'tensor<i32>')
        """
        if factor == 1:
            return kind
        first, _, rest = kind[len("tensor<"):].partition("x")
        return f"tensor<{int(first) * factor}x{rest}"


@dataclass(frozen=True)
class NestedForm(ProgramForm):
    """A manual region over the first axis, and in it one over the second."""

    def _regions(self, body: Written, outer: list[str], results: list[str]) -> tuple[list[str], list[str], list[str]]:
        (first, _), (second, columns) = self.mesh
        middle = [self._times(v.type, columns if second in v.varies else 1) for v in body.inputs]
        halves = [self._times(v.type, columns) for v in body.outputs]
        names = [f"%m{n}" for n in range(len(outer))]
        opened = [f"    {_several('%r', results)} = "
                  + _manual([f"%g{n}" for n in range(len(outer))], [v.varies & {first} for v in body.inputs],
                            results, [first], list(zip(names, middle, strict=True))),
                  f"    {_several('%q', results)} = "
                  + _manual(names, [v.varies & {second} for v in body.inputs], results, [second],
                            [(v.name, v.type) for v in body.inputs])]
        closed = [f"      sdy.return {', '.join(v.name for v in body.outputs)} : "
                  f"{', '.join(v.type for v in body.outputs)}",
                  f"    }} : ({', '.join(middle)}) -> ({', '.join(halves)})",
                  f"      sdy.return {', '.join(_numbered('%q', results))} : {', '.join(halves)}",
                  f"    }} : ({', '.join(outer)}) -> ({', '.join(results)})"]
        return _numbered("%r", results), opened, closed


@dataclass(frozen=True)
class ReplicaForm(ProgramForm):
    """No manual region: replicas times partitions, the axes ``r`` and ``p``; groups in each of the four modes."""

    def attributes(self, teams: Teams, global_ids: bool) -> list[str]:
        replicas, partitions = (size for _, size in self.mesh)
        every_replica = dense((tuple(range(replicas)),))
        every_partition = dense((tuple(range(partitions)),))
        ways = [f"{_CHANNEL}, replica_groups = {dense(teams.rows)}, use_global_device_ids"] if global_ids else []
        if teams.axes == {"r"}:
            ways.append(f"replica_groups = {every_replica}")
        elif teams.axes == {"p"} and global_ids:
            ways.append(f"{_CHANNEL}, replica_groups = {dense(tuple((r,) for r in range(replicas)))}")
        elif teams.axes == {"p"}:
            ways.append(f"{_CHANNEL}, replica_groups = {every_partition}")
        elif global_ids:
            ways.append(f"{_CHANNEL}, replica_groups = {every_replica}")
        return ways

    def pairs(self, teams: Teams, closed: bool) -> str | None:
        size = len(teams.rows[0])
        if len(teams.axes) != 1 or (size == 1 and not closed):
            return None
        return f"{_CHANNEL if teams.axes == {'p'} else ''}, {_pairs((tuple(range(size)),), closed)}".lstrip(", ")

    def own_ids(self) -> list[tuple[str, frozenset[str]]]:
        return [("stablehlo.replica_id", frozenset({"r"})), ("stablehlo.partition_id", frozenset({"p"}))]

    def module(self, body: Written) -> str:
        (_, replicas), (_, partitions) = self.mesh
        inputs = ", ".join(f"{v.name}: {v.type}" for v in body.inputs)
        results = ", ".join(v.type for v in body.outputs)
        return "\n".join([
            f"module @random attributes {{mhlo.num_partitions = {partitions} : i32, "
            f"mhlo.num_replicas = {replicas} : i32}} {{",
            f"  func.func public @main({inputs}) -> ({results}) {{", *body.lines,
            f"    return {', '.join(v.name for v in body.outputs)} : {results}", "  }", *body.functions, "}"]) + "\n"


def dense(rows: Sequence[Sequence[int]]) -> str:
    """Groups as a ``replica_groups`` attribute.

    Example:
      >>> dense(((0, 1), (2, 3)))
      'dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>'
    """
    return f"dense<{[list(row) for row in rows]}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def _pairs(rows: Sequence[Sequence[int]], closed: bool) -> str:
    pairs = [[row[n], row[(n + 1) % len(row)]] for row in rows for n in range(len(row) - (0 if closed else 1))]
    return f"source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>"


def _several(name: str, results: Sequence[str]) -> str:
    return f"{name}:{len(results)}" if len(results) > 1 else name


def _numbered(name: str, results: Sequence[str]) -> list[str]:
    return [f"{name}#{n}" for n in range(len(results))] if len(results) > 1 else [name]


def _over(axes: Sequence[str], kind: str) -> str:
    """A sharding of the first dimension over some axes."""
    rank = len(shape_of(kind))
    if not rank:
        return "<@mesh, []>"
    return "<@mesh, [{" + ", ".join(f'"{name}"' for name in axes) + "}" + ", {}" * (rank - 1) + "]>"


def _manual(operands: list[str], sharded: list[frozenset[str]], results: list[str], axes: list[str],
            arguments: list[tuple[str, str]]) -> str:
    """The first line of a manual region; the first dimension of each value is sharded over some axes."""
    ins = ", ".join(_over([name for name in axes if name in some], kind)
                    for some, (_, kind) in zip(sharded, arguments, strict=True))
    outs = ", ".join(_over(axes, kind) for kind in results)
    quoted = ", ".join(f'"{name}"' for name in axes)
    return (f"sdy.manual_computation({', '.join(operands)}) in_shardings=[{ins}] out_shardings=[{outs}] "
            f"manual_axes={{{quoted}}} (" + ", ".join(f"{name}: {kind}" for name, kind in arguments) + ") {")
