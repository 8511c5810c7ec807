"""Calls of a step whose optimizer state is sharded: replicated state is placed first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.xla import private


@dataclass
class StepOfShards:
    """What was compiled for arguments of one kind.

    Attributes:
      lowered: the rewritten lowering.
      compiled: what was compiled from it.
      given: for each leaf of the arguments, the sharding it was lowered for; None where it had none.
    """

    lowered: OptimizedLowered
    compiled: jax.stages.Compiled
    given: tuple[Any, ...]
    _called: bool = False

    def is_new(self) -> bool:
        """Whether this is asked for the first time."""
        new, self._called = not self._called, True
        return new

    def placed(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the arguments, those that hold optimizer state sharded as the step takes them.

        Raises:
          UsageError: an array was donated before; some versions of XLA crash when they read one.
        """
        moved = self.lowered.placed_anew
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, jax.Array) and leaf.is_deleted():
                raise UsageError(f"{self._name(place)} was donated to an earlier call, or deleted",
                                 hint="give what that call returned, or a copy made before it")
        return [leaf if place not in moved or sharding_of(leaf) == moved[place] else jax.device_put(leaf, moved[place])
                for place, leaf in enumerate(leaves)]

    def _name(self, place: int) -> str:
        """The place of a leaf in the arguments."""
        path, _ = jax.tree.flatten_with_path(self.lowered.args_info)[0][place]
        return f"argument {jax.tree_util.keystr(path[1:])}"  # the first key is 0 for positional arguments, 1 for others

    def takes(self, leaves: Sequence[Any]) -> bool:
        """Whether arguments are placed as those it was compiled for, up to optimizer state."""
        moved = self.lowered.placed_anew
        return all(place in moved or sharding_of(leaf) == given
                   for place, (leaf, given) in enumerate(zip(leaves, self.given, strict=True)))


@dataclass
class StepsOfShards:
    """The steps that were compiled for one function, by structure and types of the arguments.

    Args:
      forget: empties what depends on this.
    """

    forget: Callable[[], None]
    _known: dict[Hashable, list[StepOfShards]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        private.clear_with_caches(self)

    def __hash__(self) -> int:
        return id(self)

    def find(self, key: Hashable, leaves: Sequence[Any]) -> StepOfShards | None:
        """The step that takes some arguments; None where none was compiled."""
        return next((step for step in self._known.get(key, []) if step.takes(leaves)), None)

    def keep(self, key: Hashable, lowered: OptimizedLowered, compiled: jax.stages.Compiled,
             leaves: Sequence[Any]) -> StepOfShards:
        """Remembers what was compiled for some arguments."""
        step = StepOfShards(lowered, compiled, tuple(map(sharding_of, leaves)))
        self._known.setdefault(key, []).append(step)
        return step

    def cache_clear(self) -> None:
        """Forgets everything; JAX calls it."""
        self._known.clear()
        self.forget()

    def cache_info(self) -> str:
        """How many steps are known; what JAX asks caches for."""
        return f"{sum(map(len, self._known.values()))} steps"

    def cache_keys(self) -> list[Any]:
        """The structures and types of arguments."""
        return list(self._known)


def kind_of_arguments(tree: Any, leaves: Sequence[Any], static: Hashable) -> Hashable:
    """What arguments have to share so that one compiled step may take them, shardings left out."""
    types = tuple((jax.numpy.shape(leaf), str(jax.numpy.result_type(leaf)), bool(getattr(leaf, "weak_type", False)))
                  for leaf in leaves)
    return tree, types, static


def sharding_of(leaf: Any) -> Any:
    """The sharding that a leaf brings along; None for values of the host, and arrays that JAX may move."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.sharding
    return leaf.sharding if isinstance(leaf, jax.Array) and leaf.committed else None
