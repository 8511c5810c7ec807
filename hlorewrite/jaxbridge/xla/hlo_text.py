"""HLO text as XLA's own parser reads it: written by hand, printed by an older XLA, or not scheduled yet."""

import math
import re

from hlorewrite.errors import InputError
from hlorewrite.hlo.aliasing import aliases
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.groups import parse_groups
from hlorewrite.hlo.parse import HloText, parse_hlo
from hlorewrite.ir import Module, ir, parse
from hlorewrite.ir.frontend import FRONTEND
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.partition import clean_import, drop_layouts, without_older_spellings

_AT = re.compile(r"was parsing (\d+):(\d+): error: (.*)")


def printed_by_xla(text: str, name: str, unread: InputError) -> str:
    """Reprints through XLA HLO text that ``hlo.parse`` does not read.

    Args:
      text: HLO in any form that XLA's parser accepts: instructions over several lines, without indentation, shapes or
        a header, with comments.
      name: the name of the file, for messages.
      unread: why ``hlo.parse`` does not read it.

    Raises:
      InputError: XLA's parser does not read it either: the line and the column where it stops.

    Example:
      >>> written = "HloModule m\\nENTRY e {\\np = f32[2] parameter(0)\\nROOT n = f32[2]\\n negate(p)\\n}"
      >>> print(printed_by_xla(written, "m.hlo", InputError("")).splitlines()[4])
        ROOT %n = f32[2]{0} negate(%p)
    """
    try:
        printed = private.printed_hlo(text)
    except Exception as error:  # of jaxlib's own type, which differs between versions
        at = _AT.search(str(error))
        if at is None:
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"{unread.what}; XLA's parser refuses it too ({first[0]})", location=name,
                             hint=unread.hint) from None
        raise InputError(f"XLA's parser of HLO stops here ({at[3]})", location=f"{name}:{at[1]}:{at[2]}",
                         hint="correct the line, or pass HLO as XLA prints it") from None
    try:
        parse_hlo(printed)
    except InputError as error:
        error.location = error.location or name
        raise
    return printed


def stablehlo_of(text: str, name: str, fault: str, hint: str) -> Module:
    """HLO text as jaxlib imports it to StableHLO, with what its importer adds.

    Args:
      text: HLO as XLA prints it.
      name: the name of the file, for messages.
      fault: what an error says went wrong, before jaxlib's own words.
      hint: what to do then.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.
    """
    try:
        return parse(private.hlo_to_stablehlo(private.hlo_text_to_proto(text)), name=name)
    except Exception as error:  # of jaxlib's own type, which differs between versions
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{fault} ({first[:200]})", location=name, hint=hint) from None


# ---- HLO text that XLA has not scheduled yet as a StableHLO module, which is compiled and rewritten as any other


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
