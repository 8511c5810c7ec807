"""Public step times of training runs against ``hlorewrite estimate``: errors, intervals, and how constants were fitted.

Usage: ``python bench/predictions/public_runs.py [FILE] [--rows] [--left-out] [--fit] [--memory]``. FILE has the columns
of ``hlorewrite/cost/data/measured/public_iterations.csv``, which is taken without one: rows of Megatron-Bridge
(067f987df, docs/performance-summary.md), TorchTitan (b5bcd76c6, benchmarks) and llm-foundry's README. Each row is
stated with a preset, its options and the profile of its stack.

- ``--fit`` fits the constants of ``data/stacks.toml`` that are listed here (``CONSTANTS``, with what is known about
  each beforehand) to the rows and prints them. ``--left-out`` fits them again without each source, each release and
  each model, and judges what was left out.
- ``--memory`` compares peaks of memory with those that TorchTitan publishes.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from hlorewrite.cost import ModelShape, Options, Parallelism, Topology, collective_model, estimate, model, topology
from hlorewrite.cost.kernels.rates import StackProfile, stack
from hlorewrite.cost.training import iteration
from hlorewrite.cost.training.memory import memory_verdict
from hlorewrite.cost.training.workload import check
from hlorewrite.errors import UsageError

MEASURED = Path(__file__).resolve().parents[2] / "hlorewrite" / "cost" / "data" / "measured"
ROWS, PEAKS = MEASURED / "public_iterations.csv", MEASURED / "torchtitan_memory.csv"
MODELS = {"LLAMA3_8B": "llama3-8b", "LLAMA3_70B": "llama3-70b", "LLAMA3.1_405B": "llama3-405b",
          "Qwen3_30B_a3B": "qwen3-30b-a3b", "Qwen3_235B_a22B": "qwen3-235b-a22b", "DeepSeekV3": "deepseek-v3",
          "Kimi_K2": "kimi-k2", "GPT OSS 120B": "gpt-oss-120b", "GPT OSS 20B": "gpt-oss-20b",
          "Mixtral 8x7B": "mixtral-8x7b", "Mixtral 8x22B": "mixtral-8x22b"}
MPT = {"MPT-125m": (12, 768, 12), "MPT-350m": (24, 1024, 16), "MPT-760m": (24, 1536, 12), "MPT-1b": (24, 2048, 16),
       "MPT-3b": (32, 2560, 20), "MPT-7b": (32, 4096, 32), "MPT-13b": (40, 5120, 40), "MPT-30b": (48, 7168, 56),
       "MPT-70b": (80, 8192, 64)}
CLUSTERS = {"DGX-GB300": ("gb300-nvl72", 64), "DGX-GB200": ("gb200-nvl72", 64), "DGX-B300": ("b300", 8),
            "DGX-B200": ("b200", 8), "DGX-H100": ("superpod-h100", 8), "H100": ("h100", 8), "H100-500W": ("h100", 8)}
DTYPES = {"BF16": "bf16", "FP8": "f8", "FP8-CS": "f8", "MXFP8": "mxf8", "FP8-MX": "mxf8", "NVFP4": "f4"}


@dataclass(frozen=True)
class StatedRun:
    """One measured run, as ``estimate`` is asked about it.

    Attributes:
      row: the columns of the file.
      shape: the model.
      sizes: groups and batches.
      topology: the cluster.
      options: with the name of the profile.
    """

    row: dict[str, str]
    shape: ModelShape
    sizes: Parallelism
    topology: Topology
    options: Options

    @property
    def measured_s(self) -> float:
        """Seconds of a step."""
        return float(self.row["measured_s"])

    def predicted_s(self, profile: StackProfile | None = None) -> float:
        """Seconds of a step under a profile; None is the one of its stack."""
        return estimate(self.shape, self.sizes, self.topology, self.options, profile).iteration_time_s

    @property
    def kind(self) -> str:
        """dense or moe."""
        return "moe" if self.shape.experts > 1 else "dense"


def stated(row: dict[str, str]) -> StatedRun | None:
    """A row as ``estimate`` is asked about it.

    None for models and fine-tuning that it does not know, and for sizes that do not go together as they are published.
    """
    shape = _shape(row)
    if shape is None or row["section"] == "LoRA":
        return None
    gpus, tp, pp, cp = (int(row[key]) for key in ("gpus", "tp", "pp", "cp"))
    name, per_host = CLUSTERS[row["system"]]
    cluster = topology(name).sized(-(-gpus // per_host), min(gpus, per_host))
    virtual = int(row["vp"])
    sizes = Parallelism(pp, tp, gpus // (pp * tp * cp), int(row["gbs"]), int(row["mbs"]), ep=int(row["ep"]),
                        virtual_stages=virtual, cp=cp)
    zero = 3 if row["fsdp"] == "1" else 1
    if "zero2" in row["note"]:
        zero = 2
    options = Options(recompute=row["recompute"], sequence_parallel=tp > 1, zero=zero, dtype=DTYPES[row["precision"]],
                      grad_bytes=4 if row["source"] == "torchtitan" else 2, stack=_stack_of(row),
                      schedule="interleaved" if virtual > 1 else "1f1b")
    try:
        check(shape, sizes, cluster, options)
    except UsageError:
        return None
    return StatedRun(row, shape, sizes, cluster, options)


def _shape(row: dict[str, str]) -> ModelShape | None:
    if row["model"] in MPT:
        layers, hidden, heads = MPT[row["model"]]
        return model("gpt", layers=layers, hidden=hidden, heads=heads, vocab=50368, seq=int(row["seq"]))
    return model(MODELS[row["model"]], seq=int(row["seq"])) if row["model"] in MODELS else None


def _stack_of(row: dict[str, str]) -> str:
    if row["source"] != "megatron-bridge":
        return {"torchtitan": "torch-fsdp2", "llm-foundry": "torch-fsdp"}[row["source"]]
    return "megatron" if row["release"] >= "26.06" else "megatron-26.04"


def read(path: Path) -> list[StatedRun]:
    """The rows of a file that can be stated."""
    with path.open(encoding="utf-8") as file:
        return [run for row in csv.DictReader(file) if (run := stated(row)) is not None]


# ---- the fit

SHARED = ("megatron", "megatron-26.04", "torch-fsdp", "torch-fsdp2")


@dataclass(frozen=True)
class FittedConstant:
    """A constant of ``data/stacks.toml`` that is fitted.

    Attributes:
      path: field, and the keys in it.
      stacks: the profiles that share it.
      prior: what is known about it without the rows.
      spread: how much of that is known: a factor of exp(spread) is one standard deviation.
      kind: of the rows it is fitted to.
    """

    path: tuple[str, ...]
    stacks: tuple[str, ...]
    prior: float
    spread: float
    kind: str = "dense"


MEGATRON, FSDP, FSDP2 = SHARED[:2], SHARED[2:3], SHARED[3:]
CONSTANTS = (
    # Best matrix products of H100 and B200 reach 0.80 and 0.78 of the peak (stas00/ml-engineering), steps less.
    FittedConstant(("product_share", "f16", "hopper"), SHARED, 0.69, 0.15),
    FittedConstant(("product_share", "f8", "hopper"), SHARED, 0.6, 0.15),
    FittedConstant(("product_share", "f16", "blackwell"), SHARED, 0.67, 0.05),
    FittedConstant(("product_share", "f8", "blackwell"), SHARED, 0.55, 0.15),
    FittedConstant(("product_share", "f4", "blackwell"), SHARED, 0.40, 0.25),
    FittedConstant(("board", "NVIDIA GB300"), SHARED, 1.1, 0.1),
    FittedConstant(("board", "NVIDIA B300"), SHARED, 1.0, 0.1, "moe"),
    FittedConstant(("half_width", "f16"), SHARED, 100.0, 1.5),
    FittedConstant(("half_width", "f8"), SHARED, 200.0, 0.7),
    FittedConstant(("half_width", "f4"), SHARED, 200.0, 0.7),
    # Triton's first FlashAttention does about half of FlashAttention-2, which reaches 0.35 on H100 (Dao, 2023, figures
    # 5 and 7); cuDNN's reaches more.
    FittedConstant(("attention_share", "hopper"), FSDP, 0.18, 0.2),
    FittedConstant(("attention_share", "hopper"), FSDP2, 0.35, 0.15),
    FittedConstant(("attention_share", "hopper"), MEGATRON, 0.6, 0.15),
    FittedConstant(("attention_share", "blackwell"), MEGATRON, 0.5, 0.2),
    # TorchTitan's boards: 500 of 700 W (clock about as the square root), 2.4 of 3.35 TB/s.
    FittedConstant(("board", "NVIDIA H100"), FSDP2, 0.85, 0.06),
    # Ops that do not fuse read and write about twice as much.
    FittedConstant(("outside_bytes",), FSDP, 2.0, 0.3),
    FittedConstant(("outside_bytes",), FSDP2, 2.1, 0.3),
    FittedConstant(("outside_bytes",), MEGATRON, 1.2, 0.3),
    FittedConstant(("convert_bytes",), SHARED, 1.0, 0.5),
    FittedConstant(("selective",), FSDP2, 0.6, 0.15),
    FittedConstant(("hidden", "tensor"), MEGATRON, 0.6, 1.0),
    FittedConstant(("hidden", "tensor"), FSDP2, 0.3, 1.0),
    FittedConstant(("hidden", "data"), MEGATRON, 0.8, 1.0),
    FittedConstant(("hidden", "fsdp"), SHARED, 0.8, 1.0),
    FittedConstant(("hidden", "pipeline"), MEGATRON, 0.7, 1.0),
    FittedConstant(("expert_share", "f16", "hopper"), MEGATRON, 0.6, 0.5, "moe"),
    FittedConstant(("expert_share", "f8", "hopper"), MEGATRON, 0.6, 0.5, "moe"),
    FittedConstant(("expert_share", "f16", "blackwell"), MEGATRON, 0.5, 0.5, "moe"),
    FittedConstant(("expert_share", "f8", "blackwell"), MEGATRON, 0.5, 0.5, "moe"),
    FittedConstant(("expert_bytes", "hopper"), MEGATRON, 8.0, 1.0, "moe"),
    FittedConstant(("expert_bytes", "blackwell"), ("megatron",), 8.0, 1.0, "moe"),
    FittedConstant(("expert_bytes", "blackwell"), ("megatron-26.04",), 8.0, 1.0, "moe"),
    FittedConstant(("expert_launch_s",), MEGATRON, 50e-6, 1.0, "moe"),
    FittedConstant(("hidden", "expert"), MEGATRON, 0.5, 1.0, "moe"),
    FittedConstant(("hidden", "expert_far"), MEGATRON, 0.3, 1.0, "moe"),
)
ROBUST_FROM = 0.06
"""Logarithm of predicted over measured from which a row counts linearly."""
FAR = 0.24
"""And from which a dense row counts more again, so that none is far off. Published steps of mixtures of experts
hold some that are slower or faster than others of the same sizes by half: these stay out of reach."""


def set_constants(given: Mapping[str, StackProfile], constants: Sequence[FittedConstant],
                  values: Sequence[float]) -> dict[str, StackProfile]:
    """Profiles with some constants in place of theirs."""
    found = dict(given)
    for constant, value in zip(constants, values, strict=True):
        field, *keys = constant.path
        for name in constant.stacks:
            found[name] = replace(found[name], **{field: _with(getattr(found[name], field), keys, value)})
    return found


def _with(old: Any, keys: Sequence[str], value: float) -> Any:
    return value if not keys else {**old, keys[0]: _with(old.get(keys[0], {}), keys[1:], value)}


class RememberedTimes:
    """Times of a cluster's collectives, each asked of the model once: a fit asks for the same ones over and over."""

    known: ClassVar[dict[str, RememberedTimes]] = {}

    def __init__(self, cluster: Topology) -> None:
        self._model, self._seconds = collective_model(cluster), {}

    @classmethod
    def of(cls, cluster: Topology) -> RememberedTimes:
        """The one of a cluster."""
        if cluster.spec not in cls.known:
            cls.known[cluster.spec] = cls(cluster)
        return cls.known[cluster.spec]

    def times(self, kind: str, sizes: Any, place: Any) -> Any:
        """Seconds; see :meth:`hlorewrite.cost.NcclModel.times`."""
        key = (kind, sizes.tobytes(), *(getattr(place, part).tobytes() for part in place.__slots__))
        if key not in self._seconds:
            self._seconds[key] = self._model.times(kind, sizes, place)
        return self._seconds[key]


def fit(runs: Sequence[StatedRun], kinds: Sequence[str] = ("dense", "moe")) -> dict[str, StackProfile]:
    """The profiles fitted to some rows: those of dense models first, then those of experts alone.

    Constants of a kind that is not fitted are those of ``data/stacks.toml``.
    """
    iteration.collective_model = RememberedTimes.of  # pyright: ignore[reportAttributeAccessIssue]
    profiles = {name: stack(name) for name in SHARED}
    for kind in kinds:
        wanted = [each for each in CONSTANTS if each.kind == kind]
        profiles = _fit([run for run in runs if run.kind == kind], wanted, profiles)
    return profiles


def _fit(runs: Sequence[StatedRun], wanted: Sequence[FittedConstant],
         given: Mapping[str, StackProfile]) -> dict[str, StackProfile]:
    import numpy as np
    from scipy.optimize import least_squares

    def profiles_at(steps: Sequence[float]) -> dict[str, StackProfile]:
        return set_constants(given, wanted, [_moved(each, step) for each, step in zip(wanted, steps, strict=True)])

    def residuals(steps: Sequence[float]) -> Any:
        profiles = profiles_at(steps)
        errors = np.array([math.log(run.predicted_s(profiles[run.options.stack]) / run.measured_s) for run in runs])
        far = np.abs(errors) / ROBUST_FROM
        more = 3 * np.maximum(np.abs(errors) - FAR, 0) / ROBUST_FROM * dense
        robust = np.sign(errors) * (np.where(far < 1, far, np.sqrt(np.maximum(2 * far - 1, 1))) + more)
        known = np.array([step / each.spread for each, step in zip(wanted, steps, strict=True)])
        return np.concatenate([robust, 0.7 * known])

    start, dense = [0.0] * len(wanted), np.array([run.kind == "dense" for run in runs])
    return profiles_at(least_squares(residuals, start, diff_step=1e-3, max_nfev=30).x)


def _moved(constant: FittedConstant, step: float) -> float:
    """A constant some way from what is known about it; shares of hidden communication stay between 0 and 1."""
    if constant.path[0] != "hidden":
        return constant.prior * math.exp(step)
    odds = constant.prior / (1 - constant.prior) * math.exp(step)
    return odds / (1 + odds)


# ---- judgements

def errors_of(runs: Sequence[StatedRun], profiles: dict[str, StackProfile] | None = None) -> list[float]:
    """Predicted over measured, minus one."""
    return [run.predicted_s(profiles[run.options.stack] if profiles else None) / run.measured_s - 1 for run in runs]


def line(name: str, errors: Sequence[float]) -> str:
    """Median, mean, bias and worst of some errors."""
    worst = max(errors, key=abs)
    return (f"{name:44} {len(errors):4} rows  median {statistics.median(map(abs, errors)):6.1%}  mean "
            f"{statistics.mean(map(abs, errors)):6.1%}  bias {statistics.median(errors):+7.1%}  worst {worst:+7.1%}")


def left_out(runs: Sequence[StatedRun], key: Callable[[StatedRun], str], kind: str) -> list[tuple[str, list[float]]]:
    """Errors of the rows of each group, by constants of their kind that were fitted without them."""
    found = []
    for group in sorted({key(run) for run in runs if run.kind == kind}):
        others = [run for run in runs if run.kind == kind and key(run) != group]
        judged = [run for run in runs if key(run) == group and run.kind == kind]
        found.append((group, errors_of(judged, fit(others, (kind,)))))
    return found


def held(runs: Sequence[StatedRun]) -> float:
    """Share of the rows inside their interval."""
    inside = 0
    for run in runs:
        low, high = stack(run.options.stack).spread
        inside += low <= run.measured_s / run.predicted_s() <= high
    return inside / len(runs)


def memory_rows() -> list[tuple[str, float, float, str]]:
    """(name, measured GiB, predicted GiB, verdict) of TorchTitan's peaks."""
    found = []
    with PEAKS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            run = stated({**row, "measured_s": "1", "note": row["note"], "section": "", "source": "torchtitan"})
            assert run is not None
            cluster = replace(run.topology, memory_bytes=topology("h100-500w").memory_bytes)
            verdict = memory_verdict(run.shape, run.sizes, cluster, run.options)
            name = f"{row['model']} {row['precision']} {row['gpus']} GPUs, s {row['seq']}, b {row['mbs']} {row['note']}"
            found.append((name, float(row["memory_gib"]), verdict.bytes_per_gpu / 2**30, verdict.fits))
    return found


def main() -> int:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=ROWS)
    parser.add_argument("--rows", action="store_true", help="print every row")
    parser.add_argument("--fit", action="store_true", help="fit the constants and print them")
    parser.add_argument("--left-out", action="store_true", help="fit without each source, release and model")
    parser.add_argument("--kind", choices=["dense", "moe"], help="these rows alone")
    parser.add_argument("--memory", action="store_true", help="compare peaks of memory")
    parser.add_argument("--json", action="store_true", help="print the errors of all rows as JSON")
    args = parser.parse_args()
    if args.memory:
        return _print_memory()
    runs = [run for run in read(args.file) if args.kind in (None, run.kind)]
    if args.json:
        print(json.dumps([{**run.row, "predicted_s": run.predicted_s(), "stack": run.options.stack} for run in runs]))
        return 0
    if args.fit:
        return _print_fit(runs)
    if args.left_out:
        return _print_left_out(runs)
    if args.rows:
        for run, error in sorted(zip(runs, errors_of(runs), strict=True), key=lambda each: each[1]):
            row = run.row
            print(f"{row['source']:15} {row['release']:9} {row['model']:16} {row['system']:10} {row['precision']:7} "
                  f"{row['gpus']:>5} GPUs  measured {run.measured_s:9.4g} s  {error:+7.1%}  {run.options.stack}")
    for kind in _kinds(runs):
        of_kind = [run for run in runs if run.kind == kind]
        for source in sorted({run.row["source"] for run in of_kind}):
            print(line(f"{kind}, {source}", errors_of([run for run in of_kind if run.row["source"] == source])))
        print(line(f"{kind}, all", errors_of(of_kind)) + f"  in the interval {held(of_kind):.0%}")
    return 0


def _kinds(runs: Sequence[StatedRun]) -> list[str]:
    return [kind for kind in ("dense", "moe") if any(run.kind == kind for run in runs)]


def _print_memory() -> int:
    errors = []
    for name, measured, predicted, fits in memory_rows():
        errors.append(predicted / measured - 1)
        print(f"{name:60} measured {measured:6.1f} GiB  predicted {predicted:6.1f} GiB  {errors[-1]:+7.1%}  {fits}")
    print(line("memory", errors))
    return 0


def _print_fit(runs: Sequence[StatedRun]) -> int:
    profiles = fit(runs, _kinds(runs))
    for constant in (each for each in CONSTANTS if each.kind in _kinds(runs)):
        value: Any = profiles[constant.stacks[0]]
        for key in constant.path:
            value = getattr(value, key) if isinstance(value, StackProfile) else value[key]
        print(f"{'.'.join(constant.path):32} {', '.join(constant.stacks):55} {value:.4g} (known before: "
              f"{constant.prior:g}, factor {math.exp(constant.spread):.2f})")
    for kind in _kinds(runs):
        print(line(f"{kind}, fitted", errors_of([run for run in runs if run.kind == kind], profiles)))
    for name, profile in profiles.items():
        ratios = sorted(run.measured_s / run.predicted_s(profile) for run in runs if run.options.stack == name)
        if len(ratios) > 4:
            print(f"{name:20} measured over predicted: {_quantile(ratios, 0.1):.3f} to {_quantile(ratios, 0.9):.3f}")
    return 0


def _quantile(values: Sequence[float], share: float) -> float:
    place = share * (len(values) - 1)
    low = int(place)
    return values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def _print_left_out(runs: Sequence[StatedRun]) -> int:
    keys: tuple[tuple[str, str, Callable[[StatedRun], str]], ...] = (
        ("dense", "source", lambda run: run.row["source"]), ("moe", "release", lambda run: run.row["release"]),
        ("moe", "model", lambda run: run.row["model"]))
    for kind, what, key in (each for each in keys if each[0] in _kinds(runs)):
        found = left_out(runs, key, kind)
        for group, errors in found:
            print(line(f"{kind}, without {what} {group}", errors), flush=True)
        print(line(f"{kind}, each {what} left out once", [error for _, errors in found for error in errors]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
