"""The program of each device is known where the entry is one manual computation, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.hlo.per_device import manual_program

BODY = """%body (a: f32[2], b: f32[4]) -> (f32[2], f32[4]) {
  %a = f32[2]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  ROOT %t = (f32[2]{0}, f32[4]{0}) tuple(%a, %b)
}
"""
NEW = "HloModule m, num_partitions=2\n\n" + BODY + """
ENTRY %main (x: f32[4], y: f32[4]) -> (f32[4], f32[4]) {
  %x = f32[4]{0} parameter(0), sharding={mesh['d'=2], [{'d'}]}
  %p = f32[4]{0} custom-call(%x), custom_call_target="Sharding", sharding={mesh['d'=2], [{'d'}]}
  %y = f32[4]{0} parameter(1), sharding={mesh['d'=2], [{}]}
  %q = f32[4]{0} custom-call(%y), custom_call_target="Sharding", sharding={mesh['d'=2], [{}]}
  %l = (f32[2]{0}, f32[4]{0}) custom-call(%p, %q), custom_call_target="xla.sdy.GlobalToLocalShape", sharding={{mesh['d'=2], manual}, {mesh['d'=2], manual}}
  %c = (f32[2]{0}, f32[4]{0}) call(%l#0, %l#1), to_apply=%body
  ROOT %g = (f32[4]{0}, f32[4]{0}) custom-call(%c#0, %c#1), custom_call_target="xla.sdy.LocalToGlobalShape", sharding={{mesh['d'=2], [{'d'}]}, {mesh['d'=2], [{}]}}
}
"""  # noqa: E501 (as XLA prints it)
OLD = r"""HloModule m, num_partitions=2, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["d"=2]>}}

""" + BODY + r"""
ENTRY %main (x: f32[4], y: f32[4]) -> (f32[4], f32[4]) {
  %x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"d\"}]>"}
  %y = f32[4]{0} parameter(1), sharding={replicated}, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{}]>"}
  %l = (f32[2]{0}, f32[4]{0}) custom-call(%x, %y), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"d\"}]>, <@mesh, [{}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"d\"}>"}
  %l0 = f32[2]{0} get-tuple-element(%l), index=0
  %l1 = f32[4]{0} get-tuple-element(%l), index=1
  %c = (f32[2]{0}, f32[4]{0}) call(%l0, %l1), to_apply=%body
  %c0 = f32[2]{0} get-tuple-element(%c), index=0
  %c1 = f32[4]{0} get-tuple-element(%c), index=1
  %g = (f32[4]{0}, f32[4]{0}) custom-call(%c0, %c1), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"d\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"d\"}]>, <@mesh, [{}]>]>"}
  %g0 = f32[4]{0} get-tuple-element(%g), index=0
  %g1 = f32[4]{0} get-tuple-element(%g), index=1
  ROOT %r = (f32[4]{0}, f32[4]{0}) tuple(%g0, %g1)
}
"""  # noqa: E501 (as XLA prints it)


@pytest.mark.parametrize("text", [NEW, OLD])
def test_the_body_is_what_each_device_computes(text: str):
    made = manual_program(parse_hlo(text))
    assert made is not None
    assert (made.entry, list(made.computations), made.partitions) == ("body", ["body"], 2)


@pytest.mark.parametrize(("text", "old", "new"), [
    (NEW, "%p = f32[4]{0} custom-call(%x), custom_call_target=\"Sharding\", sharding={mesh['d'=2], [{'d'}]}",
     "%p = f32[4]{0} custom-call(%x), custom_call_target=\"Sharding\", sharding={mesh['d'=2], [{}]}"),
    (NEW, "manual}, {mesh['d'=2], manual}}", "manual}, {mesh['d'=2], [{}]}}"),
    (NEW, "call(%l#0, %l#1)", "call(%l#1, %l#0)"),
    (NEW, "custom-call(%c#0, %c#1)", "custom-call(%c#0, %c#0)"),
    (NEW, "custom-call(%p, %q)", "custom-call(%q, %p)"),
    (NEW, "call(%l#0, %l#1)", "call(%l#0, %y)"),
    (NEW, "%p = f32[4]{0} custom-call(%x), custom_call_target=\"Sharding\"",
     "%n = f32[4]{0} negate(%x)\n  %p = f32[4]{0} custom-call(%n), custom_call_target=\"Sharding\""),
    (OLD, 'in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"d\\"}]>',
     'in_shardings="#sdy.sharding_per_value<[<@mesh, [{}]>'),
    (OLD, 'mesh = #sdy.mesh<["d"=2]>', 'mesh = #sdy.mesh<["d"=2, "e"=2]>'),
    (OLD, "tuple(%g0, %g1)", "tuple(%g1, %g0)"),
    (OLD, "%g1 = f32[4]{0} get-tuple-element(%g), index=1", "%g1 = f32[4]{0} negate(%y)"),
])
def test_an_entry_that_does_anything_else_is_left_to_the_partitioner(text: str, old: str, new: str):
    assert text.count(old) == 1
    assert manual_program(parse_hlo(text.replace(old, new))) is None


@pytest.mark.parametrize(("sharding", "known"), [('{\\"d\\"}', True), ("{}", False)])
def test_a_result_that_older_releases_constrain(sharding: str, known: bool):
    """0.10.2 writes the sharding of a result as a custom call, and again in the notation of HLO."""
    held = ("%g0 = f32[4]{0} get-tuple-element(%g), index=0",
            'custom_call_target="xla.sdy.FuncResultSharding", frontend_attributes={xla.sdy.sharding='
            '"#sdy.sharding_per_value<[<@mesh, [SHARDING]>]>"}')
    text = OLD
    for number, each in enumerate((sharding, "{}")):
        part = held[0].replace("0 =", f"{number} =").replace("index=0", f"index={number}")
        call = held[1].replace("SHARDING", each)
        text = text.replace(part, f"{part}\n  %s{number} = f32[4]{{0}} custom-call(%g{number}), {call}")
    root = "tuple(%s0, %s1), sharding={{devices=[2]<=[2]}, {replicated}}"
    assert (manual_program(parse_hlo(text.replace("tuple(%g0, %g1)", root))) is not None) is known


@pytest.mark.parametrize(("sharding", "known"), [
    ("{{mesh['d'=2], [{'d'}]}, {mesh['d'=2], [{}]}}", True), ("{{mesh['d'=2], [{}]}, {mesh['d'=2], [{}]}}", False)])
def test_a_result_that_is_resharded_is_left_to_the_partitioner(sharding: str, known: bool):
    root = f"  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}) tuple(%g#0, %g#1), sharding={sharding}\n}}\n"
    text = NEW.replace("ROOT %g", "%g").removesuffix("}\n") + root
    assert (manual_program(parse_hlo(text)) is not None) is known
