"""Trip counts that XLA does not state: read off counter, condition and start, through fusions, copies and loops."""

from __future__ import annotations

import pytest

from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.hlo.trips import TripCounts

PLAIN = """HloModule m
%condition (c: (s32[], s32[], f32[4])) -> pred[] {
  %c = (s32[], s32[], f32[4]{0}) parameter(0)
  %ci = s32[] get-tuple-element(%c), index=0
  %bound = s32[] constant(10)
  ROOT %less = pred[] compare(%ci, %bound), direction=LT
}
%body (b: (s32[], s32[], f32[4])) -> (s32[], s32[], f32[4]) {
  %b = (s32[], s32[], f32[4]{0}) parameter(0)
  %bi = s32[] get-tuple-element(%b), index=0
  %step = s32[] constant(3)
  %next = s32[] add(%bi, %step)
  %bn = s32[] get-tuple-element(%b), index=1
  %bx = f32[4]{0} get-tuple-element(%b), index=2
  ROOT %bo = (s32[], s32[], f32[4]{0}) tuple(%next, %bn, %bx)
}
ENTRY %main (x: f32[4]) -> (s32[], s32[], f32[4]) {
  %x = f32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  %n = s32[] constant(20)
  %t = (s32[], s32[], f32[4]{0}) tuple(%zero, %n, %x)
  ROOT %w = (s32[], s32[], f32[4]{0}) while(%t), condition=%condition, body=%body
}
"""
FUSED_STEP = """%fused (f: s32[]) -> s32[] {
  %f = s32[] parameter(0)
  %two = s32[] constant(2)
  ROOT %g = s32[] add(%f, %two)
}
%body ("""
FUSED_TEST = """%test (ti: s32[], tn: s32[]) -> pred[] {
  %ti = s32[] parameter(0)
  %tn = s32[] parameter(1)
  ROOT %tl = pred[] compare(%tn, %ti), direction=GT
}
%condition ("""


def trips(text: str, loop: str = "w") -> int | None:
    """The trip count of one loop of a module."""
    module = parse_hlo(text)
    counts = TripCounts(module)
    return next(counts.of(computation, computation.instructions[loop]) for computation in module.computations.values()
                if loop in computation.instructions)


def changed(*changes: tuple[str, str]) -> str:
    """The plain loop with some text replaced."""
    text = PLAIN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(("changes", "count"), [
    ((), 4),
    ((("direction=LT", "direction=LE"), ("constant(10)", "constant(9)")), 4),
    ((("constant(10)", "constant(12)"), ("direction=LT", "direction=NE")), 4),
    ((("constant(0)", "constant(12)"), ("constant(10)", "constant(3)"), ("constant(3)", "constant(-3)"),
      ("%bound = s32[] constant(-3)", "%bound = s32[] constant(3)"), ("direction=LT", "direction=GT")), 3),
    ((("constant(0)", "constant(50)"),), 0),
    ((("compare(%ci, %bound), direction=LT", "compare(%bound, %ci), direction=GT"),), 4),
    ((("add(%bi, %step)", "add(%step, %bi)"),), 4),
    ((("%t = ", "%k = s32[] copy(%zero)\n  %t = "), ("tuple(%zero,", "tuple(%k,")), 4),
    ((("%body (", FUSED_STEP), ("s32[] add(%bi, %step)", "s32[] fusion(%bi), kind=kLoop, calls=%fused")), 5),
    ((("%condition (", FUSED_TEST), ("%bound = s32[] constant(10)", "%bound = s32[] get-tuple-element(%c), index=1"),
      ("pred[] compare(%ci, %bound), direction=LT", "pred[] fusion(%ci, %bound), kind=kLoop, calls=%test")), 7),
], ids=["plain", "at most", "not equal", "downwards", "never", "the other way round", "step first", "start copied",
        "step in a fusion", "comparison in a fusion, bound passed through"])
def test_counted(changes: tuple[tuple[str, str], ...], count: int) -> None:
    assert trips(changed(*changes)) == count


@pytest.mark.parametrize("changes", [
    (("direction=LT", "direction=GT"),),
    (("direction=LT", "direction=NE"),),  # 0, 3, ... never is 10
    (("%step = s32[] constant(3)", "%step = s32[] get-tuple-element(%b), index=1"),),
    (("%zero = s32[] constant(0)", "%zero = s32[] convert(%x)"),),
    (("%next = s32[] add(%bi, %step)", "%next = s32[] multiply(%bi, %step)"),),
    (("%bound = s32[] constant(10)", "%bound = s32[] get-tuple-element(%c), index=1"),
     ("tuple(%next, %bn, %bx)", "tuple(%next, %next, %bx)")),
], ids=["never ends", "passes the bound", "step not constant", "start not constant", "multiplied", "bound changes"])
def test_not_counted(changes: tuple[tuple[str, str], ...]) -> None:
    assert trips(changed(*changes)) is None


def test_a_start_that_a_loop_around_hands_on() -> None:
    inner = changed(("ENTRY %main (x: f32[4])", "%outer (o: (s32[], s32[], f32[4]))"),
                    ("  %x = f32[4]{0} parameter(0)\n  %zero = s32[] constant(0)\n  %n = s32[] constant(20)\n",
                     "  %o = (s32[], s32[], f32[4]{0}) parameter(0)\n  %zero = s32[] get-tuple-element(%o), index=0\n"
                     "  %n = s32[] get-tuple-element(%o), index=1\n  %x = f32[4]{0} get-tuple-element(%o), index=2\n"),
                    ("  ROOT %w = ", "  %w = "),
                    ("body=%body\n}", "body=%body\n  ROOT %k = (s32[], s32[], f32[4]{0}) tuple(%zero, %n, %x)\n}"))
    outer = """ENTRY %main (y: f32[4]) -> (s32[], s32[], f32[4]) {
  %y = f32[4]{0} parameter(0)
  %one = s32[] constant(1)
  %s = (s32[], s32[], f32[4]{0}) tuple(%one, %one, %y)
  ROOT %v = (s32[], s32[], f32[4]{0}) while(%s), condition=%condition, body=%outer
}
"""
    assert trips(inner + outer) == 3
    assert trips((inner + outer).replace("tuple(%zero, %n, %x)\n}", "tuple(%n, %n, %x)\n}")) is None


@pytest.mark.parametrize("stated", ['{"known_trip_count":{"n":"9"}}', '"{\\"known_trip_count\\":{\\"n\\":\\"9\\"}}"'])
def test_what_xla_states_is_taken(stated: str) -> None:
    assert trips(changed(("body=%body\n", f"body=%body, backend_config={stated}\n"))) == 9


def test_a_text_that_reads_itself_ends() -> None:
    assert trips(changed(("%next = s32[] add(%bi, %step)", "%next = s32[] copy(%next)"))) is None
