"""Captures the StableHLO of MaxText's own train steps, at real size, on a machine without GPUs.

    PYTHON_WITH_MAXTEXT bench/models/capture.py FOLDER [--only TEXT]

Runs in an environment of its own that has MaxText (``pip install maxtext`` on Python 3.12 or later); hlorewrite is not
needed there. Each configuration of ``configurations.txt`` goes through MaxText's ``train_compile``, which lowers the
step for described devices; it is stopped before XLA compiles it, and ``FOLDER/NAME.mlirbc`` holds what JAX passes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONFIGURATIONS = HERE / "configurations.txt"
COMMON = ("run_name=captured", "base_output_directory=unused", "dataset_type=synthetic", "enable_checkpointing=False",
          "hardware=cpu", "enable_goodput_recording=False", "skip_jax_distributed_system=True", "compile_topology=a3",
          "compile_topology_num_slices=1", "attention=dot_product", "remat_policy=full", "max_target_length=4096")


class _Captured(BaseException):
    """Ends ``train_compile`` once the module is written; MaxText catches every Exception."""


def configurations(only: str = "") -> dict[str, tuple[str, list[str]]]:
    """Name -> described GPUs and MaxText's arguments.

    Args:
      only: a part of the names.
    """
    lines = (line.split() for line in CONFIGURATIONS.read_text().splitlines() if line and line[0] != "#")
    return {name: (target, given) for name, target, *given in lines if only in name}


def devices_of(target: str) -> int:
    """How many devices a target such as ``h200:4x8`` has."""
    hosts, gpus = target.partition(":")[2].split("x")
    return int(hosts) * int(gpus)


def main() -> int:
    """Captures each configuration in a process of its own, which has as many devices as it asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where modules are written")
    parser.add_argument("--only", default="", metavar="TEXT", help="configurations whose name contains this")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.one:
        return _capture(args.one, args.folder)
    failed = 0
    for name, (target, _) in configurations(args.only).items():
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS":
                                    f"--xla_force_host_platform_device_count={devices_of(target)}"}
        done = subprocess.run([sys.executable, __file__, str(args.folder), "--one", name], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        written = args.folder / f"{name}.mlirbc"
        failed += done.returncode != 0
        print(f"{name}: {written.stat().st_size} bytes" if done.returncode == 0 else
              f"{name}: failed\n{done.stdout[-2000:]}", flush=True)
    return 1 if failed else 0


def _capture(name: str, folder: Path) -> int:
    """Writes one module."""
    import jax
    import maxtext  # pyright: ignore[reportMissingImports]

    def stop(self: Any, *args: Any, **kwargs: Any) -> Any:
        with open(folder / f"{name}.mlirbc", "wb") as file:
            self.compiler_ir("stablehlo").operation.write_bytecode(file)
        raise _Captured

    setattr(jax.stages.Lowered, "compile", stop)  # noqa: B010  a method of a class that is not ours
    from maxtext.trainers.pre_train import train_compile  # pyright: ignore[reportMissingImports]
    base = str(Path(str(maxtext.__file__)).parent / "configs" / "base.yml")
    _, given = configurations()[name]
    try:
        train_compile.main(["train_compile", base, *COMMON, *given])
    except _Captured:
        return 0
    except BaseException:
        traceback.print_exc()
    return 1


if __name__ == "__main__":
    sys.exit(main())
