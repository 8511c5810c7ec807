"""Compares two modules for a named target: the rewritten one, and the original under XLA alone."""

from collections.abc import Mapping
from dataclasses import replace

from hlorewrite.hlo.published_flags import users_flags
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison, compared
from hlorewrite.jaxbridge.baseline.flag_sets import BestOfXla, best_of_xla
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.xla.compile_for import place_of, rewritten_flags
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import parse_target


def compared_modules(original: Module, rewritten: Module, target: str, *, budget: int | None = None, best: bool = False
                     ) -> XlaComparison | None:
    """Compiles both up to code generation.

    Args:
      original: the original module; it is not changed.
      rewritten: what the passes made of it; it is not changed.
      target: what for, such as ``h200:1x8``.
      budget: bytes of temporaries that the user allows; None without a budget.
      best: also compile the original with published sets of XLA flags, and show the shortest step.

    Returns:
      Both, with the decision; None if they are equal, or run on one device.

    Raises:
      UsageError: no such target, or it has other devices than the modules.
      InputError: XLA refuses one of them.
    """
    if for_spmd(original).devices == 1 or original.text() == rewritten.text():
        return None
    place = place_of(parse_target(target), original)

    def measure(module: Module, flags: Flags) -> Measured:
        return timed(scheduled(module, place, flags)[0], place.topology)

    alone, ours = measure(original, {}), measure(rewritten, rewritten_flags(rewritten, place))
    made = compared(alone, ours, target, budget=budget)
    if not best:
        return made
    return replace(made, best=best_alone(original, place, alone))


def best_alone(module: Module, place: DeviceSet, alone: Measured) -> BestOfXla:
    """XLA alone under the published flags that make its step the shortest; each set is compiled up to code generation.

    Args:
      module: the user's module; it is not changed.
      place: the target.
      alone: XLA's compilation of it by default.
    """
    return best_of_xla(alone, lambda flags: timed(scheduled(module, place, flags)[0], place.topology),
                       flags_given(place))


def flags_given(place: DeviceSet) -> dict[str, object]:
    """XLA flags that no set overrides: those of the devices, and the user's own in the environment."""
    return {**users_flags(), **place.flags}


def compiled_modules(original: Module, rewritten: Module, target: str, xla_flags: Mapping[str, str | bool | int], *,
                     protect: bool, best: bool = False) -> XlaComparison:
    """Compiles both to the end.

    Args:
      original: the original module; it is not changed.
      rewritten: what the passes made of it; it is not changed.
      target: what for, such as ``h200:1x8``.
      xla_flags: XLA flags for both, without dashes.
      protect: compile the rewritten one without the XLA pass that miscompiles on GPU.
      best: also compile the original with published sets of XLA flags, and show the shortest step.

    Returns:
      Both, with the decision.

    Raises:
      UsageError: no such target, or it has other devices than the modules.
      InputError: XLA refuses one of them.
    """
    place = place_of(parse_target(target), original)
    flags = rewritten_flags(rewritten, place) if protect else {}

    def measure(module: Module, more: Flags, *, code: bool = True) -> Measured:
        every = {**xla_flags, **more}
        made = compiled(module, place, every) if code else scheduled(module, place, every)[0]
        return timed(made, place.topology)

    alone = measure(original, {})
    made = compared(alone, measure(rewritten, flags), target, with_code=True)
    if not best:
        return made
    found = best_of_xla(alone, lambda more: measure(original, more, code=False), {**flags_given(place), **xla_flags})
    return replace(made, best=replace(found, measured=measure(original, found.flags) if found.flags else alone))
