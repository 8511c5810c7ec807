"""Short forms for the modules of oracle tests: a manual region, all-reduces and counted loops in few lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

_ALL_REDUCE = re.compile(r"= AR<(\w+)(?:, (\[\[.*?\]\]))?>\(([^)]*)\) : (tensor<(?:[\dx]*x)?(\w+)>)")
_LOOP = re.compile(r"^( *)(%\w+) = LOOP (\S+) \((.*?)\) \{\n(.*?)^\1\} yield (.*?)$", re.MULTILINE | re.DOTALL)

PRELUDE = """\
      %id = stablehlo.partition_id : tensor<ui32>
      %pid = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
      %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
      %one = stablehlo.constant dense<1.0> : tensor<4xf32>
      %i0 = stablehlo.constant dense<0> : tensor<i32>
      %i1 = stablehlo.constant dense<1> : tensor<i32>
      %first = stablehlo.compare EQ, %pid, %i0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %few = stablehlo.compare LT, %n, %i1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
"""


def expand(text: str, groups: str = "[[0, 1]]") -> str:
    """Writes ``AR<kind>(%x) : type`` and ``%r = LOOP trips (%c = %init : type, ...) { ... } yield %next, ...`` out.

    ``%r`` of a loop is its counter, ``%i_r`` within; what it carries follows as ``%r#1``, ``%r#2``...
    """
    while (match := _LOOP.search(text)) is not None:
        text = text[:match.start()] + _loop(*match.groups()) + text[match.end():]

    def all_reduce(match: re.Match[str]) -> str:
        kind, own, operands, of, element = match.groups()
        rows = own or groups
        size = f"{rows.count('[') - 1}x{len(rows.split(']')[0].split(','))}"
        count = operands.count(",") + 1
        types = ", ".join([of] * count)
        return (f'= "stablehlo.all_reduce"({operands}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, '
                f"type = 0>, replica_groups = dense<{rows}> : tensor<{size}xi64>, use_global_device_ids}}> ({{\n"
                f"      ^bb0(%l_: tensor<{element}>, %r_: tensor<{element}>):\n"
                f"        %both_ = stablehlo.{kind} %l_, %r_ : tensor<{element}>\n"
                f"        stablehlo.return %both_ : tensor<{element}>\n"
                f"      }}) : ({types}) -> {types if count == 1 else f'({types})'}")
    return _ALL_REDUCE.sub(all_reduce, text)


def _loop(indent: str, result: str, trips: str, carried: str, body: str, nexts: str) -> str:
    pairs = [part.split(" : ") for part in carried.split(", %")]
    heads = [pairs[0][0], *("%" + pair[0] for pair in pairs[1:])]
    types = ", ".join(["tensor<i32>", *(pair[1] for pair in pairs)])
    bound = f"stablehlo.constant dense<{trips}> : tensor<i32>" if trips.isdigit() else (
        f"stablehlo.add {trips}, {trips}_zero : tensor<i32>")
    before = "" if trips.isdigit() else f"{indent}{trips}_zero = stablehlo.constant dense<0> : tensor<i32>\n"
    tag = result[1:]
    return (f"{before}{indent}%start_{tag} = stablehlo.constant dense<0> : tensor<i32>\n"
            f"{indent}{result}:{len(pairs) + 1} = stablehlo.while(%i_{tag} = %start_{tag}, {', '.join(heads)}) : "
            f"{types}\n"
            f"{indent}cond {{\n{indent}  %b_ = {bound}\n"
            f"{indent}  %lt_ = stablehlo.compare LT, %i_{tag}, %b_ : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"{indent}  stablehlo.return %lt_ : tensor<i1>\n{indent}}} do {{\n{body}"
            f"{indent}  %step_ = stablehlo.constant dense<1> : tensor<i32>\n"
            f"{indent}  %next_ = stablehlo.add %i_{tag}, %step_ : tensor<i32>\n"
            f"{indent}  stablehlo.return %next_, {nexts} : {types}\n{indent}}}")


def region(body: str, out: str, kind: str = "tensor<4xf32>", mesh: tuple[int, ...] = (2,), functions: str = "",
           groups: str | None = None) -> str:
    """A module whose manual region contains a body and returns one value of it, sharded so that all devices are seen.

    The body may read ``%a`` (the same everywhere), ``%s`` (sharded over the whole mesh), ``%c`` (over the first axis
    only), ``%n`` (an integer from 0 to 3, the same everywhere) and what ``PRELUDE`` defines.
    """
    names, total = "xyz"[:len(mesh)], 1
    for size in mesh:
        total *= size
    axes = ", ".join(f'"{name}"' for name in names)
    sizes = ", ".join(f'"{name}"={size}' for name, size in zip(names, mesh, strict=True))
    whole = kind.replace("tensor<4", f"tensor<{4 * total}", 1)
    everywhere = "<@mesh, [" + ", ".join([f"{{{axes}}}", *["{}"] * (kind.count("x") - 1)]) + "]>"
    spread = f"tensor<{4 * total}xf32>"
    half = f"tensor<{4 * mesh[0]}xf32>"
    text = (f"module attributes {{mhlo.num_partitions = {total} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"  sdy.mesh @mesh = <[{sizes}]>\n"
            f"  func.func public @main(%g0: tensor<4xf32>, %g1: {spread}, %g2: {half}, %g3: tensor<i32>) -> {whole} "
            "{\n"
            "    %r = sdy.manual_computation(%g0, %g1, %g2, %g3) in_shardings=[<@mesh, [{}]>, "
            f'<@mesh, [{{{axes}}}]>, <@mesh, [{{"x"}}]>, <@mesh, []>] out_shardings=[{everywhere}] '
            f"manual_axes={{{axes}}} (%a: tensor<4xf32>, %s: tensor<4xf32>, %c: tensor<4xf32>, %n: tensor<i32>) {{\n"
            f"{PRELUDE}{body}      sdy.return {out} : {kind}\n"
            f"    }} : (tensor<4xf32>, {spread}, {half}, tensor<i32>) -> {whole}\n"
            f"    return %r : {whole}\n  }}\n{functions}}}\n")
    return expand(text, groups or str([list(range(total))]))


@pytest.fixture(scope="session")
def make_region() -> Callable[..., str]:
    """``region``, for tests."""
    return region


@pytest.fixture(scope="session")
def here() -> Path:
    """The folder of the oracle tests."""
    return Path(__file__).resolve().parent
