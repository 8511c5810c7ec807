"""The options of a step, written down once: ``optimize``, ``patch_jit``, ``exec`` and plans are views of them.

A field contains the text of an option, its check, and its form on the command line. The names that users write are
typed by ``TypedDict`` classes, one a surface. This file imports no jax, so that the command line starts fast.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, get_args

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.lockfile.files import OnMismatch, PlanFiles, checked_files
from hlorewrite.passmanager.named import AUTO
from hlorewrite.util.frames import USUAL_FRAMES, Frames
from hlorewrite.util.read import read_json
from hlorewrite.util.sizes import MemoryBudget, checked_budget

if TYPE_CHECKING:
    from hlorewrite.passmanager.base import Pass

    Passes = str | Pass | Sequence[str | Pass]
    """A pipeline as users write it."""

Keep = Literal["better", "compiled", "always"]
"""``better``: what the schedule and the buffers say; ``compiled``: both compiled to the end; ``always``: no
comparison."""
OnError = Literal["raise", "fallback"]
StepCheck = Literal["first_call", "proof", "xla"]
Match = str | Sequence[str] | Callable[[str], bool] | None
"""The modules to rewrite: a name or glob pattern, several, or a predicate of the name; None for all that
communicate."""
Function = TypeVar("Function", bound=Callable[..., Any])
_TUNED = ("passes", "keep", "topology", "memory_budget")
"""Options that a plan of ``hlorewrite tune`` sets if the user leaves them open."""


@dataclass(frozen=True)
class OptionField:
    """Properties of an option other than its type and default.

    Attributes:
      text: its effect, as Markdown without a final full stop; the first sentence is the help of the flag.
      choices: the values there are; empty for any.
      check: converts what a user writes to the stored value; raises ``UsageError``.
      metavar: the metavar of the flag; empty for a flag without a value.
      unset: what happens if it is not given and has no default.
      negated: help of the flag that switches off what is on by default.
    """

    text: str
    choices: tuple[str, ...] = ()
    check: Callable[[Any], Any] | None = None
    metavar: str = ""
    unset: str = ""
    negated: str = ""

    @property
    def plain(self) -> str:
        """The text without the targets of links, in the markup of docstrings."""
        return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", self.text).replace("`", "``")

    @property
    def brief(self) -> str:
        """The first sentence, as the help of a flag."""
        return self.negated or self.plain.replace("``", "").partition(". ")[0].replace("%", "%%")


def _about(text: str, **more: Any) -> dict[str, OptionField]:
    """The metadata of a field; arguments are those of ``OptionField``."""
    return {"option": OptionField(text, **more)}


def _topology(text: str) -> str:
    if text:
        from hlorewrite.cost.cluster.topology_file import topology
        topology(text)
    return text


def as_passes(passes: Passes) -> tuple[Pass, ...]:
    """Passes from pipeline text, passes, or a mixture.

    Example:
      >>> [str(p) for p in as_passes(["inline", "canonicalize,cse"])]
      ['inline', 'canonicalize', 'cse']
    """
    from hlorewrite.passmanager.base import Pass
    from hlorewrite.passmanager.spec import parse_pipeline

    if isinstance(passes, str):
        return tuple(parse_pipeline(passes))
    if isinstance(passes, Pass):
        return (passes,)
    return tuple(step for part in passes for step in as_passes(part))


def _passes(passes: Any) -> Any:
    """A pipeline that can be parsed: a named one stays text, because parsing loads MLIR."""
    from hlorewrite.passmanager.named import PIPELINES

    parsed = () if isinstance(passes, str) and passes in (*PIPELINES, AUTO) else as_passes(passes)
    return passes if isinstance(passes, str) else parsed


@dataclass(frozen=True)
class StepOptions:
    """How a step is rewritten. ``hlorewrite.jaxbridge.step.options`` documents each field.

    The constructor takes values as they are kept; ``of`` takes those that users write, and checks them.
    """

    passes: str | tuple[Pass, ...] = field(default="", metadata=_about(
        "which [ways to compile the step](against-xla.md) to try: all of them (`auto`), or those of a pipeline, given "
        "as text, as passes, or as a list of both", check=_passes, metavar="PIPELINE"))
    match: Match = field(default=None, metadata=_about(
        "rewrite only functions with this name or glob pattern. In Python also several patterns, or a predicate of "
        "the module's name (`jit_NAME`)", unset="all functions that communicate are rewritten", metavar="NAME"))
    on_error: OnError | None = field(default=None, metadata=_about(
        "what to do when a pass fails: `raise` an error, or `fallback` to the original with one warning. In a program "
        "of [several processes](#many-processes) it applies to all of them, whichever one fails or differs",
        unset="one process raises, and several fall back", choices=get_args(OnError), metavar="POLICY"))
    check: StepCheck | None = field(default=None, metadata=_about(
        "how to check the result, for each signature. `first_call`: run the original too, on copies of the arguments, "
        "and compare every device's values within [what rounding explains](rounding.md); "
        "`step.first_call` names the output closest to its bound. A step with effects is not checked, and you are "
        "warned. `proof`: [prove](validating.md) that the rewritten step computes the same; `report.proof` has the "
        "answer, and you get a warning if it is unknown. `xla`: compile the step once more and [check XLA's own "
        "passes](validate-xla.md), which takes seconds for a small step and minutes for a large one",
        choices=get_args(StepCheck), metavar="CHECK"))
    protect: bool = field(default=True, metadata=_about(
        "compile rewritten steps without an XLA pass that computes wrong gradients on GPU in XLA 0.10.1 to "
        "0.11.2; on by default", negated="compile rewritten steps with the XLA pass that computes wrong gradients on "
        "GPU in XLA 0.10.1 to 0.11.2"))
    trace: str | None = field(default=None, metadata=_about(
        "a folder in which each signature gets a trace `NAME-DIGEST` for [`hlorewrite view`](viewer.md). With several "
        "processes, the first one writes", check=os.fspath, metavar="DIR"))
    keep: Keep = field(default="better", metadata=_about(
        "when to compile the rewritten step. `better`, the default: if it beats [XLA alone](against-xla.md), with "
        "both compiled up to code generation. `compiled`: the same, with both compiled to the end. `always`: without "
        "a comparison", choices=get_args(Keep), metavar="POLICY"))
    frames: Frames = field(default=USUAL_FRAMES, metadata=_about(
        "`hlorewrite.Frames(skip=..., own=...)`: packages that [do not count, or do count, as your "
        "code](trainers.md#reading-the-remarks) when a remark names a source line"))
    timeout_s: float = field(default=TIMEOUT_S, metadata=_about(
        "how long to wait for another process, in seconds; 300 by default. If a process has not reached the step by "
        "then, all run the original. If a process later keeps the others waiting for that long, [they "
        "exit](#diagnosing-stragglers)",
        metavar="SECONDS"))
    topology: str = field(default="", metadata=_about(
        "the cluster for which passes estimate times, such as `h200:4x8`; the step's own GPUs by default",
        check=_topology, metavar="NAME"))
    memory_budget: MemoryBudget = field(default=None, metadata=_about(
        "how much memory per device passes may spend on values that they keep longer (local sums, gathered values, "
        "buffers of fused calls), such as `8GiB`, or `auto`. Temporaries may grow by as much. `auto` is what the "
        "original leaves free: 80 % of the device's memory, minus arguments and results, minus 5 %, minus temporaries. "
        "Live memory is never read. With a budget larger than the device's memory, the original runs, with one "
        "warning. By default each pass has its own limit, and [`auto`](against-xla.md#the-ways) also tries all free "
        "memory",
        check=checked_budget, metavar="SIZE"))
    shard_update: str = field(default="", metadata=_about(
        "the mesh axis to shard optimizer state over, such as `data`; parameters and state are replicated along it. "
        "The step then takes and returns state in [other shardings](shard-update.md) and is compiled whatever `keep` "
        "says", metavar="AXIS"))
    partial_state: str = field(default="", metadata=_about(
        "the mesh axis over which the step sums the gradients that it accumulates across calls, such as `data`. "
        "Between calls they stay [local sums](partial-state.md) (`hlorewrite.PartialSum`); `place` and `whole` convert "
        "them. The step is compiled whatever `keep` says", metavar="AXIS"))
    plan: str | None = field(default=None, metadata=_about(
        "a file that ends in `.plan`, or a folder with a file per signature: the first run writes [its "
        "decision](plans.md), later runs replay it without passes, partitioner or comparison. A plan of "
        "[`hlorewrite tune`](plans.md#a-plan-of-hlorewrite-tune) also sets `passes`, `keep`, `memory_budget`, "
        "`topology` and XLA options; if you pass these, the values must match", check=os.fspath, metavar="DIR_OR_FILE"))
    on_mismatch: OnMismatch = field(default="error", metadata=_about(
        "what to do when a plan does not fit this step, its devices, options or versions: `error` stops the step, "
        "whatever `on_error` says; `original` compiles the original with one warning; `replan` decides again and "
        "rewrites the plan", choices=get_args(OnMismatch), metavar="POLICY"))
    audit: bool = field(default=False, metadata=_about(
        "rewrite nothing; report what could be saved"))
    left_open: frozenset[str] = frozenset()

    @classmethod
    def of(cls, surface: Surface, given: Mapping[str, Any], more: Iterable[str] = ()) -> StepOptions:
        """Options as a user writes them.

        Args:
          surface: where they are written.
          given: the values by name; None for one that is left out.
          more: names of other options that are known there.

        Raises:
          UsageError: an unknown option or value, or options that cannot be used together.

        Example:
          >>> made = StepOptions.of(OPTIMIZE, {"memory_budget": "8GiB"})
          >>> made.passes, made.memory_budget, sorted(made.left_open)
          ('auto', 8589934592, ['keep', 'passes', 'topology'])
          >>> StepOptions.of(OPTIMIZE, {"memory_buget": "8GiB"})
          Traceback (most recent call last):
          hlorewrite.errors.UsageError: optimize has no option "memory_buget"; did you mean "memory_budget"?
        """
        checked = {}
        for name, value in given.items():
            surface.takes(name, more)
            if value is not None:
                checked[name] = _checked(name, value)
        opened = unset_options(**{name: checked.get(name) for name in _TUNED})
        made = cls(**{**surface.defaults, **checked}, left_open=opened)
        if made.audit and made.plan is not None:
            raise UsageError("audit rewrites nothing, so there is no plan to keep", hint="leave the plan out")
        if made.shard_update and made.partial_state:
            raise UsageError("shard_update and partial_state cannot be used together", hint="choose one of them")
        if made.partial_state and made.plan is not None:
            raise UsageError("a plan cannot store a step with partial_state", hint="leave out plan= or partial_state=")
        checked_files(made.plan, made.on_mismatch)
        return made._with_state() if made.keeps_state else made

    def _with_state(self) -> StepOptions:
        """With the passes that change what the step keeps between calls; such a step is always compiled."""
        from dataclasses import replace

        from hlorewrite.passes.all_reduce_fusion import AllReduceFusion
        from hlorewrite.passes.comm_shift import CommShift
        from hlorewrite.passes.partial_state import PartialState
        from hlorewrite.passes.shard_update import ShardUpdate

        first = (CommShift(),) if self.auto else self.pipeline
        if self.shard_update:  # sums of shards are added before they are reduced; nothing else has the new shardings
            more: tuple[Pass, ...] = (ShardUpdate(self.shard_update), CommShift())
        else:  # what it reduces in branches is merged like all else
            more = (PartialState(self.partial_state), *(p for p in first if p.name == AllReduceFusion.name))
        return replace(self, passes=(*first, *more), keep="always",
                       left_open=self.left_open - {"passes", "keep"})

    @cached_property
    def pipeline(self) -> tuple[Pass, ...]:
        """The passes; text is parsed when the first module needs it. Where bytes decide, ``auto`` is ``comm``."""
        return as_passes("comm" if self.auto else self.passes)

    @property
    def auto(self) -> bool:
        """Whether all ways to compile the step are offered."""
        return self.passes == AUTO

    @property
    def text(self) -> str:
        """The passes as text."""
        from hlorewrite.passmanager.spec import format_pipeline
        return AUTO if self.auto else format_pipeline(self.pipeline)

    @cached_property
    def plans(self) -> PlanFiles | None:
        """The plans of everything that is compiled with these options; None to decide without them."""
        return checked_files(self.plan, self.on_mismatch)

    @property
    def keeps_state(self) -> bool:
        """Whether the step may take and return state in another form than the user's function."""
        return bool(self.shard_update or self.partial_state)

    @property
    def made_for(self) -> dict[str, object]:
        """The options that a plan records in addition to passes, topology and devices."""
        return {"keep": self.keep, "protect": self.protect, "proof": self.check == "proof",
                "memory_budget": self.memory_budget}

    def to_json(self) -> str:
        """The options as JSON, for the processes of ``hlorewrite exec``."""
        if callable(self.match) or not isinstance(self.passes, str):
            raise UsageError("in another process, passes and match must be text", hint="name them")
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps({**data, "frames": asdict(self.frames), "left_open": sorted(self.left_open)})

    @classmethod
    def from_json(cls, text: str) -> StepOptions:
        """The options that ``to_json`` wrote.

        Example:
          >>> made = StepOptions("comm", match=("train_step",), frames=Frames(skip=("haliax",)))
          >>> StepOptions.from_json(made.to_json()) == made
          True
        """
        data = read_json(text)
        match = data["match"]
        frames = Frames(**{name: tuple(packages) for name, packages in data["frames"].items()})
        return cls(**{**data, "match": tuple(match) if isinstance(match, list) else match, "frames": frames,
                      "left_open": frozenset(data["left_open"])})


@dataclass(frozen=True)
class Surface:
    """Where users give options.

    Attributes:
      name: as users call it.
      defaults: the defaults that differ from those of the fields.
      without: options that do not apply here, each with a sentence that says why.
    """

    name: str
    defaults: Mapping[str, Any]
    without: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """The options that apply here."""
        return tuple(name for name, _ in step_options() if name not in self.without)

    def takes(self, name: str, more: Iterable[str] = ()) -> None:
        """Refuses an option that is unknown or does not apply here.

        Args:
          name: the name of the option.
          more: other known names.

        Raises:
          UsageError: says why, or names the closest option.
        """
        if name in self.without:
            raise UsageError(f"{name} is not an option of {self.name}: {self.without[name]}")
        if name not in self.names():
            raise UsageError(f'{self.name} has no option "{name}"', hint=did_you_mean(name, (*self.names(), *more)))


_CALLS = "it needs calls of one jitted function; use hlorewrite.optimize"
_HOOK_DEFAULTS = {"passes": AUTO, "on_error": "fallback"}
_HOOK_WITHOUT: Mapping[str, str] = dict.fromkeys(("check", "shard_update", "partial_state"), _CALLS)
OPTIMIZE = Surface("optimize", {"passes": AUTO}, {
    "match": "optimize wraps the function to rewrite",
    "audit": "lower(...).report shows the saving before anything runs"})
PATCH_JIT = Surface("patch_jit", _HOOK_DEFAULTS, _HOOK_WITHOUT)
EXEC = Surface("exec", _HOOK_DEFAULTS, _HOOK_WITHOUT)
SURFACES = (OPTIMIZE, PATCH_JIT, EXEC)


class StepKeywords(TypedDict, total=False):
    """Options that every surface takes, as users write them; ``StepOptions`` says what they do."""

    on_error: OnError | None
    protect: bool
    trace: str | os.PathLike[str] | None
    keep: Keep | None
    frames: Frames
    timeout_s: float
    topology: str
    memory_budget: str | int | None
    plan: str | os.PathLike[str] | None
    on_mismatch: OnMismatch


class PatchKeywords(StepKeywords, total=False):
    """Options of ``patch_jit``."""

    audit: bool


class OptimizeKeywords(StepKeywords, total=False):
    """Options of ``optimize``, and those of ``jax.jit``."""

    check: StepCheck | None
    shard_update: str
    partial_state: str
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: Any
    compiler_options: dict[str, Any] | None


def step_options() -> Iterator[tuple[str, OptionField]]:
    """The options by name, in the order in which they are documented."""
    return ((each.name, each.metadata["option"]) for each in fields(StepOptions) if each.metadata)


def unset_options(**given: object) -> frozenset[str]:
    """Names of options that were not given.

    Args:
      **given: options; None or an empty text for one that was not given.

    Example:
      >>> sorted(unset_options(passes=None, keep="always", topology=""))
      ['passes', 'topology']
    """
    return frozenset(name for name, value in given.items() if value is None or value == "")


def _checked(name: str, value: Any) -> Any:
    """The value of an option as it is kept."""
    known = dict(step_options())[name]
    if known.choices and value not in known.choices:
        raise UsageError(f'{name}="{value}" is unknown', hint=did_you_mean(str(value), known.choices))
    return value if known.check is None else known.check(value)


def documented(surface: Surface) -> Callable[[Function], Function]:
    """Writes the options of a surface into the docstring of a function, in place of the line ``{options}``."""
    import textwrap

    def with_options(function: Function) -> Function:
        text = function.__doc__ or ""
        line = next((each for each in text.splitlines() if each.strip() == "{options}"), "")
        indent = line.partition("{")[0]  # Python 3.13 takes that of all lines off
        lines = [textwrap.fill(f"{name}: {known.plain}{_default(surface, name, known)}.", 120, initial_indent=indent,
                               subsequent_indent=f"{indent}  ") for name, known in step_options()
                 if name not in surface.without]
        function.__doc__ = text.replace(line, "\n".join(lines)) if line else text or None
        return function
    return with_options


def _default(surface: Surface, name: str, known: OptionField) -> str:
    if name in surface.defaults:
        return f"; ``{surface.defaults[name]}`` by default"
    return f"; by default {known.unset}" if known.unset else ""


def option_table(surface: Surface) -> str:
    """The options of a surface as a Markdown table, as ``docs/decorator.md`` shows it."""
    return "\n".join(["| option | meaning |", "|---|---|", *(
        f"| `{name}` | {known.text}{_default(surface, name, known).replace('``', '`')} |"
        for name, known in step_options() if name not in surface.without)])
