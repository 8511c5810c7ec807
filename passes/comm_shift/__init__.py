"""The pass ``comm-shift``."""

from hlorewrite.passes.comm_shift.comm_shift import CommShift

__all__ = ["CommShift"]
