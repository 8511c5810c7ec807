"""Stages that ``stages="auto"`` chooses next to the best of all hand cuts between blocks, both simulated.

    python bench/pipelines/pipeline_auto_stages.py                    # every model and target
    python bench/pipelines/pipeline_auto_stages.py --model unet --most 40

Hand cuts are all cuts between the blocks of a model, the layers of a scanned one; of more than ``--most``, as many
evenly spread ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "pipelines"))

import jax
from pipeline_models import BlockModel, ScannedGpt, gpt, moe_gpt, t5, unet

import hlorewrite
from hlorewrite.errors import HlorewriteError

MODELS: dict[str, Any] = {
    "gpt": lambda: gpt(8, 1024, 8, 512), "scanned": lambda: ScannedGpt(8, 1024, 8, 512, 8192),
    "scanned-remat": lambda: ScannedGpt(8, 1024, 8, 512, 8192, remat=True), "moe": lambda: moe_gpt(6, 1024, 8, 8, 512),
    "t5": lambda: t5(4, 1024, 8, 512), "unet": lambda: unet(4, 64, 8, 128)}
MESHES = {"equal": [(2,)] * 4, "unequal": [(4,), (2,), (1,), (1,)]}
TOPOLOGY = "h200"


def seconds(model: BlockModel | ScannedGpt, meshes: list[tuple[int]], schedule: str,
            cuts: tuple[int, ...] | None) -> float:
    """A simulated step with hand cuts, or with chosen ones."""
    pipelined = hlorewrite.pipeline(model.step(cuts or ()), meshes=meshes, schedule=schedule, passes="",
                                    topology=TOPOLOGY, stages="auto" if cuts is None else "marked", donate_argnums=0)
    return pipelined.lower(*jax.eval_shape(model.init)).simulate().iteration_time_s


def compared(name: str, meshes: list[tuple[int]], schedule: str, most: int) -> dict[str, Any]:
    """Both times of a model."""
    model = MODELS[name]()
    stages = len(meshes)
    every = list(itertools.combinations(range(1, len(model.blocks)), stages - 1))
    chosen = every[:: -(-len(every) // most)]
    began = time.process_time()
    auto = seconds(model, meshes, schedule, None)
    took = time.process_time() - began
    hand: dict[tuple[int, ...], float] = {}
    for cuts in chosen:
        try:
            hand[cuts] = seconds(model, meshes, schedule, cuts)
        except HlorewriteError as error:
            print(cuts, error, file=sys.stderr)
    best = min(hand, key=lambda cuts: hand[cuts])
    return {"model": name, "meshes": meshes, "schedule": schedule, "auto_s": auto, "hand_s": hand[best], "ratio":
            round(auto / hand[best], 4), "hand_cut": best, "hand_cuts": len(hand), "search_cpu_s": round(took, 1)}


def main() -> int:
    """Prints one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=[*MODELS], help="this one only")
    parser.add_argument("--meshes", choices=[*MESHES], help="these only")
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--most", type=int, default=60)
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    for name in [args.model] if args.model else MODELS:
        for meshes in [args.meshes] if args.meshes else MESHES:
            print(json.dumps(compared(name, MESHES[meshes], args.schedule, args.most)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
