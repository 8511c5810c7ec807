"""Slices, reshapes and transposes of gathered values, done on the shards.

``slice(AG(x), i) = AG(slice(x, i))`` where the slice takes all of the dimension along which shards lie, and where i is
the same on all members of each group; a transpose, and a reshape that keeps the dimension, commute
with ``AG`` as they stand. Converts of the gathered value become converts of the result.
"""

from hlorewrite.analysis.groups import Rows
from hlorewrite.checks.translation_validation.program import collectives, dynamic_selection
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.translation_validation.value_graph.graph import Label, shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.normalize import array, op_label
from hlorewrite.checks.translation_validation.value_graph.per_process_constants import numbers_in
from hlorewrite.ops.dims import reshaped
from hlorewrite.ops.table import SLICES

_CONVERT = "stablehlo.convert"
_OPS = frozenset({"stablehlo.dynamic_slice", "stablehlo.reshape", "stablehlo.transpose"})


def part(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """The node of an op on a gathered or a chosen value; None for anything else."""
    found = dynamic_selection.part(state, label, type_, args) if label[0] in SLICES else None
    return _of_gathered(state, label, type_, args) if found is None and label[0] in _OPS else found


def _of_gathered(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """The node of an op on a gathered value, as the gathered value of the op; None for anything else."""
    graph, converts, node = state.graph, [], args[0]
    # Ends: each round goes to an operand.
    while graph.labels[node][0] == _CONVERT:
        converts.append((graph.labels[node], _element(graph.types[node])))
        node = graph.args[node][0]
    if graph.labels[node][0] != "all_gather":
        return None
    rows: Rows = graph.labels[node][1]  # type: ignore[assignment]
    along: int = graph.labels[node][2]  # type: ignore[assignment]
    shard = graph.args[node][0]
    after = _along_after(state, label, type_, (node, *args[1:]), rows, along)
    known, own = shape_and_element(type_), shape_and_element(graph.types[shard])
    if after is None or known is None or own is None:
        return None
    shape = tuple(own[0][along] if d == after else size for d, size in enumerate(known[0]))
    if label[0] == "stablehlo.dynamic_slice":
        label = op_label(str(label[0]), (("slice_sizes", array(shape)),))
    inner = state.op_node(label, tensor_type(shape, own[1]), (shard, *args[1:]))
    made = collectives.gathered(state, rows, after, tensor_type(known[0], own[1]), inner)
    for convert, element in reversed(converts):
        made = state.op_node(convert, tensor_type(known[0], element), (made,))
    return made


def _element(type_: str) -> str:
    known = shape_and_element(type_)
    return "" if known is None else known[1]


def _along_after(state: ProgramState, label: Label, type_: str, args: tuple[int, ...], rows: Rows, along: int
                 ) -> int | None:
    """The dimension of the result along which shards lie; None where the op does not keep shards apart."""
    full, known = shape_and_element(state.graph.types[args[0]]), shape_and_element(type_)
    if full is None or known is None:
        return None
    if label[0] == "stablehlo.transpose":
        return numbers_in(dict(label[1])["permutation"]).index(along)  # type: ignore[call-overload]
    if label[0] == "stablehlo.dynamic_slice":
        members = state.space.members(rows)
        alike = known[0][along] == full[0][along] and all(state.same.same(start, members) for start in args[1:])
        return along if alike else None
    return reshaped(full[0], known[0], along)
