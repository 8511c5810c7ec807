"""The pass interleave-micro-batches: two iterations of an accumulation loop run as one, layer by layer."""
