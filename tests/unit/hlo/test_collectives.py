"""Collectives read from HLO text: payloads, nested loops, asynchronous and variadic forms, groups, sources."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hlorewrite.errors import InputError
from hlorewrite.hlo.collectives import HloCollective, collectives, executed_bytes
from hlorewrite.hlo.groups import parse_groups, parse_pairs
from hlorewrite.hlo.shapes import shape_bytes

GLOBAL = "channel_id=1, use_global_device_ids=true"
FRAME, PAIRS = "metadata={stack_frame_id=1}", "channel_id=1, source_target_pairs={{0,1},{1,0}}"
ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
"""

NESTED = f"""HloModule nested, num_partitions=8

FileNames
1 "train.py"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=7 end_line=7 column=3 end_column=9}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}

{ADD}
%inner_condition (s: (s32[], f32[16])) -> pred[] {{
  %s = (s32[], f32[16]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %bound = s32[] constant(11)
  ROOT %less = pred[] compare(%i, %bound), direction=LT
}}
%inner_body (s.1: (s32[], f32[16])) -> (s32[], f32[16]) {{
  %s.1 = (s32[], f32[16]{{0}}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %two = s32[] constant(2)
  %next = s32[] add(%i.1, %two)
  %x = f32[16]{{0}} get-tuple-element(%s.1), index=1
  %r = f32[16]{{0}} all-reduce(%x), {GLOBAL}, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, to_apply=%add, FRAME
  ROOT %out = (s32[], f32[16]{{0}}) tuple(%next, %r)
}}
%outer_condition (o: (s32[], f32[16])) -> pred[] {{
  %o = (s32[], f32[16]{{0}}) parameter(0)
  ROOT %t = pred[] constant(true)
}}
%outer_body (o.1: (s32[], f32[16])) -> (s32[], f32[16]) {{
  %o.1 = (s32[], f32[16]{{0}}) parameter(0)
  %x.1 = f32[16]{{0}} get-tuple-element(%o.1), index=1
  %start = s32[] constant(1)
  %init = (s32[], f32[16]{{0}}) tuple(%start, %x.1)
  ROOT %w = (s32[], f32[16]{{0}}) while(%init), condition=%inner_condition, body=%inner_body
}}
ENTRY %main (p: f32[16]) -> f32[16] {{
  %p = f32[16]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %init.1 = (s32[], f32[16]{{0}}) tuple(%zero, %p)
  %w.1 = (s32[], f32[16]{{0}}) while(%init.1), condition=%outer_condition, body=%outer_body, KNOWN
  ROOT %end = f32[16]{{0}} get-tuple-element(%w.1), index=1
}}
"""


def test_nested_loops_multiply_and_a_missing_trip_count_is_read_from_the_condition():
    known = 'backend_config={"known_trip_count":{"n":"3"}}'
    (collective,) = collectives(NESTED.replace("FRAME", FRAME).replace("KNOWN", known))
    assert (collective.trips, collective.loop_depth, collective.bytes, collective.executed_bytes) == (15, 2, 64, 960)
    assert collective.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert collective.source == "train.py:7:3"
    assert collective.trips_known


def test_a_loop_without_any_trip_count_counts_once_and_says_so():
    (collective,) = collectives(NESTED.replace("FRAME", FRAME).replace("KNOWN", "metadata={}"))
    assert collective.trips == 5
    assert not collective.trips_known


ASYNC = f"""HloModule forms, num_partitions=8
{ADD}
%wrapped (w: f32[64]) -> f32[8] {{
  %w = f32[64]{{0}} parameter(0)
  ROOT %rs = f32[8]{{0}} reduce-scatter(%w), {GLOBAL}, replica_groups=[1,8]<=[8], dimensions={{0}}, to_apply=%add
}}
ENTRY %main (p: f32[64], q: bf16[4]) -> f32[8] {{
  %p = f32[64]{{0}} parameter(0)
  %q = bf16[4]{{0}} parameter(1)
  %ars = (f32[64]{{0}}, bf16[4]{{0}}) all-reduce-start(%p, %q), {GLOBAL}, replica_groups={{}}, to_apply=%add
  %ard = (f32[64]{{0}}, bf16[4]{{0}}) all-reduce-done(%ars)
  %ags = (bf16[4]{{0}}, bf16[8]{{0}}) all-gather-start(%q), {GLOBAL}, replica_groups=[4,2]<=[8], dimensions={{0}}
  %agd = bf16[8]{{0}} all-gather-done(%ags)
  %cps = (f32[64]{{0}}, f32[64]{{0}}, u32[], u32[]) collective-permute-start(%p), PAIRS
  %cpd = f32[64]{{0}} collective-permute-done(%cps)
  %rss = ((f32[64]{{0}}), f32[8]{{0}}, u32[]) async-start(%p), calls=%wrapped
  ROOT %rsd = f32[8]{{0}} async-done(%rss)
}}
"""


def test_asynchronous_pairs_count_once_and_payloads_are_per_kind():
    by_kind = {c.kind: c for c in collectives(ASYNC.replace("PAIRS", PAIRS))}
    assert {kind: c.bytes for kind, c in by_kind.items()} == {
        "all-reduce": 64 * 4 + 4 * 2, "all-gather": 16, "collective-permute": 256, "reduce-scatter": 256}
    assert by_kind["all-reduce"].groups == (tuple(range(8)),)
    assert by_kind["all-gather"].groups == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert by_kind["collective-permute"].groups == ((0, 1), (1, 0))
    assert executed_bytes(by_kind.values()) == {"all-gather": 16, "all-reduce": 264, "collective-permute": 256,
                                                "reduce-scatter": 256}


def test_a_branch_of_a_conditional_counts_as_if_it_ran():
    text = f"""HloModule branches, num_partitions=2
{ADD}
%yes (y: f32[4]) -> f32[4] {{
  %y = f32[4]{{0}} parameter(0)
  ROOT %r = f32[4]{{0}} all-reduce(%y), {GLOBAL}, replica_groups={{{{0,1}}}}, to_apply=%add
}}
%no (n: f32[4]) -> f32[4] {{
  ROOT %n = f32[4]{{0}} parameter(0)
}}
ENTRY %main (p: pred[], x: f32[4]) -> f32[4] {{
  %p = pred[] parameter(0)
  %x = f32[4]{{0}} parameter(1)
  ROOT %c = f32[4]{{0}} conditional(%p, %x, %x), true_computation=%yes, false_computation=%no
}}
"""
    assert [(c.trips, c.bytes) for c in collectives(text)] == [(1, 16)]


@pytest.mark.parametrize(("text", "groups"), [
    ("replica_groups={}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
    ("replica_groups={{0,4},{1,5}}", ((0, 4), (1, 5))),
    ("replica_groups=[2,4]<=[2,2,2]T(1,0,2)", ((0, 1, 4, 5), (2, 3, 6, 7))),
    ("replica_groups=mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("replica_groups=mesh['x'=2,'y'=4] {'x','y'}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
    ("replica_groups=mesh['x'=2,'y'=4], device_ids=([2,2,2]T(1,0,2)) {'x'}", ((0, 2), (1, 3), (4, 6), (5, 7))),
    ("replica_groups=mesh['x'=2,'y'=2], device_ids=(3,2,1,0) {'y'}", ((3, 2), (1, 0))),
    ("replica_groups=mesh['x'=8] {'x':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("replica_groups=mesh['x'=8] {'x':(2)4}", ((0, 1, 2, 3), (4, 5, 6, 7))),
])
def test_every_way_to_write_groups(text: str, groups: tuple):
    assert parse_groups(text + ", dimensions={0}", 8) == groups


def test_pairs_shapes_and_text_without_an_entry():
    assert parse_pairs("source_target_pairs={{0,3},{3,0}}, metadata={}") == ((0, 3), (3, 0))
    assert shape_bytes("(f8e4m3fn[16]{0}, s4[3]{0}, token[], c64[2])") == 16 + 2 + 16
    with pytest.raises(InputError, match="cannot be read"):
        parse_groups("replica_groups=somehow_new", 8)
    with pytest.raises(InputError, match="is not HLO as XLA prints it"):
        collectives("nothing")


@pytest.mark.parametrize(("attributes", "expected"), [
    ("channel_id=1, use_global_device_ids=true, replica_groups={{0,1},{2,3}}", ((0, 1), (2, 3))),
    ("replica_groups={{0,1}}", ((0, 2), (1, 3))),
    ("replica_groups={}", ((0, 2), (1, 3))),
    ("channel_id=1, replica_groups={{0},{1}}", ((0, 1), (2, 3))),
    ("channel_id=1, replica_groups={{0,1}}", ((0, 1, 2, 3),)),
    ("replica_groups={{0,1},{2,3}}", ((0, 1), (2, 3))),  # ids of no mode without a channel: device numbers
])
def test_groups_in_every_mode_become_device_numbers(attributes: str, expected: tuple[tuple[int, ...], ...]) -> None:
    (collective,) = collectives(f"""HloModule modes, replica_count=2, num_partitions=2
{ADD}
ENTRY %main (x: f32[4]) -> f32[4] {{
  %x = f32[4]{{0}} parameter(0)
  ROOT %r = f32[4]{{0}} all-reduce(%x), {attributes}, to_apply=%add
}}
""")
    assert collective.groups == expected


def test_pairs_of_a_permute_in_both_modes() -> None:
    for channel, expected in (("channel_id=1, ", ((0, 1), (2, 3))), ("", ((0, 2), (1, 3)))):
        (collective,) = collectives(f"""HloModule pairs, replica_count=2, num_partitions=2
ENTRY %main (x: f32[4]) -> f32[4] {{
  %x = f32[4]{{0}} parameter(0)
  ROOT %r = f32[4]{{0}} collective-permute(%x), {channel}source_target_pairs={{{{0,1}}}}
}}
""")
        assert collective.groups == expected


def test_damaged_text_ends_in_one_line() -> None:
    """A computation that calls itself, and an instruction that reads itself."""
    calls_itself = ADD.replace("add(%a, %b)", "call(%a, %b), to_apply=%add") + """
ENTRY %main (a: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %c = f32[] call(%a, %a), to_apply=%add
}
"""
    with pytest.raises(InputError, match="the computation add calls itself"):
        collectives("HloModule damaged\n" + calls_itself)
    reads_itself = NESTED.replace("%bound = s32[] constant(11)", "%bound = s32[] copy(%bound)")
    assert reads_itself != NESTED and collectives(reads_itself)


def test_an_operand_may_be_an_element_of_a_tuple() -> None:
    """Newer XLA writes ``%while#1`` in the place of a get-tuple-element."""
    text = """HloModule m, is_scheduled=true, num_partitions=2

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,8], i: s32[]) -> f32[8,8] {
  %x = f32[8,8]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %pair = (s32[], /*index=1*/f32[8,8]{1,0}) tuple(%i, %x)
  ROOT %r = f32[8,8]{1,0} all-reduce(%pair#1), channel_id=1, replica_groups={{0,1}}, to_apply=%sum
}
"""
    assert [(found.kind, found.bytes) for found in collectives(text)] == [("all-reduce", 256)]


def test_bytes_on_the_wire_are_a_share_of_the_payload_of_all_executions() -> None:
    def sent(kind: str, members: int) -> Fraction:
        return HloCollective(kind, "c", 800, 3, 1, (tuple(range(members)),), "?").wire_bytes

    assert sent("all-reduce", 8) == sent("reduce-scatter", 8) + sent("all-gather", 8) == 2 * 7 * 300
    assert sent("all-to-all", 8) == 7 * 300 and sent("all-reduce", 1) == 0
    assert sent("collective-permute", 2) == sent("collective-broadcast", 8) == 2400


def test_operands_that_say_where_results_go_are_not_sent() -> None:
    """A ragged all-to-all reads offsets, sizes and an output; a permute may send slices into an output."""
    text = """HloModule m, is_scheduled=true, num_partitions=4

ENTRY %main (p: f32[8,128], z: f32[16,128], i: s32[4]) -> f32[16,128] {
  %p = f32[8,128]{1,0} parameter(0)
  %z = f32[16,128]{1,0} parameter(1)
  %i = s32[4]{0} parameter(2)
  %n = s32[] constant(2)
  %at = (s32[], s32[]) tuple(%n, %n)
  %r = f32[16,128]{1,0} ragged-all-to-all(%p, %z, %i, %i, %i, %i), channel_id=1, replica_groups={{0,1,2,3}}
  ROOT %c = f32[16,128]{1,0} collective-permute(%p, %r, %at, %at), channel_id=2, source_target_pairs={{0,1},{1,2}}, \
slice_sizes={{2,128}}
}
"""
    assert [(found.kind, found.bytes) for found in collectives(text)] == [
        ("ragged-all-to-all", 8 * 128 * 4), ("collective-permute", 2 * 128 * 4)]


def test_names_in_strings_are_no_attributes() -> None:
    """Groups and callees are read where they are stated, also behind metadata that spell them."""
    text = NESTED.replace("to_apply=%add, FRAME", f"to_apply=%add, {FRAME}")
    named = text.replace(f"all-reduce(%x), {GLOBAL}",
                         f'all-reduce(%x), metadata={{op_name="replica_groups={{{{0}}}} to_apply=%f"}}, {GLOBAL}')
    looped = named.replace("while(%init), condition", 'while(%init), frontend_attributes={a=" body=%b"}, condition')
    assert named != text != looped and [found.groups for found in collectives(looped)] == [
        found.groups for found in collectives(text)] == [((0, 1, 2, 3), (4, 5, 6, 7))]


def test_configurations_and_pairs_as_people_and_xla_write_them() -> None:
    """JSON over several lines, with brackets in its strings; blanks between numbers."""
    text = f"""HloModule m, replica_count=4
{ADD}
ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
  %g = f32[8]{{0}} collective-permute(%p), source_target_pairs={{{{0,1}}, {{1, 2}}, {{2, 3 }}}}
  %h = f32[8]{{0}} all-reduce(%g), replica_groups=[2, 2] <= [4], to_apply=%add, backend_config={{
    "x": {{
      "note": "a }} b",
      "y": [{{"z": 1}}]
}}}}
  ROOT %r = f32[8]{{0}} all-reduce(%h), replica_groups=[2, 2]<=[2,2]T(1, 0), to_apply=%add, metadata={{op_name="{{"}}
}}
"""
    assert [found.groups for found in collectives(text)] == [
        ((0, 1), (1, 2), (2, 3)), ((0, 1), (2, 3)), ((0, 2), (1, 3))]
    with pytest.raises(InputError, match="has no end"):
        collectives(text.replace('"z": 1}]', '"z": 1]'))
    with pytest.raises(InputError, match="cannot be read"):
        collectives(text.replace("{2, 3 }", "{2, -3}"))


def test_a_permute_of_several_slices_names_a_device_several_times() -> None:
    pairs = "source_target_pairs={{0,1},{0,1}}"
    assert parse_pairs(f"{pairs}, slice_sizes={{{{1}},{{1}}}}") == ((0, 1), (0, 1))
    with pytest.raises(InputError, match="appears twice"):
        parse_pairs(pairs)
