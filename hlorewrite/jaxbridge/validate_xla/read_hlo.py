"""HLO of any stage of XLA as a StableHLO module that the validator and the interpreter read."""

from hlorewrite.errors import InputError
from hlorewrite.hlo.parse import HloText
from hlorewrite.hlo.plain_hlo import PlainHlo, plain_hlo
from hlorewrite.ir import Editor, Module, View, dissolve_calls, erase_dead_functions, ir, nested_ops
from hlorewrite.jaxbridge.validate_xla.hlo_ops import as_stablehlo
from hlorewrite.jaxbridge.xla.hlo_text import stablehlo_of

_LAYOUTS = ("result_layout", "source_layout", "operand_layouts", "result_layouts", "xla_shape")


def read_hlo(parsed: HloText, name: str) -> tuple[Module, PlainHlo]:
    """Reads HLO as StableHLO.

    Args:
      parsed: the program, as any pass of XLA leaves it.
      name: the name of the file, for messages.

    Returns:
      A module whose ``main`` is the entry, and the HLO it was made from, whose instructions its locations number.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.
    """
    try:
        plain = plain_hlo(parsed)
    except InputError as error:
        error.location = error.location or name
        raise
    module = stablehlo_of(plain.text, name, "jaxlib cannot write this program as StableHLO",
                          "read the dump with the jaxlib that wrote it")
    _clean(module, parsed)
    return module, plain


def like_hlo(module: Module, parsed: HloText) -> Module:
    """A StableHLO module without what HLO does not say about it, to be compared with one that was HLO.

    Args:
      module: the module; it is changed.
      parsed: the HLO, which says on how many devices both run.
    """
    _clean(module, parsed)
    return module


def _clean(module: Module, parsed: HloText) -> None:
    """Drops what only says how values are in memory, and writes ops of XLA's own as ops of StableHLO."""
    editor = Editor(View(module))
    dissolve_calls(editor)  # fusions are calls, and facts about loops are read from their text
    erase_dead_functions(editor)
    as_stablehlo(editor)
    top = module.operation
    with module.context:
        for attribute in list(top.attributes):
            if attribute.startswith(("mhlo.", "xla")):
                del top.attributes[attribute]
        word = ir.IntegerType.get_signless(32)
        top.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(word, parsed.partitions)
        top.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(word, parsed.replicas)
    for op in nested_ops(top)[1:]:
        noise = ("arg_attrs", "res_attrs") if op.name == "func.func" else _LAYOUTS
        for attribute in list(op.attributes):
            layout = attribute in noise and not op.name.startswith(("mhlo.", "stablehlo.custom_call"))
            if layout or (attribute.startswith(("mhlo.", "xla")) and not op.name.startswith("mhlo.")):
                del op.attributes[attribute]
