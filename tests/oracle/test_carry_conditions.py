"""Every condition of a carry inside a scatter is needed: take it away, and some program computes other values."""

from __future__ import annotations

import pytest
from generators.condition_mutations import Mutation, mutate, outcome

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Unknown
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.register import NATIVES

KEEPERS, SHARDS = "hlorewrite.patterns.device_masks", "hlorewrite.patterns.shards"
PIPELINE = "rules{only=carry-inside-scatter}"
T = "tensor<4x2xf32>"


def scattered(kept: str, mask: str = "%mask", rows: str = "[[0, 1], [2, 3]]", replicas: int = 1) -> str:
    """``AR(scatter-add(select(mask, ...), i, u))``, where ``%u`` is the same on pairs of neighbours."""
    shape = f"{rows.count('[') - 1}x{4 // (rows.count('[') - 1)}"
    groups = f"replica_groups = dense<{rows}> : tensor<{shape}xi64>"
    pairs = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
    mode = "" if replicas > 1 else ("channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
                                    "use_global_device_ids, ")
    add = ("({^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32> "
           "stablehlo.return %s : tensor<f32>})")
    numbers = ("#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")
    counts = f"mhlo.num_partitions = {4 // replicas} : i32, mhlo.num_replicas = {replicas} : i32"
    return f"""module attributes {{{counts}}} {{
func.func @main(%x: {T}, %y: {T}, %up: tensor<2x2xf32>) -> {T} {{
  %u = "stablehlo.all_reduce"(%x) <{{{mode}{pairs}}}> {add} : ({T}) -> {T}
  %zero = stablehlo.constant dense<0.0> : {T}
  %one = stablehlo.constant dense<1.0> : {T}
  %id = stablehlo.partition_id : tensor<ui32>
  %two = stablehlo.constant dense<2> : tensor<ui32>
  %none = stablehlo.constant dense<0> : tensor<ui32>
  %place = stablehlo.remainder %id, %two : tensor<ui32>
  %here = stablehlo.compare EQ, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %mask = stablehlo.broadcast_in_dim %here, dims = [] : (tensor<i1>) -> tensor<4x2xi1>
  %row = stablehlo.iota dim = 0 : tensor<4x2xui32>
  %spread = stablehlo.broadcast_in_dim %place, dims = [] : (tensor<ui32>) -> tensor<4x2xui32>
  %own = stablehlo.compare EQ, %row, %spread : (tensor<4x2xui32>, tensor<4x2xui32>) -> tensor<4x2xi1>
  %at = stablehlo.constant dense<[[0], [2]]> : tensor<2x1xi32>
  %kept = stablehlo.select {mask}, {kept} : tensor<4x2xi1>, {T}
  %added = "stablehlo.scatter"(%kept, %at, %up) <{{scatter_dimension_numbers = {numbers}}}> {add} : ({T},
    tensor<2x1xi32>, tensor<2x2xf32>) -> {T}
  %r = "stablehlo.all_reduce"(%added) <{{{mode}{groups}}}> {add} : ({T}) -> {T}
  return %r : {T}
}}
}}
"""


MUTATIONS = {
    "one member keeps it": Mutation(
        KEEPERS, "        if len(keepers) != 1:", "        if False:", whole=scattered("%u, %zero", "%yes").replace(
            "  %kept", "  %yes = stablehlo.constant dense<true> : tensor<4x2xi1>\n  %kept")),
    "some member keeps it": Mutation(
        KEEPERS, "        if len(keepers) != 1:", "        if len(keepers) > 1:", whole=scattered("%u, %zero", "%yes")
        .replace("  %kept", "  %yes = stablehlo.constant dense<false> : tensor<4x2xi1>\n  %kept")),
    "in each group": Mutation(
        KEEPERS, "    for row in groups.rows:\n        keepers", "    for row in groups.rows[:0]:\n        keepers",
        whole=scattered("%u, %zero", rows="[[0, 1, 2, 3]]").replace("[[0, 1], [2, 3]]> : tensor<2x2", "[[0, 1, 2, 3]]> "
                                                                    ": tensor<1x4")),
    "the others have zero": Mutation(
        KEEPERS, "    if zeros[0] == zeros[1]:", "    if False:", whole=scattered("%one, %u")),
    "of all elements alike": Mutation(
        KEEPERS, "    if any(len(set(taken)) != 1 for taken in keeps.values()):", "    if False:",
        whole=scattered("%u, %zero", "%own")),
    "the right side is kept": Mutation(
        KEEPERS, "    return sides[0] if on_true else sides[1]", "    return sides[1] if on_true else sides[0]",
        whole=scattered("%u, %zero")),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition, the values stay; without it, they do not, and the validator does not call them proved."""
    mutation = MUTATIONS[name]
    monkeypatch.setattr(NATIVES, "functions", dict(NATIVES.functions))  # mutated source registers its natives
    assert outcome(mutation.whole, True, PIPELINE) in ("unchanged", "equal")
    mutate(mutation, monkeypatch)
    assert outcome(mutation.whole, True, PIPELINE) == "wrong"
    before = parse(mutation.whole)
    after = before.clone()
    run_passes(after, parse_pipeline(PIPELINE), PassContext())
    assert isinstance(validate(before, after), Unknown)


def test_device_ids_are_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of replicas are not evaluated by partition id: without that condition the rule would fire."""
    text = scattered("%u, %zero", replicas=4)
    monkeypatch.setattr(NATIVES, "functions", dict(NATIVES.functions))
    assert outcome(text, False, PIPELINE) == "unchanged"
    condition = '    if groups.mode not in ("flattened_ids", "cross_partition") or ('
    mutate(Mutation(SHARDS, condition, "    if False and ("), monkeypatch)
    assert outcome(text, False, PIPELINE) == "moved"
