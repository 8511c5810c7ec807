"""Checks that a step's donated arguments are separate buffers. Otherwise XLA would overwrite a buffer that is still
read.
"""

import weakref
from collections.abc import Sequence
from typing import Any

import jax

from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.xla import private

_HINT = "copy one of them with jnp.copy, or do not donate them"


class DonationCheck:
    """Refuses arguments that share a buffer if one of them is donated, as ``jax.jit`` does.

    Results of a step, and copies from the host, have separate buffers. While a loop passes on only these, comparing
    identities is enough. Any other array has to be asked for its buffer's address, which waits until the array is
    ready.

    Args:
      donated: positions of the donated arguments.
      name: the name of the program.
    """

    def __init__(self, donated: frozenset[int], name: str) -> None:
        self._donated, self._name = donated, name
        self._made: dict[int, weakref.ref] = {}

    def check(self, arguments: Sequence[jax.Array | None]) -> None:
        """Refuses a call whose donated arguments are deleted or share a buffer.

        Args:
          arguments: placed arrays; None for those of other processes.

        Raises:
          UsageError: two are one array, or share a buffer, or one is deleted.
        """
        if not self._donated:
            return
        given = [(position, value) for position, value in enumerate(arguments) if value is not None]
        if len({id(value) for _, value in given}) < len(given):
            self._refuse_shared([(id(value), position) for position, value in given])
        if all(self._is_made(value) for _, value in given):
            return
        places: list[tuple[int, int]] = []
        for position, value in given:
            if value.is_deleted():
                raise UsageError(f"argument {position} was donated to an earlier step (donate_argnums)",
                                 location=self._name, hint="pass the results of that step")
            if value.size:
                places += [(part.unsafe_buffer_pointer(), position) for part in private.single_device_arrays(value)]
        if len({place for place, _ in places}) < len(places):
            self._refuse_shared(places)

    def made(self, results: Sequence[jax.Array | None]) -> None:
        """Notes what a call returned, in place of what was noted before.

        Args:
          results: arrays with separate buffers.
        """
        self._made = {id(value): weakref.ref(value) for value in results if value is not None}

    def placed(self, values: Sequence[Any], arrays: Sequence[jax.Array | None]) -> None:
        """Notes arrays that were made to place values.

        Args:
          values: what was placed.
          arrays: the array to use for each: the original, or a copy in separate buffers.
        """
        self._made |= {id(array): weakref.ref(array) for value, array in zip(values, arrays, strict=True)
                       if array is not None and array is not value}

    def _is_made(self, value: jax.Array) -> bool:
        known = self._made.get(id(value))
        return known is not None and known() is value and not value.is_deleted()

    def _refuse_shared(self, places: Sequence[tuple[int, int]]) -> None:
        """Raises if a donated argument shares a place with another argument."""
        first: dict[int, int] = {}
        for place, position in places:
            other = first.setdefault(place, position)
            if other != position and not self._donated.isdisjoint((other, position)):
                raise UsageError(f"arguments {other} and {position} share one buffer, which is donated "
                                 "(donate_argnums)", location=self._name, hint=_HINT)
