"""The pass ``all-reduce-fusion``: bucketing by the cost model."""

from hlorewrite.passes.all_reduce_fusion.all_reduce_fusion import AllReduceFusion

__all__ = ["AllReduceFusion"]
