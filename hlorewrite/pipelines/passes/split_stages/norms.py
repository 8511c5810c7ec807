"""Sums of scalars from several meshes, as in a global norm: each mesh first adds up its own, then sends one number."""

from hlorewrite.ir.types import is_floating
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values
from hlorewrite.pipelines.passes.split_stages.step import TrainStep
from hlorewrite.pipelines.passes.split_stages.update import Update


def regroup_sums(step: TrainStep, update: Update, after: dict[int, int]) -> int:
    """Adds ``a0 + b0 + a1 + b1`` as ``(a0 + a1) + (b0 + b1)``, a on one mesh and b on another.

    Args:
      step: the step; its nodes after the loop are changed.
      update: where they run so far.
      after: mesh of each result of the loop.

    Returns:
      How many sums were regrouped; if any, ops have to be placed again.
    """
    values = step.values
    readers: dict[int, int] = {}
    adds: dict[int, int] = {}  # value -> how often adds read it
    for node in step.after:
        for each in map(values.find, node.reads):
            readers[each] = readers.get(each, 0) + 1
            adds[each] = adds.get(each, 0) + _is_sum(values, node)
    for each in map(values.find, step.results):
        readers[each] = readers.get(each, 0) + 1
    count = 0
    for node in list(step.after):
        result = values.find(node.results[0])
        if not _is_sum(values, node) or (readers.get(result) == 1 and adds.get(result) == 1):
            continue
        terms, inner = _terms(values, node, readers)
        groups: dict[int | None, list[int]] = {}
        for term in terms:
            groups.setdefault(_mesh(values, update, after, term), []).append(term)
        if len(groups.keys() - {None}) > 1 and len(terms) > len(groups):
            _write(step, node, inner, groups)
            count += 1
    return count


def _is_sum(values: Values, node: StepNode) -> bool:
    from hlorewrite.ir.binding import ir
    if node.name not in ("stablehlo.add", "add"):
        return False
    type_ = ir.RankedTensorType(values.types[node.results[0]])
    return values.elements(node.results[0]) == 1 and is_floating(type_.element_type)


def _terms(values: Values, root: StepNode, readers: dict[int, int]) -> tuple[list[int], list[StepNode]]:
    """What a tree of additions adds, left to right, and its inner nodes."""
    terms: list[int] = []
    inner: list[StepNode] = []
    pending = [root]
    stack: list[int] = list(map(values.find, reversed(pending.pop().operands)))
    # Ends: each step goes to operands.
    while stack:
        number = stack.pop()
        node = values.producer[number]
        if node is not None and _is_sum(values, node) and readers.get(number) == 1:
            inner.append(node)
            stack += map(values.find, reversed(node.operands))
        else:
            terms.append(number)
    return terms, inner


def _mesh(values: Values, update: Update, after: dict[int, int], number: int) -> int | None:
    node = values.producer[number]
    if node is not None and id(node) in update.place:
        return update.place[id(node)][1]
    return after.get(number)


def _write(step: TrainStep, root: StepNode, inner: list[StepNode], groups: dict[int | None, list[int]]) -> None:
    values = step.values
    own = groups.pop(None, [])  # constants and the like go with the first mesh's
    first = next(iter(groups))
    groups[first] = own + groups[first]
    made: list[StepNode] = []

    def add(left: int, right: int) -> int:
        node = values.make("add", (left, right), values.types[root.results[0]], root.results[0])
        made.append(node)
        return node.results[0]

    sums = []
    for terms in groups.values():
        total = terms[0]
        for term in terms[1:]:
            total = add(total, term)
        sums.append(total)
    total = sums[0]
    for each in sums[1:]:
        total = add(total, each)
    made[-1].results = root.results
    values.producer[root.results[0]] = made[-1]
    gone = {id(root), *map(id, inner)}
    place = next(i for i, node in enumerate(step.after) if node is root)
    step.after[place:place + 1] = made
    step.after[:] = [node for node in step.after if id(node) not in gone]
