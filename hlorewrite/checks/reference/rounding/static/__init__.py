"""Bounds from both modules alone: depth and length of sums, wire types."""
