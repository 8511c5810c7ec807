"""Where plans are kept: a file for one step, or a folder with a file for each step."""

import os
import re
import threading
from dataclasses import dataclass, field
from typing import Literal, get_args

from hlorewrite.errors import InputError, OutputError, PlanMismatch, UsageError, did_you_mean
from hlorewrite.lockfile.document import MOST_PLAN_BYTES, PlanDocument, read_document
from hlorewrite.util.read import read_regular
from hlorewrite.util.write import write_file

OnMismatch = Literal["error", "original", "replan"]
"""Policy if a plan does not fit: stop, compile the original, or decide again and replace the plan."""
ENDING = ".plan"
CONSEQUENCES = {"error": 'nothing is compiled; on_mismatch="replan" makes a new plan, "original" compiles the original',
                "original": "the original is compiled", "replan": "a new plan is made"}
_DIGITS = 12


@dataclass(frozen=True)
class PlanPlace:
    """Where the plan of one step is.

    Attributes:
      read: the file to replay.
      write: the file to write.
    """

    read: str
    write: str


@dataclass
class PlanFiles:
    """The plans of one decorated function, patch or program.

    Args:
      path: a path that ends in ``.plan`` is one file; every other is a folder with a file for each step, named by the
        step, its signature and its module.
      on_mismatch: what happens where a plan does not fit.
    """

    path: str
    on_mismatch: OnMismatch = "error"
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _taken: set[str] = field(default_factory=set, init=False, repr=False)

    @property
    def is_folder(self) -> bool:
        """Whether each step has a separate file."""
        return not self.path.endswith(ENDING)

    def place(self, step: str, signature: str, module: str) -> PlanPlace:
        """The files of a step.

        In a folder the file of this very module is read. If there is none, a file with the same name and signature,
        which no other step of this run has read, belongs to an earlier version of the step.

        Args:
          step: its name.
          signature: digest of the types of its arguments and results.
          module: digest of its module.
        """
        if not self.is_folder:
            return PlanPlace(self.path, self.path)
        prefix = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', step)}-{signature[:_DIGITS]}-"
        exact = f"{prefix}{module[:_DIGITS]}{ENDING}"
        with self._lock:
            self._taken.add(exact)
            known = self._listed()
            others = [name for name in known if name.startswith(prefix) and name not in self._taken]
            chosen = exact if exact in known or not others else others[0]
            self._taken.add(chosen)
        return PlanPlace(os.path.join(self.path, chosen), os.path.join(self.path, exact))

    def _listed(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.path) if name.endswith(ENDING))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise PlanMismatch(f"cannot be read as a folder of plans ({os.strerror(error.errno or 0)})",
                               location=self.path, hint=f"the name of a single plan ends in {ENDING}") from None

    def write(self, place: PlanPlace, document: PlanDocument) -> None:
        """Writes a plan whole or not at all; the folder is made where there is none.

        Raises:
          OutputError: it cannot be written.
        """
        if self.is_folder:
            try:
                os.makedirs(self.path, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot be made ({os.strerror(error.errno or 0)})", location=self.path,
                                  hint="name a writable folder") from None
        write_plan(place.write, document)

    def refused(self, error: PlanMismatch) -> PlanMismatch:
        """A refusal with what happens now."""
        more = f"{error.hint}; " if error.hint else ""
        return PlanMismatch(error.what, location=error.location, hint=more + CONSEQUENCES[self.on_mismatch],
                            stops=self.on_mismatch != "original")


def is_final(error: BaseException | None) -> bool:
    """Whether an error is a refusal of a plan that stops the program, whatever is done about other errors."""
    return isinstance(error, PlanMismatch) and error.stops


def read_plan(path: str) -> PlanDocument | None:
    """Reads a plan file.

    Args:
      path: the file.

    Returns:
      The plan; None if there is no file.

    Raises:
      PlanMismatch: it cannot be read, or is not a plan.
    """
    try:
        return read_document(read_regular(path, MOST_PLAN_BYTES, what="plan"), path)
    except FileNotFoundError:
        return None
    except PlanMismatch:
        raise
    except InputError as error:
        raise PlanMismatch(error.what, location=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise PlanMismatch(f"cannot be read ({reason})", location=path) from None


def write_plan(path: str, document: PlanDocument) -> None:
    """Writes a plan file whole or not at all.

    Raises:
      OutputError: it cannot be written, or is larger than a plan may be.
    """
    raw = document.text().encode()
    if len(raw) > MOST_PLAN_BYTES:
        raise OutputError(f"the plan would be larger than {MOST_PLAN_BYTES >> 20} MiB", location=path,
                          hint="leave plan= out for this step")
    write_file(path, raw)


def checked_files(path: str | os.PathLike[str] | None, on_mismatch: str) -> PlanFiles | None:
    """The plans a user asked for; None without a path.

    Raises:
      UsageError: the policy is unknown, or the path is empty.
    """
    for known in get_args(OnMismatch):
        if on_mismatch == known:
            if path is None:
                return None
            if not os.fspath(path):
                raise UsageError("the path of the plan is empty", hint="name a file that ends in .plan, or a folder")
            return PlanFiles(os.fspath(path), known)
    raise UsageError(f'on_mismatch="{on_mismatch}" is unknown', hint=did_you_mean(on_mismatch, get_args(OnMismatch)))
