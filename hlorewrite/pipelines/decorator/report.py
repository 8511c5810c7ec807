"""What splitting and passes did to a pipelined step, and what it would take on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlorewrite.errors import UsageError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.pipelines.adapter.collectives import collectives_of_program
from hlorewrite.pipelines.mpmd.program import read_program
from hlorewrite.rules.events import Remark
from hlorewrite.util.sizes import format_bytes
from hlorewrite.util.tables import table

if TYPE_CHECKING:
    from hlorewrite.pipelines.schedules import Schedule
    from hlorewrite.pipelines.simulate import Simulation


def report_text(module: Module, meshes: str, remarks: Sequence[Remark]) -> str:
    """A table of collectives and transfers in one step, and what the passes said.

    Args:
      module: the program, after the passes.
      meshes: the shapes of its meshes.
      remarks: what the passes said.

    Returns:
      Lines of text.
    """
    program = read_program(module)
    head = (f"{program.stages} stages on {len(program.meshes)} meshes ({meshes}), "
            f"{program.iterations} micro-batches, schedule {program.schedule or 'custom'}")
    collectives = collectives_of_program(parse(module.text(), name=program.name))[1]
    rows = [("in one step", "executed", "bytes")]
    for kind in sorted({each.kind for each in collectives}):
        own = [each for each in collectives if each.kind == kind]
        size = sum(each.executed_bytes for each in own)
        rows.append((kind, str(sum(each.trips for each in own)), format_bytes(size, 1)))
    lines = [head, *(table(rows, "<>>") if len(rows) > 1 else ["no collective and no transfer"])]
    return "\n".join([*lines, *map(str, remarks)])


def simulated(module: Module, wanted: str | Schedule, topology: str, overlap: bool, strategy: str) -> Simulation:
    """The step simulated on a cluster.

    Raises:
      UsageError: no cluster is named.
    """
    if not topology:
        raise UsageError("without a topology it is not known how long the step takes",
                         hint='name a cluster: simulate("h200")')
    from hlorewrite.pipelines.simulate.modelled import simulate_module
    return simulate_module(module, wanted, topology, overlap=overlap, strategy=strategy)
