"""Well-formed ops for checking linearity facts: their text, operand types and result type."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

REDUCERS = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


@dataclass(frozen=True)
class Form:
    """One way to write an op.

    Attributes:
      name: the op.
      text: the op with ``{0}``, ``{1}``... for its operands, without results.
      operands: their types.
      result: the result type.
    """

    name: str
    text: str
    operands: tuple[str, ...]
    result: str


def tensor(element: str, *shape: int) -> str:
    """A tensor type as MLIR writes it.

    Example:
      >>> tensor("f32", 2, 3)
      'tensor<2x3xf32>'
    """
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def generic(name: str, operands: Sequence[str], result: str, attributes: str = "", reducer: str = "") -> Form:
    """An op in generic form; with a reducer, its region combines two elements by that op."""
    region = ""
    if reducer:
        element = operands[0].removeprefix("tensor<").split("x")[-1].removesuffix(">")
        scalar = f"tensor<{element}>"
        region = (f" ({{{{^bb0(%x: {scalar}, %y: {scalar}): %z = stablehlo.{reducer} %x, %y : {scalar} "
                  f"stablehlo.return %z : {scalar}}}}})")
    places = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    text = f'"stablehlo.{name}"({places}){region} {{{{{attributes}}}}} : ({", ".join(operands)}) -> {result}'
    return Form(f"stablehlo.{name}", text, tuple(operands), result)


_GATHER = ("dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
           "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>")
_SCATTER = ("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")
_DOT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
_CONVOLUTION = ("dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, "
                "feature_group_count = 1 : i64")
_TRIANGULAR = ("left_side = true, lower = true, unit_diagonal = false, "
               "transpose_a = #stablehlo<transpose NO_TRANSPOSE>")


def forms() -> list[Form]:
    """Every form there is: float, integer and truth-valued elements if the op takes them."""
    instances: list[Form] = []
    for element in ("f32", "i32", "i1", "bf16"):
        v, m, s = tensor(element, 4), tensor(element, 4, 4), tensor(element)
        instances += _elementwise(element, v) + _moving(element, v, m, s)
        instances += [generic("reduce", [m, s], v, "dimensions = array<i64: 0>", op) for op in REDUCERS.values()]
        instances += [generic("reduce_window", [v, s], tensor(element, 3), "window_dimensions = array<i64: 2>", op)
                      for op in REDUCERS.values()]
        instances += [generic("scatter", [m, tensor("i32", 2, 1), tensor(element, 2, 4)], m, _SCATTER, op)
                      for op in REDUCERS.values()]
        instances.append(generic("gather", [m, tensor("i32", 2, 1)], tensor(element, 2, 4), _GATHER))
        instances += [generic("convert", [v], tensor(to, 4)) for to in ("f32", "f64", "bf16", "i32", "i8", "i1")]
    v, m, z = tensor("f32", 4), tensor("f32", 4, 4), tensor("complex<f32>", 4)
    instances += [generic("real", [z], v), generic("imag", [z], v), generic("complex", [v, v], z),
                  generic("dot_general", [m, m], m, _DOT),
                  generic("dot_general", [m, m], tensor("bf16", 4, 4), _DOT),
                  *(generic("dot_general", [tensor("i8", 4, 4)] * 2, tensor(to, 4, 4), _DOT) for to in ("i8", "i32")),
                  *(generic("convolution", [tensor("i8", 1, 4, 2), tensor("i8", 2, 2, 3)], tensor(to, 1, 3, 3),
                            _CONVOLUTION) for to in ("i8", "i32")),
                  generic("convolution", [tensor("f32", 1, 4, 2), tensor("f32", 2, 2, 3)], tensor("f32", 1, 3, 3),
                          _CONVOLUTION),
                  generic("triangular_solve", [m, m], m, _TRIANGULAR)]
    instances += [generic("fft", [operand], result,
                          f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: 4>")
                  for kind, operand, result in (("FFT", z, z), ("IFFT", z, z), ("RFFT", v, tensor("complex<f32>", 3)),
                                                ("IRFFT", tensor("complex<f32>", 3), v))]
    return instances


def _elementwise(element: str, v: str) -> list[Form]:
    binary = ["add", "multiply", "maximum", "minimum", "and", "or", "subtract", "divide"]
    return [*(generic(name, [v, v], v) for name in binary), generic("negate", [v], v),
            generic("clamp", [v, v, v], v), generic("select", [tensor("i1", 4), v, v], v)]


def _moving(element: str, v: str, m: str, s: str) -> list[Form]:
    pad = "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 1>"
    cut = "start_indices = array<i64: 1>, limit_indices = array<i64: 3>, strides = array<i64: 1>"
    return [generic("reshape", [v], tensor(element, 2, 2)),
            generic("transpose", [m], m, "permutation = array<i64: 1, 0>"),
            generic("broadcast_in_dim", [v], tensor(element, 2, 4), "broadcast_dimensions = array<i64: 1>"),
            generic("slice", [v], tensor(element, 2), cut), generic("reverse", [v], v, "dimensions = array<i64: 0>"),
            generic("concatenate", [v, v], tensor(element, 8), "dimension = 0 : i64"),
            generic("pad", [v, s], tensor(element, 9), pad),
            generic("dynamic_slice", [v, tensor("i32")], tensor(element, 2), "slice_sizes = array<i64: 2>"),
            generic("dynamic_update_slice", [v, tensor(element, 2), tensor("i32")], v)]


def element_of(kind: str) -> str:
    """The element type of a tensor type as text."""
    return "complex<f32>" if "complex" in kind else kind.removeprefix("tensor<").split("x")[-1].removesuffix(">")


def constant(kind: str, seed: int) -> str:
    """A constant of a type, whose numbers are chosen so that none is the identity of a reduction."""
    dimensions = kind.removeprefix("tensor<").split("complex")[0].split("x")[:-1]
    shape = [int(n) for n in dimensions]
    generator, element = np.random.default_rng(seed), element_of(kind)
    if element == "i1":
        values = np.array(generator.integers(0, 2, shape)).astype(bool).tolist()
        return f"dense<{str(values).lower()}> : {kind}"
    if element.startswith("i"):  # sums of 8 bits wrap around
        low, below = (100, 128) if element == "i8" else (1, 3)
        return f"dense<{np.array(generator.integers(low, below, shape)).tolist()}> : {kind}"
    numbers = np.array(generator.integers(1, 9, shape)) / 4
    if "complex" in kind:
        pairs = ", ".join(f"({x}, {y})" for x, y in zip(numbers, numbers[::-1], strict=True))
        return f"dense<[{pairs}]> : {kind}"
    return f"dense<{numbers.tolist()}> : {kind}"


def identity(kind: str, reduction: str) -> str | None:
    """A constant filled with the identity of a reduction; None if there is none to write."""
    element = element_of(kind)
    if element == "i1":
        return f"dense<{'true' if reduction in ('and', 'min', 'product') else 'false'}> : {kind}"
    table = {"sum": "0", "or": "0", "product": "1", "and": "-1"}
    if element.startswith("i"):
        bits = int(element[1:])
        table |= {"max": str(-(2 ** (bits - 1))), "min": str(2 ** (bits - 1) - 1)}
        return f"dense<{table[reduction]}> : {kind}"
    if "complex" in element or reduction in ("and", "or"):
        return None
    infinity = {"f32": ("0xFF800000", "0x7F800000"), "bf16": ("0xFF80", "0x7F80")}.get(element)
    if infinity is None:
        return None
    text = {"sum": "0.0", "product": "1.0", "max": infinity[0], "min": infinity[1]}[reduction]
    return f"dense<{text}> : {kind}"
