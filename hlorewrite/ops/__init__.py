"""Semantics of ops: class, attributes, and where dimensions and elements go."""
