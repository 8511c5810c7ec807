"""The per-device program of an XLA dump, from its text to a module that passes and XLA take."""

from __future__ import annotations

from hlorewrite.errors import InputError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.partition import clean_import


def program_of_dump(text: str, name: str) -> Module:
    """The program that XLA's partitioner made, before XLA optimises it.

    Args:
      text: HLO, the file of a dump whose name ends in ``after_spmd_partitioner.txt``.
      name: for messages.

    Returns:
      A per-device module; what it says about donation is dropped, which concerns no collective.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.
    """
    from hlorewrite.jaxbridge.xla import private

    try:
        module = parse(private.hlo_to_stablehlo(private.hlo_text_to_proto(text)), name=name)
    except Exception as error:  # of jaxlib's own type, which differs between versions
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"the program before optimisations cannot be read ({first})", location=name,
                         hint="read the dump with the jaxlib that wrote it") from None
    clean_import(module, text)
    for attribute in [each for each in module.operation.attributes if each.startswith("mhlo.")]:
        del module.operation.attributes[attribute]
    return module
