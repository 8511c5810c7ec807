"""Executes modules on N devices without devices: the reference for every rewrite.
jaxlib's StableHLO reference interpreter computes, one value at a time; the devices are run in lockstep by writing their
programs side by side into one sequential program (``lockstep``). The interpreter's own ``run_parallel`` is not used:
in jaxlib 0.10 it aborts the process with more devices than CPU cores, and computes wrong values for collectives inside
loops, because a rendezvous keeps the operands of the previous iteration.
"""

from hlorewrite.checks.reference.program import LockstepProgram, Outcome, execute, prepare

__all__ = ["LockstepProgram", "Outcome", "execute", "prepare"]
