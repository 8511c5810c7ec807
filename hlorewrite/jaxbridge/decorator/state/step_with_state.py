"""Calls of a step that keeps its state differently from the user's function: other state is converted first."""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.decorator.specialize import OptimizedLowered
from hlorewrite.jaxbridge.decorator.state.new_state import PartialSum, is_partial, parts_of
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import RewriteReport
from hlorewrite.jaxbridge.xla import private
from hlorewrite.passes.partial_state import PartialState
from hlorewrite.passes.shard_update import ShardUpdate


@dataclass
class StepWithState:
    """The compiled step for arguments of one kind.

    Attributes:
      lowered: the rewritten lowering.
      compiled: what was compiled from it.
      given: for each leaf of the arguments, the sharding it was lowered for; None if it had none.
    """

    lowered: OptimizedLowered
    compiled: jax.stages.Compiled
    given: tuple[Any, ...]
    _called: bool = False

    def is_new(self) -> bool:
        """Whether this is the first time that this is asked."""
        new, self._called = not self._called, True
        return new

    def placed(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the arguments as the compiled step takes them, as arrays.

        Raises:
          UsageError: an array was donated before; some versions of XLA crash when they read one.
        """
        for place, leaf in enumerate(leaves):
            held = leaf.parts if is_partial(leaf) else leaf
            if isinstance(held, jax.Array) and held.is_deleted():
                raise UsageError(f"{self._name(place)} was donated to an earlier call, or deleted",
                                 hint="pass the result of that call, or a copy made before it")
        return [self._placed(place, leaf) for place, leaf in enumerate(leaves)]

    def _placed(self, place: int, leaf: Any) -> Any:
        wanted = self.lowered.placed_anew.get(place)
        if wanted is not None and place in self.lowered.local_sums:
            return parts_of(leaf, wanted) if not is_partial(leaf) else leaf.parts if \
                _placed_alike(leaf.parts, wanted) else jax.device_put(leaf.parts, wanted)
        leaf = leaf.whole() if is_partial(leaf) else leaf
        return leaf if wanted is None or _placed_alike(leaf, wanted) else jax.device_put(leaf, wanted)

    def returned(self, outputs: Any) -> Any:
        """The results of a call, with local sums left as they are."""
        return self.given_back(jax.tree.structure(outputs), jax.tree.leaves(outputs), self.lowered.returned_sums)

    def given_back(self, tree: Any, leaves: Sequence[Any], sums: Collection[int] | None = None) -> Any:
        """A tree of arrays in which local sums stay local.

        Args:
          tree: its structure, where each of them is one array.
          leaves: its leaves.
          sums: which leaves they are; by default those of the arguments.
        """
        sums = self.lowered.local_sums if sums is None else sums
        return jax.tree.unflatten(tree, [PartialSum(leaf) if place in sums else leaf
                                         for place, leaf in enumerate(leaves)])

    def _name(self, place: int) -> str:
        """The place of a leaf in the arguments."""
        path, _ = jax.tree.flatten_with_path(self.lowered.args_info)[0][place]
        return f"argument {jax.tree_util.keystr(path[1:])}"  # the first key is 0 for positional arguments, 1 for others

    def takes(self, leaves: Sequence[Any]) -> bool:
        """Whether arguments are placed as those it was compiled for, up to optimizer state."""
        moved = self.lowered.placed_anew
        return all(place in moved or _placed_alike(leaf, given)
                   for place, (leaf, given) in enumerate(zip(leaves, self.given, strict=True)))


@dataclass
class StepsWithState:
    """The steps that were compiled for one function, by structure and types of the arguments.

    Args:
      forget: empties what depends on this.
    """

    forget: Callable[[], None]
    _known: dict[Hashable, list[StepWithState]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        private.clear_with_caches(self)

    def __hash__(self) -> int:
        return id(self)

    def find(self, key: Hashable, leaves: Sequence[Any]) -> StepWithState | None:
        """The step that takes some arguments; None if none was compiled."""
        return next((step for step in self._known.get(key, []) if step.takes(leaves)), None)

    def keep(self, key: Hashable, lowered: OptimizedLowered, compiled: jax.stages.Compiled,
             leaves: Sequence[Any]) -> StepWithState:
        """Remembers what was compiled for some arguments."""
        step = StepWithState(lowered, compiled, tuple(map(sharding_of, leaves)))
        self._known.setdefault(key, []).append(step)
        return step

    def cache_clear(self) -> None:
        """Forgets everything; JAX calls it."""
        self._known.clear()
        self.forget()

    def cache_info(self) -> str:
        """How many steps are known; JAX asks caches for this number."""
        return f"{sum(map(len, self._known.values()))} steps"

    def cache_keys(self) -> list[Any]:
        """The structures and types of arguments."""
        return list(self._known)


def nothing_changed(report: RewriteReport, options: StepOptions) -> list[str]:
    """Why a step keeps its state as it was, in one line; none if any of it changed.

    Args:
      report: the report of the step.
      options: what the user asked for.
    """
    name, axis, stays = (ShardUpdate.name, options.shard_update, "shards no optimizer state over") \
        if options.shard_update else (PartialState.name, options.partial_state, "keeps no local sums over")
    said = [remark for remark in report.remarks if remark.rule == name]
    if report.failure or any(remark.kind == "applied" for remark in said):
        return []
    reasons = [remark.sentence for remark in said]
    more = f" (and {len(reasons) - 1} more reasons in the report)" if len(reasons) > 1 else ""
    return [f'{stays} "{axis}": {reasons[0] if reasons else "it updates none"}{more}']


def kind_of_arguments(tree: Any, leaves: Sequence[Any], static: Hashable) -> Hashable:
    """The properties that arguments must share to use one compiled step, without shardings."""
    types = tuple((jax.numpy.shape(leaf), str(jax.numpy.result_type(leaf)), bool(getattr(leaf, "weak_type", False)))
                  for leaf in leaves)
    return tree, types, static


def _placed_alike(leaf: Any, sharding: Any) -> bool:
    own = sharding_of(leaf)
    if own is None or sharding is None:
        return own is sharding
    return own == sharding or own.is_equivalent_to(sharding, len(leaf.shape))


def sharding_of(leaf: Any) -> Any:
    """The sharding that a leaf brings along; None for values of the host, and arrays that JAX may move."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.sharding
    return leaf.sharding if isinstance(leaf, jax.Array) and leaf.committed else None
