"""Compiles a step with XLA alone in another thread; the partitioner's output is available before the compilation
ends."""

from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.errors import InputError
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.xla.compile_no_codegen import program_so_far

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
