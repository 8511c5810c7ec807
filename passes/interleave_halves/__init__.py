"""The pass interleave-halves: collectives of one half of the batch run concurrently with the compute of the other."""
