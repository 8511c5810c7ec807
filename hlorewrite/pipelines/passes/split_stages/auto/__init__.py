"""Shared by split-stages: where stages begin, chosen by dynamic programming over the cost model."""
