"""What a rule calls the values of a match, for texts of rewrites."""

from __future__ import annotations

from collections.abc import Mapping

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.rules.compile.compiled import CompiledRule
from hlorewrite.rules.compile.environment import Environment


def rule_names(rule: CompiledRule, env: Environment) -> dict[ir.Value, str]:
    """What a rule calls the values of a match."""
    names: dict[ir.Value, str] = {}
    for name, slot in rule.slots.ops.items():
        if env[slot] is not None:
            results = list(env[slot].results)
            names.update({v: f"%{name}" if len(results) == 1 else f"%{name}#{i}" for i, v in enumerate(results)})
    for name, (slot, number) in rule.slots.results.items():
        names[env[slot].results[number]] = f"%{name}"
    for name, slot in rule.slots.numbers.items():
        if name.startswith("%") and isinstance(env[slot], ir.Value):
            names.setdefault(env[slot], name)
    return names


def surviving_names(rule: CompiledRule, env: Environment,
                    alive: Mapping[int, ir.Operation]) -> dict[ir.Value, str]:
    """The same after a rewrite: names of ops that are still there, and of values that were only read."""
    names: dict[ir.Value, str] = {}
    for name, slot in rule.slots.ops.items():
        if env[slot] is not None and op_key(env[slot]) in alive:
            names.update(dict.fromkeys(env[slot].results, f"%{name}"))
    for name, slot in rule.slots.numbers.items():
        if name.startswith("%") and isinstance(env[slot], ir.Value):
            names.setdefault(env[slot], name)
    return names
