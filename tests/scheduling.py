"""How tests are given to workers: in groups, and a test that ends its worker fails alone; and what workers report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdist.scheduler import LoadScopeScheduling


class GroupScheduling(LoadScopeScheduling):
    """Gives each group of tests to one worker.

    Args:
      config: of the run.
      log: where xdist writes what it does.
      group_of: the name of a test's group.
    """

    def __init__(self, config: Any, log: Any, group_of: Callable[[str], str]) -> None:
        super().__init__(config, log)
        self.group_of = group_of

    def _split_scope(self, nodeid: str) -> str:
        return self.group_of(nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forgets a group that is done, which xdist counts anew after each test."""
        group = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]

    def remove_node(self, node: Any) -> str | None:
        """Takes a worker away that has ended or crashed.

        xdist gives the test that crashed to the next worker, which crashes too, and a group that is done is sent to a
        worker as an empty one, for which it waits for ever. Here only the tests after it are given on.

        Returns:
          The test that crashed; None when the worker had nothing left to do.
        """
        groups = self.assigned_work.pop(node)
        pending = [test for group in groups.values() for test, done in group.items() if not done]
        if not pending:
            return None
        crashed = pending[0]
        for name, group in groups.items():
            left = {test: done for test, done in group.items() if test != crashed}
            if not all(left.values()):
                self.workqueue[name] = left
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed


def report_less(config: Any) -> None:
    """Has a worker leave out what no summary shows: that a test starts, that its fixtures passed, and its keywords.

    Two messages of a test and half of a third are left out, whose writing and reading take a millisecond and a half.
    """
    plugins = config.pluginmanager.get_plugins()
    worker = next((each for each in plugins if type(each).__name__ == "WorkerInteractor"), None)
    if worker is None:  # another xdist
        return
    send = worker.sendevent

    def send_less(name: str, **content: Any) -> None:
        report = content.get("data", {}) if name == "testreport" else {}
        passed = report.get("outcome") == "passed" and report["when"] != "call"
        if name != "logstart" and (not passed or config.option.durations):
            send(name, **content | ({"data": report | {"keywords": {}}} if report else {}))
    worker.sendevent = send_less
