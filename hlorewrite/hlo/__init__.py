"""Optimised HLO text, and patterns that XLA miscompiles."""
