"""Seconds of a program's transfers, by the plans that resharding makes for them."""

import math
from collections.abc import Mapping

import numpy as np

from hlorewrite.cost import Topology
from hlorewrite.errors import PlanError, UsageError, did_you_mean
from hlorewrite.pipelines.mpmd.program import Program, Transfer
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.pipelines.reshard import Layout, Network, SolverBudget, network_of, plan_reshard, sharded
from hlorewrite.pipelines.reshard.mesh import ReshardMesh
from hlorewrite.pipelines.simulate.describe import TRANSFERS


def sized_for(program: Program, topology: Topology, spec: str) -> Topology:
    """The topology with as many hosts as a program needs.

    Args:
      program: the program; its device d is GPU d.
      topology: the cluster.
      spec: the name of the topology; with a size after a colon, that size is kept.

    Returns:
      The topology.

    Raises:
      UsageError: it was named with a size, and is too small.
    """
    needed = 1 + max(device for mesh in program.meshes.values() for device in mesh.device_ids)
    if ":" in spec:
        if topology.gpus < needed:
            raise UsageError(f"the meshes need {needed} GPUs, but {topology.spec} has {topology.gpus}",
                             hint=f"pass {topology.name} alone for as many hosts as needed")
        return topology
    return topology.sized(-(-needed // topology.gpus_per_host), topology.gpus_per_host)


def cards_of(program: Program, topology: Topology) -> dict[str, frozenset[tuple[int, int]]]:
    """The network cards of each mesh's devices.

    Args:
      program: the program; its device d is GPU d.
      topology: the cluster.

    Returns:
      (host, card) of each mesh's devices, by the mesh's name.
    """
    return {name: frozenset((topology.host_of(device), topology.nic_of(device)) for device in mesh.device_ids)
            for name, mesh in program.meshes.items()}


def transfer_seconds(program: Program, topology: Topology, strategy: str = "auto",
                     known: dict[tuple[str, str], float] | None = None) -> dict[int, float]:
    """Seconds of each transfer.

    Args:
      program: the program.
      topology: the cluster; device d of the program is GPU d of it.
      strategy: one of ``describe.TRANSFERS``.
      known: seconds by the types of both sides, for several programs with the same meshes; what is missing is added.

    Returns:
      Seconds by position in ``Program.steps``.

    Raises:
      UsageError: no transfer has this name.
      PlanError: a value holds parts of a sum in a way that no plan can be made for.
    """
    if strategy not in TRANSFERS:
        raise UsageError(f'there is no transfer "{strategy}"', hint=did_you_mean(strategy, TRANSFERS))
    meshes = {name: ReshardMesh(mesh.axes, np.array(mesh.device_ids)) for name, mesh in program.meshes.items()}
    used = sorted({device for mesh in program.meshes.values() for device in mesh.device_ids})
    network = network_of(topology, {device: device // topology.gpus_per_host for device in used})
    known = {} if known is None else known
    seconds, budget = {}, SolverBudget()
    for position, step in enumerate(program.steps):
        if isinstance(step, Transfer):
            sides = (program.types[step.operand], program.types[step.result])
            key = (sides[0].text, sides[1].text)
            if key not in known:
                known[key] = _seconds(sides, meshes, network, strategy, program.name, budget)
            seconds[position] = known[key]
    return seconds


def _seconds(sides: tuple[MeshTensor, MeshTensor], meshes: Mapping[str, ReshardMesh], network: Network, strategy: str,
             where: str, budget: SolverBudget) -> float:
    source, target = sides
    if source.unreduced or target.unreduced:
        raise PlanError(f"a value of type {source.text} is sent as an unreduced sum", location=where,
                        hint="reduce it before it is sent")
    if (source.mesh == target.mesh and source.spec == target.spec) or not source.bytes:
        return 0.0
    count = math.prod(source.shape)
    itemsize = max(1, source.bytes // count)
    shape = source.shape
    if strategy == "signal":  # one byte for each tile
        tiles = [_tiles(kind, meshes) for kind in sides]
        shape, itemsize = tuple(math.lcm(a, b) for a, b in zip(*tiles, strict=True)), 1
    layouts: list[Layout] = [sharded(shape, meshes[kind.mesh], kind.spec) for kind in sides]
    return plan_reshard(layouts[0], layouts[1], itemsize, network,
                        strategy="auto" if strategy == "signal" else strategy, budget=budget).makespan_s


def _tiles(type_: MeshTensor, meshes: Mapping[str, ReshardMesh]) -> list[int]:
    return list(sharded(type_.shape, meshes[type_.mesh], type_.spec).grid)
