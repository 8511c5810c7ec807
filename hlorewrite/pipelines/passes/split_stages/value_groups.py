"""Which values of an update belong to which parameter: its gradient, the optimizer's state for it, what is made of them.

Values that meet place by place belong together, and so do an argument and the result that takes its place in the next
step. What an op mixes otherwise (flat vectors of all gradients, products) goes with the first of them that has no other
parameter. Two parameters that lie on different meshes never become one group, whatever reads both: so state stays with
its parameter.
"""

from dataclasses import dataclass, field

from hlorewrite.ops.table import ELEMENTWISE, MOVES_OF_ONE, SAME
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values
from hlorewrite.pipelines.passes.split_stages.step import TrainStep

_MADE = frozenset(("add", "convert"))
"""Elementwise nodes without an op."""


@dataclass
class _Groups:
    """Sets of values, each with the mesh of its parameter where it has one."""

    leader: dict[int, int] = field(default_factory=dict)
    mesh: dict[int, int] = field(default_factory=dict)

    def find(self, number: int) -> int:
        """The value that stands for all of its group."""
        # Ends: each round goes nearer to the leader, of which there is one.
        while self.leader.setdefault(number, number) != number:
            self.leader[number] = self.leader[self.leader[number]]
            number = self.leader[number]
        return number

    def settle(self, number: int, mesh: int) -> None:
        """Says where a value's group lies, where that is not known."""
        self.mesh.setdefault(self.find(number), mesh)

    def join(self, first: int, second: int) -> None:
        """Says that two values belong together, unless they lie on different meshes."""
        a, b = self.find(first), self.find(second)
        own, other = self.mesh.get(a), self.mesh.get(b)
        if a == b or (own is not None and other is not None and own != other):
            return
        self.leader[b] = a
        if own is None and other is not None:
            self.mesh[a] = other


def value_groups(step: TrainStep, after: dict[int, int], home: dict[int, int]) -> dict[int, int | None]:
    """The mesh of each value's group: its parameter's, else its gradient's.

    Constants and numbers spread over a tensor belong to no group: several may share them.

    Args:
      step: the step.
      after: mesh of each result of the loop, by number.
      home: mesh of each argument that the loop reads, by number.

    Returns:
      The mesh by number; None where nothing decides.
    """
    values, groups = step.values, _Groups()
    for number in sorted(home):
        groups.settle(number, home[number])
    rooted = _rooted(step, after)
    for argument, result in step.returned.items():
        first, second = (values.find(each) for each in (step.arguments[argument], step.results[result]))
        if values.elements(first) > 1:
            groups.join(first, second)
    mixing: list[list[int]] = []
    moving: list[list[int]] = []
    for node in step.after:
        for together in _together(node):
            large = [each for each in map(values.find, together) if each in rooted]
            if node.name in ELEMENTWISE | SAME | _MADE:
                _join(groups, large)
            else:
                (moving if node.name in MOVES_OF_ONE else mixing).append(large)
    for large in moving:
        _join(groups, large)
    for number in sorted(after):
        groups.settle(number, after[number])
    for large in mixing:
        _join(groups, large)
    return {number: groups.mesh.get(groups.find(number)) for number in list(groups.leader)}


def _join(groups: _Groups, large: list[int]) -> None:
    for each in large[1:]:
        groups.join(large[0], each)


def _together(node: StepNode) -> list[tuple[int, ...]]:
    """The values that meet in a node; those that a barrier holds together have nothing to do with each other."""
    if node.name in SAME:
        return list(zip(node.operands, node.results, strict=True))
    return [(*node.reads, *node.results)]


def _rooted(step: TrainStep, after: dict[int, int]) -> set[int]:
    """Tensors that are made of arguments or of results of the loop."""
    values: Values = step.values
    rooted = {each for each in (*step.arguments, *after) if values.elements(each) > 1}
    for node in (*step.before, *step.after):
        if any(values.find(each) in rooted for each in node.reads):
            rooted.update(each for each in node.results if values.elements(each) > 1)
    return rooted
