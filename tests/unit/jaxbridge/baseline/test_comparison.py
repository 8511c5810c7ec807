"""Which of several ways is compiled: every limit is crossed once, from both sides."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hlorewrite.jaxbridge.baseline.comparison import WayRow, XlaComparison, compared
from hlorewrite.jaxbridge.baseline.judge import MEMORY_SLACK, best_of, room_of, too_large, why_not
from hlorewrite.jaxbridge.baseline.measured import Measured, timed

MIB = 1 << 20
ALONE = Measured(calls=8, bytes=800 * MIB, wire=1400 * MIB, temp=100 * MIB, seconds=1.0, hlo="")


def ours(calls: int = 8, size: int = 800 * MIB, temp: int = 100 * MIB, known: bool = True) -> Measured:
    return Measured(calls, size, size * 7 // 4, temp, 2.0, "", known)


@pytest.mark.parametrize(("made", "why"), [
    (ours(size=700 * MIB), ""),
    (ours(calls=1), ""),
    (ours(), "XLA alone does as well"),
    (ours(size=800 * MIB - 1), "XLA alone does as well"),
    (ours(calls=1, size=800 * MIB + 1), ""),
    (ours(calls=1, size=800 * MIB + 800 * MIB // 1000), ""),
    (ours(calls=1, size=800 * MIB + 800 * MIB // 1000 + 2), "would send 800.8 MiB, and XLA alone sends 800.0 MiB"),
    (ours(calls=8, size=800 * MIB + 1), "XLA alone does as well"),
    (ours(size=700 * MIB, temp=102 * MIB), ""),
    (ours(size=700 * MIB, temp=102 * MIB + 1), "would take 102.0 MiB of temporaries, and XLA alone takes 100.0 MiB"),
    (ours(size=700 * MIB, known=False), "known on only one side"),
])
def test_bytes_calls_and_memory_decide(made: Measured, why: str):
    result = compared(ALONE, made, "8 x GPU")
    assert result.kept == (why == "")
    assert why in result.against


SPLIT = replace(ALONE, calls=16, bytes=1600 * MIB)
"""Each all-reduce as a reduce-scatter and an all-gather: twice the payload, and as much on the wire."""


def test_bytes_on_the_wire_decide_and_not_payloads():
    assert compared(ALONE, replace(SPLIT, calls=7), "8 x GPU").kept
    assert compared(ALONE, replace(SPLIT, calls=7, wire=1400 * MIB + 1), "8 x GPU").kept
    more = compared(ALONE, replace(SPLIT, calls=7, wire=1402 * MIB), "8 x GPU")
    assert more.against == "the rewritten module would send 1.369 GiB on the wire, and XLA alone sends 1.367 GiB"
    made = compared(SPLIT, ours(calls=7), "8 x GPU")
    assert made.sentence.endswith("sends as much on the wire in 7 calls, not 16")
    made = compared(SPLIT, ours(calls=7, size=700 * MIB), "8 x GPU")
    assert made.sentence.endswith("sends 1.2 GiB on the wire, not 1.4 GiB, in 7 calls, not 16")
    made = compared(SPLIT, ours(calls=16, size=700 * MIB), "8 x GPU")
    assert made.sentence.endswith("sends 1.2 GiB on the wire, not 1.4 GiB, in as many calls")


def test_split_calls_have_to_save_memory():
    assert compared(ALONE, SPLIT, "8 x GPU").against == "XLA alone does as well"
    smaller = compared(ALONE, replace(SPLIT, temp=90 * MIB), "8 x GPU")
    assert smaller.sentence.endswith("it sends as much on the wire, and takes 90.0 MiB of temporaries, not 100.0 MiB")
    assert not compared(ALONE, replace(SPLIT, temp=99 * MIB), "8 x GPU").kept
    noise = 1400 * MIB // 1000
    assert compared(ALONE, replace(SPLIT, temp=90 * MIB, wire=1400 * MIB + noise), "8 x GPU").kept
    more = replace(SPLIT, temp=90 * MIB, wire=1400 * MIB + noise + 1)
    assert "would send" in compared(ALONE, more, "8 x GPU").against
    larger = replace(SPLIT, temp=99 * MIB, wire=1400 * MIB + noise)
    assert compared(ALONE, larger, "8 x GPU").against == "XLA alone does as well"


GIB = 1 << 30


def timed_step(seconds: float, plain: float | None = None, *, memory: int = 90 * GIB, temp: int = 100 * MIB,
               wire: int = 1400 * MIB, calls: int = 8, unknown: tuple[str, ...] = ()) -> Measured:
    """A step on a device of 140 GiB, of which 126 may be used."""
    known = None if unknown else seconds
    return replace(ALONE, calls=calls, wire=wire, bytes=wire * 4 // 7, temp=temp, memory=memory, capacity=140 * GIB,
                   step_s=known, counted_s=seconds, plain_s=seconds if plain is None else plain, compute_s=seconds / 2,
                   unknown=unknown)


STEP = timed_step(1e-3)


@pytest.mark.parametrize(("made", "why"), [
    (timed_step(0.997e-3), ""),
    (timed_step(0.997e-3, wire=2 * 1400 * MIB, calls=80), ""),  # the step decides, and not bytes
    (timed_step(0.999e-3), "XLA alone does as well"),
    (timed_step(1.001e-3, calls=7), ""),  # equal within noise: calls decide
    (timed_step(1.001e-3, calls=7, wire=1402 * MIB), "would send"),
    (timed_step(1.001e-3, calls=7, temp=102 * MIB + 1), "of temporaries"),
    (timed_step(1.003e-3, calls=1, wire=1), "would take 1.003 ms, and XLA alone takes 1 ms"),
    (timed_step(0.9e-3, plain=1.01e-3), "only while collectives slow compute down"),
    (timed_step(0.9e-3, temp=40 * GIB, memory=126 * GIB), ""),
    (timed_step(0.9e-3, temp=40 * GIB, memory=127 * GIB),
     "take 127.0 GiB of memory, and a device has 126.0 GiB for a step"),
    (timed_step(0.9e-3, unknown=("custom call mine 1",)), "XLA alone does as well"),  # not comparable: bytes decide
])
def test_the_shortest_step_that_fits_is_better(made: Measured, why: str):
    found = why_not(STEP, made)
    assert (why in found) if why else found == ""


def test_what_is_unknown_on_both_sides_cancels():
    alone, faster, other = (timed_step(seconds, unknown=(f"custom call {name} 1",))
                            for seconds, name in ((2e-3, "mine"), (1e-3, "mine"), (1e-3, "yours")))
    assert why_not(alone, faster) == ""
    assert why_not(alone, other) == "XLA alone does as well"


def test_a_step_that_does_not_fit_may_not_grow_and_it_is_said():
    large = timed_step(1e-3, memory=130 * GIB, temp=50 * GIB)
    larger = timed_step(0.5e-3, memory=140 * GIB, temp=60 * GIB)
    assert "XLA alone, which does not fit either, takes 130.0 GiB" in why_not(large, larger)
    assert why_not(large, timed_step(0.5e-3, memory=129 * GIB, temp=49 * GIB)) == ""
    made = compared(large, timed_step(2e-3, memory=129 * GIB), "h200:1x8")
    assert made.sentence.endswith("; XLA alone does not fit: 130.0 of 126.0 GiB")


def test_a_budget_narrows_what_a_step_may_take():
    larger = timed_step(0.5e-3, memory=95 * GIB, temp=10 * GIB)
    assert why_not(STEP, larger) == "" == why_not(STEP, larger, 5 * GIB)
    assert "the memory budget allows 94.0 GiB" in why_not(STEP, larger, 4 * GIB)
    assert room_of(STEP, None) == 126 * GIB and room_of(STEP, 5 * GIB) == 95 * GIB and room_of(ALONE, None) is None
    assert room_of(STEP, 100 * GIB) == 126 * GIB
    assert "a device has 126.0 GiB for a step" in why_not(STEP, timed_step(0.5e-3, memory=127 * GIB, temp=60 * GIB))


def test_the_share_of_memory_that_a_user_gives_jax_is_the_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "0.95")
    assert room_of(STEP, None) == 133 * GIB


def test_of_several_ways_the_shortest_is_best_and_of_equal_ones_the_first():
    ways = [("a", timed_step(0.9e-3)), ("b", timed_step(0.8e-3)), ("c", timed_step(0.799e-3)),
            ("d", timed_step(0.1e-3, memory=130 * GIB, temp=50 * GIB))]
    assert best_of(STEP, ways) == 1
    assert best_of(STEP, [ways[3]]) is None
    assert best_of(ALONE, [("a", ours(size=700 * MIB)), ("b", ours(size=600 * MIB)), ("c", ours(calls=1))]) == 1


def test_the_sentence_says_the_steps_the_temporaries_and_whether_it_fits():
    made = compared(STEP, timed_step(0.9e-3, temp=2 * GIB, memory=92 * GIB), "h200:1x8")
    assert made.sentence == ("the rewritten module is compiled: 900 us, not 1 ms on h200:1x8; 2.0 GiB of temporaries, "
                             "not 100.0 MiB; fits (92.0 of 126.0 GiB)")
    equal = compared(STEP, timed_step(1e-3, calls=1), "h200:1x8")
    assert equal.sentence == ("the rewritten module is compiled: 1 ms on h200:1x8, as XLA alone takes; it sends as "
                              "much in 1 call, not 8; 100.0 MiB of temporaries; fits (90.0 of 126.0 GiB)")


def test_flags_alone_are_a_way_of_the_users_own_module():
    name, flags = "XLA alone, pipelined", (("xla_gpu_a", True),)
    made = XlaComparison("h200:1x8", STEP, timed_step(0.9e-3), "gpu", "", False, name=name,
                         tried=(WayRow("XLA alone", STEP), WayRow(name, timed_step(0.9e-3), "", 1.0, flags),
                                WayRow("time", None, "no pass changes the module")))
    assert not made.kept and made.chosen == name and made.options == {"xla_gpu_a": True}
    rows = made.as_json()["rows"]
    assert isinstance(rows, list) and [row["name"] for row in rows] == ["XLA alone", name, "time"]
    assert rows[1]["fits"] is True and rows[1]["xla_options"] == {"xla_gpu_a": True} and rows[2]["step_s"] is None
    assert len(made.lines()) == 3  # ways that were not compiled are in the data alone


def test_time_has_no_say():
    fast, slow = (Measured(8, 700 * MIB, 1225 * MIB, 100 * MIB, seconds, "") for seconds in (0.1, 1e6))
    assert compared(ALONE, fast, "8 x GPU").against == compared(ALONE, slow, "8 x GPU").against == ""


def test_steps_of_unknown_time_are_not_compared_and_it_is_said():
    unknown = replace(ours(calls=1), untimed="fusion calls kernel")
    made = compared(STEP, unknown, "8 x GPU")
    assert made.kept and made.sentence.endswith("; step times are not compared: fusion calls kernel")


def test_times_are_of_the_schedule_and_of_nothing_unknown():
    step = """HloModule m, is_scheduled=true, num_partitions=8
ENTRY %main (p: f32[1048576]) -> f32[8388608] {
  %p = f32[1048576]{0} parameter(0)
  ROOT %g = f32[8388608]{0} all-gather(%p), replica_groups=[1,8]<=[8], dimensions={0}
}"""
    made = timed(replace(ALONE, hlo=step), "h200:1x8")
    assert made.step_s is not None and made.step_s == made.exposed_s == made.counted_s > 0 and made.untimed == ""
    kernel = step.replace("ROOT %g", '%k = f32[4]{0} custom-call(%p), custom_call_target="mine"\n  ROOT %g')
    for text, cluster, why in ((kernel, "h200:1x8", "k calls mine"), (step, "", "topology"), ("", "h200:1x8", "HLO")):
        other = timed(replace(ALONE, hlo=text), cluster)
        assert other.step_s is None and why in other.untimed


def test_small_steps_may_grow_by_less_than_a_buffer():
    small = Measured(8, 800, 1400, 1000, 1.0, "")
    assert not too_large(small, ours(temp=1000 + MEMORY_SLACK))
    assert too_large(small, ours(temp=1001 + MEMORY_SLACK))
    assert not too_large(small, ours(temp=1001 + MEMORY_SLACK), budget=1)


def test_passes_about_something_else_need_not_be_better_but_not_worse():
    assert compared(ALONE, ours(), "8 x GPU", or_equal=True).kept
    assert not compared(ALONE, ours(size=801 * MIB), "8 x GPU", or_equal=True).kept
    silent = Measured(0, 0, 0, 0, 1.0, "")
    assert compared(silent, silent, "8 x GPU").kept


def test_what_is_said():
    assert compared(ALONE, ours(calls=1, size=100 * MIB), "8 x GPU", "cpu").sentence == (
        "the rewritten module is compiled: compared with XLA alone it sends "
        "100.0 MiB, not 800.0 MiB, in 1 call, not 8")
    text = str(compared(ALONE, ours(), "8 x GPU"))
    assert text.splitlines()[0].split() == ["for", "8", "x", "GPU", "calls", "executed", "MiB", "temporaries", "MiB"]
    assert text.splitlines()[-1] == "your own module is compiled: XLA alone does as well"
    text = compared(ALONE, ours(), "8 x GPU").text(times=True)
    assert "XLA's time s" in text and "  1.00" in text
    made = compared(ALONE, ours(), "8 x GPU", "gpu").as_json()
    assert (made["kept"], made["partitioner"], made["with_code"]) == ("original", "gpu", False)


@pytest.mark.parametrize("share", [1.0021, 1.003, 1.03, 1.2])
@pytest.mark.parametrize("size", [MIB, 1400 * MIB, 19 << 30, 3 << 40])
def test_no_reason_is_two_equal_numbers(share: float, size: int):
    """The reasons that are numbers, from the smallest difference on."""
    alone = Measured(8, size, size, size, 1.0, "")
    timed_alone = replace(alone, counted_s=size * 1e-6, plain_s=size * 1e-6, memory=size, capacity=int(size / 0.9))
    more = int(size * share) + 1
    for one, made in ((alone, replace(alone, calls=1, bytes=more, wire=more)),
                      (alone, replace(alone, calls=1, bytes=2 * size, wire=more)),
                      (alone, replace(alone, calls=1, temp=more + size)),
                      (timed_alone, replace(timed_alone, memory=more + size, temp=more + size)),
                      (timed_alone, replace(timed_alone, calls=1, counted_s=size * 1e-6 * share))):
        against = compared(one, made, "8 x GPU").against
        numbers = re.findall(r"[\d.]+ (?:[KMGT]iB|B|m?s|us)", against)
        assert len(numbers) == 2 and numbers[0] != numbers[1], against


@pytest.mark.parametrize(("memory", "said"), [
    (167 << 30, "rewritten does not fit: 167.0 of 126.3 GiB"), (100 << 30, "")])
def test_a_step_that_does_not_fit_the_device_is_said_to(memory: int, said: str):
    step = "HloModule m, is_scheduled=true\nENTRY %main (p: f32[8]) -> f32[8] {\n  ROOT %p = f32[8]{0} parameter(0)\n}"
    alone, made = (timed(replace(ALONE, hlo=step, memory=each), "h200:1x8") for each in (90 << 30, memory))
    lines = compared(alone, made, "h200:1x8").lines()
    assert [line for line in lines if "fit" in line] == ([said] if said else [])
