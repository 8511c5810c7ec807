"""A program of several meshes simulated with the cost model's times alone."""

from hlorewrite.cost import topology as find_topology
from hlorewrite.ir.module import Module
from hlorewrite.pipelines.actions.fit import schedule_for
from hlorewrite.pipelines.mpmd.program import read_program
from hlorewrite.pipelines.schedules import Schedule
from hlorewrite.pipelines.simulate.fragment_times import fragment_times, reductions_in_loop
from hlorewrite.pipelines.simulate.program import ProgramCost, simulate_program
from hlorewrite.pipelines.simulate.program_transfers import cards_of, sized_for, transfer_seconds
from hlorewrite.pipelines.simulate.simulation import Simulation


def simulate_module(module: Module, wanted: Schedule | str, topology: str, *, overlap: bool = True,
                    strategy: str = "auto", known: dict[tuple[str, str], float] | None = None) -> Simulation:
    """One step of a program on a described cluster.

    Args:
      module: the program; a loop over micro-batches is in it.
      wanted: its schedule.
      topology: the cluster, such as ``h200`` (as many hosts as needed) or ``h200:4x8``.
      overlap: whether transfers run concurrently with the computation.
      strategy: the strategy of transfers.
      known: seconds of transfers, for several programs with the same meshes; what is missing is added.

    Returns:
      The simulation.

    Raises:
      UsageError: the cluster is not known, or too small.
      PlanError: the schedule does not fit the program.
    """
    program = read_program(module)
    schedule = schedule_for(program, wanted)
    assert schedule is not None
    cluster = sized_for(program, find_topology(topology), topology)
    cost = ProgramCost(fragment_times(module, program, cluster), transfer_seconds(program, cluster, strategy, known),
                       cards_of(program, cluster))
    return simulate_program(program, schedule, cost, overlap=overlap,
                            comm_shift=not reductions_in_loop(module, program))
