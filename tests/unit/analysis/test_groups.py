"""Replica groups, read, checked and compared."""

from __future__ import annotations

import pytest
from spmd_helpers import CHANNEL, groups, module, rows

from hlorewrite.analysis.groups import (
    Groups,
    device_count,
    groups_of,
    id_mode,
    process_groups,
    replica_count,
    written_groups,
    written_pairs,
)
from hlorewrite.checks.reference.sequentialize.grid import Grid
from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

GLOBAL = f"{CHANNEL}, use_global_device_ids"


def reduced(replica_groups: str, more: str = GLOBAL, partitions: int = 4, replicas: int = 1) -> Groups | str:
    view = module(f"""sdy.mesh @grid = <["a"=2, "b"=2]>
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %r = "stablehlo.all_reduce"(%x) ({{^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32>}})
        {{replica_groups = {replica_groups}, {more}}} : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }}""", partitions, replicas)
    return groups(view, "stablehlo.all_reduce")


def test_dense_groups_keep_the_order_of_their_members() -> None:
    groups = reduced("dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>")
    assert groups == rows((2, 0), (1, 3))
    assert isinstance(groups, Groups) and groups.size == 2 and str(groups) == "{{2,0},{1,3}}"
    assert groups.key == rows((3, 1), (0, 2)).key
    assert groups.key != rows((0, 1), (2, 3)).key
    assert groups.key != rows((2, 0), (1, 3), mode="cross_replica").key
    assert rows().size == 0


def test_equal_lists_are_read_once_for_each_mode() -> None:
    """The same list means other devices where the mode is another, and is checked against another count."""
    view = module("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {" + "".join(
        f"""%r{number} = "stablehlo.all_reduce"(%x) ({{^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32>}})
        {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>{more}}} : (tensor<4xf32>) -> tensor<4xf32>
        """ for number, more in enumerate((f", {GLOBAL}", f", {GLOBAL}", "", f", {CHANNEL}"))) + (
        "return %r0 : tensor<4xf32> }"), 2, 1)
    first, second, replicas, both = (written_groups(op, view) for op in view.ops("stablehlo.all_reduce"))
    assert first == rows((0, 1)) and second is first
    assert replicas == "its replica groups name replica 1, but the module has 1"
    assert both == "its replica groups name replica 1, but the module has 1"


@pytest.mark.parametrize(("axes", "expected"), [
    ('#stablehlo.axis_ref<name = "b">', rows((0, 1), (2, 3))),
    ('#stablehlo.axis_ref<name = "a">', rows((0, 2), (1, 3))),
    ('#stablehlo.axis_ref<name = "a">, #stablehlo.axis_ref<name = "b">', rows((0, 1, 2, 3))),
    ('#stablehlo.axis_ref<name = "b">, #stablehlo.axis_ref<name = "a">', rows((0, 2, 1, 3)))])
def test_groups_written_as_axes_of_a_mesh(axes: str, expected: Groups) -> None:
    assert reduced(f"#stablehlo.replica_group_mesh_axes<mesh = @grid, axes = [{axes}]>") == expected


@pytest.mark.parametrize(("axes", "expected"), [
    ("(1)2", rows((0, 4), (1, 5), (2, 6), (3, 7))), ("(2)2", rows((0, 2), (1, 3), (4, 6), (5, 7))),
    ("(4)2", rows((0, 1), (2, 3), (4, 5), (6, 7))), ("(1)4", rows((0, 2, 4, 6), (1, 3, 5, 7))),
    ("(4)2 (1)2", rows((0, 4, 1, 5), (2, 6, 3, 7))), ("(1)4 (2)2", "overlap"), ("(1)3", "does not divide")])
def test_groups_written_as_parts_of_an_axis(axes: str, expected: Groups | str) -> None:
    """A part is a digit of the place along the axis: of ``(2)2`` the second of three."""
    parts = ", ".join(f'#stablehlo.axis_ref<name = "x", sub_axis_info = {part}>' for part in axes.split())
    found = reduced(f'#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = '
                    f'"x", size = 8>]>, axes = [{parts}]>', partitions=8)
    assert expected in found if isinstance(expected, str) and isinstance(found, str) else found == expected


@pytest.mark.parametrize(("attribute", "sentence"), [
    ('#stablehlo.replica_group_mesh_axes<mesh = @grid, axes = [#stablehlo.axis_ref<name = "a", '
     "sub_axis_info = (1)4>]>", "a part of the axis \"a\" that does not divide it"),
    ("dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>", "uneven size"),
    ("dense<[[0, 1], [2, 3], [4, 5]]> : tensor<3x2xi64>", "name device 5, but the module has 4"),
    ("dense<[[0, 1]]> : tensor<1x2xi64>", "cover 2 of 4 devices"),
])
def test_ill_formed_groups_are_refused_with_a_sentence(attribute: str, sentence: str) -> None:
    groups = reduced(attribute)
    assert isinstance(groups, str) and sentence in groups


def test_a_mesh_written_in_place_may_list_its_devices() -> None:
    def along(ids: str) -> Groups | str:
        return reduced('#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = '
                       f'"x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 2>], device_ids = {ids}>, '
                       'axes = [#stablehlo.axis_ref<name = "x">]>')

    assert along("dense<[0, 2, 1, 3]> : tensor<4xi64>") == rows((0, 1), (2, 3))
    for wrong in ("dense<[0, 2]> : tensor<2xi64>", "dense<0> : tensor<4xi64>", "dense<[0, 1, 2, -3]> : tensor<4xi64>"):
        with pytest.raises(InputError, match="not one for each of the 4 positions"):
            along(wrong)


def test_a_module_of_one_device_says_how_it_comes_about() -> None:
    """What JAX makes of a step over an abstract mesh when its arguments have no shardings."""
    groups = reduced("dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>", partitions=1)
    assert isinstance(groups, str)
    assert groups.startswith(
        "its replica groups name device 7, but the module has 1; was it lowered without shardings?")
    assert "sharding=NamedSharding(mesh, spec)" in groups
    of_two = reduced("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", partitions=2)
    assert of_two == "its replica groups name device 3, but the module has 2"


def test_a_mesh_that_is_missing_and_a_device_named_twice_are_refused() -> None:
    """MLIR's verifier refuses both in text; an edit could still make them."""
    view = module("""sdy.mesh @grid = <["a"=2, "b"=2]>
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = AR(%x) : tensor<4xf32>
      return %r : tensor<4xf32> }""")
    op = view.ops("stablehlo.all_reduce")[0]
    with view.module.context:
        op.attributes["replica_groups"] = ir.Attribute.parse(
            '#stablehlo.replica_group_mesh_axes<mesh = @other, axes = [#stablehlo.axis_ref<name = "a">]>')
    assert groups_of(op, view) == "its replica groups name a mesh that the module does not contain"
    with view.module.context:
        op.attributes["replica_groups"] = ir.Attribute.parse("dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>")
    assert groups_of(op, view) == "a device appears twice in its replica groups"
    with view.module.context:
        op.attributes["replica_groups"] = ir.Attribute.parse("1 : i32")
    groups = groups_of(op, view)
    assert isinstance(groups, str) and "unknown form (1 : i32)" in groups
    del op.attributes["replica_groups"]
    assert groups_of(op, view) == "it has no replica groups"


def test_empty_groups_mean_all_devices() -> None:
    """Of the op's mode: XLA reads no groups as one of all."""
    empty = "dense<> : tensor<0x0xi64>"
    assert reduced(empty, CHANNEL, partitions=1, replicas=2) == Groups(((0, 1),), "cross_replica_and_partition")
    assert reduced(empty, "test.x", partitions=1, replicas=2) == Groups(((0, 1),), "cross_replica")


@pytest.mark.parametrize(("attributes", "mode"), [
    (GLOBAL, "flattened_ids"), (CHANNEL, "cross_replica_and_partition"), ("test.x", "cross_replica"),
    ("channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>", "cross_replica")])
def test_modes_of_an_all_reduce(attributes: str, mode: str) -> None:
    replicas = 1 if "flat" in mode else 4
    groups = reduced("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", attributes, 4 // replicas, replicas)
    assert isinstance(groups, Groups) and groups.mode == mode


@pytest.mark.parametrize(("attributes", "mode"), [(CHANNEL, "cross_partition"), ("test.x", "cross_replica")])
def test_modes_of_an_op_without_global_ids(attributes: str, mode: str) -> None:
    view = module(f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %r = "stablehlo.collective_broadcast"(%x) {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
        {attributes}}} : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }}""")
    assert id_mode(view.ops("stablehlo.collective_broadcast")[0]) == mode


def test_global_ids_without_a_channel_contradict_each_other() -> None:
    view = module("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = AR(%x) : tensor<4xf32>
      return %r : tensor<4xf32> }""")
    op = view.ops("stablehlo.all_reduce")[0]
    del op.attributes["channel_handle"]
    assert id_mode(op) is None
    assert groups_of(op, view) == "it uses global device ids without a channel id"


def test_groups_of_replicas_need_not_cover_the_partitions() -> None:
    groups = reduced("dense<[[0, 1]]> : tensor<1x2xi64>", "test.x", partitions=4, replicas=2)
    assert groups == rows((0, 1), mode="cross_replica")


@pytest.mark.parametrize("more", ["test.x", CHANNEL])
def test_groups_of_replicas_cover_the_replicas(more: str) -> None:
    assert reduced("dense<[[0, 1]]> : tensor<1x2xi64>", more, partitions=1, replicas=4) == (
        "its replica groups cover 2 of 4 replicas")
    assert reduced("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", more, partitions=4, replicas=2) == (
        "its replica groups name replica 3, but the module has 2")


def test_groups_of_partitions_cover_the_partitions() -> None:
    def sent(partitions: int, replicas: int) -> Groups | str:
        return groups(module(f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %r = "stablehlo.collective_broadcast"(%x) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {CHANNEL}}}
            : (tensor<4xf32>) -> tensor<4xf32>
          return %r : tensor<4xf32> }}""", partitions, replicas), "stablehlo.collective_broadcast")
    assert sent(2, 2) == rows((0, 1), mode="cross_partition")
    assert sent(4, 1) == "its replica groups cover 2 of 4 devices"


def test_counts_of_devices() -> None:
    silent = View(parse("func.func private @f()"))
    assert (device_count(silent), replica_count(silent)) == (None, 1)
    told = module("func.func private @f()", 4, 2)
    assert (device_count(told), replica_count(told)) == (8, 2)


def test_groups_that_join_all_partitions_are_read_and_not_rewritten() -> None:
    """A row of replicas does not hold all members of such a group, so analyses must not take it for one."""
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %r = "stablehlo.all_reduce"(%x) ({{^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32>}})
        {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {CHANNEL}}} : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }}"""
    view = module(text, 4, 2)
    op = view.ops("stablehlo.all_reduce")[0]
    groups = groups_of(op, view)
    assert isinstance(groups, str) and "join all partitions of their replicas" in groups
    assert written_groups(op, view) == rows((0, 1), mode="cross_replica_and_partition")
    alone = module(text, 1, 2)
    assert groups_of(alone.ops("stablehlo.all_reduce")[0], alone) == rows((0, 1), mode="cross_replica_and_partition")


@pytest.mark.parametrize(("mode", "listed", "expected"), [
    ("flattened_ids", ((0, 3), (1, 2)), ((0, 3), (1, 2))),
    ("cross_partition", ((1, 0),), ((1, 0), (3, 2))),
    ("cross_replica", ((1, 0),), ((2, 0), (3, 1))),
    ("cross_replica_and_partition", ((0,), (1,)), ((0, 1), (2, 3))),
    ("cross_replica_and_partition", ((0, 1),), ((0, 2, 1, 3),)),
])
def test_process_groups_follow_the_specification(mode: str, listed: tuple[tuple[int, ...], ...],
                                                 expected: tuple[tuple[int, ...], ...]) -> None:
    """Two replicas of two partitions; process ids are replica * 2 + partition."""
    assert process_groups(listed, mode, 2, 2) == expected


@pytest.mark.parametrize(("replicas", "partitions"), [(1, 4), (4, 1), (2, 3), (3, 2)])
def test_process_groups_are_those_the_oracle_executes(replicas: int, partitions: int) -> None:
    """The oracle reads the specification on its own; members have the same order, which all-gathers depend on."""
    grid = Grid(replicas, partitions)
    over_replicas, over_partitions = [tuple(range(replicas))[::-1]], [tuple(range(partitions))[::-1]]
    for mode, listed, executed in [("cross_replica", over_replicas, grid.cross_replica),
                                   ("cross_partition", over_partitions, grid.cross_partition),
                                   ("cross_replica_and_partition", over_replicas, grid.cross_replica_and_partition)]:
        assert set(process_groups(tuple(listed), mode, replicas, partitions)) == set(executed(listed))


@pytest.mark.parametrize(("pairs", "reason"), [
    ([[0, 1], [1, 4]], "its source-target pairs name device 4, but the module has 4"),
    ([[7, 1], [1, 2]], "its source-target pairs name device 7, but the module has 4"),
])
def test_pairs_that_the_specification_forbids(pairs: list[list[int]], reason: str) -> None:
    """MLIR's verifier does not know how many devices there are."""
    view = module(f"""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
      %r = "stablehlo.collective_permute"(%a) <{{source_target_pairs = dense<{pairs}> : tensor<2x2xi64>, {CHANNEL}}}>
        : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }}""")
    op = view.ops("stablehlo.collective_permute")[0]
    assert written_pairs(op, view) == reason


def test_groups_and_pairs_of_one_attribute_are_told_apart() -> None:
    view = module("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %r = "stablehlo.all_reduce"(%x) ({^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32>})
          {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
        %c = "stablehlo.collective_permute"(%r) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} :
          (tensor<4xf32>) -> tensor<4xf32>
        return %c : tensor<4xf32> }""", 1, 2)
    reduce, permute = view.ops("stablehlo.all_reduce")[0], view.ops("stablehlo.collective_permute")[0]
    for _ in range(2):
        assert written_groups(reduce, view) == Groups(((0, 1),), "cross_replica")
        assert written_pairs(permute, view) == ((0, 1),)
