"""One training iteration: sizes of the parallel groups, batches and the options that change its work."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.kernels.rates import StackProfile, covering_stack, stack
from hlorewrite.cost.training.model import ModelShape
from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

RECOMPUTE = ("none", "selective", "full")
NARROW = {"f8": 1.0, "mxf8": 1.0 + 1 / 32, "f4": 0.5 + 1 / 16}
"""Types of the operands of linear products alone, with bytes of an element and its share of a block's scale (OCP
Microscaling Formats 1.0: one byte for 32 elements; NVFP4: one for 16). All else of such a step is bf16."""
BYTES = {"f32": 4, "tf32": 4, "bf16": 2, "f16": 2}
DTYPES = (*BYTES, *NARROW)
SCHEDULES = ("1f1b", "gpipe", "interleaved")
MOST_SEQUENCES = 1 << 40
"""The most sequences of a global batch: more than any that is trained with, and few enough to try all divisors."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is the same for all configurations compared.

    Shares of communication that compute hides are those of the stack where they are None.

    Args:
      recompute: activations recomputed in the backward pass: none, selective (what the stack selects) or full.
      sequence_parallel: norms and dropouts split over the sequence in a tensor-parallel group.
      zero: ZeRO stage, 0 to 3; from 2 on gathers and reductions run in each micro-batch, as FSDP does.
      dtype: type of the operands of matrix products. With ``f8``, ``mxf8`` and ``f4`` linear products alone have it:
        attention, storage and messages are bf16.
      schedule: ``1f1b``, ``gpipe`` or ``interleaved``.
      flash_attention: whether attention scores stay on chip; None means on Hopper and later.
      utilisation: u, share of peak FLOP/s; None asks the model of the GPU.
      tensor_overlap: share of tensor-parallel communication that compute hides.
      grad_bytes: bytes of one gradient element as it is reduced; None means those of storage.
      scatter_gather: whether tensor ranks, which hold the same activation, each send their share of it to the next
        stage and gather there (Narayanan et al., SC 2021, section 4.1).
      vocabulary_terms: whether the traffic counts the reductions of a vocabulary-parallel embedding and loss, which
        the study's formula leaves out.
      expert_imbalance: load of the fullest expert rank over the mean; 1 is balanced.
      stack: a profile of the training stack (:func:`hlorewrite.cost.kernels.rates.stack_names`), or ``auto``.
      recompute_layers: how many layers of a stage recompute; None is all.
      pipeline_overlap: share of stage-to-stage transfers that compute hides.
      data_overlap: share of the gradient reduction and ZeRO-1's gathers that compute hides.
      fsdp_overlap: share of a micro-batch's compute under which the gathers and reductions of FSDP can run.
      expert_overlap: share of expert all-to-alls that compute hides.
      dispatch_once: whether a token is sent to another host once, whatever number of its experts are there.
    """

    recompute: str = "none"
    sequence_parallel: bool = False
    zero: int = 0
    dtype: str = "bf16"
    schedule: str = "1f1b"
    flash_attention: bool | None = None
    utilisation: float | None = None
    tensor_overlap: float | None = None
    grad_bytes: int | None = None
    scatter_gather: bool = False
    vocabulary_terms: bool = False
    expert_imbalance: float = 1.0
    stack: str = "auto"
    recompute_layers: int | None = None
    pipeline_overlap: float | None = None
    data_overlap: float | None = None
    fsdp_overlap: float | None = None
    expert_overlap: float | None = None
    dispatch_once: bool | None = None

    @property
    def store(self) -> str:
        """The type of weights in memory, activations and messages."""
        return "bf16" if self.dtype in NARROW else self.dtype

    @property
    def store_bytes(self) -> int:
        """Bytes of an element of that type."""
        return BYTES[self.store]


def chosen_stack(shape: ModelShape, topo: Topology, options: Options) -> StackProfile:
    """The profile that an estimate uses: the named one, or the one whose measured rows resemble the configuration.

    Example:
      >>> from hlorewrite.cost import model, topology
      >>> chosen_stack(model("llama3-8b"), topology("h100"), Options(zero=3)).name
      'torch-fsdp2'
    """
    if options.stack != "auto":
        return stack(options.stack)
    return covering_stack(topo.architecture, uses_flash(options, topo), options.zero, shape.family)


def uses_flash(options: Options, topo: Topology) -> bool:
    """Whether attention scores stay on chip."""
    if options.flash_attention is not None:
        return options.flash_attention
    if options.stack != "auto":
        return bool(stack(options.stack).attention_share)
    return topo.architecture in ("hopper", "blackwell")


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Sizes of groups and batches; integers, or arrays of one shape for many configurations.

    Args:
      pp: pipeline stages, p.
      tp: tensor-parallel size, t.
      dp: data-parallel size, d.
      global_batch: sequences of an iteration, gb.
      micro_batch: sequences of a micro-batch of one data-parallel rank, b.
      ep: expert-parallel size, a divisor of t*cp*d. Where it divides cp*d, an expert is split over t; otherwise its
        ranks take the place of tensor ranks too, and each holds whole experts.
      virtual_stages: model chunks of one stage, v.
      cp: context-parallel size: each rank holds 1/cp of a sequence's tokens.
    """

    pp: Any
    tp: Any
    dp: Any
    global_batch: Any
    micro_batch: Any = 1
    ep: Any = 1
    virtual_stages: Any = 1
    cp: Any = 1

    @property
    def replicas(self) -> Any:
        """cp*d: ranks that hold the same dense weights."""
        return self.cp * self.dp

    @property
    def expert_split(self) -> Any:
        """Tensor ranks that an expert is split over: t, or 1 if expert parallelism takes their place."""
        return self.tp * (self.replicas % self.ep == 0) + (self.replicas % self.ep != 0)

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
    """Refuses unknown names and numbers out of range.

    Raises:
      UsageError: names the option.
    """
    if options.recompute not in RECOMPUTE:
        raise UsageError(f'recompute "{options.recompute}" is unknown', hint=f"known: {', '.join(RECOMPUTE)}")
    if options.schedule not in SCHEDULES:
        raise UsageError(f'schedule "{options.schedule}" is unknown', hint=f"known: {', '.join(SCHEDULES)}")
    if options.dtype not in DTYPES:
        raise UsageError(f'dtype "{options.dtype}" is unknown', hint=f"known: {', '.join(DTYPES)}")
    if options.zero not in (0, 1, 2, 3):
        raise UsageError(f"ZeRO stage {options.zero} does not exist", hint="use 0, 1, 2 or 3")
    if options.utilisation is not None and not 0 < options.utilisation <= 1:
        raise UsageError(f"utilisation {options.utilisation} is not a share", hint="it must be above 0 and at most 1")
    for name in ("tensor_overlap", "pipeline_overlap", "data_overlap", "fsdp_overlap", "expert_overlap"):
        share = getattr(options, name)
        if share is not None and not 0 <= share <= 1:
            raise UsageError(f"{name} {share} is not a share", hint="it must be between 0 and 1")
    if options.recompute_layers is not None and options.recompute_layers < 0:
        raise UsageError(f"recompute_layers is {options.recompute_layers}", hint="it starts at 0")
    if options.stack != "auto":
        stack(options.stack)
    if options.expert_imbalance < 1:
        raise UsageError(f"expert imbalance {options.expert_imbalance} is below 1", hint="1 is balanced")


def check(shape: ModelShape, sizes: Parallelism, topo: Topology, options: Options) -> None:
    """Refuses a configuration that cannot run, with a sentence that says why.

    Raises:
      UsageError: a size below one, or one that does not divide what it has to.
    """
    check_options(options)
    for part in fields(sizes):
        if not 1 <= getattr(sizes, part.name) <= MOST_SEQUENCES:
            raise UsageError(f"{part.name} is {getattr(sizes, part.name)}",
                             hint=f"sizes must be from 1 to {MOST_SEQUENCES}")
    p, t, d, c = sizes.pp, sizes.tp, sizes.dp, sizes.cp
    if p * t * c * d != topo.gpus:
        what, sized = ("p*t*d", f"{p}*{t}*{d}") if c == 1 else ("p*t*cp*d", f"{p}*{t}*{c}*{d}")
        raise UsageError(f"{what} = {sized} = {p * t * c * d} is not the {topo.gpus} GPUs of {topo.spec}",
                         hint="change --pp, --tp, --dp or the topology")
    if shape.heads % t:
        raise UsageError(f"{shape.heads} heads are not divisible by t = {t}", hint="change --heads or --tp")
    if sizes.global_batch % (sizes.micro_batch * d):
        raise UsageError(f"the global batch {sizes.global_batch} is not divisible by b*d = {sizes.micro_batch}*{d}",
                         hint="change --global-batch, --micro-batch or --dp")
    if shape.layers < p * sizes.virtual_stages - (2 if p > 1 else 0):  # embedding and output layer may stand alone
        raise UsageError(f"{shape.layers} layers do not fill p*v = {p}*{sizes.virtual_stages} chunks",
                         hint="change --layers, --pp or --virtual-stages")
    if sizes.virtual_stages > 1 and p == 1:
        raise UsageError("virtual stages need a pipeline", hint="set --pp above 1 or --virtual-stages to 1")
    if t * c * d % sizes.ep:
        raise UsageError(f"t*cp*d = {t * c * d} is not divisible by ep = {sizes.ep}", hint="change --ep or --dp")
    if shape.experts % sizes.ep:
        raise UsageError(f"{shape.experts} experts are not divisible by ep = {sizes.ep}", hint="change --ep")
    split = c * (t if options.sequence_parallel else 1)
    if shape.seq % split:
        by = f"t = {t}" if c == 1 else f"{split} ranks that share it"
        raise UsageError(f"a sequence of {shape.seq} is not divisible by {by}", hint="change --seq, --tp or --cp")
    peak = {"mxf8": "f8"}.get(options.dtype, options.dtype)
    if peak not in topo.peak_flops:
        raise UsageError(f"{topo.name} has no peak FLOP/s for {options.dtype}",
                         hint=f"known: {', '.join(topo.peak_flops)}")
