"""The user's annotations of ops: scheduling groups, stream annotations, computation and memory on the host.

XLA's partitioner carries most of them over; its CPU pipeline drops those about the host. A program that lost any of
them cannot replace the user's.
"""

from hlorewrite.ir import Module, View, ir, nested_ops
from hlorewrite.ir.frontend import FRONTEND

_OF_SHARDY = "xla.sdy."
# Annotations that XLA rewrites while it partitions, as (op name or attribute text that stands for them afterwards).
_BECOMES = {("_xla_compute_type", "host"): "DEVICE_TYPE_HOST", ("_xla_buffer_placement", "pinned_host"): "@MoveToHost",
            ("_xla_buffer_placement", "unpinned_host"): "@MoveToHost",
            ("_xla_buffer_placement", "device"): "@MoveToDevice"}


def drop_shardings_of_shardy(op: ir.Operation) -> None:
    """Removes the frontend attributes in which Shardy keeps shardings; what the user wrote stays."""
    if FRONTEND not in op.attributes:
        return
    every = ir.DictAttr(op.attributes[FRONTEND])
    kept = {named.name: named.attr for named in every if not named.name.startswith(_OF_SHARDY)}
    if kept:
        op.attributes[FRONTEND] = ir.DictAttr.get(kept, op.context)
    else:
        del op.attributes[FRONTEND]


def lost_annotation(before: Module, after: Module) -> str:
    """An annotation of a module that has no counterpart in another one.

    Args:
      before: the user's module.
      after: what XLA's partitioner made of it.

    Returns:
      A sentence about it; empty when all are there.
    """
    written = _annotations(before)
    if not written:
        return ""
    there = set(_annotations(after))
    text = after.text(debug_info=False)
    for annotation, where in written.items():
        form = _BECOMES.get(annotation, "")
        if annotation not in there and not (form and form in text):
            name, value = annotation
            return f'it loses {name} = "{value}" of {where}'
    return ""


def _annotations(module: Module) -> dict[tuple[str, str], str]:
    """Every frontend attribute with the source line of one op that carries it."""
    view = View(module)
    found: dict[tuple[str, str], str] = {}
    for op in nested_ops(module.operation)[1:]:
        if FRONTEND in op.attributes:
            for named in ir.DictAttr(op.attributes[FRONTEND]):
                value = ir.StringAttr(named.attr).value if isinstance(named.attr, ir.StringAttr) else str(named.attr)
                if not named.name.startswith(_OF_SHARDY):
                    found.setdefault((named.name, value), view.source(op))
    return found
