"""Random JAX steps that call back to the host: callbacks for their effect, and for a value."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from generators.structure.random_jax import Fn, JaxStepWriter, random_step
from jax import lax
from jax.experimental import io_callback

_AXES = ("d", "m")


class HostLog:
    """What devices said, in no order: callbacks of eight devices run at the same time.

    Attributes:
      said: number of the callback, of the device, and a value.
    """

    def __init__(self) -> None:
        self.said: list[tuple[int, int, float]] = []
        self._lock = threading.Lock()

    def note(self, tag: Any, device: Any, value: Any) -> None:
        """Keeps one call."""
        with self._lock:
            self.said.append((int(tag), int(device), float(np.sum(value))))

    def answer(self, tag: Any, device: Any, value: Any) -> Any:
        """Keeps one call, and computes something that differs between devices."""
        self.note(tag, device, value)
        return _of_device(device, value)

    def of(self, run: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, list[tuple[int, int, float]]]:
        """The result of a call, and what was said meanwhile, sorted."""
        self.said = []
        result = jax.block_until_ready(run(*arguments))
        jax.effects_barrier()
        return result, sorted(self.said)


def _of_device(device: Any, value: Any) -> Any:
    return (np.asarray(value) * 0.5 + 0.1 * int(device)).astype(np.float32)


class CallingStepWriter(JaxStepWriter):
    """Steps a quarter of whose parts call back.

    Args:
      rng: decides.
      log: what they call.
    """

    def __init__(self, rng: random.Random, log: HostLog) -> None:
        super().__init__(rng)
        self.log = log
        self._tag = 0

    def _part(self, depth: int) -> Fn:
        return self._calling() if self.rng.random() < 0.25 else super()._part(depth)

    def _calling(self) -> Fn:
        self._tag += 1
        tag, axis, note, answer = self._tag, self.axis(), self.log.note, self.log.answer

        def local(x: Any, w: Any) -> Any:
            jax.debug.callback(note, tag, lax.axis_index(_AXES), x)
            return x

        def reduced(x: Any, w: Any) -> Any:
            jax.debug.callback(note, tag, lax.axis_index(_AXES), lax.psum(lax.stop_gradient(x), axis))
            return x + 0.1

        def answered(x: Any, w: Any) -> Any:
            like = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return x + lax.stop_gradient(io_callback(answer, like, tag, lax.axis_index(_AXES), lax.stop_gradient(x)))

        def pure(x: Any, w: Any) -> Any:
            like = jax.ShapeDtypeStruct(x.shape, x.dtype)
            made = jax.pure_callback(_of_device, like, lax.axis_index(_AXES), lax.stop_gradient(x),
                                     vmap_method="sequential")
            return lax.psum(x * 0.1, axis) + lax.stop_gradient(made)
        return self.rng.choice((local, reduced, answered, pure))


def random_calling_step(rng: random.Random, log: HostLog) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step that calls back, and what it is called with.

    Args:
      rng: decides.
      log: what it calls.
    """
    return random_step(rng, lambda rng: CallingStepWriter(rng, log))
