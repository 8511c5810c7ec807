"""Processes agree on what they are about to run, before a collective could hang.

Every process writes a digest to the key-value store of JAX's distributed runtime and reads those of its peers,
with a time limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import jax

from hlorewrite.errors import PlanError
from hlorewrite.jaxbridge.xla.private import distributed_client


def agree(topic: str, digest: str, processes: Iterable[int], timeout_s: float,
          roles: Mapping[int, str] | None = None) -> None:
    """Returns when all processes have come with the same digest.

    Args:
      topic: what is agreed on; a word.
      digest: what each process must have alike.
      processes: the process numbers that take part.
      timeout_s: how long to wait for each peer.
      roles: what a process does, where errors should say it: ``stage 1``.

    Raises:
      PlanError: a peer has another digest, or did not come in time; the message names it.
    """
    members = sorted(set(processes))
    if len(members) < 2:
        return
    client = distributed_client()
    if client is None:
        raise PlanError("devices of several processes, and no distributed runtime",
                        hint="call jax.distributed.initialize first")
    own = jax.process_index()
    names = {peer: f"process {peer}" + (f" ({roles[peer]})" if roles else "") for peer in members}
    room = f"hlorewrite/{topic}/{'-'.join(map(str, members))}"
    # The store counts the calls of each process, so that the n-th call of one meets the n-th of the others.
    turn = client.key_value_increment(f"{room}/turn/{own}", 1)
    client.key_value_set(f"{room}/{turn}/{own}", digest)
    for peer in (member for member in members if member != own):
        try:
            theirs = client.blocking_key_value_get(f"{room}/{turn}/{peer}", round(timeout_s * 1000))
        except jax.errors.JaxRuntimeError as error:
            client.key_value_delete(f"{room}/{turn}/{own}")  # so that a peer who comes late does not start alone
            raise PlanError(f"{names[peer]} did not join the {topic} within {timeout_s:g} s",
                            hint="check that it runs and makes the same call") from error
        if theirs != digest:
            raise PlanError(f"{names[peer]} has another view of the {topic} than {names[own]}",
                            hint="give every process the same program, shapes, shardings, options and versions")
    if turn > 1:  # a process that reached this round has read all of the last one
        client.key_value_delete(f"{room}/{turn - 1}/{own}")
