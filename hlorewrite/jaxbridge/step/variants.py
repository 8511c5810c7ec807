"""A pipeline, and its reduced form for short memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from hlorewrite.passes.apply_rules import ApplyRules
from hlorewrite.passes.comm_shift.comm_shift import CommShift
from hlorewrite.passes.reduce_scatter_creation import ReduceScatterCreation
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.spec import format_pipeline

_FUSION = "all-reduce-fusion"
_RULE = "slice-of-all-reduce"
_CARRY_OUTSIDE = ApplyRules(only=("carry-inside-scatter",))


@dataclass(frozen=True)
class Variant:
    """Passes to run on a step.

    Attributes:
      passes: the passes.
      memory: bytes that a device may spend on what they keep for longer; None for their own limits.
    """

    passes: tuple[Pass, ...]
    memory: int | None = None

    def memory_within(self, budget: int | None) -> int | None:
        """The memory that its passes may spend if the whole step has a budget."""
        return budget if self.memory is None else self.memory


def variants(passes: Sequence[Pass], *, xla_scatters: bool) -> tuple[Variant, ...]:
    """The pipeline, and variants that take less memory, in the order to try.

    XLA:GPU itself turns an all-reduce and a slice into a reduce-scatter, after it has simplified the ops around them.
    Doing so earlier sends the same bytes, and schedules of auto-sharded steps take up to a tenth more temporaries. So
    this rewrite is dropped first. Fusion copies what it sends together, and saves calls, not bytes, so it is dropped
    next. Then go the passes that move communication to other places of the step, where two iterations are in memory.
    The last variant spends no memory: nothing is hoisted, fused or summed up locally that a device would have to keep.

    Args:
      passes: the user's passes.
      xla_scatters: leave reduce-scatters to XLA from the start.

    Returns:
      At least one variant, all different.

    Example:
      >>> from hlorewrite.passmanager.spec import parse_pipeline
      >>> made = variants(parse_pipeline("comm-shift,reduce-scatter-creation"), xla_scatters=False)
      >>> [([step.name for step in variant.passes], variant.memory) for variant in made]
      [(['comm-shift', 'reduce-scatter-creation'], None), (['comm-shift'], None), (['comm-shift'], 0)]
    """
    left_to_xla = tuple(_without_rule(step) for step in passes if not _is_made_by_xla(step))
    moving = any(step.beside_compute for step in passes)  # XLA makes no reduce-scatter of what they took apart
    first = left_to_xla if xla_scatters and left_to_xla and not moving else tuple(passes)
    unfused = tuple(step for step in (passes if moving else left_to_xla) if step.name != _FUSION) or first
    in_place = tuple(step for step in left_to_xla if step.name != _FUSION and not step.beside_compute) or unfused
    return tuple(dict.fromkeys((Variant(first), Variant(unfused), Variant(in_place), Variant(in_place, 0))))


def with_carry_outside(variant: Variant) -> Variant:
    """The same passes after the rule that takes the carried sum out of the scatter that XLA:GPU adds into it.

    Example:
      >>> from hlorewrite.passmanager.spec import parse_pipeline
      >>> made = with_carry_outside(Variant(tuple(parse_pipeline("comm-shift"))))
      >>> print(format_pipeline(made.passes), has_carry_outside(made))
      rules{only=carry-inside-scatter},comm-shift True
    """
    return replace(variant, passes=(_CARRY_OUTSIDE, *variant.passes))


def has_carry_outside(variant: Variant) -> bool:
    """Whether a variant is one of ``with_carry_outside``."""
    return variant.passes[:1] == (_CARRY_OUTSIDE,)


def takes_carry_outside(variant: Variant) -> bool:
    """Whether the rule belongs before a pipeline: sums are moved, their order is free, and it contains no rules itself.

    Example:
      >>> from hlorewrite.passmanager.spec import parse_pipeline
      >>> [takes_carry_outside(Variant(tuple(parse_pipeline(text))))
      ...  for text in ("cse", "comm-shift", "comm-shift{exact=true}", "rules,comm-shift")]
      [False, True, False, False]
    """
    moved = [step.exact for step in variant.passes if isinstance(step, CommShift)]
    return bool(moved) and not any(moved) and not any(isinstance(step, ApplyRules) for step in variant.passes)


def beginning_of(variant: Variant, tried: Sequence[Variant]) -> tuple[Pass, ...]:
    """The passes of the first variant whose passes are the first ones of a longer variant, with the same memory.

    Args:
      variant: the longer one.
      tried: all.

    Returns:
      Its passes; none if no variant begins like this one.

    Example:
      >>> from hlorewrite.passmanager.spec import parse_pipeline
      >>> made = variants(parse_pipeline("comm-shift,cse,all-reduce-fusion"), xla_scatters=True)
      >>> [str(step) for step in beginning_of(made[0], made)], beginning_of(made[1], made)
      (['comm-shift', 'cse'], ())
    """
    return next((other.passes for other in tried if other.memory == variant.memory
                 and 0 < len(other.passes) < len(variant.passes)
                 and variant.passes[:len(other.passes)] == other.passes), ())


@dataclass(frozen=True)
class StepChoice:
    """How a step was rewritten: it names a candidate in any process, so that a choice can be made again.

    Processes compare its text, and name the line in which they differ; plans contain its data.

    Attributes:
      pipeline: the user's passes, as text.
      partitioner: whose program they ran on; ``none`` for the step's own module.
      passes: what was run of them; None if there was nothing to choose.
      memory: bytes that they may spend; ``unlimited`` without a limit.
      compiled: ``rewritten`` or ``original``.
      options: XLA options of the way that is compiled, beyond the user's, as JSON; None without any.
    """

    pipeline: str | None = None
    partitioner: str | None = None
    passes: str | None = None
    memory: str | None = None
    compiled: str | None = None
    options: str | None = None

    @classmethod
    def of(cls, passes: Sequence[Pass], partitioner: str = "", variant: Variant | None = None, kept: bool = True,
           budget: int | None = None) -> StepChoice:
        """The choice of a run.

        Args:
          passes: the user's passes.
          partitioner: whose program they ran on; empty for the step's own module.
          variant: what was run of them.
          kept: whether the result is compiled, and not the step's own module.
          budget: bytes that the passes may spend where the variant does not say.

        Example:
          >>> from hlorewrite.passmanager.spec import parse_pipeline
          >>> made = StepChoice.of(parse_pipeline("comm-shift,cse"), "cpu", Variant(tuple(parse_pipeline("cse")), 0))
          >>> print(made)
          pipeline comm-shift,cse
          partitioner cpu
          passes cse
          memory 0
          compiled rewritten
          >>> StepChoice.from_text(str(made)) == StepChoice.from_data(made.data()) == made
          True
        """
        made = cls(format_pipeline(passes), partitioner or "none")
        if variant is None:
            return made
        memory = variant.memory_within(budget)
        return replace(made, passes=format_pipeline(variant.passes), compiled="rewritten" if kept else "original",
                       memory="unlimited" if memory is None else str(memory))

    @classmethod
    def from_text(cls, text: str) -> StepChoice:
        """The choice that ``str`` wrote."""
        return cls.from_data({name: value for name, _, value in (line.partition(" ") for line in text.splitlines())})

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> StepChoice:
        """The choice in the data of a plan, which may contain more; every plan says what is compiled."""
        names = [each.name for each in fields(cls)][:None if "passes" in data else 2]
        return cls(**{name: str(data[name]) for name in names if name in data})

    def data(self) -> dict[str, str]:
        """The choice as data of a plan."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return "\n".join(f"{name} {value}" for name, value in self.data().items())


def _is_made_by_xla(step: Pass) -> bool:
    return isinstance(step, ReduceScatterCreation) and not step.only_split


def _without_rule(step: Pass) -> Pass:
    if not isinstance(step, ApplyRules) or (step.only and "algebra" not in step.only):
        return step
    return replace(step, skip=tuple(dict.fromkeys((*step.skip, _RULE))))
