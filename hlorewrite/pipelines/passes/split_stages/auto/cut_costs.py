"""Costs of each possible cut of a step, in seconds and bytes, and the cuts that make the slowest stage fastest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.pipelines.passes.split_stages.auto.cut_graph import CutGraph
from hlorewrite.pipelines.passes.split_stages.graph import StepNode

MOST_CUTS = 160
"""The most candidates that are compared; if there are more, those over which the fewest bytes are sent, spread evenly
over the work."""
_ABOUT = 1.1


@dataclass(frozen=True)
class CutCosts:
    """The possible cuts of a step, in the order of its forward pass.

    Attributes:
      cuts: how many nodes of the forward are before each, shape [cuts].
      backward: how many nodes of the backward belong to the stages after each, shape [cuts].
      seconds: forward and backward before each on one device, from 0 to all of it, shape [cuts + 2].
      sent: bytes of activations and cotangents over each, shape [cuts].
      static: bytes of the arguments first read before each, shape [cuts + 2].
      kept: bytes that forwards before each keep for the backward, shape [cuts + 2].
    """

    cuts: tuple[int, ...]
    backward: tuple[int, ...]
    seconds: np.ndarray
    sent: np.ndarray
    static: np.ndarray
    kept: np.ndarray


@dataclass(frozen=True)
class _Readings:
    """The places at which a value is read, and the one at which it is made (or first read, if every stage has it).

    Attributes:
      size: bytes.
      made: place in the forward; -1 for a value of the backward.
      last: last place in the forward that reads it; -1 for none.
      first_back: first place in the backward that reads it; -1 for none.
      last_back: the last one.
    """

    size: int
    made: int
    last: int
    first_back: int
    last_back: int


def cut_costs(graph: CutGraph, clock: KernelClock) -> CutCosts:
    """The possible cuts, at places of the forward pass where the fewest bytes are alive.

    Args:
      graph: what can be cut.
      clock: seconds of kernels.

    Returns:
      The cuts with their costs.
    """
    forward = np.cumsum([0.0, *(_seconds(node, clock) for node in graph.forward)])
    backward = np.cumsum([0.0, *(_seconds(node, clock) for node in graph.backward)])
    values = _values(graph)
    count = len(graph.forward)
    alive = _alive([(each.made, each.last, each.size) for each in values["made"] if each.last > each.made], count)
    cuts = _lowest(alive, forward)
    halves = _halves(graph, cuts, values)
    work = [forward[cut] + backward[-1] - backward[half] for cut, (half, _) in zip(cuts, halves, strict=True)]
    static = np.zeros(count + 1)
    for each in values["arguments"]:
        static[each.made + 1:] += each.size
    kept = np.zeros(count + 1)
    for each in values["made"]:
        if each.last_back >= 0:
            kept[each.made + 1:] += each.size
    places = [0, *cuts, count]
    return CutCosts(tuple(cuts), tuple(half for half, _ in halves), np.array([0.0, *work, forward[-1] + backward[-1]]),
                    np.array([alive[cut] + back for cut, (_, back) in zip(cuts, halves, strict=True)]),
                    static[places], kept[places])


def backward_halves(graph: CutGraph, cuts: Sequence[int]) -> list[int]:
    """For each cut of the forward pass, the number of nodes of the backward pass that belong to the stages after it."""
    return [half for half, _ in _halves(graph, cuts, _values(graph))]


def _seconds(node: StepNode, clock: KernelClock) -> float:
    return clock.seconds(node.op) if node.op is not None else 0.0


def _values(graph: CutGraph) -> dict[str, list[_Readings]]:
    """Where values are made and read: ``made`` in the forward, ``arguments``, and ``back`` in the backward."""
    values = graph.step.values
    made: dict[int, int] = {each: place for place, node in enumerate(graph.forward) for each in node.results}
    born: dict[int, int] = {each: place for place, node in enumerate(graph.backward) for each in node.results}
    reads: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
    for side, nodes in enumerate((graph.forward, graph.backward)):
        for place, node in enumerate(nodes):
            for each in {values.find(number) for number in node.reads}:
                reads[side].setdefault(each, []).append(place)
    stored = _stored(graph)
    found: dict[str, list[_Readings]] = {"made": [], "arguments": [], "back": []}
    for each in {*reads[0], *reads[1]}:
        ahead, back = reads[0].get(each, []), reads[1].get(each, [])
        if each in made:
            kind, place = "made", made[each]
        elif each in born:
            kind, place = "back", born[each]
        elif each in stored and ahead:
            kind, place = "arguments", ahead[0]
        else:
            continue
        found[kind].append(_Readings(values.bytes(each), place, max(ahead, default=-1), min(back, default=-1),
                                   max(back, default=-1)))
    return found


def _stored(graph: CutGraph) -> set[int]:
    """Values that do not change in the loop: parameters, and values computed from them alone."""
    step, values = graph.step, graph.step.values
    found = {*map(values.find, step.arguments), *(each for node in step.before for each in node.results)}
    for node in step.body:
        if all(values.find(number) in found for number in node.reads):
            found.update(node.results)
    batch = {values.find(node.operands[0]) for node in step.body if node.name == "stablehlo.dynamic_slice"}
    return found - batch


def _alive(spans: list[tuple[int, int, int]], count: int) -> np.ndarray:
    """Bytes made before and read after each place, shape [count + 1]: of spans (made, last reader, bytes)."""
    change = np.zeros(count + 2)
    for made, last, size in spans:
        change[made + 1] += size
        change[last + 1] -= size
    return np.cumsum(change)[:count + 1]


def _lowest(alive: np.ndarray, forward: np.ndarray) -> list[int]:
    """Between each two kernels the last place with the fewest bytes alive; of these those with no much better
    neighbour: what a loop stacks makes each place between its layers a little worse than the one before."""
    between: dict[float, int] = {}
    for place in range(1, len(alive) - 1):
        done = float(forward[place])
        if 0 < done < forward[-1] and alive[place] > 0 and (done not in between
                                                            or alive[place] <= alive[between[done]]):
            between[done] = place
    places = list(between.values())
    size = [np.inf, *(alive[place] for place in places), np.inf]
    inner = [place for number, place in enumerate(places, start=1)
             if size[number] <= _ABOUT * min(size[number - 1], size[number + 1])]
    if len(inner) <= MOST_CUTS:
        return inner
    share = np.minimum((forward[inner] / forward[-1] * MOST_CUTS).astype(int), MOST_CUTS - 1)
    best: dict[int, int] = {}
    for place, bucket in zip(inner, share.tolist(), strict=True):
        if bucket not in best or alive[place] < alive[best[bucket]]:
            best[bucket] = place
    return sorted(best.values())


def _halves(graph: CutGraph, cuts: Sequence[int], values: dict[str, list[_Readings]]) -> list[tuple[int, float]]:
    """For each cut, the place in the backward pass with the fewest bytes on the wrong side, and the bytes sent there.
    """
    count = len(graph.backward)
    crossing = _alive([(each.made, each.last_back, each.size) for each in values["back"]
                       if each.last_back > each.made], count)
    known = [each for kind in ("made", "arguments") for each in values[kind] if each.last_back >= 0]
    found: list[tuple[int, float]] = []
    limit = count
    for cut in cuts:
        wrong = np.zeros(count + 1)
        for each in known:
            if each.made >= cut:  # stored after the cut: no reader before it
                wrong[:each.last_back + 1] += each.size
            elif each.last < cut:  # stored before the cut: no reader after it
                wrong[each.first_back + 1:] += each.size
        total = crossing + wrong
        limit = int(np.argmin(total[:limit + 1]))
        found.append((limit, float(total[limit])))
    return found


# ---- stages by dynamic programming: which cuts make the slowest stage fastest

# After the inter-operator pass of Alpa (Zheng et al., OSDI 2022, section 5): for a bound on the slowest stage, the cut
# of the least total time; over several bounds. A pipeline takes about the sum of its stages plus m - 1 times the
# slowest.


_SLACK = (1.0, 1.02, 1.05, 1.1, 1.25, 1.5)
"""Bounds on the slowest stage that are tried, as multiples of the least one."""


@dataclass(frozen=True)
class StageLimits:
    """The devices of the stages.

    Attributes:
      devices: devices of each stage's mesh, shape [stages].
      alive: micro-batches that each stage keeps at once, shape [stages].
      memory_bytes: the memory of one device in bytes.
      copies: bytes of parameters, accumulators and optimizer state for each byte of parameters.
      bytes_per_s: the rate of a transfer between meshes.
    """

    devices: tuple[int, ...]
    alive: tuple[int, ...]
    memory_bytes: float
    copies: float
    bytes_per_s: float


def best_cuts(costs: CutCosts, limits: StageLimits) -> list[tuple[int, ...]]:
    """The most promising cuts into stages.

    Args:
      costs: the possible cuts.
      limits: what the stages run on.

    Returns:
      Indices of ``costs.cuts`` that rise, one fewer than stages, the most promising first; empty when no cut fits the
      memory.

    Example:
      >>> costs = CutCosts((1, 2, 3), (3, 2, 1), np.arange(5.0), np.zeros(3), np.zeros(5), np.zeros(5))
      >>> best_cuts(costs, StageLimits((1, 1), (2, 1), 1.0, 4.0, 1.0))[0]
      (1,)
    """
    found: dict[tuple[int, ...], None] = {}
    for exposed in (0.0, 1.0):
        times = [_stage_times(costs, limits, stage, exposed) for stage in range(len(limits.devices))]
        slowest = _least(times, np.maximum)[0]
        for slack in _SLACK if np.isfinite(slowest) else ():
            bounded = [np.where(each <= slowest * slack * (1 + 1e-9), each, np.inf) for each in times]
            cut = _least(bounded, np.add)[1]
            if cut is not None:
                found[cut] = None
    return list(found)


def _stage_times(costs: CutCosts, limits: StageLimits, stage: int, exposed: float) -> np.ndarray:
    """Seconds of a stage from one place to another, infinite if it does not fit; shape [places, places]."""
    devices = limits.devices[stage]
    sent = np.concatenate([[0.0], costs.sent, [0.0]]) * exposed / limits.bytes_per_s
    seconds = (costs.seconds[None, :] - costs.seconds[:, None]) / devices + sent[None, :] + sent[:, None]
    memory = (costs.static[None, :] - costs.static[:, None]) * limits.copies + (
        costs.kept[None, :] - costs.kept[:, None]) * limits.alive[stage] / devices
    places = np.arange(len(costs.seconds))
    return np.where((places[:, None] < places[None, :]) & (memory <= limits.memory_bytes), seconds, np.inf)


def _least(times: Sequence[np.ndarray], join: np.ufunc) -> tuple[float, tuple[int, ...] | None]:
    """The least maximum or sum over stages, and its cuts."""
    best, chosen = times[0][0], list[np.ndarray]()
    for each in times[1:]:
        joined = join(best[:, None], each)
        chosen.append(np.argmin(joined, axis=0))
        best = np.min(joined, axis=0)
    if not np.isfinite(best[-1]):
        return float("inf"), None
    place, cuts = len(best) - 1, list[int]()
    for each in reversed(chosen):
        place = int(each[place])
        cuts.append(place - 1)
    return float(best[-1]), tuple(reversed(cuts))
