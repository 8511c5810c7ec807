"""Bounds of what rounding may change between a module and its rewritten form."""
