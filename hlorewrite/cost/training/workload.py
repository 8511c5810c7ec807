"""What one training iteration is: sizes of the parallel groups, batches and the options that change its work."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

RECOMPUTE = ("none", "selective", "full")
BYTES = {"f32": 4, "tf32": 4, "bf16": 2, "f16": 2, "f8": 1}
SCHEDULES = ("1f1b", "gpipe", "interleaved")
MOST_SEQUENCES = 1 << 40
"""Of a global batch: more than any that is trained with, and few enough to try all divisors."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is the same for all configurations compared.

    Args:
      recompute: activations recomputed in the backward pass: none, selective (attention only) or full.
      sequence_parallel: norms and dropouts split over the sequence in a tensor-parallel group.
      zero: ZeRO stage, 0 to 3.
      dtype: type of weights and activations.
      schedule: ``1f1b``, ``gpipe`` or ``interleaved``.
      flash_attention: whether attention scores stay on chip; None means on Hopper and later.
      utilisation: u, share of peak FLOP/s; None asks the model of the GPU.
      tensor_overlap: share of the backward tensor-parallel communication that compute hides.
      grad_bytes: bytes of one gradient element as it is reduced; None means the dtype's.
      scatter_gather: whether tensor ranks, which hold the same activation, each send their share of it to the next
        stage and gather there (Narayanan et al., SC 2021, section 4.1).
      vocabulary_terms: whether the traffic counts the reductions of a vocabulary-parallel embedding and loss, which
        the study's formula leaves out.
      expert_imbalance: load of the fullest expert rank over the mean; 1 is balanced.
    """

    recompute: str = "none"
    sequence_parallel: bool = False
    zero: int = 0
    dtype: str = "bf16"
    schedule: str = "1f1b"
    flash_attention: bool | None = None
    utilisation: float | None = None
    tensor_overlap: float = 0.0
    grad_bytes: int | None = None
    scatter_gather: bool = False
    vocabulary_terms: bool = False
    expert_imbalance: float = 1.0


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Sizes of groups and batches; integers, or arrays of one shape for many configurations.

    Args:
      pp: pipeline stages, p.
      tp: tensor-parallel size, t.
      dp: data-parallel size, d.
      global_batch: sequences of an iteration, gb.
      micro_batch: sequences of a micro-batch of one data-parallel rank, b.
      ep: expert-parallel size, a divisor of d.
      virtual_stages: model chunks of one stage, v.
    """

    pp: Any
    tp: Any
    dp: Any
    global_batch: Any
    micro_batch: Any = 1
    ep: Any = 1
    virtual_stages: Any = 1

    @property
    def micro_batches(self) -> Any:
        """m: micro-batches of one data-parallel rank."""
        return self.global_batch // (self.micro_batch * self.dp)

    def arrays(self) -> Parallelism:
        """The same as float arrays of one shape."""
        import numpy as np
        parts = np.broadcast_arrays(*(np.atleast_1d(getattr(self, part.name)) for part in fields(self)))
        return Parallelism(*(part.astype(float) for part in parts))


def check_options(options: Options) -> None:
    """Refuses options that mean nothing.

    Raises:
      UsageError: names the option.
    """
    if options.recompute not in RECOMPUTE:
        raise UsageError(f'recompute "{options.recompute}" is unknown', hint=f"known: {', '.join(RECOMPUTE)}")
    if options.schedule not in SCHEDULES:
        raise UsageError(f'schedule "{options.schedule}" is unknown', hint=f"known: {', '.join(SCHEDULES)}")
    if options.dtype not in BYTES:
        raise UsageError(f'dtype "{options.dtype}" is unknown', hint=f"known: {', '.join(BYTES)}")
    if options.zero not in (0, 1, 2, 3):
        raise UsageError(f"ZeRO stage {options.zero} does not exist", hint="use 0, 1, 2 or 3")
    if options.utilisation is not None and not 0 < options.utilisation <= 1:
        raise UsageError(f"utilisation {options.utilisation} is not a share", hint="it lies above 0, at most 1")
    if not 0 <= options.tensor_overlap <= 1:
        raise UsageError(f"overlap {options.tensor_overlap} is not a share", hint="it lies between 0 and 1")
    if options.expert_imbalance < 1:
        raise UsageError(f"expert imbalance {options.expert_imbalance} is below 1", hint="1 is balanced")


def check(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> None:
    """Refuses a configuration that cannot run, with the sentence why.

    Raises:
      UsageError: a size below one, or one that does not divide what it has to.
    """
    check_options(options)
    for part in fields(sizes):
        if not 1 <= getattr(sizes, part.name) <= MOST_SEQUENCES:
            raise UsageError(f"{part.name} is {getattr(sizes, part.name)}",
                             hint=f"sizes start at 1 and end at {MOST_SEQUENCES}")
    p, t, d = sizes.pp, sizes.tp, sizes.dp
    if p * t * d != topo.gpus:
        raise UsageError(f"p*t*d = {p}*{t}*{d} = {p * t * d} is not the {topo.gpus} GPUs of {topo.spec}",
                         hint="change --pp, --tp, --dp or the topology")
    if shape.heads % t:
        raise UsageError(f"{shape.heads} heads are not divisible by t = {t}", hint="change --heads or --tp")
    if sizes.global_batch % (sizes.micro_batch * d):
        raise UsageError(f"the global batch {sizes.global_batch} is not divisible by b*d = {sizes.micro_batch}*{d}",
                         hint="change --global-batch, --micro-batch or --dp")
    if shape.layers % (p * sizes.virtual_stages):
        raise UsageError(f"{shape.layers} layers are not divisible by p*v = {p}*{sizes.virtual_stages}",
                         hint="change --layers, --pp or --virtual-stages")
    if sizes.virtual_stages > 1 and p == 1:
        raise UsageError("virtual stages need a pipeline", hint="set --pp above 1 or --virtual-stages to 1")
    if d % sizes.ep:
        raise UsageError(f"d = {d} is not divisible by ep = {sizes.ep}", hint="change --ep or --dp")
    if shape.experts % sizes.ep:
        raise UsageError(f"{shape.experts} experts are not divisible by ep = {sizes.ep}", hint="change --ep")
    if options.sequence_parallel and shape.seq % t:
        raise UsageError(f"a sequence of {shape.seq} is not divisible by t = {t}", hint="change --seq or --tp")
    if options.dtype not in topo.peak_flops:
        raise UsageError(f"{topo.name} has no peak FLOP/s for {options.dtype}",
                         hint=f"known: {', '.join(topo.peak_flops)}")
