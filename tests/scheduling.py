"""How tests are given to workers: in groups, and a test that ends its worker fails alone."""

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
