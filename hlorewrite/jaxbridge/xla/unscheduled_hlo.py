"""HLO text that XLA has not scheduled yet as a StableHLO module, which is compiled and rewritten as any other."""

import math
import re

from hlorewrite.hlo.aliasing import aliases
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.groups import parse_groups
from hlorewrite.hlo.parse import HloText, parse_hlo
from hlorewrite.ir import Module, ir
from hlorewrite.ir.frontend import FRONTEND
from hlorewrite.jaxbridge.xla.hlo_text import stablehlo_of
from hlorewrite.jaxbridge.xla.partition import clean_import, drop_layouts, without_older_spellings

_TILES = re.compile(r"devices=\[([\d,]+)\]")
_SHARDINGS = ("mhlo.sharding", FRONTEND)


def import_hlo(text: str, name: str) -> Module:
    """Reads HLO before optimisations, or before the schedule, as StableHLO.

    A program with collectives is one of each device, whatever shardings its parameters still name. Any other one is
    the whole program, which XLA divides by its shardings.

    Args:
      text: HLO as XLA prints it: ``Lowered.compiler_ir("hlo")``, or a ``before_optimizations`` file of a dump.
      name: the name of the file, for messages.

    Returns:
      A module for as many devices as the header, the groups of its collectives or its shardings name.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.

    Example:
      >>> module = import_hlo('HloModule m, num_partitions=2\\n\\nENTRY %e (x: f32[4]) -> f32[4] {\\n'
      ...   '  %x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}\\n  ROOT %y = f32[4]{0} tanh(%x)\\n}', "m.hlo")
      >>> module.text().count("stablehlo.tanh"), "mhlo.num_partitions = 2" in module.text()
      (1, True)
    """
    parsed = parse_hlo(text)
    module = stablehlo_of(text, name, "jaxlib cannot write this program as StableHLO",
                          "pass HLO written by the installed jaxlib, or export the step")
    local = _ids(parsed)
    if local:
        clean_import(module, text, as_written=True)
    else:
        without_older_spellings(module)
        drop_layouts(module)
    _describe(module, parsed, local)
    return module


def _ids(parsed: HloText) -> int:
    """How many devices the groups of the collectives name; 0 without collectives."""
    named = 0
    for computation in parsed.computations.values():
        for each in computation.instructions.values():
            if collective_kind(each.opcode):
                rows = parse_groups(each.attributes, parsed.devices) if "replica_groups=" in each.attributes else ()
                named = max([named, 1, *(device + 1 for row in rows for device in row)])
    return named


def _describe(module: Module, parsed: HloText, local: int) -> None:
    """Writes how many devices there are, and what arguments are given up, as StableHLO does."""
    top = module.operation
    partitions = parsed.partitions
    if parsed.devices == 1:  # a header that names none
        tiles = [math.prod(map(int, found.split(","))) for found in _TILES.findall(str(top))] if not local else []
        partitions = max([local, 1, *tiles])
    with module.context:
        for attribute in list(top.attributes):
            if attribute.startswith(("mhlo.", "xla")) and (local or attribute != FRONTEND):
                del top.attributes[attribute]
        word = ir.IntegerType.get_signless(32)
        top.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(word, partitions)
        top.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(word, parsed.replicas)
        _share_memory(top.regions[0].blocks[0].operations, parsed, whole=not local)


def _share_memory(functions: ir.OperationList, parsed: HloText, *, whole: bool) -> None:
    """Results that take the memory of an argument, as attributes of the arguments of ``main``."""
    shared = {int(argument): int(result or 0) for result, argument in aliases(parsed.header)
              if argument.isdigit() and (not result or result.isdigit())}
    main = next(each.operation for each in functions if each.operation.name == "func.func"
                and ir.StringAttr(each.operation.attributes["sym_name"]).value == "main")
    count = len(ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs)
    old = list(ir.ArrayAttr(main.attributes["arg_attrs"])) if "arg_attrs" in main.attributes else [
        ir.DictAttr.get({})] * count
    made: list[ir.Attribute] = []
    for number, given in enumerate(old):
        kept = {each.name: each.attr for each in ir.DictAttr(given) if whole and each.name in _SHARDINGS}
        if number in shared:
            kept["tf.aliasing_output"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), shared[number])
        made.append(ir.DictAttr.get(kept))
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(made)
