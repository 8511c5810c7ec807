"""Names mesh axes for modules that contain no mesh, such as optimised HLO."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.cost.report.report import Executed
from hlorewrite.errors import UsageError
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE
from hlorewrite.util.sizes import MOST_DEVICES


def parse_mesh(text: str) -> Mesh:
    """Reads ``data=4,model=2``: axes from the slowest varying to the fastest.

    Args:
      text: names and sizes.

    Returns:
      The mesh of devices 0, 1, ... in row-major order.

    Raises:
      UsageError: the text has another form.

    Example:
      >>> parse_mesh("data=4,model=2").size
      8
    """
    axes = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*([1-9]\d*)\s*", part)
        if not match or match[1] in dict(axes):
            raise UsageError(f'"{text}" is not a mesh', hint='write it like "data=4,model=2"')
        axes.append((match[1], int(match[2])))
    if math.prod(size for _, size in axes) > MOST_DEVICES:
        raise UsageError(f'the mesh "{text}" has more than {MOST_DEVICES} devices', hint="name a smaller one")
    return Mesh(tuple(axes), tuple(range(math.prod(size for _, size in axes))))


def with_axes(collectives: Sequence[Executed], mesh: Mesh) -> list[Executed]:
    """The same collectives, with axes of a mesh if they have none yet.

    Args:
      collectives: what is executed.
      mesh: the mesh the module was made for.

    Returns:
      New collectives; the axes stay empty if the groups are not those of the mesh.
    """
    return [what if what.axes else replace(what, axes=axes_of(what, mesh)) for what in collectives]


def axes_of(what: Executed, mesh: Mesh) -> tuple[str, ...]:
    """The axes along which a collective moves data; empty when its groups are not those of the mesh."""
    names = [name for name, _ in mesh.axes]
    places = mesh.coordinates(names)
    if any(gpu not in places for group in what.groups for gpu in group):
        return ()
    spread = tuple(name for i, name in enumerate(names)
                   if any(len({places[gpu][i] for gpu in group}) > 1 for group in what.groups))
    if what.kind == COLLECTIVE_PERMUTE.kind:
        return spread
    return spread if frozenset(frozenset(group) for group in what.groups) == mesh.groups_along(spread) else ()
