"""Costs of a pipeline's tasks: seconds and bytes of each stage, and of the transfers between stages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from hlorewrite.errors import PlanError


@dataclass(frozen=True)
class StageCost:
    """Costs of one stage.

    Args:
      forward_s: forward of one micro-batch.
      backward_s: whole backward of one micro-batch.
      input_gradient_s: the part of the backward that the stage before waits for; by default half of it.
      weight_gradient_s: the rest; by default the other half.
      update_s: the optimizer's step.
      all_reduce_s: reduction of the stage's gradients over data-parallel replicas, once a step.
      all_reduce_on_network: whether that reduction leaves the host, and so needs the mesh's NICs.
      live_bytes: what a device keeps of a micro-batch from forward to backward.
      static_bytes: weights, gradients and optimizer state of a device.

    Raises:
      PlanError: a number is negative or not finite.

    Example:
      >>> StageCost(1.0, 2.0).input_gradient_s
      1.0
    """

    forward_s: float
    backward_s: float
    input_gradient_s: float = -1.0
    weight_gradient_s: float = -1.0
    update_s: float = 0.0
    all_reduce_s: float = 0.0
    all_reduce_on_network: bool = True
    live_bytes: float = 0.0
    static_bytes: float = 0.0

    def __post_init__(self) -> None:
        for split in ("input_gradient_s", "weight_gradient_s"):
            if getattr(self, split) == -1.0:
                object.__setattr__(self, split, self.backward_s / 2)
        _check(self, "a stage")

    def seconds(self, kind: str) -> float:
        """Duration of a task of a kind (``F``, ``B``, ``I`` or ``W``)."""
        return {"F": self.forward_s, "B": self.backward_s, "I": self.input_gradient_s,
                "W": self.weight_gradient_s}[kind]


@dataclass(frozen=True)
class LinkCost:
    """Costs of what passes between a stage and the next, for one micro-batch.

    Args:
      forward_s: transfer of the activation to the next stage.
      backward_s: transfer of its gradient back.
      upper_bytes: what a device of the earlier stage's mesh holds of it.
      lower_bytes: what a device of the later stage's mesh holds of it.

    Raises:
      PlanError: a number is negative or not finite.
    """

    forward_s: float = 0.0
    backward_s: float = 0.0
    upper_bytes: float = 0.0
    lower_bytes: float = 0.0

    def __post_init__(self) -> None:
        _check(self, "a transfer")


@dataclass(frozen=True)
class PipelineCost:
    """Costs of a whole pipeline.

    Args:
      stages: one entry per stage.
      links: one entry for each neighbouring pair of stages, ``len(stages) - 1``; transfers inside a mesh are free.

    Raises:
      PlanError: the numbers of entries do not agree.

    Example:
      >>> uniform_cost(4, 1e-3, 2e-3).stages[3].forward_s
      0.001
    """

    stages: tuple[StageCost, ...]
    links: tuple[LinkCost, ...]

    def __post_init__(self) -> None:
        if len(self.links) != len(self.stages) - 1:
            raise PlanError(f"{len(self.stages)} stages are given {len(self.links)} transfers between them",
                            hint=f"pass {len(self.stages) - 1}")


def uniform_cost(stages: int, forward_s: float, backward_s: float, transfer_s: float = 0.0,
                 all_reduce_s: float = 0.0) -> PipelineCost:
    """Equal costs on all stages.

    Args:
      stages: number of stages.
      forward_s: forward of one micro-batch on one stage.
      backward_s: backward of one micro-batch on one stage.
      transfer_s: transfer in either direction.
      all_reduce_s: gradient reduction of a stage.

    Returns:
      The costs.
    """
    return PipelineCost((StageCost(forward_s, backward_s, all_reduce_s=all_reduce_s),) * stages,
                        (LinkCost(transfer_s, transfer_s),) * (stages - 1))


def split_stages(costs: Sequence[StageCost], chunks: int) -> list[StageCost]:
    """Costs of one chunk if each of these stages is cut into equal chunks.

    Example:
      >>> split_stages([StageCost(2.0, 4.0)], 2)[0].forward_s
      1.0
    """
    def part(cost: StageCost) -> StageCost:
        return StageCost(**{field.name: value if isinstance(value := getattr(cost, field.name), bool)
                            else value / chunks for field in fields(cost)})
    return [part(cost) for cost in costs]


def _check(cost: StageCost | LinkCost, what: str) -> None:
    for field in fields(cost):
        value = getattr(cost, field.name)
        if not (math.isfinite(value) and value >= 0):
            unit = "bytes" if field.name.endswith("bytes") else "seconds"
            name = field.name.rsplit("_", 1)[0].replace("_", " ")
            raise PlanError(f"{what} has a {name} of {value} {unit}",
                            hint="times and sizes must be finite and not negative")
