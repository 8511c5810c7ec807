"""What the audit finds in schedules, and what only looks like it."""

from __future__ import annotations

import pytest
from audit_steps import BIG, GATHERED, GROUPS, REDUCED, STATE, audited, found, looped

from hlorewrite.hlo.xla_hazards import CODE_MOTION

MIB = 1 << 20


def test_a_reduction_that_is_only_summed_up_could_run_once() -> None:
    (one,) = found(looped(REDUCED))
    assert (one.form, one.kind, one.source) == ("accumulated", "all-reduce", "train.py:7")
    assert (one.calls, one.calls_after, one.bytes, one.bytes_after) == (8, 1, 32 * MIB, 4 * MIB)
    assert one.saved_s == pytest.approx(one.exposed_s * 7 / 8)
    assert "a factor is applied between" in one.why and "train.py:5" in one.advice
    audit = audited(looped(REDUCED))
    assert (audit.loops, audit.reasons) == (("train.py:5",), ("its result is only summed up",))


def test_what_a_turn_needs_is_named() -> None:
    squared = REDUCED.replace("multiply(%reduced, %spread)", "multiply(%reduced, %reduced), metadata={source_file="
                              '"train.py" source_line=8}')
    assert audited(looped(squared)).reasons == ("multiply at train.py:8 needs its result",)
    assert audited(looped(GATHERED)).reasons == ("its operand does not change",)
    assert audited(looped(GATHERED.replace("all-gather(%weights)", "all-gather(%total)"))).reasons == (
        "its operand changes",)


@pytest.mark.parametrize(("old", "new"), [
    # the result is squared
    ("multiply(%reduced, %spread)", "multiply(%reduced, %reduced)"),
    # divided by, not divided
    ("multiply(%reduced, %spread)", "divide(%spread, %reduced)"),
    # the factor is another one in each iteration
    ("multiply(%reduced, %spread)", "multiply(%reduced, %varied)"),
    # the sum is scaled in each iteration
    (f"%next = {BIG} add(%total, %scaled)",
     f"%sum = {BIG} add(%total, %scaled)\n  %next = {BIG} multiply(%sum, %spread)"),
    # the total changes its sign in each iteration
    ("add(%total, %scaled)", "subtract(%scaled, %total)"),
    # the total is needed in each iteration
    ("%scaled = ", f"%norm = {BIG} tanh(%total)\n  %seen = {BIG} custom-call(%norm), custom_call_target=\"look\"\n"
                   "  %scaled = "),
    # another element of the tuple takes the sum
    (f"%next = {BIG} add(%total, %scaled)", f"%next = {BIG} add(%weights, %scaled)"),
    # the condition of the loop reads the sum
    ("ROOT %less =", f"%sum = {BIG} get-tuple-element(%c), index=1\n  %seen = {BIG} tanh(%sum)\n  ROOT %less ="),
    # a maximum
    ("to_apply=%add", "to_apply=%most"),
    # both halves of the sum
    (f"%next = {BIG} add(%total, %scaled)", f"%sum = {BIG} add(%total, %scaled)\n  %next = {BIG} add(%sum, %sum)"),
])
def test_a_reduction_whose_result_a_turn_needs_stays(old: str, new: str) -> None:
    text = looped(REDUCED, extra="%most (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
                                 "  %y = f32[] parameter(1)\n  ROOT %m = f32[] maximum(%x, %y)\n}")
    assert [one.form for one in found(text)] == ["accumulated"]
    assert old in text
    assert found(text.replace(old, new)) == []


FUSED = (f"%fused (a: {BIG}, r: {BIG}) -> {BIG} {{\n  %a = {BIG} parameter(0)\n  %r = {BIG} parameter(1)\n"
         "  %c = f32[] constant(0.125)\n  %k = " + BIG + " broadcast(%c), dimensions={}\n"
         f"  %m = {BIG} multiply(%r, %k)\n  ROOT %sum = {BIG} add(%a, %m)\n}}")
ASYNC = f"""
  %start = {BIG} all-reduce-start(%gradient), {GROUPS}, to_apply=%add
  %done = {BIG} all-reduce-done(%start)
  %next = {BIG} fusion(%total, %done), kind=kLoop, calls=%fused"""


def test_through_pairs_and_fusions() -> None:
    assert [one.form for one in found(looped(ASYNC, extra=FUSED))] == ["accumulated"]
    assert found(looped(ASYNC, extra=FUSED.replace("add(%a, %m)", "maximum(%a, %m)"))) == []


def wrapped(collective: str, operand: str, shape: str, after: str = "") -> tuple[str, str]:
    """(lines, computations) of a collective in an asynchronous fusion, as newer XLA writes it; ``%done`` is its end."""
    inner = (f"%inner (v: {BIG}) -> {shape} {{\n  %v = {BIG} parameter(0)\n"
             f"  {'' if after else 'ROOT '}%sent = {shape} {collective}\n{after}}}")
    outer = (f"%outer (v: {BIG}) -> {shape} {{\n  %v = {BIG} parameter(0)\n"
             f"  ROOT %kernel = {shape} fusion(%v), kind=kCustom, calls=%inner\n}}")
    return (f"\n  %start = (({BIG}), {shape}) async-start({operand}), calls=%outer, metadata="
            f'{{source_file="train.py" source_line=7}}\n  %done = {shape} async-done(%start)', f"{inner}\n{outer}\n")


def test_in_asynchronous_fusions() -> None:
    summed = f"\n  %next = {BIG} fusion(%total, %done), kind=kLoop, calls=%fused"
    reduce_ = f"all-reduce(%v), {GROUPS}, to_apply=%add"
    lines, below = wrapped(reduce_, "%gradient", BIG)
    (one,) = found(looped(lines + summed, extra=below + FUSED))
    assert (one.form, one.kind, one.source, one.calls, one.calls_after) == (
        "accumulated", "all-reduce", "train.py:7", 8, 1)
    lines, below = wrapped(f"all-gather(%v), {GROUPS}, dimensions={{0}}", "%weights", "f32[8388608]{0}")
    used = f"\n  %used = {BIG} slice(%done), slice={{[0:1048576]}}\n  %next = {BIG} multiply(%total, %used)"
    assert [(one.form, one.kind) for one in found(looped(lines + used, extra=below))] == [("invariant", "all-gather")]
    # what the kernel makes of the sum is no sum
    lines, below = wrapped(reduce_, "%gradient", BIG, f"  ROOT %most = {BIG} maximum(%sent, %v)\n")
    audit = audited(looped(lines + summed, extra=below + FUSED))
    assert audit.findings == () and audit.reasons == ("its operand changes",)
    assert audit.timeline.collectives[0].trips == 8


def test_only_the_last_result_is_wanted() -> None:
    """A value that no turn reads takes the place of one in the tuple."""
    last = REDUCED.replace(f"\n  %next = {BIG} add(%total, %scaled)", "")
    assert [one.form for one in found(looped(last, then="%scaled, %weights, %stack"))] == ["accumulated"]
    assert found(looped(last + f"\n  %r = {BIG} tanh(%total)\n  %u = {BIG} custom-call(%r), custom_call_target=\"x\"",
                        then="%scaled, %weights, %stack")) == []


INNER = ("%inner (n: STATE) -> STATE {\n  %n = STATE parameter(0)\n  %k = s32[] get-tuple-element(%n), index=0\n"
         "  %t1 = BIG get-tuple-element(%n), index=1\n  %w1 = BIG get-tuple-element(%n), index=2\n"
         "  %s1 = f32[8,1048576]{1,0} get-tuple-element(%n), index=3\n  %o1 = s32[] constant(1)\n"
         "  %z1 = s32[] constant(0)\n  %k1 = s32[] add(%k, %o1)\n  %f1 = f32[] convert(%k)\n"
         "  %v1 = BIG broadcast(%f1), dimensions={}\n  %g1 = BIG multiply(%t1, %v1)\n"
         "  %r1 = BIG all-reduce(%g1), GROUPS, to_apply=%add\n  %row = f32[1,1048576]{1,0} reshape(%r1)\n"
         "  %u1 = f32[8,1048576]{1,0} dynamic-update-slice(%s1, %row, %k, %z1)\n"
         "  ROOT %rt = STATE tuple(%k1, %t1, %w1, %u1)\n}")
OUTER = """
  %local = BIG multiply(%weights, %varied)
  %empty = f32[8,1048576]{1,0} broadcast(%scalar), dimensions={}
  %first = STATE tuple(%zero, %local, %weights, %empty)
  %layers = STATE while(%first), condition=%condition, body=%inner, backend_config={"known_trip_count":{"n":"8"}}
  %rows = f32[8,1048576]{1,0} get-tuple-element(%layers), index=3
  %all = f32[8,1048576]{1,0} add(%stack, %rows)"""


def nested(inner: str = INNER) -> str:
    inner = inner.replace("STATE", STATE).replace("BIG", BIG).replace("GROUPS", GROUPS)
    return looped(OUTER.replace("STATE", STATE).replace("BIG", BIG), then="%total, %weights, %all", extra=inner)


def test_layers_that_stack_leave_both_loops() -> None:
    (one,) = found(nested())
    assert one.form == "accumulated" and "by a loop around it" in one.why
    assert (one.calls, one.calls_after, one.bytes, one.bytes_after) == (64, 1, 256 * MIB, 32 * MIB)
    assert found(nested(INNER.replace("dynamic-update-slice(%s1, %row, %k, %z1)", "add(%s1, %u0)").replace(
        "  %u1 =", "  %u0 = f32[8,1048576]{1,0} broadcast(%row), dimensions={0,1}\n  %u2 = f32[8,1048576]{1,0} "
        "tanh(%u0)\n  %u1 =").replace("add(%s1, %u0)", "add(%s1, %u2)"))) == []


def test_why_xla_left_it_there() -> None:
    off = {"xla_disable_hlo_passes": f"cse,{CODE_MOTION}"}
    assert found(looped(REDUCED), off)[0].why == f"the job switched XLA's {CODE_MOTION} off"
    plain = REDUCED.replace("add(%total, %scaled)", "add(%total, %reduced)")
    assert "shows no reason" in found(looped(plain))[0].why


def test_a_gather_of_what_no_turn_changes_could_run_once() -> None:
    (one,) = found(looped(GATHERED))
    assert (one.form, one.source, one.calls, one.calls_after) == ("invariant", "train.py:9", 8, 1)
    assert (one.bytes, one.bytes_after) == (256 * MIB, 32 * MIB) and "32.00 MiB more memory" in one.advice
    for old, new in (("all-gather(%weights)", "all-gather(%gradient)"), ("all-gather(%weights)", "all-gather(%total)")):
        assert found(looped(GATHERED.replace(old, new))) == []
    assert found(looped(GATHERED, then="%next, %used, %stack")) == []  # the weights change in each iteration


def test_an_unknown_trip_count_is_not_taken_as_one() -> None:
    audit = audited(looped(REDUCED, known=False))
    (one,) = audit.findings
    assert (one.calls, one.bytes, one.bytes_after, one.saved_s) == (None,) * 4
    assert [each.what for each in audit.timeline.unknown] == ["trip count"]


SIDE_BY_SIDE = f"""
  %left = {BIG} all-reduce(%gradient), {GROUPS}, to_apply=%add
  %sine = {BIG} sine(%gradient)
  %right = {BIG} all-reduce(%sine), {GROUPS}, to_apply=%add
  %next = {BIG} multiply(%left, %right)"""


def test_calls_that_could_be_one() -> None:
    text = SIDE_BY_SIDE.replace(BIG, "f32[1024]{0}")
    lines = f"\n  %small = f32[1024]{{0}} slice(%gradient), slice={{[0:1024]}}{text.replace('%gradient', '%small')}" \
            f"\n  %wide = {BIG} broadcast(%next), dimensions={{0}}"
    (one,) = found(looped(lines, then="%wide, %weights, %stack"))
    assert (one.form, one.calls, one.calls_after) == ("separate", 16, 8) and one.bytes == one.bytes_after
    after = lines.replace("sine(%small)", "sine(%left)")
    assert after != lines and found(looped(after, then="%wide, %weights, %stack")) == []
    others = lines.replace(f"all-reduce(%sine), {GROUPS}", "all-reduce(%sine), replica_groups={{0,1,2,3},{4,5,6,7}}")
    assert others != lines and found(looped(others, then="%wide, %weights, %stack")) == []


def test_exchanges_that_no_line_writes() -> None:
    lines = f"""
  %swapped = {BIG} all-to-all(%gradient), {GROUPS}, dimensions={{0}}, metadata={{op_name="jit(f)/dot_general" \
source_file="model.py" source_line=3}}
  %next = {BIG} tanh(%swapped)"""
    (one,) = found(looped(lines))
    assert (one.form, one.source, one.calls, one.calls_after, one.saved_s) == ("resharded", "model.py:3", 8, None, None)
    assert "with_sharding_constraint on the value of model.py:3" in one.advice
    assert found(looped(lines.replace("dot_general", "all_to_all"))) == []
