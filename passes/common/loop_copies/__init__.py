"""Copies of a loop's body outside it: barriers before them, and the values they recompute."""
