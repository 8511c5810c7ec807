"""Replica groups that name mesh axes, written as lists.

JAX 0.12 writes ``#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]>``. What leaves the module that holds
the mesh, as the fragments of a program do, needs the groups themselves.
"""

from __future__ import annotations

import numpy as np

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import COLLECTIVES, REPLICA_GROUPS
from hlorewrite.ir.edit import Editor
from hlorewrite.spmd.groups import written_groups


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
        with op.context:
            rows = np.array(groups.rows, dtype=np.int64)
            editor.set_attribute(op, REPLICA_GROUPS, ir.DenseElementsAttr.get(rows.data))
        changed += 1
    return changed
