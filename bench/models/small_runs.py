"""MaxText at a small size on eight CPU devices, plain and under ``hlorewrite exec``: the same losses, and a restart.

    python bench/models/small_runs.py --python PYTHON_WITH_MAXTEXT [--only REGEX] [--steps 50]

The Python of ``--python`` has MaxText and hlorewrite. Each layout trains in f32 for ``--steps`` steps, once plain and
once under ``exec``; then both stop halfway with a checkpoint, and go on from it. The command fails where losses differ
by more than 1e-5 of their size, or where nothing was rewritten.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from trainers import SMALL_MAXTEXT

TOLERANCE = 1e-5
MODEL = (*SMALL_MAXTEXT, "weight_dtype=float32", "matmul_precision=highest", "learning_rate=1e-3", "remat_policy=full",
         "enable_tensorboard=False", "log_config=False")
LAYOUTS = {
    "dp": ("ici_data_parallelism=8", "ici_fsdp_parallelism=1", "per_device_batch_size=4",
           "gradient_accumulation_steps=2"),
    "fsdp": ("ici_data_parallelism=1", "ici_fsdp_parallelism=8", "per_device_batch_size=4",
             "gradient_accumulation_steps=2"),
    "fsdp tp": ("ici_data_parallelism=1", "ici_fsdp_parallelism=4", "ici_tensor_parallelism=2",
                "per_device_batch_size=4", "gradient_accumulation_steps=2"),
    "ep": ("ici_data_parallelism=1", "ici_fsdp_parallelism=2", "ici_expert_parallelism=4", "per_device_batch_size=4",
           "decoder_block=mixtral", "base_moe_mlp_dim=128", "num_experts=4", "num_experts_per_tok=2",
           "sparse_matmul=False", "megablox=False", "capacity_factor=1.25"),
    "pipeline": ("ici_data_parallelism=1", "ici_fsdp_parallelism=2", "ici_pipeline_parallelism=4",
                 "per_device_batch_size=4", "num_pipeline_microbatches=8", "num_layers_per_pipeline_stage=1"),
}

_TRAIN = """
import os, sys
import maxtext
from absl import app
from maxtext.trainers.pre_train import train
sys.argv[1:1] = [os.path.join(os.path.dirname(maxtext.__file__), "configs", "base.yml")]
app.run(train.main)
"""


@dataclass(frozen=True)
class SmallRun:
    """One training run.

    Attributes:
      losses: by step.
      report: what ``exec`` says about the modules; empty without it.
    """

    losses: dict[int, float]
    report: str = ""


def main() -> int:
    """Prints a row for each layout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", required=True, help="of an environment with MaxText and hlorewrite")
    parser.add_argument("--only", default="", metavar="REGEX", help="layouts in whose name this is found")
    parser.add_argument("--steps", type=int, default=50, help="of each run (default: 50)")
    args = parser.parse_args()
    failed = False
    print(f"{'layout':<10}{'steps':>6}  {'last loss':>10}  {'largest difference':>18}  {'after a restart':>15}  "
          "what exec says")
    for name in (each for each in LAYOUTS if re.search(args.only, each)):
        with tempfile.TemporaryDirectory() as folder:
            plain = trained(args.python, name, Path(folder) / "plain", args.steps, rewritten=False)
            ours = trained(args.python, name, Path(folder) / "ours", args.steps, rewritten=True)
            trained(args.python, name, Path(folder) / "again", args.steps // 2, rewritten=True, checkpoints=True)
            again = trained(args.python, name, Path(folder) / "again", args.steps, rewritten=True, checkpoints=True)
        apart, restarted = difference(plain, ours), difference(plain, again)
        sentence = next((line for line in ours.report.splitlines() if "train_step" in line), "nothing")
        failed |= max(apart, restarted) > TOLERANCE or min(again.losses) == 0 or "rewritten" not in sentence
        print(f"{name:<10}{len(ours.losses):>6}  {ours.losses[max(ours.losses)]:>10.5f}  {apart:>18.1e}  "
              f"{restarted:>15.1e}  {' '.join(sentence.split())}", flush=True)
    return 1 if failed else 0


def difference(one: SmallRun, other: SmallRun) -> float:
    """The largest relative difference of losses of the same steps."""
    both = one.losses.keys() & other.losses.keys()
    return max(abs(one.losses[step] - other.losses[step]) / abs(one.losses[step]) for step in both)


def trained(python: str, layout: str, folder: Path, steps: int, *, rewritten: bool, checkpoints: bool = False
            ) -> SmallRun:
    """Trains.

    Args:
      python: the interpreter.
      layout: a name of ``LAYOUTS``.
      folder: for output; a run that finds a checkpoint there goes on from it.
      steps: how many steps there are in all.
      rewritten: whether it runs under ``exec``.
      checkpoints: whether a checkpoint is written at half of the steps and at the end.

    Raises:
      RuntimeError: the run failed: its last lines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    metrics, report = folder / f"metrics{steps}.jsonl", folder / "report.txt"
    given = [f"run_name={layout.replace(' ', '-')}", f"base_output_directory={folder}", f"steps={steps}",
             f"metrics_file={metrics}", f"enable_checkpointing={checkpoints}", "async_checkpointing=False",
             f"checkpoint_period={max(steps // 2, 1)}", "learning_rate_schedule_steps=100", *MODEL,
             *LAYOUTS[layout]]
    train = [python, "-c", _TRAIN, *given]
    words = [python, "-m", "hlorewrite", "exec", "--report", str(report), "--", *train] if rewritten else train
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{layout}: exit code {done.returncode}\n{done.stdout[-3000:]}")
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    losses = {int(row["step"]): float(row["learning/loss"]) for row in rows if "learning/loss" in row}
    return SmallRun(losses, report.read_text() if rewritten else "")


if __name__ == "__main__":
    sys.exit(main())
