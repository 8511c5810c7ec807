"""Trains with real trainers, with and without ``hlorewrite exec``, and compares: ``make nightly``.

Flax, Equinox and optax are run with this Python. Keras, Levanter and MaxText get virtual environments of their own in
``build/trainers``, with fixed versions; a trainer for which no Python is found is left out, and named. Each line is
what ``examples/trainers/compare.py`` prints.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "trainers"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "examples" / "trainers")]

from compare import compare  # noqa: E402
from versions import find_python  # noqa: E402

KERAS = ("keras==3.15.1", "jax==0.10.2", "jaxlib==0.10.2")
LEVANTER = ("levanter==1.2.dev1644", "haliax==1.4.dev453", "gitpython", "chex", "jax==0.10.2", "jaxlib==0.10.2")
"""The last release that is not a development version imports a module that JAX has dropped; gitpython is not
declared."""
MAXTEXT = tuple(line for line in (ROOT / "bench" / "models" / "maxtext.txt").read_text().splitlines() if line[0] != "#")
"""MaxText declares what it needs for accelerators only; these are what its trainer imports."""
SMALL_MAXTEXT = (
    "dataset_type=synthetic", "base_emb_dim=64", "base_num_query_heads=4", "base_num_kv_heads=4", "head_dim=16",
    "base_mlp_dim=128", "base_num_decoder_layers=4", "vocab_size=256", "max_target_length=64",
    "attention=dot_product", "dtype=float32", "hardware=cpu", "enable_goodput_recording=False",
    "skip_jax_distributed_system=True")
"""A model of MaxText that trains on a CPU in seconds, and what its trainer needs there."""
_MAXTEXT = f"""-m maxtext.trainers.pre_train.{{program}} {{base}} run_name=t base_output_directory={{out}}
{" ".join(SMALL_MAXTEXT)} enable_checkpointing=False per_device_batch_size=4 gradient_accumulation_steps=4 steps=50
ici_data_parallelism={{data}} ici_fsdp_parallelism={{fsdp}}"""


@dataclass(frozen=True)
class TrainerRun:
    """One comparison.

    Attributes:
      name: of the trainer and its layout.
      command: what follows ``python``; ``{base}`` and ``{out}`` are MaxText's configuration and output folder.
      python: the version it needs; empty for this one.
      packages: what its environment gets, next to hlorewrite; empty for this one.
      saves: whether fewer bytes are expected; otherwise as many.
      tolerance: of losses, relative.
      trains: whether it prints losses; otherwise it compiles a step ahead of time and ends.
    """

    name: str
    command: str
    python: str = ""
    packages: tuple[str, ...] = ()
    saves: bool = True
    tolerance: float = 1e-5
    trains: bool = True


def _maxtext(program: str, data: int = 1, fsdp: int = 1) -> str:
    """A small model by MaxText, four micro-batches a step; ``train_compile`` only compiles it, for eight devices."""
    words = _MAXTEXT.replace("{program}", program).replace("{data}", str(data)).replace("{fsdp}", str(fsdp))
    return words + (" compile_topology=a3 compile_topology_num_slices=1" if program == "train_compile" else "")


_HERE = "examples/trainers"
RUNS = (
    TrainerRun("linen and optax", f"{_HERE}/linen_optax.py"),
    TrainerRun("flax NNX", f"{_HERE}/nnx_trainer.py"),
    TrainerRun("Equinox", f"{_HERE}/equinox_multisteps.py"),
    TrainerRun("Equinox, MultiSteps", f"{_HERE}/equinox_multisteps.py 50 multisteps", saves=False),
    TrainerRun("Keras, DataParallel", f"{_HERE}/keras_fit.py 50 data", "3.11", KERAS, saves=False),
    TrainerRun("Keras, ModelParallel", f"{_HERE}/keras_fit.py 50 model", "3.11", KERAS),
    TrainerRun("Levanter, data", f"{_HERE}/levanter_trainer.py", "3.11", LEVANTER),
    TrainerRun("MaxText, data", _maxtext("train", data=8), "3.12", MAXTEXT),
    TrainerRun("MaxText, FSDP", _maxtext("train", fsdp=8), "3.12", MAXTEXT),
    TrainerRun("MaxText train_compile, data", _maxtext("train_compile", data=8), "3.12", MAXTEXT, trains=False),
    TrainerRun("MaxText train_compile, FSDP", _maxtext("train_compile", fsdp=8), "3.12", MAXTEXT, trains=False),
)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; exit code 1 when a comparison failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="trainers whose name contains this text")
    options = parser.parse_args(words)
    held = [_run(each) for each in RUNS if options.only.lower() in each.name.lower()]
    return 0 if all(held) else 1


def _run(run: TrainerRun) -> bool:
    """Whether a comparison held, or could not be made here."""
    python = _environment(run)
    if python is None:
        print(f"{run.name}: left out, no Python {run.python} here", flush=True)
        return True
    base = next((Path(python).parent.parent / "lib").glob("python*/site-packages/maxtext/configs/base.yml"), "")
    words = run.command.format(base=base, out=FOLDER / "out").split()
    found = compare(words, python, trains=run.trains)
    step = found.step
    better = step["bytes_after"] < step["bytes_before"] if run.saves else step["bytes_after"] <= step["bytes_before"]
    held = better and found.difference <= run.tolerance
    print(f"{run.name}: {found}{'' if held else ': FAILED'}", flush=True)
    return held


def _environment(run: TrainerRun) -> str | None:
    """The interpreter to run a trainer with; None when this machine has none."""
    if not run.packages:
        return sys.executable
    found = find_python(run.python)
    folder = FOLDER / run.packages[0].partition("==")[0]
    inside = folder / "bin" / "python"
    if found is None:
        return None
    if not inside.exists():
        subprocess.run([found, "-m", "venv", str(folder)], check=True)
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *run.packages, str(ROOT)], check=True)
    return str(inside)


if __name__ == "__main__":
    sys.exit(main())
