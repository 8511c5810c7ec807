"""The self-test of ``hlorewrite doctor``: what the doctor runs in a separate process, where XLA may crash or hang.

Each step is announced and answered by one line of JSON on standard output, so that the reader sees how far it came.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import HlorewriteError

COMMAND = (sys.executable, "-m", __name__)
"""Runs the self-test; ``--described`` adds the step that needs the CUDA plug-in."""
SECONDS = 10.0
"""No step begins later than this."""
STEP = """
module @accumulate attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%rows: tensor<4x2x3xf32>) -> tensor<3xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %none = stablehlo.constant dense<0.0> : tensor<3xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %all:3 = stablehlo.while(%i = %first, %total = %none, %batches = %rows)
        : tensor<i32>, tensor<3xf32>, tensor<4x2x3xf32>
      cond {
        %count = stablehlo.constant dense<4> : tensor<i32>
        %more = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %start = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %batch = stablehlo.dynamic_slice %batches, %i, %start, %start, sizes = [1, 2, 3]
            : (tensor<4x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
        %grad = stablehlo.reduce(%batch init: %zero) applies stablehlo.add across dimensions = [0, 1]
            : (tensor<1x2x3xf32>, tensor<f32>) -> tensor<3xf32>
        %sum = "stablehlo.all_reduce"(%grad) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<3xf32>) -> tensor<3xf32>
        %next = stablehlo.add %total, %sum : tensor<3xf32>
        %after = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %after, %next, %batches : tensor<i32>, tensor<3xf32>, tensor<4x2x3xf32>
      }
    return %all#1 : tensor<3xf32>
  }
}
"""
"""A loop that reduces in each of four iterations, for two devices."""


@dataclass
class SelfTest:
    """The steps, and what later ones need from earlier ones."""

    before: Any = None
    after: Any = None

    def devices(self) -> str:
        """The devices that JAX finds."""
        import jax

        from hlorewrite.jaxbridge.xla import private

        with private.quiet_plugins():
            found = jax.devices()
        return f"{len(found)} x {found[0].device_kind} ({found[0].platform})"

    def parse(self) -> str:
        """Reads a module."""
        from hlorewrite.ir import parse

        self.before = parse(STEP, name="self-test")
        return "a loop with an all-reduce, for 2 devices"

    def rewrite(self) -> str:
        """Moves the reduction out of its loop."""
        from hlorewrite.passmanager.base import PassContext
        from hlorewrite.passmanager.manager import run_passes
        from hlorewrite.passmanager.spec import parse_pipeline

        self.after = self.before.clone()
        if not run_passes(self.after, parse_pipeline("comm-shift"), PassContext()):
            raise HlorewriteError("comm-shift left the all-reduce in its loop", hint="report it")
        return "comm-shift: 4 all-reduces before, 1 now"

    def run(self) -> str:
        """Runs the module before and after on CPU devices, and compares the values."""
        from hlorewrite.jaxbridge.xla.execute import verify
        from hlorewrite.jaxbridge.xla.target import parse_target

        if not verify(self.before, self.after, parse_target("cpu:2")).equal:
            raise HlorewriteError("the values differ", hint="report it, with the output of `hlorewrite doctor --json`")
        return "compiled for 2 CPU devices, equal values"

    def described(self) -> str:
        """Compiles for a GPU that need not be present."""
        from hlorewrite.jaxbridge.xla.compile_for import compile_for
        from hlorewrite.jaxbridge.xla.target import parse_target

        made = compile_for(self.after, parse_target("h200:1x2"))
        return f"compiled for {made.target}"


STEPS = ("devices", "parse", "rewrite", "run", "described")


def main(described: bool) -> None:
    """Runs the steps; ``described`` is left out if the plug-in is not installed."""
    begun, test = time.monotonic(), SelfTest()
    for name in STEPS if described else STEPS[:-1]:
        if time.monotonic() - begun > SECONDS:
            _say(step=name, late=True)
            continue
        _say(step=name)
        _answer(name, getattr(test, name))


def _answer(name: str, step: Callable[[], str]) -> None:
    began = time.monotonic()
    try:
        done = step()
    except HlorewriteError as error:
        _say(step=name, failed=error.what, hint=error.hint or "")
    except Exception as error:  # whatever an installation that does not fit raises
        first = (str(error).strip().splitlines() or [""])[0]
        _say(step=name, failed=f"{type(error).__name__}: {first}", hint="")
    else:
        _say(step=name, done=done, seconds=round(time.monotonic() - began, 2))


def _say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(described="--described" in sys.argv)
