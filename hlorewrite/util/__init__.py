"""Helpers for every layer: sizes and units, tables, tolerances, progress, writing files."""
