"""The pass gather-once: parameters that loops gather again and again are gathered before them."""

from hlorewrite.passes.gather_once.gather_once import GatherOnce

__all__ = ["GatherOnce"]
