"""A test that ends its worker fails alone, and what is left of its group goes to another worker."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("xdist")
from scheduling import GroupScheduling, report_less


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


def test_workers_report_what_is_shown() -> None:
    class WorkerInteractor:
        def __init__(self) -> None:
            self.sent: list[Any] = []

        def sendevent(self, name: str, **content: Any) -> None:
            self.sent.append((name, content))

    worker = WorkerInteractor()
    config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugins=lambda: [object(), worker]),
                             option=SimpleNamespace(durations=None))
    report_less(config)
    worker.sendevent("logstart", nodeid="a")
    for when, outcome in (("setup", "passed"), ("call", "passed"), ("teardown", "passed"), ("setup", "skipped"),
                          ("teardown", "failed")):
        worker.sendevent("testreport", data={"when": when, "outcome": outcome, "keywords": {"a": 1}})
    worker.sendevent("logfinish", nodeid="a")
    assert [name for name, _ in worker.sent] == ["testreport"] * 3 + ["logfinish"]
    assert [content["data"] for _, content in worker.sent[:3]] == [
        {"when": when, "outcome": outcome, "keywords": {}}
        for when, outcome in (("call", "passed"), ("setup", "skipped"), ("teardown", "failed"))]
