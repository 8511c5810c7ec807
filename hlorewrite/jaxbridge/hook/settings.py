"""What a user chose for ``patch_jit`` and ``hlorewrite exec``."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hlorewrite.ir.location import USUAL_FRAMES, Frames
from hlorewrite.jaxbridge.processes.watch import TIMEOUT_S
from hlorewrite.util.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.decorator.candidates import Keep
    from hlorewrite.passmanager.base import Pass
    from hlorewrite.planlock.files import PlanFiles

Match = str | Sequence[str] | Callable[[str], bool] | None
"""The modules to rewrite: a name or glob pattern, several, or a predicate of the name; None for all that
communicate."""
_PREFIX = "jit_"


@dataclass(frozen=True)
class HookSettings:
    """Passes and policies of one patch.

    Attributes:
      passes: the passes, or a pipeline as text, which is parsed when the first module needs it.
      match: which modules.
      on_error: ``fallback`` to the original with one warning, or ``raise``; None raises where one process decides.
      protect: compile rewritten modules without an XLA pass that miscompiles on GPU.
      topology: the cluster that passes estimate times for; empty for their default.
      audit: compile the originals, and only record what could be saved.
      keep: when a rewritten module is compiled: ``better``, ``compiled`` or ``always``.
      trace: a directory for the trace of each rewriting; None for none.
      frames: which frames of call stacks are the user's own.
      timeout_s: how long to wait for what another process holds, seconds.
      plans: where plans are kept; None to decide without them.
      memory_budget: bytes a device may spend on what passes keep for longer, or ``auto``; None for the limits of the
        passes.
      left_open: options that the user did not give, so that a plan of ``hlorewrite tune`` may say them.
    """

    passes: str | tuple[Pass, ...]
    match: Match = None
    on_error: str | None = "fallback"
    protect: bool = True
    topology: str = ""
    audit: bool = False
    trace: str | None = None
    frames: Frames = USUAL_FRAMES
    keep: Keep = "better"
    timeout_s: float = TIMEOUT_S
    plans: PlanFiles | None = None
    memory_budget: MemoryBudget = None
    left_open: frozenset[str] = frozenset()

    @cached_property
    def pipeline(self) -> tuple[Pass, ...]:
        """The passes."""
        from hlorewrite.passmanager.spec import parse_pipeline
        return tuple(parse_pipeline(self.passes)) if isinstance(self.passes, str) else self.passes

    @property
    def text(self) -> str:
        """The passes as text."""
        from hlorewrite.passmanager.spec import format_pipeline
        return format_pipeline(self.pipeline)

    def wants(self, name: str) -> bool:
        """Whether a module of a name is to be rewritten."""
        return matches(self.match, name)


def matches(match: Match, name: str) -> bool:
    """Whether a module's name fits a choice.

    Args:
      match: the choice.
      name: as JAX names a module: ``jit_`` and the function's name.

    Example:
      >>> matches("train_step", "jit_train_step"), matches(["eval*", "*_step"], "jit_train_step")
      (True, True)
      >>> matches(lambda name: "eval" in name, "jit_train_step"), matches(None, "jit_f")
      (False, True)
    """
    if match is None:
        return True
    if callable(match):
        return bool(match(name))
    patterns = [match] if isinstance(match, str) else match
    return any(fnmatch.fnmatchcase(shown, pattern) for pattern in patterns
               for shown in (name, name.removeprefix(_PREFIX)))
