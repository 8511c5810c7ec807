"""Finds the plan of a step, and says whether it can be replayed."""

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.errors import PlanMismatch
from hlorewrite.ir.module import Module
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.lockfile.files import PlanFiles, PlanPlace, read_plan
from hlorewrite.lockfile.fingerprint import PLACED_BY, signature_digest
from hlorewrite.lockfile.stored import restored
from hlorewrite.lockfile.tuned import LeftOpen, is_tuned, wanted_of_tuned


@dataclass(frozen=True)
class PlanReplay:
    """A plan that fits.

    Attributes:
      document: the plan.
      module: what to compile; None for the original.
    """

    document: PlanDocument
    module: Module | None


def place_of_step(files: PlanFiles, step: str, wanted: Mapping[str, str], original: Module) -> PlanPlace:
    """Where the plan of a step is read and written."""
    signature = signature_digest(original) if files.is_folder else ""
    return files.place(step, signature, wanted["module"])


def replayed(place: PlanPlace, wanted: Mapping[str, str], original: Module,
             left: LeftOpen | None = None) -> PlanReplay | None:
    """The plan of a step.

    Args:
      place: where it is.
      wanted: what it has to be made for.
      original: the step's module, which is not changed.
      left: what the user leaves to a plan of ``hlorewrite tune``.

    Returns:
      The plan with its module; None if there is no plan yet.

    Raises:
      PlanMismatch: there is one, and it does not fit or cannot be read.
    """
    document = read_plan(place.read)
    return None if document is None else fitting(document, wanted, original, place.read, left)


def fitting(document: PlanDocument, wanted: Mapping[str, str], original: Module, name: str,
            left: LeftOpen | None = None) -> PlanReplay:
    """A plan with its module, once it is certain that it fits.

    Raises:
      PlanMismatch: what the plan was made for differs, or its module may not replace the original.
    """
    placed = PLACED_BY in wanted
    if is_tuned(document):
        wanted = wanted_of_tuned(document, wanted, original, left or LeftOpen(), name)
    changed = differences(document.made_for, wanted)
    if changed:
        raise PlanMismatch(f"the plan of {document.step} does not fit: {', '.join(changed)}", location=name)
    return PlanReplay(document, restored(document, original, name, placed) if document.module else None)


# ---- what changed between the run that made a plan and the one that would replay it, in one line


_LONG = 60
_MOST = 240
_DIGEST = 64


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The differences, one entry each: name, the plan's value, and this run's value.

    Args:
      old: what the plan was made for.
      new: the same of this run.

    Example:
      >>> differences({"jaxlib": "0.10.1", "keep": "better"}, {"jaxlib": "0.10.2", "keep": "better"})
      ['jaxlib 0.10.1 -> 0.10.2']
      >>> differences({}, {"keep": "better"})
      ['keep (none) -> better']
    """
    names = sorted({*old, *new})
    changed = [(name, old.get(name, ""), new.get(name, "")) for name in names if old.get(name, "") != new.get(name, "")]
    return [f"{name} {before or '(none)'} -> {after or '(none)'}"
            for name, before, after in ((name, *_shortened(a, b)) for name, a, b in changed)]


def _shortened(old: str, new: str) -> tuple[str, str]:
    """Digests by their first digits; of long lists what is between the parts both have in common."""
    if len(old) == len(new) == _DIGEST:
        return old[:12], new[:12]
    if max(len(old), len(new)) <= _LONG:
        return old, new
    one, other = old.split(","), new.split(",")
    start = _in_common(one, other)
    end = _in_common(one[start:][::-1], other[start:][::-1])
    shown = [",".join([*(["..."] if start else []), *parts[start:len(parts) - end], *(["..."] if end else [])])[:_MOST]
             for parts in (one, other)]
    return shown[0], shown[1]


def _in_common(first: list[str], second: list[str]) -> int:
    """How many parts two lists begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
