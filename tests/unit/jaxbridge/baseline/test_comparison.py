"""Which of two modules is kept: every limit is crossed once."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hlorewrite.jaxbridge.baseline.comparison import EXACT, MEMORY_SLACK, KeepLimits, compared, too_much_memory
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
    (ours(calls=1, size=800 * MIB + 800 * MIB // 1000 + 2), "it would send 800.8 MiB, and XLA alone sends 800.0 MiB"),
    (ours(calls=8, size=800 * MIB + 1), "XLA alone does as well"),
    (ours(size=700 * MIB, temp=102 * MIB), ""),
    (ours(size=700 * MIB, temp=102 * MIB + 1), "it would take 102.0 MiB of temporaries, and XLA alone takes 100.0 MiB"),
    (ours(size=700 * MIB, known=False), "known on one side only"),
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
    assert more.against == "rewritten it would send 1.369 GiB on the wire, and XLA alone sends 1.367 GiB"
    made = compared(SPLIT, ours(calls=7), "8 x GPU")
    assert made.sentence.endswith("sends as much on the wire in 7 calls, not 16")
    made = compared(SPLIT, ours(calls=7, size=700 * MIB), "8 x GPU")
    assert made.sentence.endswith("sends 1.2 GiB on the wire, not 1.4 GiB, in 7 calls, not 16")


def test_split_calls_have_to_save_memory():
    assert compared(ALONE, SPLIT, "8 x GPU").against == "XLA alone does as well"
    smaller = compared(ALONE, replace(SPLIT, temp=90 * MIB), "8 x GPU")
    assert smaller.sentence.endswith("it sends as much on the wire, and takes 90.0 MiB of temporaries, not 100.0 MiB")
    assert not compared(ALONE, replace(SPLIT, temp=99 * MIB), "8 x GPU").kept
    noise = 1400 * MIB // 1000
    assert compared(ALONE, replace(SPLIT, temp=90 * MIB, wire=1400 * MIB + noise), "8 x GPU").kept
    more = replace(SPLIT, temp=90 * MIB, wire=1400 * MIB + noise + 1)
    assert "it would send" in compared(ALONE, more, "8 x GPU").against
    larger = replace(SPLIT, temp=99 * MIB, wire=1400 * MIB + noise)
    assert compared(ALONE, larger, "8 x GPU").against == "XLA alone does as well"


def test_where_steps_are_compared_a_shorter_one_is_enough_and_it_is_said():
    limits = replace(KeepLimits(), step=True)
    alone = replace(ALONE, step_s=1e-3)
    faster = compared(alone, replace(SPLIT, step_s=0.9e-3), "8 x GPU", limits=limits)
    assert faster.sentence.endswith("sends as much on the wire in 16 calls, not 8; its predicted step takes 900 us, "
                                    "not 1 ms")
    for step in (1e-3, 1.1e-3):
        assert not compared(alone, replace(SPLIT, step_s=step), "8 x GPU", limits=limits).kept
    assert not compared(alone, replace(SPLIT, step_s=0.9e-3, wire=1402 * MIB), "8 x GPU", limits=limits).kept
    assert not compared(alone, replace(SPLIT, step_s=0.9e-3), "8 x GPU").kept  # not asked for


def test_time_has_no_say():
    fast, slow = (Measured(8, 700 * MIB, 1225 * MIB, 100 * MIB, seconds, "") for seconds in (0.1, 1e6))
    assert compared(ALONE, fast, "8 x GPU").against == compared(ALONE, slow, "8 x GPU").against == ""


def test_exact_limits_allow_no_byte_of_memory_more():
    assert compared(ALONE, ours(calls=1), "8 x GPU", limits=EXACT).kept
    assert not compared(ALONE, ours(calls=1, temp=100 * MIB + 1), "8 x GPU", limits=EXACT).kept


def test_exact_limits_allow_no_longer_step():
    alone = replace(ALONE, step_s=1e-3)
    for seconds, kept in ((0.9e-3, True), (1e-3, True), (1.01e-3, False)):
        made = compared(alone, replace(ours(calls=1), step_s=seconds), "8 x GPU", limits=EXACT)
        assert made.kept == kept
    assert "its step would take 1.01 ms, and XLA alone's takes 1 ms" in made.against
    assert compared(alone, replace(ours(calls=1), step_s=2.0), "8 x GPU").kept  # not asked for


def test_steps_of_unknown_time_are_not_compared_and_it_is_said():
    unknown = replace(ours(calls=1), untimed="fusion calls kernel")
    made = compared(replace(ALONE, step_s=1e-3), unknown, "8 x GPU", limits=EXACT)
    assert made.kept and made.sentence.endswith("; step times are not compared: fusion calls kernel")


def test_times_are_of_the_schedule_and_of_nothing_unknown():
    step = """HloModule m, is_scheduled=true, num_partitions=8
ENTRY %main (p: f32[1048576]) -> f32[8388608] {
  %p = f32[1048576]{0} parameter(0)
  ROOT %g = f32[8388608]{0} all-gather(%p), replica_groups=[1,8]<=[8], dimensions={0}
}"""
    made = timed(replace(ALONE, hlo=step), "h200:1x8")
    assert made.step_s is not None and made.step_s == made.exposed_s > 0 and made.untimed == ""
    kernel = step.replace("ROOT %g", '%k = f32[4]{0} custom-call(%p), custom_call_target="mine"\n  ROOT %g')
    for text, cluster, why in ((kernel, "h200:1x8", "k calls mine"), (step, "", "topology"), ("", "h200:1x8", "HLO")):
        other = timed(replace(ALONE, hlo=text), cluster)
        assert other.step_s is None and why in other.untimed


def test_small_steps_may_grow_by_less_than_a_buffer():
    small = Measured(8, 800, 1400, 1000, 1.0, "")
    assert not too_much_memory(small, ours(temp=1000 + MEMORY_SLACK))
    assert too_much_memory(small, ours(temp=1001 + MEMORY_SLACK))
    assert too_much_memory(small, ours(temp=1001 + MEMORY_SLACK), KeepLimits(2.0))


def test_passes_about_something_else_need_not_be_better_but_not_worse():
    assert compared(ALONE, ours(), "8 x GPU", or_equal=True).kept
    assert not compared(ALONE, ours(size=801 * MIB), "8 x GPU", or_equal=True).kept
    silent = Measured(0, 0, 0, 0, 1.0, "")
    assert compared(silent, silent, "8 x GPU").kept


def test_what_is_said():
    assert compared(ALONE, ours(calls=1, size=100 * MIB), "8 x GPU", "cpu").sentence == (
        "the rewritten module is compiled: compared with XLA alone it sends "
        "100.0 MiB, not 800.0 MiB, in 1 calls, not 8")
    text = str(compared(ALONE, ours(), "8 x GPU"))
    assert text.splitlines()[0].split() == ["for", "8", "x", "GPU", "calls", "executed", "MiB", "temporaries", "MiB"]
    assert text.splitlines()[-1] == "your own module is compiled: XLA alone does as well"
    text = compared(ALONE, ours(), "8 x GPU").text(times=True)
    assert "XLA's time s" in text and "  1.00" in text
    made = compared(ALONE, ours(), "8 x GPU", "gpu").as_json()
    assert (made["kept"], made["partitioner"], made["with_code"]) == ("original", "gpu", False)


@pytest.mark.parametrize("share", [1.0011, 1.002, 1.03, 1.2])
@pytest.mark.parametrize("size", [1, 1000, 1400 * MIB, 19 << 30, 3 << 40])
def test_no_reason_is_two_equal_numbers(share: float, size: int):
    """The three reasons of numbers, from the smallest difference on."""
    step_s = size * 1e-6
    alone = Measured(8, size, size, size, 1.0, "", step_s=step_s)
    more, limits = int(size * share) + 1, KeepLimits(1.0, 0, step=True)
    for made in (replace(alone, calls=1, bytes=more, wire=more), replace(alone, calls=1, bytes=2 * size, wire=more),
                 replace(alone, calls=1, temp=more), replace(alone, calls=1, step_s=step_s * share)):
        against = compared(alone, made, "8 x GPU", limits=limits).against
        numbers = re.findall(r"[\d.]+ (?:[KMGT]iB|B|m?s|us)", against)
        assert len(numbers) == 2 and numbers[0] != numbers[1], against


@pytest.mark.parametrize("longer", [1.0, 1.0005])
def test_a_step_that_is_longer_by_noise_is_no_longer_step(longer: float):
    alone = replace(ALONE, step_s=0.24)
    assert compared(alone, replace(ours(calls=1), step_s=0.24 * longer), "8 x GPU", limits=EXACT).kept


@pytest.mark.parametrize(("memory", "devices", "said"), [
    (167 << 30, "8 x NVIDIA H200", "rewritten does not fit: 167.0 GiB of arguments, results and temporaries, where a "
     "device has 140.4 GiB"), (100 << 30, "8 x NVIDIA H200", ""), (167 << 30, "8 x CPU", "")])
def test_a_step_that_does_not_fit_the_device_is_said_to(memory: int, devices: str, said: str):
    step = "HloModule m, is_scheduled=true\nENTRY %main (p: f32[8]) -> f32[8] {\n  ROOT %p = f32[8]{0} parameter(0)\n}"
    alone, made = (timed(replace(ALONE, hlo=step, memory=each), "h200:1x8") for each in (90 << 30, memory))
    lines = compared(alone, made, devices).lines()
    assert [line for line in lines if "fit" in line] == ([said] if said else [])
