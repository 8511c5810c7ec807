"""Ops of generated programs that change shapes, and linear algebra: what they draw, and the shape that results."""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from hlorewrite.rules.syntax import ast


class NotGenerated(Exception):
    """A pattern is of a kind no program is generated for, or what was drawn does not fit together."""


class DoesNotFit(Exception):
    """The drawn values make no program; another seed may."""


@dataclass(frozen=True)
class Tensor:
    """A value of a program: its name, shape and element type."""

    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        """The type as MLIR writes it."""
        return "tensor<" + "".join(f"{size}x" for size in self.shape) + f"{self.element}>"


class ShapeWriters:
    """Writers of ops, one ``_write_NAME`` each; the class that inherits draws attributes and holds the lines."""

    chosen: random.Random
    lines: list[str]

    def _attribute(self, pattern: ast.OpPattern, name: str, draw: Callable[[], str]) -> str:
        raise NotImplementedError

    def _line(self, short: str, operands: list[Tensor], attributes: str, shape: tuple[int, ...],
              element: str = "") -> Tensor:
        """Appends an op in generic form; the element type is that of its first operand unless given."""
        result = Tensor(f"%v{len(self.lines)}", shape, element or operands[0].element)
        self.lines.append(f'{result.name} = "stablehlo.{short}"({", ".join(o.name for o in operands)}) {{{attributes}}}'
                          f' : ({", ".join(o.type for o in operands)}) -> {result.type}')
        return result

    def _integers(self, pattern: ast.OpPattern, name: str, drawn: list[int]) -> list[int]:
        """An attribute of as many integers as were drawn."""
        text = self._attribute(pattern, name, lambda: _array(drawn))
        integers = [int(word) for word in re.findall(r"-?\d+", text.partition(":")[2])]
        if len(integers) != len(drawn):
            raise DoesNotFit
        return integers

    def _write_transpose(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        shape = operands[0].shape
        order = self._integers(pattern, "permutation", self.chosen.sample(range(len(shape)), len(shape)))
        if sorted(order) != list(range(len(shape))):
            raise DoesNotFit
        return self._line(short, operands, f"permutation = {_array(order)}", tuple(shape[d] for d in order))

    def _write_reshape(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        """Flat, cut in two, with a dimension of one, or as it was."""
        shape = operands[0].shape
        forms = [(math.prod(shape),), (1, *shape), shape]
        if shape and shape[0] % 2 == 0:
            forms.append((2, shape[0] // 2, *shape[1:]))
        return self._line(short, operands, "", self.chosen.choice(forms))

    def _write_slice(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        """A part of one dimension, sometimes every other element."""
        shape = operands[0].shape
        along = self.chosen.randrange(len(shape))
        half, first, step = shape[along] // 2, self.chosen.random() < 0.5, self.chosen.choice((1, 1, 2))
        starts = [0 if d != along or first else half for d in range(len(shape))]
        limits = [half if d == along and first else size for d, size in enumerate(shape)]
        strides = [step if d == along else 1 for d in range(len(shape))]
        bounds = {name: self._integers(pattern, name, drawn) for name, drawn in
                  (("start_indices", starts), ("limit_indices", limits), ("strides", strides))}
        if min(bounds["strides"]) < 1:
            raise DoesNotFit
        cut = tuple(-(-(limit - start) // stride) for start, limit, stride in zip(*bounds.values(), strict=True))
        if min(cut) < 1:
            raise DoesNotFit
        return self._line(short, operands, ", ".join(f"{k} = {_array(v)}" for k, v in bounds.items()), cut)

    def _write_fft(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        """A transform over the last dimension, of the kind that the elements allow."""
        shape, element = operands[0].shape, operands[0].element
        kinds = {"f32": ("RFFT",), "complex<f32>": ("FFT", "IFFT", "IRFFT")}.get(element)
        if not kinds or shape[-1] < 2:
            raise DoesNotFit
        drawn = f"#stablehlo<fft_type {self.chosen.choice(kinds)}>"
        kind = self._attribute(pattern, "fft_type", lambda: drawn)
        if kind not in {f"#stablehlo<fft_type {name}>" for name in kinds}:
            raise DoesNotFit
        long = shape[-1] if "IRFFT" not in kind else 2 * (shape[-1] - 1)
        (long,) = self._integers(pattern, "fft_length", [long])
        last = long // 2 + 1 if " RFFT" in kind else long
        return self._line(short, operands, f"fft_type = {kind}, fft_length = {_array([long])}", (*shape[:-1], last),
                          {"f32": "complex<f32>"}.get(element, "f32" if "IRFFT" in kind else element))

    def _write_triangular_solve(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        matrix, right = operands
        if len(matrix.shape) != 2 or matrix.type != right.type or matrix.element not in ("f32", "f64"):
            raise DoesNotFit
        flags = [f"{name} = {self._attribute(pattern, name, lambda: self.chosen.choice(('true', 'false')))}"
                 for name in ("left_side", "lower", "unit_diagonal")]
        transposed = self._attribute(pattern, "transpose_a", lambda: "#stablehlo<transpose NO_TRANSPOSE>")
        return self._line(short, operands, ", ".join([*flags, f"transpose_a = {transposed}"]), right.shape)


def _array(numbers: list[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>"
