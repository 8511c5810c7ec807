"""The pass sequence-parallel: activations between the matrix products of tensor parallelism are sharded."""
