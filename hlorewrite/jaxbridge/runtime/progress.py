"""Progress of long work on a terminal; silent anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(words: str, total: int, wanted: bool) -> Iterator[Callable[[str], None]]:
    """A bar on standard error while work is done.

    Args:
      words: what is done.
      total: how many pieces there are.
      wanted: whether to show it; never when standard error is no terminal.

    Yields:
      What is called before each piece, with its name.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)
        done = iter(range(total + 1))

        def advance(name: str) -> None:
            bar.update(task, completed=next(done, total), description=f"{words} {name}")

        yield advance
