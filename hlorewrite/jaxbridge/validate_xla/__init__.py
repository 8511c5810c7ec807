"""XLA's passes, proved or refuted from a dump: reading HLO as StableHLO, the chain of programs, and verdicts."""
