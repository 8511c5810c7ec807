"""What the resharding tests share: layouts from short texts, and what a correct plan must do."""

from __future__ import annotations

import math

import numpy as np

from hlorewrite.cost.cluster.topology_file import topology
from hlorewrite.pipelines.reshard import (
    Layout,
    Network,
    ReshardPlan,
    hosts_of_meshes,
    network_of,
    parse_mesh,
    parse_spec,
    plan_reshard,
    sharded,
)
from hlorewrite.pipelines.reshard.order import EFFORT_OF_A_RUN, SolverBudget

NINE = (  # case, source mesh, destination mesh, shape, source, destination, optimum, first sender, least loaded
    (1, "2x4", "2x4", (1024, 1024, 512), "host,-,-", "host,-,-", 0.5, 0.5, 0.5),
    (2, "2x4", "2x4", (1024, 1024, 512), "-,-,-", "host,-,-", 0.5, 1.0, 0.5),
    (3, "2x4", "2x4", (1024, 1024, 512), "-,host,-", "host,-,-", 0.5, 0.75, 0.75),
    (4, "2x4", "2x4", (1024, 1024, 512), "-,all,-", "all,-,-", 0.5, 0.9375, 0.9375),
    (5, "2x4", "2x4", (1024, 1024, 512), "gpu,-,-", "host,-,-", 0.5, 1.0, 0.75),
    (6, "2x4", "3x4", (3072, 1024, 170), "host,-,-", "host,-,-", 0.5, 1.0, 1.0),
    (7, "1x4", "2x4", (1024, 1024, 512), "gpu,-,-", "-,-,-", 1.0, 1.0, 1.0),
    (9, "2x4", "2x4", (1024, 1024, 512), "-,host,-", "-,-,host", 0.5, 0.75, 0.75),
)


def setting(source: str, destination: str, shape: tuple[int, ...], source_spec: str, destination_spec: str,
            server: str = "p3.8xlarge", first: int | None = None) -> tuple[Layout, Layout, Network]:
    """Two layouts and the network between them."""
    have = parse_mesh(source)
    want = parse_mesh(destination, have.size if first is None else first)
    cluster = topology(server)
    network = network_of(cluster, hosts_of_meshes(have, want, cluster.server_gpus))
    return (sharded(shape, have, parse_spec(source_spec, have)),
            sharded(shape, want, parse_spec(destination_spec, want)), network)


def plan_of(source: str, destination: str, shape: tuple[int, ...], source_spec: str, destination_spec: str,
            strategy: str = "auto", order: str = "optimal", sender: str | None = None, server: str = "p3.8xlarge",
            first: int | None = None, effort: float = EFFORT_OF_A_RUN) -> ReshardPlan:
    """The plan of a resharding of int32; ``effort`` is what the solver may do, in its deterministic seconds."""
    have, want, network = setting(source, destination, shape, source_spec, destination_spec, server, first)
    return plan_reshard(have, want, 4, network, strategy=strategy, order=order, sender=sender,
                        budget=SolverBudget(effort))


def unit(shape: tuple[int, ...]) -> float:
    """Seconds that the whole tensor takes through one NIC of a p3.8xlarge."""
    return 4 * math.prod(shape) / 1.25e9


def tiles(layout: Layout, values: np.ndarray) -> dict[int, np.ndarray]:
    """What each device holds, padded to the largest tile with zeros."""
    out = {}
    for device, tile in layout.tile_of_device().items():
        where = np.unravel_index(tile, layout.grid) if layout.grid else ()
        box = tuple(slice(int(c[i]), int(c[i + 1])) for c, i in zip(layout.cuts, where, strict=True))
        part = values[box]
        held = np.zeros(layout.tile_shape, values.dtype)
        held[tuple(slice(0, size) for size in part.shape)] = part
        out[device] = held
    return out


def check_delivery(plan: ReshardPlan) -> None:
    """Every sender has what it sends by then, and in the end every receiver has its whole tile, exactly once."""
    ids = plan.network.devices
    shape = plan.tasks.source.shape
    has = {int(d): np.zeros(shape, np.int32) for d in ids}
    for layout_device, tile in plan.tasks.source.tile_of_device().items():
        has[layout_device][_box(plan.tasks.source, tile)] = 1
    got = {d: np.zeros(shape, np.int32) for d in has}
    for row in sorted(range(len(plan.rows)), key=lambda r: (plan.rows.gather[r], plan.end_s[r])):
        edges = zip(plan.rows.start[row].tolist(), plan.rows.stop[row].tolist(), strict=True)
        box = tuple(slice(a, b) for a, b in edges)
        receivers = [int(ids[r]) for r in plan.receivers(row)]
        if plan.rows.gather[row]:
            parts = sum(got[r][box] for r in receivers)
            assert (parts >= 1).all(), "an all-gather of parts that no device has"
            for receiver in receivers:
                got[receiver][box] = 1
            continue
        assert has[int(ids[plan.sender[row]])][box].all(), "a sender sends what it does not have"
        for receiver in receivers:
            assert not got[receiver][box].any(), "a receiver gets a slice twice"
            got[receiver][box] = 1
    for device, tile in plan.tasks.destination.tile_of_device().items():
        box = _box(plan.tasks.destination, tile)
        assert (got[device][box] + has[device][box] >= 1).all(), f"device {device} misses part of its tile"


def _box(layout: Layout, tile: int) -> tuple[slice, ...]:
    where = np.unravel_index(tile, layout.grid) if layout.grid else ()
    return tuple(slice(int(c[i]), int(c[i + 1])) for c, i in zip(layout.cuts, where, strict=True))
