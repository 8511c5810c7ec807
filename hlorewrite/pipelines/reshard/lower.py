"""A plan as one StableHLO module over the union of both meshes.

Every device runs the same program: its source tile in, its destination tile out (a device of one mesh alone
has a source buffer that is not read, or a destination buffer that is not written). A run of rounds is a loop; in each
round a device slices one chunk out of its source, or out of what it has received, sends it by
``collective_permute`` (``collective_broadcast`` where the target has it), and writes what arrives into the
destination. A table gives the chunk by round and device. In addition to the two tiles a device holds
the message it sends and the one it receives: together one chunk.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.errors import PlanError, UsageError, did_you_mean
from hlorewrite.pipelines.reshard.lowering.emit import RoundEmitter
from hlorewrite.pipelines.reshard.lowering.flows import SliceFlow, copies, flows
from hlorewrite.pipelines.reshard.lowering.rounds import Hop, Run, message_of_trees, runs, schedule, tree_hops
from hlorewrite.pipelines.reshard.plan import ReshardPlan

TARGETS = {"cpu": 1e-3, "gpu": 4e-5}
"""Seconds that one round costs a device in addition to its bytes, by target: a collective's launch."""
_MOST_NUMBERS = 50_000_000
"""The most numbers in the tables of a module, which have a row per round and a column per device."""
_SMALLEST, _LARGEST = 16 * 1024, 8 * 1024 * 1024


@dataclass(frozen=True)
class Lowered:
    """A lowered plan.

    Args:
      text: the StableHLO module; ``main`` takes the source tiles stacked along dimension 0 in the order of
        ``devices`` and returns the destination tiles likewise.
      devices: device ids in partition order.
      source_tile: shape of a device's source buffer.
      destination_tile: shape of its destination buffer.
      chunk_bytes: memory a device needs in addition to the two: a message to send and one to receive.
      rounds: number of rounds.
      seconds: what the rounds take one after another, by the model.
    """

    text: str
    devices: tuple[int, ...]
    source_tile: tuple[int, ...]
    destination_tile: tuple[int, ...]
    chunk_bytes: int
    rounds: int
    seconds: float


def lower(plan: ReshardPlan, element_type: str, target: str = "cpu", chunk_bytes: int | None = None) -> Lowered:
    """Lowers a plan to StableHLO.

    Args:
      plan: the plan.
      element_type: MLIR element type, as ``f32`` or ``i32``.
      target: ``cpu`` (pipelines of ``collective_permute``) or ``gpu`` (``collective_broadcast`` for slices with
        several receivers).
      chunk_bytes: memory a device may use in addition to source and destination; chosen by the cost model by default.

    Returns:
      The module and its interface.

    Raises:
      UsageError: the target is unknown, or a chunk has no bytes.
      PlanError: the tensor is empty, or the plan too large for one program.

    Example:
      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.pipelines.reshard import (hosts_of_meshes, network_of, parse_mesh, parse_spec, plan_reshard,
      ...                                      sharded)
      >>> have, want = parse_mesh("1x1"), parse_mesh("2x2", first_device=1)
      >>> network = network_of(topology("p3.8xlarge"), hosts_of_meshes(have, want, 4))
      >>> plan = plan_reshard(sharded((64,), have, ((),)), sharded((64,), want, ((),)), 4, network, "broadcast")
      >>> lower(plan, "i32", "gpu").text.count("stablehlo.collective_broadcast")
      1
    """
    if target not in TARGETS:
        raise UsageError(f'there is no target "{target}"', hint=did_you_mean(target, TARGETS))
    if chunk_bytes is not None and chunk_bytes < 1:
        raise UsageError(f"a chunk of {chunk_bytes} bytes is empty", hint="leave it out to use the default")
    if not math.prod(plan.tasks.source.shape):
        raise PlanError("an empty tensor has nothing to move", hint="make the destination buffers directly")
    # A message that is the whole source tile would not depend on the round: XLA would hoist its send out of the loop.
    most = -(-math.prod(plan.tasks.source.tile_shape) // 2) * plan.itemsize
    half = max(1, min((chunk_bytes or default_chunk_bytes(plan, target)) // 2, most))
    hops = tree_hops(plan, half) if plan.strategy == "trees" else None
    # Rows of trees with too many blocks for one program go as chains.
    ways = [hops] if hops is not None else _ways_to_send(plan, target, half, most, chunk_bytes)
    timed = ((rounds_time(plan, order, target), order) for order in map(runs, ways))
    (seconds, order), kept = min(timed, key=lambda each: each[0]), copies(plan, half)
    emitter = _start(plan, element_type)
    _check_tables(sum(flow.chunks for flow in kept) + sum(run.count for run in order), emitter)
    for flow in kept:
        _emit_copy(emitter, plan, flow)
    for run in order:
        _emit_run(emitter, plan, run)
    largest = max([_held_bytes(plan, run) for run in order]
                  + [2 * math.prod(flow.message) * plan.itemsize for flow in kept], default=0)
    rounds = max((run.first + run.count for run in order), default=0)
    return Lowered(emitter.module(), tuple(plan.network.devices.tolist()), emitter.source,
                   destination_tile=emitter.destination, chunk_bytes=largest, rounds=rounds, seconds=seconds)


def _ways_to_send(plan: ReshardPlan, target: str, half: int, most: int, chunk_bytes: int | None) -> list[list[Hop]]:
    """Hops by broadcasts or chains; on GPUs also by all-gathers inside hosts, which may be faster.

    A broadcast keeps all its devices busy, so slices that enter a host through several ports follow each other. With
    gathers they enter at the same time, and the devices of the host exchange them.
    """
    plain = schedule(plan, flows(plan, half, multicast=target == "gpu"))
    hosts = np.bincount(plan.network.host)
    message = min(chunk_bytes // (int(hosts.max()) + 1) if chunk_bytes else _LARGEST, most)
    if target != "gpu" or len(set(hosts[hosts > 0].tolist())) > 1 or message < plan.itemsize:
        return [plain]
    return [plain, schedule(plan, flows(plan, message, multicast=True), gathers=True)]


def rounds_time(plan: ReshardPlan, order: Sequence[Run], target: str) -> float:
    """Seconds of a program: what its rounds cost one after another.

    Args:
      plan: the plan.
      order: the runs of its rounds.
      target: ``cpu`` or ``gpu``.
    """
    network, seconds = plan.network, 0.0
    for run in order:
        size = math.prod(run.message) * plan.itemsize
        away = any(network.host[device] != network.host[hop.sender] for hop in run.hops for device in hop.receivers)
        copies_of = len(run.hops[0].receivers) if run.kind == "gather" else 1
        rate = network.bytes_per_s if away else network.local_bytes_per_s / copies_of
        seconds += run.count * (TARGETS[target] + size / rate)
    return seconds


def _held_bytes(plan: ReshardPlan, run: Run) -> int:
    """Bytes that a device holds in a round: the message it sends and those it receives."""
    received = int(np.bincount(plan.network.host).max()) if run.kind == "gather" else 1
    return (1 + received) * math.prod(run.message) * plan.itemsize


def default_chunk_bytes(plan: ReshardPlan, target: str) -> int:
    """The chunk that makes a plan fastest, sender and receiver side together.

    With S bytes through the busiest link at B bytes/s, overhead o a round and a chain D hops deep, messages of
    s bytes take (S/s)·o + D·s/B longer than the wire: least at s = sqrt(S·o·B/D).

    Args:
      plan: the plan.
      target: ``cpu`` or ``gpu``.

    Returns:
      Bytes, twice the message size.
    """
    if plan.strategy == "trees":
        return 2 * message_of_trees(plan)
    network, load = plan.network, np.zeros(2 * plan.network.ports)
    depth = 0.0
    for row in range(len(plan.rows)):
        entry = [p for p in plan.entry[plan.job[row]].tolist() if p >= 0]
        receivers = len(plan.rows.groups[plan.rows.receivers[row]])
        for port in entry:
            load[2 * port + 1] += plan.rows.size[row]
        if entry:
            load[2 * network.port[plan.sender[row]]] += plan.rows.size[row]
        slow = network.bytes_per_s / network.local_bytes_per_s
        hops = max(len(entry) - 1, 0) + (receivers - max(len(entry), 1)) * slow
        depth = max(depth, 0.0 if target == "gpu" else hops)
    if not depth or not load.max(initial=0.0):
        return 2 * _LARGEST
    best = math.sqrt(load.max() * TARGETS[target] * network.bytes_per_s / depth)
    return 2 * int(min(max(best, _SMALLEST), _LARGEST))


def _start(plan: ReshardPlan, element_type: str) -> RoundEmitter:
    source, destination = plan.tasks.source.tile_shape or (1,), plan.tasks.destination.tile_shape or (1,)
    return RoundEmitter(element_type, len(plan.network.devices), source, destination)


def _check_tables(rounds: int, emitter: RoundEmitter) -> None:
    """Refuses a module whose tables would be larger than any program needs.

    Raises:
      PlanError: they would be.
    """
    if rounds * emitter.devices * (2 * len(emitter.source) + 2) > _MOST_NUMBERS:
        raise PlanError(f"the module would have {rounds} rounds of {emitter.devices} devices: too many for one program",
                        hint="use larger chunks, or omit --chunk-bytes to use the default")


def _emit_copy(emitter: RoundEmitter, plan: ReshardPlan, flow: SliceFlow) -> None:
    """A device of both meshes copies what it keeps, chunk by chunk."""
    rank = len(emitter.source)
    chunk = _starts(flow, np.arange(flow.chunks), rank)
    table = np.zeros((len(chunk), emitter.devices, 2 * rank + 2), np.int32)
    device = flow.devices[0]
    table[:, device, :rank] = chunk - _tile_start(plan, device, False, rank)
    table[:, device, rank:2 * rank] = chunk - _tile_start(plan, device, True, rank)
    table[:, device, -1] = 1
    emitter.run(table, _message(flow, rank), None, None, read=(True, False))


def _emit_run(emitter: RoundEmitter, plan: ReshardPlan, run: Run) -> None:
    """The table of a run by (round, device): chunk to send, chunk to receive, buffer to send from, whether to."""
    if run.kind == "gather":
        _emit_gather(emitter, plan, run)
        return
    rank = len(emitter.source)
    table = np.zeros((run.count, emitter.devices, 2 * rank + 2), np.int32)
    for hop in run.hops:
        chunk = _starts(hop.flow, np.arange(run.count) + (run.first - hop.first), rank)
        table[:, hop.sender, :rank] = chunk - _tile_start(plan, hop.sender, hop.forwarded, rank)
        table[:, hop.sender, 2 * rank] = hop.forwarded
        for device in hop.receivers:
            table[:, device, rank:2 * rank] = chunk - _tile_start(plan, device, True, rank)
            table[:, device, -1] = 1
    hops = sorted(run.hops, key=lambda hop: hop.sender)
    pairs = groups = None
    if run.kind == "broadcast":
        groups = [(hop.sender, *hop.receivers) for hop in hops]
    else:
        pairs = [(hop.sender, hop.receivers[0]) for hop in hops]
    read = (any(not hop.forwarded for hop in hops), any(hop.forwarded for hop in hops))
    emitter.run(table, _message(run.hops[0].flow, rank), pairs, groups, read)


def _emit_gather(emitter: RoundEmitter, plan: ReshardPlan, run: Run) -> None:
    """The table by (round, device): chunk to send; for each member of the host the chunk to receive, and whether to."""
    host, rank = plan.network.host, len(emitter.source)
    groups = [tuple(np.flatnonzero(host == each).tolist()) for each in np.unique(host)]
    members = len(groups[0])
    table = np.zeros((run.count, emitter.devices, rank + members * (rank + 1)), np.int32)
    for hop in run.hops:
        chunk = _starts(hop.flow, np.arange(run.count) + (run.first - hop.first), rank)
        member = int((host[:hop.sender] == host[hop.sender]).sum())
        table[:, hop.sender, :rank] = chunk - _tile_start(plan, hop.sender, True, rank)
        for device in hop.receivers:
            to = rank * (member + 1)
            table[:, device, to:to + rank] = chunk - _tile_start(plan, device, True, rank)
            table[:, device, rank * (members + 1) + member] = 1
    emitter.gather(table, _message(run.hops[0].flow, rank), groups)


def _message(flow: SliceFlow, rank: int) -> tuple[int, ...]:
    return flow.message or (1,) * rank


def _starts(flow: SliceFlow, chunk: np.ndarray, rank: int) -> np.ndarray:
    return flow.chunk_start(chunk) if flow.start else np.zeros((len(chunk), rank), np.int64)


def _tile_start(plan: ReshardPlan, device: int, destination: bool, rank: int) -> Sequence[int]:
    layout = plan.tasks.destination if destination else plan.tasks.source
    tile = np.argwhere(layout.devices == plan.network.devices[device])[0][0]
    return layout.tile_start(int(tile)) or (0,) * rank
