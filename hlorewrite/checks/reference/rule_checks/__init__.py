"""Checks of rules and linearity facts by execution."""
