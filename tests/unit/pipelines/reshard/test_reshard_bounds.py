"""The lower bound of broadcasts in blocks, beside an exhaustive search for the fastest plan."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reshard_helpers import plan_of

from hlorewrite.pipelines.reshard.bounds import _average_end, lower_bound
from hlorewrite.pipelines.reshard.jobs import bundled_jobs
from hlorewrite.pipelines.reshard.messages import staggered
from hlorewrite.pipelines.reshard.transfers import transfers

UNIT = 1 << 20

Sent = tuple[int, int, int, int]
"""Sender, receiver, units as bits, seconds left."""

State = tuple[tuple[int, ...], tuple[Sent, ...]]
"""What each host has, and what is under way."""


@pytest.mark.parametrize(("holders", "hosts", "units", "overhead"), [
    (1, 2, 1, 1), (1, 2, 3, 1), (1, 2, 4, 1), (1, 2, 4, 2), (1, 2, 5, 1), (1, 3, 1, 1), (1, 3, 2, 1), (1, 3, 3, 1),
    (2, 2, 2, 1), (2, 2, 3, 1), (2, 3, 2, 1), (2, 4, 2, 1)])
def test_no_plan_of_messages_of_any_sizes_is_faster(holders: int, hosts: int, units: int, overhead: int) -> None:
    """Hosts of one port send some units to hosts of one port; a message of s units takes s + overhead."""
    bound, best = _bound(holders, hosts, units, overhead), _fastest(holders, hosts, units, overhead)
    assert bound <= best + 1e-9
    assert holders > 1 or best - 1.5 < bound


@settings(max_examples=200)
@given(st.integers(1, 8), st.floats(0.1, 30.0), st.floats(0.1, 30.0), st.floats(0.01, 3.0),
       st.randoms(use_true_random=False))
def test_no_messages_are_passed_on_sooner(ports: int, seconds: float, further: float, overhead: float,
                                          random: Random) -> None:
    """Messages of random sizes, by ports that need not have equal bytes; and those that the planner chooses."""
    weights = [[random.uniform(0.01, 1.0) for _ in range(random.randint(1, 6))] for _ in range(ports)]
    scale = seconds * ports / sum(map(sum, weights))
    lanes = [[weight * scale for weight in each] for each in weights]
    bound = _average_end(seconds, further, overhead)
    assert bound <= _passed_on(lanes, further, overhead) + 1e-9
    found = staggered(seconds, further, 0.0, overhead, ports)
    chosen = [[each.part * seconds for each in found if each.port == port] for port in range(ports)]
    assert bound <= _passed_on(chosen, further, overhead) + 1e-9


def _passed_on(lanes: list[list[float]], further: float, overhead: float) -> float:
    """When all copies are made: all bytes of all ports take ``further`` seconds, each message from its end."""
    ends = [(sum(each[:i + 1]) + (i + 1) * overhead, seconds) for each in lanes for i, seconds in enumerate(each)]
    total, at = sum(map(sum, lanes)), 0.0
    for end, seconds in sorted(ends):
        at = max(at, end) + further * seconds / total
    return at


@pytest.mark.parametrize(("seconds", "further", "ports"), [(84, 79, 8), (671, 633, 8), (84, 90, 4)])
def test_the_bound_is_close_to_staggered_messages(seconds: float, further: float, ports: int, overhead: float = 6.0
                                                  ) -> None:
    """And these are better than equal messages, however many."""
    found = staggered(seconds, further, 0.0, overhead, ports)
    best = _passed_on([[each.part * seconds for each in found if each.port == port] for port in range(ports)], further,
                      overhead)
    assert best < 1.06 * _average_end(seconds, further, overhead)
    assert all(best < _passed_on([[seconds / count] * count] * ports, further, overhead) for count in range(1, 40))


def _bound(holders: int, hosts: int, units: int, overhead: int) -> float:
    """The bound where a unit takes a second."""
    plan = plan_of(f"{holders}x1", f"{hosts}x1", (units * UNIT,), "-", "-", "broadcast")
    network = replace(plan.network, bytes_per_s=4.0 * UNIT, chunk_overhead_s=float(overhead), latency_s=0.0)
    return lower_bound(bundled_jobs(transfers(plan.tasks, 4, network, "broadcast"), network), network)


def _fastest(holders: int, hosts: int, units: int, overhead: int) -> int:
    """Seconds of the fastest plan: a search over what each host has, and the messages that are under way."""
    everything = (1 << units) - 1
    queue: list[tuple[int, State]] = [(0, ((*[everything] * holders, *[0] * hosts), ()))]
    seen: set[State] = set()
    # Ends: each state is looked at once, and each has a next one until all hosts have everything.
    while True:
        at, state = heapq.heappop(queue)
        if min(state[0]) == everything:
            return at
        if state in seen:
            continue
        seen.add(state)
        for under_way in _choices(*state, overhead):
            heapq.heappush(queue, _next(at, state[0], under_way))


def _next(at: int, have: tuple[int, ...], under_way: list[Sent]) -> tuple[int, State]:
    """The state when the next message has arrived."""
    step = min(left for *_, left in under_way)
    after = list(have)
    for _, receiver, part, left in under_way:
        after[receiver] |= part if left == step else 0
    return at + step, (tuple(after), tuple(sorted((*way, left - step) for *way, left in under_way if left > step)))


def _choices(have: tuple[int, ...], sent: tuple[Sent, ...], overhead: int) -> Iterator[list[Sent]]:
    """What can be under way from now on: each port sends and receives one message at a time."""
    sending, receiving = {sender for sender, *_ in sent}, {receiver for _, receiver, *_ in sent}
    options = [[None, *((host, to, part, part.bit_count() + overhead) for to in range(len(have))
                        if to not in receiving for part in _parts(have[host] & ~have[to]))]
               for host in range(len(have)) if host not in sending]
    for chosen in itertools.product(*options):
        begun = [each for each in chosen if each]
        if len({to for _, to, *_ in begun}) == len(begun) and (begun or sent):
            yield [*sent, *begun]


def _parts(mask: int) -> Iterator[int]:
    """All that a message can carry of some units, nothing left out."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask
