"""The transfers of each strategy: the rows that a plan orders.

A row is one slice from one of its holders to a list of receivers: through all of them as a pipelined
chain, to a single one, or among them as an all-gather of parts they already have.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from hlorewrite.errors import PlanError, did_you_mean
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.tasks import UnitTasks

STRATEGIES = ("broadcast", "send-recv", "trees", "all-gather", "global-all-gather")
_LIMIT = 200_000


@dataclass(frozen=True)
class SliceTransfers:
    """Rows of slices to move. Devices are positions in ``Network.devices``.

    Args:
      start: first index of each slice, shape ``[rows, rank]``.
      stop: one past its last, shape ``[rows, rank]``.
      size: bytes of each slice, shape ``[rows]``.
      holders: index into ``groups`` of the devices that can send it, shape ``[rows]``.
      receivers: index into ``groups`` of the devices that get it, shape ``[rows]``.
      gather: whether the row is an all-gather among its receivers, shape ``[rows]``.
      after: for gathers the rows that bring their parts: row -> rows.
      groups: lists of devices.
    """

    start: np.ndarray
    stop: np.ndarray
    size: np.ndarray
    holders: np.ndarray
    receivers: np.ndarray
    gather: np.ndarray
    after: dict[int, tuple[int, ...]]
    groups: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.size)


def transfers(tasks: UnitTasks, itemsize: int, network: Network, strategy: str) -> SliceTransfers:
    """The rows of a strategy.

    Receivers that hold a slice already get nothing; receivers on the host of a holder get it from there,
    in a separate row that no NIC serves.

    Args:
      tasks: unit tasks.
      itemsize: bytes of an element.
      network: the links.
      strategy: one of ``STRATEGIES``.

    Returns:
      The rows, in the order of the tasks.

    Raises:
      PlanError: the strategy is unknown, or would make too many rows.
    """
    rows = _broadcast_rows(tasks, itemsize, network)
    if strategy in ("broadcast", "trees"):
        return rows
    if strategy not in STRATEGIES:
        raise PlanError(f'there is no strategy "{strategy}"', hint=did_you_mean(strategy, (*STRATEGIES, "auto")))
    receivers = sum(len(rows.groups[r]) for r in rows.receivers) if len(rows) < _LIMIT else None
    if strategy != "send-recv" and (receivers is None or receivers > _LIMIT):
        raise PlanError(f"{strategy} would need more than {_LIMIT} transfers", hint="use broadcast or send-recv")
    if strategy == "send-recv":
        return _send_rows(rows)
    return _gather_rows(rows, itemsize, network, whole=strategy == "global-all-gather")


def shared(rows: SliceTransfers, network: Network) -> SliceTransfers:
    """The same transfers, if hosts that hold a slice share the hosts that want it.

    Args:
      rows: rows of the strategy ``broadcast``.
      network: the links.

    Returns:
      As many rows of a slice as there are hosts on the side that has fewer, each from its own hosts to its own.

    Example:
      Replicas on two hosts of two devices for replicas on two others: each host sends to one of them.

      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.pipelines.reshard import hosts_of_meshes, network_of, parse_mesh, parse_spec, sharded
      >>> from hlorewrite.pipelines.reshard.tasks import unit_tasks
      >>> have, want = parse_mesh("2x2"), parse_mesh("2x2", first_device=4)
      >>> network = network_of(topology("p3.8xlarge"), hosts_of_meshes(have, want, 2))
      >>> tasks = unit_tasks(sharded((8,), have, parse_spec("-", have)), sharded((8,), want, parse_spec("-", want)))
      >>> rows = shared(transfers(tasks, 4, network, "broadcast"), network)
      >>> [(rows.groups[have], rows.groups[want]) for have, want in zip(rows.holders, rows.receivers)]
      [((0, 1), (4, 5)), ((2, 3), (6, 7))]
    """
    groups, number = list(rows.groups), {group: index for index, group in reversed([*enumerate(rows.groups)])}
    parts: dict[tuple[int, int], list[tuple[int, int]]] = {}
    table: list[tuple[int, int, int]] = []

    @cache
    def hosts(group: int) -> dict[int, list[int]]:
        return by_host(rows.groups[group], network)

    @cache
    def dealt(group: int, count: int) -> list[int]:
        return [_numbered(each, groups, number) for each in _dealt(hosts(group), count)]

    for row, pair in enumerate(zip(rows.holders.tolist(), rows.receivers.tolist(), strict=True)):
        if pair not in parts:
            have, want = map(hosts, pair)
            count = 1 if not have.keys().isdisjoint(want) else min(len(have), len(want))
            parts[pair] = [*zip(*(dealt(group, count) for group in pair), strict=True)]
        table += [(row, *each) for each in parts[pair]]
    keep, holders, receivers = np.array(table, np.int64).reshape(-1, 3).T
    return _rows(rows, keep, holders, receivers, groups)


def by_host(devices: tuple[int, ...], network: Network) -> dict[int, list[int]]:
    """Devices by their host, both in the order in which they come."""
    out: dict[int, list[int]] = {}
    for device in devices:
        out.setdefault(int(network.host[device]), []).append(device)
    return out


def _dealt(side: dict[int, list[int]], count: int) -> list[tuple[int, ...]]:
    """The devices of neighbouring hosts together, in groups of as equal numbers of hosts as possible."""
    hosts = sorted(side)
    return [tuple(device for host in hosts[len(hosts) * k // count:len(hosts) * (k + 1) // count]
                  for device in side[host]) for k in range(count)]


def _numbered(devices: tuple[int, ...], groups: list[tuple[int, ...]], number: dict[tuple[int, ...], int]) -> int:
    """The number of a group, which is added if it is new."""
    index = number.setdefault(devices, len(groups))
    if index == len(groups):
        groups.append(devices)
    return index


def _broadcast_rows(tasks: UnitTasks, itemsize: int, network: Network) -> SliceTransfers:
    """One row per task; tasks whose receivers are next to holders are divided."""
    source, destination = network.index(tasks.source.devices), network.index(tasks.destination.devices)
    groups = [tuple(row) for row in source.tolist()] + [tuple(row) for row in destination.tolist()]
    holders, receivers = tasks.source_tile, tasks.destination_tile + len(source)
    near = _near_tasks(tasks, network.host[source], network.host[destination])
    none = np.zeros(len(tasks), bool)
    plain = SliceTransfers(tasks.start, tasks.stop, tasks.elements * itemsize, holders=holders, receivers=receivers,
                           gather=none, after={}, groups=tuple(groups))
    if not len(near):
        return plain
    keep, who = _divide(plain, near, network, groups)
    return _rows(plain, keep, who[:, 0], who[:, 1], groups)


def _near_tasks(tasks: UnitTasks, source_hosts: np.ndarray, destination_hosts: np.ndarray) -> np.ndarray:
    """Tasks with a receiver on the host of a holder."""
    if not np.isin(source_hosts, destination_hosts).any():
        return np.zeros(0, np.int64)
    hosts = int(max(source_hosts.max(), destination_hosts.max())) + 1
    has = np.zeros((len(source_hosts), hosts), np.float32)
    wants = np.zeros((len(destination_hosts), hosts), np.float32)
    has[np.arange(len(has))[:, None], source_hosts] = 1
    wants[np.arange(len(wants))[:, None], destination_hosts] = 1
    both = has @ wants.T > 0
    return np.flatnonzero(both[tasks.source_tile, tasks.destination_tile])


def _divide(plain: SliceTransfers, near: np.ndarray, network: Network,
            groups: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Divides tasks by sender: receivers on a holder's host are served there, all others together.

    Returns the tasks of the new rows, and their (holders, receivers) as group numbers.
    """
    number = {group: i for i, group in reversed(list(enumerate(groups)))}
    rows: list[tuple[int, int, int]] = []
    for task in near.tolist():
        holders, wanting = plain.groups[plain.holders[task]], plain.groups[plain.receivers[task]]
        held = set(holders)
        holding = by_host(holders, network)
        far: list[int] = []
        local: dict[int, list[int]] = {}
        for device in (d for d in wanting if d not in held):
            host = int(network.host[device])
            (local.setdefault(host, []) if host in holding else far).append(device)
        rows += [(task, _numbered(tuple(holding[host]), groups, number), _numbered(tuple(devices), groups, number))
                 for host, devices in local.items()]
        if far:
            rows.append((task, int(plain.holders[task]), _numbered(tuple(far), groups, number)))
    others = np.setdiff1d(np.arange(len(plain)), near)
    table = np.column_stack([others, plain.holders[others], plain.receivers[others]])
    table = np.concatenate([table, np.array(rows, np.int64).reshape(-1, 3)])
    table = table[np.argsort(table[:, 0], kind="stable")]
    return table[:, 0], table[:, 1:]


def _rows(old: SliceTransfers, keep: np.ndarray, holders: np.ndarray, receivers: np.ndarray,
          groups: list[tuple[int, ...]]) -> SliceTransfers:
    return SliceTransfers(old.start[keep], old.stop[keep], old.size[keep], holders=holders, receivers=receivers,
                          gather=np.zeros(len(keep), bool), after={}, groups=tuple(groups))


def _send_rows(rows: SliceTransfers) -> SliceTransfers:
    """Every receiver gets its own copy."""
    single = len(rows.groups)
    devices = 1 + max((max(group) for group in rows.groups), default=-1)
    groups = [*rows.groups, *((d,) for d in range(devices))]
    count = np.array([len(group) for group in rows.groups], np.int64)[rows.receivers]
    keep = np.repeat(np.arange(len(rows)), count)
    flat = np.concatenate([np.array(group, np.int64) for group in rows.groups]) if rows.groups else np.zeros(0)
    first = np.concatenate([[0], np.cumsum([len(group) for group in rows.groups])]).astype(np.int64)
    within = np.arange(len(keep)) - np.repeat(np.cumsum(count) - count, count)
    receiver = flat[first[rows.receivers[keep]] + within] + single
    return _rows(rows, keep, rows.holders[keep], receiver, groups)


def _gather_rows(rows: SliceTransfers, itemsize: int, network: Network, whole: bool) -> SliceTransfers:
    """Receivers get a part each, then gather: those of a host among themselves, or (whole) all at once."""
    groups = list(rows.groups)
    number: dict[tuple[int, ...], int] = {}
    boxes: list[tuple[np.ndarray, np.ndarray]] = []
    columns: list[tuple[int, int, bool]] = []
    after: dict[int, tuple[int, ...]] = {}
    for row in range(len(rows)):
        for members in _gather_sets(rows.groups[rows.receivers[row]], network, whole):
            parts = _parts(rows.start[row], rows.stop[row], len(members))
            if parts is None:
                parts, members_of = [(rows.start[row], rows.stop[row])] * len(members), None
            else:
                members_of = _numbered(members, groups, number)
            brought = range(len(boxes), len(boxes) + len(parts))
            for part, device in zip(parts, members, strict=True):
                boxes.append(part)
                columns.append((int(rows.holders[row]), _numbered((device,), groups, number), False))
            if members_of is not None and len(members) > 1:
                after[len(boxes)] = tuple(brought)
                boxes.append((rows.start[row], rows.stop[row]))
                columns.append((int(rows.holders[row]), members_of, True))
    rank = rows.start.shape[1]
    start = np.array([box[0] for box in boxes], np.int64).reshape(len(boxes), rank)
    stop = np.array([box[1] for box in boxes], np.int64).reshape(len(boxes), rank)
    table = np.array(columns, np.int64).reshape(-1, 3)
    size = np.prod(stop - start, axis=1, dtype=np.int64) * itemsize
    return SliceTransfers(start, stop, size, holders=table[:, 0], receivers=table[:, 1],
                          gather=table[:, 2].astype(bool), after=after, groups=tuple(groups))


def _gather_sets(receivers: tuple[int, ...], network: Network, whole: bool) -> list[tuple[int, ...]]:
    if whole:
        return [tuple(sorted(receivers, key=lambda d: (network.host[d], d)))]
    return [tuple(devices) for devices in by_host(receivers, network).values()]


def _parts(start: np.ndarray, stop: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """A slice cut along the first dimension that ``count`` divides, else along the longest.

    None when it has fewer than ``count`` elements in every dimension: it is then sent whole to each receiver.
    """
    extent = (stop - start).tolist()
    longest = max(range(len(extent)), key=lambda d: extent[d], default=None)
    dim = next((d for d in range(len(extent)) if extent[d] % count == 0 and extent[d]), longest)
    if dim is None or extent[dim] < count:
        return None
    out: list[tuple[np.ndarray, np.ndarray]] = []
    for i in range(count):
        lo, hi = start.copy(), stop.copy()
        lo[dim], hi[dim] = start[dim] + extent[dim] * i // count, start[dim] + extent[dim] * (i + 1) // count
        out.append((lo, hi))
    return out

