"""A small step and its traces, for tests of the viewer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hlorewrite.cli.main import guarded

_REDUCE = """      {result} = "stablehlo.all_reduce"({operand}) <{{\
channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, \
replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<{shape}xf32>) -> tensor<{shape}xf32> loc("train.py":{line}:7)
"""

STEP = f"""module @step attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%w: tensor<4x1024xf32>) -> (tensor<1024xf32>, tensor<256xf32>) {{
    %out:2 = sdy.manual_computation(%w) in_shardings=[<@mesh, [{{"data"}}, {{}}]>] \
out_shardings=[<@mesh, [{{}}]>, <@mesh, [{{}}]>] manual_axes={{"data"}} (%p: tensor<1x1024xf32>) {{
      %g = stablehlo.reshape %p : (tensor<1x1024xf32>) -> tensor<1024xf32>
      %h = stablehlo.slice %g [0:256] : (tensor<1024xf32>) -> tensor<256xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<1024xf32>
      %small = stablehlo.constant dense<0.0> : tensor<256xf32>
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %c8 = stablehlo.constant dense<8> : tensor<i32>
      %res:3 = stablehlo.while(%i = %c0, %a = %zero, %b = %small) : tensor<i32>, tensor<1024xf32>, tensor<256xf32>
      cond {{
        %more = stablehlo.compare LT, %i, %c8 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      }} do {{
{_REDUCE.format(result="%r", operand="%g", shape=1024, line=31)}
        %next = stablehlo.add %a, %r : tensor<1024xf32>
        %mixed = stablehlo.add %b, %h : tensor<256xf32>
{_REDUCE.format(result="%q", operand="%mixed", shape=256, line=35)}
        %bent = stablehlo.tanh %q : tensor<256xf32> loc("train.py":36:7)
        %j = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %j, %next, %bent : tensor<i32>, tensor<1024xf32>, tensor<256xf32>
      }} loc("train.py":30:5)
      sdy.return %res#1, %res#2 : tensor<1024xf32>, tensor<256xf32>
    }} : (tensor<4x1024xf32>) -> (tensor<1024xf32>, tensor<256xf32>)
    return %out#0, %out#1 : tensor<1024xf32>, tensor<256xf32>
  }}
}}
"""
"""Two reductions in a loop of eight: the first moves out, the second feeds a tanh and stays."""


def traced(folder: Path, text: str = STEP, passes: str = "comm-shift", *more: str) -> Path:
    """The trace of a run of ``opt``."""
    (folder / "step.mlir").write_text(text)
    words = ["opt", str(folder / "step.mlir"), f"--pass={passes}", f"--trace={folder / 'run'}", "-o",
             str(folder / "out.mlir"), *more]
    assert guarded(words) == 0
    return folder / "run"


def simulated(folder: Path) -> Path:
    """A trace directory with the timeline of a simulated step."""
    words = ["pipeline", "simulate", "--stages", "3", "--microbatches", "4", "--fwd", "1ms", "--act-bytes", "64MB",
             "--grad-bytes", "64MB", "--meshes", "(2x1),(2x1),(2x1)", "--topology", "h200", "--trace", str(folder)]
    assert guarded(words) == 0
    return folder


def content(folder: Path, name: str) -> Any:
    """A JSON file of a trace, or the lines of a ``*.jsonl`` file."""
    text = (folder / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)
