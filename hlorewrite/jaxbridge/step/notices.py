"""Messages of the decorator and ``patch_jit`` to the user, and the switch that disables both."""

import os
import sys

import jax

from hlorewrite.ir import shown_path

KILL_SWITCH = "HLOREWRITE"


class HlorewriteWarning(UserWarning):
    """Something a user of the decorator or of ``patch_jit`` should know; said once."""


def switched_off() -> bool:
    """Whether ``HLOREWRITE=0`` is set; read whenever a new signature is compiled."""
    return os.environ.get(KILL_SWITCH, "1").strip().lower() in ("0", "off", "false", "no")


def users_level() -> int:
    """The stack level of the first frame above the caller that is neither ours nor JAX's, for ``warnings.warn``."""
    ours = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.path.dirname(os.path.abspath(jax.__file__)))
    frame, level = sys._getframe(2), 2
    # Ends: each step goes to the calling frame.
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


def users_line() -> str:
    """``FILE:LINE`` of the first frame above the caller that is neither ours nor JAX's, for errors."""
    frame = sys._getframe(users_level() - 1)
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno}"
