"""Finds the collectives that a compiled step runs in loops, why XLA left them there, and how to remove them."""
