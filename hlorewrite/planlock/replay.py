"""Finds the plan of a step, and says whether it can be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.errors import PlanMismatch
from hlorewrite.ir.module import Module
from hlorewrite.planlock.document import PlanDocument
from hlorewrite.planlock.files import PlanFiles, PlanPlace, read_plan
from hlorewrite.planlock.made_for import PLACED_BY, signature_digest
from hlorewrite.planlock.mismatch import differences
from hlorewrite.planlock.stored import restored
from hlorewrite.planlock.tuned import LeftOpen, is_tuned, wanted_of_tuned


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
      The plan with its module; None where there is no plan yet.

    Raises:
      PlanMismatch: there is one, and it does not fit or cannot be read.
    """
    document = read_plan(place.read)
    return None if document is None else fitting(document, wanted, original, place.read, left)


def fitting(document: PlanDocument, wanted: Mapping[str, str], original: Module, name: str,
            left: LeftOpen | None = None) -> PlanReplay:
    """A plan with its module, once it is sure that it fits.

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
