"""Runs programs of several meshes on JAX's runtime."""
