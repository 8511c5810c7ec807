"""Predicts whether XLA alone miscompiles a step: with certainty after partitioning, as a guess before it."""

from jaxlib import version as jaxlib_version

from hlorewrite.hlo.xla_hazards import find_hazards
from hlorewrite.ir import ALL_REDUCE, Editor, Module, View, ancestors, inline_calls, ir
from hlorewrite.ops.reducers import is_identity

_MOVES = {"stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose"}


def miscompiled(module: Module, version: tuple[int, ...] = jaxlib_version.__version_info__) -> bool:
    """Whether XLA's code motion miscompiles a module on GPU.

    Args:
      module: a module whose collectives are explicit; it is not changed.
      version: the version of jaxlib.
    """
    view = View(module)
    if not reduces_in_a_loop(view):
        return False
    copy = module.clone()
    inline_calls(Editor(View(copy)))
    return any(hazard.kind.affects(version) for hazard in find_hazards(View(copy)))


def reduces_in_a_loop(view: View) -> bool:
    """Whether an all-reduce may run in a loop, so that XLA's code motion has something to move.

    Args:
      view: a module whose collectives are explicit. All-reduces in called functions count.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> reduces_in_a_loop(View(parse("func.func @main() { return }")))
      False
    """
    around = [{parent.name for parent in ancestors(op)} for op in view.ops(ALL_REDUCE.op)]
    return any("stablehlo.while" in names for names in around) or bool(
        around and view.ops("stablehlo.while") and view.ops("func.call"))


def adds_scatters_up(module: Module) -> bool:
    """Whether a step resembles those that XLA miscompiles, before its collectives are known.

    XLA rewrites ``total + scatter(0, ...)`` to a scatter into the total, and its code motion then moves the all-reduce
    of that. A function or loop that takes the total adds it there, so neither calls nor loops are followed.

    Args:
      module: a module before XLA partitions it.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> adds_scatters_up(parse("func.func @main() { return }"))
      False
    """
    return any(map(_added_up, View(module).ops("stablehlo.scatter")))


def _added_up(scatter: ir.Operation) -> bool:
    if len(scatter.results) != 1:
        return False
    if isinstance(scatter.operands[0], ir.BlockArgument):
        return True
    if not is_identity(scatter.operands[0], "sum"):
        return False
    uses = list(scatter.results[0].uses)
    # Ends: each step goes to a reader after it in the block.
    while len(uses) == 1 and uses[0].owner.operation.name in _MOVES:
        uses = list(uses[0].owner.operation.results[0].uses)
    return any(use.owner.operation.name == "stablehlo.add"
               and isinstance(use.owner.operation.operands[1 - use.operand_number], ir.BlockArgument) for use in uses)
