"""Two modules for a named target: what was rewritten beside what XLA alone makes of the original."""

from __future__ import annotations

from collections.abc import Mapping

from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.against_xla.comparison import EXACT, XlaComparison, compared
from hlorewrite.jaxbridge.against_xla.measured import compiled, scheduled
from hlorewrite.jaxbridge.xla.compile_for import place_of, rewritten_flags
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import parse_target


def compared_modules(original: Module, rewritten: Module, target: str) -> XlaComparison | None:
    """Compiles both up to the generation of code.

    Args:
      original: the module as it came; it is not changed.
      rewritten: what the passes made of it; it is not changed.
      target: what for, such as ``h200:1x8``.

    Returns:
      Both, with the decision; None where they are equal, or run on one device.

    Raises:
      UsageError: no such target, or it has other devices than the modules.
      InputError: XLA refuses one of them.
    """
    if for_spmd(original).devices == 1 or original.text() == rewritten.text():
        return None
    place = place_of(parse_target(target), original)
    alone, ours = scheduled(original, place, {})[0], scheduled(rewritten, place, rewritten_flags(rewritten, place))[0]
    return compared(alone, ours, target)


def compiled_modules(original: Module, rewritten: Module, target: str, xla_flags: Mapping[str, str | bool | int], *,
                     protect: bool) -> XlaComparison:
    """Compiles both to the end.

    Args:
      original: the module as it came; it is not changed.
      rewritten: what the passes made of it; it is not changed.
      target: what for, such as ``h200:1x8``.
      xla_flags: XLA flags for both, without dashes.
      protect: compile the rewritten one without the XLA pass that miscompiles on GPU.

    Returns:
      Both, with the decision for no byte of temporaries more.

    Raises:
      UsageError: no such target, or it has other devices than the modules.
      InputError: XLA refuses one of them.
    """
    place = place_of(parse_target(target), original)
    flags = rewritten_flags(rewritten, place) if protect else {}
    return compared(compiled(original, place, xla_flags), compiled(rewritten, place, {**xla_flags, **flags}), target,
                    limits=EXACT, with_code=True)

