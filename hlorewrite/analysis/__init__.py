"""Facts about SPMD programs: groups, meshes, uniformity, trip counts, deferred reductions."""
