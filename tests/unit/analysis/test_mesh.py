"""Meshes and shardings of the sdy dialect."""

from __future__ import annotations

import pytest
from spmd_helpers import module

from hlorewrite.analysis.mesh import Mesh, axis_names, mesh_of, meshes, varying_axes
from hlorewrite.ir.binding import ir, sdy
from hlorewrite.ir.view import View

GRID = Mesh((("data", 2), ("model", 3)), tuple(range(6)))
MODULE = """
sdy.mesh @grid = <["data"=2, "model"=2]>
sdy.mesh @back = <["x"=4], device_ids=[3, 2, 1, 0]>
sdy.mesh @small = <["y"=2]>
sdy.mesh @one = <[], device_ids=[3]>
"""


def parsed(view: View, text: str) -> ir.Attribute:
    """An attribute of the view's context."""
    with view.module.context:
        return ir.Attribute.parse(text)


def test_coordinates_follow_the_order_of_the_axes_asked_for() -> None:
    assert GRID.size == 6
    assert GRID.coordinates(["data", "model"])[4] == (1, 1)
    assert GRID.coordinates(["model", "data"])[5] == (2, 1)
    assert GRID.coordinates(["unknown"]) == dict.fromkeys(range(6), ())


def test_coordinates_follow_explicit_device_ids() -> None:
    assert Mesh((("x", 2), ("y", 2)), (3, 1, 2, 0)).coordinates(["x"]) == {3: (0,), 1: (0,), 2: (1,), 0: (1,)}


@pytest.mark.parametrize(("axes", "groups"), [
    (["model"], {(0, 1, 2), (3, 4, 5)}), (["data"], {(0, 3), (1, 4), (2, 5)}),
    (["data", "model"], {(0, 1, 2, 3, 4, 5)}), ([], {(0,), (1,), (2,), (3,), (4,), (5,)})])
def test_groups_along_axes(axes: list[str], groups: set[tuple[int, ...]]) -> None:
    assert GRID.groups_along(axes) == {frozenset(group) for group in groups}


def test_meshes_of_a_module() -> None:
    by_name = meshes(module(MODULE))
    assert by_name == {"grid": Mesh((("data", 2), ("model", 2)), (0, 1, 2, 3)), "back": Mesh((("x", 4),), (3, 2, 1, 0)),
                       "small": Mesh((("y", 2),), (0, 1)), "one": Mesh((), (3,))}


def test_a_mesh_is_found_by_name_and_inline() -> None:
    view = module(MODULE)
    by_name = mesh_of(view, parsed(view, "@small"))
    assert by_name == mesh_of(view, parsed(view, '#sdy.mesh<["y"=2]>')) == Mesh((("y", 2),), (0, 1))
    assert mesh_of(view, parsed(view, "@missing")) is None
    assert mesh_of(view, parsed(view, "1 : i32")) is None


@pytest.mark.parametrize(("sharding", "axes"), [
    ('[{"data"}, {"model"}]', {"data", "model"}), ('[{}, {"data", "model"}]', {"data", "model"}), ("[{}, {?}]", set()),
    ('[{"data", ?}, {}]', {"data"}), ('[{}, {}], replicated={"data"}', set()),
    ('[{}, {}], unreduced={"model"}', {"model"}), ('[{"data":(1)2}, {}]', {"data"})])
def test_axes_along_which_a_value_differs(sharding: str, axes: set[str]) -> None:
    view = module(MODULE)
    assert varying_axes(sdy.TensorShardingAttr(parsed(view, f"#sdy.sharding<@grid, {sharding}>"))) == axes


@pytest.mark.parametrize(("groups", "names"), [
    ([[0, 1], [2, 3]], ("model",)), ([[2, 0], [3, 1]], ("data",)), ([[0, 1, 2, 3]], ("data", "model")),
    ([[0, 3], [1, 2]], None), ([[0, 1]], ("y",)), ([[0, 2]], None), ([[0], [1], [2], [3]], ())])
def test_the_axes_groups_span(groups: list[list[int]], names: tuple[str, ...] | None) -> None:
    assert axis_names(groups, module(MODULE)) == names
