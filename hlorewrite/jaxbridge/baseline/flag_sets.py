"""The published sets of XLA flags that a step is compiled with, and the fastest step of XLA alone under them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.published_flags import FLAG_SETS, beside, users_flags
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured
from hlorewrite.tune.choice import Flag, NamedFlags

_EQUAL = 1e-9
"""Times of one step that differ by a smaller share differ only in the order of floating-point additions."""


def sets_beside(given: Mapping[str, object] | None = None) -> list[NamedFlags]:
    """The published sets without flags that the user sets; sets that then add nothing are left out.

    Args:
      given: the user's flags; by default those of ``XLA_FLAGS``.

    Returns:
      Names and flags.

    Example:
      >>> [name for name, _ in sets_beside({"xla_gpu_enable_latency_hiding_scheduler": "false"})][:3]
      ['pipelined', 'pipelined, combined', 'pipelined, double-buffered']
    """
    users = users_flags() if given is None else given
    found: dict[tuple[tuple[str, Flag], ...], str] = {}
    for each in FLAG_SETS:
        left = tuple(beside(each.flags, users).items())
        if left:
            found.setdefault(left, each.name)
    return [(name, flags) for flags, name in found.items()]


@dataclass(frozen=True)
class BestOfXla:
    """XLA alone under the published flags that make its step the shortest.

    Attributes:
      name: the set's name; ``defaults`` if none is better.
      flags: the set.
      measured: XLA's compilation with it.
      left_out: messages about sets that could not be compared.
    """

    name: str
    flags: Flags
    measured: Measured
    left_out: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The figures, the name and the flags."""
        return {**self.measured.as_json(), "name": self.name, "flags": dict(self.flags),
                "left_out": list(self.left_out)}


def best_of_xla(default: Measured, compile_with: Callable[[Flags], Measured], given: Mapping[str, object]) -> BestOfXla:
    """Compiles with each set and takes the shortest step.

    Args:
      default: XLA's compilation without further flags.
      compile_with: compiles the user's own module with further flags for that compilation alone, and times it.
      given: flags that the user sets; they stay as they are.

    Returns:
      The best; the defaults where no set is better.

    Raises:
      UsageError: the step has no predicted time, so sets cannot be compared.

    Example:
      >>> slow, fast = (Measured(8, 800, 800, 0, 0.0, "", step_s=seconds) for seconds in (2.0, 1.0))
      >>> best_of_xla(slow, lambda flags: fast if len(flags) > 1 else slow, {}).name
      'pipelined'
    """
    if default.step_s is None:
        raise UsageError(f"--xla-flags best compares step times, but none is known: {default.untimed or 'no GPUs'}",
                         hint="name described GPUs such as h200:1x8")
    best = BestOfXla("defaults", {}, default)
    left_out: list[str] = []
    for each in FLAG_SETS:
        flags = beside(each.flags, given)
        try:
            made = compile_with(flags)
        except (InputError, UsageError) as error:
            left_out.append(f"{each.name}: {error.what}")
            continue
        if made.step_s is None:
            left_out.append(f"{each.name}: {made.untimed}")
        elif best.measured.step_s is not None and made.step_s < best.measured.step_s * (1 - _EQUAL):
            best = BestOfXla(each.name, flags, made)
    return BestOfXla(best.name, best.flags, best.measured, tuple(left_out))
