"""Calls of the key-value store of ``jax.distributed``: keys written once, and a time limit for each call.

Process 0 serves the store. While it is stopped (SIGSTOP, a debugger, a host that hangs) its connections stay open, and
a call that takes no time limit, such as ``key_value_set`` and ``key_value_dir_get``, does not return.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

Answer = TypeVar("Answer")
TIMEOUT_S = 300.0
"""The default time after which processes end because another one is silent or keeps them waiting."""
ANSWER_S = 3.0
"""How long a call may take before it counts as failed."""


def within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """The result of a call that may block in C++.

    Args:
      seconds: how long to wait for it. A call that takes longer continues in a daemon thread.
      call: the call.

    Returns:
      What the call returns.

    Raises:
      TimeoutError: it did not return in time.
      Exception: what the call raised.

    Example:
      >>> within(1.0, lambda: 3)
      3
    """
    made: list[Answer] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            made.append(call())
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="hlorewrite-store", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not made:
        raise TimeoutError(f"process 0 did not answer within {seconds:g} s")
    return made[0]


def write_once(store: Any, key: str, text: str) -> None:
    """Writes a key unless it is there.

    Raises:
      Exception: the store cannot be reached; its type differs between versions of jaxlib.
    """
    try:
        within(ANSWER_S, lambda: store.key_value_set(key, text))
    except Exception as error:
        if "ALREADY_EXISTS" not in str(error):
            raise


def read_key(store: Any, key: str, timeout_ms: int) -> str | None:
    """What a key holds; None when it is not written in time.

    Raises:
      Exception: the store cannot be reached; its type differs between versions of jaxlib.
    """
    try:
        return store.blocking_key_value_get(key, timeout_ms)
    except Exception as error:
        if "DEADLINE_EXCEEDED" not in str(error) and "NOT_FOUND" not in str(error):
            raise
        return None


def delete_keys(store: Any, *keys: str) -> None:
    """Deletes keys; what cannot be deleted stays, and costs its bytes."""
    for key in keys:
        with suppress(Exception):
            within(ANSWER_S, lambda key=key: store.key_value_delete(key))
