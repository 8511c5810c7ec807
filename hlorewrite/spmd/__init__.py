"""Facts about SPMD programs: groups, reducers, meshes, uniformity, trip counts, deferred reductions."""
