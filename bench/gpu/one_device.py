"""What one device computes of a step of many: its per-device program, with a local stand-in for each collective.

A stand-in has the shapes of the collective and sits behind a barrier, so that XLA fuses no more around it than it would
around the collective. It writes as many bytes as the collective's result has where that is the larger side, and none
otherwise. The results are wrong on purpose; only their time means something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlorewrite.errors import InputError
from hlorewrite.ir import COLLECTIVES, Editor, Module, ir, parse
from hlorewrite.ir.view import View, block_ops, nested_ops, terminator
from hlorewrite.jaxbridge.xla.partition import expose_collectives
from hlorewrite.jaxbridge.xla.spmd_module import main_function

_MANUAL = "sdy.manual_computation"


def one_device(module: Module) -> Module:
    """The program of one device, without communication.

    Args:
      module: a step of several devices, auto-sharded or manual; it is not changed.

    Raises:
      InputError: its entry function does more than one manual computation.
    """
    made = module.clone() if View(module).ops(_MANUAL) else expose_collectives(module)
    view = View(made)
    manual = _only_manual(view)
    editor = Editor(view)
    for op in view.ops(*COLLECTIVES):
        _stand_in(editor, op)
    for op in view.ops("stablehlo.partition_id", "stablehlo.replica_id"):
        editor.replace(op.results[0], _constant(editor, op, 0))
        editor.erase(op)
    return _body_as_main(made, manual)


def _only_manual(view: View) -> ir.Operation:
    """The manual computation that is all of the entry function."""
    main = main_function(view.module, view)
    inner = [op for op in block_ops(main.regions[0].blocks[0]) if op.name != "sdy.constant"]
    if [op.name for op in inner] != [_MANUAL]:
        raise InputError("the entry function is more than one manual computation", location=view.module.name,
                         hint="give a step that shard_map covers, or an auto-sharded one")
    if view.ops(_MANUAL) != [inner[0]]:
        raise InputError("the step nests manual computations", location=view.module.name, hint="give another step")
    return inner[0]


def _stand_in(editor: Editor, op: ir.Operation) -> None:
    """Puts local ops in the place of a collective: its operands behind a barrier, made to fit."""
    held = editor.create("stablehlo.optimization_barrier", list(op.operands), [each.type for each in op.operands],
                         location=op.location, before=op)
    for operand, result in zip(held.results, op.results, strict=True):
        editor.replace(result, _fitted(editor, op, operand, ir.RankedTensorType(result.type)))
    editor.erase(op)


def _fitted(editor: Editor, op: ir.Operation, value: ir.Value, wanted: ir.RankedTensorType) -> ir.Value:
    """A value of another shape: its beginning, several of it in a row, or its elements in another shape."""
    have = ir.RankedTensorType(value.type)
    if have == wanted:
        return value
    for dimension, (here, there) in enumerate(zip(have.shape, wanted.shape, strict=True)):
        if here < there and math.prod(have.shape) < math.prod(wanted.shape):
            return _made(editor, op, "stablehlo.concatenate", [value] * (there // here), wanted,
                         f"dimension = {dimension} : i64")
        if here > there and math.prod(have.shape) > math.prod(wanted.shape):
            starts, limits, strides = (f"array<i64: {', '.join(map(str, row))}>" for row in
                                       ([0] * have.rank, wanted.shape, [1] * have.rank))
            return _made(editor, op, "stablehlo.slice", [value], wanted,
                         f"start_indices = {starts}, limit_indices = {limits}, strides = {strides}")
    return _made(editor, op, "stablehlo.reshape", [value], wanted, "")


def _made(editor: Editor, op: ir.Operation, name: str, operands: Sequence[ir.Value], wanted: ir.Type,
          attributes: str) -> ir.Value:
    with op.context:
        held = ir.DictAttr(ir.Attribute.parse("{" + attributes + "}"))
    made = editor.create(name, operands, [wanted], attributes={each.name: each.attr for each in held},
                         location=op.location, before=op)
    return made.results[0]


def _constant(editor: Editor, op: ir.Operation, number: int) -> ir.Value:
    kind = op.results[0].type
    return _made(editor, op, "stablehlo.constant", [], kind, f"value = dense<{number}> : {kind}")


def _body_as_main(module: Module, manual: ir.Operation) -> Module:
    """The body of the manual computation as the entry function of a module of one device."""
    body = manual.regions[0].blocks[0]
    taken = ", ".join(f"%arg{number}: {argument.type}" for number, argument in enumerate(body.arguments))
    given = ", ".join(str(operand.type) for operand in terminator(body).operands)
    main, name = main_function(module), str(main_function(module).attributes["sym_name"]).strip('"')
    shell = parse(f"module {{ func.func @{name}({taken}) -> ({given}) }}".replace(f"@{name}", f"private @{name}"),
                  name=module.name, context=module.context)
    function = next(iter(shell.mlir.body.operations)).operation
    del function.attributes["sym_visibility"]
    last = terminator(body)
    with module.context:
        ir.Operation.create("func.return", operands=list(last.operands), loc=last.location, ip=ir.InsertionPoint(last))
    last.erase()
    body.append_to(function.regions[0])
    main.erase()
    for op in list(module.mlir.body.operations):
        if op.operation.name == "func.func":
            shell.mlir.body.append(op)
    assert not any(op.name.startswith("sdy.") for op in nested_ops(shell.operation))
    return shell
