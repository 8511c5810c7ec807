"""XLA through JAX: targets, partitioner, compilation, execution; private names of JAX."""
