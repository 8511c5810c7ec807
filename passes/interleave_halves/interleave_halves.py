"""interleave-halves: collectives that the next op waits for run concurrently with compute of the other half."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.ir import COLLECTIVES, Module, View, ir, op_key
from hlorewrite.passes.common.block_waits import BlockTimes, waiting
from hlorewrite.passes.common.dimension_region import Region
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles
from hlorewrite.passes.common.overlap_model import HALF, OverlapModel
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.interleave_halves.chains import WaitWalk, chained
from hlorewrite.passes.interleave_halves.choose import HalvesChoice, HalvesChooser, calls_longer
from hlorewrite.passes.interleave_halves.emit import HalvesEmitter
from hlorewrite.passes.interleave_halves.gain import saved_seconds, whole_seconds
from hlorewrite.passes.interleave_halves.region import HalfRegionFinder
from hlorewrite.passmanager.base import Pass, PassContext

_UNCHAINED = "is in no chain of collectives that wait for one another"
Seeds = dict[int, ir.Operation]


@dataclass(frozen=True)
class Saving:
    """The saving of one choice of halves.

    Attributes:
      choice: what is in halves; None if so little can be saved that no choice was made.
      seconds: saved in one run of the module; without a choice, the most that can be.
      share: the saving, as a share of the blocks that contain the collectives.
      sums: ops on the way from one of these collectives to the next that sum the halves, so that both are waited for.
      sent: the collectives that compute waited for and that are in halves.
      dimension: the dimension of the first collective.
    """

    choice: HalvesChoice | None
    seconds: float
    share: float
    sums: int
    sent: Seeds
    dimension: int


@dataclass(frozen=True)
class HalvesRound:
    """What is known of a module until the next collectives are divided.

    Attributes:
      times: those of its blocks.
      waited: how long compute waits for each of its collectives in one run of the module, by their keys.
      walk: the edges between its ops.
    """

    times: BlockTimes
    waited: Mapping[int, float]
    walk: WaitWalk


@dataclass(frozen=True)
class InterleaveHalves(Pass):
    """Splits work that waits for collectives into two halves of the batch.

    Tensor-parallel layers reduce their activations and wait: the next op needs the sum. Here the ops between such
    collectives run on two halves of a dimension that none of them mixes (the batch, as a rule), so that the collective
    of one half runs concurrently with the compute of the other:

        y = f(AR(x))    becomes    y0 = f(AR(x0)); y1 = f(AR(x1)),    x = [x0; x1], y = [y0; y1].

    This is what Domino (Wang et al. 2024), DeepSeek's two micro-batches and the two-batch overlap of inference engines
    do by hand, forward and backward, in loops over layers or unrolled, under ``jax.checkpoint`` too. Loops carry and
    stack halves. Sums over the dimension, such as gradients of weights, are sums of two. Ops that mix rows stay whole:
    batch norm, routing with a capacity, losses. Bytes on the wire stay as they are, in twice as many calls.

    Devices may share the rows of the dimension, as in sequence parallelism. A half is then half of the rows of each
    device, so a gather along the dimension joins halves and a scatter cuts them. The product of the first half starts
    when half of the rows has arrived, as in a collective matmul (Wang et al. 2023) of two steps.

    Legal because each op in halves computes every element from the same elements as before; a sum over the dimension
    is added in another order. The members are those of ``ops.dims``: an op without a row there stays whole. Pays if
    the blocks that wait take at least ``min_gain`` less time by the model of the cluster, after the time to read
    weights twice, to sum, to cut and to join. A block that would take longer stays whole.

    Attributes:
      min_gain: the smallest share of these blocks' time to be gained; a negative one divides whatever can be.
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> InterleaveHalves().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "interleave-halves"
    beside_compute: ClassVar[bool] = True
    min_gain: float = 0.01
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if not ctx.view(module).ops(*COLLECTIVES):
            return False
        # The ops between collectives may be in any function, such as one of jax.nn.
        return with_inlined(module, ctx, None, lambda inlined, view: self._on(inlined, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        changed, tried = False, set[tuple[int, int]]()
        # Ends: each round puts collectives into halves, which are marked, or tries one that was not tried before.
        while True:
            model = OverlapModel(view, ctx, self.name, self.topology)
            times = BlockTimes(model)
            seeds, waited = _exposed(view, times, self._anyway(ctx))
            saving = self._first_that_pays(seeds, HalvesRound(times, waited, WaitWalk()), tried, ctx)
            if saving is None or saving.choice is None:
                return changed
            self._report(saving, model, ctx)
            editor = ctx.editor(module, self.name)
            HalvesEmitter(editor, saving.choice, ChannelHandles(view, editor)).run()
            changed = True

    def _first_that_pays(self, seeds: Seeds, known: HalvesRound, tried: set[tuple[int, int]], ctx: PassContext
                         ) -> Saving | None:
        """The best choice for the first collective where one pays.

        Args:
          seeds: collectives that compute waits for.
          known: what is known of the module.
          tried: (key of a collective, dimension) of regions tried before; this function adds to it.
          ctx: the context of the pass.
        """
        model = known.times.model
        for key, first in seeds.items():
            savings, refused = list[Saving](), list[str]()
            for dimension in range(ir.RankedTensorType(first.results[0].type).rank):
                if (key, dimension) in tried:
                    continue
                region = HalfRegionFinder().region(first, dimension)
                sent = {op_key(member.op): member.op for member in region.members if op_key(member.op) in seeds}
                tried |= {(key, dimension),
                          *((each, region.dims[op.results[0]]) for each, op in sent.items())}
                least = 0.0 if self._anyway(ctx) else self.min_gain
                saving = _saving_of(region, sent, known, dimension, least) if key in sent else None
                if saving is not None:
                    savings.append(saving)
                else:
                    refused.append(region.refused.get(key, _UNCHAINED))
            simulated = [each for each in savings if each.choice is not None]
            best = max(simulated, key=_worth, default=None)
            if best is not None and (self._anyway(ctx) or (best.share > self.min_gain and not best.sums)):
                return best
            self._stays(first, max(savings, key=_worth, default=None), refused, model, ctx)
        return None

    def _stays(self, op: ir.Operation, best: Saving | None, refused: list[str], model: OverlapModel, ctx: PassContext
               ) -> None:
        """Reports why a collective is not divided."""
        if best is not None and best.sums:
            tell(ctx, "unprofitable", self.name, "it stays as it is: on the way to the next collective its halves "
                 f"along dimension {best.dimension} are summed, so that what follows waits for both", model.view, op)
        elif best is not None:
            tell(ctx, "unprofitable", self.name, f"it stays as it is: two halves along dimension {best.dimension} "
                 f"would save {'' if best.choice else 'at most '}{best.seconds * 1e6:.0f} us per run, {best.share:.1%} "
                 f"of what waits for it, according to the model of {model.spec}", model.view, op)
        elif refused:
            tell(ctx, "missed", self.name, "it stays as it is: it " + "; it ".join(
                dict.fromkeys(filter(None, refused))), model.view, op)

    def _anyway(self, ctx: PassContext) -> bool:
        return ctx.ignore_cost or self.min_gain < 0

    def _report(self, saving: Saving, model: OverlapModel, ctx: PassContext) -> None:
        ctx.count("collectives in halves", len(saving.sent))
        first = next(iter(saving.sent.values()))
        others = f", with {len(saving.sent) - 1} more" if len(saving.sent) > 1 else ""
        tell(ctx, "applied", self.name, f"it runs in two halves along dimension {saving.dimension}{others}, each "
             f"concurrently with compute of the other half; that saves {saving.seconds * 1e3:.2f} ms per run, "
             f"according to the model of {model.spec}", model.view, first)


def _exposed(view: View, times: BlockTimes, every: bool) -> tuple[Seeds, dict[int, float]]:
    """The collectives that compute waits for.

    Args:
      view: the module.
      times: those of its blocks.
      every: all others too, after them.

    Returns:
      (the collectives, longest wait first; the wait for each in one run of the module, by their keys).
    """
    seconds: dict[int, float] = {}
    ops = {op_key(op): op for op in view.ops(*COLLECTIVES) if HALF not in op.attributes}
    blocks = {op.block: None for op in ops.values()}
    for block in blocks:
        runs = executed_times(block.operations[0].operation)[0]
        for key, waited in waiting(block, times).items():
            if key in ops and (every or waited > calls_longer(ops[key], times.model)):
                seconds[key] = runs * waited
    return {key: ops[key] for key in sorted(seconds, key=lambda key: -seconds[key])}, seconds


def _worth(saving: Saving) -> tuple[int, float]:
    """The order of savings: without sums first, then the longer time."""
    return -saving.sums, saving.seconds


def _saving_of(region: Region, sent: Seeds, known: HalvesRound, dimension: int, least: float) -> Saving | None:
    """The saving of halves along one dimension.

    Args:
      region: what can be in halves.
      sent: its collectives that compute waits for, by their keys.
      known: what is known of the module.
      dimension: that of the first collective.
      least: the smallest share that pays. Halves save at most the waits: if these are less, no choice is made.

    Returns:
      The saving; None if no collective waits for another one.
    """
    most, whole = sum(known.waited[key] for key in sent), whole_seconds(sent.values(), known.times)
    if most < least * whole:
        return Saving(None, most, most / whole, 0, sent, dimension)
    chooser = HalvesChooser(region, known.times.model)
    sums = {op_key(member.op) for member in region.members if member.gives_partial_sums}
    savings, tried = list[Saving](), list[set[int]]()
    for walk in (known.walk, WaitWalk(_waits_for_both(region))):  # chains through such ops, and chains that end there
        chains = chained(sent, walk)
        # Ends: each round leaves blocks out.
        while chains.ops and chains.keys not in tried:
            tried.append(chains.keys)
            choice = chooser.best(chains)
            by_block = saved_seconds(choice, chains, known.times)
            seconds = sum(by_block.values())
            savings.append(Saving(choice, seconds, seconds / whole if whole else 0.0, len(sums & chains.keys),
                                  chains.ops, dimension))
            chains = chained({key: op for key, op in chains.ops.items() if by_block[op.block] > 0}, walk)
    return max(savings, key=_worth, default=None)


def _waits_for_both(region: Region) -> set[int]:
    """The keys of ops whose halves wait for both halves of what they read: they sum them, or read a value whole."""
    found = set[int]()
    for member in region.members:
        read = {each.position for each in member.reads if each.op == member.op}
        whole = (value for position, value in enumerate(member.op.operands) if position not in read)
        if member.gives_partial_sums or (member.position is None and any(each in region.maker for each in whole)):
            found.add(op_key(member.op))
    return found
