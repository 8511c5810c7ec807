"""Profiles of training stacks: why steps of different stacks take different times on the same GPUs.

A profile is data with sources (``data/stacks.toml``): shares of the peak that products and attention reach, bytes that
move outside of products, communication that compute hides, memory on top of what the step needs, and how far measured
steps lie from predicted ones.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType

from hlorewrite.errors import UsageError, did_you_mean

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
