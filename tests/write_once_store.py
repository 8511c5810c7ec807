"""A key-value store as that of ``jax.distributed``, for threads."""

from __future__ import annotations

import threading


class WriteOnceStore:
    """A key-value store with the interface and the errors of ``jax.distributed``'s."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._changed = threading.Condition()

    def key_value_set(self, key: str, value: str) -> None:
        """As the runtime's."""
        with self._changed:
            if key in self.values:
                raise RuntimeError(f"ALREADY_EXISTS: key {key}")
            self.values[key] = value
            self._changed.notify_all()

    def blocking_key_value_get(self, key: str, timeout_ms: int) -> str:
        """As the runtime's."""
        with self._changed:
            if not self._changed.wait_for(lambda: key in self.values, timeout_ms / 1000):
                raise RuntimeError(f"DEADLINE_EXCEEDED: key {key}")
            return self.values[key]

    def key_value_delete(self, key: str) -> None:
        """As the runtime's."""
        with self._changed:
            self.values.pop(key, None)
