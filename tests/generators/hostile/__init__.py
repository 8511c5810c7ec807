"""Mutated inputs of every form through the real command: what a file of others may do to it."""
