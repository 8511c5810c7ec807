"""Waits behind the kernels that hide a collective: which kernels, in which order, and what is left alone."""

from __future__ import annotations

import re

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source
from test_sequence_parallel_random import SequenceParallelWriter, TensorParallelWriter

from hlorewrite.ir import View
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.sink_waits import SinkWaits
from hlorewrite.passmanager.base import PassContext

PASS = "hlorewrite.passes.sink_waits"
X, LARGE = "tensor<64x64xf32>", "tensor<4096x4096xf32>"


def product(result: str, left: str, right: str, kind: str = X) -> str:
    """A product of two square matrices."""
    return (f"{result} = stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0] : "
            f"({kind}, {kind}) -> {kind}")


def op(result: str, name: str, operands: str, kind: str = X) -> str:
    """An elementwise op."""
    return f"{result} = stablehlo.{name} {operands} : {kind}"


def block(*lines: str, out: str = "%out", kind: str = X) -> Module:
    """A function of two matrices."""
    results = ", ".join([kind] * (out.count(",") + 1))
    return m.module(f"%x: {kind}, %w: {kind}", f"({results})", *lines, f"return {out} : {results}")


REDUCED, READ = m.unique_reduce("%r", "%x", X), op("%y", "sine", "%r")
BESIDE = (REDUCED, READ, product("%z", "%w", "%w"), op("%out", "add", "%y, %z"))


def names(module: Module) -> list[str]:
    """The ops of the main function, in order, without the return."""
    main = View(module).functions["main"]
    return [each.operation.name.removeprefix("stablehlo.") for each in main.regions[0].blocks[0].operations][:-1]


def test_compute_waits_behind_the_product_that_hides_a_collective() -> None:
    after, said = m.run(SinkWaits(), block(*BESIDE))
    assert names(after) == ["all_reduce", "dot_general", "optimization_barrier", "sine", "add"]
    assert re.fullmatch(r"applied: it takes \d+ us, and compute waits for it only after a dot_general of \d+ us, "
                        r"according to the model of h200:1x4", said[0])


@pytest.mark.parametrize("lines", [
    (REDUCED, product("%out", "%r", "%w")),  # nothing else runs
    (product("%z", "%w", "%w"), m.unique_reduce("%r", "%z", X), product("%out", "%r", "%w")),  # what runs is sent
    (REDUCED, READ, op("%u", "sine", "%w"), op("%out", "add", "%y, %u")),  # in the kernel that reads the sum
], ids=["needs it", "is needed", "fuses"])
def test_a_collective_that_nothing_hides_stays(lines: tuple[str, ...]) -> None:
    after, said = m.run(SinkWaits(), block(*lines))
    assert m.count(after, "optimization_barrier") == 0
    assert re.fullmatch(r"missed: it stays as it is: no separate kernel runs during its \d+ us",
                        said[0])


def test_what_nothing_waits_for_is_not_held() -> None:
    after, said = m.run(SinkWaits(), block(REDUCED, product("%out", "%w", "%w"), out="%r, %out"))
    assert m.count(after, "optimization_barrier") == 0 and not said


def test_a_second_run_changes_nothing() -> None:
    after, _ = m.run(SinkWaits(), block(*BESIDE))
    assert m.run(SinkWaits(), after)[0].text() == after.text()


def test_waits_behind_one_kernel_share_a_barrier() -> None:
    after, said = m.run(SinkWaits(), block(REDUCED, m.unique_reduce("%q", "%w", X), op("%s", "add", "%r, %q"),
                                           product("%z", "%w", "%w"), op("%out", "add", "%s, %z")))
    assert names(after) == ["all_reduce", "all_reduce", "dot_general", "optimization_barrier", "add", "add"]
    assert len(said) == 2


def test_one_kernel_suffices_for_a_small_collective() -> None:
    small = "tensor<64x64xf32>"
    module = block(
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%s = stablehlo.slice %x [0:64, 0:64] : ({LARGE}) -> {small}", m.unique_reduce("%r", "%s", small),
        f"%b = stablehlo.pad %r, %zero, low = [0, 0], high = [4032, 4032], interior = [0, 0] : "
        f"({small}, tensor<f32>) -> {LARGE}",
        product("%z1", "%w", "%w", LARGE), product("%z2", "%z1", "%w", LARGE), product("%z3", "%z2", "%w", LARGE),
        op("%e", "sine", "%z3", LARGE), product("%out", "%b", "%e", LARGE), kind=LARGE)
    assert SinkWaits().run(module, PassContext(topology="h200:1x4"))
    order = names(module)
    assert order[order.index("all_reduce"):order.index("optimization_barrier")] == ["all_reduce", "sine"]


def test_a_barrier_of_a_checkpoint_is_divided() -> None:
    tied = f"%b:2 = stablehlo.optimization_barrier %r, %w : {X}, {X}"
    after, _ = m.run(SinkWaits(), block(REDUCED, tied, product("%z", "%b#1", "%b#1"), op("%y", "sine", "%b#0"),
                                        op("%out", "add", "%y, %z")))
    assert names(after) == ["optimization_barrier", "all_reduce", "dot_general", "optimization_barrier",
                            "optimization_barrier", "sine", "add"]


CALLED = f'%{{0}} = stablehlo.custom_call @told(%{{1}}) {{{{has_side_effect = true}}}} : ({X}) -> {X}'
TOLD = (REDUCED, CALLED.format("y", "r"), CALLED.format("u", "w"), product("%z", "%u", "%w"),
        op("%out", "add", "%y, %z"))


def test_effects_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> tuple[Module, bool]:
        module = block(*TOLD)
        return module, SinkWaits().run(module, PassContext(topology="h200:1x4"))

    before, changed = run()
    assert not changed
    replace_source(PASS, "if result is None or not keeps_effects:", "if result is None:", monkeypatch)
    after, changed = run()
    assert changed and before.text().index("(%arg1)") > after.text().index("(%arg1)")


def test_the_order_is_one_in_which_ops_follow_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source(PASS, "order = sorted(range(len(ops) - 1), key=",
                   "order = list(range(len(ops) - 1)); sorted([0], key=", monkeypatch)
    assert m.went_wrong(block(*BESIDE), "sink-waits")


@pytest.mark.parametrize("writer", [TensorParallelWriter, SequenceParallelWriter])
@pytest.mark.parametrize("seed", range(24))
def test_values_stay(writer: type[TensorParallelWriter], seed: int) -> None:
    m.run(SinkWaits(), writer(seed).program())


@pytest.mark.parametrize("writer", [TensorParallelWriter, SequenceParallelWriter])
def test_many_of_them_change(writer: type[TensorParallelWriter]) -> None:
    changed = [seed for seed in range(24) if SinkWaits().run(writer(seed).program(), PassContext(topology="h200:1x4"))]
    assert len(changed) >= 6


# ---- what XLA makes of it

WIDE = "tensor<8192x8192xbf16>"
REMAT = parse(f"""module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: {WIDE}, %w: {WIDE}) -> ({WIDE}, {WIDE}) {{
    %p = "stablehlo.collective_permute"(%x) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>
      }}> : ({WIDE}) -> {WIDE}
    %t:2 = stablehlo.optimization_barrier %p, %w : {WIDE}, {WIDE}
    {product("%h", "%t#1", "%t#1", WIDE)}
    {product("%g", "%t#0", "%h", WIDE)}
    return %g, %h : {WIDE}, {WIDE}
  }}
}}""", name="remat")


def test_xla_recomputes_while_the_gradient_is_on_its_way() -> None:
    after = REMAT.clone()
    assert SinkWaits().run(after, PassContext(topology="h200:1x8"))
    assert m.exposed_seconds(after) < m.exposed_seconds(REMAT) / 2
