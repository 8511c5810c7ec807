"""One op each, with all its attributes, as functions that end in it: for tests of what ops mean."""
# ruff: noqa: E501 (MLIR text and snippets of source)

from __future__ import annotations

import re

import numpy as np

from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module

SUM = ("({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %s = stablehlo.add %x, %y : tensor<f32>\n"
       "    stablehlo.return %s : tensor<f32>\n  })")
MAXIMUM = SUM.replace("stablehlo.add", "stablehlo.maximum")
BOTH = ("({\n  ^bb0(%x: tensor<f32>, %y: tensor<i32>, %u: tensor<f32>, %v: tensor<i32>):\n"
        "    %s = stablehlo.maximum %x, %u : tensor<f32>\n    %t = stablehlo.minimum %y, %v : tensor<i32>\n"
        "    stablehlo.return %s, %t : tensor<f32>, tensor<i32>\n  })")
LESS = ("({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<i32>, %v: tensor<i32>):\n"
        "    %s = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    stablehlo.return %s : tensor<i1>\n  })")


def sample(line: str, zero: str = "") -> tuple[Module, ir.Operation]:
    """The op of a line such as ``transpose %a, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>``.

    Args:
      line: the op; its operands are ``%a``, ``%b`` and so on in the order of their types, ``%zero`` a constant.
      zero: the type of ``%zero``.

    Returns:
      The module around, which has to be kept, and the op.
    """
    op, _, types = line.rpartition(" : ")
    inputs, _, outputs = types.partition(" -> ")
    operands = re.findall(r"%\w+", op.partition("({")[0])
    given = inputs.strip("()").split(", ") if outputs else [inputs] * len(operands)
    results = (outputs or inputs).strip("()").split(", ")
    number = "0.0" if "f32" in zero else "0"
    constant = f"  %zero = stablehlo.constant dense<{number}> : {zero}\n" if zero else ""
    arguments = {name: type_ for name, type_ in zip(operands, given, strict=True) if name != "%zero"}
    several, returned = len(results) > 1, ", ".join(f"%r#{k}" for k in range(len(results)))
    quoted = op if op.startswith(('"', "chlo")) else f"stablehlo.{op}"
    module = parse(f"func.func @f({', '.join(f'{name}: {type_}' for name, type_ in arguments.items())}) -> "
                   f"({', '.join(results)}) {{\n{constant}  %r{f':{len(results)}' * several} = {quoted} : {types}\n"
                   f"  return {returned if several else '%r'} : {', '.join(results)}\n}}")
    held, = module.mlir.body.operations
    *_, made, _ = held.regions[0].blocks[0].operations
    return module, made.operation


def arrays(op: ir.Operation, seed: int = 0, indices: range = range(-2, 6)) -> list[np.ndarray]:
    """An operand each: floats that are different whole numbers, small integers that may be indices, booleans."""
    rng = np.random.default_rng(seed)
    made, start = [], 1
    for value in op.operands:
        dtype, shape = dtype_of(value.type), tuple(ir.RankedTensorType(value.type).shape)
        count = int(np.prod(shape))
        maker = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if maker is not None and maker.name == "stablehlo.constant":
            made.append(np.zeros(shape, dtype))
        elif dtype.kind == "f":
            made.append((rng.permutation(count) + start).reshape(shape).astype(dtype))
            start += count
        elif dtype.kind == "b":
            made.append(rng.integers(0, 2, shape).astype(bool))
        else:
            made.append(rng.integers(indices.start, indices.stop, shape).astype(dtype))
    return made


def gather(offset: str, collapsed: str, sizes: str, types: str, mapped: str = "0", vector: int = 1, batch: str = "",
           indices: str = "") -> str:
    """The line of a ``gather``."""
    return (f'"stablehlo.gather"(%a, %b) <{{dimension_numbers = #stablehlo.gather<offset_dims = [{offset}], '
            f"collapsed_slice_dims = [{collapsed}], operand_batching_dims = [{batch}], start_indices_batching_dims = "
            f"[{indices}], start_index_map = [{mapped}], index_vector_dim = {vector}>, slice_sizes = array<i64: {sizes}>"
            f"}}> : {types}")


def scatter(window: str, inserted: str, types: str, mapped: str = "0", vector: int = 1, batch: str = "",
            indices: str = "", into: str = "%a", by: str = SUM) -> str:
    """The line of a ``scatter``."""
    rest = "%a, %b" if into == "%zero" else "%b, %c"
    return (f'"stablehlo.scatter"({into}, {rest}) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = '
            f"[{window}], inserted_window_dims = [{inserted}], input_batching_dims = [{batch}], "
            f"scatter_indices_batching_dims = [{indices}], scatter_dims_to_operand_dims = [{mapped}], index_vector_dim = "
            f"{vector}>}}> {by} : {types}")
