"""What a block takes whose kernels and transfers are not scheduled yet."""

from __future__ import annotations

import pytest

from hlorewrite.timeline.stream_tasks import StreamTask, block_time


def kernel(seconds: float, *after: int) -> StreamTask:
    """A kernel."""
    return StreamTask(seconds, after)


def transfer(seconds: float, *after: int) -> StreamTask:
    """A transfer."""
    return StreamTask(seconds, after, transfer=True)


@pytest.mark.parametrize(("tasks", "seconds", "waited"), [
    ([], 0.0, {}),
    ([kernel(2.0), transfer(3.0, 0), kernel(4.0)], 6.0, {}),
    ([kernel(2.0), transfer(3.0, 0), kernel(1.0, 1)], 6.0, {1: 3.0}),
    ([kernel(4.0), kernel(2.0), transfer(3.0, 1)], 6.0, {}),
    ([transfer(1.0), transfer(1.0), kernel(3.0, 0), kernel(1.0, 1)], 5.0, {0: 1.0}),
    ([kernel(1.0), StreamTask(0.0, (0,)), transfer(2.0, 1), StreamTask(0.0, (2,)), kernel(1.0, 3)], 4.0, {2: 2.0}),
    ([kernel(1.0), transfer(2.0, 0, 0)], 3.0, {1: 2.0}),
], ids=["nothing", "hidden", "read at once", "what is sent comes first", "one at a time", "through what takes no time",
        "read twice"])
def test_block(tasks: list[StreamTask], seconds: float, waited: dict[int, float]) -> None:
    done = block_time(tasks, 0.0)
    assert (done.seconds, done.waited) == (seconds, waited)


def test_compute_is_slower_next_to_a_transfer() -> None:
    assert block_time([transfer(2.0), kernel(2.0)], 0.5).seconds == pytest.approx(2.0 + 2.0 / 3)


def test_many_tasks_end() -> None:
    chain = [StreamTask(0.0, (number - 1,) if number else ()) for number in range(100_000)]
    assert block_time([*chain, kernel(1.0, len(chain) - 1)], 0.0).seconds == 1.0
