"""XLA through JAX: targets, partitioner, compilation and execution. The only place with private names of JAX."""
