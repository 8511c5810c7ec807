"""Ops that only move, choose or convert data: results that a fragment makes again rather than keeps or receives."""

from __future__ import annotations

MOVES = frozenset(f"stablehlo.{name}" for name in (
    "constant", "iota", "broadcast_in_dim", "reshape", "transpose", "convert", "slice", "dynamic_slice", "pad",
    "concatenate", "reverse", "compare", "select", "and", "or", "not", "xor", "bitcast_convert")) | {
        "sdy.sharding_constraint"}
"""Names of the ops. Their operands are kept instead."""

__all__ = ["MOVES"]
