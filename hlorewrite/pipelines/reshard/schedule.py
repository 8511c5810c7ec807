"""Times of jobs as arrays, and what follows from them for the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.pipelines.reshard.assign import arrivals_of, with_copies
from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.order import rotation_levels
from hlorewrite.pipelines.reshard.simulate import RoutedJob, run_unicast
from hlorewrite.pipelines.reshard.transfers import SliceTransfers


@dataclass(frozen=True)
class TransferSchedule:
    """When each job runs.

    Args:
      sender: port that sends, -1 inside a host; shape ``[jobs]``.
      entry: port through which each receiving host receives it, padded with -1; shape ``[jobs, most hosts]``.
      busy: seconds for which it occupies its links, or for a job inside a host its whole time; shape ``[jobs]``.
      start: seconds, shape ``[jobs]``.
      end: seconds, shape ``[jobs]``.
      chunks: chunks over all rows, shape ``[jobs]``.
      proven: whether senders and order are proven optimal.
      unsolved: whether a solver that is not installed might find better ones.
    """

    sender: np.ndarray
    entry: np.ndarray
    busy: np.ndarray
    start: np.ndarray
    end: np.ndarray
    chunks: np.ndarray
    proven: bool
    unsolved: bool = False


def of_items(items: Sequence[RoutedJob], start: np.ndarray, end: np.ndarray, proven: bool) -> TransferSchedule:
    """The schedule of items that ran."""
    width = max((len(item.entry) for item in items), default=0)
    entry = np.full((len(items), width), -1, np.int64)
    for i, item in enumerate(items):
        entry[i, :len(item.entry)] = item.entry
    return TransferSchedule(np.array([item.sender for item in items], np.int64), entry,
                            np.array([item.busy if item.entry else item.done for item in items]), start=start, end=end,
                            chunks=np.array([item.chunks for item in items], np.int64), proven=proven)


def rotated(jobs: Jobs, network: Network) -> TransferSchedule:
    """The round robin of jobs to one host each, all in arrays: a million jobs in a fraction of a second.

    Where holders or receivers are at several ports, jobs are dealt out to these one after another.

    Args:
      jobs: jobs for which ``to_one_host`` holds.
      network: the links.

    Returns:
      The schedule.
    """
    most = max(len(c.ports) for c in jobs.classes)
    ports = np.array([[*c.ports, *c.ports[:1] * (most - len(c.ports))] for c in jobs.classes], np.int64)
    many, turn = np.array([len(c.ports) for c in jobs.classes]), jobs.holders + jobs.receivers
    sender, receiver = (ports[side, turn % many[side]] for side in (jobs.holders, jobs.receivers))
    rate, local = network.bytes_per_s, jobs.local_hops
    # One NIC hop: chunks only serve the hops inside the host (see Network.chunks), and never fall below the rows.
    best = np.sqrt(jobs.size * local / network.local_bytes_per_s / network.chunk_overhead_s)
    chunks = np.maximum(np.rint(best), jobs.counts)
    busy = chunks * network.chunk_overhead_s + jobs.size / rate
    done = busy + network.latency_s + network.local_time(jobs.size / chunks, local)
    start, end = run_unicast(sender, receiver, busy, done, rotation_levels(sender, receiver), network.ports)
    passed = np.flatnonzero(local)
    arrivals = arrivals_of(passed, receiver[passed] // network.nics_per_host, start[passed], busy[passed],
                           chunks[passed], (local * jobs.size)[passed], network=network)
    end = with_copies(end, arrivals, network)
    return TransferSchedule(sender, receiver[:, None], busy, start=start, end=end, chunks=chunks.astype(np.int64),
                            proven=False)


def row_times(size: np.ndarray, jobs: Jobs, job: np.ndarray, schedule: TransferSchedule
              ) -> tuple[np.ndarray, np.ndarray]:
    """When each row starts and ends: the rows of a job follow each other on its links.

    Args:
      size: bytes of each row, sorted by job, shape ``[rows]``.
      jobs: the jobs.
      job: the job of each row, shape ``[rows]``.
      schedule: when the jobs run.

    Returns:
      Start and end in seconds, shape ``[rows]``.
    """
    if len(size) == len(jobs):
        return schedule.start, schedule.end
    before = np.cumsum(size) - size
    before -= before[jobs.first[:-1]][job]
    pace = (schedule.busy / np.maximum(jobs.size, 1))[job]
    tail = (schedule.end - schedule.start - schedule.busy)[job]
    begin = schedule.start[job] + pace * before
    return begin, begin + pace * size + tail


def sending_devices(rows: SliceTransfers, keep: np.ndarray, jobs: Jobs, job: np.ndarray, port: np.ndarray,
                    network: Network) -> np.ndarray:
    """The holder at the chosen port; if there are several, the rows of a job alternate between them.

    Args:
      rows: the transfers.
      keep: row numbers, shape ``[n]``.
      jobs: the jobs.
      job: the job of each of these rows, shape ``[n]``.
      port: sending port of each job, -1 inside a host.
      network: the links.

    Returns:
      The device (position in ``network.devices``) that sends each row, shape ``[n]``.
    """
    if not len(keep):
        return np.zeros(0, np.int64)
    span = network.ports + 1
    key = rows.holders[keep] * span + port[job] + 1
    present = np.flatnonzero(np.bincount(key))
    choices, ports = [], network.port.tolist()
    at_port: dict[int, dict[int, list[int]]] = {}
    for value in present.tolist():
        number, where = value // span, value % span - 1
        if number not in at_port:
            devices_by_port = at_port[number] = {}
            for device in rows.groups[number]:
                devices_by_port.setdefault(ports[device], []).append(device)
        choices.append(at_port[number].get(where) or list(rows.groups[number]))
    many = np.array([len(c) for c in choices], np.int64)
    table = np.zeros((len(choices), int(many.max())), np.int64)
    for i, devices in enumerate(choices):
        table[i, :len(devices)] = devices
    lines = np.zeros(int(present.max()) + 1, np.int64)
    lines[present] = np.arange(len(present))
    line = lines[key]
    if many.max() == 1:
        return table[line, 0]
    order = np.argsort(job, kind="stable")
    place = np.empty(len(keep), np.int64)
    place[order] = np.arange(len(keep)) - jobs.first[job[order]]
    return table[line, place % many[line]]
