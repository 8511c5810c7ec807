"""The pipeline simulator: computation, transfers, reductions and memory of one step.
    schedule = make_schedule("1f1b", meshes=4, microbatches=8)
    simulation = simulate(schedule, cost, comm_shift=True)
    simulation.iteration_time_s, simulation.bubble_ratio, simulation.exposed_communication_s, simulation.peak_bytes

``cost`` is a :class:`PipelineCost`: from :func:`uniform_cost`, from :func:`describe` (sizes, meshes and a topology),
or built stage by stage from measured times.
"""

from hlorewrite.pipelines.simulate.cost import LinkCost, PipelineCost, StageCost, split_stages, uniform_cost
from hlorewrite.pipelines.simulate.describe import TRANSFERS, Description, describe, parse_meshes
from hlorewrite.pipelines.simulate.simulation import Simulation, simulate

__all__ = ["TRANSFERS", "Description", "LinkCost", "PipelineCost", "Simulation", "StageCost", "describe",
           "parse_meshes", "simulate", "split_stages", "uniform_cost"]
