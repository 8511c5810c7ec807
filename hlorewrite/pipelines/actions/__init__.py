"""A program of several meshes under a schedule: fit, order of actions, liveness."""
