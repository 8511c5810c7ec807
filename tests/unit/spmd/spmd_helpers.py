"""Modules in short form: four devices, all-reduces in one line, values found by an attribute of their op."""

from __future__ import annotations

import re

from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.spmd.groups import Groups, groups_of

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
    found: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if f"test.{name}" in op.attributes:
            found.append(op.results[0])
        return ir.WalkResult.ADVANCE

    view.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0]


def rows(*members: tuple[int, ...], mode: str = "flattened_ids") -> Groups:
    """Groups of devices."""
    return Groups(members, mode)


def groups(view: View, name: str) -> Groups | str:
    """The groups of the first op of a name."""
    return groups_of(view.ops(name)[0], view)
