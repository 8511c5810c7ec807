"""The timeline against a second simulator, and how long it takes.

Usage: ``python bench/predictions/timeline.py [--instructions 100000] [--only speed]``.

Table 1: GPT train steps compiled for described H200s; exposed time by ``hlorewrite timeline`` and by
``event_simulator.py`` at equal constants, once with the timeline's kernel times, once with kernel times of its own.
Table 2: CPU seconds to read and simulate generated HLO, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("h200:1x8", "h200:4x8")
BOUND = 0.02
"""Of the step: how far both may be apart in exposed time."""


def main() -> int:
    """Runs the bench; 1 when the two simulators differ by more than the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", type=int, default=100_000)
    parser.add_argument("--only", choices=["agreement", "speed"])
    args = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "examples"), str(ROOT)]
    worst = 0.0
    if args.only != "speed":
        worst = agreement()
    if args.only != "agreement":
        speed(args.instructions)
    return int(worst > BOUND)


def agreement() -> float:
    """Prints table 1; the largest difference as a share of the step."""
    from timeline_steps import LARGE, STEPS, exported_step

    from hlorewrite.ir.load import parse
    from hlorewrite.jaxbridge.xla.compile_for import compile_for
    from hlorewrite.jaxbridge.xla.target import parse_target

    print(f"{'step':<12}{'target':<10}{'slowdown':>9}{'step':>10}{'compute':>10}{'exposed':>10}{'second':>10}"
          f"{'apart':>8}{'own kernels':>13}{'apart':>8}   ms; apart in % of the step")
    worst = 0.0
    for step in STEPS:
        for text in TARGETS:
            target = parse_target(text)
            module = parse(exported_step(step, LARGE, target.devices), name=step.name)
            worst = max(worst, compare(step.name, text, compile_for(module, target).hlo))
    print(f"largest difference: {worst:.2%} of the step")
    return worst


def compare(name: str, target: str, hlo: str) -> float:
    """One step at both slowdowns; the larger difference."""
    from event_simulator import EventConstants, EventSimulator

    from hlorewrite.cost import collective_model, topology
    from hlorewrite.cost.kernels.rates import compute_constants, timeline_constants
    from hlorewrite.timeline.kernel_times import KernelTimes
    from hlorewrite.timeline.simulate import ScheduledStep

    cluster = topology(target)
    step = ScheduledStep(hlo, cluster)
    times, shares = KernelTimes(step.module, cluster), compute_constants()
    kernels = {i.name: seconds for c in step.module.computations.values() for i in c.instructions.values()
               if (seconds := times.seconds(c, i)) is not None}
    rate = shares["matmul_efficiency"][cluster.architecture]
    flops = {dtype: peak * rate for dtype, peak in cluster.peak_flops.items()} | {
        "f32": cluster.peak_flops["tf32"] * rate}
    model, worst = collective_model(cluster), 0.0
    for slowdown in (0.0, timeline_constants()["overlap_slowdown"]):
        constants = EventConstants(cluster.memory_bytes_per_s * shares["memory_efficiency"], flops,
                              timeline_constants()["kernel_launch_s"], slowdown, model.collective_time)
        ours = step.at(slowdown)
        apart = []
        for given in (kernels, None):
            _, exposed = EventSimulator(hlo, constants, given).exposed()
            apart += [exposed * 1e3, abs(exposed - ours.exposed_s) / ours.step_s]
        print(f"{name:<12}{target:<10}{slowdown:>9.0%}{ours.step_s * 1e3:>10.2f}{ours.compute_s * 1e3:>10.2f}"
              f"{ours.exposed_s * 1e3:>10.2f}{apart[0]:>10.2f}{apart[1]:>8.2%}{apart[2]:>13.2f}{apart[3]:>8.2%}",
              flush=True)
        worst = max(worst, apart[1], apart[3])
    return worst


def speed(instructions: int) -> None:
    """Prints table 2."""
    from hlorewrite.cost import topology
    from hlorewrite.timeline.simulate import ScheduledStep

    cluster = topology("h200:1x8")
    print(f"\n{'instructions':>13}{'read':>8}{'at 0':>8}{'at 20 %':>9}{'in all':>8}   seconds of one core, median of 3")
    for count in (instructions // 10, instructions):
        text = generated_hlo(count)
        rows = []
        for _ in range(3):
            begin = time.process_time()
            step = ScheduledStep(text, cluster)
            read = time.process_time()
            step.at(0.0)
            first = time.process_time()
            step.at(0.2)
            end = time.process_time()
            rows.append((read - begin, first - read, end - first, end - begin))
        shown = [statistics.median(column) for column in zip(*rows, strict=True)]
        lines = sum(len(c.instructions) for c in step.module.computations.values())
        print(f"{lines:>13}{shown[0]:>8.2f}{shown[1]:>8.2f}{shown[2]:>9.2f}{shown[3]:>8.2f}", flush=True)


def generated_hlo(instructions: int) -> str:
    """Scheduled HLO of about so many instructions: micro-batches of layers in two nested loops, each layer a product,
    a fusion of its own and an all-reduce that is done four layers later."""
    parts = ["HloModule generated, is_scheduled=true, num_partitions=8\n",
             "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
             "  ROOT %s = f32[] add(%x, %y)\n}\n"]
    layers = max(1, instructions // 14)
    body = ["  %b = (s32[], bf16[4096,2048]{1,0}, bf16[2048,2048]{1,0}, f32[2048,2048]{1,0}) parameter(0)",
            "  %i = s32[] get-tuple-element(%b), index=0", "  %one = s32[] constant(1)",
            "  %h0 = bf16[4096,2048]{1,0} get-tuple-element(%b), index=1",
            "  %w = bf16[2048,2048]{1,0} get-tuple-element(%b), index=2",
            "  %g0 = f32[2048,2048]{1,0} get-tuple-element(%b), index=3"]
    meta = 'metadata={op_name="jit(step)/while/body/layer" stack_frame_id=1}'
    queue = 'backend_config={"operation_queue_id":"0","force_earliest_schedule":false}'
    for k in range(layers):
        parts.append(_fusion(k, meta))
        body += _layer(k, meta, queue)
        if k >= 4:
            body.append(f"  %x{k} = f32[2048,2048]{{1,0}} all-reduce-done(%s{k - 4}), {meta}")
    body += [f"  %z{k} = f32[2048,2048]{{1,0}} all-reduce-done(%s{k}), {meta}"
             for k in range(max(0, layers - 4), layers)]
    shape = "(s32[], bf16[4096,2048], bf16[2048,2048], f32[2048,2048])"
    body += ["  %j = s32[] add(%i, %one)", f"  ROOT %o = {shape} tuple(%j, %h{layers}, %w, %z{layers - 1})"]
    parts.append(f"%body (b: {shape}) -> {shape} {{\n" + "\n".join(body) + "\n}\n")
    parts.append(f"%condition (c: {shape}) -> pred[] {{\n  %c = {shape} parameter(0)\n"
                 "  %n = s32[] get-tuple-element(%c), index=0\n  %m = s32[] constant(64)\n"
                 "  ROOT %l = pred[] compare(%n, %m), direction=LT\n}\n")
    parts.append(f"ENTRY %main (h: bf16[4096,2048], w: bf16[2048,2048], g: f32[2048,2048]) -> {shape} {{\n"
                 "  %h = bf16[4096,2048]{1,0} parameter(0)\n  %w = bf16[2048,2048]{1,0} parameter(1)\n"
                 "  %g = f32[2048,2048]{1,0} parameter(2)\n  %zero = s32[] constant(0)\n"
                 f"  %start = {shape} tuple(%zero, %h, %w, %g)\n"
                 f"  ROOT %loop = {shape} while(%start), condition=%condition, body=%body\n}}\n")
    return "\n".join(parts)


def _fusion(k: int, meta: str) -> str:
    """The fusion of a layer."""
    return (
        f"%fused.{k} (p: bf16[4096,2048], q: bf16[4096,2048]) -> bf16[4096,2048] {{\n"
        "  %p = bf16[4096,2048]{1,0} parameter(0)\n  %q = bf16[4096,2048]{1,0} parameter(1)\n"
        f"  %m = bf16[4096,2048]{{1,0}} multiply(%p, %q), {meta}\n"
        f"  %e = bf16[4096,2048]{{1,0}} exponential(%m), {meta}\n"
        f"  ROOT %r = bf16[4096,2048]{{1,0}} add(%e, %p), {meta}\n}}\n")


def _layer(k: int, meta: str, queue: str) -> list[str]:
    """The instructions of a layer, without the end of an all-reduce."""
    return [f"  %d{k} = bf16[4096,2048]{{1,0}} dot(%h{k}, %w), lhs_contracting_dims={{1}}, "
            f"rhs_contracting_dims={{0}}, {meta}, {queue}",
            f"  %h{k + 1} = bf16[4096,2048]{{1,0}} fusion(%d{k}, %h{k}), kind=kLoop, calls=%fused.{k}, {meta}",
            f"  %c{k} = f32[2048,2048]{{1,0}} copy(%g0), {meta}",
            f"  %t{k} = f32[2048,2048]{{0,1}} bitcast(%c{k}), {meta}",
            f"  %u{k} = f32[2048,2048]{{1,0}} transpose(%t{k}), dimensions={{1,0}}, {meta}",
            f"  %v{k} = f32[2048,2048]{{1,0}} add(%u{k}, %c{k}), {meta}",
            f"  %s{k} = f32[2048,2048]{{1,0}} all-reduce-start(%v{k}), channel_id={k + 1}, "
            f"replica_groups={{{{0,1,2,3,4,5,6,7}}}}, use_global_device_ids=true, to_apply=%add, {meta}, {queue}"]


if __name__ == "__main__":
    sys.exit(main())
