"""What bucketing works on: single items, or runs of small neighbours when there are very many."""

from collections.abc import Sequence
from typing import Protocol

MOST_ITEMS = 512


class Sized(Protocol):
    """What has a size and may depend on an earlier one."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    @property
    def after(self) -> int:
        """The last earlier item it depends on; -1 for none."""
        ...


def spans_of(items: Sequence[Sized], bucket_bytes: int | None, most_items: int = MOST_ITEMS) -> list[tuple[int, int]]:
    """Ranges of neighbours that are placed as one.

    Args:
      items: in the order they are ready.
      bucket_bytes: most bytes of a bucket; None for no limit.
      most_items: how many items are placed one by one.

    Returns:
      (first, last + 1) of each range, none of which depends on itself.

    Example:
      >>> from hlorewrite.passes.all_reduce_fusion.model import FusionItem
      >>> spans_of([FusionItem(0.0, 1.0, 4), FusionItem(0.5, 1.0, 4)], None)
      [(0, 1), (1, 2)]
    """
    if len(items) <= most_items:
        return [(index, index + 1) for index in range(len(items))]
    share = 2 * sum(item.size for item in items) / most_items
    most = min(share, bucket_bytes or share)
    longest = -(-2 * len(items) // most_items)
    spans, first, size = [], 0, 0
    for index, item in enumerate(items):
        if index > first and (size + item.size > most or item.after >= first or index - first >= longest):
            spans.append((first, index))
            first, size = index, 0
        size += item.size
    return [*spans, (first, len(items))]
