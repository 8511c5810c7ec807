"""Cross-mesh resharding, measured: the cases of the MLSys 2023 paper, strategies side by side in one run.

    python bench/reshard/reshard.py emulate [--rate 50mbit] [--mib 12] [--cases case1,1-to-8] [--json FILE]
    python bench/reshard/reshard.py simulate [--json FILE]

``emulate`` runs real processes, one per host, on an emulated cluster (see ``emulated_cluster.py``) and checks every
received byte. ``simulate`` plans the cases at the paper's sizes on its hardware, and resharding among 1 024 GPUs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from emulated_cluster import EmulatedCluster, bytes_per_s, missing, topology_file
from reshard_cases import N_TO_M, ONE_TO_M, ReshardCase

from hlorewrite.cost.cluster.topology_file import topology
from hlorewrite.pipelines.reshard import (
    ReshardPlan,
    hosts_of_meshes,
    network_of,
    parse_mesh,
    parse_spec,
    plan_reshard,
    sharded,
)

STRATEGIES = (("broadcast", "optimal"), ("broadcast", "naive"), ("all-gather", "optimal"),
              ("global-all-gather", "optimal"), ("send-recv", "optimal"))
LONG_S = 6.0


def emulate(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures the cases on an emulated cluster.

    Args:
      args: the command line.

    Returns:
      One row per case and strategy.
    """
    if reason := missing():
        raise SystemExit(f"the emulated cluster {reason}")
    chosen = [case for case in (*N_TO_M, *ONE_TO_M) if args.cases is None or case.name.split()[0] in args.cases]
    if not chosen:
        raise SystemExit(f"no such case: {','.join(args.cases or ())}")
    cases = [case.scaled(args.mib) for case in chosen]
    hosts = max(case.source[0] + case.destination[0] for case in cases)
    with tempfile.TemporaryDirectory() as folder:
        model = topology_file(Path(folder), args.rate)
        jobs = [_job(case, strategy, order, args, model) for case in cases for strategy, order in STRATEGIES
                if args.strategies is None or strategy in args.strategies]
        records = _on_cluster(Path(folder), model, hosts, [job for _, job in jobs], args)
    rate = bytes_per_s(args.rate)
    rows = []
    for number, (case, job) in enumerate(jobs):
        rows.append(_measured(case, job, [r for r in records if r["job"] == number], rate))
    return rows


def _job(case: ReshardCase, strategy: str, order: str, args: argparse.Namespace,
         model: Path) -> tuple[ReshardCase, dict[str, Any]]:
    """The parameters of the workers. Transfers of many seconds run once: their first connections do not weigh."""
    long = plan_case(case, str(model), strategy, order).makespan_s > LONG_S
    return case, {"shape": case.shape, "source": case.source, "destination": case.destination,
                  "source_spec": case.source_spec, "destination_spec": case.destination_spec, "strategy": strategy,
                  "order": order, "chunk_bytes": args.chunk_bytes, "repeats": 0 if long else args.repeats}


def _on_cluster(folder: Path, model: Path, hosts: int, jobs: list[dict[str, Any]],
                args: argparse.Namespace) -> list[dict[str, Any]]:
    with EmulatedCluster(hosts, args.rate) as cluster:
        work = folder / "work.json"
        work.write_text(json.dumps({"jobs": jobs, "hosts": hosts, "coordinator": f"{cluster.addresses[0]}:17171",
                                    "topology": str(model)}))
        root = str(Path(__file__).resolve().parents[2])
        environment = {**os.environ, "PYTHONPATH": root, "JAX_PLATFORMS": "cpu",
                       "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
        for host in range(hosts):
            worker = [sys.executable, str(Path(__file__).with_name("reshard_worker.py")), str(work), str(host),
                      str(folder / f"times{host}")]
            cluster.start(host, worker, environment, folder / f"log{host}")
        codes = cluster.wait(args.timeout)
        if any(codes) or None in codes:
            logs = "".join(f"--- host {h} (exit {codes[h]})\n{(folder / f'log{h}').read_text()[-3000:]}"
                           for h in range(hosts) if codes[h] != 0)
            raise SystemExit(f"a process failed\n{logs}")
        return [json.loads(line) for h in range(hosts) for line in (folder / f"times{h}").read_text().splitlines()]


def _measured(case: ReshardCase, job: dict[str, Any], records: list[dict[str, Any]], rate: float) -> dict[str, Any]:
    times = []
    for turn in range(1, job["repeats"] + 1) if job["repeats"] else (0,):
        of_turn = [r for r in records if r["turn"] == turn]
        times.append(max(r["end"] for r in of_turn) - min(r["begin"] for r in of_turn))
    size = 4 * math.prod(case.shape)
    bound = case.optimum * size / rate
    seconds = statistics.median(times)
    return {"case": case.name, "strategy": job["strategy"], "order": job["order"], "bytes": size,
            "seconds": seconds, "fastest_s": min(times), "bound_s": bound, "over_bound": seconds / bound,
            "right": all(r["right"] for r in records), "checked_bytes": sum(r["bytes"] for r in records),
            "temporary_bytes": max(r["temporary"] for r in records), "chunk_bytes": records[0]["chunk_bytes"],
            "rounds": records[0]["rounds"], "receivers": case.receivers}


def plan_case(case: ReshardCase, server: str, strategy: str, order: str) -> ReshardPlan:
    """Plans a case on a topology."""
    source = parse_mesh("{}x{}".format(*case.source))
    destination = parse_mesh("{}x{}".format(*case.destination), source.size)
    cluster = topology(server)
    network = network_of(cluster, hosts_of_meshes(source, destination, cluster.server_gpus))
    return plan_reshard(sharded(case.shape, source, parse_spec(case.source_spec, source)),
                        sharded(case.shape, destination, parse_spec(case.destination_spec, destination)), 4, network,
                        strategy=strategy, order=order)


def simulate(_: argparse.Namespace) -> list[dict[str, Any]]:
    """Plans the cases at the paper's sizes and hardware, and resharding among 1 024 GPUs."""
    large = (ReshardCase("1024: host to host", (64, 8), (64, 8), (8192, 8192, 64), "host,-,-", "-,host,-", math.nan),
             ReshardCase("1024: all to all", (64, 8), (64, 8), (8192, 8192, 64), "all,-,-", "-,all,-", math.nan),
             ReshardCase("1024: stage to stage", (64, 8), (64, 8), (8192, 8192, 64), "host,gpu,-", "host,gpu,-",
                         math.nan),
             ReshardCase("1024: to replicas", (64, 8), (64, 8), (8192, 8192, 64), "all,-,-", "-,-,gpu", math.nan))
    rows = []
    for cases, server in (((*N_TO_M, *ONE_TO_M), "p3.8xlarge"), (large, "h200")):
        for case in cases:
            unit = 4 * math.prod(case.shape) / (topology(server).nic_bytes_per_s * topology(server).nics_per_host)
            for strategy, order in (("auto", "optimal"), *STRATEGIES):
                if cases is large and strategy in ("all-gather", "global-all-gather"):
                    continue
                begin = time.perf_counter()
                plan = plan_case(case, server, strategy, order)
                rows.append({"case": case.name, "strategy": strategy, "order": order, "seconds": plan.makespan_s,
                             "units": plan.makespan_s / unit, "optimum": case.optimum,
                             "lower_bound_s": plan.lower_bound_s, "gap": plan.gap, "tasks": len(plan.rows),
                             "planned_in_s": time.perf_counter() - begin})
    return rows


def table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    """Rows as aligned text."""
    def cell(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    lines = [columns, *(tuple(cell(row[c]) for c in columns) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
                     for line in lines)


def main() -> int:
    """Runs the bench; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", choices=("emulate", "simulate"), default="simulate")
    parser.add_argument("--rate", default="50mbit", help="rate of each host's NIC (default 50mbit)")
    parser.add_argument("--mib", type=float, default=12, help="size of the tensor in MiB (default 12)")
    parser.add_argument("--cases", type=lambda text: text.split(","), help="cases to run (default all)")
    parser.add_argument("--strategies", type=lambda text: text.split(","), help="strategies to run (default all)")
    parser.add_argument("--repeats", type=int, default=3, help="measured repetitions (default 3)")
    parser.add_argument("--chunk-bytes", type=int, help="chunk size (default: the cost model's)")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds until the processes are ended")
    parser.add_argument("--json", type=Path, help="file for the figures")
    args = parser.parse_args()
    from hlorewrite.util.progress import progress
    with progress("measuring transfers" if args.mode == "emulate" else "planning transfers"):
        rows = emulate(args) if args.mode == "emulate" else simulate(args)
    columns = (("case", "strategy", "order", "seconds", "bound_s", "over_bound", "right", "rounds", "chunk_bytes",
                "temporary_bytes") if args.mode == "emulate" else
               ("case", "strategy", "order", "seconds", "units", "optimum", "gap", "tasks", "planned_in_s"))
    print(table(rows, columns))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row.get("right", True) for row in rows) else 3


if __name__ == "__main__":
    sys.exit(main())
