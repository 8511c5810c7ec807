"""Modules in and out, the pattern-matching view of them, and the one place that edits them."""
