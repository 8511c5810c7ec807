"""What is known while one program is evaluated."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from hlorewrite.analysis.groups import Rows
from hlorewrite.analysis.uniform_trip_count import LoopWitnesses
from hlorewrite.checks.translation_validation.verdict import NotRead
from hlorewrite.checks.value_graph.communication_rules import MOVED, moved, own_part, own_starts
from hlorewrite.checks.value_graph.graph import (
    Graph,
    Key,
    Label,
    PendingReduction,
    SymbolicValue,
    joined,
    own_part_of,
    part_type,
    reduced,
    shape_and_element,
)
from hlorewrite.checks.value_graph.groups import Members, ProcessSpace
from hlorewrite.checks.value_graph.index_maps import IndexMaps
from hlorewrite.checks.value_graph.normalize import FOLDED, normalized, op_label, op_of
from hlorewrite.checks.value_graph.per_process_constants import KNOWN, Attributes, ProcessConstants
from hlorewrite.checks.value_graph.uniform import SameOnMembers
from hlorewrite.checks.value_graph.views.forms import Forms
from hlorewrite.ir import COLLECTIVES, View, ir
from hlorewrite.ir.frontend import FRONTEND
from hlorewrite.ops.attributes import constant_attribute, constant_text, is_complex_zero, splat_number
from hlorewrite.ops.table import COMMUTATIVE
from hlorewrite.rules.facts import Facts

_SKIPPED = frozenset({FRONTEND, "hlorewrite.reshard"})
"""How a transfer between meshes is sent is not compared."""
_SKIPPED_OF_COLLECTIVES = _SKIPPED | {"channel_handle"}
"""Channels distinguish which calls meet; what they compute is the same (their part in the meaning of groups is not)."""
_SYMBOL = re.compile(r'@("[^"]+"|[\w.$-]+)')
_MOST_OPS = 4_000_000
_MOST_TERMS = 32
_TERMS: Label = ("sum", "terms")
_PARTS = ("stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.reshape", "stablehlo.transpose")


@dataclass(frozen=True)
class Strategy:
    """Selects one of several equal forms for values. All are correct, but none suits every rewrite.

    Attributes:
      name: its name.
      fold: reductions of values that are equal on all members, or that only one member holds, are evaluated.
      widen: in the original, a float sum that is converted to a wider type is taken in that type.
      elements: moves of elements are compared element by element.
      eager: reductions are carried out in place.
      scatter: parts of scattered sums wait as the whole sums.
      quick: what changes in a loop is guessed from its text, which saves a pass and misses what is computed to stay.
      last_factor: in a product of two values that wait, the second one keeps waiting.
      streams: streams that start and continue with the same op become that op on streams, for rotated loops.
      pairs: two iterations at a time, in the original's loops that run half as often in the result; stacks of sums are
        sums of stacks.
      halves: expressions of two halves of a tensor are expressions of the tensor.
      views: moves of elements are affine views, sums and products have one form (``value_graph.views``).
      rounded: with these, constants that differ by rounding are one.
    """

    name: str
    fold: bool = False
    widen: bool = False
    last_factor: bool = False
    streams: bool = False
    pairs: bool = False
    halves: bool = False
    elements: bool = False
    eager: bool = False
    quick: bool = False
    scatter: bool = False
    views: bool = False
    rounded: bool = False


@dataclass
class LoopShape:
    """A proposal about a loop: which parts of its slots change, and which may not wait for a reduction.

    Attributes:
      streams: (slot, key) of the parts that change; all others are what they were at the start.
      kinds: slot -> the reduction its parts wait for.
      forced: slots whose reductions are carried out in each iteration.
      differs: (slot, key) -> groups within which it is not the same.
      effects: whether the body has effects.
      step: what the counter grows by, for a loop whose last iteration is set apart.
      counted: whether the step is known in each pass.
      paired: whether an iteration is two of the loop's.
    """

    streams: set[tuple[int, Key]] = field(default_factory=set)
    kinds: dict[int, str] = field(default_factory=dict)
    forced: set[int] = field(default_factory=set)
    differs: dict[tuple[int, Key], set[Members]] = field(default_factory=dict)
    effects: bool = False
    step: int | None = None
    counted: bool = True
    paired: bool = False


class PutOff(IntEnum):
    """The refuted part of a proposal; if kinds are wrong, the other values say nothing either."""

    NOTHING = 0
    SHAPE = 1
    KINDS = 2


@dataclass(frozen=True, eq=False)
class CollectiveRun:
    """A collective that is executed.

    Attributes:
      members: who participates together; None when its groups are not a partition.
      control: the predicates it is executed under, outermost first, with their places.
      op: the op.
      text: its attributes, when its groups are not a partition.
    """

    members: Members | None
    control: tuple[tuple[str, int], ...]
    op: ir.Operation
    text: tuple[object, ...] = ()


class ProgramState:
    """One program under evaluation, over a graph that it shares with the other one.

    Args:
      graph: the graph.
      space: the processes.
      view: the program.
      facts: the linearity facts.
      strategy: the normal form.
      tables: what is known about each process.
      same: what is the same on all members of a group.
      picks: moves of elements, for a strategy that lists them.
      original: whether it is the original, which is taken to end.
      last_apart: keys of loops whose last iteration is set apart.
      in_pairs: keys of loops whose iterations are evaluated two at a time.

    Attributes:
      env: values of the function under evaluation.
      depth: how many loops are around.
      read_again: how many bodies of loops around are evaluated once more, for their last iteration.
      manual: how many manual regions are around.
      calls: the functions that are being called.
      control: predicates around: ("loop" or "branch n", node).
      executions: collectives executed so far.
      loops: for each loop that is run the predicates around it, its own last.
      effects: the node of all effects so far.
      put_off: what of a loop within was not confirmed when it was left, so that the loop around has to be read again.
      decoded: what was read of each block.
      gathered: node -> the groups, the dimension and the shard it was gathered from.
      on_parts: equations of slices that need the state; ``(state, label, type, args)`` to a node or None.
    """

    def __init__(self, graph: Graph, space: ProcessSpace, view: View, facts: Facts, *, strategy: Strategy,
                 tables: ProcessConstants, same: SameOnMembers, picks: IndexMaps, original: bool,
                 last_apart: frozenset[int] = frozenset(), in_pairs: frozenset[int] = frozenset()) -> None:
        self.graph, self.space, self.view, self.facts = graph, space, view, facts
        self.strategy, self.tables, self.same, self.original = strategy, tables, same, original
        self.picks = picks if strategy.elements else None
        self.forms: Forms | None = None
        self.last_apart, self.in_pairs = last_apart, in_pairs
        self.env: dict[ir.Value, SymbolicValue] = {}
        self.depth = 0
        self.read_again = 0
        self.manual = 0
        self.calls: list[str] = []
        self.control: list[tuple[str, int]] = []
        self.executions: list[CollectiveRun] = []
        self.loops: list[tuple[tuple[str, int], ...]] = []
        self.effects = graph.node(("world",), "")
        self.put_off = PutOff.NOTHING
        self.shapes: dict[int, LoopShape] = {}
        self.run_block: Callable[[ir.Block, Sequence[SymbolicValue]], list[SymbolicValue]]
        self.decoded: dict[ir.Block, list[Any]] = {}
        self.gathered: dict[int, tuple[Rows, int, int]] = {}
        self.on_parts: Callable[[ProgramState, Label, str, tuple[int, ...]], int | None]
        self._witnesses: LoopWitnesses | None = None
        self._ops = 0
        self._types: dict[ir.Type, str] = {}
        self._attributes: dict[ir.Attribute, str] = {}

    def witnesses(self) -> LoopWitnesses:
        """The collectives of the program that every compiler executes in each iteration of their loop."""
        if self._witnesses is None:
            self._witnesses = LoopWitnesses(self.view)
        return self._witnesses

    # ---- reading

    def enter(self, op: ir.Operation, key: int) -> None:
        """An op is about to be evaluated; its key is that of ``op_key``."""
        self.graph.op = key
        self._ops += 1
        if self._ops > _MOST_OPS:
            raise NotRead("nested calls and loops make it too large", self.view.source(op))

    def forget_blocks(self) -> None:
        """Frees the state of loops and their blocks outside of any loop or call: none is evaluated again.

        Handles of MLIR take more memory than the nodes.
        """
        if self.depth or self.calls or self.read_again:
            return
        for block, ops in self.decoded.items():
            for value in (*block.arguments, *(result for each in ops for result in each.results)):
                self.env.pop(value, None)
        self.decoded.clear()
        self.shapes.clear()

    def type_of(self, value: ir.Value) -> str:
        """The type of a value as MLIR prints it."""
        type_ = value.type
        known = self._types.get(type_)
        if known is None:
            known = self._types[type_] = str(type_)
        return known

    def node_of(self, value: ir.Value) -> int:
        """A value with its reductions carried out."""
        return self.carried_out(self.env[value], self.type_of(value))

    def reduced(self, value: SymbolicValue, like: ir.Value) -> int:
        """A value of the type of an MLIR value, with its reductions carried out."""
        return self.carried_out(value, self.type_of(like))

    def carried_out(self, value: SymbolicValue, type_: str) -> int:
        """A value of a type with its reductions carried out."""
        if isinstance(value, int):
            return value
        scattered = [key for key in value.parts if own_part_of(key)]
        if scattered:
            return self._with_own_parts(value, scattered, type_)
        if len(value.parts) != 1:
            return reduced(self.graph, value, type_)
        (key, part), = value.parts.items()
        return self._reduced(value.kind, key, type_, part)

    def _with_own_parts(self, value: PendingReduction, scattered: list[Key], type_: str) -> int:
        """The sum of what waits for no scatter, and of each process's part of the sums that are scattered."""
        rest = {key: node for key, node in value.parts.items() if key not in scattered}
        total = self.carried_out(joined(self.graph, value.kind, rest), type_) if rest else None
        for key in sorted(scattered, key=lambda key: key[0].number):
            own = own_part_of(key)
            assert own is not None
            plain = self.space.reduction(key[0].members, key[0].kind, key[0].wire)
            whole = self._reduced(value.kind, (plain,), part_type(key, type_), value.parts[key])
            part = self.own_part(own.rows, own.along, type_, whole)
            total = part if total is None else self.op_node(op_label("stablehlo.add"), type_, (total, part))
        assert total is not None
        return total

    def own_part(self, rows: Rows, along: int, type_: str, node: int) -> int:
        """The part of a node that belongs to a process's place in its group."""
        if self.picks is not None:
            starts, label = own_starts(self.graph, self.tables, rows, along, type_)
            listed = self.picks.moved("stablehlo.dynamic_slice", label[1], type_, (node, *starts))  # type: ignore[arg-type]
            if listed is not None:
                return listed
        return own_part(self.graph, self.tables, rows, along, type_, node)

    def _reduced(self, kind: str, key: Key, type_: str, part: int) -> int:
        """One part with its reductions carried out: those of what it is made of join, and moves come after."""
        label = self.graph.labels[part]
        if label[0] == "reduced" and label[1] == kind and len(label[2]) == len(key) == 1:  # type: ignore[arg-type]
            inner: Key = label[2][0]  # type: ignore[index]
            both = self.space.composed(key[0], inner[0]) if len(inner) == 1 else None
            if both is not None:
                return self._reduced(kind, (both,), type_, self.graph.args[part][0])
        if self.picks is not None:
            moved = self.picks.of_reduced(kind, type_, part, [reduction.members for reduction in key],
                                          lambda node: self._reduced(kind, key, self.graph.types[node], node))
            if moved is not None:
                return moved
        return reduced(self.graph, PendingReduction(kind, {key: part}), type_)

    def attributes_of(self, op: ir.Operation) -> Attributes:
        """The attributes that decide what an op computes, as text."""
        skipped = _SKIPPED_OF_COLLECTIVES if op.name in COLLECTIVES else _SKIPPED
        names = [name for name in op.attributes if name not in skipped]
        return tuple(sorted((name, self._text(op, name)) for name in names)) if names else ()

    def _text(self, op: ir.Operation, name: str) -> str:
        try:
            attribute = op.attributes[name]
        except TypeError:  # jaxlib gives no attribute of complex elements
            return str(op.get_asm(use_local_scope=True))
        known = self._attributes.get(attribute)
        if known is None:
            text = str(attribute)
            if "@" in text:
                text += self._bodies(text, set())
                text = text if self.forms is None else _SYMBOL.sub(_numbered(), text)
            known = self._attributes[attribute] = text
        return known

    def _bodies(self, text: str, seen: set[str]) -> str:
        """The functions that an attribute names, directly or through other functions: they are part of what an op
        computes.
        """
        bodies = ""
        for name in _SYMBOL.findall(text):
            function = self.view.functions.get(name.strip('"'))
            if function is not None and name not in seen:
                seen.add(name)
                body = str(function)
                bodies += f" where {body}{self._bodies(body, seen)}"
        return bodies

    def constant(self, op: ir.Operation) -> int:
        """The node of a constant."""
        type_ = self.type_of(op.results[0])
        number = splat_number(op)
        if number is not None:
            node = self.graph.splat(number, type_)
            return node if self.forms is None else self.forms.literal(node)
        if is_complex_zero(op):
            zero = self.graph.identity("sum", type_)
            if zero is not None:
                return zero
        attribute, known = constant_attribute(op), shape_and_element(type_)
        if attribute is None or known is None:
            return self.graph.node(("constant", constant_text(op)), type_)
        text = self._text(op, "value")
        # Elements held apart are known by a name that is theirs within one context.
        held = ("constant", text, id(op.context)) if text.startswith("dense_resource") else ("constant", text)
        node = self.graph.node(held, type_)
        if known[1].lstrip("ui").isdigit() and known[1] not in ("i2", "i4", "ui2", "ui4"):
            import numpy as np
            self.tables.remember(node, np.array(attribute).reshape(known[0]))
        return node

    # ---- making

    def op_node(self, label: Label, type_: str, args: tuple[int, ...]) -> int:
        """The node of an op on nodes, in its canonical form."""
        if self.forms is not None:
            self.forms.otherwise = self.known_move
            return self.forms.op(label, type_, args)
        name, attributes, regions, _ = label
        if not regions:
            of_chosen = name in _PARTS and self.graph.labels[args[0]][0] == "chosen"
            found = self.on_parts(self, label, type_, args) if of_chosen else None
            if found is None:
                found = self._simplified(str(name), attributes, type_, args)  # type: ignore[arg-type]
            if found is None and name in _PARTS and not of_chosen:
                found = self.on_parts(self, label, type_, args)
            if found is not None:
                return found
            if self.strategy.pairs and name == "stablehlo.add":
                return self._sum(label, type_, args)
            if name in COMMUTATIVE and args[0] > args[1]:
                args = (args[1], args[0])
        return self.graph.node(label, type_, args)

    def _sum(self, label: Label, type_: str, args: tuple[int, ...]) -> int:
        """A sum with its constants added up; of more than two floats, in no order."""
        known = shape_and_element(type_)
        terms = [term for node in args for term in self.terms_of(node)]
        constants = [term for term in terms if self.graph.labels[term][0] == "splat"]
        if known is None or not 2 < len(terms) <= _MOST_TERMS:
            return self.graph.node(label, type_, (min(args), max(args)))
        if "f" in known[1]:
            return self.graph.node(_TERMS, type_, tuple(sorted(terms)))
        if len(terms) == 3 and len(constants) == 2:
            rest = next(term for term in terms if term not in constants)
            return self.op_node(label, type_, (rest, self.op_node(label, type_, (constants[0], constants[1]))))
        return self.graph.node(label, type_, (min(args), max(args)))

    def terms_of(self, node: int) -> tuple[int, ...]:
        """The terms of a sum; the node itself if it is none."""
        is_sum = self.graph.labels[node] == _TERMS or op_of(self.graph, node, "stablehlo.add") is not None
        return self.graph.args[node] if is_sum else (node,)

    def known_move(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node that an op equals because of what processes hold, or because there are no elements to add; None for
        other ops.
        """
        name, attributes = str(label[0]), label[1]
        found = self._simplified(name, attributes, type_, args)  # type: ignore[arg-type]
        return self.on_parts(self, label, type_, args) if found is None and name in _PARTS else found

    def _simplified(self, name: str, attributes: Attributes, type_: str, args: tuple[int, ...]) -> int | None:
        found = None
        if args and self.graph.labels[args[0]][0] in KNOWN:
            found = self.tables.folded(name, attributes, type_, args)
        if found is None and self.picks is not None:
            found = self.picks.moved(name, attributes, type_, args)
        if found is None and name in FOLDED:
            found = normalized(self.graph, name, attributes, type_, args)
        if found is None and name in MOVED:
            found = moved(self.graph, self.tables, name, dict(attributes), type_, args)
        return found

    def execute(self, op: ir.Operation, members: Members | None) -> None:
        """Notes that a collective is executed here."""
        self.executions.append(CollectiveRun(members, tuple(self.control), op,
                                             () if members is not None else (op.name, self.attributes_of(op))))


def _numbered() -> Callable[[re.Match[str]], str]:
    """Names of functions by the order in which they appear: passes of XLA give copies other names."""
    numbers: dict[str, int] = {}
    return lambda match: f"@{numbers.setdefault(match[0], len(numbers))}"


def share_forms(original: ProgramState, result: ProgramState) -> None:
    """Gives two programs the forms of ``value_graph.views``, in which both have the same constants."""
    original.forms = result.forms = Forms(original.graph, original.tables, original.strategy.rounded)
