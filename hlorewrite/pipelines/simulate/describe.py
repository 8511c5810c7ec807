"""Costs of a pipeline from a description: sizes, meshes and a topology.

Meshes take the devices of the hosts in turn, the largest mesh first, so that small ones share a host and no mesh
spans more hosts than it must; the tensor-parallel rank counts fastest. An activation is cut over the data axis of its
mesh and copied over the tensor axis; gradients are all-reduced over the data axis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hlorewrite.cost import CollectiveModel, Topology, collective_model
from hlorewrite.errors import PlanError, UsageError, did_you_mean
from hlorewrite.ir.collectives import ALL_REDUCE
from hlorewrite.pipelines.schedules import Schedule
from hlorewrite.pipelines.simulate.cost import LinkCost, PipelineCost, StageCost, split_stages

if TYPE_CHECKING:
    from hlorewrite.pipelines.reshard import SolverBudget

TRANSFERS = ("broadcast", "send-recv", "all-gather", "global-all-gather", "auto", "signal")
"""How activations get from mesh to mesh: a strategy of :mod:`hlorewrite.pipelines.reshard`, or ``signal``: one
byte each, the bound that no transfer can beat."""


def parse_meshes(text: str) -> tuple[tuple[int, int], ...]:
    """Reads meshes: one (DATAxTENSOR) for each.

    Args:
      text: such as ``(8x1),(4x2)``; brackets around the list and spaces are allowed.

    Returns:
      (data, tensor) sizes of each mesh.

    Raises:
      UsageError: a mesh is malformed; the message names its stage.

    Example:
      >>> parse_meshes("[(8x1), (4x2)]")
      ((8, 1), (4, 2))
    """
    inner = text.strip().removeprefix("[").removesuffix("]")
    parts = [part.strip() for part in inner.split(",")]
    sizes = []
    for stage, part in enumerate(parts):
        match = re.fullmatch(r"\(?\s*(\d+)\s*x\s*(\d+)\s*\)?", part)
        if not match or part.startswith("(") != part.endswith(")") or not (
                int(match[1]) and int(match[2])):
            raise UsageError(f'mesh of stage {stage}: "{part}" is not a mesh',
                             hint='write DATAxTENSOR for each, as in "(8x1),(4x2)"')
        sizes.append((int(match[1]), int(match[2])))
    return tuple(sizes)


@dataclass(frozen=True)
class Description:
    """A pipeline in numbers; lists have one entry per mesh.

    Args:
      meshes: (data, tensor) sizes of each mesh.
      forward_s: forward of one micro-batch on everything the mesh holds.
      backward_s: its backward.
      act_bytes: the activation that leaves each mesh for the next, the whole tensor of one micro-batch.
      grad_bytes: weight gradients of one device of each mesh.
      live_bytes: what one device of each mesh keeps of a micro-batch from forward to backward; None means its share of
        the activation.
      static_bytes: weights, gradients and optimizer state of one device of each mesh.
      update_s: the optimizer's step.
      weight_gradient_s: the part of the backward that a split schedule runs later; None stands for half.
    """

    meshes: tuple[tuple[int, int], ...]
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    act_bytes: tuple[int, ...]
    grad_bytes: tuple[int, ...]
    live_bytes: tuple[int, ...] | None = None
    static_bytes: tuple[int, ...] | None = None
    update_s: tuple[float, ...] | None = None
    weight_gradient_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.meshes)
        for name in ("forward_s", "backward_s", "act_bytes", "grad_bytes", "live_bytes", "static_bytes", "update_s",
                     "weight_gradient_s"):
            values = getattr(self, name)
            if values is not None and len(values) != count:
                raise UsageError(f"{count} stages are given {len(values)} values of {name}",
                                 hint="pass one value, or one for each stage")
            for stage, value in enumerate(values or ()):
                if not (math.isfinite(value) and value >= 0):
                    raise UsageError(f"stage {stage} has a {name} of {value}",
                                     hint="times and sizes must be finite and not negative")
        for stage, weight in enumerate(self.weight_gradient_s or ()):
            if weight > self.backward_s[stage]:
                raise UsageError(f"stage {stage} has a weight gradient of {weight} s, longer than its backward "
                                 f"pass of {self.backward_s[stage]} s",
                                 hint="use at most the time of the backward pass")


def describe(description: Description, schedule: Schedule, topology: Topology | None = None,
             transfer: str = "auto", times: CollectiveModel | None = None) -> PipelineCost:
    """Costs of a described pipeline for a schedule.

    Args:
      description: the pipeline.
      schedule: the schedule; where its meshes hold several stages, each is an equal share of its mesh.
      topology: the servers; as many hosts as the meshes need. Without it all communication is free.
      transfer: one of ``TRANSFERS``.
      times: a model of collective times, in place of the topology's.

    Returns:
      The costs.

    Raises:
      UsageError: the transfer is unknown.
      PlanError: the numbers of meshes differ.

    Example:
      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.pipelines.schedules import one_f_one_b
      >>> flat = Description(((8, 1), (4, 2)), (1e-3,) * 2, (2e-3,) * 2, (1 << 24,) * 2, (1 << 30,) * 2)
      >>> cost = describe(flat, one_f_one_b(2, 4), topology("tsubame4"), "broadcast")
      >>> 0.8 < cost.links[0].forward_s / ((1 << 24) / (8 * 25e9)) < 1.5  # eight ports of 25 GB/s
      True
      >>> cost.stages[1].all_reduce_s > (1 << 30) / (2 * 25e9)  # a group of four has two ports on each host
      True
    """
    if transfer not in TRANSFERS:
        raise UsageError(f'there is no transfer "{transfer}"', hint=did_you_mean(transfer, TRANSFERS))
    if schedule.meshes != len(description.meshes):
        raise PlanError(f"the schedule {schedule.name} has {schedule.meshes} meshes, the description "
                        f"{len(description.meshes)}", hint="pass one mesh for each stage")
    chunks = schedule.stages // schedule.meshes
    cluster = None if topology is None else _Cluster(description.meshes, topology, times)
    whole = [_stage(description, mesh, cluster) for mesh in range(schedule.meshes)]
    parts = split_stages(whole, chunks)
    if cluster and chunks > 1:  # half the bytes do not take half the time
        parts = [replace(part, all_reduce_s=cluster.all_reduce_s(mesh, description.grad_bytes[mesh] // chunks))
                 for mesh, part in enumerate(parts)]
    links = []
    for stage in range(schedule.stages - 1):
        here, there = schedule.mesh_of[stage], schedule.mesh_of[stage + 1]
        size = description.act_bytes[here]
        forward, backward = (0.0, 0.0) if here == there or cluster is None else (
            cluster.transfer_s(here, there, size, transfer), cluster.transfer_s(there, here, size, transfer))
        links.append(LinkCost(forward, backward, size / description.meshes[here][0],
                              size / description.meshes[there][0]))
    return PipelineCost(tuple(parts[mesh] for mesh in schedule.mesh_of), tuple(links))


def _stage(description: Description, mesh: int, cluster: _Cluster | None) -> StageCost:
    """Costs of everything a mesh holds."""
    backward = description.backward_s[mesh]
    weight = backward / 2 if description.weight_gradient_s is None else description.weight_gradient_s[mesh]
    live = description.act_bytes[mesh] / description.meshes[mesh][0]
    return StageCost(
        description.forward_s[mesh], backward, backward - weight, weight,
        update_s=description.update_s[mesh] if description.update_s else 0.0,
        all_reduce_s=cluster.all_reduce_s(mesh, description.grad_bytes[mesh]) if cluster else 0.0,
        all_reduce_on_network=bool(cluster and cluster.spans_hosts(mesh)),
        live_bytes=live if description.live_bytes is None else description.live_bytes[mesh],
        static_bytes=description.static_bytes[mesh] if description.static_bytes else 0.0)


class _Cluster:
    """Where the meshes' devices are, and what communication between them takes."""

    def __init__(self, meshes: Sequence[tuple[int, int]], topology: Topology, times: CollectiveModel | None) -> None:
        self.meshes = meshes
        sizes = [data * tensor for data, tensor in meshes]
        self.first = [0] * len(sizes)
        taken = 0
        for mesh in sorted(range(len(sizes)), key=lambda mesh: -sizes[mesh]):
            self.first[mesh], taken = taken, taken + sizes[mesh]
        per_host = topology.gpus_per_host
        self.topology = topology.sized(-(-sum(sizes) // per_host), per_host)
        self.times = times or collective_model(self.topology)
        self.known: dict[tuple[tuple[int, ...], str], float] = {}
        self.budget: SolverBudget | None = None

    def groups(self, mesh: int) -> list[list[int]]:
        """Devices of a mesh that hold the same part of the weights."""
        data, tensor = self.meshes[mesh]
        first = self.first[mesh]
        return [[first + row * tensor + column for row in range(data)] for column in range(tensor)]

    def all_reduce_s(self, mesh: int, size: int) -> float:
        """Seconds of the gradient reduction of ``size`` bytes per device."""
        return self.times.collective_time(ALL_REDUCE.kind, size, self.groups(mesh)) if size else 0.0

    def spans_hosts(self, mesh: int) -> bool:
        """Whether a gradient reduction leaves the host."""
        per_host = self.topology.gpus_per_host
        return any(len({device // per_host for device in group}) > 1 for group in self.groups(mesh))

    @cached_property
    def network(self):
        """The links of all devices."""
        from hlorewrite.pipelines.reshard import network_of
        devices = sum(data * tensor for data, tensor in self.meshes)
        return network_of(self.topology, {device: device // self.topology.gpus_per_host for device in range(devices)})

    def transfer_s(self, here: int, there: int, size: int, strategy: str) -> float:
        """Seconds until an activation of ``size`` bytes has moved from one mesh to another."""
        size = 1 if strategy == "signal" and size else size
        if not size:
            return 0.0
        # Meshes that stand alike on their hosts need the same time.
        per_host = self.topology.gpus_per_host
        base = min(self.first[here], self.first[there]) // per_host * per_host
        key = (*self.meshes[here], self.first[here] - base, *self.meshes[there], self.first[there] - base, size)
        if (seconds := self.known.get((key, strategy))) is None:
            seconds = self._planned_s(here, there, size, "auto" if strategy == "signal" else strategy)
            self.known[key, strategy] = seconds
        return seconds

    def _planned_s(self, here: int, there: int, size: int, strategy: str) -> float:
        import numpy as np

        from hlorewrite.pipelines.reshard import Layout, ReshardMesh, SolverBudget, plan_reshard, sharded
        self.budget = self.budget or SolverBudget()

        def layout(mesh: int) -> Layout:
            data, tensor = self.meshes[mesh]
            first = self.first[mesh]
            grid = ReshardMesh((("data", data), ("tensor", tensor)), np.arange(first, first + data * tensor))
            return sharded((size,), grid, (("data",),))

        return plan_reshard(layout(here), layout(there), 1, self.network, strategy=strategy,
                            budget=self.budget).makespan_s
