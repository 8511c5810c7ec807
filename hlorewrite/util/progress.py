"""Progress of long work, in one line at the foot of a terminal; nothing in a pipe or for short work.

The line is on stderr and is gone when the work is over. rich is imported only when it is shown; where it is not
installed (extra ``terminal``), nothing is shown.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER_S = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


class Step(Protocol):
    """Says what is being done now; this also means that the step before is done.

    Args of a call:
      label: what begins; None keeps what is shown.
      done: how many steps are over; by default one more than at the last call.
    """

    def __call__(self, label: str | None = None, done: int | None = None) -> None: ...


def on_terminal() -> bool:
    """Whether stderr is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def _can_draw() -> bool:
    """Whether rich is installed."""
    return find_spec("rich") is not None


@contextmanager
def progress(what: str, total: int | None = None, *, shown: bool = True, still: bool = False) -> Iterator[Step]:
    """Shows the progress of the body, on a terminal and after half a second.

    Args:
      what: the work as a whole, such as ``compiling for h200:1x8``.
      total: how many steps it has; None when it is not known, which shows the time alone.
      shown: False shows nothing.
      still: draw only when a step begins, so that nothing runs concurrently with what is being measured.

    Yields:
      The function to call when a step begins.

    Example:
      >>> with progress("adding", 2) as step:
      ...     for number in (1, 2):
      ...         step(str(number))
    """
    if not (shown and on_terminal() and _can_draw()):
        yield nothing
        return
    line = _Line(what, total, still)
    try:
        yield line.step
    finally:
        line.close()


def mapped(what: str, items: Sequence[Item], work: Callable[[Item], Result],
           name: Callable[[Item], str] = str) -> Iterator[Result]:
    """The result of work on each item; the line is hidden whenever a result is returned, so that it can be printed.

    Draws nothing while ``work`` runs, which would disturb measurements.

    Args:
      what: the work as a whole.
      items: what to work on.
      work: makes the result for an item.
      name: the name of an item in the line.

    Yields:
      The results, in order.

    Example:
      >>> list(mapped("squaring", [1, 2, 3], lambda number: number * number))
      [1, 4, 9]
    """
    line = _Line(what, len(items), still=True) if on_terminal() and _can_draw() else None
    try:
        for number, item in enumerate(items):
            if line is not None:
                line.step(name(item), number)
            result = work(item)
            if line is not None:
                line.pause()
            yield result
    finally:
        if line is not None:
            line.close()


def nothing(label: str | None = None, done: int | None = None) -> None:
    """A step that is not shown."""


class _Line:
    """The line; it may be asked to close while it is only about to appear."""

    def __init__(self, what: str, total: int | None, still: bool) -> None:
        import threading
        self.what, self.total, self.still = what, total, still
        self._label, self._done, self._begun = "", 0, False
        self._shown: Progress | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(SHOWN_AFTER_S, self._show)
        self._timer.daemon = True
        if not still:
            self._timer.start()

    def step(self, label: str | None = None, done: int | None = None) -> None:
        """See ``Step``."""
        if self.still and self._shown is None:
            self._show()
        with self._lock:
            self._done = done if done is not None else self._done + self._begun
            self._begun = True
            self._label = self._label if label is None else label
            self._draw()

    def pause(self) -> None:
        """Takes the line away until the next step."""
        with self._lock:
            if self._shown is not None:
                self._shown.stop()
                self._shown = None

    def close(self) -> None:
        """Takes the line away for good."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column
        short = Column(no_wrap=True, overflow="ellipsis")
        bar = (BarColumn(bar_width=24), MofNCompleteColumn(table_column=Column(min_width=5))) if self.total else ()
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False, table_column=short), *bar,
                   TimeElapsedColumn(table_column=Column(min_width=7)),
                   TextColumn("{task.fields[label]}", markup=False, style="dim", table_column=short))
        with self._lock:
            if self._closed:
                return
            # Standard output stays as it is: a redirected one would come out on stderr.
            self._shown = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False,
                                   auto_refresh=not self.still, refresh_per_second=8)
            self._shown.add_task(self.what, total=self.total, completed=self._done, label=self._label)
            self._shown.start()

    def _draw(self) -> None:
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=self._done, label=self._label)
            if self.still:
                self._shown.refresh()


def advanced(step: Step) -> Callable[[int, int, str], None]:
    """A step as it is reported by code that counts itself: (done, all, name of the next)."""
    return lambda done, every, name: step(name, done)
