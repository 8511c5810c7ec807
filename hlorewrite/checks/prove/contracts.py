"""Contracts of natives: the premises that a rule's conditions give to its proof.

A contract is trusted, and stated here in full. Tests compare those that compute groups and pairs with their functions
over all small cases. A native without a contract gives no premise, so a rule is proved without it or not at all.
"""

from collections.abc import Callable
from typing import Any, Protocol

from hlorewrite.checks.prove import tensors
from hlorewrite.checks.prove.proof_obligation import MatchedOp
from hlorewrite.checks.prove.solver import solver
from hlorewrite.checks.prove.tensors import Cell, DeviceGroups, DeviceTensor


class RuleObligation(Protocol):
    """The interface between contracts and a rule: what they ask of it, and add to it
    (``proof_obligation.ProofObligation``).
    """

    premises: list[Any]
    granted: set[str]
    shards: list[Callable[[Any], Any]]
    keepers: dict[DeviceGroups, Callable[[Any], Any]]

    def tensor(self, name: str) -> DeviceTensor: ...
    def define(self, name: str, tensor: DeviceTensor) -> None: ...
    def unify(self, *names: str) -> None: ...
    def sizes(self, name: str) -> Any: ...
    def start(self, op: MatchedOp) -> Callable[[Any, Any], Any]: ...
    def groups(self, op: MatchedOp) -> DeviceGroups: ...
    def groups_like(self, groups: DeviceGroups, op: MatchedOp) -> str: ...
    def pairs(self, op: MatchedOp) -> tensors.Pairs: ...
    def pairs_like(self, pairs: tensors.Pairs, op: MatchedOp) -> str: ...
    def same_pairs(self, first: MatchedOp, second: MatchedOp) -> None: ...
    def unify_kinds(self, first: MatchedOp, second: MatchedOp) -> None: ...
    def dimension(self, op: MatchedOp, name: str) -> Any: ...
    def dimensions(self, op: MatchedOp) -> tuple[str, ...]: ...


EXEMPT = {
    "one_use": "says what pays", "unused": "an op that is read is not erased", "only_used_by": "says what pays",
    "same_block": "is about control flow", "before": "is about control flow: values are defined before they are read",
    "holds_number": "a value that `splat` cannot make is not rewritten", "bytes": "says what pays",
    "reassociates": "is the user's permission",
}
"""Natives that say nothing about values; leaving one out of a rule leaves its equation proved."""


def _devices(names: str) -> Any:
    return solver().Consts(names, tensors.device_sort())


def same_members(a: DeviceGroups, b: DeviceGroups) -> list[Any]:
    """The same partition, whatever the order of members."""
    z3 = solver()
    d, e = _devices("d e")
    return [a.n == b.n, z3.ForAll([d, e], a.together(d, e) == b.together(d, e),
                                  patterns=[z3.MultiPattern(a.grp(d), a.grp(e)), z3.MultiPattern(b.grp(d), b.grp(e))])]


def same_places(a: DeviceGroups, b: DeviceGroups) -> list[Any]:
    """The same partition with the members in the same order."""
    z3 = solver()
    (d, _), i = _devices("d e"), z3.Int("i")
    member = a.mem(a.grp(d), i) == b.mem(b.grp(d), i)
    return [*same_members(a, b), z3.ForAll([d], a.pos(d) == b.pos(d), patterns=[a.pos(d)]),
            z3.ForAll([d, i], member, patterns=[a.mem(a.grp(d), i)]),
            z3.ForAll([d, i], member, patterns=[b.mem(b.grp(d), i)])]


def _same_groups(scene: RuleObligation, first: MatchedOp, second: MatchedOp) -> None:
    scene.premises += same_members(scene.groups(first), scene.groups(second))


def _same_shards(scene: RuleObligation, first: MatchedOp, second: MatchedOp) -> None:
    scene.premises += same_places(scene.groups(first), scene.groups(second))


def _alone(scene: RuleObligation, op: MatchedOp) -> None:
    groups = scene.groups(op)
    scene.granted.add("alone")
    d, e = _devices("d e")
    scene.premises += [groups.n == 1, solver().ForAll([d, e], solver().Implies(groups.together(d, e), d == e))]


def _same_collective(scene: RuleObligation, first: MatchedOp, second: MatchedOp) -> None:
    if first.name != second.name:
        scene.premises.append(solver().BoolVal(False))
        return
    scene.unify_kinds(first, second)
    for name in scene.dimensions(first):
        scene.premises.append(scene.dimension(first, name) == scene.dimension(second, name))
    if first.name.endswith("collective_permute"):
        scene.same_pairs(first, second)
    else:
        _same_shards(scene, first, second)


def _identity_permute(scene: RuleObligation, op: MatchedOp) -> None:
    pairs, (d, _) = scene.pairs(op), _devices("d e")
    scene.premises.append(solver().ForAll([d], solver().And(pairs.receives(d), pairs.source(d) == d)))


def _uniform_over(scene: RuleObligation, value: Any, op: MatchedOp) -> None:
    z3, groups, tensor = solver(), scene.groups(op), scene.tensor(value)
    (d, e), i = _devices("d e"), z3.Const("i", tensors.index_sort())
    here, there = tensor.at(d, i), tensor.at(e, i)
    scene.granted.add("uniform")
    if isinstance(here, Cell) and isinstance(there, Cell):
        scene.premises.append(z3.ForAll([d, e, i], z3.Implies(groups.together(d, e), here.value == there.value)))


def size_of(groups: DeviceGroups) -> str:
    """The symbol for the number of members of a group."""
    return f"members of {groups.name}"


def _group_size(scene: RuleObligation, op: MatchedOp) -> tuple[Any, ...]:
    return (size_of(scene.groups(op)),)


def _composed_groups(scene: RuleObligation, inner: MatchedOp, outer: MatchedOp) -> tuple[Any, ...]:
    """c is in K(d) exactly when c is in inner(e) for one e of outer(d), and for no two of them."""
    z3 = solver()
    g, h, both = scene.groups(inner), scene.groups(outer), DeviceGroups(f"of {inner.variable} and {outer.variable}")
    c, d, e, f = _devices("c d e f")
    through = z3.Function(f"through {both.name}", tensors.device_sort(), tensors.device_sort(), tensors.device_sort())
    reached = z3.And(h.together(d, through(d, c)), g.together(through(d, c), c))
    once = z3.And(h.together(d, e), h.together(d, f), g.together(e, c), g.together(f, c))
    scene.premises += [
        *both.axioms,
        z3.ForAll([c, d], z3.Implies(both.together(d, c), reached),
                  patterns=[z3.MultiPattern(both.grp(d), both.grp(c))]),
        z3.ForAll([c, d, e], z3.Implies(z3.And(h.together(d, e), g.together(e, c)), both.together(d, c)),
                  patterns=[z3.MultiPattern(h.grp(d), h.grp(e), g.grp(e), g.grp(c))]),
        z3.ForAll([c, d, e, f], z3.Implies(once, e == f),
                  patterns=[z3.MultiPattern(h.grp(d), h.grp(e), h.grp(f), g.grp(e), g.grp(f), g.grp(c))])]
    return (scene.groups_like(both, outer),)


def _cut_along(scene: RuleObligation, piece: MatchedOp, dimension: Any, shard: Callable[[Any], Any], n: Any
               ) -> list[Any]:
    """A piece that is one of n equal shards along a dimension; it starts at that shard's place, and at 0 elsewhere."""
    z3 = solver()
    sizes, cut, (d, _), k = scene.sizes(piece.operands[0]), scene.sizes(piece.variable), _devices("d e"), z3.Int("k")
    start = scene.start(piece)(d, k)
    scene.shards.append(shard)
    moved = tensors.clamped(start, sizes[k] - cut[k]) == z3.If(k == dimension, shard(d) * cut[dimension], 0)
    return [cut[dimension] >= 1, cut[dimension] * n == sizes[dimension], z3.ForAll([d, k], moved, patterns=[start]),
            z3.ForAll([k], z3.Implies(k != dimension, cut[k] == sizes[k]), patterns=[cut[k]])]


def _own_shard(scene: RuleObligation, reduction: MatchedOp, piece: MatchedOp) -> tuple[Any, ...]:
    """The piece is one shard along one dimension, and the member at place i of the new groups reads shard i."""
    dimension, new = solver().Int(f"dimension {piece.variable}"), DeviceGroups(f"shards {piece.variable}")
    scene.premises += [*new.axioms, *same_members(new, scene.groups(reduction)),
                       *_cut_along(scene, piece, dimension, new.pos, new.n)]
    return dimension, scene.groups_like(new, reduction)


def _shard_pairs(scene: RuleObligation, gather: MatchedOp, piece: MatchedOp) -> tuple[Any, ...]:
    """Each device reads the shard of one member, which sends it to that device."""
    z3 = solver()
    groups, pairs, (d, _) = scene.groups(gather), tensors.Pairs(f"shards {piece.variable}"), _devices("d e")
    shard = z3.Function(f"shard {piece.variable}", tensors.device_sort(), z3.IntSort())
    sent = z3.And(shard(d) >= 0, shard(d) < groups.n, pairs.receives(d),
                  pairs.source(d) == groups.member(d, shard(d)))
    scene.premises += [*_cut_along(scene, piece, scene.dimension(gather, "all_gather_dim"), shard, groups.n),
                       z3.ForAll([d], sent, patterns=[pairs.receives(d)])]
    return (scene.pairs_like(pairs, gather),)


def _composed_pairs(scene: RuleObligation, inner: MatchedOp, outer: MatchedOp) -> tuple[Any, ...]:
    z3 = solver()
    p, q, both = scene.pairs(inner), scene.pairs(outer), tensors.Pairs(f"of {inner.variable} and {outer.variable}")
    d, _ = _devices("d e")
    scene.premises.append(z3.ForAll([d], z3.And(
        both.receives(d) == z3.And(q.receives(d), p.receives(q.source(d))), both.source(d) == p.source(q.source(d)))))
    return (scene.pairs_like(both, outer),)


def _kept_by_one(scene: RuleObligation, choice: MatchedOp, collective: MatchedOp) -> tuple[Any, ...]:
    """Each group has one keeper; the select is the answered value there, and zero on all other devices."""
    z3, groups, name = solver(), scene.groups(collective), f"what {choice.variable} keeps"
    kept, sort = scene.tensor(name), groups.grp.range()
    keeper, g = z3.Function(f"keeper {groups.name}", sort, tensors.device_sort()), z3.Const("g", sort)
    scene.keepers[groups] = lambda d: keeper(groups.grp(d))
    scene.unify(choice.variable, name)
    scene.premises.append(z3.ForAll([g], groups.grp(keeper(g)) == g, patterns=[keeper(g)]))
    scene.define(choice.variable, DeviceTensor(kept.type, kept.sizes, lambda d, i: tensors.Chosen(
        d == keeper(groups.grp(d)), kept.at(d, i), tensors.Number("zero", kept.type))))
    return (name,)


def _splat(scene: RuleObligation, like: Any, number: Any) -> tuple[Any, ...]:
    symbol = "zero" if getattr(number, "value", None) == 0 else number
    return (("splat", symbol, getattr(like, "variable", like)),)


def _holds_number(scene: RuleObligation, value: Any, number: Any) -> None:
    """The elements hold the number: integers modulo 2^w. `splat` makes that number."""


CONTRACTS: dict[str, Callable[..., Any]] = {
    "same_groups": _same_groups, "same_shards": _same_shards, "alone": _alone, "same_collective": _same_collective,
    "identity_permute": _identity_permute, "uniform_over": _uniform_over, "group_size": _group_size,
    "composed_groups": _composed_groups, "own_shard": _own_shard, "shard_pairs": _shard_pairs,
    "composed_pairs": _composed_pairs, "kept_by_one": _kept_by_one, "splat": _splat, "holds_number": _holds_number,
}
