"""Short text of a few ops, for traces and remarks, without numbering the whole function."""

from collections.abc import Iterable, Mapping

from hlorewrite.ir import defining_op, ir
from hlorewrite.ops.reducers import reduction_kind

_MOST = 60


def short_op(op: ir.Operation) -> str:
    """An op in a few words: its name and result types.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {"
      ...                " %b = stablehlo.negate %a : tensor<4xf32> return %b : tensor<4xf32> }")
      >>> short_op(module.mlir.body.operations[0].regions[0].blocks[0].operations[0].operation)
      'stablehlo.negate : tensor<4xf32>'
    """
    types = ", ".join(str(result.type) for result in op.results)
    return f"{op.name} : {types}" if types else op.name


def snippet(ops: Iterable[ir.Operation], names: Mapping[ir.Value, str]) -> str:
    """Ops as text, one line each, with the rule's own names for values if it has some.

    Args:
      ops: the ops.
      names: the rule's name for a value.

    Returns:
      Lines such as ``%r = stablehlo.add(%a, %1) : tensor<4xf32>``.
    """
    known = dict(names)
    return "\n".join(_line(op, known) for op in ops)


def _line(op: ir.Operation, known: dict[ir.Value, str]) -> str:
    operands = ", ".join(_name(v, known) for v in op.operands)
    results = ", ".join(_name(v, known) for v in op.results)
    attributes = ", ".join(f"{name} = {_attribute(op, name)}" for name in sorted(op.attributes))
    kind = reduction_kind(op)
    text = f"{results} = " if results else ""
    text += f"{op.name}({operands})" + (f" {{{attributes}}}" if attributes else "")
    text += f" reduces({kind})" if kind else f" with {len(op.regions)} regions" if len(op.regions) else ""
    types = ", ".join(str(v.type) for v in op.results)
    return f"{text} : {types}" if types else text


def _name(value: ir.Value, known: dict[ir.Value, str]) -> str:
    if value not in known:
        op = defining_op(value)
        number = sum(name[1:].isdigit() for name in known.values())
        constant = op is not None and op.name == "stablehlo.constant"
        known[value] = _attribute(op, "value") if op is not None and constant else f"%{number}"
    return known[value]


def _attribute(op: ir.Operation, name: str) -> str:
    try:
        return _shortened(str(op.attributes[name]))
    except TypeError:  # jaxlib has no Python class for some attributes (complex constants)
        return "..."


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST else text[:_MOST - 3] + "..."
