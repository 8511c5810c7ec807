"""Whether two elements are equal on every device: compares their structure, and asks the solver about indices and
groups.

Reductions are brought to one form by the lemmas (``lemmas.py``): an op that commutes with a reduction goes into it, a
reduction of reductions becomes one, a reduction of equal elements is one element. The ops that commute, the reductions
that keep an element reduced with itself, and the converts that keep zero are not listed here: this is collected, for
the solver to answer for each combination of element types.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hlorewrite.checks.prove.contracts import size_of
from hlorewrite.checks.prove.elements import KINDS
from hlorewrite.checks.prove.lemmas import division
from hlorewrite.checks.prove.proof_obligation import ProofObligation
from hlorewrite.checks.prove.solver import decide, solver
from hlorewrite.checks.prove.tensors import Applied, Cell, Chosen, Element, Number, Reduced, device_sort

STEPS = 500_000
_SHORT_STEPS = 100_000
"""For questions that only save work."""
_DEEPEST = 12


@dataclass(frozen=True)
class ScalarFact:
    """A question about elements, for the solver to answer for each combination of types.

    Attributes:
      question: ``commutes``, ``idempotent``, ``zero``, ``neutral`` or ``multiple``.
      op: the op, for ``commutes`` and ``zero``.
      kind: the reduction.
      types: type classes of the arguments, and after them of the result.
    """

    question: str
    op: str
    kind: str
    types: tuple[str, ...]


@dataclass
class ElementComparison:
    """Compares elements of one proof obligation.

    Args:
      scene: the rule's tensors and premises.

    Attributes:
      scalars: conditions on elements.
      answered: the element types that the solver accepted, and whether for real numbers instead of floats.
      asked: how many questions the solver has answered.
      failure: why the last comparison failed.
      devices: the devices that occur in the claims.
      reordered: kinds of reductions that were put into another order.
    """

    scene: ProofObligation
    scalars: dict[ScalarFact, None] = field(default_factory=dict)
    answered: dict[tuple[ScalarFact, tuple[str, ...]], tuple[bool, bool]] = field(default_factory=dict)
    asked: int = 0
    failure: str = ""
    devices: list[Any] = field(default_factory=list)
    reordered: set[str] = field(default_factory=set)
    _fresh: Any = field(default_factory=itertools.count, repr=False)

    def equal(self, a: Element, b: Element, premises: Sequence[Any], depth: int = 0) -> bool:
        """Whether two elements are equal under the premises; otherwise ``failure`` says why not."""
        if depth > _DEEPEST:
            return self._fail("the expressions are too deep")
        a, b = self.normal(a, premises, depth), self.normal(b, premises, depth)
        for chosen in (a, b):
            if isinstance(chosen, Chosen):
                return self._both_ways(a, b, chosen.condition, premises, depth)
        if isinstance(a, Cell) and isinstance(b, Cell):
            return self._same_place(a.value, b.value, premises) or self._fail("they are not the same element")
        if isinstance(a, Number) and isinstance(b, Number):
            same = a.name == b.name and self.scene.type_class(a.type) == self.scene.type_class(b.type)
            return same or self._fail("the constants differ")
        if isinstance(a, Applied) and isinstance(b, Applied):
            return self._same_op(a, b, premises, depth)
        if isinstance(a, Reduced) and isinstance(b, Reduced):
            return self._same_reduction(a, b, premises, depth)
        return self._fail(f"one side is {_spoken(a)}, the other {_spoken(b)}")

    def follows(self, claim: Any, premises: Sequence[Any], steps: int = STEPS) -> bool:
        """Whether a claim about devices and indices follows from the premises."""
        self.asked += 1
        return decide(claim, [*self.scene.premises, *premises], steps).status == "proved"

    def _same_place(self, a: Any, b: Any, premises: Sequence[Any]) -> bool:
        """Whether two elements are one: the same tensor's, on the same device, in the same place of every dimension."""
        if not a.decl().eq(b.decl()):
            return self.follows(a == b, premises)
        z3 = solver()
        k = z3.Int(f"dimension {next(self._fresh)}")
        devices = z3.simplify(a.arg(0)), z3.simplify(b.arg(0))
        places = [z3.simplify(z3.Select(element.arg(1), k)) for element in (a, b)]
        known = [*premises, *self._divisions([*devices, *places])]
        if self.follows(devices[0] == devices[1], known) and self.follows(places[0] == places[1], known):
            return True
        return self.follows(a == b, premises)  # elements of other places can be equal, where a value is uniform

    def _divisions(self, terms: Sequence[Any]) -> list[Any]:
        """The division lemma, for each division of the terms and each shard that a device may read.

        The solver proves the lemma (``lemmas.py``), but does not find by itself what to use it for.
        """
        z3 = solver()
        found: dict[Any, Any] = {}
        for term in terms:
            found |= {part.get_id(): part for part in _parts(term) if z3.is_idiv(part) or z3.is_mod(part)}
        return [division(part.arg(0), part.arg(1), shard(device)) for part in found.values()
                for shard in self.scene.shards for device in self.devices]

    def _fail(self, why: str) -> bool:
        self.failure = why
        return False

    def _both_ways(self, a: Element, b: Element, condition: Any, premises: Sequence[Any], depth: int) -> bool:
        for held in (condition, solver().Not(condition)):
            if self.follows(solver().Not(held), premises, _SHORT_STEPS):
                continue  # never so
            taken = [_taken(side, condition, held is condition) for side in (a, b)]
            if not self.equal(taken[0], taken[1], [*premises, held], depth + 1):
                return False
        return True

    def _same_op(self, a: Applied, b: Applied, premises: Sequence[Any], depth: int) -> bool:
        classes = [[self.scene.type_class(t) for t in (*side.types, side.type)] for side in (a, b)]
        if a.op != b.op or classes[0] != classes[1]:
            return self._fail(f"one side is {_spoken(a)}, the other {_spoken(b)}")
        return all(self.equal(x, y, premises, depth + 1) for x, y in zip(a.arguments, b.arguments, strict=True))

    def _same_reduction(self, a: Reduced, b: Reduced, premises: Sequence[Any], depth: int) -> bool:
        if a.kind != b.kind:
            return self._fail(f"one side reduces by {a.kind}, the other by {b.kind}")
        if not self._same_members(a, b, premises):
            return self._fail("the reductions are over different devices")
        member = self._device()
        return self.equal(a.term(member), b.term(member), [*premises, a.groups.together(a.device, member)], depth + 1)

    def _same_members(self, a: Reduced, b: Reduced, premises: Sequence[Any]) -> bool:
        member = self._device()
        claim = a.groups.together(a.device, member) == b.groups.together(b.device, member)
        return (a.groups is b.groups and a.device is b.device) or self.follows(claim, premises)

    def _device(self) -> Any:
        self.devices.append(solver().Const(f"member {next(self._fresh)}", device_sort()))
        return self.devices[-1]

    # ---- one form

    def normal(self, node: Element, premises: Sequence[Any], depth: int) -> Element:
        """The same element, with reductions outside and as few as the lemmas allow."""
        if depth > _DEEPEST:
            return node
        if isinstance(node, Applied):
            return self._normal_op(node, premises, depth)
        if isinstance(node, Reduced):
            return self._normal_reduction(node, premises, depth)
        return node

    def _normal_op(self, node: Applied, premises: Sequence[Any], depth: int) -> Element:
        arguments = tuple(self.normal(x, premises, depth + 1) for x in node.arguments)
        node = replace(node, arguments=arguments)
        chosen = next((x for x in arguments if isinstance(x, Chosen)), None)
        if chosen is not None:
            then, otherwise = (replace(node, arguments=tuple(_taken(x, chosen.condition, yes) for x in arguments))
                               for yes in (True, False))
            return Chosen(chosen.condition, then, otherwise)
        if node.op == "stablehlo.convert" and _is_zero(arguments[0]):
            self.scalars[ScalarFact("zero", node.op, "", (*node.types, node.type))] = None
            return Number("zero", node.type)
        if self.scene.keepers and node.op == "stablehlo.add":
            if any(_is_zero(x) for x in arguments):
                self.scalars[ScalarFact("neutral", "", "sum", (node.type,))] = None
                return arguments[1] if _is_zero(arguments[0]) else arguments[0]
            arguments = self._kept(arguments)
            node = replace(node, arguments=arguments)
        first = arguments[0]
        if isinstance(first, Reduced) and all(
                isinstance(x, Reduced) and x.kind == first.kind and self._same_members(first, x, premises)
                for x in arguments):
            return self._inside(node, first)
        return node

    def _kept(self, arguments: tuple[Element, ...]) -> tuple[Element, ...]:
        """An addend of a sum over devices, written as such a sum: all terms but the keeper's are zero."""
        total = next((x for x in arguments if isinstance(x, Reduced) and x.kind == "sum"
                      and x.groups in self.scene.keepers), None)
        if total is None or all(isinstance(x, Reduced) for x in arguments):
            return arguments
        groups, device, keeper = total.groups, total.device, self.scene.keepers[total.groups]
        zero = Number("zero", total.type)
        self.reordered.add("sum")
        self.scalars[ScalarFact("neutral", "", "sum", (total.type,))] = None
        return tuple(x if isinstance(x, Reduced) else Reduced("sum", groups, device, lambda e, x=x: Chosen(
            e == keeper(device), x, zero), total.type) for x in arguments)

    def _inside(self, node: Applied, first: Reduced) -> Reduced:
        """An op of reductions over the same members is the reduction of the op, where they commute."""
        self.scalars[ScalarFact("commutes", node.op, first.kind, (*node.types, node.type))] = None
        terms: list[Callable[[Any], Element]] = [x.term for x in node.arguments if isinstance(x, Reduced)]
        return Reduced(first.kind, first.groups, first.device, lambda e: replace(
            node, arguments=tuple(term(e) for term in terms)), node.type)

    def _normal_reduction(self, node: Reduced, premises: Sequence[Any], depth: int) -> Element:
        member = self._device()
        inside = [*premises, node.groups.together(node.device, member)]
        if "alone" in self.scene.granted and self.follows(member == node.device, inside):
            return self.normal(node.term(node.device), premises, depth + 1)
        term = self.normal(node.term(member), inside, depth + 1)
        if isinstance(term, Reduced) and term.kind == node.kind:
            flat = self._flattened(node, term, member, premises)
            if flat is not None:
                return flat
        if "uniform" not in self.scene.granted or node.groups in self.scene.keepers:  # there one term is another
            return node
        own = self.normal(node.term(node.device), premises, depth + 1)
        before = self.failure
        if not isinstance(term, Reduced) and self.equal(term, own, inside, depth + 1):
            return self._of_equals(node, own)
        self.failure = before
        return node

    def _flattened(self, outer: Reduced, inner: Reduced, member: Any, premises: Sequence[Any]) -> Reduced | None:
        """A reduction of reductions over disjoint groups is one over their union, where some groups are that union."""
        z3 = solver()
        c, e, f = self._device(), self._device(), self._device()

        def within(device: Any, found: Any) -> Any:
            return z3.And(outer.groups.together(outer.device, device), inner.groups.together(device, found))
        disjoint = z3.Implies(z3.And(within(e, c), within(f, c)), e == f)
        if outer.kind not in KINDS or inner.device is not member or not self.follows(disjoint, premises):
            return None
        for groups in self.scene.every_groups():
            united = groups.together(outer.device, c) == z3.Exists([e], within(e, c))
            if groups not in (outer.groups, inner.groups) and self.follows(united, premises):
                self.reordered.add(outer.kind)
                return Reduced(outer.kind, groups, outer.device, inner.term, outer.type)
        return None

    def _of_equals(self, node: Reduced, own: Element) -> Element:
        """A reduction of equal elements: one of them, or n times one for a sum."""
        if node.kind == "sum":
            self.scalars[ScalarFact("multiple", "", "sum", (node.type,))] = None
            times = Number(size_of(node.groups), node.type)
            return Applied("stablehlo.multiply", (own, times), (node.type, node.type), node.type)
        self.scalars[ScalarFact("idempotent", "", node.kind, (node.type,))] = None
        return own


def _parts(term: Any) -> Iterator[Any]:
    """All parts of a term; those of a function of dimensions are not."""
    if solver().is_app(term):
        yield term
        for child in term.children():
            yield from _parts(child)


def _taken(node: Element, condition: Any, yes: bool) -> Element:
    """An element where a condition is known."""
    if isinstance(node, Chosen) and node.condition.eq(condition):
        return node.then if yes else node.otherwise
    return node


def _is_zero(node: Element) -> bool:
    return isinstance(node, Number) and node.name == "zero"


def _spoken(node: Element) -> str:
    if isinstance(node, Reduced):
        return f"a reduction ({node.kind})"
    if isinstance(node, Applied):
        return node.op
    return {"Cell": "an element of a value", "Number": "a constant"}.get(type(node).__name__, "a choice")
