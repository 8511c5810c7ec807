"""The pass ``comm-shift``: defers reductions to where their results are needed."""

from hlorewrite.passes.comm_shift.comm_shift import CommShift

__all__ = ["CommShift"]
