"""What splitting and passes did to a pipelined step, and what it would take on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlorewrite.cost.report.mpmd import collectives_of_program
from hlorewrite.errors import UsageError
from hlorewrite.ir.load import parse
from hlorewrite.util.amounts import amount, table

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.pipelined.lowered import PipelineLowered
    from hlorewrite.plan.simulate import Simulation


def report_text(lowered: PipelineLowered) -> str:
    """A table of collectives and transfers in one step, and what the passes said.

    Args:
      lowered: the step.

    Returns:
      Lines of text.
    """
    program = lowered.data()
    head = (f"{program.stages} stages on {len(program.meshes)} meshes ({lowered.settings.meshes.text}), "
            f"{program.iterations} micro-batches, schedule {program.schedule or 'custom'}")
    found = collectives_of_program(parse(lowered.program(), name=program.name))[1]
    rows = [("in one step", "executed", "bytes")]
    for kind in sorted({each.kind for each in found}):
        own = [each for each in found if each.kind == kind]
        rows.append((kind, str(sum(each.trips for each in own)), amount(sum(each.executed_bytes for each in own))))
    lines = [head, *(table(rows, right=frozenset({1, 2})) if len(rows) > 1 else ["no collective and no transfer"])]
    return "\n".join([*lines, *map(str, lowered.remarks)])


def simulated(lowered: PipelineLowered, topology: str, overlap: bool, strategy: str) -> Simulation:
    """The step simulated on a cluster.

    Raises:
      UsageError: no cluster is named.
    """
    from hlorewrite.cost import topology as find_topology
    from hlorewrite.plan.program.fit import schedule_for
    from hlorewrite.plan.simulate.fragment_times import fragment_times, reductions_in_loop
    from hlorewrite.plan.simulate.program import ProgramCost, simulate_program
    from hlorewrite.plan.simulate.program_transfers import cards_of, sized_for, transfer_seconds

    if not topology:
        raise UsageError("without a topology nobody knows how long the step takes",
                         hint='name a cluster: simulate("h200")')
    program = lowered.data()
    schedule = schedule_for(program, lowered.settings.schedule)
    assert schedule is not None
    cluster = sized_for(program, find_topology(topology), topology)
    cost = ProgramCost(fragment_times(lowered.module, program, cluster), transfer_seconds(program, cluster, strategy),
                       cards_of(program, cluster))
    return simulate_program(program, schedule, cost, overlap=overlap,
                            comm_shift=not reductions_in_loop(lowered.module, program))
