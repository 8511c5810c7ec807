"""Compiles checked rules to match steps, conditions and rewrite actions."""
