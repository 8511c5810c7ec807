"""Transfers between meshes: the least permute that moves what each device needs."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.cost.report.report import build_report
from hlorewrite.errors import InputError
from hlorewrite.ir.load import parse
from hlorewrite.pipelines.adapter.collectives import collectives_of_program

MESH = '<["x"=2, "y"=2]>'


def program(source: str, target: str) -> str:
    left, right = (f'!mpmd.mesh_tensor<"m{i}", tensor<8x8xf32>, sharding=<@mesh, {sharding}>>'
                   for i, sharding in enumerate((source, target)))
    return f"""module {{
      sdy.mesh @mesh = {MESH}
      func.func public @main(%x: {left}) -> {right}
          attributes {{topology = #mpmd.topology<<"m0" : {MESH}>, <"m1" : {MESH}>>}} {{
        %0 = mpmd.transfer %x : ({left}) -> {right}
        return %0 : {right}
      }}
    }}"""


@pytest.mark.parametrize(("source", "target", "received", "senders"), [
    ('[{"x"}, {}]', '[{"x"}, {}]', 128, 4),  # same sharding: each device from the one at its place
    ('[{}, {}]', '[{"x"}, {}]', 128, 4),  # every source holds all
    ('[{"x"}, {}]', '[{}, {}]', 256, 4),  # each device gathers both halves
    ('[{"x", "y"}, {}]', '[{}, {"x", "y"}]', 64, 4),  # rows to columns: a part of every source
    ('[{"x"}, {}]', '[{"y"}, {}]', 128, 4),
])
def test_bytes_of_a_transfer(source: str, target: str, received: int, senders: int) -> None:
    devices, collectives, _ = collectives_of_program(parse(program(source, target)))
    matrix = build_report("p", "mpmd", devices, collectives).matrix()
    assert devices == 8 and np.all(matrix[:, :4] == 0) and np.all(matrix[4:] == 0)
    np.testing.assert_array_equal(matrix[:4, 4:].sum(0), received)
    assert np.count_nonzero(matrix.sum(1)) == senders


def test_same_sharding_stays_at_its_place() -> None:
    devices, collectives, _ = collectives_of_program(parse(program('[{"x"}, {"y"}]', '[{"x"}, {"y"}]')))
    np.testing.assert_array_equal(build_report("p", "mpmd", devices, collectives).matrix()[:4, 4:], 64 * np.eye(4))


def test_unknown_mesh_is_told() -> None:
    text = program('[{}, {}]', '[{}, {}]').replace('<"m1" : ', '<"m2" : ')
    with pytest.raises(InputError):
        collectives_of_program(parse(text))
