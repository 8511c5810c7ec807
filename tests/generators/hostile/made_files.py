"""Sound files that hlorewrite writes itself, or that hold measurements: plans, caches of tune, calibrations, times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MADE_FORMS = ("plan", "cache", "calibration", "times")
Files = tuple[tuple[str, bytes], ...]
Commands = tuple[tuple[str, ...], ...]

NCCL = """# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Using devices: all_reduce_perf
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    60.00   17.48   30.58      0    60.00   17.48   30.58      0
     4194304       1048576     float     sum      -1   100.00   41.94   73.40      0   100.00   41.94   73.40      0
"""
_KERNELS = (b"kernel,seconds\nfusion.1,0.001\ndot.2,2e-3\n", b'[kernels]\n"fusion.1" = 0.001\ndot_2 = 0.002\n',
            b'{"fusion.1": 0.001, "dot.2": 0.002}\n')
_PROFILES = (b"Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
             b"50.0,8000000,16,500000,ncclDevKernel_AllReduce_Sum_f32\n50.0,3000,2,1500,fusion_1\n",
             b"Start (ns),Duration (ns),CorrId,Device,Strm,Name\n0,1000,1,NVIDIA H200,7,fusion_1\n"
             b"500,2000,2,NVIDIA H200,9,ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)\n")
_TABLE = b"F0 F1 B0 B1\nF0 B0 F1 B1\n"


def made_files(form: str, folder: Path, hlo: Callable[[], bytes]) -> list[tuple[Files, Commands]]:
    """The sound files of a form, each with the commands that read it.

    Args:
      form: one of ``MADE_FORMS``.
      folder: where files that take time to make are kept.
      hlo: makes the HLO text of a step.
    """
    if form == "plan":
        return [_plan(folder)]
    if form == "cache":
        return [_cache(folder)]
    if form == "calibration":
        return [((("nccl.txt", NCCL.encode()),), (("calibrate", "{in}", "--topology=h200:1x8", "-o", "{out}"),
                                                  ("calibrate", "{in}", "--topology=h200:1x8", "--json"),
                                                  ("calibrate", "{in}", "--topology=h200:1x8", "--ranks=8")))]
    step = ("step.hlo", hlo())
    simulate = ("pipeline", "simulate", "--stages=2", "--microbatches=2")
    return [*(((("kernels", text), step), (("timeline", "step.hlo", "--target=h200:1x4", "--kernel-times={in}"),))
              for text in _KERNELS),
            *(((("profile.csv", text), step), (("audit", "step.hlo", "--target=h200:1x4", "--profile={in}"),))
              for text in _PROFILES),
            ((("table.txt", _TABLE),), ((*simulate, "--fwd=1ms", "--table={in}"),))]


def _plan(folder: Path) -> tuple[Files, Commands]:
    """A plan of opt, and the module that it was made for."""
    source = ROOT / "tests" / "lit" / "passes" / "comm-shift"
    step = next(path for path in sorted(source.rglob("*.mlir")) if b"// -----" not in path.read_bytes())
    (folder / "step.mlir").write_bytes(step.read_bytes())
    kept = folder / "step.plan"
    run = ("opt", "step.mlir", "--pass=comm-shift", "--plan={in}")
    if not kept.exists():
        _run_in(folder, ["opt", "step.mlir", "--pass=comm-shift", f"--plan={kept.name}", "-o", "planned.mlir"])
    return ((("step.plan", kept.read_bytes()), ("step.mlir", step.read_bytes())),
            ((*run, "-o", "{out}"), (*run, "--on-mismatch=original", "-o", "{out}"),
             (*run, "--remarks=all", "-o", "{out}")))


def _cache(folder: Path) -> tuple[Files, Commands]:
    """A cache of tune with all choices of a small step, so that a run measures nothing anew."""
    step = (Path(__file__).parent / "cached_step.mlir").read_bytes()
    command = ["tune", "step.mlir", "--target=h200:1x4", "--no-compile", "--cache=kept"]
    (folder / "step.mlir").write_bytes(step)
    if not list((folder / "kept").glob("*")):
        _run_in(folder, command)
    files = tuple((f"kept/{path.name}", path.read_bytes()) for path in sorted((folder / "kept").iterdir()))
    # A damaged cache would be filled again, which takes seconds and reads nothing more of it.
    return ((*files, ("step.mlir", step)), ((*command, "--time-limit=1s"),))


def _run_in(folder: Path, words: list[str]) -> None:
    import os
    import subprocess
    import sys
    subprocess.run([sys.executable, "-m", "hlorewrite", *words], cwd=folder, check=True, capture_output=True,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})
