"""Sets that share what is equal: the operations of Python's sets, and little memory for chains."""

from __future__ import annotations

import random

import pytest

from hlorewrite.util.hash_consed_sets import NONE, NumberRange, NumberSet, meet, union, within, without


@pytest.mark.parametrize("count", [1, 100, 2048, 2049, 9000])
def test_they_do_what_sets_do(count: int) -> None:
    """Against Python's own, for sets of few numbers, of many and of all."""
    random_, numbers = random.Random(count), NumberRange(count)
    for _ in range(40):
        one, other = ({random_.randrange(count) for _ in range(random_.choice((0, 1, 5, count // 2)))}
                      | set(range(random_.choice((0, 0, count)))) for _ in range(2))
        a, b = numbers.of(one), numbers.of(other)
        assert meet(a, b) == bool(one & other)
        assert within(a, b) == (one <= other) and within(a, union(a, b)) and within(b, union(a, b))
        both, rest = union(a, b), without(a, b)
        for number in (0, count - 1, *(random_.randrange(count) for _ in range(20))):
            alone = numbers.single(number)
            assert meet(both, alone) == (number in one | other) and meet(rest, alone) == (number in one - other)
        assert (rest == NONE) == (one <= other) and without(both, both) == NONE


def test_the_sets_of_a_chain_share_their_parts() -> None:
    """Each of 20 000 sets holds one number more than the one before it: n log n nodes, not n²."""
    count = 20_000
    numbers, held, chain = NumberRange(count), NONE, []
    for number in range(count):
        held = union(held, numbers.single(number))
        chain.append(held)
    seen: dict[int, NumberSet] = {}
    pending = list(chain)
    while pending:  # Ends: a node is added once.
        node = pending.pop()
        if id(node) not in seen and isinstance(node, tuple):
            seen[id(node)] = node
            pending += node
    assert len(seen) < 6 * count
    assert within(chain[5000], chain[12_000]) and not within(chain[12_000], chain[5000])
