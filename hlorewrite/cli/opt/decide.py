"""Runs ``opt`` for a target: the cluster, and the decision that the decorator would make for the same step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.capacity import checked_capacity
from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import names_of
from hlorewrite.passmanager.named import AUTO, PIPELINES
from hlorewrite.passmanager.programs import is_program
from hlorewrite.passmanager.spec import parse_pipeline

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.baseline.comparison import XlaComparison
    from hlorewrite.jaxbridge.step.report import RewriteReport


@dataclass(frozen=True)
class OptDecision:
    """What is run and written.

    Attributes:
      passes: the passes to run; the first is XLA's partitioner if the module is auto-sharded.
      memory: bytes that they may spend; None for their own limits.
      kept: whether their result is written, and not the input.
      comparison: all ways that were compared; None if there was nothing to compare.
      report: what the passes of the decision did and said.
    """

    passes: list[Pass]
    memory: int | None = None
    kept: bool = True
    comparison: XlaComparison | None = None
    report: RewriteReport | None = None

    def as_json(self, module: Module, target: str) -> dict[str, Any]:
        """The keys of ``opt --json``."""
        made = self.comparison
        if made is None:
            return {"module": module.name, "target": target, "chosen": "XLA alone", "rows": [],
                    "reason": "no pass changed the module, so there is nothing to compare"}
        return {"module": module.name, "target": target, **made.as_json()}


def is_auto(texts: Sequence[str]) -> bool:
    """Whether ``-O auto`` is set.

    Raises:
      UsageError: other passes are named with it.
    """
    if AUTO in texts and len(texts) > 1:
        raise UsageError("-O auto already tries every pipeline, so it takes no other passes",
                         hint="leave the others out, or -O auto")
    return AUTO in texts


def decides(args: argparse.Namespace, module: Module, passes: Sequence[Pass]) -> bool:
    """Whether a module is written only if it is better for its target."""
    return bool(args.target and passes and args.keep != "always") and not is_program(module)


def decision(args: argparse.Namespace, module: Module, passes: Sequence[Pass]) -> OptDecision:
    """Compares the ways that a command line offers with XLA alone.

    Args:
      args: the command line; it names a target.
      module: the input; it is not changed.
      passes: those of the command line.

    Returns:
      What to run and whether to write its result.

    Raises:
      HlorewriteError: the target has other devices than the module, XLA refuses it, or a pass failed.
    """
    from hlorewrite.jaxbridge.baseline.comparison import best_alone
    from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
    from hlorewrite.jaxbridge.step.options import StepOptions
    from hlorewrite.jaxbridge.step.variants import StepChoice
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target
    if isinstance(args.memory_budget, int):
        checked_capacity(args.memory_budget, named_cluster(args), module.name)
    place = place_of(parse_target(args.target), module)
    options = StepOptions(AUTO if is_auto(args.passes) else tuple(passes), topology=named_cluster(args),
                          memory_budget=args.memory_budget)
    made, sentences = rewrite_step(module.clone(), options, place)
    for sentence in sentences:
        sys.stderr.write(f"{module.name}: {sentence}\n")
    comparison, asked = made.report.comparison, StepChoice.from_text(made.how)
    if made.report.budget and args.memory_budget == "auto":
        sys.stderr.write(f"{module.name}: {made.report.budget}\n")
    if comparison is None or asked.passes is None:
        return OptDecision(_after_partitioner(args, list(passes), made.report.exposed), report=made.report)
    comparison = replace(comparison, devices=args.target)
    if args.xla_flags == "best":
        comparison = replace(comparison, best=best_alone(module, place, comparison.alone))
    memory = None if asked.memory == "unlimited" else int(asked.memory or 0)
    steps = _after_partitioner(args, parse_pipeline(asked.passes), asked.partitioner not in ("none", None),
                               own=asked.partitioner != "cpu" or args.target.startswith("cpu"))
    return OptDecision(steps, memory, comparison.kept, comparison, replace(made.report, comparison=comparison))


def check_report(args: argparse.Namespace) -> None:
    """Refuses options that show a decision if none is made.

    Raises:
      UsageError: it names the option to add or to leave out.
    """
    if args.report and not args.target:
        raise UsageError("--report shows what is chosen for a target, but no target was given",
                         hint="add --target=h200:1x8, say")
    flag = "--json" if args.json else "--report" if args.report else ""
    if flag and args.keep == "always":
        raise UsageError(f"{flag} shows a decision, but --keep=always makes none", hint="leave one of them out")


def _after_partitioner(args: argparse.Namespace, passes: list[Pass], hidden: bool, own: bool = True) -> list[Pass]:
    """Passes that see what XLA's partitioner inserts: that of the target, or of XLA:CPU."""
    if not hidden or any(EXPOSE in names_of(step) for step in passes):
        return passes
    options = f"{{target={args.target} optional=true}}" if own else "{optional=true}"
    return [*parse_pipeline(f"{EXPOSE}{options}"), *passes]


# ---- the cluster of one run of ``opt``: what is checked of it, and which collectives XLA inserts only for it


EXPOSE = "expose-collectives"


def named_cluster(args: argparse.Namespace) -> str:
    """The cluster that a command line names: its topology, else that of its target; empty if there is none."""
    from hlorewrite.cost.cluster.topology_file import cluster_of_target
    return args.topology or cluster_of_target(args.target)


def cluster_of(args: argparse.Namespace, module: Module) -> str:
    """The same for one module, for which ``--target=gpu`` means the GPUs of this machine.

    Raises:
      UsageError: the target has other devices than the module, or the topology has fewer.
    """
    if is_program(module):
        return named_cluster(args)
    if args.topology:
        from hlorewrite.analysis.groups import device_count
        from hlorewrite.cost.collective_times import CollectiveTimes
        from hlorewrite.ir.view import View
        CollectiveTimes(args.topology, device_count(View(module)) or 1)
    if not args.target:
        return args.topology
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target
    place = place_of(parse_target(args.target), module)
    return named_cluster(args) or place.topology


def hides_collectives(args: argparse.Namespace, module: Module, passes: Sequence[Pass]) -> bool:
    """Whether XLA will insert collectives that matter to a named pipeline, or to a comparison for a target.

    Args:
      args: the command line.
      module: the module before the passes; it is not changed.
      passes: what the command line names.
    """
    if not (_is_named(args) or args.target) or not passes or any(EXPOSE in names_of(step) for step in passes):
        return False
    if is_program(module) or not any(op.operation.name == "sdy.mesh" for op in module.mlir.body.operations):
        return False
    from hlorewrite.jaxbridge.xla import partition
    try:
        return partition.hides_collectives(module)
    except InputError:  # no step of one mesh
        return False


def with_exposed(args: argparse.Namespace, passes: Sequence[Pass]) -> list[Pass]:
    """A named pipeline for a target after XLA's partitioner, for a module that hides its collectives."""
    if not _is_named(args) or not args.target:
        return list(passes)
    return [*parse_pipeline(f"{EXPOSE}{{target={args.target} optional=true}}"), *passes]


def what_was_not_done(args: argparse.Namespace, hidden: bool, changed: bool, ctx: PassContext) -> str:
    """A sentence for a user whose named pipeline, or comparison for a target, did less than it could.

    Args:
      args: the command line.
      hidden: whether XLA inserts collectives into the input later.
      changed: whether a pass changed the module.
      ctx: the context of the passes.

    Returns:
      Names the part that was skipped, and the option that runs it or the reason; empty if nothing was skipped.
    """
    if hidden and not (_is_named(args) and args.target):
        add = "--target=h200:1x8, say" if _is_named(args) else f"--pass={EXPOSE} before the passes"
        return f"is auto-sharded: XLA inserts its collectives later, and the passes do not see them; add {add}"
    if hidden and not any(name == EXPOSE for name, _ in ctx.counters):
        return "is auto-sharded, and its collectives stay hidden from the passes; --remarks=blocked says why"
    if changed or not args.passes or not (_is_named(args) or args.target):
        return ""
    compared = ", so it is not compared with XLA alone" if args.target else ""
    return f"no pass changed the module{compared}; --remarks=all says why"


def _is_named(args: argparse.Namespace) -> bool:
    """Whether a named pipeline is asked for, by ``-O`` or as a part of a pipeline's text."""
    names = {*PIPELINES, AUTO}
    return any(text in PIPELINES.values() or not names.isdisjoint(part.strip() for part in text.split(","))
               for text in args.passes)
