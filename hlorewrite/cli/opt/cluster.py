"""The cluster of one run of ``opt``: what is checked of it, and which collectives XLA inserts only for it."""

import argparse
from collections.abc import Sequence

from hlorewrite.errors import InputError
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.dumps import names_of
from hlorewrite.passmanager.named import AUTO, PIPELINES
from hlorewrite.passmanager.programs import is_program
from hlorewrite.passmanager.spec import parse_pipeline

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
