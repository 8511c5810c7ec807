"""HLO of any stage of XLA as a StableHLO module that the validator and the interpreter read."""

import re
from collections.abc import Callable, Mapping, Sequence

from hlorewrite.errors import InputError
from hlorewrite.hlo.parse import HloText
from hlorewrite.hlo.plain_hlo import PlainHlo, plain_hlo
from hlorewrite.ir import ALL_TO_ALL, Editor, Module, View, dissolve_calls, erase_dead_functions, ir, nested_ops
from hlorewrite.jaxbridge.xla.hlo_text import stablehlo_of
from hlorewrite.jaxbridge.xla.partition import as_dot_general

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


# ---- ops of XLA that StableHLO writes in another way: copies, bitcasts, all-to-alls of tuples, old matrix products


def as_stablehlo(editor: Editor) -> None:
    """Writes a module's ops of XLA's own as ops of StableHLO.

    Args:
      editor: the editor of a module that jaxlib made from HLO.

    Raises:
      InputError: a bitcast changes the width of elements.
    """
    for op in nested_ops(editor.view.module.operation):
        made = _WRITERS.get(op.name)
        if made is not None:
            made(editor, op)


def _copy(editor: Editor, op: ir.Operation) -> None:
    editor.replace(op.results[0], op.operands[0])
    editor.erase(op)


def _bitcast(editor: Editor, op: ir.Operation) -> None:
    """The elements in the order in which they are in memory, read with another shape and layout."""
    value = op.operands[0]
    source, result = ir.RankedTensorType(value.type), ir.RankedTensorType(op.results[0].type)
    if source.element_type != result.element_type:
        if list(source.shape) != list(result.shape) or _order(op, "source_layout", source.rank) != _order(
                op, "result_layout", result.rank):
            raise InputError("a bitcast reads elements of another width", location=editor.view.module.name,
                             hint="passes around it are compared by execution")
        made = _create(editor, op, "stablehlo.bitcast_convert", [result], [value])[0]
    else:
        outer = _order(op, "source_layout", source.rank)
        inner = _order(op, "result_layout", result.rank)
        value = _transposed(editor, op, value, outer)
        value = _reshaped(editor, op, value, [result.shape[d] for d in inner])
        made = _transposed(editor, op, value, [inner.index(d) for d in range(result.rank)])
    editor.replace(op.results[0], made)
    editor.erase(op)


def _order(op: ir.Operation, name: str, rank: int) -> list[int]:
    """Dimensions from the one that changes slowest in memory to the fastest."""
    if name not in op.attributes:
        return list(range(rank))
    return [int(n) for n in re.findall(r"\d+", str(op.attributes[name]).split(":")[0])][::-1]


def _transposed(editor: Editor, op: ir.Operation, value: ir.Value, order: Sequence[int]) -> ir.Value:
    if list(order) == sorted(order):
        return value
    type_ = ir.RankedTensorType(value.type)
    made = ir.RankedTensorType.get([type_.shape[d] for d in order], type_.element_type, loc=op.location)
    return _create(editor, op, "stablehlo.transpose", [made], [value],
                   {"permutation": _numbers(op, order)})[0]


def _reshaped(editor: Editor, op: ir.Operation, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    type_ = ir.RankedTensorType(value.type)
    if list(type_.shape) == list(shape):
        return value
    made = ir.RankedTensorType.get(list(shape), type_.element_type, loc=op.location)
    return _create(editor, op, "stablehlo.reshape", [made], [value])[0]


def _all_to_all(editor: Editor, op: ir.Operation) -> None:
    """An all-to-all of a tuple: operand j goes to member j, which has it as the result of the sender's number."""
    count, type_ = len(op.operands), ir.RankedTensorType(op.operands[0].type)
    if count == 1 and "split_dimension" in op.attributes:
        return
    shape, element = list(type_.shape), type_.element_type
    rows = ir.RankedTensorType.get([count, *shape], element, loc=op.location)
    parts = [_reshaped(editor, op, value, [1, *shape]) for value in op.operands]
    with op.context:
        word = ir.IntegerType.get_signless(64)
        dimension, number = ir.IntegerAttr.get(word, 0), ir.IntegerAttr.get(word, count)
        channel = ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 0>")
    whole = _create(editor, op, "stablehlo.concatenate", [rows], parts, {"dimension": dimension})
    attributes = {"split_dimension": dimension, "concat_dimension": dimension, "split_count": number,
                  "replica_groups": op.attributes["replica_groups"]}
    if "channel_handle" in op.attributes or "channel_id" in op.attributes:
        attributes["channel_handle"] = channel
    moved = _create(editor, op, ALL_TO_ALL.op, [rows], whole, attributes)[0]
    one = ir.RankedTensorType.get([1, *shape], element, loc=op.location)
    for place, result in enumerate(op.results):
        cut = {"start_indices": _numbers(op, [place, *[0] * len(shape)]),
               "limit_indices": _numbers(op, [place + 1, *shape]), "strides": _numbers(op, [1] * (len(shape) + 1))}
        row = _create(editor, op, "stablehlo.slice", [one], [moved], cut)[0]
        editor.replace(result, _reshaped(editor, op, row, shape))
    editor.erase(op)


def _create(editor: Editor, op: ir.Operation, name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value],
            attributes: Mapping[str, ir.Attribute] | None = None) -> list[ir.Value]:
    made = editor.create(name, list(operands), list(results), attributes=dict(attributes or {}), location=op.location,
                         before=op)
    return list(made.results)


def _numbers(op: ir.Operation, numbers: Sequence[int]) -> ir.Attribute:
    with op.context:
        return ir.DenseI64ArrayAttr.get([int(n) for n in numbers])


def _dot(editor: Editor, op: ir.Operation) -> None:
    as_dot_general(op, editor)


_WRITERS: dict[str, Callable[[Editor, ir.Operation], None]] = {
    "mhlo.copy": _copy, "mhlo.bitcast": _bitcast, "mhlo.all_to_all": _all_to_all, "stablehlo.dot": _dot}
