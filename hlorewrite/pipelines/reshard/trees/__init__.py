"""Broadcasts in blocks of which each takes a separate tree."""
