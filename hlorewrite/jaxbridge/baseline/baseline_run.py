"""Compiles a step with XLA alone in another thread; the partitioner's output is available before the compilation
ends.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.published_flags import FLAG_SETS, beside, users_flags
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.xla.compile_no_codegen import program_so_far
from hlorewrite.tune.choice import Flag, NamedFlags

POLL_S = 0.01
"""Seconds between checks for the partitioner's output; a check takes less than a hundredth of that."""


class NotCompared(InputError):
    """A step cannot be compared with XLA alone, so it is compiled unchanged."""


@dataclass(frozen=True)
class BaselineRun:
    """XLA alone's compilation.

    Attributes:
      future: its result.
      dumps: the folder that XLA dumps to meanwhile; None if the program is not needed.
      flags: XLA options in addition to the user's.
    """

    future: Future[AloneMeasured]
    dumps: Path | None = None
    flags: Flags = field(default_factory=dict)

    def program(self) -> bytes | None:
        """The output of XLA's partitioner, as soon as it is written; None if the compilation fails first."""
        # Ends: with the compilation.
        while self.dumps is not None and not self.future.done():
            found = program_so_far(self.dumps)
            if found is not None:
                return found
            wait([self.future], timeout=POLL_S)
        return self._last_program()

    def confirms(self, program: bytes | None) -> bool:
        """Waits for the compilation; returns whether a program read meanwhile is also the final one.

        So the choice does not depend on when the program was read.
        """
        return self.future.exception() is not None or self._last_program() == program

    def measured(self) -> Measured:
        """The program that XLA alone would run.

        Raises:
          NotCompared: XLA refuses the module.
        """
        try:
            return self.future.result()[0]
        except InputError as error:
            raise NotCompared(f"it cannot be compared with XLA alone: {error.what}") from None

    def _last_program(self) -> bytes | None:
        return self.future.result()[1] if self.future.exception() is None else None


# ---- the published sets of XLA flags that a step is compiled with, and the fastest step of XLA alone under them


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
