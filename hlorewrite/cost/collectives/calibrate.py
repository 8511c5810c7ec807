"""A topology file from a user's own nccl-tests output.

nccl-tests prints one line a size: bytes, elements, type, reduction, root, then time in microseconds, algorithm and bus
bandwidth, out of place and in place. Its size is the larger of operand and result, as this package counts.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collective_kinds import KINDS, default_constants
from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir import collectives

_MOST_BYTES, _LEAST_MICROS, _MOST_MICROS = 1 << 60, 1e-6, 1e18
BINARIES = {
    "all_reduce_perf": collectives.ALL_REDUCE.kind, "all_gather_perf": collectives.ALL_GATHER.kind,
    "reduce_scatter_perf": collectives.REDUCE_SCATTER.kind,
    "alltoall_perf": collectives.ALL_TO_ALL.kind, "sendrecv_perf": collectives.COLLECTIVE_PERMUTE.kind,
    "broadcast_perf": collectives.COLLECTIVE_BROADCAST.kind,
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """One run of an nccl-tests binary.

    Args:
      kind: the collective.
      ranks: ranks that took part, 0 when the output does not say.
      points: (bytes, seconds), by size; the better of out of place and in place.
    """

    kind: str
    ranks: int
    points: tuple[tuple[float, float], ...]


def parse_nccl_tests(text: str, name: str, kind: str | None = None) -> Sweep:
    """Reads the output of one nccl-tests run.

    Args:
      text: what the binary printed.
      name: the file, for errors.
      kind: the collective; by default from the name of the binary in the output or in ``name``.

    Returns:
      The sweep.

    Raises:
      InputError: fewer than two measured sizes, or a line that cannot be read.
      UsageError: the collective is neither given nor found.

    Example:
      >>> text = '''  1048576  262144  float  sum  -1  27.76  37.78  66.11  0  27.49  38.15  66.76  0
      ...             2097152  524288  float  sum  -1  37.91  55.32  96.81  0  37.80  55.48  97.09  0'''
      >>> [(size, round(time * 1e6, 2)) for size, time in parse_nccl_tests(text, "all_reduce_perf.txt").points]
      [(1048576.0, 27.49), (2097152.0, 37.8)]
    """
    found_kind = kind or next((each for binary, each in BINARIES.items() if binary in text), None) or next(
        (each for binary, each in BINARIES.items() if binary in name), None)
    if found_kind is None:
        raise UsageError(f"{name} does not say which collective it measured",
                         hint=f"add --kind, one of {', '.join(KINDS)}")
    best: dict[float, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if len(words) < 8 or not (words[0].isdecimal() and words[1].isdecimal()):
            continue
        size, micro = float(words[0]), _times(words, f"{name}:{number}")
        if size > _MOST_BYTES or not _LEAST_MICROS <= micro <= _MOST_MICROS:
            raise InputError("a size or time of this line of nccl-tests' table is out of bounds",
                             location=f"{name}:{number}", hint="check the file")
        if size > 0:
            best[size] = min(best.get(size, float("inf")), micro * 1e-6)
    if not best:
        raise InputError("contains no line of nccl-tests' table", location=name, hint="pass the whole output of *_perf")
    if len(best) == 1:
        raise InputError("measures one size, but a curve needs two", location=name,
                         hint="run *_perf over several, such as -b 1M -e 1G -f 2")
    ranks = {int(rank) for rank in re.findall(r"^#\s+Rank\s+(\d+)\b", text, re.MULTILINE)}
    return Sweep(found_kind, len(ranks), tuple(sorted(best.items())))


def _times(words: list[str], where: str) -> float:
    """The better of the out-of-place and in-place times of a line, in microseconds."""
    numbers = []
    for word in words[2:]:
        try:
            numbers.append(float(word))
        except ValueError:
            numbers.append(float("nan"))
    # After type, reduction and root: time, algbw, busbw, errors, twice; errors may be missing or N/A.
    start = next((i for i, value in enumerate(numbers[:-2]) if value > 0 and "." in words[2 + i]), None)
    if start is None:
        raise InputError("no time in this line of nccl-tests' table", location=where, hint="check the file")
    later = numbers[start + 4] if len(numbers) > start + 6 else float("nan")
    return min(numbers[start], later) if later > 0 else numbers[start]


def curve_name(sweep: Sweep, topo: Topology) -> str:
    """The curve a sweep measures: ``KIND-HOSTSxRANKS``.

    Raises:
      UsageError: the ranks do not fill hosts of the topology.
    """
    ranks = sweep.ranks or topo.gpus
    if ranks <= topo.gpus_per_host:
        return f"{sweep.kind}-1x{ranks}"
    if ranks % topo.gpus_per_host:
        raise UsageError(f"{ranks} ranks do not fill hosts of {topo.gpus_per_host} GPUs", hint="change --topology")
    return f"{sweep.kind}-{ranks // topo.gpus_per_host}x{topo.gpus_per_host}"


def fitted_constants(topo: Topology, sweeps: Iterable[Sweep]) -> dict[str, float]:
    """Launch time and efficiencies of the collective model that match sweeps of ring collectives best.

    The small sizes give the launch time, the two largest each kind's efficiency: slope of NCCL's model over slope
    measured.

    Args:
      topo: the cluster.
      sweeps: what was measured.

    Returns:
      Constants for the section ``[collectives]``.
    """
    import numpy as np

    from hlorewrite.cost.collectives import nccl
    from hlorewrite.cost.collectives.placement import distinct_placements
    launches, constants = [], {}
    for sweep in sweeps:
        if collectives.BY_KIND[sweep.kind].pairwise or len(sweep.points) < 2:
            continue
        place = distinct_placements(topo, sweep.kind, [range(sweep.ranks or topo.gpus)])
        if place is None:
            continue
        sizes, seconds = np.array(sweep.points).T
        wide = nccl.RankPlacement(*(np.repeat(getattr(place, field), len(sizes))
                                for field in nccl.RankPlacement.__dataclass_fields__))
        latency, transfer, _ = nccl.nccl_us(sweep.kind, sizes, wide, topo)
        small = sizes <= 2**16
        if small.any():
            launches.append(float(np.median(seconds[small] - (latency + transfer)[small] * 1e-6)))
        if sizes[-1] >= 2**28 and int(place.hosts[0]) == 1:
            share = (transfer[-1] - transfer[-2]) * 1e-6 / (seconds[-1] - seconds[-2])
            ranks = float(place.ranks[0])
            key = sweep.kind.replace("-", "_")
            loss = default_constants()[f"{key}_small_group_loss"] / ranks**2
            constants[f"{key}_efficiency"] = float(f"{share / (1 - loss):.4g}")
    if launches:
        constants["launch_s"] = float(f"{max(min(launches), 0.0):.4g}")
    return constants


def calibrated_toml(base: str, name: str, curves: Mapping[str, tuple[tuple[float, float], ...]],
                    constants: Mapping[str, float]) -> str:
    """A topology file that extends a shipped one with measured curves and fitted constants.

    Args:
      base: the shipped topology's name.
      name: the new one's.
      curves: points by ``KIND-HOSTSxRANKS``.
      constants: the constants for the section ``[collectives]``.

    Returns:
      TOML text.
    """
    lines = [f'extends = "{base}"', f'name = "{name}"']
    if constants:
        lines += ["", "# fitted to nccl-tests: launch time, and shares of NCCL's asymptotes", "[collectives]"]
        lines += [f"{key} = {value!r}" for key, value in sorted(constants.items())]
    lines += ["", "# measured by nccl-tests: [bytes, seconds]", "[curves]"]
    for key, points in sorted(curves.items()):
        inner = ",\n".join(f"  [{int(size)}, {time:.6g}]" for size, time in points)
        lines.append(f"{key} = [\n{inner},\n]")
    return "\n".join(lines) + "\n"
