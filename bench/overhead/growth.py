"""How the time of each subcommand grows with its input: exponents, from ratios in one run.

Each size is a process of its own; the time of the smallest input of a command, which is mostly its start, is taken off.
An exponent above ``MOST`` is a finding: exit code 1. With ``--json`` prints the seconds as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST, LEAST_S = 1.15, 0.25
_GROUPS = "replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add"
_HEAD = """HloModule m, is_scheduled=true, num_partitions=8

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
"""


def chained_hlo(size: int) -> str:
    """All-reduces one after the other, each of its own line."""
    lines, before = [], "p"
    for number in range(size):
        where = f'metadata={{source_file="a.py" source_line={number}}}'
        lines += [f"  %r{number} = f32[64]{{0}} all-reduce(%{before}), {_GROUPS}, {where}",
                  f"  %n{number} = f32[64]{{0}} negate(%r{number})"]
        before = f"n{number}"
    return f"{_HEAD}" + "\n".join(lines) + f"\n  ROOT %out = f32[64]{{0}} copy(%{before})\n}}\n"


def long_hlo(size: int) -> str:
    """All-reduces with a dozen kernels after each: 8 000 of them are 100 000 instructions."""
    lines, before = [], "p"
    for number in range(size):
        lines.append(f"  %r{number} = f32[64]{{0}} all-reduce(%{before}), {_GROUPS}")
        before = f"r{number}"
        for kernel in range(11):
            lines.append(f"  %n{number}.{kernel} = f32[64]{{0}} add(%{before}, %r{number})")
            before = f"n{number}.{kernel}"
    return f"{_HEAD}" + "\n".join(lines) + f"\n  ROOT %out = f32[64]{{0}} copy(%{before})\n}}\n"


def open_hlo(size: int) -> str:
    """Asynchronous all-reduces that are all open at once."""
    lines = [f"  %s{number} = f32[64]{{0}} all-reduce-start(%p), {_GROUPS}" for number in range(size)]
    lines += [f"  %d{number} = f32[64]{{0}} all-reduce-done(%s{number})" for number in range(size)]
    lines += [f"  %n{number} = f32[64]{{0}} add(%{f'n{number - 1}' if number else 'p'}, %d{number})"
              for number in range(size)]
    return f"{_HEAD}" + "\n".join(lines) + f"\n  ROOT %out = f32[64]{{0}} copy(%n{size - 1})\n}}\n"


def linear_web(size: int) -> str:
    """Sums of all-reduces of one value, of which each fourth reads what came before."""
    lines, before = [], "a"
    for number in range(size):
        source = "a" if number % 4 else before
        lines.append(f"""%t{number} = "stablehlo.all_reduce"(%{source}) <{{replica_groups = dense<[[0, 1, 2, 3]]> :
            tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = {number + 1}, type = 1>,
            use_global_device_ids}}> ({{
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %z = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %z : tensor<f32> }}) : (tensor<4xf32>) -> tensor<4xf32>
        %u{number} = stablehlo.add %t{number}, %{before} : tensor<4xf32>""")
        before = f"u{number}"
    return ("module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + "\n".join(lines)
            + f"\nreturn %{before} : tensor<4xf32>\n}}\n}}\n")


def accumulating_hlo(size: int) -> str:
    """A loop that carries many sums, and adds an all-reduce of a carried weight to each."""
    shape = "(" + ", ".join(["s32[]"] + ["f32[64]{0}"] * (2 * size)) + ")"
    lines = [f"  %s = {shape} parameter(0)", "  %i = s32[] get-tuple-element(%s), index=0",
             "  %one = s32[] constant(1)", "  %j = s32[] add(%i, %one)"]
    for number in range(size):
        lines += [f"  %x{number} = f32[64]{{0}} get-tuple-element(%s), index={number + 1}",
                  f"  %w{number} = f32[64]{{0}} get-tuple-element(%s), index={size + number + 1}",
                  f"  %m{number} = f32[64]{{0}} multiply(%w{number}, %w{number})",
                  f"  %r{number} = f32[64]{{0}} all-reduce(%m{number}), {_GROUPS}",
                  f"  %a{number} = f32[64]{{0}} add(%x{number}, %r{number})"]
    made = ", ".join(f"%{kind}{number}" for kind in "aw" for number in range(size))
    entry = f"ENTRY %main (p: f32[64]) -> {shape} {{"
    head = _HEAD.partition("ENTRY")[0]
    return head + f"%body (s: {shape}) -> {shape} {{\n" + "\n".join(lines) + f"""
  ROOT %t = {shape} tuple(%j, {made})
}}

%condition (c: {shape}) -> pred[] {{
  %c = {shape} parameter(0)
  %ci = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(4)
  ROOT %l = pred[] compare(%ci, %n), direction=LT
}}

{entry}
  %p = f32[64]{{0}} parameter(0)
  %z = s32[] constant(0)
  %init = {shape} tuple(%z, {", ".join(["%p"] * (2 * size))})
  ROOT %w = {shape} while(%init), condition=%condition, body=%body
}}
"""


def accumulating_loop(size: int) -> str:
    """A loop that adds many all-reduces of one value, each to a sum of its own."""
    carried = "".join(f", %a{number} = %zero" for number in range(size))
    types = ", ".join(["tensor<i32>"] + ["tensor<4xf32>"] * size)
    body = "\n".join(f"""%r{number} = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1, 2, 3]]> :
            tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = {number + 1}, type = 1>,
            use_global_device_ids}}> ({{
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %z = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %z : tensor<f32> }}) : (tensor<4xf32>) -> tensor<4xf32>
        %s{number} = stablehlo.add %a{number}, %r{number} : tensor<4xf32>""" for number in range(size))
    sums = "".join(f", %s{number}" for number in range(size))
    return f"""module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
func.func public @main(%y: tensor<4xf32>) -> tensor<4xf32> {{
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c4 = stablehlo.constant dense<4> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %w:{size + 1} = stablehlo.while(%i = %c0{carried}) : {types}
  cond {{
    %l = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }} do {{
    %fi = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %bi = stablehlo.broadcast_in_dim %fi, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %x = stablehlo.multiply %y, %bi : tensor<4xf32>
{body}
    %j = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %j{sums} : {types}
  }}
  return %w#1 : tensor<4xf32>
}}
}}
"""


_TRACE = ("opt", "IN", "-O", "comm", "--trace=TRACE", "--no-reproducer", "-o", os.devnull)
Maker = Callable[[int], str]
CASES: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "report of HLO": (chained_hlo, ("report", "IN", "--topology=h200:1x8")),
    "report of open HLO": (open_hlo, ("report", "IN", "--topology=h200:1x8")),
    "report of long HLO": (long_hlo, ("report", "IN", "--topology=h200:1x8")),
    "audit of long HLO": (long_hlo, ("audit", "IN", "--target=h200:1x8")),
    "timeline of long HLO": (long_hlo, ("timeline", "IN", "--target=h200:1x8")),
    "lint of long HLO": (long_hlo, ("lint", "IN")),
    "audit": (chained_hlo, ("audit", "IN", "--target=h200:1x8")),
    "timeline": (open_hlo, ("timeline", "IN", "--target=h200:1x8")),
    "report of StableHLO": (linear_web, ("report", "IN", "--topology=h200:1x4")),
    "opt, all remarks": (linear_web, ("opt", "IN", "-O", "comm", "--remarks=all", "--no-reproducer", "-o", os.devnull)),
    "opt with a trace": (linear_web, _TRACE),
    "view": (linear_web, ("view", "TRACE", "-o", os.devnull)),
    "view as JSON": (linear_web, ("view", "TRACE", "--json")),
    "lint": (linear_web, ("lint", "IN")),
    "audit of sums in a loop": (accumulating_hlo, ("audit", "IN", "--target=h200:1x8")),
    "lint of sums in a loop": (accumulating_loop, ("lint", "IN")),
}


def seconds(make: Maker, words: tuple[str, ...], size: int) -> float:
    """Seconds of the processor that a command takes for an input of a size; of ``view``, without making the trace."""
    with tempfile.TemporaryDirectory() as folder:
        text = make(size)
        path = Path(folder) / ("m.mlir" if text.startswith("module") else "m.hlo")
        path.write_text(text)
        if words[0] == "view":
            _cpu_seconds(_TRACE, folder, path)
        return _cpu_seconds(words, folder, path)


def _cpu_seconds(words: tuple[str, ...], folder: str, path: Path) -> float:
    given = [word.replace("IN", str(path)).replace("TRACE", f"{folder}/trace") for word in words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "hlorewrite", *given], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def exponent(sizes: list[int], taken: list[float]) -> float:
    """The slope in the logarithms up to the last size, the time of the first one taken off.

    It begins with the first size that takes ``LEAST_S`` more than the start of the command: less is noise.

    Example:
      >>> round(exponent([10, 1000, 2000, 8000], [0.5, 0.51, 1.0, 2.5]), 2)
      1.0
    """
    work = [each - taken[0] for each in taken]
    at = next((at for at in range(1, len(sizes) - 1) if work[at] >= LEAST_S), len(sizes) - 1)
    return math.log(work[-1] / work[at]) / math.log(sizes[-1] / sizes[at]) if at < len(sizes) - 1 else 0.0


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 1000, 2000, 4000, 8000], metavar="N",
                        help="the first is taken for the start of the command (10 1000 2000 4000 8000)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains it")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = {}
    for name, (make, words) in CASES.items():
        if args.only in name:
            taken = [seconds(make, words, size) for size in args.sizes]
            rows[name] = {"seconds": dict(zip(map(str, args.sizes), taken, strict=True)),
                          "exponent": exponent(args.sizes, taken)}
            if not args.json:
                print(f"{name:22} " + "  ".join(f"{each:7.2f} s" for each in taken)
                      + f"   n^{rows[name]['exponent']:.2f}", flush=True)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 1 if any(row["exponent"] > MOST for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
