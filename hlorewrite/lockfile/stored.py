"""The resulting module of a plan: as it is stored, and what is checked before it takes the place of the original."""

from dataclasses import replace

from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.ir import Module, View, ir, parse
from hlorewrite.lockfile.document import MOST_MODULE_BYTES, PlanDocument
from hlorewrite.lockfile.remarks import without_folders
from hlorewrite.passmanager.signature import PLACEMENT, changes, signature_of

_CALL_ATTRIBUTES = ("call_target_name", "backend_config", "mhlo.backend_config", "called_computations")
_OF_XLA = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "TopK"})
"""Custom calls that XLA's partitioner makes, and that XLA itself carries out."""


def stored_text(module: Module, name: str) -> str:
    """The text of a module for a plan: with locations, whose files have no folders.

    Raises:
      PlanMismatch: the module is too large.
    """
    text = without_folders(module.text(debug_info=True))
    if len(text.encode()) > MOST_MODULE_BYTES:
        raise PlanMismatch(f"the resulting module has more than {MOST_MODULE_BYTES >> 20} MiB of text", location=name)
    return text


def restored(document: PlanDocument, original: Module, name: str, placed: bool = False) -> Module:
    """The resulting module of a plan, once it is certain that it may replace the original.

    Args:
      document: the plan.
      original: the module the plan was made for, which is not changed.
      name: the plan's file, for messages.
      placed: the user asked for a pass that places arguments and results differently.

    Returns:
      The module, in the context of the original. It verifies, its digest is the recorded one, its public functions
      have the signature of the original's, and it calls no custom call that the original does not call.

    Raises:
      PlanMismatch: one of these is not so.
    """
    try:
        module = parse(document.module, name=original.name, context=original.context)
    except HlorewriteError as error:
        raise PlanMismatch(f"contains a module that cannot be read: {error.what}", location=name) from None
    if module.digest() != document.digest:
        raise PlanMismatch("contains a module whose digest differs from the recorded one", location=name)
    differences = changes(signature_of(original), signature_of(module), PLACEMENT if placed else frozenset())
    if differences:
        raise PlanMismatch(f"contains a module with another signature: {differences[0]}", location=name)
    foreign = {call for call in _calls(module) - _calls(original) if call[0] not in _OF_XLA}
    if foreign:
        raise PlanMismatch(f"contains a custom call that the step does not have: {min(foreign)[0]}", location=name)
    return replace(module, frames=original.frames, format=original.format, envelope=original.envelope,
                   version=original.version, has_locations=original.has_locations)


def _calls(module: Module) -> set[tuple[str, ...]]:
    """Target and configuration of each custom call: a configuration can contain the address of a function."""
    found = set()
    for op in View(module).ops("stablehlo.custom_call"):
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        found.add((target, *(str(op.attributes[name]) for name in _CALL_ATTRIBUTES[1:] if name in op.attributes)))
    return found
