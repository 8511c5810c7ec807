"""Where a message points: the user's source line, or the line of the module's own file."""

from hlorewrite.ir.location import line_of_text
from hlorewrite.ir.module import Module


def place_of(module: Module, location: str) -> str:
    """The place a message about a module should name.

    Args:
      module: the module.
      location: the printed form of an MLIR location; empty when there is none.

    Returns:
      ``file:line:col`` of the user's program; for a module without locations, of its own file; else its file alone.
    """
    where = line_of_text(location)
    if where == "?" or where.endswith(":0:0"):
        return module.name
    return f"{module.name}{where[1:]}" if where.startswith("-:") else where
