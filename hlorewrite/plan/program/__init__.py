"""A program of several meshes under a schedule: which schedule fits, action order, buffer liveness."""
