"""A test that ends its worker fails alone, and what is left of its group goes to another worker."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

pytest.importorskip("xdist")
from scheduling import GroupScheduling


@pytest.fixture
def scheduling(monkeypatch: pytest.MonkeyPatch) -> GroupScheduling:
    """Worker ``a`` is in the second of its groups, and nothing waits."""
    made = GroupScheduling.__new__(GroupScheduling)
    made.workqueue = OrderedDict()
    made.assigned_work = {"a": {"one": {"one::x": True}, "two": {"two::x": True, "two::y": False, "two::z": False}}}
    given: list[Any] = []
    monkeypatch.setattr(made, "_reschedule", given.append)
    made.given = given
    return made


def test_what_is_after_the_crashed_test_is_given_on(scheduling: Any) -> None:
    scheduling.assigned_work["b"] = {}
    assert scheduling.remove_node("a") == "two::y"
    assert scheduling.workqueue == {"two": {"two::x": True, "two::z": False}} and scheduling.given == ["b"]


def test_a_group_with_nothing_left_is_not_given_on(scheduling: Any) -> None:
    scheduling.assigned_work["a"]["two"]["two::z"] = True
    assert scheduling.remove_node("a") == "two::y" and scheduling.workqueue == {}


def test_a_worker_that_has_done_its_work_leaves_nothing(scheduling: Any) -> None:
    scheduling.assigned_work["a"] = {"one": {"one::x": True}}
    assert scheduling.remove_node("a") is None and scheduling.workqueue == {}
