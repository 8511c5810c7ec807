"""Passes that a platform needs at the end of every pipeline."""

from collections.abc import Sequence

from hlorewrite.ir import COLLECTIVE_BROADCAST, Module, View
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.registry import make_pass

_LEGALIZE = "legalize-for-cpu"
_NO_BROADCASTS = {"comm-shift", "inline", "cse", "canonicalize", "all-reduce-fusion", "expose-collectives", _LEGALIZE}


def with_platform_passes(passes: Sequence[Pass], platform: str) -> tuple[Pass, ...]:
    """A pipeline with what the platform needs after it.

    Args:
      passes: the user's passes.
      platform: ``cpu`` or ``gpu``, as JAX names it.

    Returns:
      The passes; on CPU followed by ``legalize-for-cpu`` when one of them may make broadcasts, and without those that
      move communication concurrently with compute, since XLA:CPU runs one after the other.

    Example:
      >>> [step.name for step in with_platform_passes([make_pass("gather-to-broadcast")], "cpu")]
      ['gather-to-broadcast', 'legalize-for-cpu']
      >>> with_platform_passes([make_pass("rotate-collectives")], "cpu")
      ()
    """
    if platform == "cpu":
        passes = [step for step in passes if not step.beside_compute]
    needed = platform == "cpu" and any(step.name not in _NO_BROADCASTS for step in passes) and not any(
        step.name == _LEGALIZE for step in passes)
    return (*passes, make_pass(_LEGALIZE)) if needed else tuple(passes)


def legal_module(module: Module, platform: str) -> Module:
    """A module the platform's compiler takes: itself, or a rewritten copy."""
    if platform != "cpu" or not View(module).ops(COLLECTIVE_BROADCAST.op):
        return module
    copy = module.clone()
    make_pass(_LEGALIZE).run(copy, PassContext())
    return copy
