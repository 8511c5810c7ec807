"""Replica groups and pairs written as lists, also those that name mesh axes.

JAX 0.12 writes ``#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]>``. Ops that leave the module that holds
the mesh, as fragments of a program do, need the groups themselves.
"""

from collections.abc import Sequence

import numpy as np

from hlorewrite.analysis.groups import written_groups
from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import COLLECTIVES, REPLICA_GROUPS
from hlorewrite.ir.edit import Editor


def list_groups(editor: Editor) -> int:
    """Writes the groups of every collective of a module as lists.

    Args:
      editor: of the module. Groups that cannot be read stay as they are.

    Returns:
      How many collectives changed.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> list_groups(Editor(View(parse("func.func @main() { return }"))))
      0
    """
    changed = 0
    for op in editor.view.ops(*COLLECTIVES):
        attribute = op.attributes.get(REPLICA_GROUPS, None)
        if attribute is None or isinstance(attribute, ir.DenseIntElementsAttr):
            continue
        groups = written_groups(op, editor.view)
        if isinstance(groups, str):
            continue
        editor.set_attribute(op, REPLICA_GROUPS, rows_attribute(op.context, groups.rows))
        changed += 1
    return changed


def rows_attribute(context: ir.Context, rows: Sequence[Sequence[int]]) -> ir.Attribute:
    """Groups or pairs as StableHLO writes them.

    Args:
      context: of the module they are for.
      rows: the groups, of one size, or the (source, target) pairs.
    """
    with context, ir.Location.unknown():
        return ir.DenseElementsAttr.get(np.array(rows, dtype=np.int64).data)
