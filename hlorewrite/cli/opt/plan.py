"""``hlorewrite opt --plan``: the result of a run kept in a file, and replayed if it fits."""

import argparse
import sys
from dataclasses import dataclass, field, replace

from hlorewrite.errors import HlorewriteError, PlanMismatch, UsageError
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.step.options import unset_options
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.lockfile.files import read_plan, write_plan
from hlorewrite.lockfile.fingerprint import jax_version, made_for, pipeline_text
from hlorewrite.lockfile.remarks import remarks_data, remarks_of
from hlorewrite.lockfile.replay import fitting
from hlorewrite.lockfile.stored import stored_text
from hlorewrite.lockfile.tuned import LeftOpen, is_tuned, options_of, options_text
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.named import AUTO
from hlorewrite.passmanager.reports import RemarkSink, parse_kinds
from hlorewrite.rules.listener import Listener

_CONSEQUENCES = {"error": "nothing is written; --on-mismatch=replan makes a new plan, =original writes the input",
                 "original": "the input is written", "replan": "a new plan is made"}
_OF_COMPILATIONS = {"platform", "devices", "xla_flags", "protect"}


def check_plan_usage(args: argparse.Namespace) -> None:
    """Refuses flags that a replayed run cannot serve.

    Raises:
      UsageError: names the flag.
    """
    refused = [flag for flag, on in (
        ("--split-input-file", args.split_input_file), ("--verify-diagnostics", args.verify_diagnostics),
        ("--run-reproducer", args.run_reproducer), ("--trace", args.trace is not None), ("--explain", args.explain),
        ("--print-ir", args.print_ir_before or args.print_ir_after or args.print_ir_before_all
         or args.print_ir_after_all or args.print_ir_after_change)) if on]
    if args.plan and refused:
        raise UsageError(f"{refused[0]} shows how passes run, but a plan is replayed without them",
                         hint="leave one of them out")


@dataclass
class OptPlan:
    """The plan of one run of ``opt``.

    Args:
      args: the command line.
      passes: its passes.
      original: the input; it is not changed.
    """

    args: argparse.Namespace
    passes: list[Pass]
    original: Module
    remarks: RemarkSink = field(default_factory=lambda: RemarkSink(parse_kinds("text")[0]))
    _wanted: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        args = self.args
        self._wanted = made_for(self.original, self.passes, args.topology, target=args.target or None,
                                memory_budget=args.memory_budget, ignore_cost=args.ignore_cost, keep=args.keep,
                                natives=", ".join([*args.load, *args.natives]) or None)
        if AUTO in args.passes:
            self._wanted["passes"] = AUTO

    def replayed(self, listeners: list[Listener]) -> Module | None:
        """The module in the plan, and what its passes said; None if the passes are to be run.

        Raises:
          PlanMismatch: the plan does not fit, and ``--on-mismatch`` is ``error``.
        """
        try:
            document = read_plan(self.args.plan)
            if document is None:
                return None
            wanted = self._wanted_of_tuned() if is_tuned(document) else self._wanted
            found = fitting(document, wanted, self.original, self.args.plan, self._left)
            remarks = remarks_of(document, self.args.plan)
        except PlanMismatch as error:
            return self._refused(error)
        for remark in remarks:
            for listener in listeners:
                listener.remark(remark)
        self._name_options(document)
        return found.module or self.original.clone()

    @property
    def _left(self) -> LeftOpen:
        """What a plan of ``hlorewrite tune`` may say: what was left out, and what only a compilation needs."""
        args = self.args
        opened = unset_options(passes=args.passes or None, keep=args.keep, topology=args.topology,
                           memory_budget=args.memory_budget, cluster=args.target)
        return LeftOpen(opened | _OF_COMPILATIONS)

    def _wanted_of_tuned(self) -> dict[str, str]:
        """A target is the cluster of the devices."""
        named = {name: value for name, value in self._wanted.items() if name != "target"}
        return {**named, **({"cluster": self.args.target} if self.args.target else {})}

    def _name_options(self, document: PlanDocument) -> None:
        from hlorewrite.jaxbridge.xla.profile_files import with_path

        options = with_path(options_of(document, self.args.plan), self.args.plan) if is_tuned(document) else {}
        if options:
            sys.stderr.write(f"{self.args.plan}: was chosen for a compilation with XLA options, which a module cannot "
                             f"store: {options_text(options)}\n")

    def _refused(self, error: PlanMismatch) -> Module | None:
        policy = self.args.on_mismatch
        refused = PlanMismatch(error.what, location=error.location, hint=_CONSEQUENCES[policy])
        if policy == "error":
            raise refused
        sys.stderr.write(f"hlorewrite: warning: {refused}\n")
        return self.original.clone() if policy == "original" else None

    def write(self, result: Module, changed: bool, budget: int | None) -> None:
        """Writes the plan of a run, once it is certain that the plan can be replayed.

        Args:
          result: what the run writes.
          changed: whether that is another module than the input.
          budget: bytes of a device's memory that passes might spend; None for their own limits.

        Raises:
          HlorewriteError: it cannot be replayed, or not written.
        """
        reason = "a pass changed it" if changed else "no pass changed it, or XLA alone does as well"
        decision = {"compiled": "rewritten" if changed else "original", "memory": budget,
                    "partitioner": "", "passes": pipeline_text(self.passes), "reason": reason}
        document = PlanDocument(self.original.name.rpartition("/")[2], self._wanted, jax_version(), decision, {},
                                remarks_data(tuple(self.remarks.remarks)))
        try:
            if changed:
                document = replace(document, digest=result.digest(), module=stored_text(result, self.args.plan))
            fitting(document, self._wanted, self.original, self.args.plan)
        except PlanMismatch as error:
            raise HlorewriteError(f"the result cannot be kept in a plan: the plan {error.what}",
                                  location=self.args.plan, hint="leave out --plan") from None
        write_plan(self.args.plan, document)
