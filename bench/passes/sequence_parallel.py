"""What ``sequence-parallel`` saves on tensor-parallel steps, compiled for eight GPUs without one: bytes, memory, time.

Four forms of one model: blocks in a scan or unrolled, with and without ``jax.checkpoint``; each as it is, within equal
communication, and with the extra gathers that keep all activations sharded. The command fails where a step at equal
communication sends more than 1.004 times what it sent, or needs more temporaries and is not faster either.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from megatron_steps import MegatronModel, exported

from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.cost.traffic import CollectiveTraffic, traffic_matrix
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.measured import scheduled, timed
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

EXTRAS = (0.004, 0.3)
MOST_SENT = 1.004


@dataclass(frozen=True)
class SharedFigures:
    """A step as XLA runs it.

    Attributes:
      form: how the blocks are written.
      extra: of the pass; None without it.
      sent: bytes on the wire of a device, over all executions: twice for an all-reduce.
      temporaries: bytes.
      step: predicted seconds; None if they are not.
    """

    form: str
    extra: float | None
    sent: float
    temporaries: int
    step: float | None


def main() -> int:
    """Prints the table; 1 if a step at equal communication is worse."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="h200:1x8", metavar="NAME:HOSTSxGPUS")
    parser.add_argument("--layers", type=int, default=MegatronModel.layers)
    parser.add_argument("--width", type=int, default=MegatronModel.width)
    parser.add_argument("--rows", type=int, default=MegatronModel.rows)
    parser.add_argument("--length", type=int, default=MegatronModel.length)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    model = MegatronModel(args.layers, args.width, rows=args.rows, length=args.length)
    figures = list(measured(model, args.target))
    rows, worse = compared(figures)
    if args.json:
        print(json.dumps({"target": args.target, "steps": rows, "worse": worse}, indent=2))
    else:
        cells = [["blocks", "extra", "sent MiB", "of before", "temporaries MiB", "of before", "step ms"],
                 *([row["form"], row["extra"], f"{row['sent_mib']:.1f}", f"{row['sent_ratio']:.4f}",
                    f"{row['temporaries_mib']:.1f}", f"{row['temporaries_ratio']:.3f}",
                    "-" if row["step_ms"] is None else f"{row['step_ms']:.2f}"] for row in rows)]
        print("\n".join(table(cells, numbers_right(cells))))
        print("worse: " + (", ".join(worse) or "none"))
    return 1 if worse else 0


def measured(model: MegatronModel, target: str) -> Iterator[SharedFigures]:
    """The figures of each form, without the pass first."""
    forms = {f"{'scan' if scan else 'unrolled'}{', remat' if remat else ''}": replace(model, scan=scan, remat=remat)
             for scan in (True, False) for remat in (False, True)}
    with progress("compiling", len(forms) * (1 + len(EXTRAS))) as step:
        for form, each in forms.items():
            original = parse(exported(each), name=form)
            for extra in (None, *EXTRAS):
                step(form)
                yield _figures(form, extra, _rewritten(original, extra), target)


def _rewritten(original: Module, extra: float | None) -> Module:
    module = original.clone()
    if extra is not None:
        run_passes(module, parse_pipeline(f"sequence-parallel{{extra={extra}}}"), PassContext())
    return module


def _figures(form: str, extra: float | None, module: Module, target: str) -> SharedFigures:
    place = place_of(parse_target(target), module)
    made = timed(scheduled(module, place, {})[0], place.topology)
    return SharedFigures(form, extra, wire_bytes(module), made.temp, made.step_s)


def wire_bytes(module: Module) -> float:
    """Bytes that a device sends in all executions: an all-reduce sends what a reduce-scatter and an all-gather do."""
    devices, collectives, _ = collectives_of(module.clone())
    sent = [CollectiveTraffic(one.kind, one.payload_bytes, one.groups, one.trips) for one in collectives]
    return float(traffic_matrix(sent, devices).sum()) / devices


def compared(figures: list[SharedFigures]) -> tuple[list[dict], list[str]]:
    """Rows of the table, and the forms that are worse at equal communication."""
    rows, worse, before = [], [], figures[0]
    for one in figures:
        before = one if one.extra is None else before
        row = {"form": one.form, "extra": "-" if one.extra is None else str(one.extra), "sent_mib": one.sent / 2**20,
               "sent_ratio": one.sent / before.sent, "temporaries_mib": one.temporaries / 2**20,
               "temporaries_ratio": one.temporaries / before.temporaries,
               "step_ms": None if one.step is None else one.step * 1e3}
        faster = one.step is not None and before.step is not None and one.step < before.step
        if one.extra == EXTRAS[0] and (row["sent_ratio"] > MOST_SENT or (one.temporaries >= before.temporaries
                                                                         and not faster)):
            worse.append(one.form)
        rows.append(row)
    return rows, worse


if __name__ == "__main__":
    sys.exit(main())
