"""Applies rules until none applies, with a worklist of the ops that may be roots.

The index finds roots: from the rarest op of a rule's match along uses to its root, so a rule about collectives costs
nothing in a module of 100 000 ops without any. After a rewrite, only ops near it are tried again. The order is fixed by
the module and the rules, so equal inputs give equal outputs.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from hlorewrite.errors import HlorewriteError, PassFailed
from hlorewrite.ir import Editor, View, ir, op_key
from hlorewrite.rules.apply.matcher import find
from hlorewrite.rules.apply.tracker import EditTracker, Link, OpNotes
from hlorewrite.rules.compile.compiled import CompiledRule, Failure, PatternNode
from hlorewrite.rules.compile.environment import Environment
from hlorewrite.rules.compile.rewrite import Rewriting
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.listener import Listener, Recorder, RemarkKind, RewriteRecord, RuleStatistics
from hlorewrite.rules.remark_subject import RemarkSubjects, remark_about
from hlorewrite.rules.snippets import short_op, snippet

_LEAST_CHAIN_LIMIT = 1000
_MOST_AT_ONCE = 64
"""The most roots around an op that are tried again right after a rewrite. With more, they are tried once when nothing
else is left, so n readers of one value are not tried n times."""
_REWRITES_IN_ALL = 10
"""The limit on all rewrites, as a multiple of the limit on rewrites in a row. It stops a rule that turns one op into
two, long before a chain of a thousand rewrites."""


def apply_rules(rules: Sequence[CompiledRule], view: View, *, listener: Listener | None = None,
                context: RuleContext | None = None, ignore_cost: bool = False) -> int:
    """Applies rules to a module until none applies any more.

    Args:
      rules: compiled rules.
      view: the view of the module; every edit goes through an editor on it.
      listener: called with remarks, rewrites and statistics.
      context: what natives are called with.
      ignore_cost: leave out ``cost`` checks, except those of a rule on ops that another rule made from its results:
        only ``cost`` may stop two rules that undo each other.

    Returns:
      How many rewrites were made.

    Raises:
      PassFailed: rules undo each other without end, or a native or rewrite fails.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.rules.library import load_text
      >>> rules = load_text('rule negate-twice { match { %i = stablehlo.negate(%x); root %o = stablehlo.negate(%i); } '
      ...                   'types any; floats exact; rewrite { replace %o with %x; erase %i; } }').rules
      >>> module = parse("func.func @f(%a: tensor<f32>) -> tensor<f32> { %b = stablehlo.negate %a : tensor<f32> "
      ...                "%c = stablehlo.negate %b : tensor<f32> return %c : tensor<f32> }")
      >>> apply_rules(rules, View(module))
      1
      >>> "negate" in module.text()
      False
    """
    own = RuleContext(view) if context is None else context
    applied = Driver(rules, view, listener or Recorder(), own, ignore_cost).run()
    if context is None:
        own.release()
    return applied


@dataclass
class _Tally:
    tried: int = 0
    matched: int = 0
    applied: int = 0
    seconds: float = 0.0


class Driver:
    """One run of some rules over one module; see ``apply_rules``."""

    def __init__(self, rules: Sequence[CompiledRule], view: View, listener: Listener, context: RuleContext,
                 ignore_cost: bool) -> None:
        self.rules = sorted(rules, key=lambda rule: -rule.benefit)
        self.view = view
        self.subjects = RemarkSubjects(view)
        self.listener = listener
        self.context = replace(context, every_partner=context.every_partner or listener.wants_mismatches)
        self.ignore_cost = ignore_cost
        self.notes = OpNotes()
        self.tracker = EditTracker(self.context, self.notes)
        self.editor = Editor(view, "", (self.tracker,))
        self.tallies = {rule.name: _Tally() for rule in self.rules}
        self.applied = 0
        self.by_root: dict[str, list[CompiledRule]] = {}
        self.by_node: dict[str, list[PatternNode]] = {}
        for rule in self.rules:
            for name in rule.root.names:
                self.by_root.setdefault(name, []).append(rule)
            for node in rule.nodes:
                for name in node.names:
                    self.by_node.setdefault(name, []).append(node)

    def run(self) -> int:
        """Runs to the end; returns the number of rewrites."""
        candidates = self._initial()
        for op in candidates:
            self.notes.work.push(op)
        limit = _LEAST_CHAIN_LIMIT + len(candidates)
        # Ends: rewrites in a row and in total are bounded (``_try``), and only a rewrite adds ops to try.
        while (op := self._next()) is not None:
            self._visit(op, limit)
        for remarks in self.notes.pending.values():
            for remark in remarks.values():
                self.listener.remark(remark)
        self.view.drop_index(self._names())
        self.listener.statistics(self._statistics())
        return self.applied

    # ---- which ops to try

    def _names(self) -> set[str]:
        return {name for rule in self.rules for node in rule.nodes for name in node.names}

    def _initial(self) -> list[ir.Operation]:
        self.view.index(self._names())
        return _distinct(op for rule in self.rules for op in root_candidates(rule, self.view))

    def _next(self) -> ir.Operation | None:
        """The next op to try; postponed walks run when no op is left."""
        op = self.notes.work.pop()
        # Ends: each round makes a postponed walk, and walks postpone none.
        while op is None and (walk := self.notes.work.pop_walk()) is not None:
            for root in walk_to_root(*walk) or ():
                self.notes.work.push(root)
            op = self.notes.work.pop()
        return op

    def _requeue(self, touched: Iterable[ir.Operation]) -> None:
        for op in touched:
            nodes = self.by_node.get(op.name)
            if nodes is None:
                continue
            later: list[PatternNode] = []
            for node in self.notes.work.not_put_off(op, nodes):
                roots = walk_to_root(op, node, _MOST_AT_ONCE)
                if roots is None:
                    later.append(node)
                for root in roots or ():
                    self.notes.work.push(root)
            if later:
                self.notes.work.put_off(op, later)

    # ---- one op

    def _visit(self, op: ir.Operation, limit: int) -> None:
        for rule in self.by_root.get(op.name, ()):
            tally = self.tallies[rule.name]
            start = time.perf_counter()
            tally.tried += 1
            done = self._try(rule, op, limit, start)
            tally.seconds += time.perf_counter() - start
            if done:
                return

    def _try(self, rule: CompiledRule, op: ir.Operation, limit: int, start: float) -> bool:
        try:
            found = self._found(rule, op)
        except HlorewriteError:
            raise
        except (Exception, SystemExit) as error:  # natives may be code of a plug-in
            raise PassFailed(f"rule {rule.name}: a check raised {type(error).__name__}: {_first_line(error)}",
                             location=self.view.source(op),
                             hint=f"check the natives called at {rule.location}") from error
        if found is None:
            return False
        self.tallies[rule.name].matched += 1
        if isinstance(found, Failure):
            self._refused(rule, op, found)
            return False
        match, matched, link = found
        bound = rule.rule.recursive
        if bound is not None and _count(link, rule.name) > bound + 1:
            self._note("missed", rule, op, f"it rewrites its own results at most {bound} times")
            return False
        if link.depth > limit or self.applied >= _REWRITES_IN_ALL * limit:
            raise self._endless(link, op)
        self._apply(rule, op, match, matched, link, start)
        return True

    def _found(self, rule: CompiledRule, op: ir.Operation
               ) -> tuple[Environment, list[ir.Operation], Link] | Failure | None:
        """A match with its ops and the chain of rewrites that it extends. If the chain returns to the rule, ``cost``
        counts even with ``ignore_cost``, since only cost may stop two rules that rewrite each other's results.
        """
        match = find(rule, op, self.context, ignore_cost=self.ignore_cost)
        if match is None or isinstance(match, Failure):
            return match
        matched = self._matched_ops(rule, match)
        link = self._derived(rule, matched)
        if not self.ignore_cost or rule.name not in link.left:
            return match, matched, link
        match = find(rule, op, self.context)
        if match is None or isinstance(match, Failure):
            return match
        matched = self._matched_ops(rule, match)
        return match, matched, self._derived(rule, matched)

    def _matched_ops(self, rule: CompiledRule, env: Environment) -> list[ir.Operation]:
        return [env[node.slot] for node in reversed(rule.nodes)]

    def _apply(self, rule: CompiledRule, op: ir.Operation, env: Environment, matched: list[ir.Operation],
               link: Link, start: float) -> None:
        subject = self.subjects.of(op)
        names = rule_names(rule, env) if self.listener.wants_text else {}
        before = snippet(matched, names) if self.listener.wants_text else ""
        self.notes.pending.pop(op_key(op), None)
        self.tracker.start(matched)
        self.editor.rule = rule.name
        self._rewrite(rule, op, env)
        self.tallies[rule.name].applied += 1
        if rule.in_place:
            self.context.changed()
        created, alive = self.tracker.created, {**self.tracker.created, **self.tracker.survivors}
        self.notes.links.update(dict.fromkeys(alive, link))
        after = snippet(created.values(), surviving_names(rule, env, alive)) if self.listener.wants_text else ""
        self.listener.remark(remark_about(subject, "applied", rule.name, _sentence(rule),
                                          rule_location=rule.location))
        milliseconds = (time.perf_counter() - start) * 1e3
        self.listener.rewrite(RewriteRecord(self.applied, rule.name, rule.location, location=subject.location,
                                            before=before, after=after, milliseconds=milliseconds))
        self.applied += 1
        self._requeue(list(self.tracker.touched.values()))

    def _rewrite(self, rule: CompiledRule, op: ir.Operation, env: Environment) -> None:
        run = Rewriting(self.editor, op, op)
        where = self.view.source(op)
        try:
            for action in rule.actions:
                action(env, run)
        except HlorewriteError:
            raise
        except (Exception, SystemExit) as error:  # MLIR refuses an op, or a native fails
            what = f"{type(error).__name__}: {_first_line(error)}"
            raise PassFailed(f"rule {rule.name}: the rewrite failed ({what})", location=where,
                             hint=f"correct the rule at {rule.location}") from error

    # ---- refusals

    def _refused(self, rule: CompiledRule, op: ir.Operation, failure: Failure) -> None:
        if failure.stage == "where" and not self.listener.wants_mismatches:
            return
        kinds: dict[str, RemarkKind] = {"where": "missed", "legal": "blocked", "cost": "unprofitable"}
        self._note(kinds[failure.stage], rule, op, failure.answer.sentence, failure.answer.culprit)

    def _note(self, kind: RemarkKind, rule: CompiledRule, op: ir.Operation, sentence: str,
              culprit: ir.Operation | None = None) -> None:
        """Keeps a remark until the end: a later rewrite may make it untrue."""
        other = culprit is not None and culprit != op
        remark = remark_about(self.subjects.of(op), kind, rule.name, sentence, rule_location=rule.location,
                              culprit=short_op(culprit) if other and culprit is not None else "",
                              culprit_location=self.view.place(culprit) if other and culprit is not None else "")
        self.notes.pending.setdefault(op_key(op), {})[rule.name] = remark

    # ---- endless rewriting

    def _derived(self, rule: CompiledRule, matched: Iterable[ir.Operation]) -> Link:
        known = [self.notes.links[key] for key in map(op_key, matched) if key in self.notes.links]
        before = max(known, key=lambda link: link.depth, default=None)
        if before is None:
            return Link(rule.name, 1, None)
        left = before.left if before.rule == rule.name else before.left | {before.rule}
        return Link(rule.name, before.depth + 1, before, left)

    def _endless(self, link: Link, op: ir.Operation) -> PassFailed:
        last = [link.rule for link in _chain(link, 40)]
        cycle = sorted(set(last))
        names = " and ".join(cycle) if len(cycle) < 3 else ", ".join(cycle)
        what = (f"rule {names} rewrites its own results without end" if len(cycle) == 1
                else f"rules {names} rewrite each other's results without end")
        return PassFailed(f"{what} ({link.depth} rewrites in a row, {self.applied} in total, the last: "
                          f"{' <- '.join(last[:4])})",
                          location=self.view.source(op),
                          hint="let a `where` or `cost` of one fail on the other's result, or add `recursive(k)`")

    # ---- statistics

    def _statistics(self) -> tuple[RuleStatistics, ...]:
        counts: dict[tuple[str, str], int] = {}
        for remarks in self.notes.pending.values():
            for remark in remarks.values():
                key = (remark.rule, remark.kind)
                counts[key] = counts.get(key, 0) + 1
        return tuple(RuleStatistics(rule.name, rule.location, t.tried, matched=t.matched, applied=t.applied,
                                    blocked=counts.get((rule.name, "blocked"), 0),
                                    unprofitable=counts.get((rule.name, "unprofitable"), 0),
                                    milliseconds=t.seconds * 1e3)
                     for rule in self.rules for t in (self.tallies[rule.name],))


def root_candidates(rule: CompiledRule, view: View) -> list[ir.Operation]:
    """The ops of a module that may be a rule's root, found from the rarest op of its match."""
    pools = [(view.ops(*node.names), node) for node in rule.nodes]
    pool, node = min(pools, key=lambda p: (len(p[0]), len(p[1].hops)))
    return _distinct(root for op in pool for root in walk_to_root(op, node) or ())


def walk_to_root(op: ir.Operation, node: PatternNode, most: int | None = None) -> list[ir.Operation] | None:
    """The possible roots of matches that contain an op; None when the walk passes more than ``most`` ops."""
    here = [op]
    for hop in node.hops:
        ways = list(islice((target for start in here for target in hop(start)), None if most is None else most + 1))
        if most is not None and len(ways) > most:
            return None
        here = _distinct(op for op in ways if op is not None)
    return here


def _distinct(ops: Iterable[ir.Operation]) -> list[ir.Operation]:
    by_key: dict[int, ir.Operation] = {}
    for op in ops:
        by_key.setdefault(op_key(op), op)
    return list(by_key.values())


def _sentence(rule: CompiledRule) -> str:
    return rule.rule.docs[0] if rule.rule.docs else "rewritten"


def _chain(link: Link | None, most: int) -> Iterable[Link]:
    # Ends: ``most`` falls.
    while link is not None and most > 0:
        yield link
        link, most = link.before, most - 1


def _count(link: Link, rule: str) -> int:
    return sum(step.rule == rule for step in _chain(link, 1_000_000))


def _first_line(error: BaseException) -> str:
    """The first line of a message that may have several."""
    return (str(error).strip().splitlines() or [""])[0]


# ---- a rule's names for the values of a match, for texts of rewrites


def rule_names(rule: CompiledRule, env: Environment) -> dict[ir.Value, str]:
    """The rule's names for the values of a match."""
    names: dict[ir.Value, str] = {}
    for name, slot in rule.slots.ops.items():
        if env[slot] is not None:
            results = list(env[slot].results)
            names.update({v: f"%{name}" if len(results) == 1 else f"%{name}#{i}" for i, v in enumerate(results)})
    for name, (slot, number) in rule.slots.results.items():
        names[env[slot].results[number]] = f"%{name}"
    for name, slot in rule.slots.numbers.items():
        if name.startswith("%") and isinstance(env[slot], ir.Value):
            names.setdefault(env[slot], name)
    return names


def surviving_names(rule: CompiledRule, env: Environment,
                    alive: Mapping[int, ir.Operation]) -> dict[ir.Value, str]:
    """The names that are valid after a rewrite: of ops that still exist, and of values that were only read."""
    names: dict[ir.Value, str] = {}
    for name, slot in rule.slots.ops.items():
        if env[slot] is not None and op_key(env[slot]) in alive:
            names.update(dict.fromkeys(env[slot].results, f"%{name}"))
    for name, slot in rule.slots.numbers.items():
        if name.startswith("%") and isinstance(env[slot], ir.Value):
            names.setdefault(env[slot], name)
    return names
