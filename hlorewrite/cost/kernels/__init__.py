"""Seconds of the kernels of one GPU: rates, the work of ops, and the fusion that XLA makes of StableHLO."""
