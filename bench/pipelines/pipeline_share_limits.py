"""What each limit of the pass share-fragments does to the T5 of pipeline_compile.py: fusions, fragments and calls.

    python bench/pipelines/pipeline_share_limits.py
    python bench/pipelines/pipeline_share_limits.py --layers 2 --only least

One limit at a time is set to other values. ``fusions`` are those of all executables that differ, which compiling takes
as long as; ``fragments`` are functions; ``calls`` are made in each micro-batch, which a step takes as long as;
``between`` are the bytes that lie between pieces and did not lie between fragments before, as a share of all values'.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parent))

import jax
from pipeline_compile import ROWS, SEQ, init, step

import hlorewrite
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.mpmd.program import FragmentCall, read_program
from hlorewrite.pipelines.mpmd.types import device_bytes
from hlorewrite.pipelines.passes.share_fragments import ShareFragments, share_fragments

VALUES = {"least": (4, 8, 16, 32, 64, 128), "extra": (0.0, 0.05, 0.1, 0.2, 0.5, 10.0),
          "growth": (0.0, 0.1, 0.2, 0.4, 0.8, 10.0)}
DEFAULTS = {"least": ShareFragments.least, "extra": share_fragments.EXTRA, "growth": share_fragments.GROWTH}


@contextmanager
def limits(values: dict[str, float]) -> Iterator[None]:
    """The pass with other limits while the body runs."""
    share_fragments.EXTRA, share_fragments.GROWTH = values["extra"], values["growth"]
    try:
        yield
    finally:
        share_fragments.EXTRA, share_fragments.GROWTH = DEFAULTS["extra"], DEFAULTS["growth"]


def fusions(driver: Any) -> int:
    """Fusions and calls of libraries in executables that differ."""
    texts = (each.as_text() for each in driver._fragments._known.values())
    bodies = {re.sub(r", metadata=\{[^}]*\}|%[\w.-]+", "", text[text.index("ENTRY"):]) for text in texts}
    return sum(body.count(" fusion(") + body.count(" custom-call(") for body in bodies)


def measured(lowered: Any, values: dict[str, float], known: dict[str, int]) -> dict[str, float]:
    """What becomes of a step under some limits; programs that were compiled before are not compiled again."""
    module = lowered.module.clone()
    whole = read_program(module)
    with limits(values):
        run_passes(module, [ShareFragments(least=int(values["least"]))], PassContext())
    program, text = read_program(module), module.text()
    if text not in known:
        from hlorewrite.pipelines.runtime.driver import PipelineDriver
        known[text] = fusions(PipelineDriver(module, lowered.settings.meshes.by_name()))
    calls = [each for each in program.body if isinstance(each, FragmentCall)]
    between, every = (sum(device_bytes(kind, each.meshes[kind.mesh]) for kind in each.types)
                      for each in (program, whole))
    return {"fusions": known[text], "fragments": len({each.callee for each in program.steps
                                                      if isinstance(each, FragmentCall)}),
            "calls": len(calls), "between": round(between / every - 1, 4)}


def main() -> None:
    """Prints a line of JSON for each value of each limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, default=4, help="of the encoder, and of the decoder")
    parser.add_argument("--layers", type=int, default=1, help="of each stage")
    parser.add_argument("--only", choices=sorted(VALUES))
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2 * args.stages)
    params = jax.eval_shape(lambda: init(args.stages, args.layers))
    tokens = jax.ShapeDtypeStruct((ROWS, SEQ), "int32")
    lowered = hlorewrite.pipeline(step, meshes=[(1,)] * (2 * args.stages)).lower(params, (tokens, tokens))
    known: dict[str, int] = {}
    for name, value in itertools.chain.from_iterable(
            ((name, value) for value in values) for name, values in VALUES.items() if args.only in (None, name)):
        print(json.dumps({name: value} | measured(lowered, DEFAULTS | {name: value}, known)), flush=True)


if __name__ == "__main__":
    main()
