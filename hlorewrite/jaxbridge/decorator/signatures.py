"""What was compiled for each signature of one optimized function; ``jax.clear_caches()`` empties it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from hlorewrite.jaxbridge.xla import private


class Signatures:
    """Lowerings of the original function, and what was compiled for them after rewriting.

    JAX returns the same lowering for the same signature, so its identity is the key; it is held, so that no other can
    take its address.

    Args:
      forget: empties what depends on this.
    """

    def __init__(self, forget: Callable[[], None]) -> None:
        self._forget = forget
        self._compiled: dict[int, tuple[Any, jax.stages.Compiled]] = {}
        private.clear_with_caches(self)

    def __len__(self) -> int:
        return len(self._compiled)

    def find(self, lowering: Any) -> jax.stages.Compiled | None:
        """What was compiled for a lowering; None for a new one."""
        known = self._compiled.get(id(lowering))
        return None if known is None else known[1]

    def keep(self, lowering: Any, compiled: jax.stages.Compiled) -> None:
        """Remembers what was compiled for a lowering."""
        self._compiled[id(lowering)] = lowering, compiled

    def cache_clear(self) -> None:
        """Forgets everything; JAX calls it."""
        self._compiled.clear()
        self._forget()

    def cache_info(self) -> str:
        """How many signatures are known; what JAX asks caches for."""
        return f"{len(self)} signatures"

    def cache_keys(self) -> list[Any]:
        """The lowerings."""
        return [lowering for lowering, _ in self._compiled.values()]
