"""The plan of comm-shift for one class of reductions: its flow, its placement and its replicated addends."""

from collections.abc import Callable
from dataclasses import dataclass

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph
from hlorewrite.analysis.deferral_graph.placement import ReductionPlacement
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import LinearityFacts, UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import ALL_REDUCE, View, ancestors, ir, is_number, is_static_tensor
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.comm_shift.deferral import ReplicatedAddends
from hlorewrite.passes.common.overlap_model import HALF, OVERLAPPED


@dataclass(frozen=True)
class ReductionClass:
    """The all-reduces that can be deferred together: equal groups, equal kind.

    Attributes:
      groups: the groups they reduce over.
      kind: the kind of reduction.
      sources: their results, in the order of the module.
    """

    groups: Groups
    kind: str
    sources: tuple[ir.Value, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """A key, equal for the same class in another round."""
        return (*self.groups.key, self.kind)


@dataclass(frozen=True)
class DeferralPlan:
    """The plan for one class: its flow, placement and replicated addends, and the flow's builder."""

    flow: DeferralGraph
    placement: ReductionPlacement
    parts: ReplicatedAddends
    builder: DeferralGraphBuilder


def reduction_classes(view: View, ill_formed: Callable[[ir.Operation, str], None]) -> list[ReductionClass]:
    """The classes of a module's all-reduces, without those that a pass has placed next to compute.

    The class of the last reduction comes first: others flow into its reductions, and move further once it has moved.

    Args:
      view: the module.
      ill_formed: called with each all-reduce that belongs to no class, and why.
    """
    classes: dict[tuple[object, ...], tuple[Groups, str, list[ir.Value]]] = {}
    for op in view.ops(ALL_REDUCE.op):
        if HALF in op.attributes or any(OVERLAPPED in outer.attributes for outer in ancestors(op)):
            continue
        groups, kind = groups_of(op, view), reduction_kind(op)
        if isinstance(groups, str) or kind is None:
            ill_formed(op, groups if isinstance(groups, str) else
                       "its reducer is none of sum, product, maximum, minimum, and, or")
            continue
        _, _, sources = known = classes.pop((*groups.key, kind), (groups, kind, []))
        sources += [result for result in op.results if is_static_tensor(result.type) and is_number(result.type)]
        classes[*groups.key, kind] = known
    return [ReductionClass(groups, kind, tuple(sources)) for groups, kind, sources in reversed(classes.values())]


def flow_builder(view: View, facts: LinearityFacts, reductions: ReductionClass,
                 without_slots: DeferralGraphBuilder | None = None) -> DeferralGraphBuilder:
    """A builder of the flow of a class.

    Args:
      view: the module.
      facts: the declared linearity facts.
      reductions: the class.
      without_slots: the builder from before loops and branches got slots for addends.
    """
    context = UniformContext(reductions.kind, Uniformity(view, reductions.groups))
    return without_slots.with_slots(context) if without_slots else DeferralGraphBuilder(facts, context)


def planned(builder: DeferralGraphBuilder, reductions: ReductionClass,
            place: Callable[[DeferralGraph], ReductionPlacement]) -> DeferralPlan:
    """Plans the flow, placement and replicated addends; refuses uses that would recompute expensive ops.

    Args:
      builder: the builder of the flow.
      reductions: the class.
      place: chooses where to reduce.
    """
    while True:  # ends: each round refuses a use that was not refused before, and the module has finitely many
        flow = builder.build(list(reductions.sources))
        builder.context.release()  # the addends are the peak of memory
        placement = place(flow)
        parts = ReplicatedAddends(flow, placement, reductions.kind)
        costly = parts.costly_copies()
        if not builder.refuse(costly, "it would have to be computed twice, for the reduced part and for the rest"):
            return DeferralPlan(flow, placement, parts, builder)
