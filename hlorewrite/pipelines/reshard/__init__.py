"""Cross-mesh resharding: unit tasks, strategies, order, simulation and lowering."""

from hlorewrite.pipelines.reshard.layout import Layout, ReshardMesh, from_boxes, parse_mesh, parse_spec, sharded
from hlorewrite.pipelines.reshard.network import Network, hosts_of_meshes, network_of
from hlorewrite.pipelines.reshard.order import SolverBudget
from hlorewrite.pipelines.reshard.plan import ORDERS, SENDERS, ReshardPlan, plan_reshard
from hlorewrite.pipelines.reshard.tasks import UnitTasks, unit_tasks
from hlorewrite.pipelines.reshard.transfers import STRATEGIES

__all__ = [
           "ORDERS",
           "SENDERS",
           "STRATEGIES",
           "Layout",
           "Network",
           "ReshardMesh",
           "ReshardPlan",
           "SolverBudget",
           "UnitTasks",
           "from_boxes",
           "hosts_of_meshes",
           "network_of",
           "parse_mesh",
           "parse_spec",
           "plan_reshard",
           "sharded",
           "unit_tasks",
]
