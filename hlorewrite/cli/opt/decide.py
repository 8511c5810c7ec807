"""Runs ``opt`` for a target: makes the decision that the decorator would make for the same step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hlorewrite.cli.opt.cluster import EXPOSE, named_cluster
from hlorewrite.cost.cluster.capacity import checked_capacity
from hlorewrite.errors import UsageError
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.dumps import names_of
from hlorewrite.passmanager.named import AUTO
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
    from hlorewrite.jaxbridge.baseline.modules import best_alone
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
