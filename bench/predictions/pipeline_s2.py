"""GPT-3 and U-Transformer pipelines of the cross-mesh resharding paper, simulated step by step of its improvements.

    python bench/predictions/pipeline_s2.py [--json]

Configurations of the artifact of Zhuang et al., "On Optimizing the Communication of Model Parallelism", MLSys 2023: two
stages, each on its own p3.8xlarge (four V100, one 10 Gbit/s port), recomputation in the backward pass.
For each: naive send/recv, send/recv with an all-gather on the receiving host (Alpa's default), broadcast, all three
blocking; broadcast overlapped with computation; overlapped under eager-1F1B; and one byte in place of every payload,
the bound that no transfer can beat. The paper states gains of its whole system
over the existing ones of 10 % for GPT-3 and 50 % for U-Transformer, and throughputs only in figures.
``--parts`` says instead what of the whole gain over the all-gather comes from broadcast, from overlap and from the
schedule, and how much of it is there without broadcast.

Not stated, and so assumed: products reach the share of the peak that ``hlorewrite/cost/data/compute.toml`` gives Volta;
the U-Transformer's activations are either copied over the stage's GPUs or cut by image: both are shown.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any

from hlorewrite.cost import collective_model, model, topology
from hlorewrite.cost.kernels.rates import compute_constants
from hlorewrite.pipelines.schedules import make_schedule
from hlorewrite.pipelines.simulate import Description, describe, simulate
from hlorewrite.util.progress import mapped

STEPS = (("send/recv", "send-recv", False, "1f1b"), ("all-gather", "all-gather", False, "1f1b"),
         ("broadcast", "broadcast", False, "1f1b"),
         ("+ overlap", "broadcast", True, "1f1b"), ("+ eager-1f1b", "broadcast", True, "eager-1f1b"),
         ("signal", "signal", True, "eager-1f1b"))
PARTS = (("all-gather", "all-gather", False, "1f1b"), ("broadcast", "broadcast", False, "1f1b"),
         ("overlap", "broadcast", True, "1f1b"), ("schedule", "broadcast", True, "eager-1f1b"),
         ("without broadcast", "all-gather", True, "eager-1f1b"))


@dataclass(frozen=True)
class PipelineCase:
    """One configuration.

    Args:
      name: model, size and layout.
      mesh: (data, tensor) of each of the two stages.
      batch: samples of an iteration.
      microbatches: m.
      forward_flops: of one sample, on the first and the second stage.
      parameters: of the first and the second stage.
      act_bytes: what the first stage hands the second for a sample.
      element_bytes: bytes of a number: 2 for half, 4 for single precision.
      reduced_bytes: what tensor parallelism all-reduces for a sample in a stage's forward pass.
    """

    name: str
    mesh: tuple[int, int]
    batch: int
    microbatches: int
    forward_flops: tuple[float, float]
    parameters: tuple[float, float]
    act_bytes: float
    element_bytes: int
    reduced_bytes: float = 0.0


def gpt(name: str, layers: int, hidden: int, mesh: tuple[int, int], batch: int) -> PipelineCase:
    """A GPT-3 of sequence length 1024 and vocabulary 51200 in half precision, four micro-batches."""
    shape = model("gpt", layers=layers, hidden=hidden, heads=32, seq=1024, vocab=51200)
    layer = 2.0 * shape.seq * (shape.layer_weights + 2 * shape.seq * hidden)
    head = 2.0 * shape.seq * hidden * shape.vocab
    boundary = 2.0 * shape.seq * hidden
    body = layers / 2 * shape.layer_weights
    table = shape.embedding_parameters
    return PipelineCase(name, mesh, batch, 4, (layers / 2 * layer, layers / 2 * layer + head),
                        (body + table, body + table),
                        boundary, 2, layers * boundary)  # two reductions in each of layers / 2 layers


def unet(name: str, width: int, split: int, mesh: tuple[int, int], batch: int, microbatches: int) -> PipelineCase:
    """A U-Transformer on 32 x 32 latents in single precision: widths c, 2c, 4c, 4c, cut after ``split`` of 13 layers.

    Layers are the four of the way down, the middle one and eight of the way up (two at each resolution). Across the
    cut go the current activation and every skip connection whose consumer is after it.
    """
    c = width
    grid = ((c, 32), (2 * c, 16), (4 * c, 8), (4 * c, 4))
    # Skips in the order in which they are made: input convolution, then layer and down-sampling of each block.
    skips = [c * 32**2]
    for level, (channels, size) in enumerate(grid):
        skips += [channels * size**2] + ([channels * (size // 2) ** 2] if level < 3 else [])
    flops, after = [], []
    previous = c
    for level, (channels, size) in enumerate(grid):
        flops.append(residual(previous, channels, size) + (attention(channels, size) if level < 3 else 0.0))
        after.append(skips[2 * level + 2] if level < 3 else skips[-1])  # its down-sampling's output, or its own
        previous = channels
    flops.append(2 * residual(4 * c, 4 * c, 4) + attention(4 * c, 4))
    after.append(4 * c * 4**2)
    made = list(skips)
    for level, (channels, size) in reversed(list(enumerate(grid))):
        for half in range(2):
            skip = made.pop() // size**2
            flops.append(residual(previous + skip, channels, size) + (attention(channels, size) if level < 3 else 0.0))
            grown = 4 if half and level else 1  # the second one up-samples
            after.append(channels * size**2 * grown)
            previous = channels
    consumed = max(split - 5, 0)
    crossing = after[split - 1] + sum(skips[:len(skips) - consumed])
    whole, first = sum(flops), sum(flops[:split])
    parameters = {320: 470e6, 480: 1.0e9, 672: 2.0e9}[width]
    return PipelineCase(name, mesh, batch, microbatches, (first, whole - first),
                        (parameters * split / 13, parameters * (13 - split) / 13), 4.0 * crossing, 4)


def residual(inputs: int, outputs: int, size: int) -> float:
    """Floating-point operations of two 3 x 3 convolutions and a shortcut."""
    return 2.0 * size**2 * (9 * (inputs * outputs + outputs**2) + inputs * outputs)


def attention(width: int, size: int) -> float:
    """Operations of a transformer block: 22 w^2 a token for self- and cross-attention and gated feed-forward."""
    return 2.0 * size**2 * (22 * width**2 + 2 * size**2 * width)


def cases() -> list[PipelineCase]:
    """The configurations."""
    configurations = [gpt("GPT-3 1.3B (1,2,2)", 24, 2048, (1, 2), 64), gpt("GPT-3 2.6B (2,2,2)", 32, 2560, (2, 2), 32),
                      unet("U-Net 470M", 320, 7, (1, 1), 256, 4)]
    for name, width, split, gpus in (("U-Net 1B", 480, 8, 2), ("U-Net 2B", 672, 9, 4)):
        configurations.append(unet(f"{name}, copied", width, split, (1, gpus), 2048, 32))
        configurations.append(unet(f"{name}, by image", width, split, (gpus, 1), 2048, 32))
    return configurations


def describe_case(case: PipelineCase) -> Description:
    """Times and sizes of a configuration; the backward pass computes the forward again."""
    cluster = topology("p3.8xlarge")
    peak = cluster.peak_flops["f16" if case.element_bytes == 2 else "f32"]
    rate = peak * compute_constants()["matmul_efficiency"]["volta"]
    gpus = case.mesh[0] * case.mesh[1]
    sample = case.batch / case.microbatches
    size = case.reduced_bytes * sample / case.mesh[0]
    reduced = collective_model(cluster).collective_time("all-reduce", int(size), [list(range(case.mesh[1]))]) \
        if case.reduced_bytes and case.mesh[1] > 1 else 0.0
    forward = tuple(flops * sample / gpus / rate + reduced for flops in case.forward_flops)
    split = case.mesh[1] if case.reduced_bytes else 1
    gradients = tuple(int(each * case.element_bytes / split) for each in case.parameters)
    return Description((case.mesh,) * 2, forward, tuple(3 * each for each in forward),
                       (int(case.act_bytes * sample),) * 2, gradients if case.mesh[0] > 1 else (0, 0))


def run_case(case: PipelineCase) -> list[dict[str, Any]]:
    """All steps of one configuration."""
    description = describe_case(case)
    gpus = case.mesh[0] * case.mesh[1]
    # One host holds one stage: a host has as many GPUs as a mesh.
    cluster = topology("p3.8xlarge").sized(2, gpus)
    rows = []
    for label, transfer, overlap, name in STEPS:
        schedule = make_schedule(name, 2, case.microbatches)
        cost = describe(description, schedule, cluster, transfer)
        simulated = simulate(schedule, cost, overlap=overlap)
        flops = 4 * case.batch * sum(case.forward_flops)
        rows.append({"case": case.name, "step": label, "iteration_time_s": simulated.iteration_time_s,
                     "tflops": flops / simulated.iteration_time_s / 1e12, "transfer_s": cost.links[0].forward_s,
                     "forward_s": max(description.forward_s), "bubble_ratio": simulated.bubble_ratio,
                     "exposed_communication_s": simulated.exposed_communication_s})
    for row in rows:
        row["over_send_recv"] = rows[0]["iteration_time_s"] / row["iteration_time_s"]
        row["over_all_gather"] = rows[1]["iteration_time_s"] / row["iteration_time_s"]
        row["of_bound"] = rows[-1]["iteration_time_s"] / row["iteration_time_s"]
    return rows


def parts(case: PipelineCase) -> dict[str, Any]:
    """What each part multiplies throughput by, their product, and the product without broadcast."""
    gpus = case.mesh[0] * case.mesh[1]
    description, cluster = describe_case(case), topology("p3.8xlarge").sized(2, gpus)
    seconds = []
    for _, transfer, overlap, name in PARTS:
        schedule = make_schedule(name, 2, case.microbatches)
        seconds.append(simulate(schedule, describe(description, schedule, cluster, transfer),
                                overlap=overlap).iteration_time_s)
    first, broadcast, overlapped, eager, without = seconds
    return {"case": case.name, "broadcast": first / broadcast, "overlap": broadcast / overlapped,
            "schedule": overlapped / eager, "all": first / eager, "without_broadcast": first / without}


def print_parts(as_json: bool) -> None:
    """Prints the parts of each configuration's gain."""
    rows = mapped("simulating", list(cases()), parts, name=lambda case: case.name)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'configuration':<22}{'broadcast':>11}{'overlap':>9}{'schedule':>10}{'all':>6}{'without broadcast':>19}")
    for row in rows:
        print(f"{row['case']:<22}{row['broadcast']:>11.2f}{row['overlap']:>9.2f}{row['schedule']:>10.2f}{row['all']:>6.2f}"
              f"{row['without_broadcast']:>19.2f}")


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    parser.add_argument("--parts", action="store_true", help="print what each part of the gain comes from")
    args = parser.parse_args()
    if args.parts:
        print_parts(args.json)
        return 0
    results = mapped("simulating", list(cases()), run_case, name=lambda case: case.name)
    rows = [row for rows_of_case in results for row in rows_of_case]
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    print(f"{'configuration':<22}{'step':<14}{'iteration':>11}{'TFLOP/s':>9}{'transfer':>10}{'forward':>9}{'exposed':>9}"
          f"{'over send/recv':>16}{'over all-gather':>17}{'of the bound':>14}")
    for row in rows:
        print(f"{row['case']:<22}{row['step']:<14}{row['iteration_time_s']:>9.3f} s{row['tflops']:>9.1f}"
              f"{row['transfer_s']:>8.3f} s{row['forward_s']:>7.3f} s{row['exposed_communication_s']:>7.3f} s"
              f"{row['over_send_recv']:>15.2f}x"
              f"{row['over_all_gather']:>16.2f}x{row['of_bound']:>13.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
