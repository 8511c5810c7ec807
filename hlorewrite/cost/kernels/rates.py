"""Seconds of a kernel of one GPU from the bytes it moves and the products it computes, by stack of software."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.kernels.work import NOTHING_WRITTEN, Product, WrittenElements
from hlorewrite.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


# ---- rates of one GPU

# Seconds of a kernel of one GPU from the bytes it moves and the products it computes.
#
# Every prediction of a kernel's time is made here. Passes use it through :mod:`hlorewrite.cost.kernels.clock`,
# simulated schedules through :mod:`hlorewrite.timeline.kernel_times`, and estimates of whole iterations through
# :mod:`hlorewrite.cost.training.compute_time`.


_WIDER = (("f4", ("f4", "f8", "bf16", "f16", "f32")), ("f8", ("f8", "bf16", "f16", "f32")),
          ("i8", ("i8", "f8", "bf16", "f32")), ("bf16", ("bf16", "f16", "f32")),
          ("f16", ("f16", "bf16", "f32")), ("tf32", ("tf32", "f32")), ("f64", ("f64", "f32")))
_EIGHT_BITS = {"s8": "i8", "u8": "i8", "s4": "i8", "u4": "i8", "ui8": "i8", "i4": "i8", "ui4": "i8", "f4e2m1fn": "f8",
               "f4E2M1FN": "f8", "mxf8": "f8"}


class KernelRates:
    """The rates that one GPU sustains.

    Args:
      topology: the cluster, for its GPU.
      profile: the training stack's profile; None is XLA's.

    Attributes:
      memory_bytes_per_s: sustained memory bandwidth.
      launch_s: seconds that each kernel takes on top of its work.
      elements_per_s: elements that a kernel writes per second, however narrow they are.

    Example:
      >>> from hlorewrite.cost import topology
      >>> rates = KernelRates(topology("h200"))
      >>> rates.seconds(4e9, ()) > 9e-4, rates.seconds(0, ()) == rates.launch_s
      (True, True)
    """

    def __init__(self, topology: Topology, profile: StackProfile | None = None) -> None:
        constants = compute_constants()
        self.stack = stack("xla") if profile is None else profile
        self.generation = topology.architecture
        self._share = by_generation(constants["matmul_efficiency"], topology.architecture)
        self._board = next((factor for name, factor in self.stack.board.items() if topology.gpu.startswith(name)), 1.0)
        self._peaks = dict(topology.peak_flops)
        self.memory_bytes_per_s = topology.memory_bytes_per_s * float(constants["memory_efficiency"])
        self.launch_s = float(timeline_constants()["kernel_launch_s"])
        self.elements_per_s = by_generation(constants["elements_per_s"], topology.architecture)
        self._scattered_per_s = by_generation(constants["scattered_16_bit_elements_per_s"], topology.architecture)

    def seconds(self, moved: float, products: Sequence[Product], written: WrittenElements = NOTHING_WRITTEN) -> float:
        """Seconds of one kernel: a launch, and its bytes, its products or its elements, whichever takes longest.

        Args:
          moved: bytes it reads and writes.
          products: its matrix products.
          written: the elements of its results; a product writes them in tiles, at no extra cost.
        """
        computing = sum(each.flops / self._wide_rate(each.dtype) for each in products)
        if not products:
            computing = max(written.elements / self.elements_per_s, written.scattered_16_bit / self._scattered_per_s)
        return self.launch_s + max(moved / self.memory_bytes_per_s, computing)

    def product_rate(self, dtype: str, width: Array | float | None = None, *, experts: bool = False) -> Array | float:
        """FLOP/s of matrix products.

        Args:
          dtype: element type of the operands.
          width: the narrower of their inner sizes on one GPU; None is wide.
          experts: whether the products are an expert's.

        Example:
          >>> from hlorewrite.cost import topology
          >>> rates = KernelRates(topology("h100"), stack("megatron"))
          >>> rates.product_rate("bf16", 1024) < rates.product_rate("bf16", 8192) < rates.product_rate("bf16")
          True
        """
        rate = self._wide_rate(dtype, experts=experts)
        return rate if width is None else rate / (1 + self.stack.half_width.get(_class_of(dtype), 0.0) / width)

    def _wide_rate(self, dtype: str, *, experts: bool = False) -> float:
        """FLOP/s of wide matrix products."""
        kind = _class_of(dtype)
        table = self.stack.expert_share if experts and self.stack.expert_share else self.stack.product_share
        share = by_generation(table[kind], self.generation) if kind in table else self._share
        return self.peak(dtype) * self._board * share

    @property
    def attention_rate(self) -> float:
        """FLOP/s of fused attention's forward pass, counting the causal half."""
        table = self.stack.attention_share or stack("xla-flash").attention_share
        return self.peak("bf16") * self._board * by_generation(table, self.generation)

    def peak(self, dtype: str) -> float:
        """FLOP/s of an element type, or of the type it is widened to if the GPU has no rate for it."""
        name = _EIGHT_BITS.get(dtype, "f8" if dtype.startswith("f8") else dtype)
        known = next((others for kind, others in _WIDER if kind == name), ("f32",))
        return float(next((self._peaks[other] for other in known if other in self._peaks), max(self._peaks.values())))


def _class_of(dtype: str) -> str:
    """The class of element types whose share of the peak is known."""
    if dtype in ("f4", "i8", "mxf8") or dtype in _EIGHT_BITS:
        return "f4" if dtype == "f4" else "f8"
    return "f8" if dtype.startswith("f8") else "f16"


# ---- profiles of training stacks: why steps of different stacks take different times on the same GPUs

# A profile is data with sources (``data/stacks.toml``): shares of the peak that products and attention reach, bytes
# that move outside of products, communication that compute hides, memory on top of what the step needs, and how far
# measured steps lie from predicted ones.


BY_GENERATION = Mapping[str, float]
NEWEST = "blackwell"


@dataclass(frozen=True)
class StackProfile:
    """One profile.

    Args:
      name: its name.
      about: what it describes.
      fitted_to: the measured rows that its constants were fitted to.
      covers: what the rows cover: GPU generations, ZeRO stages and model families.
      product_share: share of the peak that products reach, by class of type (``f16``, ``f8``, ``f4``) and generation of
        GPU; the default is in ``data/compute.toml``.
      half_width: width of a product at which its share halves, by class of type; 0 is none.
      expert_share: the same share for products of experts.
      board: factor on the rates of a board, by its name, where its clock differs from its generation's.
      attention_share: share of the bf16 peak that fused attention reaches on the causal half; empty if scores go
        through memory.
      attention_backward: time of fused attention's backward pass, relative to its forward pass.
      outside_bytes: bytes moved outside of products, relative to those of norms, residuals and activation functions.
      score_elements: elements that unfused attention moves for each score, forward.
      gradient_bytes: bytes that adding a micro-batch's gradients to their sum moves, for each parameter.
      convert_bytes: elements moved to convert the operands of a linear product to a narrow type, over its inputs and
        outputs.
      expert_bytes: elements moved to permute tokens for experts and back, over k h, by generation.
      expert_launch_s: seconds that a layer with experts adds to the forward pass, and twice to the backward pass.
      selective: share of a layer's forward pass that selective recomputation repeats; 0 is attention alone.
      hidden: shares of communication that compute hides: ``tensor``, ``pipeline``, ``data``, ``expert`` (inside hosts),
        ``expert_far`` (between hosts), ``context``; ``fsdp`` is the share of compute under which FSDP's run, and
        ``fsdp_most`` the share of these that can be hidden at all.
      dispatch_once: whether a token is sent to another host once for all of its experts there.
      spread: two ratios of measured to predicted time, between which 80 of 100 rows lie.
      selective_kept: share of a layer's activations that selective recomputation keeps, where it repeats a share.
      logit_bytes: bytes that the loss holds for each element of the logits.
      gathered_in_pipelines: share of a stage's weights that FSDP holds unsharded where there are several stages.
      memory_factor: memory of activations with fragmentation and temporary buffers, relative to activations alone.
      memory_bytes: buffers of libraries and of communication, in bytes.
    """

    name: str
    about: str
    fitted_to: str
    covers: tuple[Mapping[str, list[object]], ...] = ()
    product_share: Mapping[str, BY_GENERATION] = field(default_factory=dict)
    half_width: Mapping[str, float] = field(default_factory=dict)
    expert_share: Mapping[str, BY_GENERATION] = field(default_factory=dict)
    board: Mapping[str, float] = field(default_factory=dict)
    attention_share: BY_GENERATION = field(default_factory=dict)
    attention_backward: float = 2.5
    outside_bytes: float = 1.0
    score_elements: float = 6.5
    gradient_bytes: float = 0.0
    convert_bytes: float = 0.0
    expert_bytes: BY_GENERATION = field(default_factory=dict)
    expert_launch_s: float = 0.0
    selective: float = 0.0
    hidden: Mapping[str, float] = field(default_factory=dict)
    dispatch_once: bool = False
    spread: tuple[float, float] = (0.8, 1.25)
    selective_kept: float = 1.0
    logit_bytes: float = 4.0
    gathered_in_pipelines: float = 1.0
    memory_factor: float = 1.0
    memory_bytes: float = 0.0

    def covers_row(self, architecture: str, flash: bool, zero: int, family: str) -> bool:
        """Whether the measured rows cover a configuration."""
        asked = {"generation": architecture, "flash": flash, "zero": zero, "family": family}
        return any(all(asked[key] in known for key, known in row.items()) for row in self.covers)


@functools.cache
def stacks() -> Mapping[str, StackProfile]:
    """All profiles, by name, in the order of ``data/stacks.toml``."""
    text = (Path(__file__).parent.parent / "data" / "stacks.toml").read_text(encoding="utf-8")
    known = {part.name for part in fields(StackProfile)}
    found: dict[str, StackProfile] = {}
    for name, entry in tomllib.loads(text).items():
        base = {key: getattr(found[entry["extends"]], key) for key in known - {"covers"}} if "extends" in entry else {}
        values = {**base, **{key: value for key, value in entry.items() if key != "extends"}, "name": name}
        values["covers"] = tuple(values.get("covers", ()))
        values["spread"] = tuple(values.get("spread", StackProfile.spread))
        found[name] = StackProfile(**values)
    return MappingProxyType(found)


def stack_names() -> list[str]:
    """Names of the profiles.

    Example:
      >>> "megatron" in stack_names()
      True
    """
    return list(stacks())


def stack(name: str) -> StackProfile:
    """A profile by its name.

    Raises:
      UsageError: the name is unknown.

    Example:
      >>> stack("xla").attention_share
      {}
    """
    if name not in stacks():
        raise UsageError(f'there is no stack "{name}"', hint=did_you_mean(name, ["auto", *stack_names()]))
    return stacks()[name]


def covering_stack(architecture: str, flash: bool, zero: int, family: str) -> StackProfile:
    """The first profile whose measured rows cover a configuration; ``megatron`` if none does.

    Args:
      architecture: generation of the GPU.
      flash: whether attention is fused.
      zero: ZeRO stage.
      family: family of the model.
    """
    found = (each for each in stacks().values() if each.covers_row(architecture, flash, zero, family))
    return next(found, stacks()["megatron" if flash else "megatron-lm"])


def by_generation(table: BY_GENERATION, architecture: str) -> float:
    """A table's entry for a generation of GPU, or its smallest value."""
    return float(table[architecture] if architecture in table else min(table.values()))


# ---- constants of the models of compute: what one GPU sustains, and what a simulated schedule adds


@functools.cache
def compute_constants() -> Mapping[str, Any]:
    """Calibrated constants, by name, as in ``data/compute.toml``."""
    text = (Path(__file__).parent.parent / "data" / "compute.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def timeline_constants() -> Mapping[str, Any]:
    """Constants of the simulated schedule, by name, as in ``data/timeline.toml``."""
    text = (Path(__file__).parent.parent / "data" / "timeline.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
