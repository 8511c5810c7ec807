"""Integers that a type does not hold, permutes without pairs, collectives of another scope: each condition is needed.

Each program keeps its values; without the condition the pass changes them, or ends with an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from generators import check
from generators.check import RandomProgram
from generators.code_mutation import replace_source
from generators.random_layers import V, all_reduce

from hlorewrite.passmanager.base import PassContext

HEAD = "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
ALL, CHANNEL = "[[0, 1, 2, 3]]", "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
LATE = "comm-shift,peel-last-micro-batch,sink-reductions,rotate-collectives{outer=true}"


def counted(element: str, start: int, bound: int, step: int = 1, second: str = "") -> str:
    """A loop of reductions; its counter starts, steps and ends at what converts make of integers of 32 bits.

    Args:
      element: the type of the counter.
      start: before it is converted.
      bound: the same.
      step: the same.
      second: the start of a second counter of 8 bits, added to each reduced value.
    """
    constants = "\n".join(
        f"%{name}w = stablehlo.constant dense<{number}> : tensor<i32>\n"
        f"%{name} = stablehlo.convert %{name}w : (tensor<i32>) -> tensor<{element}>"
        for name, number in (("start", start), ("bound", bound), ("step", step)))
    type_, kind = f"tensor<{element}>", "tensor<i8>"
    return HEAD + f"""func.func public @main(%x: {V}) -> {V} {{
      {constants}
      %zero = stablehlo.constant dense<0.0> : {V}
      %first = stablehlo.constant dense<{second or 0}> : {kind}
      %one = stablehlo.constant dense<1> : {kind}
      %o:4 = stablehlo.while(%i = %start, %sum = %zero, %state = %x, %j = %first) : {type_}, {V}, {V}, {kind} cond {{
        %c = stablehlo.compare LT, %i, %bound : ({type_}, {type_}) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %f = stablehlo.convert %j : ({kind}) -> tensor<f32>
        %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {V}
        %m = stablehlo.add %state, %w : {V}
        %r = {all_reduce("%m", 0, ALL, "add")}
        %next = stablehlo.tanh %state : {V}
        %all = stablehlo.add %sum, %r : {V}
        %n = stablehlo.add %i, %step : {type_}
        %k = stablehlo.add %j, %one : {kind}
        stablehlo.return %n, %all, %next, %k : {type_}, {V}, {V}, {kind}
      }}
      return %o#1 : {V}
    }} }}"""


def gathered(element: str, shard: int) -> str:
    """Each device reads another part of the first shard, at an index of few bits."""
    part, whole, index = f"tensor<{shard}xf32>", f"tensor<{4 * shard}xf32>", f"tensor<{element}>"
    return HEAD + f"""func.func public @main(%x: {part}) -> tensor<10xf32> {{
      %id = stablehlo.partition_id : tensor<ui32>
      %k = stablehlo.convert %id : (tensor<ui32>) -> {index}
      %m = stablehlo.constant dense<30> : {index}
      %at = stablehlo.multiply %k, %m : {index}
      %g = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {CHANNEL}, replica_groups = dense<{ALL}> :
        tensor<1x4xi64>, use_global_device_ids}}> : ({part}) -> {whole}
      %y = stablehlo.dynamic_slice %g, %at, sizes = [10] : ({whole}, {index}) -> tensor<10xf32>
      return %y : tensor<10xf32>
    }} }}"""


def without_pairs() -> str:
    """Two permutes of one value that send nothing; everybody receives zeros."""
    permute = (f'"stablehlo.collective_permute"(%x) <{{{CHANNEL}, source_target_pairs = dense<> : tensor<0x2xi64>}}> : '
               f"({V}) -> {V}")
    return HEAD + f"""func.func public @main(%x: {V}) -> {V} {{
      %a = {permute}
      %b = {permute}
      %c = stablehlo.add %a, %b : {V}
      return %c : {V}
    }} }}"""


def nested() -> str:
    """Equal collectives of constants in a manual region and in one inside it, which may read no value around it."""
    outer, inner = (all_reduce(f"%k{n}", n, "[[0, 1], [2, 3]]", "add") for n in range(2))
    return HEAD + f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func public @main(%g: tensor<16xf32>) -> tensor<16xf32> {{
      %c = call @same(%g) : (tensor<16xf32>) -> tensor<16xf32>
      %r = sdy.manual_computation(%c) in_shardings=[<@mesh, [{{"y"}}]>] out_shardings=[<@mesh, [{{"y"}}]>]
          manual_axes={{"y"}} (%a: {V}) {{
        %k0 = stablehlo.constant dense<2.0> : {V}
        %s = {outer}
        %b = stablehlo.add %a, %s : {V}
        %q = sdy.manual_computation(%b) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{}}]>]
            manual_axes={{"x"}} (%d: {V}) {{
          %k1 = stablehlo.constant dense<2.0> : {V}
          %t = {inner}
          %e = stablehlo.multiply %d, %t : {V}
          sdy.return %e : {V}
        }} : ({V}) -> {V}
        sdy.return %q : {V}
      }} : (tensor<16xf32>) -> tensor<16xf32>
      return %r : tensor<16xf32>
    }}
    func.func private @same(%g: tensor<16xf32>) -> tensor<16xf32> {{ return %g : tensor<16xf32> }} }}"""


@dataclass(frozen=True)
class Needed:
    """A condition, and a program that needs it.

    Attributes:
      program: the module.
      pipeline: the passes.
      where: the module of the condition.
      condition: its source.
      without: what stands there without it.
    """

    program: str
    pipeline: str
    where: str
    condition: str
    without: str


_HELD = "return number if all(holds_number(type_, number) for type_ in types) else None"
CONDITIONS = {
    "converted start": Needed(counted("ui8", -1, 3), LATE, "hlorewrite.analysis.loops", _HELD, "return number"),
    "rounded steps": Needed(counted("bf16", 256, 271, 5), LATE, "hlorewrite.passes.common.emit",
                            "return (number - values.start) % len(values) + values.start", "return number"),
    "second counter": Needed(counted("i32", 0, 3, second="127"), "rotate-collectives{outer=true}",
                             "hlorewrite.passes.rotate_collectives.emit", "wrapped(start + step, first.type)",
                             "start + step"),
    "last start": Needed(gathered("i8", 100), "gather-to-broadcast", "hlorewrite.passes.gather_to_broadcast",
                         "min(most, read.range.full - read.range.size)", "read.range.full - read.range.size"),
    "size of a shard": Needed(gathered("ui8", 300), "gather-to-broadcast", "hlorewrite.passes.gather_to_broadcast",
                              "if shard > most:", "if False:"),
    "fan-out without pairs": Needed(without_pairs(), "permutes-to-broadcast", "hlorewrite.passes.permutes_to_broadcast",
                                    "wanted.values()), default=0)", "wanted.values()))"),
    "bucket without pairs": Needed(without_pairs(), "all-reduce-fusion", "hlorewrite.passes.all_reduce_fusion.members",
                                   "if not pairs:", "if False:"),
    "another region": Needed(nested(), "collective-cse", "hlorewrite.passes.collective_cse",
                             "takewhile(_reads_around, ancestors(op))", "ancestors(op)"),
}
BEHIND_OTHERS = ("rounded steps",)
"""Programs of which no single condition decides: a float is no counter for two reasons."""


@pytest.fixture(autouse=True)
def _whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes move whatever is legal."""
    monkeypatch.setattr(check, "context_of", lambda _: PassContext(ignore_cost=True))


@pytest.mark.parametrize("name", CONDITIONS)
def test_values_stay(name: str) -> None:
    """With the condition: equal values, no more bytes, no error."""
    needed = CONDITIONS[name]
    assert RandomProgram(needed.program, 0).check(needed.pipeline).finding is None


@pytest.mark.parametrize("name", [name for name in CONDITIONS if name not in BEHIND_OTHERS])
def test_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it: other values, or an error."""
    needed = CONDITIONS[name]
    replace_source(needed.where, needed.condition, needed.without, monkeypatch)
    finding = RandomProgram(needed.program, 0).check(needed.pipeline).finding
    assert finding is not None and finding.kind in ("wrong", "crash")
