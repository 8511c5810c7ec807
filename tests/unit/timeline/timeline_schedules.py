"""HLO that tests of the timeline share."""

from __future__ import annotations

GROUPS = "replica_groups={{0,1,2,3,4,5,6,7}}"
ADD = """
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}
"""
SIZE = 1 << 24
BIG = f"f32[{SIZE}]{{0}}"


def scheduled(entry: str, *computations: str, partitions: int = 8) -> str:
    """A scheduled module; ``entry`` is the body of a computation of one big parameter ``%p``."""
    return "\n".join([f"HloModule m, is_scheduled=true, num_partitions={partitions}", ADD, *computations,
                      f"ENTRY %main (p: f32[{SIZE}]) -> f32[{SIZE}] {{", f"  %p = {BIG} parameter(0)", entry, "}", ""])


def start(name: str, operand: str = "p", more: str = "") -> str:
    """An asynchronous all-reduce of a big array."""
    return f"  %{name} = {BIG} all-reduce-start(%{operand}), {GROUPS}, to_apply=%add{more}"


def done(name: str, operand: str, root: bool = False) -> str:
    """Its end."""
    return f"  {'ROOT ' if root else ''}%{name} = {BIG} all-reduce-done(%{operand})"


def kernel(name: str, operand: str = "p", root: bool = False) -> str:
    """A kernel that reads and writes a big array."""
    return f"  {'ROOT ' if root else ''}%{name} = {BIG} negate(%{operand})"


def computation(name: str, lines: str) -> str:
    """A computation of one big parameter ``%q``."""
    return f"%{name} (q: f32[{SIZE}]) -> f32[{SIZE}] {{\n  %q = {BIG} parameter(0)\n{lines}\n}}\n"
