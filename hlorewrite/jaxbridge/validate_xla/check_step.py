"""``check="xla"``: whether XLA's passes preserve a step, checked once for each signature.

The step is compiled once more, in a separate process and up to the generation of code, with a dump of every pass.
Then the programs of the dump are compared. A small step takes seconds, an unrolled model of many layers minutes.
"""

import tempfile
from pathlib import Path

from hlorewrite.checks.translation_validation.equivalence import Certainty
from hlorewrite.errors import InputError
from hlorewrite.ir import Module
from hlorewrite.jaxbridge.validate_xla.chain import ChainReport, validate_dump
from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd


def checked_step(module: Module, place: DeviceSet) -> tuple[str, str]:
    """What is known about XLA's passes on a step.

    Args:
      module: the module that is compiled.
      place: what for.

    Returns:
      The verdict, and a message for the user if a pass changed the program or could not be compared; empty
      otherwise.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {"
      ...                "%b = stablehlo.add %a, %a : tensor<4xf32> return %b : tensor<4xf32> }")
      >>> checked_step(module, DeviceSet("cpu"))
      ('proved', '')
    """
    target = f"cpu:{for_spmd(module).devices}" if place.platform == "cpu" else place.topology
    if not target:
        why = "there is no description of this cluster"
        return f"unknown: {why}", f"is compiled without a check of XLA's passes: {why}"
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as name:
        try:
            found = validate_dump(compile_with_dump(module, target, Path(name)))
        except InputError as error:
            return f"unknown: {error.what}", f"is compiled without a check of XLA's passes: {error.what}"
    return found.verdict.value, _sentence(found)


def _sentence(found: ChainReport) -> str:
    for row in found.every:
        if row.answer.verdict is Certainty.DIFFERS:
            where = f" at {row.source or row.instruction}" if row.source or row.instruction else ""
            return f"is changed by XLA's pass {row.passes[-1]}{where}: {row.answer.example}"
    unknown = [row.passes[-1] for row in found.rows if row.answer.verdict is Certainty.UNKNOWN]
    return f"has XLA passes that could not be compared: {', '.join(unknown)}" if unknown else ""
