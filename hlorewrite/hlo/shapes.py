"""Shapes of HLO text: element types, sizes and bytes."""

import functools
import re
from math import prod

_BITS = {"pred": 8, "s1": 1, "u1": 1, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16,
         "s32": 32, "u32": 32, "s64": 64, "u64": 64, "f4e2m1fn": 4, "f16": 16, "bf16": 16, "f32": 32, "f64": 64,
         "c64": 64, "c128": 128}
_ARRAY = re.compile(r"\b([a-z]+[0-9]*(?:e[0-9]+m[0-9]+[a-z0-9]*)?)\[([0-9,<=]*)\]")
_CACHED, _CACHED_TUPLES = 1 << 16, 64
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{},]')


@functools.lru_cache(maxsize=_CACHED)
def arrays(shape: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The arrays of a shape, those of a tuple in order.

    Args:
      shape: text such as ``f32[8,128]{1,0}`` or ``(bf16[4], s32[])``.

    Returns:
      (element type, sizes of the dimensions) of each; a bounded dynamic dimension counts at its bound.

    Example:
      >>> arrays("(f32[8,128]{1,0}, pred[])")
      (('f32', (8, 128)), ('pred', ()))
    """
    return tuple((dtype, tuple(int(d.lstrip("<=")) for d in dims.split(",") if d))
                 for dtype, dims in _ARRAY.findall(shape) if element_bits(dtype))


def element_bits(dtype: str) -> int:
    """Bits of one element; 0 for tokens and opaque values."""
    return _BITS.get(dtype, 8 if dtype.startswith("f8") else 0)


@functools.lru_cache(maxsize=_CACHED)
def shape_bytes(shape: str) -> int:
    """Bytes of an HLO shape, tuples summed; tokens and opaque values count nothing.

    Args:
      shape: text such as ``f32[8,128]{1,0}`` or ``(bf16[4], s32[])``.

    Returns:
      Bytes; a bounded dynamic dimension counts at its bound.

    Example:
      >>> shape_bytes("(f32[8,128]{1,0}, bf16[4]{0}, pred[])")
      4105
    """
    return sum(-(-element_bits(dtype) * prod(dims) // 8) for dtype, dims in arrays(shape))


@functools.lru_cache(maxsize=_CACHED)
def shape_elements(shape: str) -> int:
    """Elements of a shape, tuples summed.

    Args:
      shape: text of a shape.

    Returns:
      Elements.

    Example:
      >>> shape_elements("(f32[8,128]{1,0}, pred[])")
      1025
    """
    return sum(prod(dims) for _, dims in arrays(shape))


@functools.lru_cache(maxsize=_CACHED_TUPLES)
def tuple_parts(shape: str) -> tuple[str, ...]:
    """The shapes in a tuple's shape.

    Loops carry tuples of thousands of values, and each value that is taken from one asks for the parts.

    Example:
      >>> tuple_parts("(s32[], /*index=1*/f32[8,8]{1,0}, (f32[2]{0}, u32[]))")
      ('s32[]', 'f32[8,8]{1,0}', '(f32[2]{0}, u32[])')
    """
    return tuple(split_top(re.sub(r"/\*.*?\*/", "", shape)[1:-1]))


def result_shapes(shape: str) -> tuple[str, ...]:
    """The shapes of the results of an instruction: those of a tuple's elements, otherwise the only one.

    Example:
      >>> result_shapes("f32[8]{0}"), result_shapes("(f32[8]{0}, s32[])")
      (('f32[8]{0}',), ('f32[8]{0}', 's32[]'))
    """
    return tuple_parts(shape) if shape.startswith("(") else (shape,)


def split_top(text: str) -> list[str]:
    """The parts between commas outside brackets and strings.

    Example:
      >>> split_top('slice={[0:2], [1:3]}, name="a, b"')
      ['slice={[0:2], [1:3]}', 'name="a, b"']
    """
    parts, depth, start = [], 0, 0
    for match in _MARK.finditer(text):
        mark = match[0]
        depth += (mark in "([{") - (mark in ")]}")
        if mark == "," and depth == 0:
            parts.append(text[start:match.start()].strip())
            start = match.end()
    return [part for part in (*parts, text[start:].strip()) if part]
