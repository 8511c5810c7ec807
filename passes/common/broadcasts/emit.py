"""Emits the collectives that send one device's value to others."""

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.analysis.groups import rows_attribute
from hlorewrite.ir import BY_KIND, COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE, Editor, ir


@dataclass(frozen=True)
class Delivery:
    """How each device receives the value of its source.

    Attributes:
      kind: ``none`` (each is its own source), ``collective-broadcast`` or ``collective-permute``.
      rows: groups with the source first, or (source, target) pairs.
    """

    kind: str
    rows: tuple[tuple[int, ...], ...]


def delivery(sources: Mapping[int, int]) -> Delivery | None:
    """The collective that sends each device the value of its source.

    Args:
      sources: maps every device to the device whose value it reads.

    Returns:
      The delivery; None when one broadcast or permute cannot do it.

    Example:
      >>> delivery({0: 2, 1: 2, 2: 2, 3: 2}).rows
      ((2, 0, 1, 3),)
      >>> delivery({0: 1, 1: 0}).kind, delivery({0: 0, 1: 1}).kind
      ('collective-permute', 'none')
      >>> delivery({0: 1, 1: 1, 2: 1, 3: 0}) is None
      True
    """
    if all(source == device for device, source in sources.items()):
        return Delivery("none", ())
    if len(set(sources.values())) == len(sources):
        return Delivery(COLLECTIVE_PERMUTE.kind, tuple((s, d) for d, s in sorted(sources.items())))
    sets: dict[int, list[int]] = {}
    for device, source in sorted(sources.items()):
        sets.setdefault(source, []).append(device)
    same_size = len({len(devices) for devices in sets.values()}) == 1
    if not same_size or any(s not in receivers for s, receivers in sets.items()):
        return None
    return Delivery(COLLECTIVE_BROADCAST.kind,
                    tuple((s, *(d for d in receivers if d != s)) for s, receivers in sets.items()))


def emit_delivery(editor: Editor, how: Delivery, value: ir.Value, like: ir.Operation,
                  before: ir.Operation) -> ir.Value:
    """Emits a delivery before an op.

    Args:
      editor: the editor of the module.
      how: the delivery.
      value: the value that each device holds.
      like: the collective whose channel and location it takes.
      before: the op it is put before.

    Returns:
      What every device receives.
    """
    if how.kind == "none":
        return value
    kind = BY_KIND[how.kind]
    attributes = {kind.groups: rows_attribute(editor.context, how.rows), "channel_handle": channel_of(editor, like)}
    return editor.create(kind.op, [value], [value.type], attributes=attributes,
                         location=like.location, before=before).results[0]


def channel_of(editor: Editor, like: ir.Operation) -> ir.Attribute:
    """The channel of a collective over partitions, or a new one: with a channel, ids are partition ids."""
    if "channel_handle" in like.attributes:
        return like.attributes["channel_handle"]
    with editor.context:
        return ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>")
