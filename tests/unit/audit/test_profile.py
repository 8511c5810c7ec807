"""Profiles of nsys and of JAX: read, matched with a schedule, and what cannot be matched."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from audit_steps import BIG, GROUPS, REDUCED, looped

from hlorewrite.audit.profile import ProfiledKernel, read_nsys, read_xplane
from hlorewrite.audit.reconcile import ReconciledProfile, reconcile
from hlorewrite.cost import topology
from hlorewrite.errors import InputError
from hlorewrite.timeline.simulate import ScheduledStep

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
TWO = REDUCED.replace("%next =", "%sum =") + f"""
  %again = {BIG} all-reduce(%sum), {GROUPS}, to_apply=%add, metadata={{source_file="train.py" source_line=8}}
  %next = {BIG} tanh(%again)"""


def reconciled(text: str, kernels: list[ProfiledKernel]) -> ReconciledProfile:
    step = ScheduledStep(text, topology("h200:1x8"))
    return reconcile(kernels, step.at(), step.program.entry)


def test_a_sum_of_nsys_is_matched_by_kind() -> None:
    """Two steps on eight devices: 16 calls of 8 turns each; one copy, which is left out."""
    text = ("Processing [step.sqlite] with [cuda_gpu_kern_sum.py]...\n\n"
            "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
            f'90.0,"12,800,000",128,100000.0,"{NCCL}"\n9.0,1600000,16,100000.0,loop_add_fusion_3\n'
            "1.0,5,1,5.0,[CUDA memcpy Device-to-Device]\n")
    kernels = read_nsys(text.encode(), "sum.csv")
    assert len(kernels) == 2
    made = reconciled(looped(REDUCED), list(kernels))
    (row,) = made.matched
    assert (row.collectives, row.calls, row.runs, made.how, made.runs_per_call) == (("reduced",), 8, 128, "kind", 16)
    assert row.measured_s == pytest.approx(1e-4) and made.measured_compute_s == pytest.approx(1e-4)
    assert made.unmatched == ()


def test_a_trace_of_nsys_is_matched_in_the_order_of_the_schedule() -> None:
    """On each of two devices the kernels of the two all-reduces alternate."""
    lines = ["Start (ns),Duration (ns),CorrId,Device,Strm,Name"]
    lines += [f'{1000 * at + device},{100 if at % 2 == 0 else 300},1,NVIDIA H200 ({device}),7,"{NCCL}"'
              for at in reversed(range(16)) for device in (0, 1)]
    made = reconciled(looped(TWO), list(read_nsys("\n".join(lines).encode(), "trace.csv")))
    assert made.how == "order" and made.runs_per_call == 2
    assert {row.collectives: (row.source, row.runs, round(row.measured_s * 1e9)) for row in made.matched} == {
        ("reduced",): ("train.py:7", 16, 100), ("again",): ("train.py:8", 16, 300)}


def test_a_trace_that_is_cut_is_matched_by_kind_and_it_is_said() -> None:
    kernels = [ProfiledKernel(NCCL, 1e-6, 1, "0", float(at)) for at in range(15)]
    made = reconciled(looped(TWO), kernels)
    assert made.matched[0].collectives == ("reduced", "again") and made.runs_per_call is None
    assert "a device runs 15 of them and a step has 16" in made.unmatched[0]
    assert "15 runs in the profile are not a multiple of 16 a step" in made.unmatched[1]


def test_collectives_of_one_start_are_one_row_of_a_profile() -> None:
    both = (f"%both (v: {BIG}) -> ({BIG}, {BIG}) {{\n  %v = {BIG} parameter(0)\n"
            f"  %a = {BIG} all-reduce(%v), {GROUPS}, to_apply=%add\n"
            f"  %c = {BIG} all-reduce(%v), {GROUPS}, to_apply=%add\n"
            f"  ROOT %pair = ({BIG}, {BIG}) tuple(%a, %c)\n}}")
    text = looped(f"\n  %sent = (({BIG}), ({BIG}, {BIG})) async-start(%gradient), calls=%both\n"
                  f"  %done = ({BIG}, {BIG}) async-done(%sent)\n  %one.1 = {BIG} get-tuple-element(%done), index=0\n"
                  f"  %next = {BIG} tanh(%one.1)", extra=both)
    step = ScheduledStep(text, topology("h200:1x8")).at()
    assert [one.name for one in step.collectives] == ["sent", "sent"]
    for kernel in (ProfiledKernel(NCCL, 8e-6, 8, op="sent"), ProfiledKernel(NCCL, 8e-6, 8)):
        (row,) = reconciled(text, [kernel]).matched
        assert (row.collectives, row.calls, row.runs) == (("sent",), 8, 8)
        assert row.predicted_s == pytest.approx(step.communication_s / 8)


def test_what_has_no_partner_is_named() -> None:
    made = reconciled(looped(REDUCED), [ProfiledKernel(GATHER, 1e-6, 3), ProfiledKernel("fusion_1", 1e-6, 1)])
    assert made.matched == () and made.measured_compute_s is None
    assert made.unmatched == ("reduced (train.py:7) has no kernel in the profile",
                              "the kernel ncclDevKernel_AllGather_RING_LL (3 runs) belongs to no collective of the "
                              "schedule")
    lost = reconciled(looped(REDUCED, known=False), [ProfiledKernel(NCCL, 1e-6, 3)])
    assert lost.unmatched[0] == "reduced (train.py:7) is in a loop with an unknown trip count"


@pytest.mark.parametrize(("text", "says"), [
    ("", "not an nsys statistics file"), ("a,b\n1,2\n", "not an nsys statistics file"),
    ("Total Time (ns),Instances,Name\nx,1,k\n", "'x'"), ("Total Time (ns),Instances,Name\n-1,1,k\n", "'-1'"),
    ("Start (ns),Duration (ns),Name\n1,,k\n", "''")])
def test_other_tables_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_nsys(text.encode(), "x.csv")


# ---- XPlane


def number(field: int, value: int) -> bytes:
    """A field of a whole number."""
    return varint(field << 3) + varint(value)


def nested(field: int, value: bytes) -> bytes:
    """A field of a message or text."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """A whole number as a protocol buffer writes it."""
    made = bytearray()
    while value > 127:  # Ends: the value falls in each round.
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def named(field: int, names: dict[int, str]) -> bytes:
    """A map of metadata."""
    return b"".join(nested(field, number(1, key) + nested(2, number(1, key) + nested(2, name.encode())))
                    for key, name in names.items())


def gpu_profile() -> bytes:
    """One GPU, a stream with a reduction and a fusion, and a line that the profiler derives."""
    def event(kernel: int, offset: int, duration: int, op: int) -> bytes:
        stat = nested(4, number(1, 1) + number(7, op))
        return nested(4, number(1, kernel) + number(2, offset) + number(3, duration) + stat)

    stream = nested(2, b"Stream #13(Compute)") + number(3, 2_000_000_000) + event(1, 5_000, 7_000_000, 2) \
        + event(2, 9_000_000, 3_000_000, 3)
    derived = nested(2, b"XLA Ops") + event(2, 0, 1, 3)
    plane = nested(2, b"/device:GPU:0") + nested(3, stream) + nested(3, derived) \
        + named(4, {1: NCCL, 2: "loop_fusion"}) + named(5, {1: "hlo_op", 2: "reduced", 3: "fusion.4"})
    return nested(1, nested(2, b"/host:CPU")) + nested(1, plane)


def test_the_profile_of_jax_is_matched_by_instruction() -> None:
    kernels = read_xplane(gpu_profile(), "step.xplane.pb")
    assert [(each.op, each.device) for each in kernels] == [("reduced", "GPU:0"), ("fusion.4", "GPU:0")]
    assert [each.seconds for each in kernels] == pytest.approx([7e-6, 3e-6])
    assert kernels[0].start_s == pytest.approx(2 + 5e-9)
    made = reconciled(looped(REDUCED), list(kernels) * 8)
    assert made.how == "instruction" and made.runs_per_call == 1
    assert made.matched[0].measured_s == pytest.approx(7e-6)


def test_the_reader_agrees_with_jax() -> None:
    """JAX's own reader finds the same kernels in the same bytes."""
    planes = [plane for plane in jax.profiler.ProfileData.from_serialized_xspace(gpu_profile()).planes
              if plane.name.startswith("/device:GPU")]
    events = [(event.name, event.duration_ns, dict(event.stats).get("hlo_op")) for plane in planes
              for line in plane.lines if line.name.startswith("Stream") for event in line.events]
    ours = [(each.name, each.seconds * 1e9, each.op) for each in read_xplane(gpu_profile(), "x")]
    assert [(name, pytest.approx(duration), op) for name, duration, op in events] == ours


def test_profiles_without_a_gpu_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    with jax.profiler.trace(str(tmp_path)):
        jnp.ones(8).sum().block_until_ready()
    (written,) = tmp_path.rglob("*.xplane.pb")
    with pytest.raises(InputError, match="contains no GPU"):
        read_xplane(written.read_bytes(), "cpu.xplane.pb")
    for damaged in (gpu_profile()[:-3], b"\x07\x07", b"plain text, no profile"):
        with pytest.raises(InputError, match=r"damaged|contains no GPU"):
            read_xplane(damaged, "x.xplane.pb")
