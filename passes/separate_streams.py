"""separate-streams: runs collectives over network ports concurrently with those over links within hosts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import device_count
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.errors import UsageError
from hlorewrite.hlo.published_flags import STREAMS
from hlorewrite.ir import COLLECTIVES, Module, View, ir
from hlorewrite.ir.frontend import FRONTEND, STREAM, frontend_attributes, with_frontend
from hlorewrite.ops.table import RAGGED_ALL_TO_ALL_CALL
from hlorewrite.passes.common.overlap_model import SEPARATE, uses_ports_alone
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passmanager.base import Pass, PassContext

_PORTS, _LINKS = "1", "0"
_OPTIONS = [f"--{name}={str(value).lower()}" for name, value in STREAMS.items()]


@dataclass(frozen=True)
class SeparateStreams(Pass):
    """Runs collectives that only network ports carry on a separate stream.

    XLA:GPU queues all collectives on one stream, so a gradient on its way between hosts holds up the activations that
    tensor parallelism reduces within them. The two share no link. Here collectives with one member on each host run on
    stream 1, all others on stream 0 (openxla/xla, ``execution_stream_assignment.cc``, ``_xla_stream_annotation``).
    Groups that use both ports and links stay on stream 0, so no two streams share a link.

    XLA has to be compiled with ``published_flags.STREAMS``, which the decorator and ``exec`` do. No GPU has
    run this yet. In a public report, gradients of steps with ragged all-to-alls did not repeat once several collectives
    ran at a time; a module that contains one is left alone. So ``auto`` does not include it.

    Nothing is computed differently, and operands are sent as before.

    Attributes:
      plan: mark the module for the passes that follow, which then count on two streams.
      topology: the cluster; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> SeparateStreams(topology="h200:2x8").run(module, PassContext())
      False
    """

    name: ClassVar[str] = "separate-streams"
    xla_options: ClassVar[Mapping[str, str | bool | int]] = STREAMS
    plan: bool = False
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Annotates a module in place; returns whether it changed."""
        spec = self.topology or ctx.topology
        if not spec:
            raise UsageError(f"{self.name} reads which links a group uses, and no cluster is named",
                             hint='add --topology=h200:4x8, or topology="h200:4x8" in Python')
        view, editor = ctx.view(module), ctx.editor(module, self.name)
        topology = CollectiveTimes(spec, device_count(view) or 1).topology
        ops = [op for op in view.ops(*COLLECTIVES) if STREAM not in frontend_attributes(op)]
        alone = [uses_ports_alone(op, view, topology) for op in ops]
        marked = SEPARATE in module.operation.attributes
        if not self.plan:
            editor.set_attribute(module.operation, SEPARATE, None)
        if not any(alone) or all(alone) or _is_ragged(view):
            return marked and not self.plan
        if self.plan:
            with module.mlir.context:
                editor.set_attribute(module.operation, SEPARATE, ir.UnitAttr.get())
            return True
        for op, ports in zip(ops, alone, strict=True):
            # XLA puts collectives without an annotation on its streams in turn.
            editor.set_attribute(op, FRONTEND, with_frontend(op, STREAM, _PORTS if ports else _LINKS))
        ctx.count("collectives on a separate stream", sum(alone))
        first = ops[alone.index(True)]
        tell(ctx, "applied", self.name, f"it runs on a separate stream, with {sum(alone) - 1} more collectives that "
             f"only network ports of {topology.spec} carry; XLA needs the options {' '.join(_OPTIONS)}", view, first)
        return True


def _is_ragged(view: View) -> bool:
    """Whether a module contains a ragged all-to-all."""
    return any(ir.StringAttr(op.attributes["call_target_name"]).value == RAGGED_ALL_TO_ALL_CALL
               for op in view.ops("stablehlo.custom_call"))
