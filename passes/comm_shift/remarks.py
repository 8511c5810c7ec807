"""The remarks of comm-shift: which reductions moved, which did not, and why."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Literal

from hlorewrite.analysis.block_frequency import times_of_block
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ForcingUse, Need, ProgramPoint
from hlorewrite.analysis.deferral_graph.path_regressions import PathRegression
from hlorewrite.analysis.deferral_graph.placement import ReductionPlacement
from hlorewrite.analysis.mesh import fully_manual
from hlorewrite.ir import ALL_REDUCE, COLLECTIVES, Loop, ir, op_key, started_ops, tensor_bytes
from hlorewrite.ir.view import View, ancestors, defining_op, owner_op
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import Explanation, Remark, RemarkKind, RewriteRecord
from hlorewrite.rules.remark_subject import RemarkSubject, remark_about
from hlorewrite.rules.snippets import snippet
from hlorewrite.util.reachability import reachable

Outcome = Literal["no root", "no match", "where", "legal", "cost", "applies"]

_MOST_PLACES = 1000
"""How far the search for a reason goes from a reduction that stays."""

_MOST_ARRIVALS = 8
"""How many of the reductions that replace one are listed."""

_NO_COLLECTIVE = "the module contains no all-reduce"
_LATER = f"{_NO_COLLECTIVE}; a program that XLA shards gets its collectives later"


@dataclass(frozen=True)
class _Departure:
    """One reduction about to move.

    Attributes:
      subject: the subject of its remark.
      text: its text, when texts were requested.
      load: what it sends, as text.
      arrivals: what is sent in its place, as text.
      made: which of the new reductions replace it; None when that is not known.
      carried: the type of the local sum that a loop carries; empty when no loop does.
      others: how many more reductions the same ones replace.
    """

    subject: RemarkSubject
    text: str
    load: str
    arrivals: tuple[str, ...]
    made: tuple[int, ...] | None
    carried: str = ""
    others: int = 0

    @property
    def company(self) -> str:
        """The phrase for the reductions that are replaced together with it."""
        return f" together with {self.others} other{'s' if self.others > 1 else ''}" if self.others else ""


def _leading_to(flow: DeferralGraph, ends: Mapping[ProgramPoint, str]) -> set[ProgramPoint]:
    """The places from which a pair can travel to one of some places, including these."""
    before: dict[ProgramPoint, list[ProgramPoint]] = {}
    for place, targets in flow.edges.items() if ends else ():
        for target in targets:
            before.setdefault(target, []).append(place)
    pending, seen = list(ends), set(ends)
    for place in pending:  # Ends: a place is added once.
        fresh = [each for each in before.get(place, ()) if each not in seen]
        seen.update(fresh)
        pending += fresh
    return seen


class RemarkEmitter:
    """Collects remarks while the pass works and emits each once, in the order of the module.

    Args:
      name: the pass's name.
      run: where remarks and rewrites go.
    """

    def __init__(self, name: str, ctx: PassContext) -> None:
        self.name = name
        self.ctx = ctx
        self._waiting: dict[int, Remark] = {}
        self._leaving: list[_Departure] = []
        self._index = 0

    def nothing_to_do(self, view: View) -> None:
        """Reports that the module contains no all-reduce; if it is a manual program, XLA adds none."""
        manual = any(fully_manual(op.regions[0].blocks[0].operations[0].operation, view)
                     for op in view.ops("sdy.manual_computation"))
        said, advice = (_NO_COLLECTIVE, "") if manual or view.ops(*COLLECTIVES) else (_LATER, EXPOSE)
        if self.ctx.wants_missed and not started_ops(view):
            self.ctx.remark(Remark("missed", self.name, said, view.module.name, ALL_REDUCE.op, advice=advice))
        if self.ctx.explain == self.name:
            self.ctx.explanation(Explanation(self.name, "", "no root", f"{said}; {advice}" if advice else said,
                                             view.module.name))

    def started(self, view: View) -> None:
        """Reports collectives that the program starts and awaits by itself."""
        for op, kind in started_ops(view) if self.ctx.wants_missed else ():
            self.ctx.remark(Remark("missed", self.name, f"the {kind} stays: the program starts and awaits it by itself",
                                   view.source(op), op.name))

    def ill_formed(self, view: View, op: ir.Operation, sentence: str, what: str = ALL_REDUCE.kind) -> None:
        """Reports a reduction whose groups or reducer are not understood."""
        self._wait("blocked", f"the {what} stays: {sentence}", view, op)

    def too_large(self, view: View, source: ir.Value, flow: DeferralGraph, extra: int, left: int, asked: bool) -> None:
        """Reports a reduce-scatter whose local sums do not fit the memory budget, and what a larger budget would
        save."""
        saved = round((flow.executions[ProgramPoint(source)] - 1) * tensor_bytes(owner_op(source).operands[0].type))
        limit = "the budget has" if asked else "without memory-budget=SIZE a step may grow by"
        self._wait("unprofitable", f"deferring it would save {saved} executed bytes for {extra} bytes of local sums; "
                   f"{limit} {left} bytes", view, owner_op(source), advice=BUDGET)

    def kept_exact(self, view: View, source: ir.Value) -> None:
        """Reports a floating-point sum that stays under ``exact``."""
        self._wait("blocked", "moving it would change the order of a floating-point sum, but exact is set", view,
                   owner_op(source), advice=EXACT)

    def stays(self, view: View, flow: DeferralGraph, only_expected: Mapping[ir.Value, PathRegression]) -> None:
        """Reports that no placement is cheaper, and for each reduction in a loop what needs it there."""
        if not self.ctx.wants_remarks:
            return
        kept = self._accumulators(view, flow) if self.ctx.wants_missed else {}
        leading = _leading_to(flow, kept)
        for source in flow.sources:
            op = owner_op(source)
            worse = only_expected.get(source)
            if worse is not None:
                self._wait("unprofitable", _only_expected(view, worse), view, op, advice=EXPECTED)
                continue
            in_loop = any(each.name == "stablehlo.while" for each in ancestors(op))
            if flow.executions[ProgramPoint(source)] <= 1 or not in_loop:
                if ProgramPoint(source) in leading:
                    self._once_a_call(view, flow, source, kept)
                continue
            self._explain(view, flow, source, op)

    def _accumulators(self, view: View, flow: DeferralGraph) -> dict[ProgramPoint, str]:
        """The places where a step adds to a value that outlives the call, with its name; computed once, not for each
        reduction."""
        kept: dict[ProgramPoint, str] = {}
        for place in flow.executions:
            adder = defining_op(place.value)
            if adder is not None and adder.name == "stablehlo.add":
                name = next(filter(None, (self.ctx.accumulator(view, operand) for operand in adder.operands)), "")
                if name:
                    kept[place] = name
        return kept

    def _once_a_call(self, view: View, flow: DeferralGraph, source: ir.Value, kept: Mapping[ProgramPoint, str]) -> None:
        """Names the accumulator of a step that is called once per micro-batch."""
        for place in islice(flow.reachable([ProgramPoint(source)]), _MOST_PLACES):
            if place in kept:
                self._wait("missed", f"each call adds it to {kept[place]}, which outlives the call, so each call needs "
                           "it reduced", view, owner_op(source), advice=ACROSS_CALLS)
                return

    def _explain(self, view: View, flow: DeferralGraph, source: ir.Value, op: ir.Operation) -> None:
        times = flow.executions[ProgramPoint(source)]
        near = list(islice(flow.reachable([ProgramPoint(source)]), _MOST_PLACES))
        uses = [use for place in near if flow.executions[place] >= times for use in flow.forcing_uses.get(place, ())]
        illegal = [use for use in uses if use.illegal]
        if not uses:
            sentence = (f"reducing it elsewhere would not be cheaper than {_count(times)} reductions of "
                        f"{tensor_bytes(source.type)} bytes")
            self._wait("unprofitable", sentence, view, op)
            return
        use = (illegal or uses)[0]
        where = f"{use.reader.name} {view.whereabouts(use.reader)}".rstrip()
        self._wait("blocked" if illegal else "missed", f"{where} needs the reduced value in the loop: {use.sentence}",
                   view, op, use, NEXT_ITERATION if self._read_next(flow, source, use) else ADVICE[use.need])

    def _read_next(self, flow: DeferralGraph, source: ir.Value, use: ForcingUse) -> bool:
        """Whether a use computes with a value in the next iteration of a loop."""
        if use.need not in ("not linear", "differs"):
            return False
        pending, seen = [ProgramPoint(source)], {ProgramPoint(source)}
        # Ends: a place is added once.
        for place in pending:
            if use in flow.forcing_uses.get(place, ()):
                return False
            for target in flow.edges.get(place, ()):
                if target not in seen and defining_op(target.value) is not None and len(pending) < _MOST_PLACES:
                    seen.add(target)
                    pending.append(target)
        return True

    def before(self, view: View, flow: DeferralGraph, placement: ReductionPlacement, parts: int = 1,
               made_at: Sequence[ProgramPoint] | None = None) -> None:
        """Called before a placement is carried out; a payload is ``parts`` times the result.

        ``made_at`` are the places where reductions will be made, in the order ``moved`` gets them.
        """
        self._leaving = []
        arrivals_of = _arrivals(flow, placement)
        alike = Counter(tuple(arrivals) for arrivals in arrivals_of.values())
        numbers = None if made_at is None else {place: number for number, place in enumerate(made_at)}
        for source in flow.sources:
            if ProgramPoint(source) not in placement.deferred:
                continue
            op = owner_op(source)
            arrivals = arrivals_of.get(source, [])
            self._leaving.append(_Departure(self.ctx.subject(view, op), _text(view, op) if self.ctx.wants_text else "",
                                            _load(flow, ProgramPoint(source), parts),
                                            arrivals=tuple(_load(flow, arrival, parts) for arrival in arrivals),
                                            made=None if numbers is None else
                                            tuple(numbers[place] for place in arrivals if place in numbers),
                                            carried=_carried(flow, source, placement) if self.ctx.wants_text else "",
                                            others=alike[tuple(arrivals)] - 1 if arrivals else 0))
            self._waiting.pop(op_key(op), None)
        self.ctx.count("reductions moved", len(self._leaving))
        self.ctx.count("executed bytes saved", round(_executed(flow, placement) * parts))

    def moved(self, view: View, made: list[ir.Operation], milliseconds: float, price: str = "") -> None:
        """Called after the placement was carried out."""
        texts = [_text(view, op) for op in made] if self.ctx.wants_text else []
        for departure in self._leaving:
            arrivals = " and ".join(dict.fromkeys(departure.arrivals)) or "never, since nothing reads it"
            self.ctx.remark(remark_about(departure.subject, "applied", self.name, "reduced where its result is needed: "
                                         f"{departure.load} before, {arrivals} now{departure.company}"
                                         + (f", {price}" if price else "")))
            self.ctx.rewrite(RewriteRecord(self._index, self.name, "", location=departure.subject.location,
                                           before=_left(departure), after=_arrived(departure, texts),
                                           milliseconds=milliseconds / len(self._leaving)))
            self._index += 1

    def done(self, view: View) -> None:
        """Called at the end of the pass: emits remarks on reductions that stay."""
        if self.ctx.explain == self.name:
            self._explain_all()
        for remark in self._waiting.values():
            if remark.kind != "missed" or self.ctx.wants_missed:
                self.ctx.remark(remark)
        self._waiting.clear()

    def _explain_all(self) -> None:
        """Reports why each reduction stayed, or that all moved, for ``--explain=comm-shift``."""
        outcomes: dict[str, Outcome] = {"blocked": "legal", "missed": "where", "unprofitable": "cost"}
        for remark in self._waiting.values():
            self.ctx.explanation(Explanation(self.name, "", outcomes[remark.kind], remark.sentence, remark.location,
                                             culprit=remark.culprit, culprit_location=remark.culprit_location))
        if not self._waiting:
            what = f"{self._index} reductions moved" if self._index else "no reduction is in a loop"
            self.ctx.explanation(Explanation(self.name, "", "applies" if self._index else "no match", what))

    def _wait(self, kind: RemarkKind, sentence: str, view: View, op: ir.Operation,
              use: ForcingUse | None = None, advice: str = "") -> None:
        culprit = use.culprit if use is not None and use.culprit is not None else None
        self._waiting[op_key(op)] = remark_about(
            self.ctx.subject(view, op), kind, self.name, sentence, culprit=culprit.name if culprit is not None else "",
            culprit_location=view.place(culprit) if culprit is not None else "", advice=advice)


def _only_expected(view: View, worse: PathRegression) -> str:
    """Reports why a reduction stays that would move under ``expected``."""
    return (f"moving it would send less in expectation, but more on {worse.words(view)}")


def _count(times: float) -> str:
    return f"{times:g}×"


def _load(flow: DeferralGraph, place: ProgramPoint, parts: int) -> str:
    return f"{_count(flow.executions[place])} {tensor_bytes(place.value.type) * parts} bytes"


def _arrivals(flow: DeferralGraph, placement: ReductionPlacement) -> dict[ir.Value, list[ProgramPoint]]:
    """Each all-reduce that moves -> the places where its sum is made, found backwards from these."""
    back: dict[ProgramPoint, list[ProgramPoint]] = {}
    for start, targets in flow.edges.items():
        if start in placement.deferred:
            for target in targets:
                back.setdefault(target, []).append(start)
    arrivals: dict[ir.Value, list[ProgramPoint]] = {}
    sources = set(flow.sources)
    for arrival in flow.reachable([ProgramPoint(source) for source in flow.sources]):
        if arrival not in placement.reduced:
            continue
        for place in reachable([arrival], lambda place: back.get(place, ())):
            if place.branch is None and place.value in sources and place in placement.deferred:
                arrivals.setdefault(place.value, []).append(arrival)
    return arrivals


def _executed(flow: DeferralGraph, placement: ReductionPlacement) -> float:
    """The executed bytes that a placement saves."""
    def total(places: Iterable[ProgramPoint]) -> float:
        return sum(flow.executions[place] * tensor_bytes(place.value.type) for place in places)
    return total({ProgramPoint(source) for source in flow.sources}) - total(placement.reduced)


def _text(view: View, op: ir.Operation) -> str:
    """The text of an op and its place, without numbering the whole function as printing the op would."""
    around = [f"while at {view.place(parent)}, {times_of_block(Loop(parent).body)[0]:g} times"
              for parent in ancestors(op) if parent.name == "stablehlo.while"]
    return f"// {'in ' + ', in '.join(around) if around else 'outside loops'}\n{snippet([op], {})}"


def _carried(flow: DeferralGraph, source: ir.Value, placement: ReductionPlacement) -> str:
    """The type of the first value between a reduction and its new place that a loop carries."""
    for place in islice(flow.reachable([ProgramPoint(source)]), _MOST_PLACES):
        around = place.value.owner if isinstance(place.value.owner, ir.Block) else None
        if place in placement.deferred and around is not None and around.owner.name == "stablehlo.while":
            return str(place.value.type)
    return ""


def _left(departure: _Departure) -> str:
    """The text of a reduction that moves, and of the value that its loop carries."""
    carried = f"\n// the loop carries reduced values: {departure.carried}" if departure.carried else ""
    return f"{departure.text}{carried}" if departure.text else ""


def _arrived(departure: _Departure, texts: list[str]) -> str:
    """The text of the first few reductions that replace one, so a trace stays linear in size."""
    if not texts:
        return ""
    numbers = range(len(texts)) if departure.made is None else departure.made
    lines = [texts[number] for number in numbers[:_MOST_ARRIVALS]]
    lines += [f"... and {len(numbers) - len(lines)} more"] if len(numbers) > len(lines) else []
    carried = [f"// the loop carries each device's own sum: {departure.carried}"] if departure.carried else []
    return "\n".join([*lines, *carried])


# ---- what to change so that a reduction can move: one piece of advice for each kind of reason


_KNOWN = "compute it from constants and replicated arguments alone, so that the analysis can see this"
ADVICE: Mapping[Need, str] = MappingProxyType({
    "not linear": "if you mean the accumulated value, do this once after the loop",
    "rival": "",
    "differs": f"if that value is in fact equal on all devices, {_KNOWN}",
    "trip count": f"if all devices in fact run the loop equally often, {_KNOWN}",
    "branch": f"if all devices in fact take the same branch, {_KNOWN}",
    "condition": "if the number of iterations is in fact fixed, write lax.scan or lax.fori_loop",
    "token": "remove ordered=True from the callbacks in the loop",
    "call": "run the pass inline first",
    "mesh": "",
    "result": "if you need only the last sum, accumulate in a lax.scan inside the step, and return it once",
    "region": "if you mean the accumulated value, do this after the loop",
    "shape": "give it a static shape",
})
NEXT_ITERATION = ("the next iteration reads the values that this one changes; to accumulate gradients, update the "
                  "parameters once, after the loop")
EXPECTED = "comm-shift{expected} moves it"
BUDGET = "allow the bytes by comm-shift{memory-budget=SIZE}"
EXACT = "leave out exact, or accumulate in integers"
EXPOSE = "run expose-collectives first"
ACROSS_CALLS = ("call the step once for all micro-batches, and accumulate in a lax.scan inside it, or keep local sums "
                "between calls with hlorewrite.optimize(partial_state=AXIS)")
