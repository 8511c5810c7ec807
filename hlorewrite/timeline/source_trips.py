"""Trip counts by the user's line, from the StableHLO module that was compiled."""

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import Module, View


def line_trips(module: Module) -> dict[str, int]:
    """The trip count of the loops on each line.

    Args:
      module: the module; it is not changed.

    Returns:
      Trip counts by source line, for lines whose loops all have the same one.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> line_trips(parse("func.func @main() { return }"))
      {}
    """
    view = View(module)
    counts: dict[str, set[int | None]] = {}
    for loop in view.ops("stablehlo.while"):
        counts.setdefault(view.source(loop), set()).add(trip_count(loop))
    return {line: count for line, found in counts.items() if len(found) == 1 and (count := found.pop()) is not None}
