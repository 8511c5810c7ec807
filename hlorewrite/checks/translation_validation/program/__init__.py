"""Evaluates one program to nodes: ops, collectives, loops, branches, calls, manual regions."""
