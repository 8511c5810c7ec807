"""Broadcasts in blocks that each use a separate tree."""
