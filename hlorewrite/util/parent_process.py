"""Ends a process with its parent, so that no work goes on after a killed command."""

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_LOOKS_S = 0.5


def end_with_parent(parent: int | None = None) -> None:
    """Makes the death of this process's parent the death of this process too.

    On Linux the kernel sends SIGKILL, which also ends C++ code; elsewhere a thread looks for the parent twice a second.

    Args:
      parent: the parent's process id, where this process was forked; by default the one it has now.
    """
    expected = os.getppid() if parent is None else parent
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(expected,), daemon=True).start()
    if os.getppid() != expected:  # it died before
        os._exit(1)


def _watch(parent: int) -> None:
    # Ends: with the process, when its parent is gone.
    while os.getppid() == parent:
        time.sleep(_LOOKS_S)
    os._exit(1)
