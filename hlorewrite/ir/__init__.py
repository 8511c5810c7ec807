"""Modules in and out, the view of their ops, and the one place that edits them."""
