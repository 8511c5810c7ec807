"""Captures the StableHLO of MaxText's own train steps, at real size, on a machine without GPUs.

    python bench/models/capture.py FOLDER --python PYTHON_WITH_MAXTEXT [--only REGEX]

``--python`` has MaxText and hlorewrite, on Python 3.12 or later (``docs/maxtext.md`` says how to install them). Each
configuration of ``configurations.txt`` goes through MaxText's ``train_compile`` under ``hlorewrite exec --capture``,
with as many CPU devices as it asks for: ``FOLDER/NAME.mlirbc`` holds the step that JAX passes to XLA.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATIONS = Path(__file__).with_name("configurations.txt")
COMMON = ("run_name=captured", "base_output_directory=unused", "dataset_type=synthetic", "enable_checkpointing=False",
          "hardware=cpu", "enable_goodput_recording=False", "skip_jax_distributed_system=True", "compile_topology=a3",
          "compile_topology_num_slices=1", "attention=dot_product", "remat_policy=full", "max_target_length=4096")


def configurations(only: str = "") -> dict[str, tuple[str, list[str]]]:
    """Name -> described GPUs and MaxText's arguments.

    Args:
      only: a regular expression that is found in their names.
    """
    lines = (line.split() for line in CONFIGURATIONS.read_text().splitlines() if line and line[0] != "#")
    return {name: (target, given) for name, target, *given in lines if re.search(only, name)}


def captured_steps(folder: Path, only: str = "", gpu: str = "") -> Iterator[tuple[str, str, Path]]:
    """Name, described GPUs and module of each configuration that was captured, saying on stderr which comes next.

    Args:
      folder: where modules were written.
      only: a regular expression that is found in their names.
      gpu: the name of other GPUs, as many.
    """
    for name, (given, _) in configurations(only).items():
        target = gpu + given[given.index(":"):] if gpu else given
        file = folder / f"{name}.mlirbc"
        if file.exists():
            print(f"{name} for {target} ...", file=sys.stderr, flush=True)
            yield name, target, file
        else:
            print(f"{name}: not captured", file=sys.stderr)


def devices_of(target: str) -> int:
    """How many devices a target such as ``h200:4x8`` has."""
    hosts, gpus = target.partition(":")[2].split("x")
    return int(hosts) * int(gpus)


def main() -> int:
    """Captures each configuration in a separate process; returns 1 if any of them fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where modules are written")
    parser.add_argument("--python", required=True, help="of an environment with MaxText and hlorewrite")
    parser.add_argument("--only", default="", metavar="REGEX", help="configurations in whose name this is found")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, (target, given) in configurations(args.only).items():
        written = args.folder / f"{name}.mlirbc"
        done = captured(args.python, devices_of(target), given, written)
        failed += done.returncode != 0
        print(f"{name}: {written.stat().st_size} bytes" if done.returncode == 0 else
              f"{name}: failed\n{done.stdout[-2000:]}", flush=True)
    return 1 if failed else 0


def captured(python: str, devices: int, given: list[str], file: Path) -> subprocess.CompletedProcess[str]:
    """Runs MaxText until it has a step to compile.

    Args:
      python: of an environment with MaxText and hlorewrite.
      devices: how many CPU devices to simulate, one for each described GPU.
      given: MaxText's arguments, next to ``COMMON``.
      file: where the module goes.
    """
    base = next((Path(python).parent.parent / "lib").glob("python*/site-packages/maxtext/configs/base.yml"))
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT),
                                "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    return subprocess.run([python, "-m", "hlorewrite", "exec", "--capture", str(file), "--", python, "-m",
                           "maxtext.trainers.pre_train.train_compile", str(base), *COMMON, *given], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


if __name__ == "__main__":
    sys.exit(main())
