"""The ways to compile a step, in the order to try them, and when each is worth trying."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hlorewrite.cost import topology
from hlorewrite.errors import OutputError
from hlorewrite.hlo.published_flags import FLAG_SETS, PROFILE, beside
from hlorewrite.jaxbridge.baseline.judge import REWRITTEN, best_of, fits
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.step.variants import Variant, variants
from hlorewrite.jaxbridge.xla.platform_passes import with_platform_passes
from hlorewrite.jaxbridge.xla.profile_files import profile_options
from hlorewrite.passes.sink_waits import SinkWaits
from hlorewrite.passes.tokens_to_experts import TokensToExperts
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.spec import format_pipeline, parse_pipeline

HIDDEN = 0.01
"""No more ways are tried once communication adds a smaller share than this to the best step so far."""
MUCH_EXPOSED = 0.1
"""Free memory is spent, and ``comm`` tried with sunk waits, only while communication adds more than this share. On 35
steps free memory helped none below."""
ENOUGH = 0.03
"""Unfused calls are not tried once the best way gains this share: on 35 steps they won only below it."""
LITTLE = 0.02
"""The same limit for XLA alone with unrolled loops."""
MUCH = 0.15
"""Published flags are not tried once the best way gains this share: on 20 steps they gained less than 1 % there."""
FLAGGED = 0.05
"""Published flags are tried only while communication adds more than this share: unrolled loops take two to four times
as long to compile."""
HARDLY = 0.01
"""If the best way gains less than this share, XLA alone is compiled with published flags however little communication
adds: on a GPT under FSDP, where it added 1.8 %, they gained 0.7 %."""
LEAST_COMPUTE = 0.95
"""No way is tried once the best step takes at most this share of XLA alone's kernel time: no pass saves more of it."""
WAITING = 0.03
"""A profile is tried only while compute waits for communication for more than this share."""
MOST_UNROLLED = 8 << 20
"""The most bytes of XLA alone's program for which unrolled loops and pairs of iterations are tried. Larger ones are
networks whose layers are written out in a loop over micro-batches: a U-Net of 12 MiB took 110 s to compile, 1.5 times
as long for each step and 1.8 times the memory."""
COMBINED, UNROLLED = "pipelined, combined", "pipelined, double-buffered"
"""The published flags to try. Combined messages pay on several hosts, whose links need large ones, and where no pass
does better. Unrolled loops take two to four times as long to compile, so they come last."""
BOTH = "pipelined, combined, double-buffered"
"""Tried where combined messages alone are better than any pass: there they are worth more than the times of a profile
(70B over four hosts, 17.9 s instead of 18.1 s; other steps take longer). If it is no better than combined messages,
loops are also unrolled without them."""
GUIDED = "profile-guided"
"""XLA's scheduler takes the predicted times of the same way's kernels and transfers (profile-guided latency
estimation). It compiles as fast as without."""
MOST_GUIDED = 0.9
"""The largest share of the time that compute waits which a profile is expected to hide: on nine steps it hid 0 to 86 %.
"""
HALVES = "interleave-halves"
"""If ``time`` gains little, it is tried once more without this pass: XLA may schedule two halves badly."""
_LONGEST_NAME = 40
_LOOP = " while("


@dataclass(frozen=True)
class Way:
    """A way to compile a step.

    Attributes:
      name: the name in tables and sentences; those of the user's own module begin with ``XLA alone``.
      variant: the passes, and the bytes that they may spend; None for the user's own module.
      flags: XLA options, beyond the user's, without dashes.
      exposed: it is tried while communication adds more than this share of the best step so far; for the user's own
        module, of XLA alone's.
      gained: it is tried while the best step so far saves less than this share of XLA alone's.
      only_if_large: it is tried only where every way before took too much memory.
      of: the name of the same way without its XLA options; empty if it has none.
      published: the name of the published set that its options come from.
      extends: the name of a way that spends less memory: if that one takes longer than XLA alone, more will not help.
      continues: the name of a way with the same passes but the last ones.
      after: the name of a way, without XLA options, that has to be the best so far.
      unless: the name of one that must not be.
      copies: whether its passes copy the bodies of loops.
    """

    name: str
    variant: Variant | None = None
    flags: tuple[tuple[str, str | bool | int], ...] = ()
    exposed: float = HIDDEN
    gained: float = 1.0
    only_if_large: bool = False
    of: str = ""
    published: str = ""
    extends: str = ""
    continues: str = ""
    after: str = ""
    unless: str = ""
    copies: bool = False

    @property
    def base(self) -> str:
        """The name of the way without its XLA options."""
        return self.of or self.name

    def worth_trying(self, alone: Measured, best: Measured, fitted: bool) -> str:
        """Why the way is not worth compiling; empty if it is.

        Args:
          alone: XLA alone.
          best: the best way so far, which may be XLA alone.
          fitted: whether a way that was tried fits the memory.
        """
        if self.only_if_large and fitted:
            return "a way that takes more memory fits"
        if self.published and fits(alone if self.variant is None else best) is False:
            return "the step does not fit without these options, which take no less memory"
        if best.counted_s is None or alone.counted_s is None:
            return ""
        hidden = alone if self.flags and self.variant is None else best  # the step whose exposed time the way may save
        exposed, whole = (hidden.counted_s or 0.0) - hidden.compute_s, max(hidden.counted_s or 0.0, 1e-12)
        if exposed <= self.exposed * whole:
            name = "XLA alone" if self.flags and hidden is alone else "the best step"
            return f"communication adds only {exposed / whole:.1%} to {name}"
        if best.counted_s < (1 - self.gained) * alone.counted_s:
            return f"the best step is {1 - best.counted_s / alone.counted_s:.1%} shorter already"
        if best.counted_s <= LEAST_COMPUTE * alone.compute_s:
            return "the best step takes less than the kernels of XLA alone"
        if self.published not in (UNROLLED, BOTH) and not self.copies:
            return ""
        if alone.hlo and _LOOP not in alone.hlo:
            return "it has no loop to copy"
        if len(alone.hlo) > MOST_UNROLLED:
            return f"its loops are too large to copy ({len(alone.hlo) >> 20} MiB of HLO)"
        return ""


def rewriting_ways(passes: Sequence[Pass], name: str, platform: str, *, xla_scatters: bool, free: int | None = None,
                   to_experts: bool = False) -> list[Way]:
    """The ways of a pipeline; for ``auto``, those of all named pipelines.

    Args:
      passes: the user's; none for ``auto``.
      name: the name of the pipeline.
      platform: ``cpu`` or ``gpu``.
      xla_scatters: leave reduce-scatters to XLA.
      free: bytes of a device that XLA alone leaves free; None to spend no more than the passes' own limits.
      to_experts: whether ``tokens-to-experts`` changes the step.

    Returns:
      At least one.

    Example:
      >>> [way.name for way in rewriting_ways((), "auto", "gpu", xla_scatters=True, free=1 << 30)]
      ['time', 'pairs', 'pairs, sunk waits', 'time, sunk waits', 'time with free memory', 'time, undivided',
       'comm, unfused', 'comm, sunk waits']
    """
    if passes:
        return _of_pipeline(passes, name, xla_scatters)
    time, comm, pairs = (with_platform_passes(parse_pipeline(PIPELINES[each]), platform)
                         for each in ("time", "comm", "pairs"))
    undivided = tuple(step for step in time if step.name != HALVES)
    unfused = variants(comm, xla_scatters=xla_scatters)[1]
    return [Way("time", Variant(time)),
            *([Way("time, tokens to experts", Variant((TokensToExperts(), *time)), exposed=FLAGGED)] if to_experts
              else []),
            Way("pairs", Variant(pairs), exposed=WAITING, copies=True),
            Way("pairs, sunk waits", Variant((*pairs, SinkWaits())), exposed=FLAGGED, continues="pairs", after="pairs",
                copies=True),
            Way("time, sunk waits", Variant((*time, SinkWaits())), exposed=FLAGGED, continues="time", unless="pairs"),
            *([Way("time with free memory", Variant(time, free), exposed=MUCH_EXPOSED, extends="time")] if free
              else []),
            *([Way("time, undivided", Variant(undivided), gained=ENOUGH)] if len(undivided) < len(time) else []),
            Way("comm, unfused", unfused, gained=ENOUGH),
            Way("comm, sunk waits", replace(unfused, passes=(*unfused.passes, SinkWaits())), exposed=MUCH_EXPOSED,
                continues="comm, unfused", after="time, sunk waits")]


def _of_pipeline(passes: Sequence[Pass], name: str, xla_scatters: bool) -> list[Way]:
    """A pipeline as it is, then variants that take less and less memory."""
    first, *rest = variants(passes, xla_scatters=xla_scatters)
    ways = [Way(name, first)]
    for variant in rest:
        fused = len(ways) == 1 and variant.memory is None
        less = "unfused" if fused else "in place" if variant.memory is None else "in place and without memory"
        ways.append(Way(f"{name}, {less}", variant, gained=ENOUGH, only_if_large=not fused))
    return ways


def with_own_options(way: Way, users: Mapping[str, object]) -> Way:
    """Adds to a way the XLA options that its passes rely on (``Pass.xla_options``).

    Args:
      way: the way.
      users: flags that the user sets, which stay as they are.

    Example:
      >>> made = with_own_options(Way("mine", Variant(tuple(parse_pipeline("separate-streams")))), {})
      >>> sorted(dict(made.flags))[-1]
      'xla_gpu_experimental_parallel_collective_overlap_limit'
    """
    options = {name: value for step in (way.variant.passes if way.variant else ())
               for name, value in step.xla_options.items()}
    return replace(way, flags=tuple(beside(options, users).items())) if options else way


def flag_sets_for(cluster: str) -> tuple[str, ...]:
    """The sets of XLA options that are tried on a cluster, the cheapest to compile first.

    Args:
      cluster: the name of a topology; without one, no flags are tried.

    Example:
      >>> flag_sets_for("h200:1x8"), flag_sets_for("")
      (('profile-guided', 'pipelined, double-buffered'), ())
    """
    if not cluster:
        return ()
    return (GUIDED, COMBINED, UNROLLED, BOTH) if topology(cluster).hosts > 1 else (GUIDED, UNROLLED)


def flagged(way: Way, users: Mapping[str, object], sets: Sequence[str]) -> list[Way]:
    """A way combined with published XLA flags of the installed release.

    Args:
      way: the way.
      users: flags that the user sets, which stay as they are.
      sets: names of the published sets.

    Returns:
      One way for each set, except sets whose flags the user sets already.

    Example:
      >>> [each.name for each in flagged(Way("time"), {}, (UNROLLED,))]
      ['time, pipelined, double-buffered']
    """
    published = {each.name: each.flags for each in FLAG_SETS}
    return [replace(way, name=f"{way.name}, {name}", flags=left, exposed=FLAGGED,
                    gained=LITTLE if way.variant is None and name != COMBINED else MUCH, only_if_large=False,
                    of=way.name, published=name)
            for name in sets if (left := tuple(beside(published[name], users).items()))]


def guided(way: Way, made: Measured, users: Mapping[str, object]) -> Way | None:
    """A way whose kernels and transfers XLA's scheduler places by predicted times.

    Args:
      way: the way.
      made: XLA's compilation of it, with its times.
      users: flags that the user sets; a profile among them stays.

    Returns:
      The way; None if no time is known, or the profile cannot be kept.
    """
    if not made.profile or PROFILE in users:
        return None
    try:
        options = beside(profile_options(made.profile), users)
    except OutputError:
        return None
    return replace(way, name=f"{way.name}, {GUIDED}", flags=tuple({**dict(way.flags), **options}.items()),
                   exposed=HIDDEN, gained=1.0, only_if_large=False, of=way.base, published=GUIDED)


def name_of(passes: object, pipeline: Sequence[Pass]) -> str:
    """The name of a pipeline in tables: as the user wrote it, if that is short.

    Example:
      >>> name_of("comm", parse_pipeline(PIPELINES["comm"])), name_of("cse,cse,cse,cse,cse,cse,cse,cse,cse,cse,cse", ())
      ('comm', 'the rewritten module')
    """
    text = passes if isinstance(passes, str) else format_pipeline(pipeline)
    known = {format_pipeline(parse_pipeline(made)): name for name, made in PIPELINES.items()}
    text = known.get(text) or known.get(format_pipeline(pipeline), text)
    return text if 0 < len(text) <= _LONGEST_NAME else REWRITTEN


def preferred(tried: Sequence[tuple[Way, Measured]]) -> list[tuple[Way, Measured]]:
    """Sorts ways by preference among equally long steps: fewer XLA options, bytes on the wire, calls, temporaries."""
    return sorted(tried, key=lambda one: (len(one[0].flags), one[1].wire, one[1].calls, one[1].temp))


def best_way(alone: Measured, tried: Sequence[tuple[Way, Measured]], budget: int | None = None
             ) -> tuple[Way, Measured] | None:
    """The way to compile; None for XLA alone. Takes the arguments of ``best_of``."""
    ordered = preferred(tried)
    number = best_of(alone, [(way.name, made) for way, made in ordered], budget)
    return None if number is None else ordered[number]
