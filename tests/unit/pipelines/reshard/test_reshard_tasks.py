"""Meshes, layouts and unit tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlorewrite.errors import UsageError
from hlorewrite.pipelines.reshard import ReshardMesh, from_boxes, parse_mesh, sharded, unit_tasks


def test_unit_tasks_of_case_six_are_ragged_against_each_other() -> None:
    have, want = parse_mesh("2x4"), parse_mesh("3x4", 8)
    tasks = unit_tasks(sharded((3072, 4), have, (("host",),)), sharded((3072, 4), want, (("host",),)))
    assert tasks.elements.tolist() == [4096, 2048, 2048, 4096]
    assert tasks.source.devices[tasks.source_tile].tolist() == [[0, 1, 2, 3]] * 2 + [[4, 5, 6, 7]] * 2


@st.composite
def shardings(draw: st.DrawFn) -> tuple[tuple[int, ...], ReshardMesh, tuple[tuple[str, ...], ...]]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    mesh = ReshardMesh(tuple((f"a{i}", size) for i, size in enumerate(sizes)), np.arange(math.prod(sizes)))
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=0, max_size=3)))
    axes = draw(st.permutations([name for name, _ in mesh.axes]))
    spec: list[tuple[str, ...]] = [() for _ in shape]
    for axis in axes:
        dim = draw(st.integers(0, len(shape)))
        if dim < len(shape):
            spec[dim] = (*spec[dim], axis)
    return shape, mesh, tuple(spec)


@given(shardings(), shardings())
def test_tasks_cover_every_destination_tile_once(first, second) -> None:
    shape, mesh, spec = first
    _, other, _ = second
    source = sharded(shape, mesh, spec)
    destination = sharded(shape, other, second[2][:len(shape)] if len(second[2]) >= len(shape) else second[2])
    tasks = unit_tasks(source, destination)
    seen = np.zeros((len(destination.devices), *shape), np.int32)
    for i in range(len(tasks)):
        box = tuple(slice(a, b) for a, b in zip(tasks.start[i], tasks.stop[i], strict=True))
        seen[(tasks.destination_tile[i], *box)] += 1
        for layout, tile in ((source, tasks.source_tile[i]), (destination, tasks.destination_tile[i])):
            lows = layout.tile_start(int(tile))
            inside = zip(lows, box, layout.tile_shape, strict=True)
            assert all(lo <= b.start and b.stop - lo <= size for lo, b, size in inside)
    assert seen.sum(axis=0).tolist() == np.ones(shape).tolist()
    assert (tasks.elements > 0).all()


def test_empty_and_scalar_tensors() -> None:
    mesh = parse_mesh("2x2")
    assert len(unit_tasks(sharded((0, 4), mesh, (("host",),)), sharded((0, 4), mesh, ()))) == 0
    scalar = unit_tasks(sharded((), mesh, ()), sharded((), parse_mesh("1x2", 4), ()))
    assert len(scalar) == 1 and scalar.elements.tolist() == [1]


def test_sub_axes_and_axis_order() -> None:
    mesh = ReshardMesh((("x", 4), ("y", 2)), np.arange(8))
    minor = sharded((4,), mesh, (("x:(2)2",),))
    assert minor.devices.tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert sharded((8,), mesh, (("y", "x"),)).devices.ravel().tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    with pytest.raises(UsageError, match="does not divide"):
        sharded((4,), mesh, (("x:(3)2",),))


def test_boxes_make_the_same_layout_as_a_mesh() -> None:
    mesh = parse_mesh("2x2")
    named = sharded((4, 6), mesh, (("gpu",), ("host",)))
    boxes = {}
    for device, tile in named.tile_of_device().items():
        starts = named.tile_start(tile)
        boxes[device] = [(s, s + t) for s, t in zip(starts, named.tile_shape, strict=True)]
    layout = from_boxes((4, 6), boxes)
    assert layout.devices.tolist() == named.devices.tolist()
    with pytest.raises(UsageError, match="not a grid"):
        from_boxes((4,), {0: [(0, 2)], 1: [(0, 4)]})


def test_splitting_keeps_every_element() -> None:
    mesh = parse_mesh("1x2")
    tasks = unit_tasks(sharded((5, 3), mesh, (("gpu",),)), sharded((5, 3), parse_mesh("1x1", 2), ()))
    cut = tasks.split(4)
    assert cut.elements.sum() == tasks.elements.sum() and len(cut) == 6  # 3 x 3 and 2 x 3 elements, each in 3
