"""Weights of which a stage receives more than it reads."""

from collections.abc import Iterator

from hlorewrite.analysis.counters import in_each_iteration
from hlorewrite.ir.binding import ir
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import users
from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.plan import PlannedFragment, StagePlan
from hlorewrite.pipelines.passes.split_stages.stacks.row_ops import row_range
from hlorewrite.util.sizes import format_bytes


def unused_received_rows(plan: StagePlan) -> Iterator[tuple[str, StepNode]]:
    """Arguments that are sent whole to a stage which reads some of their rows only.

    Args:
      plan: the plan of a program.

    Yields:
      (what is said, an op that reads the rows), once for each argument and stage.
    """
    values = plan.step.values
    for fragment in (*plan.before, *plan.body):
        for number in fragment.inputs:
            if number not in plan.home or plan.home[number] == fragment.mesh:
                continue
            rows = ir.RankedTensorType(values.types[number]).shape[:1]
            read = _rows_read(plan, fragment, number)
            if read is not None and rows and len(read[0]) < rows[0]:
                name = plan.step.argument_name(number)
                yield (f"stage {fragment.stage} receives all {rows[0]} rows of {name} "
                       f"({format_bytes(values.bytes(number), 1)}) and reads {len(read[0])} of them; take rows by "
                       "constant indices, or mark the loop over layers with hlorewrite.stage_layers", read[1])


def _rows_read(plan: StagePlan, fragment: PlannedFragment, number: int) -> tuple[set[int], StepNode] | None:
    """The rows of a value that a fragment reads, and one of the readers; None where that may be all."""
    values = plan.step.values
    rows: set[int] = set()
    reader: StepNode | None = None
    for node in fragment.members:
        if number not in map(values.find, node.reads):
            continue
        own = _rows_of_node(node, [place for place, each in enumerate(node.operands) if values.find(each) == number])
        if own is None or number in map(values.find, node.captured):
            return None
        rows |= own
        reader = reader or node
    return None if reader is None else (rows, reader)


def _rows_of_node(node: StepNode, places: list[int]) -> set[int] | None:
    """The rows that an op reads of an operand: of a slice, or of a loop that takes a row in each iteration."""
    if node.op is None:
        return None
    taken = row_range(node.op)
    if taken is not None:
        return set(range(*taken))
    if node.name != "stablehlo.while":
        return None
    loop, rows = Loop(node.op), set[int]()
    for place in places:
        argument = loop.body.arguments[place]
        for op, number in users(argument):
            if (op.name, number) == ("stablehlo.return", place):
                continue
            if op.name != "stablehlo.dynamic_slice" or ir.RankedTensorType(op.results[0].type).shape[0] != 1:
                return None
            found = in_each_iteration(loop, op.operands[1])
            if found is None:
                return None
            last = ir.RankedTensorType(argument.type).shape[0] - 1
            rows |= {min(max(row, 0), last) for row in found}
    return rows
