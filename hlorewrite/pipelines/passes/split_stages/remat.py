"""``jax.checkpoint`` around marks: each stage recomputes its own part from what it received in the forward pass.

Such a backward begins with the whole forward, from stage 0 on, and would send each stage the value that it received
before. The stage keeps that value instead, and the mark that would send it again is dropped. The barrier that makes
recomputation wait for the loss's cotangent is dropped as well: it would bring every stage's parameters to the last
stage, and fragments wait anyway.
"""

from hlorewrite.ir.location import op_name
from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.step import TrainStep, mark_of

RECOMPUTED = "rematted_computation"
"""JAX's names for ops that ``jax.checkpoint`` recomputes."""


def is_recomputed(node: StepNode) -> bool:
    """Whether ``jax.checkpoint`` makes an op again."""
    return node.op is not None and RECOMPUTED in op_name(node.op.location)


def keep_what_was_sent(step: TrainStep) -> int:
    """Replaces recomputed marks by the values that they passed the first time.

    Both sets of marks come from one function, traced once, so they are in the same order. If their counts differ,
    nothing is replaced, and placement refuses the marks.

    Args:
      step: the step; its body is changed.

    Returns:
      How many marks were dropped.
    """
    marks: tuple[dict[int, list[StepNode]], dict[int, list[StepNode]]] = ({}, {})
    for node in step.body:
        mark = mark_of(node.op)
        if mark is not None and not mark[1]:
            marks[is_recomputed(node)].setdefault(mark[0], []).append(node)
    first, again = marks
    if not again or any(not _match(step, first.get(index, []), nodes) for index, nodes in again.items()):
        return 0
    gone = {id(node) for nodes in again.values() for node in nodes}
    behind = _leads_to(step, gone)
    for index, nodes in again.items():
        for old, new in zip(first[index], nodes, strict=True):
            step.values.unite(new.results[0], old.results[0])
    for node in step.body:
        if node.name == "stablehlo.optimization_barrier" and id(node) in behind and mark_of(node.op) is None:
            gone.add(id(node))
            for result, operand in zip(node.results, node.operands, strict=True):
                step.values.unite(result, operand)
    step.body[:] = [node for node in step.body if id(node) not in gone]
    return sum(map(len, again.values()))


def _match(step: TrainStep, first: list[StepNode], again: list[StepNode]) -> bool:
    types = step.values.types
    return [types[node.results[0]] for node in first] == [types[node.results[0]] for node in again]


def _leads_to(step: TrainStep, wanted: set[int]) -> set[int]:
    """The nodes some others depend on."""
    leading: set[int] = set()
    for node in reversed(step.body):
        if id(node) in wanted or id(node) in leading:
            leading.update(map(id, step.values.makers(node)))
    return leading
