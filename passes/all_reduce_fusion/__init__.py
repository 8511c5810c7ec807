"""The pass ``all-reduce-fusion``."""

from hlorewrite.passes.all_reduce_fusion.all_reduce_fusion import AllReduceFusion

__all__ = ["AllReduceFusion"]
