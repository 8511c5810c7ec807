"""Ranks all configurations of a model on a cluster that divide evenly and fit in memory, and prints them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.kernels.rates import StackProfile
from hlorewrite.cost.training.iteration import Estimate, estimate_many
from hlorewrite.cost.training.memory import MARGIN, MemoryVerdict
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.workload import MOST_SEQUENCES, Options, Parallelism, check_options
from hlorewrite.errors import UsageError
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration and what it costs."""

    sizes: Parallelism
    cost: Estimate


def search(shape: ModelShape, topo: Topology, global_batch: int, options: Options | None = None, *,
           most_virtual_stages: int = 1, memory_share: float = 0.94) -> list[Candidate]:
    """All (p, t, d, b, v) that divide evenly and fit, fastest first.

    Args:
      shape: the model.
      topo: the cluster.
      global_batch: sequences of an iteration.
      options: recomputation, ZeRO, dtype and so on.
      most_virtual_stages: try up to that many model chunks of a stage.
      memory_share: share of a GPU's memory a configuration may use.

    Returns:
      Candidates by iteration time; empty when nothing fits.

    Raises:
      UsageError: the global batch or an option is not possible.

    Example:
      >>> from hlorewrite.cost import model, topology
      >>> best = search(model("gpt-22b"), topology("a100:2x8"), 64, Options(recompute="full"))[0]
      >>> best.sizes.pp * best.sizes.tp * best.sizes.dp
      16
    """
    options = options or Options()
    check_options(options)
    if not 1 <= global_batch <= MOST_SEQUENCES:
        raise UsageError(f"global_batch is {global_batch}", hint=f"sizes must be from 1 to {MOST_SEQUENCES}")
    rows = configurations(shape, topo, global_batch, options, most_virtual_stages)
    if not rows:
        return []
    import numpy as np
    columns = np.array(rows, dtype=float).T
    cost = estimate_many(shape, Parallelism(*columns), topo, options)
    fits = np.flatnonzero(cost.memory_bytes_per_gpu <= memory_share * topo.memory_bytes)
    order = fits[np.argsort(cost.iteration_time_s[fits], kind="stable")]
    values = cost.as_dict().values()
    return [Candidate(Parallelism(*rows[i]), Estimate(*(float(value[i]) for value in values))) for i in order]


def configurations(shape: ModelShape, topo: Topology, global_batch: int, options: Options,
                   most_virtual_stages: int) -> list[tuple[int, ...]]:
    """Rows (pp, tp, dp, global batch, micro-batch, ep, virtual stages) that divide evenly."""
    rows = []
    for t in _divisors(topo.gpus):
        if shape.heads % t or (options.sequence_parallel and shape.seq % t):
            continue
        for p in _divisors(topo.gpus // t):
            d = topo.gpus // t // p
            if shape.layers % p or global_batch % d:
                continue
            for b in _divisors(global_batch // d):
                for v in range(1, most_virtual_stages + 1 if p > 1 else 2):
                    if shape.layers % (p * v) == 0:
                        rows += [(p, t, d, global_batch, b, ep, v) for ep in _divisors(d) if shape.experts % ep == 0]
    return rows


def _divisors(number: int) -> list[int]:
    small = [part for part in range(1, math.isqrt(number) + 1) if number % part == 0]
    return small + [number // part for part in reversed(small) if part * part != number]


# ---- estimates and rankings as text for a terminal


PARTS = (("t_comp_s", "compute"), ("t_tp_s", "tensor-parallel"), ("t_cp_s", "context-parallel"),
         ("t_pp_s", "pipeline transfers"),
         ("t_dp_s", "data-parallel"), ("t_ep_s", "expert all-to-all"), ("t_bubble_s", "pipeline bubble"))


def estimate_text(shape: ModelShape, sizes: Parallelism, topo: Topology, estimated: Estimate, stack: StackProfile,
                  memory: MemoryVerdict) -> str:
    """One estimate: the configuration, the parts of the iteration, and memory."""
    named, numbers = ("(p,t,d)", f"({sizes.pp},{sizes.tp},{sizes.dp})")
    if sizes.cp > 1:
        named, numbers = ("(p,t,cp,d)", f"({sizes.pp},{sizes.tp},{sizes.cp},{sizes.dp})")
    low, high = format_seconds(estimated.iteration_low_s), format_seconds(estimated.iteration_high_s)
    lines = [
        f"{shape.name}: {shape.parameters / 1e9:.2f} B parameters on {topo.spec}, {named} = {numbers}, "
        f"gb {sizes.global_batch}, b {sizes.micro_batch}, m {sizes.micro_batches}",
        f"iteration {format_seconds(estimated.iteration_time_s)}, {estimated.tflops_per_gpu:.1f} TFLOP/s per GPU, "
        f"communication {estimated.r_comm:.1%}, bubble {estimated.r_bubble:.1%}",
        f"stack {stack.name}: 80 of 100 measured steps are between {low} and {high}",
    ]
    rows = [[name, format_seconds(getattr(estimated, field)),
             f"{getattr(estimated, field) / estimated.iteration_time_s:.1%}"]
            for field, name in PARTS if sizes.cp > 1 or field != "t_cp_s"]
    lines += table([["part", "time", "share"], *rows], "<>>")
    return "\n".join([*lines, memory_text(memory, topo)])


def memory_text(memory: MemoryVerdict, topo: Topology) -> str:
    """Whether it fits, in one line."""
    says = {
        "fits": "fits",
        "tight": f"may not fit: measured peaks are within {MARGIN:.0%} of predicted ones",
        "recompute": f"fits only with recomputation or offloading; {format_bytes(memory.least_bytes)} with --recompute",
        "no": "DOES NOT FIT, not even with full recomputation",
    }[memory.fits]
    return f"memory {format_bytes(memory.bytes_per_gpu)} of {format_bytes(topo.memory_bytes)} per GPU: {says}"


def search_text(shape: ModelShape, topo: Topology, candidates: Sequence[Candidate], top: int) -> str:
    """The best configurations, one per line."""
    if not candidates:
        return f"no configuration of {shape.name} fits {topo.spec}; try --recompute, --zero or more GPUs"
    rows = [["rank", "(p,t,d)", "b", "ep", "v", "iteration", "TFLOP/s", "comm", "bubble", "memory"]]
    for place, each in enumerate(candidates[:top], 1):
        sizes, cost = each.sizes, each.cost
        rows.append([str(place), f"({sizes.pp},{sizes.tp},{sizes.dp})", str(sizes.micro_batch), str(sizes.ep),
                     str(sizes.virtual_stages), format_seconds(cost.iteration_time_s), f"{cost.tflops_per_gpu:.1f}",
                     f"{cost.r_comm:.1%}", f"{cost.r_bubble:.1%}", format_bytes(cost.memory_bytes_per_gpu)])
    head = f"{len(candidates)} configurations of {shape.name} fit {topo.spec}"
    return "\n".join([head, *table(rows, ">" * len(rows[0]))])
