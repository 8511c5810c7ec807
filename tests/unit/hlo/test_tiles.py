"""Which part of a value each device holds: shardings as XLA prints them, and those that are not read."""

from __future__ import annotations

import pytest

from hlorewrite.hlo.tiles import tiles_of


@pytest.mark.parametrize(("sharding", "rank", "parts", "places"), [
    ("", 2, (1, 1), [[0, 0, 0, 0], [0, 0, 0, 0]]),
    ("{replicated}", 1, (1,), [[0, 0, 0, 0]]),
    ("{mesh['a'=2,'b'=2], replicated}", 1, (1,), [[0, 0, 0, 0]]),
    ("{mesh[], replicated}", 0, (), []),
    ("{mesh['a'=2,'b'=2], [{'a'}, {'b'}]}", 2, (2, 2), [[0, 0, 1, 1], [0, 1, 0, 1]]),
    ("{mesh['a'=2,'b'=2], [{}, {'b', 'a'}]}", 2, (1, 4), [[0, 0, 0, 0], [0, 2, 1, 3]]),
    ("{devices=[4,1]<=[4]}", 2, (4, 1), [[0, 1, 2, 3], [0, 0, 0, 0]]),
    ("{devices=[2,2]<=[2,2]T(1,0)}", 2, (2, 2), [[0, 1, 0, 1], [0, 0, 1, 1]]),
    ("{devices=[1,2,2]<=[4] last_tile_dim_replicate}", 2, (1, 2), [[0, 0, 0, 0], [0, 0, 1, 1]])])
def test_parts_of_devices(sharding: str, rank: int, parts: tuple[int, ...], places: list[list[int]]):
    tiles = tiles_of(sharding, rank, 4)
    assert tiles is not None
    assert tiles.parts == parts
    assert [tiles.place(dim) for dim in range(rank)] == places


def test_devices_along_a_dimension_are_in_order():
    tiles = tiles_of("{mesh['a'=2,'b'=2], [{'b'}]}", 1, 4)
    assert tiles is not None
    assert (tiles.along(0), tiles.along(1)) == ([[0, 1], [2, 3]], [[0, 2], [1, 3]])


@pytest.mark.parametrize("sharding", [
    "{maximal device=0}", "{manual}", "{devices=[2,1]0,1}", "{mesh['a'=4], [{'a':(1)2}]}",
    "{mesh['a'=4, device_ids=[3,2,1,0]], [{'a'}]}", "{mesh['a'=4], [{'a', ?}]}", "{mesh['a'=2], [{'a'}]}",
    "{mesh['a'=4], [{'a'}, {}]}", "{devices=[2,2]<=[4]}", "{mesh['a'=4], [{}], unreduced={'a'}}"])
def test_other_shardings_are_not_read(sharding: str):
    assert tiles_of(sharding, 1, 4) is None
