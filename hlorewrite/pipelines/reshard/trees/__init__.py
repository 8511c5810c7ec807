"""Broadcasts in blocks of which each takes a tree of its own."""
