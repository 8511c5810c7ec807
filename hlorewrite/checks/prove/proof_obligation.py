"""A rule as tensors and premises: its ops, what each computes, and what is assumed of groups and types."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hlorewrite.checks.prove import tensors
from hlorewrite.checks.prove.op_semantics import OpSemantics, Typing
from hlorewrite.checks.prove.solver import solver
from hlorewrite.checks.prove.tensors import Cell, DeviceGroups, DeviceTensor, Element
from hlorewrite.rules.syntax import ast

# ---- an op of a rule, with symbols for what the rule leaves open


@dataclass(frozen=True, eq=False)
class MatchedOp:
    """An op of the match, or one the rewrite makes.

    Attributes:
      variable: the name of its result.
      name: the op.
      operands: the names of its operands.
      attributes: a symbol for each attribute; equal symbols are equal attributes.
      kind: the reduction of its region: a kind, or a symbol for one that is not known.
    """

    variable: str
    name: str
    operands: tuple[str, ...]
    attributes: Mapping[str, Any]
    kind: str

    def attribute(self, name: str) -> Any:
        """The symbol of an attribute; a separate one if the rule does not name it."""
        return self.attributes.get(name, f"{self.variable}.{name}")


# ---- the obligation of a rule


MODE = ("channel_handle", "use_global_device_ids")
"""Attributes that say, with the groups, which devices a row of the groups names."""
SCATTER = ("scatter_dimension_numbers", "indices_are_sorted", "unique_indices")
"""Attributes of a scatter that say where its updates go."""
_MOVES = ("reshape", "transpose", "broadcast_in_dim", "slice", "reverse")
_REDUCING = ("all_reduce", "reduce_scatter")
_ALIKE = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "clamp", "and", "or")


class NotFollowed(Exception):
    """A rule contains something that has no meaning here."""


@dataclass
class ProofObligation:
    """A rule as tensors and premises, for one choice of op names and of reductions.

    Args:
      rule: the syntax tree.
      names: which op name each op of the match has.
      kinds: the reduction that each ``$kind`` denotes.
      meanings: what elementwise ops compute, by name.
    """

    rule: ast.Rule
    names: tuple[str, ...]
    kinds: Mapping[str, str]
    meanings: Mapping[str, OpSemantics]
    premises: list[Any] = field(default_factory=list)
    ops: dict[str, MatchedOp] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    applied: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    _tensors: dict[str, DeviceTensor] = field(default_factory=dict, repr=False)
    _groups: dict[Any, DeviceGroups] = field(default_factory=dict, repr=False)
    _pairs: dict[Any, tensors.Pairs] = field(default_factory=dict, repr=False)
    _starts: dict[str, Callable[[Any, Any], Any]] = field(default_factory=dict, repr=False)
    _same: dict[str, str] = field(default_factory=dict, repr=False)
    made: set[str] = field(default_factory=set)
    granted: set[str] = field(default_factory=set)
    claims: list[Any] = field(default_factory=list)
    _pieces: list[tuple[DeviceGroups, Any, Any, Any]] = field(default_factory=list, repr=False)
    shards: list[Callable[[Any], Any]] = field(default_factory=list)
    keepers: dict[DeviceGroups, Callable[[Any], Any]] = field(default_factory=dict)
    used_dimensions: list[Any] = field(default_factory=list)
    _typings: dict[tuple[str, int], frozenset[Typing]] = field(default_factory=dict, repr=False)

    # ---- type classes

    def type_class(self, name: str) -> str:
        """The class of a value's element type: values of one class have one type."""
        name = self.types.get(name, name)
        # Ends: classes are joined at their ends, so the chain has no circle.
        while self._same.get(name, name) != name:
            name = self._same[name]
        return name

    def typings(self, op: str, count: int) -> frozenset[Typing]:
        """The element types an elementwise op may have."""
        if (op, count) not in self._typings:
            self._typings[op, count] = frozenset(self.meanings[op].typings(count))
        return self._typings[op, count]

    def unify(self, *names: str) -> None:
        """Values have one element type."""
        first, *others = (self.type_class(name) for name in names)
        for other in others:
            self._same[other] = first

    # ---- values

    def tensor(self, name: str) -> DeviceTensor:
        """The tensor of a name."""
        if name not in self._tensors:
            op = self.ops.get(name)
            self._tensors[name] = self._leaf(name) if op is None else self._computed(op)
        return self._tensors[name]

    def define(self, name: str, tensor: DeviceTensor) -> None:
        """A condition determines the result of a matched op; values computed from it are rebuilt."""
        for op in self.ops:
            self._tensors.pop(op, None)
        self._tensors[name] = tensor

    def sizes(self, name: str) -> Any:
        """The sizes of a value."""
        return self.tensor(name).sizes

    def _leaf(self, name: str) -> DeviceTensor:
        z3 = solver()
        elements = z3.DeclareSort("Element")
        function = z3.Function(f"%{name}", tensors.device_sort(), tensors.index_sort(), elements)
        self.types.setdefault(name, name)
        return DeviceTensor(name, z3.Const(f"sizes %{name}", tensors.index_sort()), lambda d, i: Cell(function(d, i)))

    # ---- ops

    def make(self, op: MatchedOp, sizes: Any, element: str | None) -> None:
        """Adds an op of the rewrite, with the sizes and the element type of its result if they are given."""
        self.made.add(op.variable)
        self.ops[op.variable] = op
        self._tensors[op.variable] = self._computed(op, sizes, element)

    def _computed(self, op: MatchedOp, sizes: Any = None, element: str | None = None) -> DeviceTensor:
        """What an op computes; a made op may be given the sizes and the element type of its result."""
        short = op.name.removeprefix("stablehlo.")
        matched = op.variable not in self.made
        self.types.setdefault(op.variable, op.variable)
        if short == "constant":
            return self._constant(op)
        operands = [self.tensor(name) for name in op.operands]
        if not operands:
            if matched:
                return self._leaf(op.variable)
            raise NotFollowed(f"{op.name} without operands is not followed")
        if short == "select" and matched:  # any value; a condition may say which
            self.unify(*op.operands[1:], op.variable)
            return self._leaf(op.variable)
        tensor = self._collective(short, op, operands[0], sizes)
        if tensor is None and short in _MOVES and len(operands) == 1:
            tensor = self._moved(op, operands[0], sizes)
        if tensor is not None and short in _REDUCING and op.kind.startswith("?"):  # an unknown reducer may promote
            return replace(tensor, type=op.variable)
        if tensor is not None:
            self.unify(op.operands[0], op.variable)
            return tensor
        if op.name not in self.meanings or self.meanings[op.name].kind != "elementwise":
            raise NotFollowed(f"the prover does not follow {op.name} here")
        return self._elementwise(short, op, operands, element, matched)

    def _constant(self, op: MatchedOp) -> DeviceTensor:
        value = op.attributes.get("value")
        if not (isinstance(value, tuple) and value[0] == "splat"):
            return self._leaf(op.variable)
        self.types[op.variable] = value[2]
        return DeviceTensor(value[2], self.sizes(value[2]), lambda d, i: tensors.Number(value[1], value[2]))

    def _elementwise(self, short: str, op: MatchedOp, operands: Sequence[DeviceTensor], element: str | None,
                     matched: bool) -> DeviceTensor:
        if matched:  # the verifier's doing; clamp also takes scalars
            self.premises += [x.sizes == operands[0].sizes for x in operands[1:] if short != "clamp"]
        if short in _ALIKE and matched:
            self.unify(*op.operands, op.variable)
        elif short in _ALIKE:
            element = element or op.operands[0]
        self.types[op.variable] = element or self.types[op.variable]
        types, result = tuple(op.operands), op.variable
        self.applied.append((op.name, types, result))

        def at(d: Any, i: Any) -> Element:
            return tensors.Applied(op.name, tuple(x.at(d, i) for x in operands), types, result)
        return DeviceTensor(result, operands[0].sizes, at)

    def _moved(self, op: MatchedOp, x: DeviceTensor, sizes: Any) -> DeviceTensor:
        """Moves elements: the index in the operand is a function of the op's attributes, both shapes and the index."""
        z3, attributes = solver(), sorted(f"{k}={v}" for k, v in op.attributes.items())
        own = "" if op.attributes else op.variable
        function = z3.Function(f"{op.name}{own} {attributes}", *[tensors.index_sort()] * 4)
        new = sizes if sizes is not None else z3.Const(f"sizes %{op.variable}", tensors.index_sort())
        return DeviceTensor(x.type, new, lambda d, i: x.at(d, function(x.sizes, new, i)))

    def _collective(self, short: str, op: MatchedOp, x: DeviceTensor, sizes: Any) -> DeviceTensor | None:
        if short == "all_reduce":
            return tensors.all_reduce(x, op.kind, self.groups(op))
        if short == "all_gather":
            return tensors.all_gather(x, self.dimension(op, "all_gather_dim"), self.groups(op))
        if short == "reduce_scatter":
            along = self.dimension(op, "scatter_dimension")
            return tensors.reduce_scatter(x, op.kind, along, self.groups(op), self._shard(op, x, along, sizes))
        if short == "all_to_all":
            split, concat = self.dimension(op, "split_dimension"), self.dimension(op, "concat_dimension")
            return tensors.all_to_all(x, split, concat, self.groups(op), self._shard(op, x, split, None))
        if short == "collective_permute":
            return tensors.collective_permute(x, self.pairs(op))
        if short == "collective_broadcast":
            return tensors.collective_broadcast(x, self.groups(op))
        if short == "scatter" and op.kind == "sum" and len(op.operands) == 3:
            self.unify(op.operands[0], op.operands[2])  # a reducer that promotes is not a sum
            return tensors.scatter_add(x, str((op.operands[1:], *(op.attribute(name) for name in SCATTER))))
        if short == "dynamic_slice":
            sizes = solver().Const(f"sizes %{op.variable}", tensors.index_sort())
            return tensors.dynamic_slice(x, self.start(op), sizes)
        return None

    def _shard(self, op: MatchedOp, x: DeviceTensor, along: Any, sizes: Any) -> Any:
        """The size of one of n equal pieces along a dimension: assumed of the match, a claim about what is made."""
        groups = self.groups(op)
        for known, dimension, whole, size in self._pieces:
            if known is groups and dimension.eq(along) and whole.eq(x.sizes):
                return size
        if op.variable not in self.made:
            size = solver().Int(f"shard %{op.variable}")
            self.premises += [size >= 1, size * groups.n == x.sizes[along]]
        elif sizes is not None:
            size = sizes[along]
            self.claims.append(size * groups.n == x.sizes[along])
        else:
            raise NotFollowed(f"the prover does not follow the sizes of the new {op.name}")
        self._pieces.append((groups, along, x.sizes, size))
        return size

    # ---- attributes

    def groups(self, op: MatchedOp) -> DeviceGroups:
        """The groups of a collective, from its replica groups and its mode."""
        key = tuple(op.attribute(name) for name in ("replica_groups", *MODE))
        if key not in self._groups:
            self._groups[key] = DeviceGroups(f"%{op.variable}")
            self.premises += self._groups[key].axioms
        return self._groups[key]

    def every_groups(self) -> list[DeviceGroups]:
        """All groups there are."""
        return list(dict.fromkeys(self._groups.values()))

    def groups_like(self, groups: DeviceGroups, op: MatchedOp) -> str:
        """A symbol for replica groups that mean ``groups`` when they are read in the mode of an op."""
        symbol = f"groups {groups.name}"
        self._groups[symbol, *(op.attribute(name) for name in MODE)] = groups
        return symbol

    def pairs(self, op: MatchedOp) -> tensors.Pairs:
        """The pairs of a permute, as its mode defines them."""
        key = op.attribute("source_target_pairs"), op.attribute("channel_handle")
        if key not in self._pairs:
            self._pairs[key] = tensors.Pairs(f"%{op.variable}")
        return self._pairs[key]

    def pairs_like(self, pairs: tensors.Pairs, op: MatchedOp) -> str:
        """A symbol for pairs that mean ``pairs`` when they are read in the mode of an op."""
        symbol = f"pairs {len(self._pairs)}"
        self._pairs[symbol, op.attribute("channel_handle")] = pairs
        return symbol

    def same_pairs(self, first: MatchedOp, second: MatchedOp) -> None:
        """Two permutes have the same pairs."""
        self._pairs[second.attribute("source_target_pairs"), second.attribute("channel_handle")] = self.pairs(first)
        self._tensors.pop(second.variable, None)

    def unify_kinds(self, first: MatchedOp, second: MatchedOp) -> None:
        """Two collectives have the same reduction."""
        if second.kind.startswith("?"):
            self.ops[second.variable] = MatchedOp(second.variable, second.name, second.operands, second.attributes,
                                                  first.kind)
            self._tensors.pop(second.variable, None)

    def dimensions(self, op: MatchedOp) -> tuple[str, ...]:
        """The attributes of a collective that name dimensions."""
        return {"stablehlo.all_gather": ("all_gather_dim",), "stablehlo.reduce_scatter": ("scatter_dimension",),
                "stablehlo.all_to_all": ("split_dimension", "concat_dimension")}.get(op.name, ())

    def dimension(self, op: MatchedOp, name: str) -> Any:
        """A dimension of a collective, as a number."""
        symbol = op.attribute(name)
        if isinstance(symbol, int):
            return solver().IntVal(symbol)
        dimension = symbol if not isinstance(symbol, str) else solver().Int(symbol)
        self.used_dimensions.append(dimension)
        self.premises.append(dimension >= 0)
        return dimension

    def start(self, op: MatchedOp) -> Callable[[Any, Any], Any]:
        """Where a slice starts, as a function of the device and the dimension."""
        z3 = solver()
        return z3.Function(f"start %{op.variable}", tensors.device_sort(), z3.IntSort(), z3.IntSort())
