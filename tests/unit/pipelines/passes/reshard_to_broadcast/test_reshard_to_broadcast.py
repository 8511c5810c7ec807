"""reshard-to-broadcast: stacks read by layer, plans of transfers, and what is left alone."""

from __future__ import annotations

import pytest
from spmd_helpers import CHANNEL, module

from hlorewrite.checks.reference.check import check
from hlorewrite.errors import UsageError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.passes.reshard_to_broadcast import ReshardToBroadcast
from hlorewrite.pipelines.passes.reshard_to_broadcast.transfer import PLAN, meshes_of_topology, plan_transfer
from hlorewrite.pipelines.reshard.lower import lower
from hlorewrite.rules.listener import Recorder

SLOW = "p3.8xlarge:4x1"


def stack(element: str = "f32", index: str = "i32", dim: int = 0, position: str = "%i", extra: str = "") -> str:
    """A gathered stack of eight 2x3 layers, two a device; one is read at an index that all devices agree on."""
    shapes = [[2, 2, 3], [8, 2, 3], [1, 2, 3]]
    held, whole, layer = (
        "x".join(map(str, [*shape[1:dim + 1], shape[0], *shape[dim + 1:]])) + f"x{element}" for shape in shapes)
    starts = ", ".join(position if d == dim else "%z" for d in range(3))
    sizes = ", ".join(layer.split("x")[:3])
    return f"""func.func public @main(%w: tensor<{held}>, %own: tensor<{index}>) -> tensor<{layer}> {{
      %i = AR.maximum(%own) : tensor<{index}>
      %z = stablehlo.constant dense<0> : tensor<{index}>
      {extra}
      %g = "stablehlo.all_gather"(%w) {{all_gather_dim = {dim} : i64, replica_groups = dense<[[0, 1, 2, 3]]> :
        tensor<1x4xi64>, {CHANNEL}, use_global_device_ids}} : (tensor<{held}>) -> tensor<{whole}>
      %r = stablehlo.dynamic_slice %g, {starts}, sizes = [{sizes}] : (tensor<{whole}>, tensor<{index}>,
        tensor<{index}>, tensor<{index}>) -> tensor<{layer}>
      return %r : tensor<{layer}>
    }}"""


def rewritten(before: Module, step: ReshardToBroadcast, *, ignore_cost: bool = True) -> tuple[Module, list[str]]:
    """The module after the pass, and its remarks; verified, and left as it is by a run that says so."""
    after, recorder = before.clone(), Recorder()
    changed = run_passes(after, [step], PassContext((recorder,), ignore_cost=ignore_cost))
    assert not after.verify()
    assert changed == (after.text() != before.text())
    return after, [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]


def names(after: Module) -> list[str]:
    """The collectives of a module, in order."""
    view = View(after)
    kinds = ("all_gather", "all_reduce", "collective_broadcast", "collective_permute")
    return [kind for kind in kinds for _ in view.ops(f"stablehlo.{kind}")]


@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "i1", "f64", "ui32"])
@pytest.mark.parametrize(("index", "dim"), [("i32", 0), ("i64", 1), ("ui8", 0), ("i8", 1), ("ui32", 0)])
def test_masked_sum_of_one_layer(element: str, index: str, dim: int) -> None:
    extra = f"%wrong = stablehlo.constant dense<{7 if 'u' in index else -5}> : tensor<{index}>"
    values = "\n".join([extra, f"%k = stablehlo.constant dense<1> : tensor<{index}>",
                        f"%some = stablehlo.and %i, %k : tensor<{index}>",
                        f"%at = stablehlo.add %some, %wrong : tensor<{index}>"])
    before = module(stack(element, index, dim, "%at", values)).module
    after, _ = rewritten(before, ReshardToBroadcast())
    assert names(after) == ["all_reduce", "all_reduce"]
    for seed in range(3):
        report = check(before, after, seed=seed)
        assert report.equal, report.table()


def test_large_layers_are_switched_over_owners() -> None:
    text = stack().replace("x3x", "x65536x").replace("[1, 2, 3]", "[1, 2, 65536]")
    before = module(text).module
    after, remarks = rewritten(before, ReshardToBroadcast(topology=SLOW), ignore_cost=False)
    assert names(after) == ["all_reduce", *["collective_broadcast"] * 4]
    assert remarks == ["applied: one layer of 8 is sent where it is read: switch"]
    again, _ = rewritten(after, ReshardToBroadcast(topology=SLOW), ignore_cost=False)
    assert again.text() == after.text()


def test_cpu_has_no_broadcast() -> None:
    before = module(stack()).module
    after, _ = rewritten(before, ReshardToBroadcast(target="cpu", chain_bytes=0))
    assert not {"all_gather", "collective_broadcast"} & set(names(after))
    assert check(before, after).equal


def test_negative_index_is_clamped() -> None:
    extra = "%low = stablehlo.constant dense<-9> : tensor<i32>\n%at = stablehlo.minimum %low, %i : tensor<i32>"
    before = module(stack(position="%at", extra=extra)).module
    after, _ = rewritten(before, ReshardToBroadcast())
    assert names(after) == ["all_reduce", "all_reduce"]
    assert check(before, after).equal


CALLED = """func.func public @main(%w: tensor<2x3xf32>, %own: tensor<i32>) -> tensor<1x3xf32> {{
      %i = AR.maximum(%own) : tensor<i32>
      %g = "stablehlo.all_gather"(%w) {{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> :
        tensor<1x4xi64>, {channel}, use_global_device_ids}} : (tensor<2x3xf32>) -> tensor<8x3xf32>
      %r = func.call @index(%g, %{index}) : (tensor<8x3xf32>, tensor<i32>) -> tensor<1x3xf32>
      return %r : tensor<1x3xf32>
    }}
    func.func private @index(%g: tensor<8x3xf32>, %i: tensor<i32>) -> tensor<1x3xf32> {{
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r = stablehlo.dynamic_slice %g, %i, %z, sizes = [1, 3] : (tensor<8x3xf32>, tensor<i32>, tensor<i32>) ->
        tensor<1x3xf32>
      return %r : tensor<1x3xf32>
    }}"""


def test_layer_is_read_in_a_function() -> None:
    before = module(CALLED.format(channel=CHANNEL, index="i")).module
    after, remarks = rewritten(before, ReshardToBroadcast())
    assert names(after) == ["all_reduce", "all_reduce"] and "applied" in remarks[0]
    assert check(before, after).equal


def test_function_stays_when_its_index_varies() -> None:
    before = module(CALLED.format(channel=CHANNEL, index="own")).module
    after, remarks = rewritten(before, ReshardToBroadcast())
    assert after.text() == before.text() and "may read different layers" in remarks[0]


def test_wrong_options_are_told() -> None:
    with pytest.raises(UsageError, match="at least one chunk"):
        ReshardToBroadcast(chunks=0)


def program(source: str, target: str, second: str = "") -> Module:
    left, right = (f'!mpmd.mesh_tensor<"m{i}", tensor<16x16xf32>, sharding=<@mesh, {sharding}>, memory_kind="device">'
                   for i, sharding in enumerate((source, target)))
    mesh = '["x"=2, "y"=2]'
    return parse(f"""module {{
      sdy.mesh @mesh = <{mesh}>
      func.func public @main(%x: {left}) -> {right}
          attributes {{topology = #mpmd.topology<<"m0" : <{mesh}>>, <"m1" : <{mesh}{second}>>>}} {{
        %0 = mpmd.transfer %x : ({left}) -> {right}
        return %0 : {right}
      }}
    }}""")


def test_plan_in_the_program_is_the_plan_that_is_lowered() -> None:
    before = program('[{"x"}, {}]', '[{}, {"y"}]')
    step = ReshardToBroadcast(topology="p3.8xlarge:2x4")
    after, remarks = rewritten(before, step, ignore_cost=False)
    view = View(after)
    op = view.ops("mpmd.transfer")[0]
    planned = plan_transfer(op, view, "p3.8xlarge:2x4")
    assert planned is not None and not isinstance(planned, str)
    written = ir.DictAttr(op.attributes[PLAN])
    assert ir.StringAttr(written["digest"]).value == planned.plan.digest
    assert len(ir.ArrayAttr(written["tasks"])) == len(planned.plan.rows)
    assert lower(planned.plan, planned.element_type).devices == tuple(range(8))
    assert remarks[0].startswith("applied: the transfer is planned as broadcast")
    del op.attributes[PLAN]  # a reader who ignores the plan reads the program as it was
    assert after.text() == before.text()


def test_second_run_changes_nothing() -> None:
    step = ReshardToBroadcast(topology="p3.8xlarge:2x4")
    after, _ = rewritten(program('[{"x"}, {}]', '[{}, {"y"}]'), step, ignore_cost=False)
    again, remarks = rewritten(after, step, ignore_cost=False)
    assert again.text() == after.text() and not remarks


@pytest.mark.parametrize("sharding", ['[{"x"}, {"y"}]', "[{}, {}]", '[{}, {"y", "x"}]'])
def test_equal_layouts_are_left_alone(sharding: str) -> None:
    before = program(sharding, sharding)
    after, remarks = rewritten(before, ReshardToBroadcast())
    assert after.text() == before.text() and not remarks


def test_device_ids_of_a_mesh_count() -> None:
    before = program('[{"x"}, {}]', '[{}, {"y"}]', ", device_ids=[3, 2, 1, 0]")
    view = View(before)
    main = view.functions["main"]
    meshes = meshes_of_topology(main.attributes["topology"], "-")
    assert meshes["m1"].devices.tolist() == [3, 2, 1, 0]
    assert not isinstance(plan_transfer(view.ops("mpmd.transfer")[0], view), str)


def test_too_small_a_topology_is_told() -> None:
    with pytest.raises(UsageError, match="8 devices"):
        ReshardToBroadcast(topology="p3.8xlarge:1x4").run(program('[{"x"}, {}]', '[{}, {"y"}]'), PassContext())
