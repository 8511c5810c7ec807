"""Costs of communication and computation: clusters, collectives, traffic, iterations.
Passes need one method of one object:

    times = collective_model(topology("h200:4x8"))
    seconds = times.collective_time(kind, payload_bytes, groups)

``kind`` is one of ``KINDS``; ``payload_bytes`` the larger of operand and result in bytes of one device (operand
of all-reduce, reduce-scatter, all-to-all, collective-permute and collective-broadcast, result of all-gather);
``groups`` the device numbers of each group, all of which communicate at the same time, and for
collective-permute its [source, target] pairs. Anything with that method will do: ``CollectiveModel`` is a
``typing.Protocol``. NumPy is imported at the first time asked for, not with this package.
"""

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.cluster.topology_file import load_topology, topology, topology_names
from hlorewrite.cost.collective_kinds import KINDS
from hlorewrite.cost.collectives.models import CollectiveModel, CurveModel, NcclModel, collective_model
from hlorewrite.cost.training.iteration import Estimate, estimate, estimate_many
from hlorewrite.cost.training.model import ModelShape, model, model_names
from hlorewrite.cost.training.workload import Options, Parallelism

__all__ = [
    "KINDS", "CollectiveModel", "CurveModel", "Estimate", "ModelShape", "NcclModel", "Options", "Parallelism",
    "Topology", "collective_model", "estimate", "estimate_many", "load_topology", "model", "model_names", "topology",
    "topology_names",
]
