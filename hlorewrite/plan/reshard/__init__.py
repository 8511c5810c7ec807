"""Cross-mesh resharding: unit tasks, strategies, order, simulation and lowering."""

from hlorewrite.plan.reshard.exact import SolverBudget
from hlorewrite.plan.reshard.layout import Layout, from_boxes, sharded
from hlorewrite.plan.reshard.mesh import ReshardMesh, parse_mesh, parse_spec
from hlorewrite.plan.reshard.network import Network, hosts_of_meshes, network_of
from hlorewrite.plan.reshard.plan import ORDERS, SENDERS, ReshardPlan, plan_reshard
from hlorewrite.plan.reshard.tasks import UnitTasks, unit_tasks
from hlorewrite.plan.reshard.transfers import STRATEGIES

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
