"""Ops that only move, choose or convert data: a fragment makes their results again rather than keeps or receives them."""

from __future__ import annotations

MOVES = frozenset(f"stablehlo.{name}" for name in (
    "constant", "iota", "broadcast_in_dim", "reshape", "transpose", "convert", "slice", "dynamic_slice", "pad",
    "concatenate", "reverse", "compare", "select", "and", "or", "not", "xor", "bitcast_convert")) | {
        "sdy.sharding_constraint"}
"""Names of the ops. What they read is kept instead."""

__all__ = ["MOVES"]
