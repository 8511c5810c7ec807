"""Estimates and rankings as text for a terminal."""

from collections.abc import Sequence

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.kernels.stacks import StackProfile
from hlorewrite.cost.training.iteration import Estimate
from hlorewrite.cost.training.memory import MARGIN, MemoryVerdict
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.cost.training.search import Candidate
from hlorewrite.cost.training.workload import Parallelism
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

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
