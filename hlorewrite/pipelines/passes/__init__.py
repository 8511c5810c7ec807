"""Passes that make programs of several meshes, or rewrite them."""
