"""The programs of each device around the partitioner, and when they are not known."""

from __future__ import annotations

import re

import pytest

from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.hlo.per_device import per_device_pair
from hlorewrite.hlo.plain_hlo import plain_hlo

BEFORE = """HloModule m, num_partitions=2

ENTRY %main (x: f32[4,2], y: f32[2]) -> f32[4,2] {
  %x = f32[4,2]{1,0} parameter(0), sharding={mesh['d'=2], [{'d'}, {}]}
  %y = f32[2]{0} parameter(1), sharding={mesh['d'=2], [{}]}
  %b = f32[4,2]{1,0} broadcast(%y), dimensions={1}
  %c = f32[4,2]{1,0} custom-call(%b), custom_call_target="Sharding", sharding={mesh['d'=2], [{'d'}, {}]}
  ROOT %r = f32[4,2]{1,0} add(%x, %c), sharding={mesh['d'=2], [{'d'}, {}]}
}
"""
AFTER = """HloModule m, num_partitions=2

ENTRY %main_spmd (x: f32[2,2], y: f32[2]) -> f32[2,2] {
  %x = f32[2,2]{1,0} parameter(0)
  %y = f32[2]{0} parameter(1)
  %b = f32[2,2]{1,0} broadcast(%y), dimensions={1}
  ROOT %r = f32[2,2]{1,0} add(%x, %b)
}
"""


def test_arguments_are_gathered_and_own_parts_taken():
    pair = per_device_pair(parse_hlo(BEFORE), parse_hlo(BEFORE), parse_hlo(AFTER))
    assert pair is not None
    made, same = ([each.opcode for each in module.computations[module.entry].instructions.values()] for module in pair)
    assert made.count("all-gather") == 1
    assert (made.count("collective-broadcast"), same.count("collective-broadcast")) == (1, 1)
    assert (made[-1], same[-1]) == ("dynamic-slice", "call")
    text = plain_hlo(pair[0]).text
    assert re.search(r"all-gather\(%v0\), channel_id=\d+, replica_groups=\{\{0,1\}\}, dimensions=\{0\}", text)
    assert "constant({0, 2})" in text


@pytest.mark.parametrize(("before", "after"), [
    (BEFORE.replace("[{'d'}, {}]}\n  %y", "[{'d':(1)2}, {}]}\n  %y"), AFTER),
    (BEFORE.replace("f32[4,2]", "f32[3,2]"), AFTER.replace("f32[2,2]", "f32[1,2]")),
    (BEFORE, AFTER.replace("f32[2,2]", "f32[4,2]")),
    (BEFORE.replace("%b = f32[4,2]{1,0} broadcast(%y), dimensions={1}",
                    "%p = u32[] partition-id()\n  %b = f32[4,2]{1,0} broadcast(%y), dimensions={1}"), AFTER),
    (BEFORE.replace('"Sharding"', '"xla.sdy.GlobalToLocalShape"'), AFTER),
    (BEFORE.replace("num_partitions=2", "replica_count=2, num_partitions=2"), AFTER)])
def test_what_is_not_known_is_not_compared(before: str, after: str):
    assert (before, after) != (BEFORE, AFTER)
    assert per_device_pair(parse_hlo(before), parse_hlo(before), parse_hlo(after)) is None
