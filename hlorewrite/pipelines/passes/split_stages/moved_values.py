"""Values that leave the mesh of their parameter in the update: what is sent, how large it is, and at which line."""

from collections.abc import Iterator

from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.plan import StagePlan
from hlorewrite.util.sizes import format_bytes


def moved_values(plan: StagePlan) -> Iterator[tuple[str, StepNode]]:
    """The values that the update sends from mesh to mesh, apart from single numbers.

    Args:
      plan: the plan of a program.

    Yields: (message, the op that reads or makes it), once for each line, in program order.
    """
    said: dict[str, tuple[StepNode, dict[str, int]]] = {}
    for number, mesh, node in (*_read_elsewhere(plan), *_brought_home(plan)):
        source = _mesh_of(plan, number)
        way = f"{plan.topology.name(source)} to {plan.topology.name(mesh)}"
        line = plan.step.view.source(node.op) if node.op is not None else "?"
        bytes_by_way = said.setdefault(line, (node, {}))[1]
        bytes_by_way[way] = bytes_by_way.get(way, 0) + plan.step.values.bytes(number)
    for node, ways in said.values():
        sent = ", ".join(f"{format_bytes(size, 1)} from {way}" for way, size in ways.items())
        yield (f"after the loop each step sends {sent}, since this op joins values of several meshes; reduce them on "
               "each mesh first, or leave it out", node)


def _read_elsewhere(plan: StagePlan) -> Iterator[tuple[int, int, StepNode]]:
    """(value, the mesh that reads it, the op there) of tensors that fragments after the loop receive."""
    values = plan.step.values
    for fragment in plan.after:
        wanted = {number for number in fragment.inputs if values.elements(number) > 1
                  and _mesh_of(plan, number) != fragment.mesh}
        for node in fragment.members:
            for number in sorted(wanted.intersection(map(values.find, node.reads))):
                wanted.discard(number)
                yield number, fragment.mesh, node


def _brought_home(plan: StagePlan) -> Iterator[tuple[int, int, StepNode]]:
    """(value, its argument's mesh, the op that makes it) for results that are made on another mesh than their
    argument's.
    """
    values = plan.step.values
    for result in plan.step.returned.values():
        number = values.find(plan.step.results[result])
        node = values.producer[number]
        if node is not None and values.elements(number) > 1 and plan.results[result] != _mesh_of(plan, number):
            yield number, plan.results[result], node


def _mesh_of(plan: StagePlan, number: int) -> int:
    """Where a value is made or placed."""
    return plan.mesh_of[number] if number in plan.mesh_of else plan.home.get(number, 0)
