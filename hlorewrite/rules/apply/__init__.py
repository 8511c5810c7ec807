"""Applies compiled rules to a module."""
